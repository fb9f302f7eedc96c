# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""What book-keeping knows of each layer: norms, weighted sums and inner products of per-example gradients.

One backward pass gives a layer's inputs a and the gradients d of its outputs, for
the whole batch. A site turns them into the squared norm of each example's gradient,
the sum of the gradients under weights, and inner products of pairs, without storing
the gradients where that is dearer. Register a site for a layer of your own with
`site`; without one, its gradients are stored for the batch, which is always right.

Proof page: docs/proofs/private_gradients.md#book-keeping.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from discreet.neural.layers import Conv, Dense, Layer, LayerNorm, Params, VariationalDense

if TYPE_CHECKING:
    import jax


class Site(Protocol):
    """One layer's share of the per-example gradients of a batch."""

    def squares(self) -> jax.Array:
        """The squared norm of each example's gradient in this layer's parameters."""
        ...

    def total(self, weights: Any) -> dict[str, jax.Array]:
        """The sum of the gradients, each times its weight; a weight of 0 leaves even a NaN out."""
        ...

    def inner(self, left: Any, right: Any) -> jax.Array:
        """Inner products of the gradients of two lists of examples."""
        ...


_COVERED = 2.0**-12
"""A share of a squared norm that may be lost in rounding, because `clipping.ROUNDING` makes up for it."""

_LARGEST = 2.0**64
"""Of the squared norm of a layer's inputs, or of the gradients of its outputs, for one example."""

Maker = Callable[[Any, Params, Any, Any, Any], Site]
SITES: dict[type[Layer], Maker] = {}
"""Type of a layer -> (layer, parameters, inputs, gradients of outputs, noise) to its site."""

M = TypeVar("M", bound=Maker)


def site(*kinds: type[Layer]) -> Callable[[M], M]:
    """Register how a layer's site is made."""

    def register(maker: M) -> M:
        SITES.update(dict.fromkeys(kinds, maker))
        return maker

    return register


def make(layer: Layer, parameters: Params, a: Any, d: Any, noise: Any) -> Site:
    """The site of a layer; that of the nearest registered class, or stored gradients."""
    for kind in type(layer).__mro__:
        if kind in SITES:
            return SITES[kind](layer, parameters, a, d, noise)
    return stored(layer, parameters, a, d, noise)


@dataclass(frozen=True)
class Stored:
    """Per-example gradients as they are, leading axis = example."""

    gradients: Mapping[str, Any]

    def squares(self) -> jax.Array:
        return _sum((g.reshape(len(g), -1) ** 2).sum(axis=1) for g in self.gradients.values())

    def total(self, weights: Any) -> dict[str, jax.Array]:
        import jax.numpy as jnp

        return {name: jnp.tensordot(weights, kept(g, weights), 1) for name, g in self.gradients.items()}

    def inner(self, left: Any, right: Any) -> jax.Array:
        flat = [g.reshape(len(g), -1) for g in self.gradients.values()]
        return _sum((g[left] * g[right]).sum(axis=1) for g in flat)


def stored(layer: Layer, parameters: Params, a: Any, d: Any, noise: Any) -> Stored:
    """Gradients of any layer, example by example."""
    import jax

    def one(x: Any, cotangent: Any, e: Any) -> Any:
        return jax.vjp(lambda p: layer.apply(p, x, e), dict(parameters))[1](cotangent)[0]

    return Stored(jax.vmap(one, in_axes=(0, 0, None if layer.shared_noise else 0))(a, d, noise))


@dataclass(frozen=True)
class Rows:
    """A dense layer on rows: |gradient|^2 = |a|^2 |d|^2."""

    a: Any
    d: Any
    bias: bool

    def squares(self) -> jax.Array:
        a, d = (self.a**2).sum(axis=1), (self.d**2).sum(axis=1)
        return whole((a + self.bias) * d, a, d)

    def total(self, weights: Any) -> dict[str, jax.Array]:
        d = kept(self.d, weights) * weights[:, None]
        total = {"weight": kept(self.a, weights).T @ d}
        return {**total, "bias": d.sum(axis=0)} if self.bias else total

    def inner(self, left: Any, right: Any) -> jax.Array:
        both = (self.a[left] * self.a[right]).sum(axis=1) + self.bias
        return both * (self.d[left] * self.d[right]).sum(axis=1)


