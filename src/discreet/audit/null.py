"""Does the auditor keep its promise? Fed two identical mechanisms, it must hardly ever see a difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from discreet.audit.membership import Found, membership
from discreet.audit.subject import Outputs, Pair, Subject
from discreet.models.base import Records
from discreet.privacy import checks, pure
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]


class Auditor(Protocol):
    """Whatever attacks a subject on a pair, such as `membership`."""

    def __call__(self, audited: Subject, pair: Pair, *, key: int) -> Found:
        """What it found."""
        ...


@dataclass(frozen=True)
class Null:
    """What an auditor said of mechanisms that do not read their records.

    Attributes:
        alarms: how often it reported an epsilon above 0.
        repetitions: of how many.
        rate: how often it may, by its own confidence.
        allowed: the most alarms that an auditor of that rate exceeds once in a thousand.
    """

    alarms: int
    repetitions: int
    rate: float
    allowed: int

    @property
    def passes(self) -> bool:
        """Whether it kept to its rate."""
        return self.alarms <= self.allowed

    def describe(self) -> str:
        """The result in words."""
        verdict = "as promised" if self.passes else "TOO OFTEN"
        return (
            f"{self.alarms} false alarms in {self.repetitions} audits of mechanisms that read nothing: "
            f"{verdict}; its confidence allows a rate of {self.rate:g}, and chance {self.allowed}"
        )


def null(auditor: Auditor | None = None, *, repetitions: int = 200, key: int | None = None) -> Null:
    """Feed an auditor mechanisms that give the same outputs on all records.

    Their outputs are normal, of a few values, the same value always, or vectors with heavy tails, in turn.

    Args:
        auditor: takes a subject and a pair, with a `key`; None is `membership` with 2,000
            runs, once in a thousand wrong.
        repetitions: how many audits.
        key: makes the test reproducible.

    Example:
        >>> null(repetitions=20, key=1).passes
        True
    """
    checks.integer("repetitions", repetitions, at_least=1)
    chosen = auditor or partial(membership, trials=2_000)
    randomness = Randomness(key)
    pair = Pair({"x": [0.0]}, {"x": [1.0]}, "made up")
    alarms, rate = 0, 0.0
    for k in range(repetitions):
        name, outputs = _BLIND[k % len(_BLIND)]
        subject = Subject(pure(0.0, neighbours="substitute"), outputs, name=name)
        found = chosen(subject, pair, key=randomness.integer())
        alarms += found.epsilon > 0 or not found.passes
        rate = max(rate, 1 - found.confidence)
    return Null(alarms, repetitions, rate, int(stats.binom.isf(1e-3, repetitions, rate)))


def _normal(records: Records, runs: int, randomness: Randomness) -> Outputs:
    del records
    return randomness.numpy().standard_normal((runs, 1))


def _few(records: Records, runs: int, randomness: Randomness) -> Outputs:
    del records
    return randomness.numpy().integers(0, 4, (runs, 1)).astype(np.float64)


def _constant(records: Records, runs: int, randomness: Randomness) -> Outputs:
    del records, randomness
    return np.ones((runs, 1))


def _heavy(records: Records, runs: int, randomness: Randomness) -> Outputs:
    del records
    return randomness.numpy().standard_cauchy((runs, 3))


_BLIND: list[tuple[str, Callable[[Records, int, Randomness], Outputs]]] = [
    ("normal, whatever the records", _normal),
    ("one of four values, whatever the records", _few),
    ("heavy-tailed vectors, whatever the records", _heavy),
    ("a constant", _constant),
]
