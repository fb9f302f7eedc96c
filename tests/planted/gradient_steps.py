"""A bug planted in the real loop of noisy gradient steps, as `LangevinDynamics` runs and shows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.audit import Pair, Subject
from discreet.audit.subject import Outputs, Score, draw_many, matrix
from discreet.mechanisms import LangevinDynamics
from discreet.models import LogisticRegression
from discreet.models.base import Records
from discreet.neural.keystream import Keystream, Ratchet
from discreet.privacy import Budget
from discreet.samplers.randomness import Randomness

from .kit import Array, Attack, attacked, planted

STEPS, PRECISION = 4, 1.0


class Stuck(Ratchet):
    """A ratchet that does not move."""

    def next(self) -> Keystream:
        return Ratchet(self.leave()).next()


class StuckSteps(LangevinDynamics):
    """Batch and noise of the first step serve every step."""

    def training(self, *given: Any, **named: Any) -> Any:
        run = super().training(*given, **named)
        run.ratchet = Stuck(run.ratchet.leave())
        return run


def steps_of(kind: type[LangevinDynamics]) -> Attack:
    """A step less its public part is noise and gradient; with one noise, how they differ is all gradient."""
    mechanism = kind(
        LogisticRegression(1, prior_precision=PRECISION),
        neighbours="substitute",
        burn_in=0.0,
        temperature=0.5,
    )
    plan = mechanism.plan(n=2, batch=2, steps=STEPS, budget=Budget(1.0, 1e-5))
    eta = float(plan.parameters["step_size"])  # pyright: ignore[reportArgumentType]

    def residues(outputs: Outputs) -> Array:
        w = matrix(outputs)
        before = np.concatenate([np.zeros((len(w), 1)), w[:, :-1]], axis=1)
        return w - before * (1 - eta * PRECISION)

    def score(pair: Pair) -> Score:  # noqa: ARG001
        return lambda outputs: np.ptp(residues(outputs), axis=1)

    def runs(records: Records, number: int, randomness: Randomness) -> Outputs:
        return draw_many(plan, records, number, randomness)

    pair = Pair(
        {"x": [[1.0], [0.0]], "y": [1.0, 0.0]}, {"x": [[0.0], [0.0]], "y": [1.0, 0.0]}, why="an empty row"
    )
    return Attack(Subject(plan.guarantee, runs, score, kind.__name__, plan), pair, trials=200, delta=1e-5)


planted(
    "noise of one step in the real loop",
    attacked,
    lambda: steps_of(StuckSteps),
    lambda: steps_of(LangevinDynamics),
)
