"""Figures 9 and 10 and the rows abalone and adult of Table I: logistic regression by samples of q.

All epsilons are those of the same runs: the guarantee (presence and substitution), the Bayesian epsilon
from shadow trajectories of everybody (nothing estimated, persons summed whole), and the accounting that the
paper prints: one-step updates (ERRATA 10), a product of expectations (8), Student's t (9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from style import BLUE, GREEN, GREY, ORANGE, plt

from discreet.data import load
from discreet.mechanisms import LangevinDynamics, Plan, Release, VariationalSamples, VariationalStart
from discreet.models import LogisticRegression
from discreet.neural import Flat
from discreet.privacy import Budget, ObservedRun, PublishedBayesianAccountant, gaussian, poisson_gaussian

Array = NDArray[np.float64]

DELTA, GAMMA, SAMPLES, RATE, TRIALS, PAIRS = 1e-5, 1e-15, 50, 0.5, 4, 64
BUDGETS = (0.2, 1.0, 5.0)


@dataclass(frozen=True)
class Task:
    """A table split in two; rows have norm 1."""

    name: str
    x: Array
    y: Array
    x_test: Array
    y_test: Array

    @property
    def model(self) -> LogisticRegression:
        return LogisticRegression(features=self.x.shape[1], prior_precision=0.01)

    @property
    def records(self) -> dict[str, Array]:
        return {"x": self.x, "y": self.y}


def unit(x: Array) -> Array:
    """Rows of norm 1, or a hair less."""
    return x / np.linalg.norm(x, axis=1, keepdims=True) * (1 - 1e-12)


def abalone() -> Task:
    records = load("abalone").encode(scale="centred", drop_first=True)
    x, y = unit(records["x"]), records["y"]
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[:2784], order[2784:]
    return Task("abalone", x[train], y[train], x[test], y[test])


def adult() -> Task:
    columns = [c for c in load("adult_train").schema.columns if c != "income"]
    train, test = (
        load(f"adult_{part}").encode(columns=columns, scale="centred", drop_first=True)
        for part in ("train", "test")
    )
    return Task("adult", unit(train["x"]), train["y"], unit(test["x"]), test["y"])


def accuracy(release: Release, task: Task) -> float:
    """Of the majority of probabilities, averaged over draws; a release is public."""
    return float(((release.predict(task.x_test).mean[:, 1] > 0.5) == (task.y_test > 0.5)).mean())


def not_private(task: Task) -> float:
    """The accuracy of the posterior mode, by Newton steps."""
    w = np.zeros(task.x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-task.x @ w))
        hessian = (task.x * (p * (1 - p))[:, None]).T @ task.x + 0.01 * np.eye(len(w))
        w += np.linalg.solve(hessian, task.x.T @ (task.y - p) - 0.01 * w)
    return float(((task.x_test @ w > 0) == (task.y_test > 0.5)).mean())


def printed(plan: Plan, release: Release, task: Task) -> float:
    """What the paper's accounting says of the run: what an update moves q by in that step alone."""
    p: Mapping[str, Any] = plan.parameters
    samples = release.draws["w"]
    accountant = PublishedBayesianAccountant(pairs=PAIRS, gamma=GAMMA)
    # q has the public precision; distances are in its standard deviations. One sample, no sampling of people.
    scale = p["rate"] * p["tempered_size"] / len(task.x) / np.sqrt(p["precision"])
    accountant.begin(ObservedRun(1.0, 1.0, float(scale), len(samples), plan.guarantee, "add_remove"))
    rng = np.random.default_rng(8)
    for w in samples:
        people = rng.choice(len(task.x), size=PAIRS, replace=False)
        slope = np.abs(task.y[people] - 1 / (1 + np.exp(-task.x[people] @ w)))
        accountant.observe(scale * slope * np.linalg.norm(task.x[people], axis=1))
    return accountant.result().reveal().epsilon(DELTA)


def ours(task: Task, epsilon: float, trials: int) -> dict[str, float]:
    """Samples at a budget: accuracies of several runs, and all epsilons of the first."""
    n, budget = len(task.x), Budget(epsilon, DELTA)
    followed = VariationalSamples(task.model, shadows=n, burn_in=0.0, rate=RATE)
    plan = followed.plan(n=n, budget=budget, steps=SAMPLES)
    release = plan.release(task.records, key=3)
    people = release.diagnostics["people"].reveal()  # public tables: the experiment may look
    plain = VariationalSamples(task.model, burn_in=0.0, rate=RATE).plan(n=n, budget=budget, steps=SAMPLES)
    reached = [accuracy(plain.release(task.records, key=100 + t), task) for t in range(trials)]
    p: Mapping[str, Any] = plan.parameters
    step = followed.step(n, float(p["tempered_size"]))
    mu = step.weight * step.clip * np.sqrt(SAMPLES / step.high)
    return {
        "accuracy": float(np.mean(reached)),
        "deviation": float(np.std(reached, ddof=1)) if trials > 1 else 0.0,
        "records that count": float(p["tempered_size"]),
        "DP": plan.guarantee.epsilon(DELTA),
        "DP, presence": gaussian(1 / mu, neighbours="add_remove").epsilon(DELTA),
        "BDP as published": printed(plan, release, task),
        "BDP corrected": people.result(DELTA).reveal().epsilon,
        "BDP corrected, tail": people.result(DELTA, definition="tail").reveal().epsilon,
        "BDP corrected, adaptive": people.result(DELTA, adaptive=True).reveal().epsilon,
        "largest share of the bound": float((people.log_moments[2] / people.largest[2]).max()),
        "median share of the bound": float(np.median(people.log_moments[2] / people.largest[2])),
    }


