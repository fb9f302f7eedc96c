"""Figures 1 and 2: Renyi curves and utility of a Beta-Bernoulli posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats
from style import BLUE, GREEN, GREY, ORANGE, plt

from discreet.mechanisms import ConcentratedPosterior, DiffusedPosterior
from discreet.models import BetaBernoulli
from discreet.privacy import beta_bernoulli

PRIOR, SIZE, SUCCESSES = (6.0, 12.0), 100, 38


def boundary_pairs(prior: tuple[float, float], weight: float, order: float) -> float:
    """Paper R, Corollary 2: the maximum over the four boundary pairs, with the logs of ERRATA 7."""
    worst = 0.0
    for k in (0, SIZE):
        a, b = prior[0] + weight * k, prior[1] + weight * (SIZE - k)
        shift = weight if k == 0 else -weight
        for (a1, b1), (a2, b2) in (((a, b), (a + shift, b - shift)), ((a + shift, b - shift), (a, b))):
            x, y = order * a1 + (1 - order) * a2, order * b1 + (1 - order) * b2
            if min(x, y) <= 0:
                return math.inf
            moment = (
                special.betaln(x, y) - order * special.betaln(a1, b1) - (1 - order) * special.betaln(a2, b2)
            )
            worst = max(worst, moment / (order - 1))
    return float(worst)


def figure1(out: Path) -> dict[str, Any]:
    """Renyi curves of Algorithms 2 and 3: the accountant (all pairs) over Corollary 2 (boundary pairs)."""
    orders = np.concatenate([np.linspace(1.05, 10, 50), np.linspace(10.5, 30, 40)])
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.1), sharey=True)
    largest_gap = 0.0
    for panel, kind in zip(axes, ("Algorithm 2 (r)", "Algorithm 3 (m)"), strict=True):
        for scale, shade in zip((1, 0.9, 0.7, 0.5, 0.3, 0.1), np.linspace(1, 0.3, 6), strict=True):
            weight = scale if "2" in kind else 1.0
            prior = PRIOR if "2" in kind else (PRIOR[0] / scale, PRIOR[1] / scale)
            guarantee = beta_bernoulli(*prior, SIZE, weight=weight)
            ours = np.array([guarantee.renyi(o) for o in orders])
            printed = np.array([boundary_pairs(prior, weight, o) for o in orders])
            both = np.isfinite(ours) & np.isfinite(printed)
            largest_gap = max(largest_gap, float(np.abs(ours[both] / printed[both] - 1).max()))
            panel.plot(orders, ours, color=BLUE, alpha=shade, label=f"{scale:g}")
            panel.plot(orders[::6], printed[::6], "o", ms=2.5, mfc="none", color=ORANGE, alpha=shade)
        panel.set(title=kind, xlabel=r"order $\lambda$", yscale="log", ylim=(1e-3, 5), xlim=(1, 30))
    axes[0].set_ylabel(r"Rényi divergence $\epsilon$")
    axes[1].legend(title="r or m", ncol=2, loc="lower right", fontsize=8)
    axes[0].plot([], [], "o", ms=2.5, mfc="none", color=ORANGE, label="Corollary 2, boundary pairs")
    axes[0].plot([], [], color=BLUE, label="accountant, all pairs")
    axes[0].legend(
        *[part[-2:] for part in axes[0].get_legend_handles_labels()], loc="lower right", fontsize=8
    )
    figure.tight_layout()
    figure.savefig(out / "figure1.png", dpi=160)
    plt.close(figure)
    return {"largest relative gap between accountant and Corollary 2": largest_gap}


@dataclass(frozen=True)
class Noisy:
    """The baseline: the count with Gaussian noise, projected to [0, n]; a mixture of Beta laws."""

    deviation: float

    def mixture(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Projected counts and their probabilities."""
        inside = np.linspace(0, SIZE, 2001)
        edges = np.concatenate([[-np.inf], (inside[1:] + inside[:-1]) / 2, [np.inf]])
        return inside, np.diff(stats.norm.cdf(edges, k, self.deviation))


def kl_beta(a1: float, b1: float, a2: float, b2: float) -> float:
    """KL(Beta(a1, b1) || Beta(a2, b2))."""
    s, psi = a1 + b1, special.digamma
    return float(
        special.betaln(a2, b2)
        - special.betaln(a1, b1)
        + (a1 - a2) * psi(a1)
        + (b1 - b2) * psi(b1)
        + (a2 + b2 - s) * psi(s)
    )


def kl_noisy(noisy: Noisy) -> float:
    """KL of the true posterior from the mixture, by quadrature."""
    a, b = PRIOR[0] + SUCCESSES, PRIOR[1] + SIZE - SUCCESSES
    x = np.linspace(1e-4, 1 - 1e-4, 2000)
    p = stats.beta.logpdf(x, a, b)
    k, share = noisy.mixture(SUCCESSES)
    keep = share > 1e-30
    logs = stats.beta.logpdf(x[:, None], PRIOR[0] + k[keep], PRIOR[1] + SIZE - k[keep]) + np.log(share[keep])
    return float(np.trapezoid(np.exp(p) * (p - special.logsumexp(logs, axis=1)), x))


