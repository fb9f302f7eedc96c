"""Paper B, Figures 2, 6 and 10 (top): private logistic regression, every method at its true epsilon.

    export DISCREET_DATA=/work/shared/data
    python experiments/beta_divergence/logistic.py            # all
    python experiments/beta_divergence/logistic.py simulated  # or: tables, dimension

Writes results/<part>.json, and figures/<part>.png from it. `--check` compares results with expected.json.
"""

import json
import math
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

import discreet as dc
from discreet.mechanisms.one_posterior_sample import minami_weight
from discreet.mechanisms.output_perturbation import Norm, as_published_scale, minimise
from discreet.samplers.coupled import CoupledChains

HERE = Path(__file__).parent
EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0)
SEEDS = 20
DELTA = 1e-5
PRIOR = 1 / 9
DRAWN = CoupledChains(pairs=0, bill=False)  # the same chain, without a check per run: 4,000 runs
NORM = 4.0
"""Declared bound on the norm of a simulated row, per sqrt(dimension / 2): 1 row in 3,000 is shortened."""


def ours(x, y, epsilon, bound):  # noqa: ARG001
    """Beta-divergence, (beta, w) by the documented rule; rows need no bound."""
    model = dc.models.LogisticRegression(x.shape[1], row_norm=1e4, prior_precision=PRIOR)
    mechanism = dc.mechanisms.OnePosteriorSample(model, sampler=DRAWN)
    return _draw(mechanism, x, y, dc.Budget(epsilon))


def paper_beta(x, y, epsilon, bound):  # noqa: ARG001
    """Beta-divergence with paper B's pair, w = 1 and beta = 1 + 2 / epsilon."""
    model = dc.models.LogisticRegression(x.shape[1], row_norm=1e4, prior_precision=PRIOR)
    loss = dc.models.BetaDivergence(1 + 2 / epsilon, 1.0)
    return _draw(dc.mechanisms.OnePosteriorSample(model, loss=loss, sampler=DRAWN), x, y, dc.Budget(epsilon))


def gibbs(x, y, epsilon, bound):
    """Minami et al.'s posterior at the sharper price, delta = 1e-5."""
    model = dc.models.LogisticRegression(x.shape[1], row_norm=bound, prior_precision=PRIOR)
    mechanism = dc.mechanisms.OnePosteriorSample(model, loss=dc.models.Gibbs(), sampler=DRAWN)
    return _draw(mechanism, x, y, dc.Budget(epsilon, DELTA))


def minami(x, y, epsilon, bound):
    """Minami et al. with their own weight, delta = 1e-5."""
    model = dc.models.LogisticRegression(x.shape[1], row_norm=bound, prior_precision=PRIOR)
    weight = min(1.0, minami_weight(epsilon, DELTA, lipschitz=bound, convexity=PRIOR))
    mechanism = dc.mechanisms.OnePosteriorSample(model, loss=dc.models.Gibbs(weight), sampler=DRAWN)
    return _draw(mechanism, x, y, dc.Budget(epsilon, DELTA))


def chaudhuri(power: int, norm: Norm) -> Callable[..., np.ndarray]:
    """Output perturbation with lambda = 1/9 (power 0) or 1/(9n) (power 1), corrected."""

    def run(x, y, epsilon, bound):
        model = dc.models.LogisticRegression(x.shape[1], row_norm=bound)
        mechanism = dc.mechanisms.OutputPerturbation(model, PRIOR / len(y) ** power, norm)
        return _draw(mechanism, x, y, dc.Budget(epsilon))

    return run


def published(x, y, epsilon, bound):
    """Paper B's coordinate form with its printed scale, coordinates within 1: not private."""
    each = bound / math.sqrt(x.shape[1])
    scaled = np.clip(x / each, -1, 1)
    found = minimise(scaled, y, PRIOR, tolerance=1e-9)
    rng = np.random.default_rng(_key(x, epsilon))
    return (found + rng.laplace(scale=as_published_scale(len(y), PRIOR, epsilon), size=x.shape[1])) / each


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "beta-divergence (ours)": ours,
    "beta-divergence, paper's pair": paper_beta,
    "Gibbs, sharper price (ours)": gibbs,
    "Minami et al.": minami,
    "Chaudhuri et al., lambda 1/9": chaudhuri(0, Norm.EUCLIDEAN),
    "Chaudhuri et al., lambda 1/(9n)": chaudhuri(1, Norm.EUCLIDEAN),
    "Chaudhuri, coordinates, corrected": chaudhuri(0, Norm.COORDINATES),
    "as published (not private)": published,
}


