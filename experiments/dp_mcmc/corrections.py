"""Figures 4 to 6: the logistic correction as the papers fit it, and as the library finds it.

The fits of paper M (a mixture) and of Seita et al. (ridge regression) live here only.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats
from style import BLUE, GREY, ORANGE, plt

from discreet.mechanisms._logistic_correction import logistic_correction


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
