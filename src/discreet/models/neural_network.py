# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""A network of any layers with a prior on its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.network_outcomes import OUTCOMES, Categories, Outcome
from discreet.models.outcomes import gaussian_prior
from discreet.models.priors import PRIORS, GaussianPrior, Prior
from discreet.neural.layers import LAYERS, Dense, Layer, VariationalDense
from discreet.neural.network import Network
from discreet.neural.smooth import softplus
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax

SEED = "seed"
"""The pseudo-parameter of a `seeded` network: four numbers below 2^16."""

_RHO = "_rho"


@dataclass(frozen=True)
class NeuralNetwork(Model):
    """y | x with a network's output as its parameter, and the same prior on every weight.

    Records are {"x": features or an image, "y": a number}; features need no bound.

    Args:
        inputs: the shape of one example, or its length.
        layers: of `discreet.neural`, in order.
        outcome: what y is; a category by default.
        prior: of every weight, bias, scale and shift.
        seeded: whether a draw of the parameters carries the seed of what is random in
            the layers, as `seed`: so that a draw of a network with dropout, or with
            variational layers, is one function. Zeros switch it off.

    Guarantee:
        A category's probability is at most 1, and a number's density at most that of its
        smallest standard deviation, whatever the network.

    Example:
        >>> from discreet.neural import Dense, Relu
        >>> model = NeuralNetwork(4, (Dense(8), Relu(), Dense(3)))
        >>> model.parameter_shapes["dense_0_weight"], model.bounds["density"].value
        ((4, 8), 1.0)
    """

    inputs: int | tuple[int, ...]
    layers: tuple[Layer, ...]
    outcome: Outcome = Categories()  # noqa: RUF009  # frozen
    prior: Prior = GaussianPrior()  # noqa: RUF009  # frozen
    seeded: bool = False

    def __post_init__(self) -> None:
        shape = (self.inputs,) if isinstance(self.inputs, int) else tuple(self.inputs)
        for size in shape:
            checks.integer("inputs", size, at_least=1)
        # What was saved as plain values is read back as such.
        object.__setattr__(self, "inputs", shape)
        object.__setattr__(self, "layers", tuple(_read(layer, LAYERS) for layer in self.layers))
        object.__setattr__(self, "outcome", _read(self.outcome, OUTCOMES))
        object.__setattr__(self, "prior", _read(self.prior, PRIORS))
        width = self.outcome.width
        found = self.network.outputs
        if len(found) != 1 or (width is not None and found != (width,)):
            wanted = "one axis" if width is None else f"shape ({width},)"
            kind = type(self.outcome).__name__
            raise ValueError(
                f"the last layer must have an output of {wanted} for {kind}, got {found}; "
                "end with a Dense layer"
            )
        if self.seeded and not self.network.stochastic:
            raise ValueError("seeded needs a layer with noise of its own, got none; leave seeded out")

    @cached_property
    def network(self) -> Network:
        """The layers, joined."""
        return Network(cast("tuple[int, ...]", self.inputs), self.layers)

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": cast("tuple[int, ...]", self.inputs), "y": ()}

    @property
    def trained_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters that have a gradient."""
        return self.network.parameter_shapes

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {**self.trained_shapes, SEED: (4,)} if self.seeded else self.trained_shapes

    def log_prior(self, theta: Theta) -> jax.Array:
        """That of the weights; for weights that have a distribution, minus its divergence from the prior."""
        import jax.numpy as jnp

        total: Any = jnp.zeros(())
        for name in self.trained_shapes:
            if name.endswith(_RHO):
                mean, sd = theta[name.removesuffix(_RHO)], softplus(theta[name])
                total = total - self.prior.divergence(mean, sd)
            elif name + _RHO not in self.trained_shapes:
                total = total + self.prior.log_density(theta[name])
        return total

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return self.outcome.log_density(self.output(theta, record["x"]), record["y"])

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        return self.outcome.distribution(self.output(theta, record["x"]))

    def output(self, theta: Theta, x: jax.Array) -> jax.Array:
        """The network's output for one example."""
        from jax import lax

        if not self.seeded:
            return self.network.apply(theta, x)
        seed = theta[SEED]
        return lax.cond(
            (seed == 0).all(),
            lambda: self.network.apply(theta, x),
            lambda: self.network.apply(theta, x, key_of(seed)).astype(x.dtype),
        )

    def losses(self, outputs: Any, y: Any) -> jax.Array:
        """Minus the log density of each example of a batch."""
        import jax

        return -jax.vmap(self.outcome.log_density)(outputs, y)

    @property
    def bounds(self) -> dict[str, Bound]:
        precision = self.prior.precision
        variational = any(name.endswith(_RHO) for name in self.trained_shapes)
        found = self.outcome.bounds
        return found if precision is None or variational else {**found, **gaussian_prior(precision)}

    def admit(self, records: Records) -> Records:
        return self.outcome.admit(records, self.network.outputs[0])

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records | None:
        if self.seeded or any(name.endswith(_RHO) for name in self.trained_shapes):
            return None
        found = {
            name: self.prior.draw(generator, (draws, *shape)) for name, shape in self.trained_shapes.items()
        }
        return None if any(values is None for values in found.values()) else cast("Records", found)

    def variational(self, initial_sd: float) -> NeuralNetwork:
        """The same network with a normal for every weight of its dense layers.

        Args:
            initial_sd: where the standard deviations start.
        """
        layers = tuple(
            VariationalDense(layer.units, layer.bias, initial_sd) if type(layer) is Dense else layer
            for layer in self.layers
        )
        return replace(self, layers=layers, seeded=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": type(self).__name__,
            "inputs": list(cast("tuple[int, ...]", self.inputs)),
            "layers": [_plain(layer) for layer in self.layers],
            "outcome": _plain(self.outcome),
            "prior": _plain(self.prior),
            "seeded": self.seeded,
        }


def key_of(seed: Any) -> jax.Array:
    """The JAX key that four numbers below 2^16 stand for; they are exact in any float type."""
    import jax
    import jax.numpy as jnp

    parts = seed.astype(jnp.uint32)
    return jax.random.wrap_key_data(parts[::2] * 65536 + parts[1::2], impl="threefry2x32")


def _plain(part: Any) -> dict[str, Any]:
    return {"is": type(part).__name__, **asdict(part)}


def _read(part: Any, table: Mapping[str, type[Any]]) -> Any:
    """A part of a model, or what `_plain` made of it."""
    if not isinstance(part, Mapping):
        return part
    saved = cast("Mapping[str, Any]", part)
    kind = table.get(str(saved.get("is")))
    if kind is None:
        raise ValueError(
            f"a part of a network must be one of {', '.join(sorted(table))}, got {saved.get('is')!r}; "
            "register the class before reading"
        )
    names = {f.name for f in fields(kind)}
    return kind(**{name: _tuples(value) for name, value in saved.items() if name in names})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
