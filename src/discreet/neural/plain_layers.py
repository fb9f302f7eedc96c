# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Layers without parameters: activations, pooling, shapes, dropout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.neural.layers import Layer, Params, Shape, each, windows
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax

    from discreet.neural.sources import Source


@dataclass(frozen=True)
class Dropout(Layer):
    """Every number of an example is zeroed with this probability, and the others grow to make up for it.

    Args:
        rate: the probability.
    """

    rate: float = 0.5

    def __post_init__(self) -> None:
        checks.real("rate", self.rate, at_least=0.0, below=1.0)

    def output_shape(self, inputs: Shape) -> Shape:
        return inputs

    def noise(self, source: Source, batch: int, inputs: Shape) -> Any:
        return source.coins(1 - self.rate, (batch, *inputs))

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        import jax.numpy as jnp

        del parameters
        return x if noise is None else jnp.where(noise, x / (1 - self.rate), 0.0)


@dataclass(frozen=True)
class _Elementwise(Layer):
    """The same function of every number."""

    def output_shape(self, inputs: Shape) -> Shape:
        return inputs


@dataclass(frozen=True)
class Relu(_Elementwise):
    """max(x, 0)."""

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        import jax.numpy as jnp

        del parameters, noise
        return jnp.maximum(x, 0.0)


@dataclass(frozen=True)
class Tanh(_Elementwise):
    """tanh(x); bounded activations suit clipped gradients (Papernot et al. 2021)."""

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        import jax.numpy as jnp

        del parameters, noise
        return jnp.tanh(x)


@dataclass(frozen=True)
class Gelu(_Elementwise):
    """x Phi(x)."""

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        import jax

        del parameters, noise
        return jax.nn.gelu(x, approximate=False)


@dataclass(frozen=True)
class Flatten(Layer):
    """All axes into one."""

    def output_shape(self, inputs: Shape) -> Shape:
        return (math.prod(inputs),)

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        del parameters, noise
        return x.reshape(-1)


@dataclass(frozen=True)
class Reshape(Layer):
    """The same numbers in another shape.

    Args:
        shape: of an example.
    """

    shape: tuple[int, ...]

    def output_shape(self, inputs: Shape) -> Shape:
        if math.prod(inputs) != math.prod(self.shape):
            raise ValueError(
                f"shape must hold the {math.prod(inputs)} numbers of {inputs}, got {self.shape}; correct it"
            )
        return self.shape

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        del parameters, noise
        return x.reshape(self.shape)


@dataclass(frozen=True)
class _Pool(Layer):
    """A summary of every window.

    Args:
        window: its length along each spatial axis.
        stride: along each spatial axis, or one number for all; None is the window.
    """

    window: tuple[int, ...]
    stride: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for size in self.window:
            checks.integer("window", size, at_least=1)

    @property
    def strides(self) -> tuple[int, ...]:
        """One for each spatial axis."""
        return self.window if self.stride is None else each(self.stride, len(self.window), "stride")

    def output_shape(self, inputs: Shape) -> Shape:
        if len(inputs) != len(self.window) + 1:
            raise ValueError(
                f"pooling over windows {self.window} takes examples of {len(self.window)} spatial axes and "
                f"channels, got shape {inputs}; reshape the records, channels last"
            )
        return (*windows(inputs[:-1], self.window, self.strides, (0,) * len(self.window)), inputs[-1])


@dataclass(frozen=True)
class MaxPool(_Pool):
    """The largest number of every window of a channel."""

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        import jax.numpy as jnp
        from jax import lax

        del parameters, noise
        return lax.reduce_window(x, -jnp.inf, lax.max, (*self.window, 1), (*self.strides, 1), "VALID")


@dataclass(frozen=True)
class AveragePool(_Pool):
    """The mean of every window of a channel."""

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        from jax import lax

        del parameters, noise
        total = lax.reduce_window(x, 0.0, lax.add, (*self.window, 1), (*self.strides, 1), "VALID")
        return total / math.prod(self.window)
