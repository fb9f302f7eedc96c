"""The classification tasks, and test errors of private draws from their logistic posteriors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.data import load
from discreet.mechanisms import ConcentratedPosterior, DiffusedPosterior, Plan
from discreet.mechanisms.truncated_posterior import TruncatedPosterior
from discreet.models import LogisticRegression
from discreet.models.losses import Gibbs
from discreet.privacy import Budget
from discreet.samplers.exact import ExactRegression
from discreet.samplers.randomness import Randomness

BETA, DELTA = 1e-3, 1e-6
ORDERS = {1: 1 + 1e-9, 10: 10.0, 100: 100.0}
EPSILONS = np.exp(np.arange(-5, 4))
BUDGETS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
REVERSED, MANY = (100.0, float(np.exp(-5))), 20_000
"""Where Algorithm 4 errs less than Algorithm 5 on abalone (errata 19), and how many draws show it."""


@dataclass(frozen=True)
class Task:
    """A classification task with its test records."""

    name: str
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    runs: int
    epsilons: np.ndarray
    budgets: tuple[float, ...]
    knots: int | None = None

    @property
    def model(self) -> LogisticRegression:
        return LogisticRegression(features=self.x.shape[1], prior_precision=BETA * len(self.x))


def unit(x: np.ndarray) -> np.ndarray:
    """Rows of norm 1, or a hair less."""
    return x / np.linalg.norm(x, axis=1, keepdims=True) * (1 - 1e-12)


def abalone(quick: bool) -> Task:
    records = load("abalone").encode(scale="centred", drop_first=True)
    x, y = unit(records["x"]), records["y"]
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[:2784], order[2784:]
    runs, epsilons, budgets = (2000, EPSILONS[::4], BUDGETS[::3]) if quick else (2000, EPSILONS, BUDGETS)
    return Task("abalone", x[train], y[train], x[test], y[test], runs, epsilons, budgets)


def adult() -> Task:
    columns = [c for c in load("adult_train").schema.columns if c != "income"]
    train, test = (
        load(f"adult_{p}").encode(columns=columns, scale="centred", drop_first=True)
        for p in ("train", "test")
    )
    x, x_test = unit(train["x"]), unit(test["x"])
    return Task("adult", x, train["y"], x_test, test["y"], 200, EPSILONS, BUDGETS)


def mnist() -> Task:
    table = load("mnist").frame
    digit = table["digit"].to_numpy()
    keep = np.flatnonzero((digit == 3) | (digit == 8))
    pixels = table.drop("digit").to_numpy()[keep].astype(float)
    x, y = unit(pixels / 255 - 0.5), (digit[keep] == 3).astype(float)  # a pixel is a byte: public bounds
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[:7988], order[7988:]
    return Task("mnist 3 v 8", x[train], y[train], x[test], y[test], 50, EPSILONS, BUDGETS, 16)


class Errors:
    """Test errors of draws, one posterior at a time and each posterior once."""

    def __init__(self, task: Task, seed: int) -> None:
        self.task = task
        self._known: dict[tuple[float, float], dict[str, float]] = {}
        self._randomness = Randomness(seed)
        self._records = task.model.validate({"x": task.x, "y": task.y})

    def of(self, *, precision: float, weight: float) -> dict[str, float]:
        """Mean and standard error over the runs, interpolated if the task has knots."""
        if self.task.knots is None:
            return self._at(precision, weight)
        base = self.task.model.prior_precision
        k = self.task.knots
        if precision > base * (1 + 1e-6):
            assert weight == 1, "the prior is stronger or records count less, never both"
            x, knots = precision, np.geomspace(base, 5e4, k)
            points = [self._at(knot, 1.0) for knot in self._around(x, knots)]
        else:
            x, knots = (
                weight,
                np.concatenate(
                    [np.geomspace(1e-6, 1e-3, k // 4, endpoint=False), np.geomspace(1e-3, 1, k - k // 4)]
                ),
            )
            points = [self._at(base, knot) for knot in self._around(x, knots)]
        near = np.log(self._around(x, knots))
        return {
            name: float(np.interp(math.log(x), near, [p[name] for p in points])) for name in ("mean", "se")
        }

    @staticmethod
    def _around(x: float, knots: np.ndarray) -> np.ndarray:
        """The two knots about x."""
        j = min(max(int(np.searchsorted(knots, x)), 1), len(knots) - 1)
        return knots[j - 1 : j + 1]

    def _at(self, precision: float, weight: float) -> dict[str, float]:
        key = (float(f"{precision:.6g}"), float(f"{weight:.6g}"))
        if key not in self._known:
            model = LogisticRegression(features=self.task.x.shape[1], prior_precision=precision)
            drawn = ExactRegression(gamma=0.0, constant_time=False).sample(
                model, Gibbs(weight), self._records, self._randomness, self.task.runs
            )
            guesses = self.task.x_test @ drawn.draws["w"].T > 0
            self._known[key] = summary((guesses != self.task.y_test[:, None]).mean(0))
        return self._known[key]

    def of_plan(self, plan: Plan) -> dict[str, float]:
        """Of what the plan would draw; several runs share the work before the draw."""
        model = plan.mechanism.model
        assert isinstance(model, LogisticRegression)
        concentration = float(plan.parameters.get("concentration", 1.0))  # pyright: ignore[reportArgumentType]
        weight = float(plan.parameters["weight"])  # pyright: ignore[reportArgumentType]
        return self.of(precision=model.prior_precision / concentration, weight=weight)


def summary(errors: np.ndarray) -> dict[str, float]:
    return {"mean": float(np.mean(errors)), "se": float(np.std(errors, ddof=1) / math.sqrt(len(errors)))}


Row = dict[str, dict[str, dict[str, float]]]


def renyi_errors(task: Task, errors: Errors) -> dict[str, Row]:
    """Figure 3: by order, then by curve, then by epsilon."""
    n, model = len(task.x), task.model
    rows: dict[str, Row] = {}
    for name, order in ORDERS.items():
        row: Row = {"Algorithm 4": {}, "Algorithm 5": {}, "OPS": {}, "OPS as published": {}}
        for epsilon in task.epsilons:
            key = f"{math.log(epsilon):.0f}"
            target = (order, float(epsilon))
            row["Algorithm 4"][key] = errors.of_plan(ConcentratedPosterior(model).plan(n, renyi=target))
            row["Algorithm 5"][key] = errors.of_plan(DiffusedPosterior(model).plan(n, renyi=target))
            # Pure epsilon is a Renyi divergence of at most epsilon at every order. The ball has radius
            # 1/beta = 1000 and leaves out nothing that matters; the sampler of `errors` does not cut it off.
            ops = TruncatedPosterior(model).plan(n, budget=Budget(float(epsilon)))
            row["OPS"][key] = errors.of_plan(ops)
            published = min(1.0, epsilon * BETA / 4)
            row["OPS as published"][key] = errors.of(precision=model.prior_precision, weight=published)
        rows[str(name)] = row
    return rows


def classical_mu(epsilon: float) -> float:
    """The largest mu whose Renyi curve gives (epsilon, DELTA) by the conversion of Mironov (2017)."""
    k = (
        math.sqrt(math.log(1 / DELTA) + epsilon) - math.sqrt(math.log(1 / DELTA))
    ) ** 2  # k + 2 sqrt(k L) = epsilon
    return math.sqrt(2 * k)


def budget_errors(task: Task, errors: Errors) -> Row:
    """Figure 4: the published accounting and ours, at equal (epsilon, delta)."""
    n, model = len(task.x), task.model
    names = (
        "Algorithm 4",
        "Algorithm 5",
        "Algorithm 4 as published",
        "Algorithm 5 as published",
        "OPS",
        "OPS as published",
    )
    row: Row = {name: {} for name in names}
    for epsilon in task.budgets:
        key, budget, mu = f"{epsilon:g}", Budget(epsilon, DELTA), classical_mu(epsilon)
        row["Algorithm 4"][key] = errors.of_plan(ConcentratedPosterior(model).plan(n, budget=budget))
        row["Algorithm 5"][key] = errors.of_plan(DiffusedPosterior(model).plan(n, budget=budget))
        strong = max(4 / mu**2, model.prior_precision)
        row["Algorithm 4 as published"][key] = errors.of(precision=strong, weight=1.0)
        weight = min(1.0, mu * math.sqrt(model.prior_precision) / 2)
        row["Algorithm 5 as published"][key] = errors.of(precision=model.prior_precision, weight=weight)
        ops = TruncatedPosterior(model).plan(n, budget=Budget(epsilon))
        row["OPS"][key] = errors.of_plan(ops)
        published = min(1.0, epsilon * BETA / 4)
        row["OPS as published"][key] = errors.of(precision=model.prior_precision, weight=published)
    return row


def reversal(task: Task) -> dict[str, dict[str, float]]:
    """Test errors of Algorithms 4 and 5 at `REVERSED`, with standard errors a tenth of their difference."""
    settled = replace(task, runs=MANY)
    errors, model, n = Errors(settled, seed=19), task.model, len(task.x)
    return {
        "Algorithm 4": errors.of_plan(ConcentratedPosterior(model).plan(n, renyi=REVERSED)),
        "Algorithm 5": errors.of_plan(DiffusedPosterior(model).plan(n, renyi=REVERSED)),
    }