@dataclass(frozen=True)
class Positions:
    """A weight that serves many positions: |gradient|^2 = sum over pairs of positions <a, a'> <d, d'>."""

    a: Any
    d: Any
    bias: bool

    def squares(self) -> jax.Array:
        """Rounded up where terms of different signs cancel: what rounding leaves of them may be too small."""
        import jax.numpy as jnp

        (_, t, i), o = self.a.shape, self.d.shape[-1]
        a, d = ((part**2).sum(axis=2) for part in (self.a, self.d))
        sizes = jnp.sqrt((a + self.bias) * d).sum(axis=1)
        lost = (2 * t + i + o + 8) * float(jnp.finfo(self.a.dtype).eps) * sizes**2
        found = jnp.maximum(self._products(self.a, self.d, self.a, self.d), 0.0)
        return whole(jnp.where(lost > _COVERED * found, found + lost, found), a.max(axis=1), d.max(axis=1))

    def total(self, weights: Any) -> dict[str, jax.Array]:
        import jax.numpy as jnp

        d = kept(self.d, weights) * weights[:, None, None]
        total = {"weight": jnp.einsum("bti,bto->io", kept(self.a, weights), d)}
        return {**total, "bias": d.sum(axis=(0, 1))} if self.bias else total

    def inner(self, left: Any, right: Any) -> jax.Array:
        return self._products(self.a[left], self.d[left], self.a[right], self.d[right])

    def _products(self, a: Any, d: Any, a2: Any, d2: Any) -> jax.Array:
        import jax.numpy as jnp

        near = jnp.einsum("bti,bsi->bts", a, a2) + self.bias
        return (near * jnp.einsum("bto,bso->bts", d, d2)).sum(axis=2).sum(axis=1)


def positions(a: Any, d: Any, *, bias: bool) -> Positions | Stored:
    """Inner products of positions, or stored gradients: whichever is cheaper for these shapes."""
    import jax.numpy as jnp

    (_, t, i), o = a.shape, d.shape[-1]
    if t * t * (i + o + 2) < t * i * o + 3 * i * o:
        return Positions(a, d, bias)
    gradients = {"weight": jnp.einsum("bti,bto->bio", a, d)}
    return Stored({**gradients, "bias": d.sum(axis=1)} if bias else gradients)


@site(Dense)
def _(layer: Dense, parameters: Params, a: Any, d: Any, noise: Any) -> Site:
    del parameters, noise
    if a.ndim == 2:
        return Rows(a, d, layer.bias)
    shape = (len(a), math.prod(a.shape[1:-1]))
    return positions(a.reshape(*shape, -1), d.reshape(*shape, -1), bias=layer.bias)


@dataclass(frozen=True)
class Convolved:
    """A convolution: a dense layer on patches; the sum is the convolution's own."""

    layer: Conv
    parameters: Params
    a: Any
    d: Any
    patches: Positions | Stored

    def squares(self) -> jax.Array:
        return self.patches.squares()

    def inner(self, left: Any, right: Any) -> jax.Array:
        return self.patches.inner(left, right)

    def total(self, weights: Any) -> dict[str, jax.Array]:
        import jax

        if isinstance(self.patches, Stored):  # the gradients are there, and small
            found = self.patches.total(weights)
            return {**found, "weight": found["weight"].reshape(self.parameters["weight"].shape)}
        d = kept(self.d, weights) * weights.reshape(-1, *(1,) * (self.d.ndim - 1))
        a = kept(self.a, weights)
        total = {"weight": jax.vjp(lambda w: self.layer.convolved(a, w), self.parameters["weight"])[1](d)[0]}
        return {**total, "bias": d.sum(axis=tuple(range(d.ndim - 1)))} if self.layer.bias else total


