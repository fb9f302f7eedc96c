"""Figures 1 to 6 of Heikkila et al. (2019), and the one the paper lacks: posterior error against epsilon.

    python experiments/dp_mcmc/run.py            # N = 1e6, 20 runs: minutes
    python experiments/dp_mcmc/run.py --quick    # N = 1e5, 4 runs: for CI

Writes figure1.png .. figure7.png and results.json beside this file (to --out with --quick), and compares the
numbers with expected.json. The fits of paper M (a mixture) and of Seita et al. (ridge regression) to the
logistic correction live here only: the library uses a linear program.
"""

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy import special, stats

from discreet.mechanisms._logistic_correction import logistic_correction
from discreet.mechanisms.barker_mcmc import BarkerMCMC
from discreet.mechanisms.proposals import CorrelatedWalk, Proposal, RandomWalk
from discreet.mechanisms.release import by_chain
from discreet.models.gaussian_mixture import GaussianMixture
from discreet.privacy import barker

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
N0, BATCH, STEPS, SCALE = 100, 1_000, 5_000, 0.2
DELTA, EPSILON = 1e-6, 0.5
PILOT, FREED = 3_000, {"batch": 8_000, "steps": 16_000}
"""What exact accounting pays for: private pilots whose covariance shapes the proposal, then more steps, on
larger batches, which clip less."""
BLUE, ORANGE, GREY = "#1f5fa8", "#d9772b", "#8a8a8a"
plt.rcParams.update(
    {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
)


class Truth:
    """The tempered posterior on a grid, from data counted in 1,000 cells."""

    def __init__(self, x: np.ndarray) -> None:
        counts, edges = np.histogram(x, bins=1_000)
        centres = (edges[1:] + edges[:-1]) / 2
        self.first, self.second = np.linspace(-2.5, 3.5, 151), np.linspace(-4, 4, 201)
        log_p = np.empty((151, 201))
        near = -0.25 * (centres - self.first[:, None]) ** 2
        for j, shift in enumerate(self.second):
            far = -0.25 * (centres - self.first[:, None] - shift) ** 2
            log_p[:, j] = np.logaddexp(near, far) @ counts
        log_p *= N0 / len(x)
        log_p -= 0.5 * (self.first[:, None] ** 2 / 10 + self.second**2)
        self.log_p = log_p - log_p.max()
        p = np.exp(self.log_p)
        p /= p.sum()
        marginals = (p.sum(axis=1), self.first), (p.sum(axis=0), self.second)
        self.mean = np.array([m @ g for m, g in marginals])
        self.variance = np.array([m @ g**2 for m, g in marginals]) - self.mean**2

    def chains(self, count: int, steps: int, scale: float, seed: int) -> np.ndarray:
        """The same chain without privacy: Barker's exact test on the exact tempered posterior."""
        from scipy.interpolate import RegularGridInterpolator

        log_p = RegularGridInterpolator(
            (self.first, self.second), self.log_p, bounds_error=False, fill_value=-1e9
        )
        rng, theta = np.random.default_rng(seed), np.tile([0.5, 0.0], (count, 1))
        at, out = log_p(theta), np.empty((count, steps, 2))
        for t in range(steps):
            candidate = theta + scale * rng.normal(size=theta.shape)
            there = log_p(candidate)
            accepted = there - at + rng.logistic(size=count) > 0
            theta = np.where(accepted[:, None], candidate, theta)
            at = np.where(accepted, there, at)
            out[:, t] = theta
        return out


def private(
    x: np.ndarray,
    runs: int,
    *,
    steps: int,
    batch: int,
    key: int,
    proposal: Proposal | None = None,
    start: Any = (0.5, 0.0),
) -> Any:
    mechanism = BarkerMCMC(
        GaussianMixture(),
        proposal or RandomWalk(SCALE),
        tempered_size=N0,
        chains=runs,
        start={"theta": np.asarray(start)},
    )
    plan = mechanism.plan(n=len(x), steps=steps, batch=batch, clip=1.0, variance=2.0)
    release = plan.release({"x": x}, key=key)
    return by_chain(release.draws, runs)["theta"], release.diagnostics["clipped_share"].reveal().mean()


def piloted(x: np.ndarray, runs: int, *, steps: int, batch: int) -> tuple[np.ndarray, float]:
    """Pilots of the published kind, then chains along their covariance from their last states.

    The covariance is that of the pilots of all runs, so every run is billed for all of them.
    """
    pilot, _ = private(x, runs, steps=PILOT, batch=BATCH, key=9)
    covariance = np.mean([np.cov(run.T) for run in pilot], axis=0)
    walk = CorrelatedWalk((1.44 * covariance).tolist())
    return private(x, runs, steps=steps, batch=batch, key=2, proposal=walk, start=pilot[:, -1])


def errors(draws: np.ndarray, times: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Mean absolute error of posterior mean and of variance over coordinates: shape (2, runs, times)."""
    first = np.cumsum(draws, axis=1)[:, times - 1] / times[:, None]
    second = np.cumsum(draws**2, axis=1)[:, times - 1] / times[:, None] - first**2
    return np.stack([np.abs(first - mean).mean(axis=2), np.abs(second - variance).mean(axis=2)])


def published(n: int, steps: int, batch: int = BATCH) -> float:
    return barker(batch, n, steps, bound="as_published").epsilon(DELTA)


def exact(n: int, steps: int, batch: int = BATCH, pilots: int = 0) -> float:
    spent = barker(batch, n, steps)
    return (spent + barker(BATCH, n, pilots * PILOT) if pilots else spent).epsilon(DELTA)


# --- the corrections of the papers --------------------------------------------------


def mixture_fit(C: float, iterations: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Paper M, Supplement E: 50 mirrored components, Adam at 0.01, squared loss of densities on [-10, 10]."""
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        x = jnp.linspace(-10, 10, 1_000)
        target = jnp.exp(-x) / (1 + jnp.exp(-x)) ** 2
        rng = np.random.default_rng(0)
        start = (jnp.zeros(50), jnp.asarray(rng.normal(size=50) * 2), jnp.asarray(np.full(50, -1.0)))

        def loss(parameters: Any) -> Any:
            logits, means, log_sd = parameters
            sd = jnp.sqrt(C + jnp.exp(2 * log_sd))
            w = jax.nn.softmax(logits) / 2
            both = sum(jnp.exp(-0.5 * ((x[:, None] - s * means) / sd) ** 2) for s in (1, -1))
            return jnp.sqrt((((both / sd / math.sqrt(2 * math.pi)) @ w - target) ** 2).sum())

        def adam(t: Any, state: Any) -> Any:
            p, m, v = state
            g = jax.grad(loss)(p)
            m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b**2, v, g)
            scale = jnp.sqrt(1 - 0.999 ** (t + 1)) / (1 - 0.9 ** (t + 1))
            p = jax.tree.map(lambda a, b, c: a - 0.01 * scale * b / (jnp.sqrt(c) + 1e-8), p, m, v)
            return p, m, v

        zero = jax.tree.map(jnp.zeros_like, start)
        (logits, means, log_sd), _, _ = jax.jit(lambda s: jax.lax.fori_loop(0, iterations, adam, s))(
            (start, zero, zero)
        )
        w = np.asarray(jax.nn.softmax(logits)) / 2
        return np.tile(w, 2), np.concatenate([means, -means]), np.tile(np.exp(log_sd), 2)


def ridge_fit(C: float, points: int = 1_000, penalty: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """Seita et al. 2017: a density on a grid by ridge regression; negative values are set to 0.

    The penalty is scaled from the authors' 4,000 points to ours.
    """
    grid = np.linspace(-10, 10, points)
    wide = np.linspace(-20, 20, 2 * points)
    width = grid[1] - grid[0]
    design = stats.norm.pdf(wide[:, None] - grid, scale=math.sqrt(C)) * width
    found = np.linalg.solve(
        design.T @ design + penalty * (width * 200) ** 2 * 1e-6 * np.eye(points),
        design.T @ stats.logistic.pdf(wide),
    )
    return grid, found


def distance(
    C: float, atoms: np.ndarray, weights: np.ndarray, sd: np.ndarray | float, x: np.ndarray
) -> np.ndarray:
    spread = np.sqrt(C + np.asarray(sd) ** 2) * np.ones_like(atoms)
    F = special.ndtr((x[:, None] - atoms) / spread) @ weights
    return np.abs(F - special.expit(x))


# --- figures --------------------------------------------------------------------------


def figure1(out: Path, x: np.ndarray, quick: bool) -> dict[str, float]:
    figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    for n, colour in ((10**5, ORANGE), (10**6, BLUE)):
        batches = [int(q * n) for q in np.geomspace(0.001, 0.01, 6)]
        axes[0].loglog(np.array(batches) / n, [published(n, 1000, b) for b in batches], "--", c=colour)
        axes[0].loglog(
            np.array(batches) / n, [exact(n, 1000, b) for b in batches], c=colour, label=f"N = {n:,}"
        )
        steps = [100, 300, 1000, 3000, 10_000]
        axes[1].loglog(steps, [published(n, t) for t in steps], "--", c=colour)
        axes[1].loglog(steps, [exact(n, t) for t in steps], c=colour, label=f"N = {n:,}")
    axes[0].set(xlabel="sampling ratio q (T = 1,000)", ylabel=f"epsilon at delta = {DELTA:g}")
    axes[1].set(xlabel="iterations T (b = 1,000)")
    axes[2].plot([], [], c=ORANGE, label="N = 100,000")
    axes[2].plot([], [], "--", c=GREY, label="published")
    axes[2].plot([], [], c=GREY, label="exact")
    variances = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.3])
    shares = [
        private(x, 1, steps=256 if quick else 512, batch=BATCH, key=3, proposal=RandomWalk(math.sqrt(v)))[1]
        for v in variances
    ]
    axes[2].semilogx(variances, shares, "o-", c=BLUE, label="N = 1,000,000")
    axes[2].legend()
    axes[2].set(xlabel="proposal variance", ylabel="share of clipped ratios", ylim=(0, None))
    figure.savefig(out / "figure1.png", dpi=110)
    return {"clipped_share_at_0.01": float(shares[2]), "clipped_share_at_0.1": float(shares[4])}


