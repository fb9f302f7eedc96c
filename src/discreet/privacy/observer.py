"""How an accountant watches a run: what it is told before the first step, and what after each.

A mechanism with `observers` calls `begin` once, then `observe` once for each step,
with distances of records that were drawn at random for that step alone. The step's own
Poisson batch will do, in an order that is random too; pairs of it are
chosen by `independent_pairs`. Why: docs/proofs/bayesian_accountant.md#sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.privacy import checks
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.neighbours import Neighbours, as_neighbours


@dataclass(frozen=True)
class ObservedRun:
    """What is public about a run of noisy sums: all of it is in the plan.

    Attributes:
        rate: the probability that a record enters a step; 1 for full batches.
        sigma: standard deviation of the noise, in the unit of the distances.
        largest: what a distance cannot exceed. For presence (`add_remove`) the norm that
            a record's contribution is clipped to; for `substitute`, twice that norm.
        steps: how many there will be.
        guarantee: the differential privacy of the run.
        neighbours: what a distance is: with `add_remove` the norm of one record's
            contribution, with `substitute` the distance of two records'.
    """

    rate: float
    sigma: float
    largest: float
    steps: int
    guarantee: Guarantee
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        checks.real("rate", self.rate, above=0.0, at_most=1.0)
        checks.real("sigma", self.sigma, above=0.0)
        checks.real("largest", self.largest, above=0.0)
        checks.integer("steps", self.steps, at_least=1)
        object.__setattr__(self, "neighbours", as_neighbours(self.neighbours))


@runtime_checkable
class Observer(Protocol):
    """Something that watches a run, and keeps what it sees `Sensitive`."""

    @property
    def pairs(self) -> int:
        """How many distances it wants of each step."""
        ...

    def begin(self, run: ObservedRun) -> None:
        """A run starts; what was seen of another is forgotten."""
        ...

    def observe(self, distances: ArrayLike) -> None:
        """One step was taken: distances of records drawn at random, in random order, for this step."""
        ...


def independent_pairs(
    room: int, wanted: int, *, size: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places in a batch of `wanted` pairs of records that are independent draws from the whole table.

    Neighbouring places of a batch will not do: disjoint pairs of one batch depend on each
    other. Here pairs of n labels are drawn with replacement, and each label that occurs
    takes the next place of the batch.

    Args:
        room: how many records the batch holds, in random order.
        wanted: how many pairs.
        size: n, how many records the table holds.
        generator: of the labels.

    Returns:
        The places of the first and of the second record of each pair. Pairs for which the
        batch has no room are left out; the accountant counts them as the largest distance.

    Example:
        >>> first, second = independent_pairs(256, 64, size=60_000, generator=np.random.default_rng(0))
        >>> first.shape, bool((first != second).all()), int(max(first.max(), second.max())) < 256
        ((64,), True, True)
    """
    checks.integer("size", size, at_least=2)
    labels = generator.integers(size, size=(wanted, 2))
    labels[:, 1] = (labels[:, 0] + 1 + generator.integers(size - 1, size=wanted)) % size
    places: dict[int, int] = {}
    flat = [places.setdefault(label, len(places)) for label in labels.ravel().tolist()]
    first, second = np.array(flat, dtype=np.int64).reshape(wanted, 2).T
    kept = np.maximum(first, second) < room
    return first[kept], second[kept]