def dpvi(task: Task, epsilon: float, trials: int) -> dict[str, float]:
    """DP variational inference (Jalko et al.): the fit itself is released; accuracy of its mean."""
    plan = VariationalStart(task.model).plan(
        n=len(task.x), budget=Budget(epsilon, DELTA), steps=300, rate=min(1.0, 500 / len(task.x))
    )
    p: Mapping[str, Any] = plan.parameters
    reached: list[float] = []
    for t in range(trials):
        w = plan.release(task.records, key=200 + t).draws["w"][0]
        reached.append(float(((task.x_test @ w > 0) == (task.y_test > 0.5)).mean()))
    return {
        "accuracy": float(np.mean(reached)),
        "deviation": float(np.std(reached, ddof=1)) if trials > 1 else 0.0,
        "DP": plan.guarantee.epsilon(DELTA),
        "DP, presence": poisson_gaussian(
            p["rate"], p["noise_multiplier"], p["steps"], neighbours="add_remove"
        ).epsilon(DELTA),
    }


def sgld(task: Task, epsilon: float, trials: int) -> dict[str, float]:
    """DP-SGLD at a temperature of its own noise, under presence; accuracy of the second half of its draws."""
    mechanism = LangevinDynamics(
        task.model, clipping=Flat(1.0), tempered_size=len(task.x), neighbours="add_remove", thin=10
    )
    plan = mechanism.plan(
        n=len(task.x),
        batch=min(500, len(task.x) // 5),
        steps=300,
        budget=Budget(epsilon, DELTA, "add_remove"),
    )
    reached = [accuracy(plan.release(task.records, key=300 + t), task) for t in range(trials)]
    return {
        "accuracy": float(np.mean(reached)),
        "deviation": float(np.std(reached, ddof=1)) if trials > 1 else 0.0,
        "DP, presence": plan.guarantee.epsilon(DELTA),
    }


def run(task: Task, out: Path, quick: bool) -> dict[str, Any]:
    """Accuracy and all epsilons at every budget, drawn as the paper's figure."""
    large = len(task.x) > 10_000
    budgets = (1.0,) if quick else BUDGETS
    trials = 1 if quick else TRIALS // 2 if large else TRIALS
    found: dict[str, Any] = {
        "accuracy, not private": not_private(task),
        "samples of q": {f"{e:g}": ours(task, e, trials) for e in budgets},
        "DPVI": {f"{e:g}": dpvi(task, e, trials) for e in budgets},
        "DP-SGLD": {f"{e:g}": sgld(task, e, trials) for e in budgets},
    }
    draw(task, found, out)
    return found


CURVES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("samples of q", "DP, presence", "samples of q, DP", {"color": BLUE, "ls": ":"}),
    ("samples of q", "BDP corrected", "samples of q, Bayesian DP corrected", {"color": BLUE}),
    ("samples of q", "BDP as published", "samples of q, as published", {"color": ORANGE, "ls": "--"}),
    ("DPVI", "DP, presence", "DPVI, DP", {"color": GREEN}),
    ("DP-SGLD", "DP, presence", "DP-SGLD, DP", {"color": GREY}),
)


def draw(task: Task, found: dict[str, Any], out: Path) -> None:
    """Test accuracy against epsilon; a band of one standard deviation between runs."""
    figure, axis = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    axis.axhline(found["accuracy, not private"], color="black", lw=0.8, label="not private")
    for rows, epsilon, label, style in CURVES:
        points = sorted(
            (row[epsilon], row["accuracy"], row["deviation"])
            for row in found[rows].values()
            if row[epsilon] > 0
        )
        x, y, e = np.array(points).T
        axis.plot(x, y, label=label, marker=".", **style)
        axis.fill_between(x, y - e, y + e, color=style["color"], alpha=0.15, lw=0)
    axis.set(
        xscale="log",
        xlabel=f"epsilon at delta {DELTA:g}, presence of a person",
        ylabel="test accuracy",
        title=task.name,
    )
    axis.legend(fontsize=7, loc="best")
    figure.savefig(out, dpi=150)
    plt.close(figure)
