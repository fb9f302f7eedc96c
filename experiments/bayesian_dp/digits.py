"""Figures 5 and 6 and the MNIST row of Table I: DP and Bayesian DP of the same runs of private descent."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from style import BLUE, GREEN, GREY, ORANGE, plt

from discreet.data import load
from discreet.mechanisms import Release, Sgd, StochasticGradient
from discreet.models import NeuralNetwork
from discreet.neural import Dense, Flat, Relu
from discreet.privacy import (
    BayesianAccountant,
    Budget,
    ObservedRun,
    PublishedBayesianAccountant,
    attacker_success,
    poisson_gaussian,
)

Array = NDArray[np.float64]

DELTA, GAMMA, PAIRS, BATCH, EPOCHS, WIDTH = 1e-5, 1e-15, 64, 1024, 10, 64
ORDERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 48, 64)  # of the published accountant
RUNS: dict[str, tuple[float | None, float]] = {
    "sigma 0.1": (0.1, 0.5),  # the paper's noise multiplier
    "DP epsilon 2.18": (None, 0.5),  # the noise that the paper's DP baseline has this epsilon with
}


class Until:
    """An accountant of the first `steps` of a run."""

    def __init__(self, accountant: BayesianAccountant | PublishedBayesianAccountant, steps: int) -> None:
        self.accountant, self.steps = accountant, steps

    @property
    def pairs(self) -> int:
        return self.accountant.pairs

    def begin(self, run: ObservedRun) -> None:
        self.seen = 0
        cost = priced(run.rate, run.sigma / run.largest, self.steps)
        self.accountant.begin(replace(run, steps=self.steps, guarantee=cost))

    def observe(self, distances: ArrayLike) -> None:
        if self.seen < self.steps:
            self.accountant.observe(distances)
        self.seen += 1

    def epsilon(self) -> float:
        """At delta; MNIST is public, so that it may be shown."""
        if isinstance(self.accountant, BayesianAccountant):
            return self.accountant.epsilon(DELTA).reveal()
        return self.accountant.result().reveal().epsilon(DELTA)


@lru_cache
def priced(rate: float, sigma: float, steps: int) -> Any:
    return poisson_gaussian(rate, sigma, steps, neighbours="add_remove")


def images(name: str) -> dict[str, Array]:
    frame = load(name).frame
    pixels = frame.drop("digit").to_numpy().astype(np.float32) / 255
    return {"x": pixels, "y": frame["digit"].to_numpy().astype(np.float64)}


def accuracy(release: Release, test: dict[str, Array]) -> float:
    return float((release.predict(test["x"]).mean.argmax(axis=1) == test["y"]).mean())


def distances(model: NeuralNetwork, release: Release, records: dict[str, Array], pairs: int) -> Array:
    """Distances of the clipped gradients of random pairs, at the released parameters."""
    order = np.random.default_rng(0).permutation(len(records["y"]))[: 2 * pairs]
    theta = {name: values[0].astype(np.float32) for name, values in release.draws.items()}

    def one(record: Any) -> Any:
        slope = jax.grad(lambda t: model.log_density(t, record))(theta)
        row = jax.numpy.concatenate([v.reshape(-1) for v in slope.values()])
        return row * jax.numpy.minimum(1.0, 1 / jax.numpy.linalg.norm(row))

    rows = jax.vmap(one)({name: values[order] for name, values in records.items()})
    return np.asarray(jax.numpy.linalg.norm(rows[::2] - rows[1::2], axis=1), dtype=np.float64)


def trained(
    setting: tuple[float | None, float], train: dict[str, Array], test: dict[str, Array], epochs: int
) -> tuple[dict[str, Any], Release, NeuralNetwork]:
    """One run, watched by two accountants up to each of several epochs."""
    (sigma, rate), n = setting, len(train["y"])
    steps = math.ceil(epochs * n / BATCH)
    marks = sorted({max(1, steps * e // epochs) for e in (1, 2, 5, 10, epochs) if e <= epochs})
    watching = {
        (name, k): Until(make(), k)
        for k in marks
        for name, make in {
            "BDP as published": lambda: PublishedBayesianAccountant(
                pairs=PAIRS, gamma=GAMMA, orders=ORDERS, right_term=False
            ),
            "BDP corrected": lambda: BayesianAccountant(pairs=PAIRS, blocks=4),
        }.items()
    }
    model = NeuralNetwork(784, (Dense(WIDTH), Relu(), Dense(10)))
    mechanism = StochasticGradient(
        model,
        optimiser=Sgd(rate),
        clipping=Flat(1.0),
        neighbours="add_remove",
        observers=tuple(watching.values()),
    )
    budget = None if sigma is not None else Budget(2.18, DELTA, "add_remove")
    plan = mechanism.plan(n=n, batch=BATCH, steps=steps, noise_multiplier=sigma, budget=budget)
    release = plan.release(train, key=1)
    noise = float(str(plan.parameters["sigma"]))
    rows: dict[str, dict[str, float]] = {}
    for k in marks:
        everybody = priced(BATCH / n, noise, k)
        renyi = [everybody.renyi(o + 1.0) + math.log(1 / DELTA) / o for o in range(1, 65)]
        rows[f"{k * BATCH / n:.0f}"] = {
            "DP": everybody.epsilon(DELTA),
            "DP, moments accountant": min(renyi),
            **{name: one.epsilon() for (name, at), one in watching.items() if at == k},
        }
    last = rows[list(rows)[-1]]
    guess = {f"right guess, {name}": attacker_success(max(0.0, value)) for name, value in last.items()}
    found = {"noise multiplier": noise, "accuracy": accuracy(release, test), "epochs": rows, **guess}
    return found, release, model


def run(out: Path, quick: bool) -> dict[str, Any]:
    """Figures 5 and 6 and their numbers."""
    train, test = images("mnist"), images("mnist_test")
    found: dict[str, Any] = {}
    for name, setting in list(RUNS.items())[: 1 if quick else None]:
        found[name], release, model = trained(setting, train, test, 1 if quick else EPOCHS)
        if name == "sigma 0.1":
            seen, fresh = (distances(model, release, records, 400) for records in (train, test))
            found["pairwise distances"] = {
                "mean, train": float(seen.mean()),
                "mean, test": float(fresh.mean()),
                "p of equal means": float(stats.ttest_ind(seen, fresh).pvalue),
                "p of equal variances": float(stats.levene(seen, fresh).pvalue),
            }
            draw6(out / "figure6.png", seen, fresh)
    draw5(out / "figure5.png", {k: v for k, v in found.items() if k in RUNS})
    return found


STYLES: dict[str, dict[str, Any]] = {
    "DP": {"color": GREY},
    "DP, moments accountant": {"color": GREY, "ls": ":"},
    "BDP as published": {"color": ORANGE, "ls": "--"},
    "BDP corrected": {"color": BLUE},
}


def draw5(out: Path, found: dict[str, Any]) -> None:
    figure, axes = plt.subplots(
        1, len(found), figsize=(4.4 * len(found), 3.2), layout="constrained", squeeze=False
    )
    for axis, (title, one) in zip(axes[0], found.items(), strict=True):
        at = [int(e) for e in one["epochs"]]
        for name, style in STYLES.items():
            axis.plot(at, [row[name] for row in one["epochs"].values()], label=name, marker=".", **style)
        axis.set(
            yscale="log",
            xlabel="epochs",
            title=f"{title}: accuracy {100 * one['accuracy']:.1f} %",
            ylabel="epsilon",
        )
    axes[0][0].legend(fontsize=7)
    figure.savefig(out, dpi=150)
    plt.close(figure)


def draw6(out: Path, seen: Array, fresh: Array) -> None:
    figure, axis = plt.subplots(figsize=(4.4, 3.0), layout="constrained")
    bins = np.linspace(0, 2, 41).tolist()
    axis.hist(seen, bins, alpha=0.6, color=BLUE, label="train", density=True)
    axis.hist(fresh, bins, histtype="step", color=GREEN, label="test", density=True)
    axis.set(xlabel="distance of clipped gradients, in C", ylabel="density")
    axis.legend(fontsize=7)
    figure.savefig(out, dpi=150)
    plt.close(figure)
