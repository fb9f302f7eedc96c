"""Paper B, Figures 4 and 11: what the optimal membership attack achieves, against log RMSE.

    python experiments/beta_divergence/attack.py     # needs results/simulated.json of logistic.py

The neighbours are paper B's: {(1, 1), (0, 0)} and {(-1, 1), (0, 0)}, one coefficient. The attack that knows
the density of the release succeeds with probability 1/2 + TV/2, by quadrature instead of 10,000 rounds.
Its false positive and negative rates show that epsilon is at least log((1 - delta - FPR) / FNR), or the same
with the rates exchanged (Figure 11); no method is shown to cost more than was claimed.
"""

import json
import math
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

import discreet as dc
from discreet.mechanisms.one_posterior_sample import minami_weight

HERE = Path(__file__).parent
EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0)
GRID = np.linspace(-60, 60, 240_001)


def log_f(x: float, y: int) -> np.ndarray:
    return -np.logaddexp(0, -(2 * y - 1) * x * GRID)


def success(first: np.ndarray, second: np.ndarray) -> float:
    """1/2 + TV/2 of two unnormalised log densities on the grid."""
    one, two = (np.exp(v - np.logaddexp.reduce(v)) for v in (first, second))
    return 0.5 + 0.25 * float(np.abs(one - two).sum())


def lower_bound(first: np.ndarray, second: np.ndarray, delta: float) -> float:
    """The epsilon that the attack's error rates prove."""
    one, two = (np.exp(v - np.logaddexp.reduce(v)) for v in (first, second))
    says_two = two > one
    positive, negative = float(one[says_two].sum()), float(two[~says_two].sum())
    ratios = ((1 - delta - positive) / negative, (1 - delta - negative) / positive)
    return max(0.0, math.log(max(ratios)))


def posterior(loss: str, numbers: tuple[float, ...], x: float) -> np.ndarray:
    value = -0.5 * GRID**2 / 9
    for a, y in ((x, 1), (0.0, 0)):
        if loss == "gibbs":
            value = value + numbers[0] * log_f(a, y)
            continue
        beta, weight = numbers
        whole = np.exp(beta * log_f(a, 1)) + np.exp(beta * log_f(a, 0))
        value = value + weight * (np.exp((beta - 1) * log_f(a, y)) / (beta - 1) - whole / beta)
    return value


def laplace(regularisation: float, scale: float, x: float) -> np.ndarray:
    def objective(w: float) -> float:
        return 0.5 * (np.logaddexp(0, -x * w) + math.log(2)) + regularisation * w * w / 2

    return -np.abs(GRID - minimize_scalar(objective).x) / scale


def main() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    model = dc.models.LogisticRegression(1, prior_precision=1 / 9)
    found: dict[str, list[float]] = {}
    proved: dict[str, list[float]] = {}
    for epsilon in EPSILONS:
        chosen = dc.mechanisms.OnePosteriorSample(model).plan(n=2, budget=dc.Budget(epsilon)).parameters
        gibbs = dc.mechanisms.OnePosteriorSample(model, loss=dc.models.Gibbs())
        weight = gibbs.plan(n=2, budget=dc.Budget(epsilon, 1e-5)).parameters["weight"]
        noise = dc.mechanisms.OutputPerturbation(model, 1 / 9).plan(n=2, budget=dc.Budget(epsilon))
        minami = min(1.0, minami_weight(epsilon, 1e-5, lipschitz=1.0, convexity=1 / 9))
        pairs = {
            "beta-divergence (ours)": [
                posterior("beta", (chosen["beta"], chosen["weight"]), x) for x in (1, -1)
            ],
            "beta-divergence, paper's pair": [posterior("beta", (1 + 2 / epsilon, 1.0), x) for x in (1, -1)],
            "Gibbs, sharper price (ours)": [posterior("gibbs", (weight,), x) for x in (1, -1)],
            "Minami et al.": [posterior("gibbs", (minami,), x) for x in (1, -1)],
            "Chaudhuri et al., lambda 1/9": [laplace(1 / 9, noise.parameters["scale"], x) for x in (1, -1)],
        }
        for method, (one, two) in pairs.items():
            rate = success(one, two)
            limit = math.exp(epsilon) / (1 + math.exp(epsilon)) + 1e-5
            assert rate <= limit, "no attack does better than epsilon allows"
            found.setdefault(method, []).append(rate)
            delta = 0.0 if "beta" in method or "Chaudhuri" in method else 1e-5
            bound = lower_bound(one, two, delta)
            assert bound <= epsilon + 1e-6, "no attack proves more than is claimed"
            proved.setdefault(method, []).append(bound)
    rows = json.loads((HERE / "results" / "simulated.json").read_text())
    figure, (axis, other) = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    table = []
    for method, rates in found.items():
        where = {"score": "log RMSE", "n": 1000, "d": 2, "method": method}
        errors = [
            next(r["mean"] for r in rows if r["epsilon"] == e and all(r[k] == v for k, v in where.items()))
            for e in EPSILONS
        ]
        axis.plot(rates, errors, marker="o", ms=4, lw=1.2, label=method)
        other.plot(proved[method], errors, marker="o", ms=4, lw=1.2, label=method)
        table += [
            {"method": method, "epsilon": e, "success": r, "proved epsilon": b, "log RMSE": m}
            for e, r, b, m in zip(EPSILONS, rates, proved[method], errors, strict=True)
        ]
    axis.set_xlabel("success of the optimal attack")
    axis.set_ylabel("log RMSE (n = 1000, d = 2)")
    other.set_xlabel("epsilon that the attack proves, at least")
    axis.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(HERE / "figures" / "attack.png", dpi=110)
    (HERE / "results" / "attack.json").write_text(json.dumps(table, indent=1) + "\n")
    for row in table:
        print(row)


if __name__ == "__main__":
    main()
