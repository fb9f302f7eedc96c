"""What can be attacked: a public claim, and a way to run the real thing many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.mechanisms.base import Mechanism, Plan
from discreet.models.base import Records, count
from discreet.privacy import Guarantee, Neighbours
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
Outputs = Array | Mapping[str, Array]
"""What many runs gave: one array, or arrays by name; leading axis = run."""

Score = Callable[[Outputs], Array]
"""From outputs to one number per run; large means that the records are likelier than their neighbour."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets, made up; an audit never reads anybody's data.

    Attributes:
        records: named arrays, leading axis = record.
        neighbour: the same with one record substituted, or with one more or one fewer.
        why: how they were found.
    """

    records: Mapping[str, ArrayLike]
    neighbour: Mapping[str, ArrayLike]
    why: str = "given"

    def differing(self) -> tuple[Records, Records]:
        """The records that only one side has, on each side."""
        here, there = ({k: np.asarray(v, np.float64) for k, v in side.items()} for side in self.sides)
        first, second = _rows(here), _rows(there)
        return _without(here, first, second), _without(there, second, first)

    @property
    def sides(self) -> tuple[Mapping[str, ArrayLike], Mapping[str, ArrayLike]]:
        """Both data sets."""
        return self.records, self.neighbour

    def swapped(self) -> Pair:
        """The same pair in the other order."""
        return Pair(self.neighbour, self.records, self.why)

    def check(self, neighbours: Neighbours) -> None:
        """Refuse two data sets that are no neighbours."""
        first, second = (count({k: np.asarray(v) for k, v in side.items()}) for side in self.sides)
        one, other = (count(side) for side in self.differing())
        allowed = (
            first == second and one <= 1 and other <= 1
            if neighbours is Neighbours.SUBSTITUTE
            else abs(first - second) == 1 and one + other == 1
        )
        if not allowed:
            raise ValueError(
                f"a pair must be neighbours under {neighbours}, got {first} and {second} records of which "
                f"{one} and {other} are not on the other side; change, add or remove one record"
            )


def _rows(records: Records) -> Array:
    flat = np.concatenate([v.reshape(len(v), -1) for _, v in sorted(records.items())], axis=1)
    return flat + 0.0  # -0.0 is no other record than 0.0


def _without(records: Records, rows: Array, others: Array) -> Records:
    """The records whose row the other side does not have, counted with repetition."""
    left: dict[bytes, int] = {}
    for row in others:
        left[row.tobytes()] = left.get(row.tobytes(), 0) + 1
    kept: list[int] = []
    for k, row in enumerate(rows):
        if left.get(row.tobytes(), 0):
            left[row.tobytes()] -= 1
        else:
            kept.append(k)
    return {name: values[kept] for name, values in records.items()}


@dataclass(frozen=True)
class Subject:
    """A claim and a way to run what made it, many times.

    Everything that `discreet.audit` attacks is one of these; `subject(plan)` makes one
    of a plan, and a function makes one of anything else.

    Attributes:
        guarantee: the public claim.
        draw_many: (records, runs, randomness) to the outputs of that many independent runs.
        log_ratio: from a pair to a score, if the best one is known; the log density of an
            output under the records minus that under the neighbour, up to a constant.
        name: for people.
        plan: the plan behind it, if there is one.

    Example:
        >>> from discreet.privacy import laplace
        >>> def noisy_sum(records, runs, randomness):
        ...     return records["x"].sum() + randomness.numpy().laplace(0, 1, (runs, 1))
        >>> claim = laplace(1.0, sensitivity=1.0, neighbours="substitute")
        >>> thing = Subject(claim, noisy_sum, name="a noisy sum")
        >>> from discreet.audit import Pair, membership
        >>> membership(thing, Pair({"x": [0.0]}, {"x": [1.0]}), trials=20_000, key=1).passes
        True
    """

    guarantee: Guarantee
    draw_many: Callable[[Records, int, Randomness], Outputs]
    log_ratio: Callable[[Pair], Score | None] | None = None
    name: str = "subject"
    plan: Plan | None = None

    def checked(self, pair: Pair) -> Pair:
        """The pair as the mechanism sees it, if the two are neighbours as they were given.

        What validation makes of neighbours may differ in more: a model that scales by its
        table is to be attacked, not refused.
        """
        pair.check(self.guarantee.neighbours)
        sides: list[Records] = []
        for side in pair.sides:
            if self.plan is not None:
                sides.append(self.plan.mechanism.model.validate(side))
            else:
                sides.append({k: np.asarray(v, np.float64) for k, v in side.items()})
        found = Pair(sides[0], sides[1], pair.why)
        size = None if self.plan is None else self.plan.size
        if size is not None and count(sides[0]) != size:
            raise ValueError(
                f"a pair must have as many records as the plan, {size}, got {count(sides[0])}; "
                "plan for the size of the pair"
            )
        return found


def subject(audited: Plan | Subject) -> Subject:
    """A plan, as what can be attacked; runs the mechanism's own `draw`."""
    if isinstance(audited, Subject):
        return audited
    mechanism = type(audited.mechanism).__name__
    return Subject(
        guarantee=audited.guarantee,
        draw_many=partial(draw_many, audited),
        log_ratio=partial(log_ratio, audited),
        name=f"{mechanism} on {type(audited.mechanism.model).__name__}",
        plan=audited,
    )


