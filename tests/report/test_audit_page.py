"""audit.html: a function of audit.json; it says what was found, and shows it when a claim is violated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser
import pytest

import discreet as dc
from discreet.audit.campaign import Audited, campaign
from discreet.mechanisms import Plan
from discreet.report.audit import render_audit, write_audit


def plan() -> Plan:
    mechanism = dc.mechanisms.PerturbedStatistics(dc.models.BetaBernoulli((2, 2)), draws=1)
    return mechanism.plan(n=4, budget=dc.Budget(1.0, 1e-6))


@pytest.fixture(scope="module")
def audited() -> Audited:
    return campaign(plan, trials=2_000, minutes=5, processes=1, key=1)


@pytest.fixture(scope="module")
def page(audited: Audited, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_audit(tmp_path_factory.mktemp("audit"), audited.to_dict())


def test_the_page_is_a_function_of_the_json(page: Path) -> None:
    values = json.loads((page.parent / "audit.json").read_text())
    assert page.read_text() == render_audit(values)
    assert values["passes"]
    assert values["plan_hash"] == plan().hash()
    claimed, measured = dict(values["claimed_curve"]), dict(values["attacks"][0]["measured_curve"])
    assert all(measured[d] <= claimed[d] for d in claimed if claimed[d] is not None)
    assert "http" not in page.read_text().replace("http-equiv", "").replace("http://www.w3.org", "")


def test_no_measured_curve_crosses_the_claimed_one(audited: Audited) -> None:
    """Up to the sampling error of the curve, four standard deviations."""
    values = audited.to_dict()
    claimed = values["claimed_trade_off"]
    for wrong, left in audited.found[0].curve.tolist():
        least = max((y for x, y in claimed if x >= wrong), default=0.0)
        assert left >= least - 4 * (0.25 / 1000) ** 0.5


def test_a_violation_is_said_first(audited: Audited) -> None:
    found = replace(audited.found[0], epsilon=3.0, contradicted=(1.5, 1e-3))
    values: dict[str, Any] = replace(audited, found=(found,)).to_dict()
    assert not values["passes"]
    text = render_audit(values)
    assert "Failed. " in text
    assert "does not hold" in text


def test_an_audit_that_is_cut_short_says_so() -> None:
    short = campaign(plan, trials=40_000, minutes=1e-4, processes=1, key=1)
    assert not short.complete
    assert short.found[0].trials < 40_000
    assert "Time was up" in render_audit(short.to_dict())


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on the path; install Debian's")
def test_it_renders_in_silence_and_axe_finds_nothing(page: Path, tmp_path: Path) -> None:
    with browser.chromium(tmp_path / "profile") as tab:
        tab.open(page)
        assert tab.console == []
        assert tab.requests == [page.as_uri()]
        assert tab.evaluate("[...document.querySelectorAll('svg')].every(s => s.getBBox().width > 100)")
        for dark, width in ((False, 1100), (True, 360)):
            tab.see(dark=dark, width=width)
            assert tab.violations() == []
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
