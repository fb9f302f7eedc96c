"""The parameters of a release: how each moved from the prior to the posterior."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.report._figures import ACCENT, MUTED, figure
from discreet.report._page import Html, element, join, paragraph, table
from discreet.report.numbers import nearest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.mechanisms import Release

Array = NDArray[np.float64]

_FEW, _MANY, _SHOWN, _DRAWN = 20, 200, 200, 24


@dataclass(frozen=True)
class Parameter:
    """One number that was inferred: draws of it, and draws of its prior if there are any."""

    name: str
    draws: Array
    prior: Array | None


def parameters(release: Release, features: Sequence[str]) -> Iterator[Parameter]:
    """Every number of a release, on the scale people read, by the name of its feature where one is known."""
    draws, prior = release.natural(release.draws), release.natural(release.prior)
    for name, values in draws.items():
        flat = values.reshape(len(values), math.prod(values.shape[1:]))
        before = prior[name].reshape(len(prior[name]), -1) if name in prior else None
        for k, place in enumerate(np.ndindex(*values.shape[1:])):
            label = name
            if place:
                named = bool(features) and values.shape[1] == len(features)
                first = str(features[place[0]] if named else place[0])
                label = f"{name}[{', '.join([first, *map(str, place[1:])])}]"
            yield Parameter(label, flat[:, k], None if before is None else before[:, k])


def released(found: Sequence[Parameter]) -> list[Html]:
    """A table of all, and a picture of each of the first."""
    number = len(found[0].draws) if found else 0
    if number == 0:
        return [paragraph("No draw was released.")]
    titles = ["Parameter", "Mean", "SD", "5 %", "95 %"] if number >= _FEW else ["Parameter", "Mean", "SD"]
    titles = titles if number > 1 else ["Parameter", "The draw"]
    rows = [[element("code", p.name), *_summary(p.draws)[: len(titles) - 1]] for p in found[:_SHOWN]]
    parts = [
        table(
            f"{number:,} draws, summarised" if number > 1 else "The one draw",
            titles,
            rows,
            numbers=range(1, len(titles)),
        )
    ]
    if len(found) > _SHOWN:
        parts.append(paragraph(f"{len(found) - _SHOWN} more parameters are in posterior.nc.", class_="note"))
    known = ", and dashed what the prior said before any data" if found[0].prior is not None else ""
    what = "The posterior" if number >= _MANY else "Each released draw as a line"
    parts += [
        paragraph(f"{what}{known}:"),
        element("div", *(_picture(p) for p in found[:_DRAWN]), class_="small"),
    ]
    if len(found) > _DRAWN:
        parts.append(paragraph(f"The first {_DRAWN} of {len(found)} parameters are drawn.", class_="note"))
    return parts


def _summary(draws: Array) -> list[str]:
    low, high = np.quantile(draws, [0.05, 0.95])
    spread = draws.std(ddof=1) if len(draws) > 1 else 0.0
    return [nearest(float(v), 4) for v in (draws.mean(), spread, low, high)]


def _picture(p: Parameter) -> Html:
    low, high = _window(p)
    grid = np.linspace(low, high, 121)

    def draw(axes: Axes) -> None:
        if p.prior is not None:
            axes.plot(grid, _density(p.prior, grid), color=MUTED, linestyle=(0, (4, 2)), linewidth=1.2)
        if len(p.draws) >= _MANY:
            height = _density(p.draws, grid)
            axes.fill_between(grid, height, color=ACCENT, alpha=0.25, linewidth=0)
            axes.plot(grid, height, color=ACCENT)
        else:
            top = axes.get_ylim()[1] if p.prior is not None else 1.0
            axes.vlines(p.draws, 0, 0.6 * top, color=ACCENT, linewidth=1.2 if len(p.draws) < _FEW else 0.6)
        axes.set_xlim(low, high)
        axes.set_ylim(bottom=0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(visible=False)
        axes.locator_params(axis="x", nbins=5)

    mean = nearest(float(p.draws.mean()))
    before = "" if p.prior is None else f"; the prior's median is {nearest(float(np.median(p.prior)))}"
    return figure(
        draw,
        caption=join(element("code", p.name)),
        description=f"Draws of {p.name}, with mean {mean}{before}.",
        width=2.9,
        height=1.35,
    )


def _window(p: Parameter) -> tuple[float, float]:
    """What to show: all of the posterior, and of the prior what does not make that a needle."""
    low, high = (float(v) for v in np.quantile(p.draws, [0.001, 0.999]))
    middle = (low + high) / 2
    half = max((high - low) / 2, 1e-9 * max(1.0, abs(middle)))
    if p.prior is None:
        return middle - 1.3 * half, middle + 1.3 * half
    left, right = (float(v) for v in np.quantile(p.prior, [0.02, 0.98]))
    room = 7 * half if len(p.draws) >= _FEW else max(7 * half, right - left)
    return max(min(left, low), middle - room), min(max(right, high), middle + room)


def _density(values: Array, grid: Array) -> Array:
    """A kernel density of the values in view, scaled by their share."""
    from scipy.stats import gaussian_kde

    low, high = grid[0], grid[-1]
    inside = values[(values >= low - (high - low)) & (values <= high + (high - low))]
    if len(inside) < 2 or np.ptp(inside) == 0:
        return np.zeros_like(grid)
    share = len(inside) / len(values)
    height = share * gaussian_kde(inside)(grid)
    # Nothing is shown where there is nothing: a variance is not negative.
    return np.where((grid >= values.min()) & (grid <= values.max()), height, 0.0)
