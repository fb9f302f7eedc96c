"""Bugs planted in output perturbation and in perturbed statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.audit import Pair
from discreet.mechanisms import OutputPerturbation, PerturbedStatistics, Plan
from discreet.mechanisms._lattice_noise import Noise
from discreet.mechanisms.output_perturbation import Norm, as_published_scale
from discreet.mechanisms.perturbed_statistics import Reading
from discreet.models import DirichletCategorical, LogisticRegression
from discreet.models.base import Records, count
from discreet.privacy import Budget
from discreet.samplers.randomness import Randomness

from .kit import Array, Attack, attacked, column, planted

# --- noise off by a factor of two -------------------------------------------------------


class HalfTheNoise(OutputPerturbation):
    """The scale is taken for a diameter."""

    def around(self, centre: Array, plan: Plan, randomness: Randomness, times: int) -> Array:
        halved = replace(plan, parameters={**plan.parameters, "scale": 0.5 * plan.parameters["scale"]})  # pyright: ignore[reportOperatorIssue]
        return super().around(centre, halved, randomness, times)


def pulled(size: int) -> Pair:
    """All rows but one pull one way; the last pulls against it to one side or to the other.

    Its gradient then has nearly the norm c on both sides, and turns by nearly 2 c.
    """
    x = np.tile([1.0, 0.0], (size, 1))
    y = np.ones(size)
    sides: list[Records] = []
    for aside in (1.0, -1.0):
        x[0] = [-0.45, aside * math.sqrt(1 - 0.45**2)]
        sides.append({"x": x.copy(), "y": y})
    return Pair(*sides, why="by hand")


def halved(kind: type[OutputPerturbation]) -> Attack:
    mechanism = kind(LogisticRegression(features=2), regularisation=1e-3)
    return Attack(mechanism.plan(1000, budget=Budget(2.0)), pulled(1000))


planted("half the noise", attacked, lambda: halved(HalfTheNoise), lambda: halved(OutputPerturbation))


# --- paper B, Theorem 4 (ERRATA 1) ------------------------------------------------------


class PublishedScale(OutputPerturbation):
    """Paper B's Laplace scale: the L2 sensitivity stands for the L1 sensitivity."""

    def plan(self, n: int, *, budget: Budget) -> Plan:
        plan = super().plan(n, budget=budget)
        scale = as_published_scale(n, self.regularisation, budget.epsilon)
        return replace(plan, parameters={**plan.parameters, "scale": scale})


def lone_row() -> Pair:
    """ERRATA 1: 99 rows at 0 and one at (1, .., 1), with either outcome."""
    x = np.zeros((100, 10))
    x[0] = 1.0
    return Pair({"x": x, "y": np.r_[1.0, np.zeros(99)]}, {"x": x, "y": np.zeros(100)}, why="ERRATA 1")


def erratum_1(kind: type[OutputPerturbation]) -> Attack:
    model = LogisticRegression(features=10, row_norm=math.sqrt(10))
    mechanism = kind(model, regularisation=1 / 9, norm=Norm.COORDINATES)
    return Attack(mechanism.plan(100, budget=Budget(1.0)), lone_row())


planted(
    "published sensitivity of the minimiser",
    attacked,
    lambda: erratum_1(PublishedScale),
    lambda: erratum_1(OutputPerturbation),
)


# --- what the sensitivity was proved for is not enforced ---------------------------------


@dataclass(frozen=True)
class ScaledAfterwards(LogisticRegression):
    """Rows are clipped, and then brought to another unit."""

    def admit(self, records: Records) -> Records:
        found = super().admit(records)
        return {"x": 4 * found["x"], "y": found["y"]}


@dataclass(frozen=True)
class ScaledByTheTable(LogisticRegression):
    """Features are brought to [0, 1] by the smallest and the largest value in the table (ERRATA 16)."""

    def admit(self, records: Records) -> Records:
        x = records["x"]
        low, high = x.min(axis=0), x.max(axis=0)
        return super().admit({"x": (x - low) / np.where(high > low, high - low, 1.0), "y": records["y"]})


def modelled(model: LogisticRegression, pair: Pair) -> Attack:
    plan = OutputPerturbation(model, regularisation=0.5).plan(count(column(pair.records)), budget=Budget(1.0))
    return Attack(plan, pair)


def either_way() -> Pair:
    """One row as long as the model allows, with either outcome."""
    x = np.zeros((100, 1))
    x[0] = 1.0
    return Pair({"x": x, "y": np.r_[1.0, np.zeros(99)]}, {"x": x, "y": np.zeros(100)}, why="by hand")


def outlier() -> Pair:
    """Two groups apart, and then one row so far out that next to it they are one."""
    x, y = np.repeat([0.0, 1.0], 50)[:, None], np.repeat([0.0, 1.0], 50)
    far = x.copy()
    far[-1] = -1000.0
    return Pair({"x": x, "y": y}, {"x": far, "y": y}, why="an outlier")


planted(
    "clipped before scaling",
    attacked,
    lambda: modelled(ScaledAfterwards(1), either_way()),
    lambda: modelled(LogisticRegression(1), either_way()),
)
planted(
    "bounds read off the table",
    attacked,
    lambda: modelled(ScaledByTheTable(1), outlier()),
    lambda: modelled(LogisticRegression(1), outlier()),
)


# --- perturbed statistics -----------------------------------------------------------------


@dataclass(frozen=True)
class OneCategory(DirichletCategorical):
    """A record leaves one category; that it also enters another is forgotten."""

    @property
    def movable(self) -> int:
        return 1


def counted(model: DirichletCategorical) -> Attack:
    plan = PerturbedStatistics(model, noise=Noise.LAPLACE, posterior=Reading.NAIVE).plan(
        2, budget=Budget(1.0)
    )
    return Attack(plan, Pair({"x": [0.0, 2.0]}, {"x": [1.0, 2.0]}, why="by hand"), trials=10_000)


planted(
    "one coordinate instead of two",
    attacked,
    lambda: counted(OneCategory((1.0, 1.0, 1.0))),
    lambda: counted(DirichletCategorical((1.0, 1.0, 1.0))),
)
