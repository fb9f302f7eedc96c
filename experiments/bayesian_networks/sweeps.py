"""Figures 1, 4 and 5: accuracy and privacy as steps, noise, clipping norm, batch and step size change.

Each point is a run of its own. The network is the perceptron; the paper has the CNN in Figures 4 and 5.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from classify import Bench
from settings import BATCH, BUDGET, MAKERS, STEPS, Setting

import discreet as dc
from discreet.mechanisms import LangevinDynamics, Sgd
from discreet.neural import Flat

mpl.use("Agg")
import matplotlib.pyplot as plt

METHODS = {"sgld": "DP-SGLD", "bbp": "DP-BBP", "mcd": "DP-MC dropout", "sgd": "DP-SGD"}
COLOURS = {"sgld": "#0b57a8", "bbp": "#d9772b", "mcd": "#3c8c5a", "sgd": "#8a8a8a"}
STEP = 2.0
LANGEVIN_STEP = STEP / 60_000
NORMS, SIGMAS = (0.5, 1.5, 5.0), (0.5, 0.9, 1.3, 2.0, 3.0)
BATCHES, STEPS_SIZES = (256, 512, 1024, 2048, 4096), (0.25, 0.5, 1.0, 2.0, 4.0)
EPOCHS = 4


def run(bench: Bench, *, quick: bool) -> None:
    """All points; what is kept is not run again."""
    path = bench.out / "sweeps.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for name, points in (("1", _figure1), ("4", _figure4), ("5", _figure5)):
        for key, plan in points(bench, quick).items():
            if f"{name} {key}" not in found:
                found[f"{name} {key}"] = _point(bench, plan)
                path.write_text(json.dumps(found, indent=1) + "\n")


def _point(bench: Bench, plan: dc.Plan) -> dict[str, float]:
    x, y = bench.inputs("mlp", test=False)
    xt, yt = bench.inputs("mlp", test=True)
    prediction = plan.release({"x": x, "y": y}, key=0).predict(xt)
    epsilon = plan.guarantee.epsilon(BUDGET.delta)
    found = {"accuracy": dc.metrics.accuracy(yt, prediction.mean), "epsilon_pld": epsilon}
    print(f"accuracy {found['accuracy']:.4f};", plan.reasons[-1], flush=True)
    return found


def _size(bench: Bench) -> int:
    return len(bench.inputs("mlp", test=False)[1])


def _figure1(bench: Bench, quick: bool) -> dict[str, dc.Plan]:
    """Steps 1/8, 1/4, ..., 1 of a run, at the noise of the whole."""
    n = _size(bench)
    whole = bench.steps or STEPS["mlp"]
    found: dict[str, dc.Plan] = {}
    for method in METHODS:
        setting = Setting(method, "mlp")
        full = setting.plan(n, whole)
        for part in (1.0,) if quick else (0.125, 0.25, 0.5, 0.75, 1.0):
            steps = int(part * whole)
            mechanism = MAKERS[method](setting)
            if isinstance(mechanism, LangevinDynamics):
                step = float(str(full.parameters["step_size"]))
                plan = dataclasses.replace(mechanism, step_size=step).plan(n=n, batch=BATCH, steps=steps)
            else:
                sigma = float(str(full.parameters["sigma"]))
                plan = mechanism.plan(n=n, batch=BATCH, steps=steps, noise_multiplier=sigma)
            found[f"{method} {steps * BATCH / n:.2f}"] = plan
    return found


def _figure4(bench: Bench, quick: bool) -> dict[str, dc.Plan]:
    """The DP-SGD family over clipping norm and noise, and the members that are DP-SGLD (Theorem 1)."""
    n, found = _size(bench), dict[str, dc.Plan]()
    for norm in NORMS[:1] if quick else NORMS:
        for sigma in SIGMAS[2:3] if quick else SIGMAS:
            found[f"sgd {norm} {sigma}"] = _descent(n, BATCH, norm, sigma, STEP)
        found[f"sgld {norm} -"] = _langevin(n, BATCH, norm, LANGEVIN_STEP)
    return found


def _figure5(bench: Bench, quick: bool) -> dict[str, dc.Plan]:
    """Batch and step size, one at a time."""
    n, found = _size(bench), dict[str, dc.Plan]()
    for batch in BATCHES[2:3] if quick else BATCHES:
        found[f"sgd batch {batch}"] = _descent(n, batch, 1.5, 1.3, STEP)
        found[f"sgld batch {batch}"] = _langevin(n, batch, 1.5, LANGEVIN_STEP)
    for step in STEPS_SIZES[2:3] if quick else STEPS_SIZES:
        found[f"sgd step {step}"] = _descent(n, BATCH, 1.5, 1.3, step)
        found[f"sgld step {step}"] = _langevin(n, BATCH, 1.5, step / 60_000)
    return found


def _descent(n: int, batch: int, norm: float, sigma: float, step: float) -> dc.Plan:
    mechanism = dataclasses.replace(
        MAKERS["sgd"](Setting("sgd", "mlp")), clipping=Flat(norm), optimiser=Sgd(step)
    )
    return mechanism.plan(n=n, batch=batch, steps=EPOCHS * n // batch, noise_multiplier=sigma)


def _langevin(n: int, batch: int, norm: float, step: float) -> dc.Plan:
    mechanism = dataclasses.replace(
        MAKERS["sgld"](Setting("sgld", "mlp")), clipping=Flat(norm), step_size=step, thin=1
    )
    return mechanism.plan(n=n, batch=batch, steps=EPOCHS * n // batch)


def draw(out: Path) -> list[str]:
    """The three figures, or their names if there is nothing to draw."""
    path = out / "sweeps.json"
    if not path.exists():
        return ["figure1.png", "figure4.png", "figure5.png"]
    found = {tuple(key.split()): value for key, value in json.loads(path.read_text()).items()}
    _draw1(out, {key[1:]: value for key, value in found.items() if key[0] == "1"})
    _draw4(out, {key[1:]: value for key, value in found.items() if key[0] == "4"})
    _draw5(out, {key[1:]: value for key, value in found.items() if key[0] == "5"})
    return []


def _draw1(out: Path, found: dict[tuple[str, ...], Any]) -> None:
    figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
    for method, name in METHODS.items():
        points = sorted((float(key[1]), one["accuracy"]) for key, one in found.items() if key[0] == method)
        axes.plot(*np.array(points).T, marker="o", color=COLOURS[method], label=name)
    axes.set_xlabel("epochs, at the noise of the whole run")
    axes.set_ylabel("test accuracy")
    axes.legend()
    figure.savefig(out / "figure1.png", dpi=110)
    plt.close(figure)


def _draw4(out: Path, found: dict[tuple[str, ...], Any]) -> None:
    figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
    for method, marker in (("sgd", "o"), ("sgld", "*")):
        points = [(one["epsilon_pld"], one["accuracy"]) for key, one in found.items() if key[0] == method]
        size = 90 if method == "sgld" else 25
        axes.scatter(*np.array(points).T, marker=marker, s=size, color=COLOURS[method], label=METHODS[method])
    axes.set_xscale("log")
    axes.set_xlabel("epsilon at delta 1e-5 (PLD)")
    axes.set_ylabel("test accuracy")
    axes.legend()
    figure.savefig(out / "figure4.png", dpi=110)
    plt.close(figure)


def _draw5(out: Path, found: dict[tuple[str, ...], Any]) -> None:
    figure, axes = plt.subplots(2, 2, figsize=(7.6, 5.2), layout="constrained", sharex="col")
    for column, (kind, words) in enumerate((("batch", "batch size"), ("step", "step size x n"))):
        for method in ("sgd", "sgld"):
            points = sorted(
                (float(key[2]), one["accuracy"], one["epsilon_pld"])
                for key, one in found.items()
                if key[:2] == (method, kind)
            )
            across, accuracy, epsilon = np.array(points).T
            for row, values in enumerate((accuracy, epsilon)):
                axes[row, column].plot(
                    across, values, marker="o", color=COLOURS[method], label=METHODS[method]
                )
        axes[0, column].set_xscale("log", base=2)
        axes[1, column].set_yscale("log")
        axes[1, column].set_xlabel(words)
    axes[0, 0].set_ylabel("test accuracy")
    axes[1, 0].set_ylabel("epsilon at delta 1e-5 (PLD)")
    axes[0, 0].legend()
    figure.savefig(out / "figure5.png", dpi=110)
    plt.close(figure)
