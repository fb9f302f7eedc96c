# pyright: reportUnknownMemberType=false
"""Same randomness, neighbouring records: what moves, and whether anything but numbers does.

Proof page: docs/proofs/audit.md#replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet.audit.subject import Pair, Table, subject
from discreet.mechanisms.base import Drawn, Plan
from discreet.models.base import Records
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Moved:
    """How far a statistic moved between neighbours, beside how far the plan says that it may.

    Attributes:
        name: of the statistic.
        measured: the largest movement seen.
        declared: the plan's bound.
    """

    name: str
    measured: float
    declared: float

    @property
    def passes(self) -> bool:
        """Whether it kept to the bound, up to the rounding of sums."""
        return self.measured <= self.declared * (1 + _ROUNDING) + 1e-12


@dataclass(frozen=True)
class Flow:
    """What a run did that is no number of its output: anything of it that depends on records leaks.

    Attributes:
        shapes: of what is published.
        streams: how many random streams were taken.
        consumed: how far each of them was read.
        evidence: what the release would say of the drawing.
        error: the kind of an error that stopped it, or None.
    """

    shapes: dict[str, tuple[int, ...]]
    streams: int
    consumed: tuple[int, ...]
    evidence: tuple[str, ...]
    error: str | None = None

    def differences(self, other: Flow) -> tuple[str, ...]:
        """What is not the same on the other side, in words without values of records."""
        return tuple(what for name, what in _FLOWS.items() if getattr(self, name) != getattr(other, name))


_FLOWS = {
    "error": "whether it stops with an error",
    "shapes": "the shapes of what is published",
    "streams": "how many random streams are taken",
    "consumed": "how much randomness is read, and so how long it runs",
    "evidence": "what the evidence says",
}


@dataclass(frozen=True)
class Replayed:
    """What replay found on some pairs.

    Attributes:
        moved: the largest movement of each declared statistic.
        flow: what else depended on a record; must be empty.
        disclosed: what depended on a record and is known to, with the reason.
        pairs: how many pairs were replayed.
        undeclared: whether the mechanism declares no statistic to watch.
    """

    moved: tuple[Moved, ...]
    flow: tuple[str, ...]
    pairs: int
    undeclared: bool = False
    disclosed: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether every statistic kept to its sensitivity and nothing else depended on a record."""
        return not self.flow and all(moved.passes for moved in self.moved)

    def describe(self) -> str:
        """The result in words."""
        lines = [f"replay of {self.pairs} pairs: {'as declared' if self.passes else 'NOT AS DECLARED'}"]
        lines += [f"  {m.name}: moved {m.measured:.6g}, declared {m.declared:.6g}" for m in self.moved]
        lines += [f"  depends on a record: {what}" for what in self.flow]
        lines += [f"  depends on a record, as is known: {what}" for what in self.disclosed]
        if self.undeclared:
            lines.append("  no statistic of this mechanism is declared; only its control flow was compared")
        return "\n".join(lines)


DISCLOSED = Table()
"""A plan to why it reads more or less randomness, and so runs longer, by records; "" if it may not."""

WATCHED = Table()
"""(plan, pairs, randomness) -> list of Moved: the declared statistics on both sides of every pair."""


class Watch(Randomness):
    """Randomness that remembers how far its streams were read."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._generators: list[np.random.Generator] = []
        self.streams = 0

    def numpy(self) -> np.random.Generator:
        """As the parent's, remembered."""
        generator = super().numpy()
        self._generators.append(generator)
        return generator

    def _next(self) -> bytes:
        self.streams += 1
        return super()._next()

    @property
    def consumed(self) -> tuple[int, ...]:
        """Where each generator stands."""
        states = (cast("dict[str, Any]", g.bit_generator.state) for g in self._generators)
        return tuple(4 * int(s["state"]["counter"][0]) + int(s["buffer_pos"]) for s in states)


def sensitivity(
    plan: Plan, pairs: Sequence[Pair] | None = None, *, runs: int = 3, key: int | None = None
) -> Replayed:
    """Run a plan with the same randomness on both sides of every pair, and compare.

    Asserts that every declared statistic moves no more than its sensitivity, and that
    nothing but the published numbers depends on the record: not the shapes of the
    output, nor how many random numbers are read, nor what the evidence says, nor
    whether an error is raised.

    Args:
        plan: what runs.
        pairs: neighbouring data sets; None searches for a hard one, and adds random ones.
        runs: how often each pair is replayed, with other randomness.
        key: makes the audit reproducible.

    Example:
        >>> from discreet import Budget, mechanisms, models
        >>> mechanism = mechanisms.PerturbedStatistics(models.BetaBernoulli((6, 12)), draws=10)
        >>> print(sensitivity(mechanism.plan(4, budget=Budget(1.0, 1e-6)), key=1).describe())
        replay of 9 pairs: as declared
          a sum, in ranges of a record: moved 1, declared 1
          sums that move: moved 1, declared 1
    """
    randomness = Randomness(key)
    if pairs is None:
        from discreet.audit.pairs import random_pairs, worst_pair

        pairs = [worst_pair(plan), *random_pairs(plan, 8, seed=randomness.integer())]
    thing = subject(plan)
    largest: dict[str, Moved] = {}
    flow: dict[str, None] = {}
    watched = WATCHED.find(plan.mechanism)
    checked = [thing.checked(pair) for pair in pairs]
    for pair in checked:
        for _ in range(runs):
            seed = randomness.integer()
            flows = [_run(plan, cast("Records", dict(side)), seed) for side in pair.sides]
            flow |= dict.fromkeys(flows[0].differences(flows[1]))
    for moved in [] if watched is None else watched(plan, checked, Randomness(randomness.integer())):
        if moved.name not in largest or moved.measured > largest[moved.name].measured:
            largest[moved.name] = moved
    known = DISCLOSED.find(plan.mechanism)
    why = "" if known is None else known(plan)
    disclosed: tuple[str, ...] = ()
    if why and flow.pop(_FLOWS["consumed"], "") is None:
        disclosed = (f"{_FLOWS['consumed']}: {why}",)
    return Replayed(tuple(largest.values()), tuple(flow), len(pairs), watched is None, disclosed)


def _run(plan: Plan, records: Records, seed: int) -> Flow:
    """One draw, watched."""
    watch = Watch(seed)
    try:
        drawn: Drawn = plan.mechanism.draw(plan, records, watch, progress=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side must do the same
        return Flow({}, watch.streams, watch.consumed, (), type(error).__name__)
    shapes = {name: np.shape(values) for name, values in drawn.draws.items()}
    return Flow(shapes, watch.streams, watch.consumed, tuple(str(claim) for claim in drawn.evidence))


def largest_gap(first: Mapping[str, Array] | Array, second: Mapping[str, Array] | Array) -> float:
    """The Euclidean distance of two statistics, over all their arrays together."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return float(np.sqrt(sum(np.sum((np.asarray(first[k]) - np.asarray(second[k])) ** 2) for k in first)))
    return float(np.linalg.norm(np.asarray(first) - np.asarray(second)))
