"""What an exponential family with its conjugate prior says about itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.models.base import Model, Records, count
from discreet.privacy import Guarantee, checks

Array = NDArray[np.float64]

FamilyDraws = dict[str, Array]
"""Parameters by name, leading axis = draw: on the scale people read, and unconstrained."""


class ConjugateFamily(Model):
    """Records from an exponential family, with its conjugate prior, as data.

    One record has density h(x) exp(S(x) . theta - A(theta)); the prior has density
    exp(T(theta) . eta - C(eta)) with T(theta) = (theta, -A(theta), ..), so n records
    of weight w move eta to eta + w (sum S(x), n, ..). A family names S, T, C and the
    gradient and Hessian of C, draws exactly, and prices one draw.

    Every method takes and returns plain arrays; `eta` has the length of `prior_eta`,
    and one column per draw where `draw` is given different posteriors.

    References: Geumlek, Song & Chaudhuri 2017, Section 3 (paper R);
        docs/proofs/conjugate_families.md.
    """

    # --- the prior and one record ----------------------------------------------

    @property
    @abstractmethod
    def prior_eta(self) -> Array:
        """The natural parameters of the prior."""

    @abstractmethod
    def with_prior(self, eta: Array) -> Self:
        """The same family with the prior that has these natural parameters."""

    @abstractmethod
    def statistic(self, records: Records) -> Array:
        """S(x) of each record: one row per record."""

    @property
    @abstractmethod
    def statistic_range(self) -> tuple[Array, Array]:
        """The smallest and largest value of each coordinate of S over admissible records."""

    @property
    @abstractmethod
    def difference_vertices(self) -> Array:
        """The vertices of the hull of all S(x) - S(y), or of a polytope around it; one per row."""

    @property
    def delta(self) -> float:
        """A bound on |S(x) - S(y)| (paper R, Definition 7)."""
        return float(np.linalg.norm(self.difference_vertices, axis=1).max())

    # --- the log-normaliser C -----------------------------------------------------

    @abstractmethod
    def contains(self, eta: Array) -> bool:
        """Whether eta is normalisable (paper R, Definition 8)."""

    @abstractmethod
    def log_normaliser(self, eta: Array) -> float:
        """C(eta), infinite where eta is not normalisable."""

    @abstractmethod
    def gradient(self, eta: Array) -> Array:
        """The gradient of C, which is the mean of T(theta)."""

    @abstractmethod
    def hessian(self, eta: Array) -> Array:
        """The Hessian of C, which is the covariance of T(theta)."""

    @abstractmethod
    def sufficient(self, draws: FamilyDraws) -> Array:
        """T(theta) of each draw: one row per draw."""

    # --- inference ---------------------------------------------------------------

    def posterior_eta(
        self, total: Array, size: int, *, weight: float = 1.0, concentration: float = 1.0
    ) -> Array:
        """Natural parameters after `size` records whose statistics sum to `total`.

        Args:
            total: the sum of S(x).
            size: the number of records.
            weight: what each record counts (paper R's r).
            concentration: what the prior is divided by (paper R's m).
        """
        eta = self.prior_eta / concentration
        eta[: len(total)] += weight * total
        eta[len(total) :] += weight * size
        return eta

    def given_public(self, records: Mapping[str, ArrayLike]) -> Self:
        """This family with its prior sharpened by public records.

        Public records cost nothing, and what they add to the prior makes each
        private record matter less (paper R, Section 3, Extensions).
        """
        known = self.validate(records)
        return self.with_prior(self.posterior_eta(self.statistic(known).sum(axis=0), count(known)))

    @abstractmethod
    def draw(self, eta: Array, generator: np.random.Generator, draws: int) -> FamilyDraws:
        """Independent exact draws of the parameters, in float64 and without rounding to a boundary.

        The unconstrained parameters stay finite for every eta; those on the scale
        people read are functions of them.
        """

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        drawn = self.draw(self.prior_eta, generator, draws)
        return {name: drawn[name] for name in self.parameter_shapes}

    @abstractmethod
    def mean_statistic(self, draws: FamilyDraws) -> Array:
        """The mean of S(x) at each draw, one row per draw.

        Only those leading coordinates of S whose posterior mean is eta[:d] / eta[d'],
        with eta[d'] the one that counts records.
        """

    # --- what noise is added to ---------------------------------------------------

    def measured(self, records: Records) -> Array:
        """What `PerturbedStatistics` sums and perturbs: S(x), or a redundant form of it."""
        return self.statistic(records)

    @property
    def measured_range(self) -> tuple[Array, Array]:
        """The smallest and largest value of each measured coordinate."""
        return self.statistic_range

    @property
    def movable(self) -> int:
        """How many measured coordinates the substitution of one record can change."""
        return 1

    def project(self, measured: Array, size: int) -> Array:
        """The admissible sum of S(x) near a perturbed measurement of it."""
        low, high = self.measured_range
        return np.clip(measured, size * low, size * high)

    # --- what one draw costs -----------------------------------------------------

    @abstractmethod
    def guarantee(self, size: int, *, weight: float = 1.0, concentration: float = 1.0) -> Guarantee:
        """The price of one draw from the posterior of `size` records, under substitution."""


def log_gamma_draws(shape: ArrayLike, generator: np.random.Generator, size: int | tuple[int, ...]) -> Array:
    """Logarithms of Gamma(shape) draws, exact and finite for every positive shape.

    Gamma(a) is Gamma(a + 1) U^(1/a) with U uniform, so its logarithm is a sum that
    neither overflows nor rounds to minus infinity.
    """
    a = np.asarray(shape, dtype=np.float64)
    one_more = np.log(generator.standard_gamma(a + 1, size))
    return np.asarray(one_more - generator.standard_exponential(size) / a, dtype=np.float64)


def clip_or_refuse(field: str, values: Array, low: float, high: float, *, clip: bool) -> Array:
    """Values inside [low, high]; a refusal names the field and how many records were at fault."""
    outside = int(np.count_nonzero((values < low) | (values > high)))
    if outside and not clip:
        raise ValueError(
            f"field {field} must lie between {low:g} and {high:g}, got others in {outside} records; "
            "declare wider public bounds, or choose out_of_range='clip'"
        )
    return np.clip(values, low, high)


def check_limits(limits: tuple[float, float]) -> tuple[float, float]:
    """Two increasing public numbers."""
    low = checks.real("low limit", limits[0])
    return low, checks.real("high limit", limits[1], above=low)