# --- tables by mechanism type -------------------------------------------------------


class Table:
    """Functions by mechanism type, that hold for a subclass as long as it draws in the same way."""

    def __init__(self) -> None:
        self._functions: dict[type[Mechanism], Callable[..., Any]] = {}

    def register(self, kind: type[Mechanism]) -> Callable[[F], F]:
        """A decorator that enters a function for a mechanism type."""

        def enter(function: F) -> F:
            self._functions[kind] = function
            return function

        return enter

    def find(self, mechanism: Mechanism) -> Callable[..., Any] | None:
        """The function of the nearest registered type, unless a subclass has its own `draw`."""
        for kind in type(mechanism).__mro__:
            if kind in self._functions:
                return self._functions[kind] if type(mechanism).draw is kind.draw else None  # pyright: ignore[reportAttributeAccessIssue]
        return None


DRAWS = Table()
"""(plan, records, runs, randomness) -> Outputs: the mechanism's own code, many runs at once."""

SCORES = Table()
"""(plan, pair) -> Score or None: the best attack on an output, where it is known."""


def draw_many(plan: Plan, records: Records, runs: int, randomness: Randomness) -> Outputs:
    """What `runs` independent releases of these records would publish, by the mechanism's own code.

    A mechanism without an entry in the table, or with a `draw` of its own, is run one release at a time.
    """
    together = DRAWS.find(plan.mechanism)
    if together is not None:
        return together(plan, records, runs, randomness)
    return one_by_one(plan, records, runs, randomness)


def one_by_one(plan: Plan, records: Records, runs: int, randomness: Randomness) -> dict[str, Array]:
    """`mechanism.draw` in a loop; what it publishes and nothing else."""
    seen: list[dict[str, Array]] = []
    for _ in range(runs):
        own = Randomness(randomness.integer())
        seen.append(plan.mechanism.draw(plan, records, own, progress=False).draws)
    return {name: np.stack([draws[name] for draws in seen]) for name in seen[0]}


def log_ratio(plan: Plan, pair: Pair) -> Score | None:
    """The best attack on the plan's outputs, if it is known."""
    known = SCORES.find(plan.mechanism)
    return None if known is None else known(plan, pair)


def number(plan: Plan, name: str) -> float:
    """A number that the plan fixed."""
    return float(cast("float", plan.parameters[name]))


def grouped(draws: Mapping[str, Array], runs: int) -> dict[str, Array]:
    """Draws of many runs, cut into runs."""
    return {name: np.asarray(v).reshape(runs, -1, *np.shape(v)[1:]) for name, v in draws.items()}


def matrix(outputs: Outputs) -> Array:
    """Outputs as one row of numbers per run."""
    parts = [outputs] if not isinstance(outputs, Mapping) else [outputs[name] for name in sorted(outputs)]
    return np.concatenate([np.asarray(p, np.float64).reshape(len(p), -1) for p in parts], axis=1)


def cut(outputs: Outputs, start: int, stop: int | None) -> Outputs:
    """Some of the runs."""
    if isinstance(outputs, Mapping):
        return {name: values[start:stop] for name, values in outputs.items()}
    return outputs[start:stop]


def runs_of(outputs: Outputs) -> int:
    """How many runs."""
    return len(next(iter(outputs.values())) if isinstance(outputs, Mapping) else outputs)
