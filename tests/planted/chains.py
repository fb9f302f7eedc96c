"""Bugs planted in DP-MCMC: what one record can do to an accepted or rejected step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.audit import Pair, Subject
from discreet.audit.subject import Outputs, Score, draw_many, matrix
from discreet.mechanisms import BarkerMCMC, PenaltyMCMC, Plan, RandomWalk
from discreet.mechanisms.base import Drawn
from discreet.models import BetaBernoulli
from discreet.models.base import Records
from discreet.samplers.randomness import Randomness

from .kit import Array, Attack, attacked, planted


class WithoutNormalNoise(BarkerMCMC):
    """The correction is added, and the normal noise that hides a record is not."""

    def run(self, *given: Any, **named: Any) -> Drawn:
        drawn: Callable[..., tuple[Array, ...]] = named.pop("test_noise")

        def quiet(generator: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, ...]:
            z, correction = drawn(generator, shape)
            return 0.0 * z, correction

        return super().run(*given, **named, test_noise=quiet)


class TemperedTwice(PenaltyMCMC):
    """Ratios are clipped for N0 records, and their sum is then scaled up to n."""

    def run(self, plan: Plan, *given: Any, **named: Any) -> Drawn:
        constants = dict(named.pop("constants"))
        constants["clip"] *= (plan.size or 1) / plan.parameters["tempered_size"]  # pyright: ignore[reportOperatorIssue]
        return super().run(plan, *given, **named, constants=constants)


def balanced(size: int) -> Pair:
    """Half of the records are 1; or all but one of that half."""
    x = np.repeat([1.0, 0.0], size // 2)
    other = x.copy()
    other[0] = 0.0
    return Pair({"x": x}, {"x": other}, why="balanced")


def one_step(plan: Plan, size: int) -> Attack:
    """Whether the first candidate was accepted, and on which side it lay."""

    def side(pair: Pair) -> Score:  # noqa: ARG001
        return lambda outputs: np.sign(matrix(outputs)[:, 0])

    def runs(records: Records, number: int, randomness: Randomness) -> Outputs:
        return draw_many(plan, records, number, randomness)

    named = type(plan.mechanism).__name__
    return Attack(Subject(plan.guarantee, runs, side, named, plan), balanced(size), delta=0.01)


def barker(kind: type[BarkerMCMC]) -> Attack:
    chain = kind(BetaBernoulli((1.0, 1.0)), RandomWalk(0.3))
    return one_step(chain.plan(n=100, steps=1, clip=0.5, variance=2.0), 100)


def penalty(kind: type[PenaltyMCMC]) -> Attack:
    chain = kind(BetaBernoulli((0.1, 0.1)), RandomWalk(3.0), tempered_size=1)
    return one_step(chain.plan(n=200, steps=1, limit=0.4, noise=1.0), 200)


planted(
    "noise of the test left out", attacked, lambda: barker(WithoutNormalNoise), lambda: barker(BarkerMCMC)
)
planted(
    "clipped for another tempering", attacked, lambda: penalty(TemperedTwice), lambda: penalty(PenaltyMCMC)
)