def _key(x, epsilon) -> int:
    """A seed that is the same in every run, and different for every table and budget."""
    return zlib.crc32(x.tobytes() + str(epsilon).encode())


def _draw(mechanism, x, y, budget):
    return (
        mechanism.plan(n=len(y), budget=budget)
        .release({"x": x, "y": y}, key=_key(x, budget.epsilon))
        .draws["w"][0]
    )


def simulate(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, d, seed])
    theta = 3 * rng.standard_normal(d)
    x = rng.standard_normal((n, d))
    return x, (rng.random(n) < 1 / (1 + np.exp(-x @ theta))).astype(float), theta


def rows_of(scores: dict[str, list[float]], where: dict) -> list[dict]:
    return [
        {**where, "method": m, "mean": float(np.mean(v)), "se": float(np.std(v, ddof=1) / math.sqrt(len(v)))}
        for m, v in scores.items()
    ]


def simulated(sizes: tuple[int, ...] = (50, 200, 1000, 5000), d: int = 2) -> list[dict]:
    """Log RMSE and ROC-AUC against n, at every epsilon."""
    found = []
    for n in sizes:
        tests = [simulate(n, d, seed) for seed in range(SEEDS)]
        for epsilon in EPSILONS:
            errors, areas, signs = ({m: [] for m in METHODS} for _ in range(3))
            for seed, (x, y, theta) in enumerate(tests):
                fresh = np.random.default_rng([9, n, d, seed])
                held = fresh.standard_normal((2000, d))
                label = fresh.random(2000) < 1 / (1 + np.exp(-held @ theta))
                for method, run in METHODS.items():
                    w = run(x, y, epsilon, NORM * math.sqrt(d / 2))
                    errors[method].append(0.5 * math.log(np.mean((w - theta) ** 2)))
                    areas[method].append(roc_auc_score(label, held @ w))
                    signs[method].append(float(np.mean(np.sign(w) == np.sign(theta))))
            for name, scores in (("log RMSE", errors), ("ROC-AUC", areas), ("sign accuracy", signs)):
                found += rows_of(scores, {"score": name, "n": n, "d": d, "epsilon": epsilon})
            print(n, d, epsilon, {m: round(float(np.mean(v)), 2) for m, v in errors.items()}, flush=True)
    return found


def dimension() -> list[dict]:
    """Log RMSE against d at n = 1000."""
    return [row for d in (2, 4, 8, 16, 32) for row in simulated((1000,), d)]


TABLES = {"abalone": None, "banknote": None, "adult": 5}


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Paper B's table, features scaled to [0, 1] by bounds declared in the benchmark, a constant appended."""
    import csv
    import gzip
    import os

    folder = Path(os.environ["DISCREET_DATA"])
    file = {"abalone": "abalone", "banknote": "banknote", "adult": "adult_train"}[name]
    with gzip.open(folder / f"{file}.csv.gz", "rt") as stream:
        rows = list(csv.DictReader(stream))
    declared = {
        "abalone": {"length": (0, 1), "diameter": (0, 1), "height": (0, 0.4), "whole_weight": (0, 3),
                    "shucked_weight": (0, 1.5), "viscera_weight": (0, 0.8), "shell_weight": (0, 1.2)},
        "banknote": {"variance": (-8, 8), "skewness": (-15, 15), "curtosis": (-6, 18), "kurtosis": (-6, 18),
                     "entropy": (-9, 3)},
        "adult": {"age": (16, 90), "education_num": (1, 16), "hours_per_week": (1, 99),
                  "capital_gain": (0, 20000),
                  "capital_loss": (0, 3000)},
    }[name]  # fmt: skip
    columns = [
        np.clip((np.array([float(r[c]) for r in rows]) - low) / (high - low), 0, 1)
        for c, (low, high) in declared.items()
        if c in rows[0]
    ]
    if name == "abalone":
        columns += [np.array([r["sex"] == level for r in rows], dtype=float) for level in ("I", "M")]
    target = {"abalone": lambda r: int(r["rings"]) > 10, "banknote": lambda r: r["class"] == "1"}.get(
        name, lambda r: r["income"].startswith(">")
    )
    return np.column_stack([*columns, np.ones(len(rows))]), np.array([target(r) for r in rows], dtype=float)


