"""`discreet audit`: attacks without a table, writes a page, and leaves with 4 when a claim is violated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.audit import campaign as room
from discreet.cli import app

STUDY = """
[data]
path = "nowhere.csv"
target = "agrees"
records = 6

[data.columns.agrees]
kind = "binary"
values = ["no", "yes"]

[model]
name = "BetaBernoulli"
prior = [6, 12]

[mechanism]
name = "DiffusedPosterior"

[privacy]
epsilon = 1.0
delta = 1e-6
neighbours = "substitute"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def run(study: Path, *more: str):
    out = ("--out", str(study.parent / "audit"))
    given = ("audit", str(study), "--trials", "1000", "--processes", "1", "--seed", "1", *out, *more)
    return CliRunner().invoke(app, given)


def test_it_needs_no_table_and_writes_page_and_json(study: Path) -> None:
    done = run(study, "--json")
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    written = json.loads((study.parent / "audit" / "audit.json").read_text())
    assert printed["passes"]
    assert written["plan_hash"] == printed["plan_hash"]
    assert (study.parent / "audit" / "audit.html").read_text().startswith("<!DOCTYPE html>")
    assert not (study.parent / "nowhere.csv").exists()


def test_a_violated_claim_leaves_with_4(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = room.campaign
    monkeypatch.setattr(room, "campaign", lambda make, **given: _violated(original(make, **given)))
    done = run(study)
    assert done.exit_code == 4
    assert "does not hold" in done.output


def _violated(audited: room.Audited) -> room.Audited:
    return replace(audited, found=(replace(audited.found[0], epsilon=9.0),))


def test_a_bad_request_is_one_line(study: Path) -> None:
    done = run(study, "--minutes", "-1")
    assert done.exit_code == 2
    assert "minutes" in done.output
