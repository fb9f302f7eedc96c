"""Plots of predictions, on Matplotlib axes: is it right as often as it is sure, and what do its draws say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from discreet.metrics import Reliability
from discreet.privacy import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.models.prediction import Prediction

ACCENT, SECOND, MUTED, INK, LINE = "#0b57a8", "#d9772b", "#545d69", "#1b2028", "#ccd3dc"
"""Blue and orange that differ in brightness as well, for whoever does not tell the hues."""


def reliability_diagram(reliability: Reliability, axes: Axes | None = None) -> Axes:
    """Accuracy per bin of confidence, beside the diagonal of a calibrated prediction.

    A bar is how often predictions of that confidence were right; the hatched part is
    the gap to the confidence itself. Bins of few predictions are pale: their gap is
    mostly chance.

    References: Guo et al. 2017, Figure 1; paper N, Figures 8 to 10.
    """
    axes = axes or _new()
    full = reliability.counts > 0
    left, wide = reliability.edges[:-1][full], np.diff(reliability.edges)[full]
    right, sure = reliability.accuracy[full], reliability.confidence[full]
    few = reliability.counts[full] < _FEW
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.9, linestyle="--", zorder=3)
    bars = axes.bar(left, right, wide, align="edge", color=ACCENT, edgecolor="white", linewidth=0.6)
    gaps = axes.bar(
        left,
        sure - right,
        wide,
        bottom=right,
        align="edge",
        facecolor="none",
        edgecolor=SECOND,
        hatch="////",
        linewidth=0.8,
        zorder=2,
    )
    for bar, gap, pale in zip(bars, gaps, few, strict=True):
        bar.set_alpha(0.35 if pale else 1.0)
        gap.set_alpha(0.35 if pale else 1.0)
    _unit(axes, "confidence", "accuracy")
    axes.set_ylim(0, 1)
    axes.text(
        0.04,
        0.95,
        f"ECE {reliability.expected_error:.3f}\nMCE {reliability.maximum_error():.3f}",
        va="top",
        transform=axes.transAxes,
        color=INK,
        fontsize="small",
    )
    return axes


def confidence_histogram(reliability: Reliability, axes: Axes | None = None) -> Axes:
    """How many predictions are how sure, with the mean confidence and the accuracy of all of them.

    References: Guo et al. 2017, Figure 1; paper N, Figure 7.
    """
    axes = axes or _new()
    share = reliability.counts / reliability.counts.sum()
    full = reliability.counts > 0
    wide = np.diff(reliability.edges)
    axes.bar(
        reliability.edges[:-1], share, wide, align="edge", color=ACCENT, edgecolor="white", linewidth=0.6
    )
    right, sure = (
        float(np.sum(share[full] * part[full])) for part in (reliability.accuracy, reliability.confidence)
    )
    axes.axvline(right, color=SECOND, linewidth=1.4, label=f"accuracy {right:.3f}")
    axes.axvline(sure, color=INK, linewidth=1.1, linestyle="--", label=f"mean confidence {sure:.3f}")
    _unit(axes, "confidence", "share of predictions")
    axes.legend(frameon=False, fontsize="small", loc="upper left")
    return axes


def draw_distribution(
    probabilities: ArrayLike,
    axes: Axes | None = None,
    *,
    bins: int = 10,
    labels: Sequence[str] | None = None,
) -> Axes:
    """What the draws say of one record: for every label, how many of them give it which probability.

    Each cluster of bars stands for one bin of probability, each bar in it for a label;
    where a bar stands inside its cluster means nothing. A label whose bar is on the
    left is one that the draws rule out.

    Args:
        probabilities: (draws, labels) of one record.
        axes: to draw on; new ones without.
        bins: clusters over [0, 1].
        labels: what the labels are called; their numbers without.

    References: paper N, Figures 6 and 13.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    checks.integer("bins", bins, at_least=2)
    if p.ndim != 2 or len(p) == 0:
        raise ValueError(
            f"probabilities must have axes draw and label, got shape {p.shape}; pass the draws of one record"
        )
    names = [str(k) for k in range(p.shape[1])] if labels is None else list(labels)
    if len(names) != p.shape[1]:
        raise ValueError(f"labels must name all {p.shape[1]} labels, got {len(names)}; name each")
    axes = axes or _new()
    import matplotlib as mpl

    colours = mpl.colormaps["tab10" if p.shape[1] <= 10 else "tab20"]
    edges = np.linspace(0, 1, bins + 1)
    bar = 0.8 / bins / p.shape[1]
    for k, name in enumerate(names):
        counts, _ = np.histogram(np.clip(p[:, k], 0, 1), edges)
        at = edges[:-1] + 0.1 / bins + k * bar
        axes.bar(at, counts, bar, align="edge", color=colours(k % colours.N), label=name)
    for edge in edges[1:-1]:
        axes.axvline(edge, color=LINE, linewidth=0.6, zorder=0)
    _unit(axes, "predicted probability", "draws")
    return axes


def prediction_band(
    x: ArrayLike, prediction: Prediction, axes: Axes | None = None, *, deviations: float = 2.0
) -> Axes:
    """The mean over one feature, with the band of epistemic doubt inside the band of all doubt.

    Args:
        x: (rows,) the feature that the rows of the prediction differ in.
        prediction: of an outcome that is a number.
        axes: to draw on; new ones without.
        deviations: half width of the bands in standard deviations.

    References: paper N, Figure 11.
    """
    checks.real("deviations", deviations, above=0.0)
    across = np.asarray(x, dtype=np.float64).ravel()
    if prediction.mean.shape != across.shape:
        raise ValueError(
            f"x must have one value for each of the {len(prediction.mean)} means of a prediction of numbers, "
            f"got {across.shape}; pass the feature's column"
        )
    order = np.argsort(across)
    axes = axes or _new()
    across, mean = across[order], prediction.mean[order]
    for variance, colour, name in (
        (prediction.total, ACCENT, "with the outcome's own spread"),
        (prediction.epistemic, SECOND, "doubt about the mean"),
    ):
        half = deviations * np.sqrt(variance[order])
        axes.fill_between(across, mean - half, mean + half, color=colour, alpha=0.35, linewidth=0, label=name)
    axes.plot(across, mean, color=INK, linewidth=1.4, label="mean")
    return axes


_FEW = 20


def _new() -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=(4, 3.4), layout="constrained").add_subplot()


def _unit(axes: Axes, x: str, y: str) -> None:
    axes.set_xlim(0, 1)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
