"""Poisson regression with a Gaussian prior."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.outcomes import counts, gaussian_draws, gaussian_prior, probability
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class PoissonRegression(Model):
    """y ~ Poisson(exp(x . w)), the log rate kept within +-log_rate_limit, w ~ N(0, I / prior_precision).

    Records are {"x": features, "y": a count}; neither needs a bound.

    Args:
        features: length of x.
        prior_precision: of each coefficient.
        log_rate_limit: a public part of the model.
        typical_rate: public, for the choice of beta and weight only.

    Guarantee:
        Probabilities are at most 1. The log density is not Lipschitz.
    """

    features: int
    prior_precision: float = 1.0
    log_rate_limit: float = 15.0
    typical_rate: float = 1.0

    def __post_init__(self) -> None:
        checks.integer("features", self.features, at_least=1)
        checks.real("prior_precision", self.prior_precision, above=0.0)
        checks.real("log_rate_limit", self.log_rate_limit, above=0.0, at_most=30.0)
        checks.real("typical_rate", self.typical_rate, above=0.0)

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": (self.features,), "y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"w": (self.features,)}

    @property
    def typical_density(self) -> float:
        """exp(-entropy) of the count at the typical rate, by the normal formula with variance + 1/12."""
        return 1 / math.sqrt(2 * math.pi * math.e * (self.typical_rate + 1 / 12))

    def log_prior(self, theta: Theta) -> jax.Array:
        return -0.5 * self.prior_precision * (theta["w"] ** 2).sum()

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        return gaussian_draws(self.parameter_shapes, self.prior_precision, generator, draws)

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return self.observation(theta, record).log_prob(record["y"])

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        import jax.numpy as jnp
        import numpyro.distributions as dist

        log_rate = jnp.clip(record["x"] @ theta["w"], -self.log_rate_limit, self.log_rate_limit)
        return dist.Poisson(jnp.exp(log_rate), validate_args=False)

    @property
    def bounds(self) -> dict[str, Bound]:
        return {**probability(), **gaussian_prior(self.prior_precision)}

    def admit(self, records: Records) -> Records:
        return counts(records)
