"""What a planted bug is, and the checks of `discreet.audit` that have to find it.

A bug stands beside the mechanism that it was planted in. Both go through one check with
one configuration: the broken one must be caught, the right one must not be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.audit import DRAWS, SCORES, Pair, Subject, membership
from discreet.mechanisms.base import Mechanism, Plan
from discreet.models.base import Records

Array = NDArray[np.float64]
Kind = TypeVar("Kind", bound=Mechanism)


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        caught: whether the claim does not hold.
        why: the finding, for people.
    """

    caught: bool
    why: str


@dataclass(frozen=True)
class Planted:
    """A bug, the mechanism it was planted in, and the check that tells them apart.

    Attributes:
        name: of the bug; docs/pitfalls.md has a section of this name.
        check: of what either of the two makes.
        broken: makes the broken mechanism.
        right: makes the right one.
    """

    name: str
    check: Callable[[Any], Verdict]
    broken: Callable[[], Any]
    right: Callable[[], Any]


PLANTED: dict[str, Planted] = {}


def planted(
    name: str, check: Callable[[Any], Verdict], broken: Callable[[], Any], right: Callable[[], Any]
) -> None:
    """Enter a bug."""
    assert name not in PLANTED
    PLANTED[name] = Planted(name, check, broken, right)


KEY = 2026
"""The seed of every attack."""

# --- the checks -----------------------------------------------------------------------


@dataclass(frozen=True)
class Attack:
    """A membership attack.

    Attributes:
        audited: a plan, or a subject.
        pair: two neighbouring data sets.
        trials: runs on each.
        delta: where epsilon is bounded; None leaves it to the audit.
    """

    audited: Plan | Subject
    pair: Pair
    trials: int = 20_000
    delta: float | None = None

    def run(self, key: int) -> Verdict:
        """The attack, with this seed."""
        found = membership(
            self.audited,
            self.pair,
            trials=self.trials,
            confidence=0.999,
            delta=self.delta,
            key=key,
            learn=False,
        )
        return Verdict(not found.passes, found.describe())


def attacked(attack: Attack) -> Verdict:
    """Whether a membership attack refutes the claim, at confidence 0.999."""
    return attack.run(KEY)


def column(values: Mapping[str, Any]) -> Records:
    """Named arrays of floats."""
    return {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}


def as_before(kind: type[Kind]) -> type[Kind]:
    """Run and attack a broken kind, whose `draw` is its own, by the tables of the one it was planted in."""
    for table in (DRAWS, SCORES):
        known = next((k for k in kind.__mro__[1:] if k in table._functions), None)
        if known is not None:
            table.register(kind)(table._functions[known])
    return kind
