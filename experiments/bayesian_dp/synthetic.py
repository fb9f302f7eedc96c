"""Figures 1 to 4: invented gradients whose norms have a Weibull distribution of shape 0.5."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as pld
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray
from scipy import stats
from style import BLUE, GREEN, GREY, ORANGE, plt

from discreet.privacy import (
    BayesianAccountant,
    Guarantee,
    ObservedRun,
    PublishedBayesianAccountant,
    poisson_gaussian,
)

Array = NDArray[np.float64]
Curves = dict[str, dict[str, float]]

RATE, STEPS, DELTA, PAIRS = 64 / 60_000, 10_000, 1e-5, 64
NORMS = stats.weibull_min(0.5)
QUANTILES = (0.05, 0.5, 0.75, 0.99)
SIGMAS = (0.6, 1.0, 2.0, 4.0)
CHECKPOINTS = (100, 300, 1000, 3000, 10_000)
LAMBDAS = tuple(range(1, 129))
GAMMA = 1e-15  # the paper's; ours has its own in delta
ORDERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 48, 64)  # of the published accountant


@lru_cache
def cost(sigma: float, steps: int = STEPS) -> Guarantee:
    """What `steps` clipped and noised sums cost everybody."""
    return poisson_gaussian(RATE, sigma, steps, neighbours="add_remove")


@lru_cache
def moments_accountant(sigma: float, steps: int = STEPS) -> float:
    """The smallest epsilon of whole orders up to 64 by Markov's inequality, as Abadi et al. have it."""
    guarantee = cost(sigma, steps)
    return min(guarantee.renyi(order + 1.0) + math.log(1 / DELTA) / order for order in range(1, 65))


def norms(seed: int, steps: int) -> Array:
    """Norms of random people, afresh for every step."""
    return NORMS.ppf(np.random.default_rng(seed).random((steps, PAIRS)))


def watched(
    accountant: BayesianAccountant | PublishedBayesianAccountant,
    sigma: float,
    distances: Array,
    largest: float,
) -> float:
    """The epsilon that an accountant reports of a run; of invented people, so that it may be shown."""
    steps = len(distances)
    accountant.begin(ObservedRun(RATE, sigma, largest, steps, cost(sigma / largest, steps)))
    for row in distances:
        accountant.observe(row)
    if isinstance(accountant, BayesianAccountant):
        return accountant.epsilon(DELTA).reveal()
    return accountant.result().reveal().epsilon(DELTA)


def composed(ratio: float, steps: int) -> pld.PrivacyLossDistribution:
    """The loss distribution of a person whose norm is noise / ratio, by dp-accounting."""
    one = pld.from_gaussian_mechanism(
        ratio,
        sampling_prob=RATE,
        value_discretization_interval=1e-4 / max(1.0, ratio),
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
    )
    return one.self_compose(steps)


def published() -> PublishedBayesianAccountant:
    """The product of expectations with Student's t; the left term of Theorem 4 alone, which is kinder."""
    return PublishedBayesianAccountant(pairs=PAIRS, gamma=GAMMA, orders=ORDERS, right_term=False)


class Truth:
    """The Bayesian epsilon of people who keep their norm for the whole run, by exact privacy profiles.

    No bound of the accountant is used: E_x H_epsilon with each person's hockey-stick
    divergence from the loss distribution of the composed run.
    """

    EPSILONS: Array = np.geomspace(1e-3, 12.0, 240)

    def __init__(self, steps: int) -> None:
        self.ratios: Array = np.geomspace(0.5, 20.0, 16)  # noise over norm; below, H is taken for 1
        rows = [
            composed(ratio, steps).get_delta_for_epsilon(self.EPSILONS.tolist())
            for ratio in self.ratios.tolist()
        ]
        self.log_profiles: Array = np.log(np.maximum(np.array(rows), 1e-300))

    def epsilon(self, sigma: float, *, clip: float | None) -> float:
        """At noise sigma, for norms clipped to `clip`, or not clipped."""
        tail = np.concatenate([np.linspace(0, 0.9, 10)[1:], 1 - np.geomspace(0.1, 1e-7, 80)[1:]])
        edges = np.concatenate([[0.0], tail, [1.0]])
        middle = (edges[1:] + edges[:-1]) / 2
        people, weights = NORMS.ppf(middle), np.diff(edges)
        if clip is not None:
            people = np.minimum(people, clip)
        ratio = sigma / people
        at = np.clip(ratio, self.ratios[0], self.ratios[-1])
        profile = np.array([np.interp(np.log(at), np.log(self.ratios), row) for row in self.log_profiles.T])
        h = np.where(ratio < self.ratios[0], 1.0, np.exp(profile)) @ weights
        below = np.flatnonzero(h <= DELTA)
        return float(self.EPSILONS[below[0]]) if below.size else math.inf


def figure1(truth: Truth, sigmas: tuple[float, ...]) -> dict[str, Curves]:
    """Epsilon against noise, clipped for both; the norm's unit is the clipping limit."""
    found: dict[str, Curves] = {}
    drawn = norms(1, STEPS)
    for quantile in QUANTILES:
        limit = float(NORMS.ppf(quantile))
        rows: Curves = {}
        for sigma in sigmas:
            clipped = np.minimum(drawn / limit, 1.0)
            everybody = cost(sigma)
            rows[f"{sigma:g}"] = {
                "DP": everybody.epsilon(DELTA),
                "DP, moments accountant": moments_accountant(sigma),
                "BDP as published": watched(published(), sigma, clipped, 1.0),
                "BDP corrected": watched(BayesianAccountant(pairs=PAIRS, blocks=1), sigma, clipped, 1.0),
                "BDP, truth": truth.epsilon(sigma * limit, clip=limit),
            }
        found[f"{quantile:g}"] = rows
    return found


