# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""A chain of layers, and its clipped gradient sums by book-keeping.

Proof page: docs/proofs/private_gradients.md#book-keeping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.neural import sites
from discreet.neural.layers import Layer, Shape
from discreet.neural.sources import Keyed, Metered, Source, Wanted

if TYPE_CHECKING:
    import jax
    import numpy as np


class Placed(NamedTuple):
    """A layer where it stands in a network.

    Attributes:
        name: of its parameters, before an underscore.
        layer: what it does.
        inputs: the shape of an example that comes in.
    """

    name: str
    layer: Layer
    inputs: Shape

    def mine(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The layer's own parameters, under its own names for them."""
        return {
            short: parameters[f"{self.name}_{short}"] for short in self.layer.parameter_shapes(self.inputs)
        }

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The layer's values under the network's names."""
        return {f"{self.name}_{short}": value for short, value in values.items()}


@dataclass(frozen=True)
class Network:
    """Layers one after the other.

    Args:
        inputs: the shape of one example.
        layers: in order.
    """

    inputs: Shape
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        for layer in self.layers:
            if not isinstance(layer, Layer):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(
                    f"layers must be layers of discreet.neural, got {type(layer).__name__}; "
                    "for a module of Flax use discreet.models.FlaxNetwork"
                )
        _ = self.placed

    @cached_property
    def placed(self) -> tuple[Placed, ...]:
        """The layers with names and shapes; refuses layers that do not fit together."""
        shape, found = self.inputs, list[Placed]()
        for place, layer in enumerate(self.layers):
            kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(layer).__name__).lower()
            found.append(Placed(f"{kind}_{place}", layer, shape))
            shape = layer.output_shape(shape)
        return tuple(found)

    @property
    def outputs(self) -> Shape:
        """The shape of an example's output."""
        if not self.layers:
            return self.inputs
        last = self.placed[-1]
        return last.layer.output_shape(last.inputs)

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """The shape of each parameter, named layer by layer."""
        shapes: dict[str, Shape] = {}
        for at in self.placed:
            shapes |= at.named(at.layer.parameter_shapes(at.inputs))
        return shapes

    def initial(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        """First values of the parameters, drawn without data."""
        values: dict[str, np.ndarray] = {}
        for at in self.placed:
            values |= at.named(at.layer.initial(generator, at.inputs))
        return values

    @cached_property
    def stochastic(self) -> bool:
        """Whether a layer has noise of its own."""
        return any(type(layer).noise is not Layer.noise for layer in self.layers)

    def noise(self, source: Source, batch: int) -> dict[str, Any]:
        """What is random in the layers, by layer."""
        drawn = {at.name: at.layer.noise(source, batch, at.inputs) for at in self.placed}
        return {name: values for name, values in drawn.items() if values is not None}

    def wanted(self, batch: int) -> Wanted:
        """How much randomness the layers use for a batch."""
        import jax

        metered = Metered()
        jax.eval_shape(lambda: self.noise(metered, batch))
        return metered.wanted

    def apply(self, parameters: Mapping[str, Any], x: Any, key: Any = None) -> jax.Array:
        """The output for one example; without a key, layers do without their noise."""
        import jax

        drawn = self.noise(Keyed(key), 1) if key is not None and self.stochastic else {}
        for at in self.placed:
            e = drawn.get(at.name)
            if e is not None and not at.layer.shared_noise:
                e = jax.tree.map(lambda values: values[0], e)
            x = at.layer.apply(at.mine(parameters), x, e)
        return x

    def book(
        self,
        parameters: Mapping[str, Any],
        x: Any,
        loss: Callable[[Any], Any],
        noise: Mapping[str, Any] | None = None,
    ) -> Book:
        """One forward and one backward pass over a batch, and what they say of per-example gradients.

        Args:
            parameters: of the network.
            x: a batch.
            loss: losses of the examples from a batch of outputs, example by example.
            noise: of the layers, as `noise` draws it.
        """
        import jax
        import jax.numpy as jnp

        noise = noise or {}
        tape: list[tuple[Placed, Any, Any]] = []
        for at in self.placed:
            run = partial(_batched, at, at.mine(parameters), noise.get(at.name))
            inputs = x
            x, back = jax.vjp(run, x)
            tape.append((at, inputs, back))
        losses, back = jax.vjp(loss, x)
        (d,) = back(jnp.ones_like(losses))
        found: dict[Placed, sites.Site] = {}
        # Below the first layer with parameters, nobody asks for a gradient.
        first = next(
            (i for i, (at, _, _) in enumerate(tape) if at.layer.parameter_shapes(at.inputs)), len(tape)
        )
        for place in range(len(tape) - 1, first - 1, -1):
            at, inputs, back = tape[place]
            if at.layer.parameter_shapes(at.inputs):
                found[at] = sites.make(at.layer, at.mine(parameters), inputs, d, noise.get(at.name))
            if place > first:
                (d,) = back(d)
        return Book(found)


@dataclass(frozen=True)
class Book:
    """The per-example gradients of a batch, as their sites know them.

    Attributes:
        sites: one for each layer with parameters.
    """

    sites: Mapping[Placed, sites.Site]

    def squares(self) -> jax.Array:
        """The squared norm of each example's gradient in all parameters."""
        first, *rest = (s.squares() for s in self.sites.values())
        for more in rest:
            first = first + more
        return first

    def total(self, weights: Any) -> dict[str, jax.Array]:
        """The sum of the gradients, each times its weight."""
        found: dict[str, jax.Array] = {}
        for at, s in self.sites.items():
            found |= at.named(s.total(weights))
        return found

    def inner(self, left: Any, right: Any) -> jax.Array:
        """Inner products of the gradients of two lists of examples."""
        first, *rest = (s.inner(left, right) for s in self.sites.values())
        for more in rest:
            first = first + more
        return first


def _batched(at: Placed, parameters: Mapping[str, Any], noise: Any, x: Any) -> Any:
    """A layer on a batch: `vmap` of one example, which is what keeps records apart."""
    import jax

    axis = None if at.layer.shared_noise or noise is None else 0
    return jax.vmap(at.layer.apply, in_axes=(None, 0, axis))(parameters, x, noise)
