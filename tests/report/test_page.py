"""The skeleton of a page: what it escapes, and that it asks for nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from discreet.report import _page
from discreet.report._figures import ACCENT, figure
from discreet.report._page import Html, Section, element, page, paragraph, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NASTY = "<script>alert('x')</script> & \"quoted\""


def drawn(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=ACCENT, label="a < b")
    axes.fill_between([0, 1], [0, 1], alpha=0.2)
    axes.legend()


def test_whatever_is_no_markup_is_escaped() -> None:
    assert element("p", NASTY) == (
        "<p>&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; &quot;quoted&quot;</p>"
    )
    assert element("p", Html("<b>x</b>"), class_='"') == '<p class="&quot;"><b>x</b></p>'
    whole = page(
        NASTY,
        kind=NASTY,
        lead=[paragraph(NASTY)],
        sections=[Section(NASTY, "a", [table(NASTY, [NASTY, NASTY], [[NASTY, NASTY]])])],
        footer=[figure(drawn, caption=NASTY, description=NASTY)],
    )
    assert "<script" not in whole
    assert whole.count("&lt;script&gt;") == 14  # of which six are of the table


def test_a_page_refers_to_nothing_outside_itself() -> None:
    whole = page("title", kind="kind", lead=[], sections=[Section("s", "s", [figure(
        drawn, caption="caption", description="description"
    )])])  # fmt: skip
    targets = re.findall(r"""(?:href|src|url)\s*[=(]\s*["']?([^"')\s>]+)""", whole)
    assert targets
    assert all(target.startswith(("#", "data:,")) for target in targets), targets
    assert "@import" not in whole
    assert "default-src 'none'" in whole


def test_a_figure_takes_its_colours_from_the_theme_and_is_the_same_twice() -> None:
    first, second = (figure(drawn, caption="c", description="d") for _ in range(2))
    assert first == second
    assert "var(--accent)" in first
    assert "#010a" not in first  # no stand-in for a colour is left
    assert "<style" not in first
    assert 'role="img" aria-label="d"' in first
    ids = re.findall(r'\bid="([^"]+)"', first)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("f") and name[9] == "-" for name in ids)
    references = re.findall(r'(?:url\(|href=")#([^")]+)', first)
    assert references
    assert set(references) <= set(ids)


def test_every_colour_of_the_style_has_a_dark_and_a_printed_form() -> None:
    style = _page._STYLE.read_text()
    blocks = re.findall(r":root \{.*?\}", style, re.DOTALL)
    light, dark, printed = (set(re.findall(r"(--[a-z]+):", block)) for block in blocks)
    assert light == dark == printed
