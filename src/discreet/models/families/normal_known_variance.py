"""A bounded number with a normal mean of known variance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import privacy
from discreet.models.base import Records, Theta
from discreet.models.families.base import (
    Array,
    ConjugateFamily,
    FamilyDraws,
    check_limits,
    clip_or_refuse,
)
from discreet.models.logistic import OutOfRange
from discreet.privacy import Guarantee, checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class NormalKnownVariance(ConjugateFamily):
    """x ~ N(mean, variance) with mean ~ N(m, v); records inside declared limits.

    Records are {"x": number}. A normal has no limits, so privacy comes from the
    declared ones, enforced before use. Natural parameters: eta = (variance m / v,
    variance / v) over variance and 1; theta is the mean, S(x) = x / variance,
    A = theta^2 / (2 variance).

    Args:
        prior: (m, v), mean and variance of the mean.
        variance: of one record, known.
        limits: public smallest and largest record, enforced.
        out_of_range: "clip" moves a record to the nearest limit; "refuse" stops.

    Guarantee:
        Neighbouring posteriors have one variance: exactly Gaussian differential privacy
        (docs/proofs/conjugate_families.md#normal-known-variance).

    Example:
        >>> model = NormalKnownVariance(prior=(0, 1), variance=1, limits=(-1, 1))
        >>> f"{model.guarantee(100).epsilon(1e-6):.3f}"
        '0.830'
    """

    prior: tuple[float, float]
    variance: float
    limits: tuple[float, float]
    out_of_range: OutOfRange = OutOfRange.CLIP

    def __post_init__(self) -> None:
        m, v = self.prior
        prior = checks.real("prior mean", m), checks.real("prior variance", v, above=0.0)
        object.__setattr__(self, "prior", prior)
        checks.real("variance", self.variance, above=0.0)
        object.__setattr__(self, "limits", check_limits(self.limits))
        object.__setattr__(self, "out_of_range", OutOfRange(self.out_of_range))

    # --- densities ---------------------------------------------------------------

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"mean": ()}

    def log_prior(self, theta: Theta) -> jax.Array:
        m, v = self.prior
        return -0.5 * (theta["mean"] - m) ** 2 / v

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        square = (record["x"] - theta["mean"]) ** 2 / self.variance
        return -0.5 * (square + math.log(2 * math.pi * self.variance))

    def admit(self, records: Records) -> Records:
        clip = self.out_of_range is OutOfRange.CLIP
        return {"x": clip_or_refuse("x", records["x"], *self.limits, clip=clip)}

    # --- the family --------------------------------------------------------------

    @property
    def prior_eta(self) -> Array:
        m, v = self.prior
        return np.array([m / v, self.variance / v])

    def with_prior(self, eta: Array) -> Self:
        v = self.variance / float(eta[1])
        return type(self)((float(eta[0]) * v, v), self.variance, self.limits, self.out_of_range)

    def statistic(self, records: Records) -> Array:
        return records["x"][:, None] / self.variance

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        low, high = self.limits
        return np.array([low / self.variance]), np.array([high / self.variance])

    @property
    def difference_vertices(self) -> Array:
        low, high = self.statistic_range
        return np.array([low - high, high - low])

    def contains(self, eta: Array) -> bool:
        return bool(eta[1] > 0)

    def log_normaliser(self, eta: Array) -> float:
        if not self.contains(eta):
            return np.inf
        v = self.variance / eta[1]
        return float(eta[0] ** 2 * v / 2 + 0.5 * np.log(2 * np.pi * v))

    def gradient(self, eta: Array) -> Array:
        m, v = eta[0] * self.variance / eta[1], self.variance / eta[1]
        return np.array([m, -(m**2 + v) / (2 * self.variance)])

    def hessian(self, eta: Array) -> Array:
        m, v = eta[0] * self.variance / eta[1], self.variance / eta[1]
        off, last = -m * v / self.variance, (2 * m**2 * v + v**2) / (2 * self.variance**2)
        return np.array([[v, off], [off, last]])

    def sufficient(self, draws: FamilyDraws) -> Array:
        t = draws["mean"]
        return np.stack([t, -(t**2) / (2 * self.variance)], axis=1)

    def draw(self, eta: Array, generator: np.random.Generator, draws: int) -> FamilyDraws:
        v = self.variance / eta[1]
        return {"mean": eta[0] * v + np.sqrt(v) * generator.standard_normal(draws)}

    def mean_statistic(self, draws: FamilyDraws) -> Array:
        return draws["mean"][:, None] / self.variance

    def guarantee(self, size: int, *, weight: float = 1.0, concentration: float = 1.0) -> Guarantee:
        low, high = self.limits
        precision = 1 / (self.prior[1] * concentration)
        return privacy.normal_mean(precision, self.variance, high - low, size, weight=weight)
