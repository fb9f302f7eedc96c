"""`report.html` in a real browser: it renders, says nothing on the console, asks for nothing, is accessible.

Skipped where there is no Chromium.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import browser
import pytest

import discreet as dc
from discreet.report import write

pytestmark = pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on the path; install Debian's")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = dc.models.BetaBernoulli((6, 12))
    plan = dc.mechanisms.DiffusedPosterior(model, draws=20).plan(100, budget=dc.Budget(2.0, 1e-6))
    release = plan.release({"x": [1] * 38 + [0] * 62}, key=1)
    return write(release.save(tmp_path_factory.mktemp("report") / "release"))


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory, report: Path) -> Iterator[browser.Tab]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as tab:
        tab.open(report)
        yield tab


def test_it_renders_in_silence_and_asks_for_itself_alone(tab: browser.Tab, report: Path) -> None:
    assert tab.evaluate("document.title") == "DiffusedPosterior on BetaBernoulli"
    assert tab.evaluate("[...document.querySelectorAll('svg')].every(s => s.getBBox().width > 100)")
    assert tab.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "32px"
    assert tab.console == []
    assert tab.requests == [report.as_uri()]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1100, 360])
def test_axe_finds_nothing(tab: browser.Tab, *, dark: bool, width: int) -> None:
    tab.see(dark=dark, width=width)
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is not dark
    assert tab.violations() == []


def test_nothing_is_wider_than_a_phone_or_a_sheet(tab: browser.Tab) -> None:
    for width, medium in ((360, "screen"), (680, "print")):
        tab.see(width=width, medium=medium, dark=medium == "print")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert (
        tab.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    )  # black ink, dark theme or not


def test_a_bad_page_is_caught(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<title>x</title><img src='missing.png'><p style='color:#ddd'>pale</p><script>nope()</script>"
    )
    with browser.chromium(tmp_path / "profile") as tab:
        tab.open(page)
        assert len(tab.requests) == 2
        assert tab.console
        found = {line.partition(":")[0] for line in tab.violations()}
    assert {"color-contrast", "html-has-lang", "image-alt"} <= found
