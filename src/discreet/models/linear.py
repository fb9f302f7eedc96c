"""Linear regression with unknown variance, bounded below."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.outcomes import normal_outcome
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class InverseGamma:
    """sigma^2 ~ inverse gamma(shape, scale) restricted to sigma^2 >= lower.

    The unconstrained parameter is u = log(sigma^2 - lower).
    """

    lower: float = 0.01
    shape: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        checks.real("lower_variance", self.lower, above=0.0)
        checks.real("variance_shape", self.shape, above=0.0)
        checks.real("variance_scale", self.scale, above=0.0)

    def variance(self, u: jax.Array) -> jax.Array:
        """sigma^2 from u."""
        import jax.numpy as jnp

        return self.lower + jnp.exp(u)

    def log_density(self, u: jax.Array) -> jax.Array:
        """Log prior of u, up to a constant."""
        import jax.numpy as jnp

        variance = self.variance(u)
        return -(self.shape + 1) * jnp.log(variance) - self.scale / variance + u

    def unconstrained(self, values: Mapping[str, jax.Array]) -> jax.Array:
        """The parameter u from what a release holds, sigma^2 or u itself."""
        import jax.numpy as jnp

        if "variance" not in values:
            return values["log_excess_variance"]
        return jnp.log(values["variance"] - self.lower)

    def draw(self, generator: np.random.Generator, draws: int) -> np.ndarray:
        """Independent draws of u, by inversion."""
        from scipy.stats import invgamma

        below = invgamma.cdf(self.lower, self.shape, scale=self.scale)
        level = below + (1 - below) * generator.random(draws)
        variance = invgamma.ppf(level, self.shape, scale=self.scale)
        return np.log(np.maximum(variance - self.lower, np.finfo(float).tiny))

    @property
    def typical_density(self) -> float:
        """exp(-entropy) of a normal at the prior's median variance."""
        from scipy.stats import invgamma

        above = invgamma.sf(self.lower, self.shape, scale=self.scale)
        median = float(invgamma.isf(above / 2, self.shape, scale=self.scale))
        return 1 / math.sqrt(2 * math.pi * math.e * median)


@dataclass(frozen=True)
class LinearRegression(Model):
    """y ~ N(x . w, sigma^2), w ~ N(0, coefficient_variance sigma^2 I), sigma^2 ~ inverse gamma above a bound.

    Records are {"x": features, "y": a number}; neither needs a bound. The defaults
    are paper B's (Appendix B).

    Args:
        features: length of x.
        coefficient_variance: prior variance of a coefficient in units of sigma^2.
        lower_variance: public lower bound on sigma^2, which bounds the density.
        variance_shape: of the inverse gamma.
        variance_scale: of the inverse gamma.

    Guarantee:
        The density is at most 1 / sqrt(2 pi lower_variance).
    """

    features: int
    coefficient_variance: float = 9.0
    lower_variance: float = 0.01
    variance_shape: float = 1.0
    variance_scale: float = 1.0

    def __post_init__(self) -> None:
        checks.integer("features", self.features, at_least=1)
        checks.real("coefficient_variance", self.coefficient_variance, above=0.0)
        _ = self._noise

    @property
    def _noise(self) -> InverseGamma:
        return InverseGamma(self.lower_variance, self.variance_shape, self.variance_scale)

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": (self.features,), "y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"w": (self.features,), "log_excess_variance": ()}

    @property
    def typical_density(self) -> float:
        """exp(-entropy) of a normal at the prior's median variance."""
        return self._noise.typical_density

    def log_prior(self, theta: Theta) -> jax.Array:
        import jax.numpy as jnp

        u = theta["log_excess_variance"]
        variance = self.coefficient_variance * self._noise.variance(u)
        squares = (theta["w"] ** 2).sum() / variance
        return self._noise.log_density(u) - 0.5 * (squares + self.features * jnp.log(variance))

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return self.observation(theta, record).log_prob(record["y"])

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        import jax.numpy as jnp
        import numpyro.distributions as dist

        sd = jnp.sqrt(self._noise.variance(theta["log_excess_variance"]))
        return dist.Normal(record["x"] @ theta["w"], sd, validate_args=False)

    def constrain(self, theta: Theta) -> Theta:
        return {"w": theta["w"], "variance": self._noise.variance(theta["log_excess_variance"])}

    def unconstrain(self, values: Mapping[str, jax.Array]) -> Theta:
        return {"w": values["w"], "log_excess_variance": self._noise.unconstrained(values)}

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        u = self._noise.draw(generator, draws)
        spread = np.sqrt(self.coefficient_variance * (self.lower_variance + np.exp(u)))
        w = spread[:, None] * generator.standard_normal((draws, self.features))
        return {"w": w, "log_excess_variance": u}

    @property
    def bounds(self) -> dict[str, Bound]:
        return normal_outcome(self.lower_variance)
