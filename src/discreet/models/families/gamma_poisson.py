"""Bounded counts with a gamma prior."""

from __future__ import annotations

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
    clip_or_refuse,
    log_gamma_draws,
)
from discreet.models.logistic import OutOfRange
from discreet.privacy import Guarantee, checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class GammaPoisson(ConjugateFamily):
    """x ~ Poisson(rate), with rate ~ Gamma(shape, rate_of_prior); counts up to a declared largest.

    Records are {"x": count}. Poisson counts have no bound, so privacy comes from the
    declared `largest`, enforced before use; a clipped count enters as the largest.
    Natural parameters: eta = (shape, rate_of_prior), theta the log rate, A = e^theta.

    Args:
        prior: (shape, rate), both positive; the prior mean of the rate is shape / rate.
        largest: the public largest count, enforced.
        out_of_range: "clip" lowers a larger count to the largest; "refuse" stops.

    Guarantee:
        The supremum over all neighbours is exact: docs/proofs/conjugate_families.md#gamma.

    Example:
        >>> f"{GammaPoisson(prior=(20, 4), largest=5).guarantee(100, weight=0.2).epsilon(1e-6):.3f}"
        '1.128'
    """

    prior: tuple[float, float]
    largest: int
    out_of_range: OutOfRange = OutOfRange.CLIP

    def __post_init__(self) -> None:
        a, b = self.prior
        checked = checks.real("shape", a, above=0.0), checks.real("rate", b, above=0.0)
        object.__setattr__(self, "prior", checked)
        checks.integer("largest", self.largest, at_least=1)
        object.__setattr__(self, "out_of_range", OutOfRange(self.out_of_range))

    # --- densities ---------------------------------------------------------------

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"log_rate": ()}

    def log_prior(self, theta: Theta) -> jax.Array:
        import jax.numpy as jnp

        (a, b), t = self.prior, theta["log_rate"]
        return a * t - b * jnp.exp(t)

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        import jax

        t, x = theta["log_rate"], record["x"]
        return x * t - jax.numpy.exp(t) - jax.scipy.special.gammaln(x + 1)

    def constrain(self, theta: Theta) -> Theta:
        import jax.numpy as jnp

        return {"rate": jnp.exp(theta["log_rate"])}

    def admit(self, records: Records) -> Records:
        x = records["x"]
        odd = int(np.count_nonzero((x != np.floor(x)) | (x < 0)))
        if odd:
            raise ValueError(f"field x must be a whole number from 0, got others in {odd} records; recode it")
        clip = self.out_of_range is OutOfRange.CLIP
        return {"x": clip_or_refuse("x", x, 0, self.largest, clip=clip)}

    # --- the family --------------------------------------------------------------

    @property
    def prior_eta(self) -> Array:
        return np.array(self.prior)

    def with_prior(self, eta: Array) -> Self:
        return type(self)((float(eta[0]), float(eta[1])), self.largest, self.out_of_range)

    def statistic(self, records: Records) -> Array:
        return records["x"][:, None]

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        return np.array([0.0]), np.array([float(self.largest)])

    @property
    def difference_vertices(self) -> Array:
        return np.array([[-float(self.largest)], [float(self.largest)]])

    def contains(self, eta: Array) -> bool:
        return bool(np.all(eta > 0))

    def log_normaliser(self, eta: Array) -> float:
        return float(special.gammaln(eta[0]) - eta[0] * np.log(eta[1])) if self.contains(eta) else np.inf

    def gradient(self, eta: Array) -> Array:
        return np.array([special.digamma(eta[0]) - np.log(eta[1]), -eta[0] / eta[1]])

    def hessian(self, eta: Array) -> Array:
        a, b = eta
        return np.array([[special.polygamma(1, a), -1 / b], [-1 / b, a / b**2]], dtype=np.float64)

    def sufficient(self, draws: FamilyDraws) -> Array:
        return np.stack([draws["log_rate"], -np.exp(draws["log_rate"])], axis=1)

    def draw(self, eta: Array, generator: np.random.Generator, draws: int) -> FamilyDraws:
        logs = log_gamma_draws(eta[0], generator, draws) - np.log(eta[1])
        with np.errstate(over="ignore"):
            return {"rate": np.exp(logs), "log_rate": logs}

    def mean_statistic(self, draws: FamilyDraws) -> Array:
        return draws["rate"][:, None]

    def guarantee(self, size: int, *, weight: float = 1.0, concentration: float = 1.0) -> Guarantee:  # noqa: ARG002 (the rate cancels)
        return privacy.gamma_poisson(self.prior[0] / concentration, self.largest, weight=weight)
