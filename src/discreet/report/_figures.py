"""Figures that stand inside a page: Matplotlib's SVG, in the colours of the reader's theme."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from discreet.report._page import Html, element

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours to draw in. Each stands for a variable of page.css, which `figure` puts in its place.
INK, MUTED, LINE, ACCENT, SECOND, PAPER = (f"#010a0{k}" for k in range(1, 7))
_VARIABLES = {INK: "ink", MUTED: "muted", LINE: "line", ACCENT: "accent", SECOND: "second", PAPER: "paper"}

_NOT_WANTED = (
    r"<metadata>.*?</metadata>",
    r"<style.*?</style>",  # a style sheet inside an inline drawing would apply to the whole page
    r"<!--.*?-->",
    r"<defs>\s*</defs>",
)


def figure(
    draw: Callable[[Axes], object], *, caption: str, description: str, width: float = 5.2, height: float = 2.7
) -> Html:
    """A drawing with its caption, as inline SVG whose text is text.

    Args:
        draw: draws on Matplotlib axes; use the colours of this module.
        caption: stands under it.
        description: says in words what it shows, for whoever does not see it.
        width: in inches of 72 points, to which the font size of 10 points relates.
        height: in inches.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    out = io.StringIO()
    with mpl.rc_context(_style(mpl)):
        drawn = Figure(figsize=(width, height), layout="constrained")
        draw(drawn.add_subplot())
        drawn.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = out.getvalue()
    box = re.search(r'viewBox="([^"]*)"', svg)
    body = svg[svg.index(">", svg.index("<svg")) + 1 :].removesuffix("</svg>\n")
    for part in _NOT_WANTED:
        body = re.sub(part, "", body, flags=re.DOTALL)
    # Ids are unique on a page: those of two figures differ unless the figures do not.
    prefix = f"f{hashlib.sha256(body.encode()).hexdigest()[:8]}-"
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    image = element("svg", Html(body), viewBox=box[1] if box else "", role="img", aria_label=description)
    return element("figure", image, element("figcaption", caption))


def _style(mpl: Any) -> Any:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "discreet",
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.labelsize": 10,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.linewidth": 0.8,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": "none",
        "axes.prop_cycle": mpl.cycler(color=[ACCENT, SECOND, MUTED]),
        "figure.facecolor": "none",
        "grid.color": LINE,
        "grid.linewidth": 0.6,
        "lines.linewidth": 1.8,
        "text.color": INK,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
        "legend.frameon": False,
        "legend.fontsize": 9,
    }
