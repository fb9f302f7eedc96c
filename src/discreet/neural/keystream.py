"""Random bits at the speed of memory: AES-256 in counter mode, a fresh key for every step.

The key of a step comes from a ratchet: a secret that hashes itself forward and is
overwritten, so that what is in memory or in a checkpoint tells nothing of the noise
of earlier steps. docs/decisions/0020-noise-from-aes.md says why this generator.
"""

from __future__ import annotations

import hashlib
from typing import Any, cast

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

_CHUNK = 2**17
_ZEROS = bytes(_CHUNK)


class Ratchet:
    """A secret from which one key after the other comes, and that cannot be turned back.

    Args:
        secret: 32 unpredictable bytes, used nowhere else.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32:
            raise ValueError(f"secret must have 32 bytes, got {len(secret)}; take Randomness.secret()")
        self._secret = secret

    def next(self) -> Keystream:
        """The bits of one step; the secret moves on."""
        key = hashlib.sha256(b"discreet step key" + self._secret).digest()
        self._secret = hashlib.sha256(b"discreet next secret" + self._secret).digest()
        return Keystream(key)

    def tag(self, message: bytes) -> bytes:
        """A keyed hash of a message under the secret as it stands."""
        return hashlib.sha256(b"discreet tag" + self._secret + message).digest()

    def leave(self) -> bytes:
        """The secret as it stands, for a checkpoint: whoever has it knows all noise to come."""
        return self._secret

    def __repr__(self) -> str:
        return "Ratchet(secret)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a ratchet cannot be pickled or copied, because a key is used once; use leave()")


class Keystream:
    """The bits of one key, in order.

    Args:
        key: 32 bytes, used once.
    """

    def __init__(self, key: bytes) -> None:
        # A fresh key for every stream: the counter may start at 0. CTR of zeros is the keystream itself.
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def fill(self, out: NDArray[np.uint8]) -> None:
        """Overwrite `out`, contiguous, with the next bits."""
        room = memoryview(cast("Any", out))
        for start in range(0, len(out), _CHUNK):
            part = room[start : start + _CHUNK]
            # The cipher asks for room of a block more than it writes, which the end of `out` may not have.
            if len(part) == _CHUNK and start + _CHUNK + 15 <= len(out):
                self._cipher.update_into(_ZEROS, room[start : start + _CHUNK + 15])
            else:
                part[:] = self._cipher.update(_ZEROS[: len(part)])

    def words(self, number: int, kind: type[np.unsignedinteger] = np.uint32) -> NDArray[np.unsignedinteger]:
        """So many independent uniform whole numbers of this type."""
        out = np.empty(number * np.dtype(kind).itemsize, np.uint8)
        self.fill(out)
        return out.view(kind)

    def below(self, limit: int) -> int:
        """A uniform whole number below `limit`, exactly: by rejection."""
        bits = max(1, (limit - 1).bit_length())
        while True:
            value = int.from_bytes(self._cipher.update(bytes(-(-bits // 8))), "big") & ((1 << bits) - 1)
            if value < limit:
                return value

    def shuffled(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """The values in uniform random order, up to ties among 64-bit keys."""
        return values[np.argsort(self.words(len(values), np.uint64), kind="stable")]
