"""Uniform minibatches without replacement, a block of steps at a time.

Proof: docs/proofs/dp_mcmc.md#batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32] | NDArray[np.int64]
Batches = Callable[[np.random.Generator, int, int, tuple[int, ...]], Rows]
"""(generator, size, batch, shape) to rows of shape (*shape, batch)."""

_CROWDED = 20


def batches(generator: np.random.Generator, size: int, batch: int, shape: tuple[int, ...]) -> Rows:
    """Uniform subsets of `batch` of the numbers 0 .. size-1, in O(batch log batch) time each.

    Small batches are drawn with replacement, all at once, and what was drawn twice is
    drawn again. Where that would take many rounds, at more than a twentieth of `size`,
    NumPy's `choice` swaps the tail of a list, in O(size) = O(batch) time.
    """
    if _CROWDED * batch <= size:
        return distinct(generator, size, batch, shape)
    rows = np.empty((*shape, batch), dtype=_whole(size))
    for place in np.ndindex(*shape):
        rows[place] = generator.choice(size, size=batch, replace=False, shuffle=False)
    return cast("Rows", rows)


def distinct(generator: np.random.Generator, size: int, batch: int, shape: tuple[int, ...]) -> Rows:
    """The first `batch` different values of a sequence of uniform draws, in increasing order.

    Sorted, because equal values are found as neighbours, and records are then read in
    the order in which they lie in memory.
    """
    rows = generator.integers(size, size=(*shape, batch), dtype=_whole(size)).reshape(-1, batch)
    rows.sort()
    left, again = np.arange(len(rows)), rows
    while len(left):
        twice = again[:, 1:] == again[:, :-1]
        unfinished = twice.any(axis=1)
        left, again, twice = left[unfinished], again[unfinished], twice[unfinished]
        again[:, 1:][twice] = generator.integers(size, size=int(twice.sum()), dtype=_whole(size))
        again.sort()
        rows[left] = again
    return cast("Rows", rows.reshape(*shape, batch))


def with_replacement(generator: np.random.Generator, size: int, batch: int, shape: tuple[int, ...]) -> Rows:
    """Independent uniform rows, in the order drawn."""
    return cast("Rows", generator.integers(size, size=(*shape, batch), dtype=_whole(size)))


def _whole(size: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if size < 2**31 else np.int64
