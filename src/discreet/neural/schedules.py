"""Public numbers that change from step to step, in a few stretches of equal steps.

Every stretch has one number, so that equal steps are priced together; a curve is
followed in `STRETCHES` stairs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.privacy import checks

STRETCHES = 16


class Schedule(ABC):
    """A positive number for every step, known before the first."""

    @abstractmethod
    def at(self, share: float) -> float:
        """The number when this share of the run is over."""

    def values(self, steps: int) -> NDArray[np.float64]:
        """One number for each step: that at the middle of the stretch the step is in."""
        stretches = min(STRETCHES, steps)
        middles = [(i + 0.5) / stretches for i in range(stretches)]
        numbers = np.array([checks.real("a schedule's number", self.at(s), above=0.0) for s in middles])
        return numbers[np.arange(steps) * stretches // steps]


@dataclass(frozen=True)
class Steady(Schedule):
    """The same number all along.

    Args:
        value: positive.
    """

    value: float

    def __post_init__(self) -> None:
        checks.real("value", self.value, above=0.0)

    def at(self, share: float) -> float:
        del share
        return self.value


@dataclass(frozen=True)
class Geometric(Schedule):
    """From one number to another by equal factors.

    Args:
        first: at the start.
        last: at the end.
    """

    first: float
    last: float

    def __post_init__(self) -> None:
        checks.real("first", self.first, above=0.0)
        checks.real("last", self.last, above=0.0)

    def at(self, share: float) -> float:
        return self.first * (self.last / self.first) ** share


@dataclass(frozen=True)
class Cosine(Schedule):
    """From one number to another along half a cosine wave.

    Args:
        first: at the start.
        last: at the end.
    """

    first: float
    last: float

    def __post_init__(self) -> None:
        checks.real("first", self.first, above=0.0)
        checks.real("last", self.last, above=0.0)

    def at(self, share: float) -> float:
        return self.last + (self.first - self.last) * (1 + math.cos(math.pi * share)) / 2


@dataclass(frozen=True)
class Polynomial(Schedule):
    """first (1 + share / offset)^-power: the schedule of Welling & Teh 2011.

    Args:
        first: at the start.
        power: usually between 0.5 and 1.
        offset: as a share of the run; smaller falls sooner.
    """

    first: float
    power: float = 0.55
    offset: float = 0.1

    def __post_init__(self) -> None:
        checks.real("first", self.first, above=0.0)
        checks.real("power", self.power, above=0.0)
        checks.real("offset", self.offset, above=0.0)

    def at(self, share: float) -> float:
        return self.first * (1 + share / self.offset) ** -self.power


def as_schedule(value: float | Schedule) -> Schedule:
    """A number as a schedule."""
    return value if isinstance(value, Schedule) else Steady(float(value))