def figure2(out: Path, quick: bool) -> dict[str, Any]:
    """KL from the true posterior, and the log-likelihood of 100 held-out trials, at lambda = 2 and 15."""
    epsilons = np.geomspace(0.01, 10, 7 if quick else 19)
    times = 500 if quick else 10_000
    source = np.random.default_rng(2)
    figure, axes = plt.subplots(2, 2, figsize=(7.6, 5.2), sharex=True)
    found: dict[str, Any] = {}
    for column, order in enumerate((2.0, 15.0)):
        family = BetaBernoulli(prior=PRIOR)
        a, b = PRIOR[0] + SUCCESSES, PRIOR[1] + SIZE - SUCCESSES
        rows: dict[str, list[float]] = {"r": [], "m": [], "noise": [], "noise as published": []}
        held: dict[str, list[tuple[float, float]]] = {"r": [], "m": [], "noise": [], "posterior": []}
        data = source.binomial(SIZE, 0.5, size=times)
        test = source.binomial(SIZE, 0.5, size=times)

        def scored(p: np.ndarray, test: np.ndarray = test) -> tuple[float, float]:
            p = np.clip(p, 1e-300, 1 - 1e-16)
            score = test * np.log(p) + (SIZE - test) * np.log1p(-p)
            return float(score.mean()), float(score.std())

        for epsilon in epsilons:
            target = (order, float(epsilon))
            fixed = DiffusedPosterior(family).plan(SIZE, renyi=target).parameters
            r = float(fixed["weight"])  # pyright: ignore[reportArgumentType]
            fixed = ConcentratedPosterior(family).plan(SIZE, renyi=target).parameters
            m = float(fixed["concentration"])  # pyright: ignore[reportArgumentType]
            rows["r"].append(kl_beta(a, b, PRIOR[0] + r * SUCCESSES, PRIOR[1] + r * (SIZE - SUCCESSES)))
            rows["m"].append(kl_beta(a, b, PRIOR[0] / m + SUCCESSES, PRIOR[1] / m + SIZE - SUCCESSES))
            # A count moves by 1: sigma^2 = lambda / (2 epsilon); the paper prints lambda / epsilon.
            tight = Noisy(math.sqrt(order / (2 * epsilon)))
            rows["noise"].append(kl_noisy(tight))
            rows["noise as published"].append(kl_noisy(Noisy(math.sqrt(order / epsilon))))
            held["r"].append(scored(source.beta(PRIOR[0] + r * data, PRIOR[1] + r * (SIZE - data))))
            held["m"].append(scored(source.beta(PRIOR[0] / m + data, PRIOR[1] / m + SIZE - data)))
            noisy = np.clip(data + tight.deviation * source.standard_normal(times), 0, SIZE)
            held["noise"].append(scored(source.beta(PRIOR[0] + noisy, PRIOR[1] + SIZE - noisy)))
            held["posterior"].append(scored(source.beta(PRIOR[0] + data, PRIOR[1] + SIZE - data)))
        top, bottom = axes[:, column]
        styles = {
            "r": (BLUE, "-", "Algorithm 2"),
            "m": (GREEN, "-", "Algorithm 3"),
            "noise": (ORANGE, "-", "Gaussian noise"),
            "noise as published": (ORANGE, ":", "Gaussian noise, constant as printed"),
            "posterior": (GREY, "--", "true posterior"),
        }
        for name, values in rows.items():
            colour, line, label = styles[name]
            top.plot(epsilons, np.maximum(values, 1e-6), line, color=colour, label=label)
        for name, pairs in held.items():
            colour, line, label = styles[name]
            mean, spread = np.array(pairs).T
            bottom.plot(epsilons, mean, line, color=colour, label=label)
            bottom.fill_between(epsilons, mean - spread, mean + spread, color=colour, alpha=0.1, lw=0)
        top.set(title=rf"$\lambda = {order:g}$", xscale="log", yscale="log", ylim=(1e-3, 100))
        bottom.set(xlabel=r"$\epsilon$", ylim=(-110, -64))
        found[f"lambda {order:g}"] = {
            name: dict(zip([f"{e:.4g}" for e in epsilons], values, strict=True))
            for name, values in rows.items()
        }
    axes[0, 0].set_ylabel("KL(posterior || release)")
    axes[1, 0].set_ylabel("held-out log-likelihood")
    axes[0, 0].legend(fontsize=7.5, loc="upper right")
    axes[1, 1].legend(fontsize=7.5, loc="lower right")
    figure.tight_layout()
    figure.savefig(out / "figure2.png", dpi=160)
    plt.close(figure)
    return found
