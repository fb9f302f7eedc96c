"""Poisson batches in a buffer of a fixed size: every record enters on its own, with the same probability.

Proof page: docs/proofs/private_gradients.md#batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.neural.keystream import Keystream
from discreet.privacy import checks

_DIGIT = 2**16


class Filled(NamedTuple):
    """A part of a batch that fits into the buffer.

    Attributes:
        rows: of the records, then zeros up to the size of the buffer.
        valid: how many of them are records.
    """

    rows: NDArray[np.int32]
    valid: int


@dataclass(frozen=True)
class PoissonBatches:
    """Batches of a public expected size.

    A batch that is larger than the buffer fills it more than once, and all of it
    counts; an empty one fills it once, with nothing.

    Args:
        rate: the probability that a record enters a batch.
        buffer: how many records a pass takes.
    """

    rate: float
    buffer: int

    def __post_init__(self) -> None:
        checks.real("rate", self.rate, above=0.0, at_most=1.0)
        checks.integer("buffer", self.buffer, at_least=1)

    def draw(self, bits: Keystream, size: int, *, shuffle: bool = False) -> list[Filled]:
        """The passes of one batch of `size` records, one at least.

        Args:
            bits: where randomness comes from.
            size: number of records.
            shuffle: whether the records of the batch come in random order.
        """
        rows = sample(bits, size, self.rate)
        if shuffle:
            rows = bits.shuffled(rows)
        passes: list[Filled] = []
        for start in range(0, max(len(rows), 1), self.buffer):
            part = rows[start : start + self.buffer]
            room = np.zeros(self.buffer, np.int32)
            room[: len(part)] = part
            passes.append(Filled(room, len(part)))
        return passes


def sample(bits: Keystream, size: int, rate: float) -> NDArray[np.int32]:
    """The rows 0 .. size-1 that enter: each independently, with probability `rate` rounded down to 64 bits.

    A uniform 64-bit number is compared with the rate digit by digit; the first 16 bits
    decide for all but one record in 65,536.
    """
    threshold = math.floor(rate * 2.0**64)  # exact: a float times a power of two
    if threshold >= 2**64:
        return np.arange(size, dtype=np.int32)
    first, rest = divmod(threshold, 2**48)
    digits = bits.words(size, np.uint16)
    inside = np.flatnonzero(digits <= first)
    undecided = digits[inside] == first
    tail = bits.words(int(undecided.sum()), np.uint64) >> np.uint64(16)
    keep = ~undecided
    keep[undecided] = tail < np.uint64(rest)
    return inside[keep].astype(np.int32)


def buffer_for(batch: float, rate: float, *, multiple: int = 16) -> int:
    """A buffer that about one batch in forty overflows, rounded up to a multiple.

    A choice about speed only: the batch is complete whatever the buffer.
    """
    spread = math.sqrt(batch * (1 - rate))
    return max(multiple, math.ceil((batch + 1.9 * spread) / multiple) * multiple)
