# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Layers of a network: each maps one example, so that none can see two records.

A batch is made by `vmap`. What a record's gradient is therefore never depends on
another record, which is what per-example clipping rests on; batch normalisation
cannot be written here, and says so.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.neural.smooth import softplus
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax
    import numpy as np

    from discreet.neural.sources import Source

Shape = tuple[int, ...]
Params = Mapping[str, Any]

LAYERS: dict[str, type[Layer]] = {}
"""Name of a layer -> its class, for networks that were saved."""


@dataclass(frozen=True)
class Layer(ABC):
    """A map of one example, with public settings."""

    shared_noise: ClassVar[bool] = False
    """Whether its noise is one draw for the whole batch, rather than one for each example."""

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        if not cls.__name__.startswith("_"):
            LAYERS[cls.__name__] = cls

    @abstractmethod
    def output_shape(self, inputs: Shape) -> Shape:
        """The shape of the output for an example of this shape; refuses what does not fit."""

    @abstractmethod
    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        """The output for one example.

        Args:
            parameters: by name, shaped as `parameter_shapes` says.
            x: one example.
            noise: what `noise` drew, or None for the layer without its noise.
        """

    def parameter_shapes(self, inputs: Shape) -> dict[str, Shape]:
        """The parameters, by name."""
        del inputs
        return {}

    def initial(self, generator: np.random.Generator, inputs: Shape) -> dict[str, np.ndarray]:
        """First values, drawn without data."""
        del generator, inputs
        return {}

    def noise(self, source: Source, batch: int, inputs: Shape) -> Any:
        """What is random in the layer, one for each example or for all; None if nothing is."""
        del source, batch, inputs


@dataclass(frozen=True)
class Dense(Layer):
    """y = x W + b, over the last axis.

    Args:
        units: length of the output's last axis.
        bias: whether b is there.
    """

    units: int
    bias: bool = True

    def __post_init__(self) -> None:
        checks.integer("units", self.units, at_least=1)

    def output_shape(self, inputs: Shape) -> Shape:
        if not inputs:
            raise ValueError(
                "a dense layer takes examples with an axis, got numbers; give them the shape (1,)"
            )
        return (*inputs[:-1], self.units)

    def parameter_shapes(self, inputs: Shape) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {"weight": (inputs[-1], self.units)}
        return {**shapes, "bias": (self.units,)} if self.bias else shapes

    def initial(self, generator: np.random.Generator, inputs: Shape) -> dict[str, np.ndarray]:
        return _he(self.parameter_shapes(inputs), inputs[-1], generator)

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        del noise
        y = x @ parameters["weight"]
        return y + parameters["bias"] if self.bias else y


@dataclass(frozen=True)
class VariationalDense(Layer):
    """y = x W + b with independent normals for W and b: mean mu, standard deviation softplus(rho).

    One draw of W and b serves the whole batch, so that a step has one forward pass
    and book-keeping applies (ERRATA S5). Without noise the means are used.

    Args:
        units: length of the output's last axis.
        bias: whether b is there.
        initial_sd: the first standard deviation of every weight.
    """

    shared_noise: ClassVar[bool] = True

    units: int
    bias: bool = True
    initial_sd: float = 0.05

    def __post_init__(self) -> None:
        checks.integer("units", self.units, at_least=1)
        checks.real("initial_sd", self.initial_sd, above=0.0)

    @property
    def mean(self) -> Dense:
        """The layer of the means."""
        return Dense(self.units, self.bias)

    def output_shape(self, inputs: Shape) -> Shape:
        return self.mean.output_shape(inputs)

    def parameter_shapes(self, inputs: Shape) -> dict[str, Shape]:
        shapes = self.mean.parameter_shapes(inputs)
        return {**shapes, **{f"{name}_rho": shape for name, shape in shapes.items()}}

    def initial(self, generator: np.random.Generator, inputs: Shape) -> dict[str, np.ndarray]:
        import numpy as np

        means = self.mean.initial(generator, inputs)
        rho = math.log(math.expm1(self.initial_sd))
        return {**means, **{f"{name}_rho": np.full(values.shape, rho) for name, values in means.items()}}

    def noise(self, source: Source, batch: int, inputs: Shape) -> Any:
        del batch
        return {name: source.normal(shape) for name, shape in self.mean.parameter_shapes(inputs).items()}

    def weights(self, parameters: Params, noise: Any) -> dict[str, Any]:
        """The draw of W and b that `noise` stands for."""
        names = ("weight", "bias") if self.bias else ("weight",)
        if noise is None:
            return {name: parameters[name] for name in names}
        return {name: parameters[name] + softplus(parameters[f"{name}_rho"]) * noise[name] for name in names}

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        return self.mean.apply(self.weights(parameters, noise), x)


