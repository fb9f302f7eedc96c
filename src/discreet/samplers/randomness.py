"""Where randomness comes from: the operating system, unless the user gives a seed.

A key is used once: every call hands out a fresh, independent stream, derived by
hashing a 256-bit secret and a counter (SHA-256 in counter mode), so that neither
the order of use nor one leaked stream tells another.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING

import numpy as np

from discreet.privacy import checks
from discreet.privacy.evidence import Evidence

if TYPE_CHECKING:
    import jax


class Randomness:
    """A secret and a counter, from which single-use streams are drawn.

    Args:
        seed: None takes 256 bits from the operating system. A whole number makes
            the run reproducible, and whoever knows it can undo the noise; the
            evidence of the release says so.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._seeded = seed is not None
        if seed is None:
            self._secret = secrets.token_bytes(32)
        else:
            number = checks.integer("key", seed, at_least=0, at_most=2**256 - 1)
            self._secret = hashlib.sha256(b"discreet seed" + number.to_bytes(32, "big")).digest()
        self._used = 0

    @property
    def evidence(self) -> Evidence:
        """What the release may say about its randomness."""
        if self._seeded:
            return Evidence.assumed(
                "nobody but the data holder knows the seed; whoever knows it can undo the noise",
                "a seed was given",
            )
        return Evidence.assumed(
            "the operating system's generator and the streams expanded from it are unpredictable",
            "256 bits from the operating system",
        )

    def numpy(self) -> np.random.Generator:
        """A NumPy generator that no other call shares."""
        return np.random.Generator(np.random.Philox(key=int.from_bytes(self._next()[:16], "big")))

    def jax(self) -> jax.Array:
        """A JAX key that no other call shares."""
        import jax

        words = np.frombuffer(self._next()[:8], dtype=">u4").astype(np.uint32)
        return jax.random.wrap_key_data(jax.numpy.asarray(words), impl="threefry2x32")

    def secret(self) -> bytes:
        """32 bytes that no other call shares, for generators of their own."""
        return self._next()

    def integer(self) -> int:
        """A 63-bit integer that no other call shares, for libraries that take a seed."""
        return int.from_bytes(self._next()[:8], "big") >> 1

    def _next(self) -> bytes:
        self._used += 1
        return hashlib.sha256(self._secret + self._used.to_bytes(8, "big")).digest()

    def __repr__(self) -> str:
        return f"Randomness({'from a seed' if self._seeded else 'from the operating system'})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("randomness cannot be pickled or copied, because a key is used once; make a new one")