def tables() -> list[dict]:
    """ROC-AUC on a tenth held out."""
    found = []
    for name in TABLES:
        x, y = table(name)
        bound = math.sqrt(x.shape[1])
        for epsilon in EPSILONS:
            scores = {m: [] for m in METHODS}
            for seed in range(SEEDS):
                order = np.random.default_rng(seed).permutation(len(y))
                test, train = order[: len(y) // 10], order[len(y) // 10 :]
                for method, run in METHODS.items():
                    w = run(x[train], y[train], epsilon, bound)
                    scores[method].append(roc_auc_score(y[test], x[test] @ w))
            found += rows_of(scores, {"score": "ROC-AUC", "table": name, "epsilon": epsilon})
            print(name, epsilon, {m: round(float(np.mean(v)), 3) for m, v in scores.items()}, flush=True)
    return found


PARTS: dict[str, Callable[[], list[dict]]] = {
    "simulated": simulated,
    "tables": tables,
    "dimension": dimension,
}

STYLES = {
    "beta-divergence (ours)": ("C0", "-", "o"),
    "beta-divergence, paper's pair": ("C0", ":", "."),
    "Gibbs, sharper price (ours)": ("C1", "-", "s"),
    "Minami et al.": ("C1", ":", "."),
    "Chaudhuri et al., lambda 1/9": ("C2", "-", "^"),
    "Chaudhuri et al., lambda 1/(9n)": ("C3", "-", "v"),
    "Chaudhuri, coordinates, corrected": ("C4", "-", "x"),
    "as published (not private)": ("0.5", "--", ""),
}


def draw(part: str) -> None:
    """A panel per epsilon (or per table), a line per method."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = json.loads((HERE / "results" / f"{part}.json").read_text())
    key = {"simulated": "n", "dimension": "d", "tables": "epsilon"}[part]
    panel = "table" if part == "tables" else "epsilon"
    scores = list(dict.fromkeys(r["score"] for r in rows))
    panels = list(dict.fromkeys(r[panel] for r in rows))
    figure, axes = plt.subplots(
        len(scores), len(panels), figsize=(3.2 * len(panels), 3 * len(scores)), sharey="row", squeeze=False
    )
    for i, score in enumerate(scores):
        for j, value in enumerate(panels):
            axis = axes[i][j]
            for method, (color, line, marker) in STYLES.items():
                mine = [r for r in rows if (r["score"], r[panel], r["method"]) == (score, value, method)]
                mean, se = np.array([r["mean"] for r in mine]), np.array([r["se"] for r in mine])
                at = [r[key] for r in mine]
                axis.plot(at, mean, color=color, ls=line, marker=marker, ms=4, lw=1.2, label=method)
                axis.fill_between(at, mean - se, mean + se, color=color, alpha=0.12, lw=0)
            axis.set_xscale("log")
            axis.set_title(f"epsilon {value:g}" if panel == "epsilon" else value, fontsize=9)
            axis.set_xlabel(key, fontsize=8)
            axis.tick_params(labelsize=7)
            if score == "log RMSE":
                axis.set_ylim(-2.5, 3)
        axes[i][0].set_ylabel(score, fontsize=9)
    note = (
        f"as published: its true epsilon is up to {2 if part == 'simulated' else 'd'} times what is written"
    )
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="lower center", ncol=4, fontsize=8, frameon=False, title=note, title_fontsize=8
    )
    figure.tight_layout(rect=(0, 0.14 if len(scores) == 1 else 0.07, 1, 1))
    (HERE / "figures").mkdir(exist_ok=True)
    figure.savefig(HERE / "figures" / f"{part}.png", dpi=110)


def check() -> int:
    """Every stored expectation is met by the results."""
    bad = 0
    for want in json.loads((HERE / "expected.json").read_text()):
        rows = json.loads((HERE / "results" / f"{want['part']}.json").read_text())
        (row,) = [r for r in rows if all(r.get(k) == v for k, v in want["where"].items())]
        if not want["low"] <= row["mean"] <= want["high"]:
            print(f"{want}: got {row['mean']:.3f}")
            bad += 1
    return bad


if __name__ == "__main__":
    if "--check" in sys.argv:
        raise SystemExit(check())
    (HERE / "results").mkdir(exist_ok=True)
    for part in [a for a in sys.argv[1:] if a in PARTS] or PARTS:
        if "--draw" not in sys.argv:
            (HERE / "results" / f"{part}.json").write_text(json.dumps(PARTS[part](), indent=1) + "\n")
        draw(part)
