"""Probit regression with a Gaussian prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.outcomes import binary, gaussian_draws, gaussian_prior, probability
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class ProbitRegression(Model):
    """P(y = 1 | x) = Phi(x . w) with w ~ N(0, I / prior_precision).

    Records are {"x": features, "y": 0 or 1}; features need no bound.

    Args:
        features: length of x.
        prior_precision: of each coefficient.

    Guarantee:
        Probabilities are at most 1. The log density has no Lipschitz constant (its
        score phi/Phi is unbounded, ERRATA 6), so only losses that bound the range
        apply: the beta-divergence, or a clipped log-likelihood.
    """

    features: int
    prior_precision: float = 1.0

    def __post_init__(self) -> None:
        checks.integer("features", self.features, at_least=1)
        checks.real("prior_precision", self.prior_precision, above=0.0)

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": (self.features,), "y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"w": (self.features,)}

    def log_prior(self, theta: Theta) -> jax.Array:
        return -0.5 * self.prior_precision * (theta["w"] ** 2).sum()

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        return gaussian_draws(self.parameter_shapes, self.prior_precision, generator, draws)

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        from jax.scipy.special import log_ndtr

        return log_ndtr((2 * record["y"] - 1) * (record["x"] @ theta["w"]))

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        import numpyro.distributions as dist
        from jax.scipy.special import log_ndtr

        z = record["x"] @ theta["w"]
        return dist.BernoulliLogits(log_ndtr(z) - log_ndtr(-z), validate_args=False)

    @property
    def bounds(self) -> dict[str, Bound]:
        return {**probability(), **gaussian_prior(self.prior_precision)}

    def admit(self, records: Records) -> Records:
        return binary(records)
