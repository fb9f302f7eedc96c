# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Where the randomness inside layers comes from: a key, or bits that were drawn before the step.

No guarantee rests on it: clipping holds for whatever the layers drew. During a run the bits
are those of the step's keystream, which are faster than a key; a prediction has a key.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from discreet.neural import normals
from discreet.neural.keystream import Keystream

if TYPE_CHECKING:
    import jax

Shape = tuple[int, ...]


class Source(Protocol):
    """Hands out randomness, each piece once."""

    def normal(self, shape: Shape) -> jax.Array:
        """Independent standard normals."""
        ...

    def coins(self, probability: float, shape: Shape) -> jax.Array:
        """Independent coins that are true with this probability, to 16 bits."""
        ...


class Keyed:
    """Randomness from a JAX key.

    Args:
        key: used for nothing else.
    """

    def __init__(self, key: Any) -> None:
        self._key, self._used = key, 0

    def normal(self, shape: Shape) -> jax.Array:
        import jax

        return jax.random.normal(self._next(), shape)

    def coins(self, probability: float, shape: Shape) -> jax.Array:
        import jax

        return jax.random.bernoulli(self._next(), probability, shape)

    def _next(self) -> Any:
        import jax

        self._used += 1
        return jax.random.fold_in(self._key, self._used)


class Wanted(NamedTuple):
    """How much randomness the layers of a network use in a step.

    Attributes:
        normals: how many.
        coins: how many.
    """

    normals: int
    coins: int


class Metered:
    """Counts what is asked for, and hands out zeros."""

    def __init__(self) -> None:
        self._normals = self._coins = 0

    @property
    def wanted(self) -> Wanted:
        """What was asked for."""
        return Wanted(self._normals, self._coins)

    def normal(self, shape: Shape) -> jax.Array:
        import jax.numpy as jnp

        self._normals += math.prod(shape)
        return jnp.zeros(shape)

    def coins(self, probability: float, shape: Shape) -> jax.Array:
        import jax.numpy as jnp

        del probability
        self._coins += math.prod(shape)
        return jnp.zeros(shape, bool)


class Drawn(NamedTuple):
    """Bits for the layers of a network.

    Attributes:
        normals: bits of the normals.
        coins: 16 bits for each coin.
    """

    normals: normals.Bits
    coins: Any


def draw(stream: Keystream, wanted: Wanted) -> Drawn:
    """The bits of a step."""
    return Drawn(normals.draw(stream, wanted.normals), stream.words(wanted.coins, np.uint16))


class Streamed:
    """Randomness from bits, in order; for compiled code.

    Args:
        bits: as many as `Metered` counted.
    """

    def __init__(self, bits: Drawn) -> None:
        self._bits, self._normals, self._coins = bits, 0, 0

    def normal(self, shape: Shape) -> jax.Array:
        at, self._normals = self._normals, self._normals + math.prod(shape)
        words, tails = (part[at : self._normals] for part in self._bits.normals)
        return normals.normals(normals.Bits(words, tails)).reshape(shape)

    def coins(self, probability: float, shape: Shape) -> jax.Array:
        at, self._coins = self._coins, self._coins + math.prod(shape)
        return (self._bits.coins[at : self._coins] < round(probability * 2**16)).reshape(shape)
