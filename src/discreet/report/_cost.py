"""What a guarantee costs, in numbers, in a curve, and in how often a guess is right."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from discreet.privacy import Guarantee, attacker_success, percent
from discreet.report._figures import ACCENT, INK, figure
from discreet.report._page import Html, code, paragraph, table
from discreet.report.numbers import plain, upward

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DELTAS = (1e-3, 1e-5, 1e-6, 1e-9)
_CURVE = (-10.0, -2.0, 17)


def headline_delta(guarantee: Guarantee, size: int | None, wanted: float | None) -> float:
    """The delta at which a page states epsilon.

    That of the study; else 0 if the guarantee is pure; else a power of ten of at most
    1e-5 and of at most a tenth of 1/n, or 1e-6 where n is private.
    """
    if wanted is not None and math.isfinite(guarantee.epsilon(wanted)):
        return wanted
    if math.isfinite(guarantee.epsilon(0.0)):
        return 0.0
    power = -6 if size is None else min(-5, math.floor(math.log10(0.1 / size)))
    return float(f"1e{power}")


def right_at_most(guarantee: Guarantee) -> float:
    """How often a guess between two neighbouring tables can be right: the sharpest, by total variation."""
    return attacker_success(0.0, guarantee.delta(0.0))


def cost(guarantee: Guarantee, delta: float) -> list[Html]:
    """Epsilon at a few deltas, the curve, and the pieces of the guarantee."""
    pure = [0.0] if math.isfinite(guarantee.epsilon(0.0)) else []
    asked = sorted({*pure, delta, *_DELTAS}, reverse=True)
    answers = [(d, guarantee.epsilon(d)) for d in asked]
    rows = [
        [plain(d), upward(epsilon), percent(attacker_success(epsilon, d))]
        for d, epsilon in answers
        if math.isfinite(epsilon)
    ]
    return [
        paragraph(
            "Every pair of delta and epsilon is a bound, and all of them hold at once: but for a "
            "probability of delta, no output is more than e", Html("<sup>epsilon</sup>"), " times as likely "
            "with one of two neighbouring tables than with the other."
        ),
        table(
            "Epsilon at a few deltas, rounded upward, and how often somebody who must guess between two "
            "neighbouring tables, equally likely before, is right at most: by that line alone, and "
            f"{percent(right_at_most(guarantee))} by all of the curve",
            ["delta", "epsilon", "right guess"],
            rows,
            numbers=(0, 1, 2),
        ),
        curve(guarantee, delta),
        paragraph("What was applied, and how often:"),
        code("\n".join(_pieces(guarantee))),
    ]  # fmt: skip


def _pieces(guarantee: Guarantee) -> list[str]:
    lines = [f"{count} x {piece.describe()}" for piece, count in guarantee.pieces]
    if guarantee.inexactness > 0:
        lines.append(f"within {float(guarantee.inexactness):.3g} of the exact law in total variation")
    return lines or ["nothing"]


def curve(guarantee: Guarantee, delta: float) -> Html:
    """Epsilon against delta, with the stated delta marked."""
    deltas = [float(d) for d in np.logspace(*_CURVE)]
    epsilons = [guarantee.epsilon(d) for d in deltas]
    finite = [(d, e) for d, e in zip(deltas, epsilons, strict=True) if math.isfinite(e)]
    if not finite:
        return paragraph("No epsilon is finite at a delta below 0.01.")

    stated = guarantee.epsilon(delta)

    def draw(axes: Axes) -> None:
        axes.plot(*_columns(finite), color=ACCENT)
        if delta > 0:
            axes.plot([delta], [stated], "o", color=ACCENT, markersize=6)
            axes.annotate(
                f"{upward(stated)} at {plain(delta)}", (delta, stated), xytext=(7, 7),
                textcoords="offset points", color=INK,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xlabel("delta")
        axes.set_ylabel("epsilon")
        axes.set_xlim(10 ** _CURVE[0], 10 ** _CURVE[1])
        # Where a bound blows up at the smallest deltas, the rest of the curve stays readable.
        axes.set_ylim(0, min(1.15 * finite[0][1], 4 * stated) or 1.0)

    (left, high), (right, low) = finite[0], finite[-1]
    fall = (
        f"is {upward(high)} at every delta"
        if high == low
        else f"falls from {upward(high)} at delta {left:.0e} to {upward(low)} at delta {right:.0e}"
    )
    return figure(
        draw,
        caption="The guarantee at every delta: an upper bound on epsilon.",
        description=f"A curve of epsilon against delta: epsilon {fall}.",
    )


def _columns(pairs: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    found = list(pairs)
    return [x for x, _ in found], [y for _, y in found]
