"""Networks with one hidden layer, for a number or a yes as outcome (paper B, Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.linear import InverseGamma
from discreet.models.outcomes import binary, gaussian_draws, gaussian_prior, normal_outcome, probability
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class _OneHiddenLayer(Model):
    """What both outcomes share: layers, prior, output."""

    features: int
    hidden: int = 10
    prior_precision: float = 1.0

    def __post_init__(self) -> None:
        checks.integer("features", self.features, at_least=1)
        checks.integer("hidden", self.hidden, at_least=1)
        checks.real("prior_precision", self.prior_precision, above=0.0)

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": (self.features,), "y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        h = self.hidden
        return {"w1": (self.features, h), "b1": (h,), "w2": (h,), "b2": ()}

    def log_prior(self, theta: Theta) -> jax.Array:
        layers = (theta[name] for name in ("w1", "b1", "w2", "b2"))
        return -0.5 * self.prior_precision * sum((layer**2).sum() for layer in layers)  # pyright: ignore[reportReturnType]

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        layers = {name: s for name, s in self.parameter_shapes.items() if name != "log_excess_variance"}
        return gaussian_draws(layers, self.prior_precision, generator, draws)

    def output(self, theta: Theta, x: jax.Array) -> jax.Array:
        """The network's output for one row."""
        import jax.numpy as jnp

        return jnp.tanh(x @ theta["w1"] + theta["b1"]) @ theta["w2"] + theta["b2"]


@dataclass(frozen=True)
class NeuralClassification(_OneHiddenLayer):
    """P(y = 1 | x) = 1 / (1 + exp(-g(x))), g a network with one hidden tanh layer, weights ~ N(0, 1).

    Records are {"x": features, "y": 0 or 1}; features need no bound.

    Args:
        features: length of x.
        hidden: hidden units.
        prior_precision: of each weight and bias.

    Guarantee:
        Probabilities are at most 1, whatever the network.
    """

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        import jax

        return jax.nn.log_sigmoid((2 * record["y"] - 1) * self.output(theta, record["x"]))

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        import numpyro.distributions as dist

        return dist.BernoulliLogits(self.output(theta, record["x"]), validate_args=False)

    @property
    def bounds(self) -> dict[str, Bound]:
        return {**probability(), **gaussian_prior(self.prior_precision)}

    def admit(self, records: Records) -> Records:
        return binary(records)


@dataclass(frozen=True)
class NeuralRegression(_OneHiddenLayer):
    """y ~ N(g(x), sigma^2), g a network with one hidden tanh layer, sigma^2 ~ inverse gamma above a bound.

    Records are {"x": features, "y": a number}; neither needs a bound.

    Args:
        features: length of x.
        hidden: hidden units.
        prior_precision: of each weight and bias.
        lower_variance: public lower bound on sigma^2, which bounds the density.
        variance_shape: of the inverse gamma.
        variance_scale: of the inverse gamma.

    Guarantee:
        The density is at most 1 / sqrt(2 pi lower_variance), whatever the network.
    """

    lower_variance: float = 0.01
    variance_shape: float = 1.0
    variance_scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._noise

    @property
    def _noise(self) -> InverseGamma:
        return InverseGamma(self.lower_variance, self.variance_shape, self.variance_scale)

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {**super().parameter_shapes, "log_excess_variance": ()}

    @property
    def typical_density(self) -> float:
        """exp(-entropy) of a normal at the prior's median variance."""
        return self._noise.typical_density

    def log_prior(self, theta: Theta) -> jax.Array:
        return super().log_prior(theta) + self._noise.log_density(theta["log_excess_variance"])

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return self.observation(theta, record).log_prob(record["y"])

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        import jax.numpy as jnp
        import numpyro.distributions as dist

        sd = jnp.sqrt(self._noise.variance(theta["log_excess_variance"]))
        return dist.Normal(self.output(theta, record["x"]), sd, validate_args=False)

    def constrain(self, theta: Theta) -> Theta:
        layers = {name: value for name, value in theta.items() if name != "log_excess_variance"}
        return {**layers, "variance": self._noise.variance(theta["log_excess_variance"])}

    def unconstrain(self, values: Mapping[str, jax.Array]) -> Theta:
        layers = {name: values[name] for name in ("w1", "b1", "w2", "b2")}
        return {**layers, "log_excess_variance": self._noise.unconstrained(values)}

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        return {
            **super().draw_prior(generator, draws),
            "log_excess_variance": self._noise.draw(generator, draws),
        }

    @property
    def bounds(self) -> dict[str, Bound]:
        return normal_outcome(self.lower_variance)