@site(Conv)
def _(layer: Conv, parameters: Params, a: Any, d: Any, noise: Any) -> Site:
    del noise
    rows = d.reshape(len(d), -1, layer.filters)
    return Convolved(layer, parameters, a, d, positions(patches(layer, a), rows, bias=layer.bias))


def patches(layer: Conv, a: Any) -> jax.Array:
    """(examples, positions, kernel x channels): what each output position looks at."""
    import jax.numpy as jnp

    spatial = layer.output_shape(a.shape[1:])[:-1]
    padded = jnp.pad(a, [(0, 0), *((p, p) for p in layer.paddings), (0, 0)])
    windows: list[Any] = []
    for place in _places(layer.kernel):
        cut = tuple(
            slice(k, k + s * (out - 1) + 1, s)
            for k, s, out in zip(place, layer.strides, spatial, strict=True)
        )
        windows.append(padded[(slice(None), *cut)])
    return jnp.stack(windows, axis=-2).reshape(len(a), math.prod(spatial), -1)


@site(LayerNorm)
def _(layer: LayerNorm, parameters: Params, a: Any, d: Any, noise: Any) -> Site:
    import jax

    del parameters, noise
    normal = jax.vmap(layer.normalised)(a)
    axes = tuple(range(1, d.ndim - 1))
    return Stored({"scale": (d * normal).sum(axis=axes), "shift": d.sum(axis=axes)})


@dataclass(frozen=True)
class Variational:
    """A variational dense layer on rows; the gradient in rho is that in mu times s = e sigmoid(rho).

    |gradient in rho|^2 = (a^2)^T s^2 (d^2), elementwise squares.
    """

    rows: Rows
    slopes: Mapping[str, Any]

    def squares(self) -> jax.Array:
        return self.rows.squares() + self._rho(self.rows.a**2, self.rows.d**2)

    def total(self, weights: Any) -> dict[str, jax.Array]:
        means = self.rows.total(weights)
        return {**means, **{f"{name}_rho": means[name] * s for name, s in self.slopes.items()}}

    def inner(self, left: Any, right: Any) -> jax.Array:
        a, d = (part[left] * part[right] for part in (self.rows.a, self.rows.d))
        return self.rows.inner(left, right) + self._rho(a, d)

    def _rho(self, a: Any, d: Any) -> jax.Array:
        found = ((a @ self.slopes["weight"] ** 2) * d).sum(axis=1)
        return found + d @ self.slopes["bias"] ** 2 if "bias" in self.slopes else found


@site(VariationalDense)
def _(layer: VariationalDense, parameters: Params, a: Any, d: Any, noise: Any) -> Site:
    import jax

    if a.ndim != 2 or noise is None:
        return stored(layer, parameters, a, d, noise)
    slopes = {name: e * jax.nn.sigmoid(parameters[f"{name}_rho"]) for name, e in noise.items()}
    return Variational(Rows(a, d, layer.bias), slopes)


# --- inside -------------------------------------------------------------------------


def kept(values: Any, weights: Any) -> jax.Array:
    """The values of examples whose weight is not 0, and zeros, which no NaN survives."""
    import jax.numpy as jnp

    return jnp.where((weights != 0).reshape(-1, *(1,) * (values.ndim - 1)), values, 0.0)


def whole(squares: Any, *factors: Any) -> jax.Array:
    """Squared norms that are products, and infinity where a factor is above `_LARGEST`.

    Squares below 2^-126 are lost in single precision, and a factor that is large enough
    would bring them back into the gradient: a record could contribute more than C.
    What is infinite is left out.
    """
    import jax.numpy as jnp

    for factor in factors:
        squares = jnp.where(factor <= _LARGEST, squares, jnp.inf)
    return squares


def _places(kernel: tuple[int, ...]) -> list[tuple[int, ...]]:
    import numpy as np

    return [tuple(int(i) for i in place) for place in np.ndindex(*kernel)]


def _sum(parts: Any) -> Any:
    first, *rest = parts
    for part in rest:
        first = first + part
    return first
