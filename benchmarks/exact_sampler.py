"""Time to one draw from the logistic posterior of abalone: ExactRegression beside NumPyro's NUTS, in one run.

    DISCREET_DATA=/path/to/data python benchmarks/exact_sampler.py [--repeats 5]

Each side is a fresh process each time, interleaved, on one thread. "seconds" counts reading the data,
finding the mode and building the envelope, or compiling and 1000 + 1000 steps of NUTS, up to the draw in
hand; "process" counts the interpreter and all imports as well. ExactRegression makes the same number of
tries for every draw, unless it may stop at the first success. NUTS yields 1000 dependent draws for its time;
"thousand" is the time for 1000 exact ones, each stopping at its first success. The result goes to
benchmarks/results/exact_sampler.json; exit status 1 if the target is missed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "exact_sampler.json"
N, BETA, TARGET = 2784, 1e-3, 20.0
UPPER = (1.0, 1.0, 0.5, 3.0, 1.5, 1.0, 1.5)  # declared bounds, as in discreet.data
SIDES = ("exact", "nuts")


def abalone() -> tuple[np.ndarray, np.ndarray]:
    """2784 rows as in `experiments/renyi_posteriors`, without Polars on either side."""
    with gzip.open(Path(os.environ["DISCREET_DATA"]) / "abalone.csv.gz", "rt") as file:
        rows = list(csv.reader(file))[1:]
    numbers = np.array([[float(cell) for cell in row[1:8]] for row in rows])
    scaled = np.clip(numbers / UPPER, 0, 1)
    sex = np.array([[row[0] == "I", row[0] == "M"] for row in rows], dtype=float)
    x = np.column_stack([sex, scaled]) - 0.5
    x *= (1 - 1e-12) / np.linalg.norm(x, axis=1, keepdims=True)
    y = np.array([float(row[8]) >= 10 for row in rows], dtype=float)
    chosen = np.random.default_rng(0).permutation(len(x))[:N]
    return x[chosen], y[chosen]


def exact() -> dict[str, float]:
    from discreet.models.logistic import LogisticRegression
    from discreet.models.losses import Gibbs
    from discreet.samplers.exact import ExactRegression
    from discreet.samplers.randomness import Randomness

    found: dict[str, float] = {}
    ways = {
        "seconds": (ExactRegression(), 1),
        "stopping at the first success": (ExactRegression(constant_time=False), 1),
        "thousand": (ExactRegression(constant_time=False), 1000),
    }
    for name, (sampler, draws) in ways.items():
        began = time.perf_counter()
        x, y = abalone()
        model = LogisticRegression(features=x.shape[1], prior_precision=BETA * N)
        records = model.validate({"x": x, "y": y})
        sampler.sample(model, Gibbs(1.0), records, Randomness(), draws)
        found[name] = time.perf_counter() - began
    return found


def nuts() -> dict[str, float]:
    import jax
    import numpyro

    jax.config.update("jax_enable_x64", True)
    began = time.perf_counter()
    x, y = abalone()
    rows = jax.numpy.asarray(x * (2 * y - 1)[:, None])

    def potential(w: Any) -> Any:
        return 0.5 * BETA * N * (w**2).sum() + jax.nn.softplus(-rows @ w).sum()

    kernel = numpyro.infer.NUTS(potential_fn=potential)
    run = numpyro.infer.MCMC(kernel, num_warmup=1000, num_samples=1000, progress_bar=False)
    run.run(jax.random.key(int.from_bytes(os.urandom(4), "big")), init_params=jax.numpy.zeros(x.shape[1]))
    np.asarray(run.get_samples())
    return {"seconds": time.perf_counter() - began}


def measured(side: str) -> dict[str, float]:
    """One side in a process of its own."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    }
    began = time.perf_counter()
    command = [sys.executable, __file__, "--side", side]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    whole, found = time.perf_counter() - began, json.loads(done.stdout)
    others = sum(seconds for name, seconds in found.items() if name != "seconds")
    return {**found, "process": whole - others}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    choice = parser.parse_args()
    if choice.side:
        print(json.dumps({"exact": exact, "nuts": nuts}[choice.side]()))
        return 0
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for _ in range(choice.repeats):
        for side in SIDES:
            runs[side].append(measured(side))
    medians = {
        side: {key: median(run[key] for run in made) for key in made[0]} for side, made in runs.items()
    }
    ratio = medians["nuts"]["seconds"] / medians["exact"]["seconds"]
    ratios = [b["seconds"] / a["seconds"] for a, b in zip(runs["exact"], runs["nuts"], strict=True)]
    report = {
        "what": "one draw from the logistic posterior of abalone, n 2784, d 9, beta 1e-3, weight 1",
        "median seconds": medians,
        "ratio NUTS to exact": ratio,
        "smallest and largest ratio of a pair": [min(ratios), max(ratios)],
        "ratio, interpreter and imports counted": medians["nuts"]["process"] / medians["exact"]["process"],
        "ratio for a thousand exact draws": medians["nuts"]["seconds"] / medians["exact"]["thousand"],
        "target": TARGET,
        "met": ratio >= TARGET,
        "repeats": choice.repeats,
        "load average at the end": os.getloadavg()[0],
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))
    return 0 if report["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
