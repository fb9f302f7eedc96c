"""A whole audit of one plan: several hard pairs, many runs in parallel within a time limit, and replay."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.bounds import claimed_mu, epsilon_of, epsilon_of_mu
from discreet.audit.membership import Found, attack
from discreet.audit.pairs import random_pairs, worst_pair
from discreet.audit.replay import Replayed, sensitivity
from discreet.audit.subject import Outputs, Pair, matrix, subject
from discreet.mechanisms.base import Plan, versions
from discreet.privacy import Guarantee, checks
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
PlanMaker = Callable[[], Plan]
_LEAST, _LARGEST_CHUNK = 200, 20_000
_DELTAS = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)


@dataclass(frozen=True)
class Audited:
    """What an audit found.

    Attributes:
        plan: what was attacked.
        found: one finding per pair.
        replayed: what replay found.
        minutes: how long it took.
        processes: how many worked.
        complete: whether every run that was asked for was made before time was up.
    """

    plan: Plan
    found: tuple[Found, ...]
    replayed: Replayed
    minutes: float
    processes: int
    complete: bool
    about: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def passes(self) -> bool:
        """Whether nothing was found that the plan excludes."""
        return self.replayed.passes and all(found.passes for found in self.found)

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain values: what audit.json holds, and audit.html shows."""
        guarantee = self.plan.guarantee
        delta = self.found[0].delta
        return {
            "format": 1,
            **self.about,
            "plan": self.plan.to_dict(),
            "plan_hash": self.plan.hash(),
            "versions": versions(),
            "passes": self.passes,
            "delta": delta,
            "claimed": _plain(guarantee.epsilon(delta)),
            "claimed_curve": [[d, _plain(guarantee.epsilon(d))] for d in _DELTAS],
            "claimed_trade_off": trade_off(guarantee).tolist(),
            "attacks": [
                {**found.to_dict(), "measured_curve": _measured(found, guarantee)} for found in self.found
            ],
            "replay": {
                "passes": self.replayed.passes,
                "pairs": self.replayed.pairs,
                "moved": [[m.name, m.measured, m.declared, m.passes] for m in self.replayed.moved],
                "flow": list(self.replayed.flow),
                "disclosed": list(self.replayed.disclosed),
                "undeclared": self.replayed.undeclared,
            },
            "minutes": round(self.minutes, 2),
            "processes": self.processes,
            "complete": self.complete,
        }


def campaign(
    make: PlanMaker,
    *,
    trials: int = 20_000,
    minutes: float = 10.0,
    confidence: float = 0.999,
    delta: float | None = None,
    processes: int | None = None,
    key: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Audited:
    """Attack a plan on hard pairs, with all cores, until `trials` runs are made or `minutes` are over.

    Half of the time goes to each pair. Runs that are there when time is up count; what
    is reported is valid for any number of them, because the number was not chosen by
    their outcomes.

    Args:
        make: the plan; called again in every process, and so picklable.
        trials: runs on each of the two data sets of a pair.
        minutes: for the runs; the search for pairs and replay come on top.
        confidence: of each bound by itself.
        delta: where epsilon is bounded; None is 0 or 1e-5.
        processes: None is one per core.
        key: makes the audit reproducible, if it is not cut short.
        progress: is told the share that is done.
    """
    checks.integer("trials", trials, at_least=_LEAST)
    checks.real("minutes", minutes, above=0.0)
    began = time.monotonic()
    plan = make()
    randomness = Randomness(key)
    thing = subject(plan)
    pairs = [thing.checked(pair) for pair in _pairs(plan)]
    workers = processes or os.cpu_count() or 1
    found: list[Found] = []
    complete = True
    with _pool(workers, make) as submit:
        for place, pair in enumerate(pairs):
            share = (place, len(pairs))
            ends = time.monotonic() + 60 * minutes / len(pairs)
            first, second, whole = _runs(submit, pair, trials, ends, workers, randomness, share, progress)
            complete &= whole
            score = None if thing.log_ratio is None else thing.log_ratio(pair)
            scores = [] if score is None else [("the best attack there is", score)]
            found.append(
                attack(
                    first,
                    second,
                    plan.guarantee,
                    scores=scores,
                    learn=not scores,
                    confidence=confidence,
                    delta=delta,
                    key=randomness.integer() % 2**32,
                    name=thing.name,
                    pair=pair.why,
                )
            )
    more = random_pairs(plan, 3, seed=randomness.integer())
    replayed = sensitivity(plan, [*pairs, *more], runs=1, key=randomness.integer())
    if progress is not None:
        progress(1.0)
    return Audited(plan, tuple(found), replayed, (time.monotonic() - began) / 60, workers, complete)


def _pairs(plan: Plan) -> list[Pair]:
    """The worst pairs of two searches, where they differ."""
    first, second = (worst_pair(plan, seed=seed) for seed in (0, 1))
    same = all(
        np.array_equal(np.asarray(a[k]), np.asarray(b[k]))
        for a, b in zip(first.sides, second.sides, strict=True)
        for k in a
    )
    return [first] if same else [first, second]


# --- runs in parallel ---------------------------------------------------------------

_PLAN: list[Plan] = []
"""The plan of this process."""


def _begin(make: PlanMaker) -> None:
    _PLAN[:] = [make()]


def _chunk(pair: Pair, runs: int, seed: int) -> tuple[Outputs, Outputs, float]:
    """Runs on both sides of a pair, and how long they took."""
    began = time.monotonic()
    randomness, thing = Randomness(seed), subject(_PLAN[0])
    sides: Any = pair.sides
    first, second = (thing.draw_many(dict(side), runs, randomness) for side in sides)
    return first, second, time.monotonic() - began


Submit = Callable[[Pair, int, int], "Future[tuple[Outputs, Outputs, float]]"]


@contextmanager
def _pool(workers: int, make: PlanMaker) -> Iterator[Submit]:
    """Other processes, or this one if there is only one."""
    if workers == 1:
        _begin(make)

        def here(pair: Pair, runs: int, seed: int) -> Future[tuple[Outputs, Outputs, float]]:
            done: Future[tuple[Outputs, Outputs, float]] = Future()
            done.set_result(_chunk(pair, runs, seed))
            return done

        yield here
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin, initargs=(make,))
    try:
        yield lambda pair, runs, seed: pool.submit(_chunk, pair, runs, seed)
    finally:
        pool.shutdown(cancel_futures=True)