def figure2(out: Path, without: np.ndarray, with_privacy: np.ndarray, epsilons: tuple[float, float]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), sharex=True, sharey=True, layout="constrained")
    titles = ("without privacy", f"private: epsilon {epsilons[1]:.3f} (published: {epsilons[0]:.2f})")
    for ax, draws, title in zip(axes, (without, with_privacy), titles, strict=True):
        ax.plot(*draws.T, ".", ms=2, alpha=0.3, c=BLUE, rasterized=True)
        ax.set(title=title, xlabel="theta 1")
    axes[0].set_ylabel("theta 2")
    figure.savefig(out / "figure2.png", dpi=110)


def figure3(out: Path, times: np.ndarray, error: np.ndarray, baseline: np.ndarray, n: int) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for ax, values, plain, what in zip(axes, error, baseline, ("mean", "variance"), strict=True):
        for e, colour, label in ((values, BLUE, "private"), (plain, GREY, "not private")):
            ax.errorbar(
                times, e.mean(axis=0), e.std(axis=0) / math.sqrt(len(e)), c=colour, capsize=2, label=label
            )
        ax.set(xlabel="iterations", ylabel=f"error of the posterior {what}", ylim=(0, None))
        top = ax.secondary_xaxis("top")
        top.set_xticks(
            times[::2], [f"{published(n, int(t)):.2f}\n{exact(n, int(t)):.3f}" for t in times[::2]]
        )
        top.set_xlabel("epsilon: published / exact")
    axes[0].legend()
    figure.savefig(out / "figure3.png", dpi=110)


