"""Iterations per second of BarkerMCMC beside plain NumPy loops, as ratios in one run.

    python benchmarks/dp_mcmc.py            # about a minute
    python benchmarks/dp_mcmc.py --quick    # once each, fewer steps of the slow loop, no 1e7

The test case is paper M's: the two-dimensional mixture, N = 1e6, b = 1000, N0 = 100, 5,000 iterations, and
compilation counted (each of our runs starts a fresh process without a compilation cache). Every timing is the
median of a few. Writes benchmarks/results/dp_mcmc.json unless --quick; exit status 1 if a target is missed.
"""

import json
import math
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

RESULTS = Path(__file__).parent / "results" / "dp_mcmc.json"
STEPS, BATCH, N0, SCALE, C = 5_000, 1_000, 100, 0.1, 2.0
LIMIT = math.sqrt(BATCH) / N0


def data(size: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=size) * math.sqrt(2) + (rng.random(size) < 0.5)


def log_density(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.logaddexp(-0.25 * (x - theta[0]) ** 2, -0.25 * (x - theta[0] - theta[1]) ** 2)


def numpy_loop(x: np.ndarray, draw: Callable[[], object], steps: int) -> float:
    """Seconds per iteration of the loop that one writes first."""
    from discreet.mechanisms._logistic_correction import logistic_correction

    correction = logistic_correction(C)
    atoms, cumulative = np.array(correction.atoms), np.cumsum(correction.weights)
    rng, theta = np.random.default_rng(1), np.zeros(2)
    draws = np.empty((steps, 2))
    begin = time.perf_counter()
    for i in range(steps):
        candidate = theta + SCALE * rng.normal(size=2)
        batch = x[draw()]
        r = np.clip(log_density(candidate, batch) - log_density(theta, batch), -LIMIT, LIMIT)
        prior = 0.5 * ((theta[0] ** 2 - candidate[0] ** 2) / 10 + theta[1] ** 2 - candidate[1] ** 2)
        noise = math.sqrt(C - N0**2 / BATCH * r.var()) * rng.normal()
        v = atoms[min(np.searchsorted(cumulative, rng.random()), len(atoms) - 1)]
        if N0 * r.mean() + prior + noise + v > 0:
            theta = candidate
        draws[i] = theta
    return (time.perf_counter() - begin) / steps


def ours(size: int, steps: int, chains: int, both: bool) -> None:
    """Releases in this process; prints seconds of the first and of later ones, and the peak memory.

    With `both`, later ones take turns with a progress bar and without.
    """
    from discreet.mechanisms.barker_mcmc import BarkerMCMC
    from discreet.mechanisms.proposals import RandomWalk
    from discreet.models.gaussian_mixture import GaussianMixture

    x = data(size)
    mechanism = BarkerMCMC(GaussianMixture(), RandomWalk(SCALE), tempered_size=N0, chains=chains)
    plan = mechanism.plan(n=size, steps=steps, batch=BATCH, clip=1.0, variance=C)
    times: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(24 if both else 4):
        bar = both and turn % 2 == 1
        begin = time.perf_counter()
        plan.release({"x": x}, progress=bar)
        times[bar].append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"first": times[False][0], "again": min(times[False][1:]), "peak_mb": peak}
    print(json.dumps(found | ({"bar": min(times[True])} if both else {})))


def fresh(
    size: int, steps: int = STEPS, chains: int = 1, both: bool = False, runs: int = 3
) -> dict[str, float]:
    """Medians over fresh processes, in which everything is compiled anew."""
    arguments = [sys.executable, __file__, "--ours", str(size), str(steps), str(chains), str(int(both))]
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    found = []
    for _ in range(runs):
        out = subprocess.run(arguments, check=True, capture_output=True, text=True, env=environment)
        found.append(json.loads(out.stdout.splitlines()[-1]))
    return {name: median(one[name] for one in found) for name in found[0]}


def main(quick: bool) -> int:
    size, few = 10**6, 500 if quick else 1_500
    runs = 1 if quick else 3
    x, rng = data(size), np.random.default_rng(2)
    everyone = range(size)
    slow, linear = [], []
    singles = []
    for _ in range(1 if quick else 5):  # in turns, so that a busy moment of the machine meets all of them
        singles.append(fresh(size, runs=1))
        slow.append(numpy_loop(x, lambda: random.sample(everyone, BATCH), few))
        linear.append(numpy_loop(x, lambda: rng.choice(size, size=BATCH, replace=False, shuffle=False), few))
    first, again = (median(one[name] for one in singles) / STEPS for name in ("first", "again"))
    many = fresh(size, chains=20, runs=1)["first"] / STEPS / 20
    sample, choice = median(slow), median(linear)
    us = {
        "one chain, compiling": first,
        "one chain, compiled": again,
        "20 chains, compiling": many,
        "NumPy loop, random.sample": sample,
        "NumPy loop, O(b) batches": choice,
    }
    for name, seconds in us.items():
        print(f"{name:<28} {1e6 * seconds:8.1f} us per iteration")
    results: dict[str, object] = {"microseconds": {name: round(1e6 * s, 2) for name, s in us.items()}}
    ratios = {
        f"{loop} over {ours}": round(theirs / mine, 2)
        for loop, theirs in (("random.sample", sample), ("O(b) batches", choice))
        for ours, mine in (("one chain", first), ("one chain compiled", again), ("20 chains", many))
    }
    results["ratios"] = ratios
    # The copy and the check of the records are O(N) once; the cost of a step is the slope in T.
    slopes, grown = {}, {}
    for n in [10**5, 10**6] if quick else [10**5, 10**6, 10**7]:
        short, long = (fresh(n, steps=steps, runs=runs) for steps in (STEPS, 5 * STEPS))
        slopes[f"{n:.0e}"] = round(1e6 * (long["again"] - short["again"]) / (4 * STEPS), 2)
        grown[f"{n:.0e}"] = round(long["peak_mb"] - short["peak_mb"], 1)
    results["microseconds_per_step"], results["megabytes_for_4T_more"] = slopes, grown
    stored = 4 * 4 * STEPS * 4 * 8 / 2**20  # four releases of 4 T more rows of two numbers and two counts
    spread = max(slopes.values()) / min(slopes.values())
    turns = [fresh(size, steps=5 * STEPS, both=True, runs=1) for _ in range(runs)]
    bar = min(one["bar"] for one in turns) / min(one["again"] for one in turns) - 1
    results |= {"slowest_over_fastest_step": round(spread, 2), "progress_bar": round(bar, 4)}
    targets = {
        "10 x random.sample": ratios["random.sample over one chain"] >= 10,
        "4 x O(b) batches": ratios["O(b) batches over one chain"] >= 4,
        "10 x random.sample, 20 chains": ratios["random.sample over 20 chains"] >= 10,
        "4 x O(b) batches, 20 chains": ratios["O(b) batches over 20 chains"] >= 4,
        "step within 2 x from 1e5 to 1e7": spread < 2,
        "memory flat in T": max(grown.values()) < stored + 20,
        "progress bar under 2 %": bar < 0.02,
    }
    results["targets"] = targets
    print(json.dumps(results, indent=2))
    if not quick:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    return 0 if all(targets.values()) else 1


if __name__ == "__main__":
    if "--ours" in sys.argv:
        given = [int(value) for value in sys.argv[2:]]
        ours(given[0], given[1], given[2], bool(given[3]))
    else:
        sys.exit(main("--quick" in sys.argv))