def _runs(  # noqa: PLR0917 - inside
    submit: Submit,
    pair: Pair,
    trials: int,
    ends: float,
    workers: int,
    randomness: Randomness,
    share: tuple[int, int],
    progress: Callable[[float], None] | None,
) -> tuple[Outputs, Outputs, bool]:
    """Runs of one pair, in equal chunks, until there are enough or time is up; in the order of their seeds.

    Whatever chunk is late is left out, together with all after it, so that which runs
    count depends on the clock and not on their outcomes.
    """
    chunk = max(_LEAST, min(_LARGEST_CHUNK, math.ceil(trials / (4 * workers))))
    number = math.ceil(trials / chunk)
    waiting: dict[Future[tuple[Outputs, Outputs, float]], int] = {}
    parts: dict[int, tuple[Outputs, Outputs]] = {}
    asked = 0
    while len(parts) < number:
        while asked < number and len(waiting) < workers and (time.monotonic() < ends or asked < workers):
            waiting[submit(pair, chunk, randomness.integer())] = asked
            asked += 1
        if not waiting:
            break
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for one in done:
            first, second, _ = one.result()
            parts[waiting.pop(one)] = first, second
            if progress is not None:
                progress((share[0] + len(parts) / number) / share[1])
    order = [parts[k] for k in range(len(parts))]
    joined = [_joined([part[side] for part in order], trials) for side in (0, 1)]
    return joined[0], joined[1], len(parts) == number


def _joined(parts: list[Outputs], most: int) -> Outputs:
    first = parts[0]
    if isinstance(first, dict):
        return {name: np.concatenate([p[name] for p in parts])[:most] for name in first}  # pyright: ignore[reportArgumentType, reportCallIssue]
    return np.concatenate([matrix(part) for part in parts])[:most]


# --- what the page shows ------------------------------------------------------------


def trade_off(claim: Guarantee, points: int = 65) -> Array:
    """The claimed trade-off: rows (false positive rate, the least false negative rate that is allowed)."""
    wrong = np.unique(np.concatenate([np.linspace(0, 1, points), np.geomspace(1e-4, 0.1, 16)]))
    least = np.zeros_like(wrong)
    pure = claim.epsilon(0.0)
    top = pure if math.isfinite(pure) else claim.epsilon(1e-6)
    for epsilon in np.linspace(0.0, min(top, 30.0) if math.isfinite(top) else 30.0, 17).tolist():
        rest = 1 - claim.delta(epsilon)
        least = np.maximum(least, rest - math.exp(epsilon) * wrong)
        least = np.maximum(least, math.exp(-epsilon) * (rest - wrong))
    return np.stack([wrong, np.maximum(least, 0.0)], axis=1)


def _measured(found: Found, claim: Guarantee) -> list[list[float | None]]:
    """Lower bounds on epsilon at several deltas, from the same events."""
    failure = (1 - found.confidence) / len(found.events)
    rows: list[list[float | None]] = []
    for delta in _DELTAS:
        values = [float(epsilon_of(*event.limits(failure), delta)) for event in found.events]
        if found.mu is not None and claimed_mu(claim) is not None and delta > 0:
            values.append(epsilon_of_mu(found.mu, delta))
        rows.append([delta, _plain(max(values))])
    return rows


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
