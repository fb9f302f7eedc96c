"""Figures 1 to 3, and figure 7."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from chains import BATCH, DELTA, EPSILON, exact, private, published
from style import BLUE, GREY, ORANGE, plt

from discreet.mechanisms.proposals import RandomWalk


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
