"""Figures 3 and 4: test error by Renyi target and by (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from regression import DELTA, Row
from style import BLUE, GREEN, GREY, plt

STYLES: dict[str, tuple[str, str]] = {
    "OPS as published": (GREY, ":"),
    "OPS": (GREY, "-"),
    "Algorithm 4 as published": (GREEN, ":"),
    "Algorithm 5 as published": (BLUE, ":"),
    "Algorithm 4": (GREEN, "-"),
    "Algorithm 5": (BLUE, "-"),
}


def drawn(panel: Any, row: Row, at: Callable[[str], float]) -> None:
    """Curves with bands of one standard error."""
    for name, (colour, line) in STYLES.items():
        if name in row:
            keys = sorted(row[name], key=at)  # stored results come back in another order
            x = [at(key) for key in keys]
            mean, error = (np.array([row[name][key][part] for key in keys]) for part in ("mean", "se"))
            panel.plot(x, mean, line, color=colour, label=name, marker=".", ms=4)
            panel.fill_between(x, mean - error, mean + error, color=colour, alpha=0.15, lw=0)


def figure3(out: Path, found: dict[str, Any]) -> None:
    figure, axes = plt.subplots(
        3, len(found), figsize=(3.1 * len(found) + 0.6, 6.6), sharex=True, sharey="col", squeeze=False
    )
    for column, (name, both) in enumerate(found.items()):
        for line, (order, row) in enumerate(both["renyi"].items()):
            panel = axes[line, column]
            drawn(panel, row, lambda key: math.exp(float(key)))
            panel.set(xscale="log", ylim=(0, 0.62))
            panel.text(0.03, 0.04, rf"$\lambda = {order}$", transform=panel.transAxes)
        axes[0, column].set_title(name)
        axes[2, column].set_xlabel(r"$\epsilon$")
    for panel in axes[:, 0]:
        panel.set_ylabel("test error")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, ncol=4, loc="lower center", fontsize=8)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(out / "figure3.png", dpi=160)
    plt.close(figure)


def figure4(out: Path, found: dict[str, Any]) -> None:
    figure, axes = plt.subplots(1, len(found), figsize=(3.1 * len(found) + 0.6, 3.4), squeeze=False)
    for panel, (name, both) in zip(axes[0], found.items(), strict=True):
        drawn(panel, both["budget"], float)
        panel.set(
            title=name,
            xscale="log",
            xlabel=rf"$\epsilon$ at $\delta = 10^{{{math.log10(DELTA):.0f}}}$",
            ylim=(0, 0.62),
        )
    axes[0, 0].set_ylabel("test error")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, ncol=3, loc="lower center", fontsize=8)
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    figure.savefig(out / "figure4.png", dpi=160)
    plt.close(figure)
