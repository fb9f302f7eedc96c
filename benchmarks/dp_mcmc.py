"""Iterations per second of BarkerMCMC beside plain NumPy loops, as ratios in one run.

    python benchmarks/dp_mcmc.py            # about two minutes
    python benchmarks/dp_mcmc.py --quick    # fewer steps of the slow loops, no 1e7

The test case is paper M's: the two-dimensional mixture, N = 1e6, b = 1000, N0 = 100, 5,000 iterations, and
compilation counted (each of our runs starts a fresh process).
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

import numpy as np

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


def ours(size: int, steps: int, chains: int, progress: bool) -> None:
    """One run in this process; prints seconds of the first release, of a second one, and the peak memory."""
    from discreet.mechanisms.barker_mcmc import BarkerMCMC
    from discreet.mechanisms.proposals import RandomWalk
    from discreet.models.gaussian_mixture import GaussianMixture

    x = data(size)
    mechanism = BarkerMCMC(GaussianMixture(), RandomWalk(SCALE), tempered_size=N0, chains=chains)
    plan = mechanism.plan(n=size, steps=steps, batch=BATCH, clip=1.0, variance=C)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        plan.release({"x": x}, progress=progress)
        times.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"first": times[0], "again": min(times[1:]), "peak_mb": peak}))


def fresh(size: int, steps: int = STEPS, chains: int = 1, progress: bool = False) -> dict[str, float]:
    arguments = [sys.executable, __file__, "--ours", str(size), str(steps), str(chains), str(int(progress))]
    out = subprocess.run(arguments, check=True, capture_output=True, text=True, env=dict(os.environ))
    return json.loads(out.stdout.splitlines()[-1])


def main(quick: bool) -> None:
    size, some = 10**6, 500 if quick else STEPS
    x, rng = data(size), np.random.default_rng(2)
    run = fresh(size)
    first = run["first"] / STEPS
    print(f"discreet, compilation counted      {1e6 * first:8.1f} us per iteration")
    print(f"discreet, already compiled         {1e6 * run['again'] / STEPS:8.1f} us per iteration")
    many = fresh(size, chains=20)
    print(f"discreet, 20 chains, compiling     {1e6 * many['first'] / STEPS / 20:8.1f} us per iteration")
    everyone = range(size)
    slow = numpy_loop(x, lambda: random.sample(everyone, BATCH), some)
    quickest = numpy_loop(x, lambda: rng.choice(size, size=BATCH, replace=False, shuffle=False), some)
    for name, seconds, wanted in [("random.sample", slow, 10), ("O(b) batches", quickest, 4)]:
        print(
            f"NumPy loop, {name:<22} {1e6 * seconds:8.1f} us per iteration: {seconds / first:.1f} x "
            f"(wanted {wanted}), {seconds / many['first'] * STEPS * 20:.1f} x with 20 chains"
        )
    sizes = {n: fresh(n) for n in ([10**5, 10**6] if quick else [10**5, 10**6, 10**7])}
    steps = {n: (r["again"] / STEPS) for n, r in sizes.items()}
    each = ", ".join(f"N = {n:.0e}: {1e6 * s:.1f} us" for n, s in steps.items())
    print(f"per step of a run, records copied in once: {each}")
    # The copy and the check of the records are O(N) once; the cost of a step is the slope in T.
    slopes = {}
    for n, r in sizes.items():
        longer = fresh(n, steps=3 * STEPS)
        slopes[n] = (longer["again"] - r["again"]) / (2 * STEPS)
        grown = longer["peak_mb"] - r["peak_mb"]
        print(f"  N = {n:.0e}: slope {1e6 * slopes[n]:.1f} us per step, {grown:+.1f} MB for 3 x T")
    print(f"slowest over fastest slope: {max(slopes.values()) / min(slopes.values()):.2f} (wanted below 2)")
    quiet, shown = (min(fresh(size, progress=p)["again"] for _ in range(3)) for p in (False, True))
    print(f"progress bar: {100 * (shown / quiet - 1):+.1f} % (wanted below 2)")


if __name__ == "__main__":
    if "--ours" in sys.argv:
        given = [int(value) for value in sys.argv[2:]]
        ours(given[0], given[1], given[2], bool(given[3]))
    else:
        main("--quick" in sys.argv)