@dataclass(frozen=True)
class Conv(Layer):
    """A convolution over the leading axes of (..., channels), with kernel (..., channels, filters).

    Args:
        filters: channels of the output.
        kernel: its length along each spatial axis.
        stride: along each spatial axis, or one number for all.
        padding: zeros on both sides of each spatial axis, or one number for all.
        bias: whether each filter has one.
    """

    filters: int
    kernel: tuple[int, ...]
    stride: int | tuple[int, ...] = 1
    padding: int | tuple[int, ...] = 0
    bias: bool = True

    def __post_init__(self) -> None:
        checks.integer("filters", self.filters, at_least=1)
        for size in self.kernel:
            checks.integer("kernel", size, at_least=1)
        for step in self.strides:
            checks.integer("stride", step, at_least=1)
        for zeros in self.paddings:
            checks.integer("padding", zeros, at_least=0)

    @property
    def strides(self) -> tuple[int, ...]:
        """One for each spatial axis."""
        return each(self.stride, len(self.kernel), "stride")

    @property
    def paddings(self) -> tuple[int, ...]:
        """One for each spatial axis."""
        return each(self.padding, len(self.kernel), "padding")

    def output_shape(self, inputs: Shape) -> Shape:
        if len(inputs) != len(self.kernel) + 1:
            raise ValueError(
                f"a convolution with kernel {self.kernel} takes examples of {len(self.kernel)} spatial axes "
                f"and channels, got shape {inputs}; reshape the records, channels last"
            )
        return (*windows(inputs[:-1], self.kernel, self.strides, self.paddings), self.filters)

    def parameter_shapes(self, inputs: Shape) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {"weight": (*self.kernel, inputs[-1], self.filters)}
        return {**shapes, "bias": (self.filters,)} if self.bias else shapes

    def initial(self, generator: np.random.Generator, inputs: Shape) -> dict[str, np.ndarray]:
        return _he(self.parameter_shapes(inputs), math.prod(self.kernel) * inputs[-1], generator)

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        del noise
        y = self.convolved(x[None], parameters["weight"])[0]
        return y + parameters["bias"] if self.bias else y

    def convolved(self, x: Any, weight: Any) -> jax.Array:
        """The convolution of a batch, without bias."""
        from jax import lax

        spatial = "DHW"[-len(self.kernel) :]
        names = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
        pads = [(p, p) for p in self.paddings]
        return lax.conv_general_dilated(x, weight, self.strides, pads, dimension_numbers=names)


@dataclass(frozen=True)
class LayerNorm(Layer):
    """Every example to mean 0 and variance 1 over all its axes; then scale and shift by channel.

    Args:
        epsilon: added to the variance.
    """

    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        checks.real("epsilon", self.epsilon, above=0.0)

    def output_shape(self, inputs: Shape) -> Shape:
        if not inputs:
            raise ValueError("a normalisation takes examples with an axis, got numbers; leave it out")
        return inputs

    def parameter_shapes(self, inputs: Shape) -> dict[str, Shape]:
        return {"scale": (inputs[-1],), "shift": (inputs[-1],)}

    def initial(self, generator: np.random.Generator, inputs: Shape) -> dict[str, np.ndarray]:
        import numpy as np

        del generator
        return {"scale": np.ones(inputs[-1]), "shift": np.zeros(inputs[-1])}

    def normalised(self, x: Any) -> jax.Array:
        """Before scale and shift."""
        from jax import lax

        return (x - x.mean()) * lax.rsqrt(x.var() + self.epsilon)

    def apply(self, parameters: Params, x: Any, noise: Any = None) -> jax.Array:
        del noise
        return self.normalised(x) * parameters["scale"] + parameters["shift"]


@dataclass(frozen=True)
class GroupNorm(LayerNorm):
    """Every group of channels of an example to mean 0 and variance 1; then scale and shift by channel.

    Args:
        epsilon: added to the variance.
        groups: how many, a divisor of the number of channels.
    """

    groups: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("groups", self.groups, at_least=1)

    def output_shape(self, inputs: Shape) -> Shape:
        shape = super().output_shape(inputs)
        if shape[-1] % self.groups:
            raise ValueError(
                f"groups must divide the number of channels, {shape[-1]}, got {self.groups}; take a divisor"
            )
        return shape

    def normalised(self, x: Any) -> jax.Array:
        from jax import lax

        grouped = x.reshape(-1, self.groups, x.shape[-1] // self.groups)
        axes = (0, 2)
        centred = grouped - grouped.mean(axes, keepdims=True)
        return (centred * lax.rsqrt(grouped.var(axes, keepdims=True) + self.epsilon)).reshape(x.shape)


class BatchNorm:
    """Refused: it makes every record's gradient depend on the other records of its batch.

    Then no bound on one record's contribution bounds what one record changes, and
    per-example clipping protects nobody. `LayerNorm` and `GroupNorm` look at one
    example at a time.
    """

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(
            "batch normalisation cannot be used: through it every record of a batch changes the gradients "
            "of the others, so that clipping bounds nothing; use LayerNorm or GroupNorm instead"
        )


# --- inside -------------------------------------------------------------------------


def _he(shapes: Mapping[str, Shape], fan_in: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Normal weights of variance 2 / fan_in, no bias (He et al. 2015)."""
    import numpy as np

    sd = math.sqrt(2 / fan_in)
    return {
        name: np.zeros(shape) if name == "bias" else sd * generator.standard_normal(shape)
        for name, shape in shapes.items()
    }


def each(value: int | tuple[int, ...], axes: int, name: str) -> tuple[int, ...]:
    """One number per axis, from one for all or from as many."""
    values = (value,) * axes if isinstance(value, int) else value
    if len(values) != axes:
        raise ValueError(f"{name} must be one number or {axes}, got {value}; give one for each spatial axis")
    return values


def windows(sizes: Shape, window: Shape, strides: Shape, paddings: Shape) -> Shape:
    """How many windows fit along each axis; refuses where none does."""
    found = tuple(
        (size + 2 * p - w) // s + 1 for size, w, s, p in zip(sizes, window, strides, paddings, strict=True)
    )
    if min(found) < 1:
        raise ValueError(f"windows must fit into the example, got {window} for {sizes}; make them smaller")
    return found
