"""Every mechanism passes: one plan of each here, on fewer runs; all of them in `make audit`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from catalogue import ENTRIES, Entry

from discreet import audit, mechanisms
from discreet.mechanisms import Mechanism

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "audit.json"


@pytest.mark.slow
@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.fast], ids=lambda e: e.name)
def test_no_lower_bound_is_above_its_claim(entry: Entry) -> None:
    """At 99.9% confidence with a fixed seed; a true claim fails once in a thousand seeds at most."""
    plan = entry.make()
    found = audit.membership(plan, trials=entry.fast, key=42)
    assert found.passes, found.describe()


def test_the_catalogue_has_three_plans_of_every_mechanism() -> None:
    kinds = {name: getattr(mechanisms, name) for name in mechanisms.__all__}
    known = {
        name
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, Mechanism) and kind is not Mechanism
    }
    plans = Counter(entry.mechanism for entry in ENTRIES)
    assert {name for name in known if plans[name] < 3} == set()


def test_the_committed_audit_passes() -> None:
    """What `make audit` wrote: all plans of the catalogue, none above its claim, and the null test."""
    result = json.loads(RESULTS.read_text())
    assert {entry.name for entry in ENTRIES} <= set(result["plans"])
    for name, row in result["plans"].items():
        assert row["passes"], name
        assert row["replay_passes"], name
        assert row["confidence"] >= 0.999
    assert result["null"]["passes"]
