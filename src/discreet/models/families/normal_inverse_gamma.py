"""A bounded number with a normal mean and variance, both unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy import special

from discreet import privacy
from discreet.models.base import Records, Theta
from discreet.models.families.base import (
    Array,
    ConjugateFamily,
    FamilyDraws,
    check_limits,
    clip_or_refuse,
    log_gamma_draws,
)
from discreet.models.logistic import OutOfRange
from discreet.privacy import Guarantee, checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class NormalInverseGamma(ConjugateFamily):
    """x ~ N(mean, variance), both unknown; records inside declared limits.

    Prior: 1 / variance ~ Gamma(shape, rate) and mean ~ N(centre, variance / worth).
    Records are {"x": number}. With x, mean and centre counted from the middle of the
    limits, eta = (worth centre, worth centre^2 + 2 rate, worth, 2 shape) and
    S(x) = (x, x^2); a record adds (S(x), 1, 1).

    Args:
        prior: (centre, worth, shape, rate); the last three positive.
        limits: public smallest and largest record, enforced.
        out_of_range: "clip" moves a record to the nearest limit; "refuse" stops.

    Guarantee:
        A proved enclosure of the Renyi curve, not the exact supremum; with a fixed
        prior its cost grows with the number of records
        (docs/proofs/conjugate_families.md#normal-inverse-gamma).

    Example:
        >>> model = NormalInverseGamma(prior=(0, 1, 50, 50), limits=(-1, 1))
        >>> f"{model.guarantee(100, weight=0.1).epsilon(1e-6):.3f}"
        '0.330'
    """

    prior: tuple[float, float, float, float]
    limits: tuple[float, float]
    out_of_range: OutOfRange = OutOfRange.CLIP

    def __post_init__(self) -> None:
        centre, *others = self.prior
        checked = [checks.real("centre", centre)]
        checked += [
            checks.real(name, value, above=0.0)
            for name, value in zip(("worth", "shape", "rate"), others, strict=True)
        ]
        object.__setattr__(self, "prior", tuple(checked))
        object.__setattr__(self, "limits", check_limits(self.limits))
        object.__setattr__(self, "out_of_range", OutOfRange(self.out_of_range))

    # --- densities ---------------------------------------------------------------

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"mean": (), "log_variance": ()}

    def log_prior(self, theta: Theta) -> jax.Array:
        import jax.numpy as jnp

        (centre, worth, shape, rate), u = self.prior, theta["log_variance"]
        square = worth * (theta["mean"] - centre) ** 2 / 2
        return -(shape + 0.5) * u - (rate + square) * jnp.exp(-u)

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        import jax.numpy as jnp

        u = theta["log_variance"]
        return -0.5 * ((record["x"] - theta["mean"]) ** 2 * jnp.exp(-u) + u + math.log(2 * math.pi))

    def constrain(self, theta: Theta) -> Theta:
        import jax.numpy as jnp

        return {"mean": theta["mean"], "variance": jnp.exp(theta["log_variance"])}

    def admit(self, records: Records) -> Records:
        clip = self.out_of_range is OutOfRange.CLIP
        return {"x": clip_or_refuse("x", records["x"], *self.limits, clip=clip)}

    # --- the family --------------------------------------------------------------

    @property
    def middle(self) -> float:
        """The middle of the limits, from which everything is counted: no large squares cancel."""
        return (self.limits[0] + self.limits[1]) / 2

    @property
    def prior_eta(self) -> Array:
        centre, worth, shape, rate = self.prior
        centre -= self.middle
        return np.array([worth * centre, worth * centre**2 + 2 * rate, worth, 2 * shape])

    def with_prior(self, eta: Array) -> Self:
        centre, worth, shape, rate = _textbook(eta)
        return type(self)((centre + self.middle, worth, shape, rate), self.limits, self.out_of_range)

    def statistic(self, records: Records) -> Array:
        x = records["x"] - self.middle
        return np.stack([x, x**2], axis=1)

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        half = self.limits[1] - self.middle
        return np.array([-half, 0.0]), np.array([half, half**2])

    @property
    def movable(self) -> int:
        return 2

    def project(self, measured: Array, size: int) -> Array:
        total, squares = super().project(measured, size)
        return np.array([total, max(squares, total**2 / size)])

    @property
    def difference_vertices(self) -> Array:
        low, high = self.statistic_range
        return np.array([[i, j] for i in (-1, 1) for j in (-1, 1)]) * (high - low)

    def contains(self, eta: Array) -> bool:
        return bool(eta[2] > 0 and eta[3] > 0 and eta[1] * eta[2] > eta[0] ** 2)

    def log_normaliser(self, eta: Array) -> float:
        if not self.contains(eta):
            return np.inf
        _, worth, shape, rate = _textbook(eta)
        spread = 0.5 * math.log(2 * math.pi / worth)
        return float(special.gammaln(shape) - shape * math.log(rate) + spread)

    def gradient(self, eta: Array) -> Array:
        centre, worth, shape, rate = _textbook(eta)
        precision = shape / rate
        return np.array(
            [
                centre * precision,
                -precision / 2,
                -(centre**2 * precision + 1 / worth) / 2,
                (special.digamma(shape) - math.log(rate)) / 2,
            ]
        )

    def hessian(self, eta: Array) -> Array:
        m, k, a, b = _textbook(eta)
        t, spread = a / b, a / b**2  # mean and variance of the precision
        # Covariances of (m t + z sqrt(t / k), -t / 2, -(mean^2 t) / 2, log(t) / 2), z standard normal.
        first = m**2 * spread + t / k
        square = (m**4 * spread + 4 * m**2 * t / k + 2 / k**2) / 4
        cross = -(m**3 * spread + 2 * m * t / k) / 2
        return np.array(
            [
                [first, -m * spread / 2, cross, m / (2 * b)],
                [-m * spread / 2, spread / 4, m**2 * spread / 4, -1 / (4 * b)],
                [cross, m**2 * spread / 4, square, -(m**2) / (4 * b)],
                [m / (2 * b), -1 / (4 * b), -(m**2) / (4 * b), special.polygamma(1, a) / 4],
            ],
            dtype=np.float64,
        )

    def sufficient(self, draws: FamilyDraws) -> Array:
        mean, u = draws["mean"] - self.middle, draws["log_variance"]
        precision = np.exp(-u)
        return np.stack([mean * precision, -precision / 2, -(mean**2) * precision / 2, -u / 2], axis=1)

    def draw(self, eta: Array, generator: np.random.Generator, draws: int) -> FamilyDraws:
        centre, worth, shape, rate = _textbook(eta)
        u = math.log(rate) - log_gamma_draws(shape, generator, draws)
        with np.errstate(over="ignore"):
            mean = self.middle + centre + np.exp((u - math.log(worth)) / 2) * generator.standard_normal(draws)
            return {"mean": mean, "variance": np.exp(u), "log_variance": u}

    def mean_statistic(self, draws: FamilyDraws) -> Array:
        return (draws["mean"] - self.middle)[:, None]

    def guarantee(self, size: int, *, weight: float = 1.0, concentration: float = 1.0) -> Guarantee:
        centre = self.prior[0]
        worth, shape, rate = (value / concentration for value in self.prior[1:])
        low, high = self.limits
        return privacy.normal_inverse_gamma(
            worth, shape, rate, (low - centre, high - centre), size, weight=weight
        )


def _textbook(eta: Array) -> tuple[float, float, float, float]:
    """Centre, counted from the middle, worth, shape and rate of natural parameters."""
    first, second, worth, twice = (float(value) for value in eta)
    return first / worth, worth, twice / 2, (second - first**2 / worth) / 2