def figures456(out: Path, iterations: int, quick: bool) -> dict[str, float]:
    x = np.linspace(-15, 15, 3_001)
    Cs = [1.0, 2.0] if quick else [0.5, 1.0, 1.5, 2.0, 2.5]
    found: dict[str, list[float]] = {"ridge regression": [], "Gaussian mixture": [], "linear program": []}
    fits: dict[float, Any] = {}
    seconds = 0.0
    for C in Cs:
        begin = time.perf_counter()
        mixture = mixture_fit(C, iterations)
        seconds = max(seconds, time.perf_counter() - begin)
        grid, ridge = ridge_fit(C)
        positive = np.maximum(ridge, 0) / np.maximum(ridge, 0).sum()
        best = logistic_correction(C)
        fits[C] = (grid, ridge, mixture)
        curves = (
            distance(C, grid, positive, 0.0, x),
            distance(C, mixture[1], mixture[0], mixture[2], x),
            distance(C, np.array(best.atoms), np.array(best.weights), 0.0, x),
        )
        for name, curve in zip(found, curves, strict=True):
            found[name].append(float(curve.max()))
        if C == 2.0:
            figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
            for (name, curve), colour in zip(
                zip(found, curves, strict=True), (GREY, ORANGE, BLUE), strict=True
            ):
                ax.semilogy(x, np.maximum(curve, 1e-9), c=colour, label=name)
            ax.set(xlabel="x", ylabel="distance from the logistic CDF, C = 2", ylim=(1e-6, 3))
            ax.legend(loc="upper right", fontsize=8)
            figure.savefig(out / "figure6.png", dpi=110)
    figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
    for (name, values), colour in zip(found.items(), (GREY, ORANGE, BLUE), strict=True):
        ax.semilogy(Cs, values, "o-", c=colour, label=name)
    ax.set(xlabel="C, variance of the normal part", ylabel="largest error of the CDF")
    ax.legend()
    figure.savefig(out / "figure4.png", dpi=110)
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
    for C, colour in ((1.0, BLUE), (2.0, ORANGE)):
        grid, ridge, (w, m, sd) = fits[C]
        axes[0].semilogy(grid, np.where(ridge > 0, ridge, np.nan), c=colour, label=f"C = {C:g}")
        fine = np.linspace(-10, 10, 40_001)
        density = np.zeros_like(fine)
        for weight, mean, spread in zip(w, m, sd, strict=True):
            density += weight * stats.norm.pdf(fine, mean, spread)
        axes[1].semilogy(fine, density, c=colour, label=f"C = {C:g}")
    axes[0].set(
        title="ridge regression (gaps: negative)",
        xlabel="x",
        ylabel="density of the correction",
        ylim=(1e-7, 100),
    )
    axes[1].set(title="Gaussian mixture", xlabel="x")
    axes[0].legend()
    figure.savefig(out / "figure5.png", dpi=110)
    at = Cs.index(2.0)
    return {
        "error_mixture_C2": found["Gaussian mixture"][at],
        "error_ridge_C2": found["ridge regression"][at],
        "error_program_C2": found["linear program"][at],
        "seconds_mixture": seconds,
    }


