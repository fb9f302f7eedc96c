"""How an accountant watches a run: what it is told before the first step, and what after each.

A mechanism with `observers` calls `begin` once, then `observe` once for each step,
with distances of records that were drawn at random for that step alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

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
