"""What a watching Bayesian accountant adds to a training step: 64 distances a step, batches of 256.

    python benchmarks/observers.py

Runs with and without an observer alternate; the ratio of medians is kept. Results go to
benchmarks/results/observers.json; the exit status is 1 if a ratio is above 1.25.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from discreet.mechanisms import BayesByBackprop, LangevinDynamics, StochasticGradient
from discreet.models import LogisticRegression, NeuralNetwork
from discreet.neural import Dense, Flat, Relu
from discreet.privacy import BayesianAccountant

RESULTS = Path(__file__).parent / "results" / "observers.json"
N, BATCH, STEPS, PAIRS, REPEATS, MOST = 20_000, 256, 60, 64, 5, 1.25

Make = Callable[[tuple[BayesianAccountant, ...], str], Any]


def network() -> NeuralNetwork:
    return NeuralNetwork(784, (Dense(128), Relu(), Dense(10)))


CASES: dict[str, tuple[Make, int, int, bool]] = {
    "StochasticGradient, network 784-128-10": (
        lambda o, r: StochasticGradient(network(), clipping=Flat(1.0), neighbours=r, observers=o),
        784,
        10,
        True,
    ),
    "LangevinDynamics, network 784-128-10": (
        lambda o, r: LangevinDynamics(
            network(), step_size=1e-6, clipping=Flat(1.0), neighbours=r, observers=o, thin=STEPS
        ),
        784,
        10,
        False,
    ),
    "BayesByBackprop, network 784-128-10": (
        lambda o, r: BayesByBackprop(network(), clipping=Flat(1.0), neighbours=r, observers=o, draws=1),
        784,
        10,
        True,
    ),
    "StochasticGradient, logistic regression, 100 features": (
        lambda o, r: StochasticGradient(
            LogisticRegression(100), clipping=Flat(1.0), neighbours=r, observers=o
        ),
        100,
        2,
        True,
    ),
}


def seconds(mechanism: Any, records: dict[str, Any], *, noisy: bool) -> float:
    """Of one step."""
    extra = {"noise_multiplier": 1.0} if noisy else {}
    plan = mechanism.plan(n=N, batch=BATCH, steps=STEPS, **extra)
    start = time.perf_counter()
    plan.release(records, key=1)
    return (time.perf_counter() - start) / STEPS


def main() -> int:
    rng = np.random.default_rng(0)
    found: dict[str, dict[str, float]] = {}
    for name, (make, features, classes, noisy) in CASES.items():
        x = rng.random((N, features)) / np.sqrt(features)
        records = {"x": x, "y": rng.integers(classes, size=N).astype(float)}
        for relation in ("add_remove", "substitute"):
            times: dict[bool, list[float]] = {False: [], True: []}
            for repeat in range(REPEATS + 1):
                for watched in (False, True):
                    observers = (BayesianAccountant(pairs=PAIRS),) if watched else ()
                    taken = seconds(make(observers, relation), records, noisy=noisy)
                    if repeat:  # the first run compiles
                        times[watched].append(taken)
            alone, together = median(times[False]), median(times[True])
            found[f"{name}, {relation}"] = {
                "milliseconds a step": 1e3 * alone,
                "with an observer": 1e3 * together,
                "ratio": together / alone,
            }
    met = all(one["ratio"] <= MOST for one in found.values())
    report = {"pairs": PAIRS, "batch": BATCH, "largest ratio": MOST, "met": met, "runs": found}
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
