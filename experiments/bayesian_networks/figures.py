"""The figures of paper N, from what `classify` and `regression` kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digits
import matplotlib as mpl
import numpy as np
import waves
from classify import BINS, EXAMPLES
from settings import Setting

from discreet.metrics import Reliability
from discreet.models.prediction import Prediction
from discreet.report import plots

mpl.use("Agg")
import matplotlib.pyplot as plt

plt.rcParams.update({"font.size": 9, "axes.titlesize": 10, "legend.frameon": False})
NAMES = {"sgld": "SGLD", "bbp": "Bayes by backprop", "mcd": "MC dropout", "sgd": "SGD"}
BAYESIAN = ("sgld", "bbp", "mcd")


def _kept(out: Path, setting: Setting) -> Any:
    path = out / "cache" / f"{setting.name}-0.npz"
    return np.load(path) if path.exists() else None


def _grid(path: Path, rows: list[list[Setting]], draw: Any, titles: list[list[str]], height: float) -> bool:
    """A grid of panels, one per setting; False if a run is missing."""
    found = [[_kept(path.parent, setting) for setting in row] for row in rows]
    if any(one is None for row in found for one in row):
        return False
    figure, axes = plt.subplots(
        len(rows), len(rows[0]), figsize=(3.5 * len(rows[0]), height), layout="constrained", squeeze=False
    )
    for r, row in enumerate(found):
        for c, one in enumerate(row):
            draw(one, axes[r, c])
            axes[r, c].set_title(titles[r][c], loc="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True


def calibration(out: Path) -> list[str]:
    """Figures 7 to 10."""
    y = digits.read(test=True).y

    def diagram(one: Any, axes: Any) -> None:
        plots.reliability_diagram(Reliability.of(y[: len(one["mean"])], one["mean"], bins=BINS), axes)

    def histogram(one: Any, axes: Any) -> None:
        plots.confidence_histogram(Reliability.of(y[: len(one["mean"])], one["mean"], bins=BINS), axes)

    private = [[Setting(m, "mlp", prior) for m in BAYESIAN] for prior in ("gaussian", "none")]
    titles = [[f"{NAMES[m]}, {word} prior" for m in BAYESIAN] for word in ("Gaussian", "no")]
    opened = [[Setting(m, "mlp", "none", private=False) for m in BAYESIAN]]
    last = [
        [Setting("sgd", "mlp", "none", private=False), Setting("sgd", "mlp", "none")],
        [Setting("sgld", "mlp", "gaussian"), Setting("sgld", "mlp", "none")],
    ]
    words = [["SGD, not private", "DP-SGD"], ["DP-SGLD, Gaussian prior", "DP-SGLD, no prior"]]
    plain = [[f"{NAMES[m]}, not private, no prior" for m in BAYESIAN]]
    made = {
        "figure7.png": _grid(out / "figure7.png", private, histogram, titles, 5.6),
        "figure8.png": _grid(out / "figure8.png", private, diagram, titles, 6),
        "figure9.png": _grid(out / "figure9.png", opened, diagram, plain, 3.2),
        "figure10.png": _grid(out / "figure10.png", last, diagram, words, 6.4),
    }
    return [name for name, done in made.items() if not done]


def distributions(out: Path) -> list[str]:
    """Figures 6, 12 and 13: what the draws say of a hard and of an easy digit."""
    read = digits.read(test=True, rows=100)
    figure, axes = plt.subplots(1, 2, figsize=(4, 2.2), layout="constrained")
    for panel, (name, at) in zip(axes, EXAMPLES.items(), strict=True):
        panel.imshow(read.x[at, ..., 0], cmap="gray_r")
        panel.set_title(f"{name}: a {read.y[at]:.0f}", loc="left")
        panel.set_axis_off()
    figure.savefig(out / "figure12.png", dpi=110)
    plt.close(figure)
    rows = [[Setting(m, "mlp", "gaussian", private) for m in BAYESIAN] for private in (False, True)]
    titles = [[NAMES[m] + word for m in BAYESIAN] for word in (", not private", ", private")]
    missing: list[str] = []
    for file, name in (("figure6.png", "hard"), ("figure13.png", "easy")):

        def draw(one: Any, axes: Any, name: str = name) -> None:
            plots.draw_distribution(one[name], axes, bins=10)
            handles, words = axes.get_legend_handles_labels()
            axes.legend(
                handles, words, ncols=2, fontsize=7, loc="upper center", title="label", title_fontsize=7
            )

        if not _grid(out / file, rows, draw, titles, 5.8):
            missing.append(file)
    return missing


def bands(out: Path, found: dict[str, Any]) -> list[str]:
    """Figure 11: two kinds of doubt, without privacy where it was run, and with."""
    words = [word for word in ("open", "private") if all(f"{m}-paper-{word}" in found for m in BAYESIAN)]
    if not words:
        return ["figure11.png"]
    figure, axes = plt.subplots(
        len(words),
        3,
        figsize=(10.5, 2.9 * len(words)),
        layout="constrained",
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    wave = waves.simulate(0)
    for row, private in zip(axes, words, strict=True):
        for panel, method in zip(row, BAYESIAN, strict=True):
            cell = found[f"{method}-paper-{private}"]
            parts = [np.array(cell["bands"][key]) for key in ("mean", "epistemic", "aleatoric")]
            panel.scatter(wave.train["x"], wave.train["y"], s=5, color=plots.MUTED, alpha=0.6, linewidths=0)
            plots.prediction_band(cell["bands"]["x"], Prediction(*parts), panel)
            word = "not private" if private == "open" else "private"
            panel.set_title(f"{NAMES[method]}, {word}: median MSE {cell['median_mse']:.3f}", loc="left")
            panel.set_ylim(-5, 6)
    axes[0, 0].legend(loc="upper left", fontsize=7)
    for panel in axes[-1]:
        panel.set_xlabel("x")
    figure.savefig(out / "figure11.png", dpi=110)
    plt.close(figure)
    return []