def figure7(out: Path, curves: dict[str, tuple[list[float], np.ndarray, str, str]]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharex=True, layout="constrained")
    for name, (epsilons, error, colour, style) in curves.items():
        for ax, values in zip(axes, error, strict=True):
            ax.loglog(epsilons, values.mean(axis=0), style, c=colour, label=name)
    for ax, what in zip(axes, ("mean", "variance"), strict=True):
        ax.axvline(EPSILON, c=GREY, lw=0.7, ls=":")
        ax.set(xlabel=f"epsilon at delta = {DELTA:g}", ylabel=f"error of the posterior {what}")
    axes[0].legend(fontsize=8)
    figure.savefig(out / "figure7.png", dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--only7", action="store_true", help="figures 2, 3 and 7, with the other numbers kept"
    )
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    quick, out = options.quick, options.out
    if quick and out == HERE:
        parser.error("--quick needs --out, so that the committed figures stay")
    out.mkdir(parents=True, exist_ok=True)
    n, runs = (10**5, 4) if quick else (10**6, 20)
    rng = np.random.default_rng(2019)
    x = rng.normal(size=n) * math.sqrt(2) + (rng.random(n) < 0.5)
    truth = Truth(x)
    times = np.linspace(1_000, STEPS, 9).astype(int)
    print(f"posterior mean {truth.mean.round(3)}, variance {truth.variance.round(3)}", flush=True)

    plain = truth.chains(runs, STEPS, SCALE, seed=1)
    draws, clipped = private(x, runs, steps=STEPS, batch=BATCH, key=1)
    reference = plain[0].mean(axis=0), plain[0].var(axis=0)
    at_paper = errors(draws, times, *reference)
    results: dict[str, float] = {
        "epsilon_published": published(n, STEPS),
        "epsilon_exact": exact(n, STEPS),
        "figure3_mean_error_at_5000": float(at_paper[0, :, -1].mean()),
        "figure3_variance_error_at_5000": float(at_paper[1, :, -1].mean()),
        "clipped_share": float(clipped),
    }
    figure2(out, plain[0], draws[0], (results["epsilon_published"], results["epsilon_exact"]))
    figure3(out, times, at_paper, errors(plain[1:], times, *reference), n)
    print("figures 2, 3", flush=True)
    if options.only7:
        results = json.loads((out / "results.json").read_text()) | results
    else:
        results |= figure1(out, x, quick)
        results |= figures456(out, 500 if quick else 20_000, quick)
        print("figures 1, 4, 5, 6", flush=True)

    freed = dict(FREED, steps=2_000) if quick else FREED
    steps, batch = freed["steps"], freed["batch"]
    begin = time.perf_counter()
    long, freed_clipped = piloted(x, runs, steps=steps, batch=batch)
    print(f"figure 7: {time.perf_counter() - begin:.0f} s", flush=True)
    later = np.linspace(steps / 10, steps, 10).astype(int)
    before, after = (errors(d, t, truth.mean, truth.variance) for d, t in ((draws, times), (long, later)))
    figure7(
        out,
        {
            "published accounting": ([published(n, int(t)) for t in times], before, ORANGE, "o-"),
            "same chain, exact accounting": ([exact(n, int(t)) for t in times], before, BLUE, "s--"),
            "the freed budget spent": ([exact(n, int(t), batch, runs) for t in later], after, BLUE, "o-"),
        },
    )
    results |= {
        "freed_epsilon": exact(n, steps, batch, runs),
        "freed_clipped_share": float(freed_clipped),
        "error_mean_published": float(before[0, :, -1].mean()),
        "error_mean_freed": float(after[0, :, -1].mean()),
        "error_variance_published": float(before[1, :, -1].mean()),
        "error_variance_freed": float(after[1, :, -1].mean()),
    }
    results["times_smaller"] = (results["error_mean_published"] + results["error_variance_published"]) / (
        results["error_mean_freed"] + results["error_variance_freed"]
    )
    (out / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))
    if quick:
        return 0
    expected = json.loads((HERE / "expected.json").read_text())
    wrong = [k for k, (low, high) in expected.items() if not low <= results[k] <= high]
    print("as expected" if not wrong else f"not as expected: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
