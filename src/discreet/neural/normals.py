# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Standard normals from uniform bits, compiled into the step that uses them.

Every normal has its own bits and comes by inversion of the distribution function,
from the tail inward, so that large values are as exact as small ones: a magnitude of 31 + 8
bits in single precision (up to 7.0), of 63 in double (up to 9.1).
Proof page: docs/proofs/private_gradients.md#noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.neural.keystream import Keystream

if TYPE_CHECKING:
    import jax

Shape = tuple[int, ...]


class Bits(NamedTuple):
    """What normals are made of.

    Attributes:
        words: one for each normal; 32 bits for single precision, 64 for double.
        tails: 8 bits more for each, single precision only.
    """

    words: Any
    tails: Any


def draw(stream: Keystream, number: int, *, double: bool = False) -> Bits:
    """The bits of so many normals."""
    if double:
        return Bits(stream.words(number, np.uint64), np.zeros(0, np.uint8))
    return Bits(stream.words(number, np.uint32), stream.words(number, np.uint8))


def tree(bits: Bits, shapes: Mapping[str, Shape]) -> dict[str, jax.Array]:
    """Normals in the given shapes, in the order of the names; for compiled code."""
    found: dict[str, jax.Array] = {}
    at = 0
    for name, shape in shapes.items():
        to = at + math.prod(shape)
        tails = bits.tails[at:to] if bits.tails.size else bits.tails
        found[name] = normals(Bits(bits.words[at:to], tails)).reshape(shape)
        at = to
    return found


def normals(bits: Bits) -> jax.Array:
    """One standard normal for each word."""
    import jax.numpy as jnp
    from jax.scipy.special import ndtri

    if bits.words.dtype == np.uint64:
        magnitude = (bits.words >> 1).astype(jnp.float64)
        size = -ndtri((magnitude + 0.5) * 2.0**-64)
    else:
        magnitude = (bits.words >> 1).astype(jnp.float32)
        half = (magnitude + (bits.tails.astype(jnp.float32) + 0.5) * 2.0**-8) * 2.0**-32
        s = jnp.sqrt(-2 * jnp.log(half)) - _START
        size = s * _horner(_UPPER, s) / _horner(_LOWER, s)
    return jnp.where(bits.words & 1, size, -size)


# With tail probability e^(-t^2/2), the quantile is a smooth function of s = t - sqrt(2 ln 2): s P(s)/Q(s),
# whose coefficients were fitted on 0 <= s <= 6.4 (normals up to 7.4), largest error 1.5e-9.
_START = math.sqrt(2 * math.log(2))
_UPPER = (1.475664540308901, 2.1044620118353947, 0.9840396667262835, 0.1750877755984703, 0.009319238294484338)
_LOWER = (1.0, 1.590154395390712, 0.8337266394744192, 0.16438844338050787, 0.0093164136545169)


def _horner(coefficients: tuple[float, ...], x: Any) -> Any:
    value: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * x + c
    return value


def numpy_normals(stream: Keystream, number: int) -> NDArray[np.float64]:
    """The same inversion without JAX, in double precision: the reference that tests compare with."""
    from scipy.special import ndtri

    words = stream.words(number, np.uint64)
    size = -ndtri(((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64)
    return np.where(words & np.uint64(1), size, -size)