def figure2(truth: Truth, sigmas: tuple[float, ...]) -> dict[str, Curves]:
    """As figure 1, without clipping for Bayesian DP: its moments are infinite, its truth is not."""
    found: dict[str, Curves] = {}
    drawn = norms(2, STEPS)
    for quantile in QUANTILES:
        limit = float(NORMS.ppf(quantile))
        found[f"{quantile:g}"] = {
            f"{sigma:g}": {
                "DP": cost(sigma).epsilon(DELTA),
                "BDP as published": watched(
                    published(),
                    sigma * limit,
                    drawn,
                    float(drawn.max()),
                ),
                "BDP corrected": math.inf,  # E exp(lambda D) is infinite for every lambda: nothing bounds it
                "BDP, truth": truth.epsilon(sigma * limit, clip=None),
            }
            for sigma in sigmas
        }
    return found


def figure3(truths: dict[int, Truth]) -> dict[str, Curves]:
    """Epsilon against steps, noise at a quantile of the norms."""
    found: dict[str, Curves] = {}
    for quantile in QUANTILES:
        noise = float(NORMS.ppf(quantile))
        rows: Curves = {}
        for steps, truth in truths.items():
            drawn = norms(3, steps)
            rows[str(steps)] = {
                "DP": cost(1.0, steps).epsilon(DELTA),
                "DP, moments accountant": moments_accountant(1.0, steps),
                "BDP as published, not clipped": watched(
                    published(),
                    noise,
                    drawn,
                    float(drawn.max()),
                ),
                "BDP corrected, clipped at the noise": watched(
                    BayesianAccountant(pairs=PAIRS, blocks=1), 1.0, np.minimum(drawn / noise, 1.0), 1.0
                ),
                "BDP, truth, not clipped": truth.epsilon(noise, clip=None),
                "BDP, truth, clipped": truth.epsilon(noise, clip=noise),
            }
        found[f"{quantile:g}"] = rows
    return found


def figure4() -> dict[str, Curves]:
    """Epsilon against lambda at fixed distances, where both accountants are the moments accountant."""
    found: dict[str, Curves] = {}
    for distance in (0.1, 0.5, 1.0, 2.0):
        one = cost(1 / distance)
        found[f"{distance:g}"] = {
            str(order): {"epsilon": one.renyi(order + 1.0) + math.log(1 / DELTA) / order} for order in LAMBDAS
        }
    return found


# --- drawing ------------------------------------------------------------------------

STYLES: dict[str, dict[str, Any]] = {
    "DP": {"color": GREY},
    "DP, moments accountant": {"color": GREY, "ls": ":"},
    "BDP as published": {"color": ORANGE, "ls": "--"},
    "BDP corrected": {"color": BLUE},
    "BDP, truth": {"color": GREEN, "marker": ".", "lw": 0.8},
}


def style_of(name: str) -> dict[str, Any]:
    known = [s for s in STYLES if name.startswith(s)]
    chosen = dict(STYLES[max(known, key=len)])
    if name.endswith("truth, clipped"):
        chosen["ls"] = ":"
    return chosen


def panels(out: Path, found: dict[str, Curves], title: Callable[[str], str], across: str) -> None:
    """One panel for each quantile, one line for each accountant; what is infinite is not drawn."""
    figure, axes = plt.subplots(1, len(found), figsize=(11, 2.9), sharey=True, layout="constrained")
    for axis, (quantile, rows) in zip(axes, found.items(), strict=True):
        at = [float(key) for key in rows]
        for name in next(iter(rows.values())):
            height = [row[name] if math.isfinite(row[name]) else math.nan for row in rows.values()]
            axis.plot(at, height, label=name, **style_of(name))
        axis.set(xscale="log", yscale="log", title=title(quantile), xlabel=across)
        axis.set_xticks(at, [f"{x:g}" for x in at])
        axis.xaxis.set_minor_locator(NullLocator())
    axes[0].set_ylabel(f"epsilon at delta {DELTA:g}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=7, ncol=5, loc="outside lower center")
    figure.savefig(out, dpi=150)
    plt.close(figure)


def draw4(out: Path, found: dict[str, Curves]) -> None:
    figure, axis = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    for color, (distance, rows) in zip((BLUE, GREEN, ORANGE, GREY), found.items(), strict=True):
        axis.plot(
            [int(k) for k in rows],
            [v["epsilon"] for v in rows.values()],
            color=color,
            label=f"C = {distance}",
        )
    axis.set(xscale="log", yscale="log", xlabel="lambda", ylabel=f"epsilon at delta {DELTA:g}")
    axis.legend(fontsize=7)
    figure.savefig(out, dpi=150)
    plt.close(figure)


def run(out: Path, quick: bool) -> dict[str, Any]:
    """Figures 1 to 4 and their numbers."""
    steps = CHECKPOINTS[-1:] if quick else CHECKPOINTS
    sigmas = SIGMAS[2:3] if quick else SIGMAS
    truths = {t: Truth(t) for t in steps}
    found = {
        "figure 1": figure1(truths[STEPS], sigmas),
        "figure 2": figure2(truths[STEPS], sigmas),
        "figure 3": figure3(truths),
        "figure 4": figure4(),
    }
    panels(out / "figure1.png", found["figure 1"], lambda q: f"clipped at the {q}-quantile", "noise / C")
    panels(out / "figure2.png", found["figure 2"], lambda q: f"C at the {q}-quantile", "noise / C")
    panels(out / "figure3.png", found["figure 3"], lambda q: f"noise at the {q}-quantile", "steps")
    draw4(out / "figure4.png", found["figure 4"])
    return found
