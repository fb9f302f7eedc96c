"""Nothing is left out: mechanisms are in the decision table and a how-to, rooms in the reference."""

import inspect
import re
from pathlib import Path

import pytest

from discreet import mechanisms

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ROOMS = sorted(place.parent.name for place in (ROOT / "src" / "discreet").glob("*/__init__.py"))
NAMES = sorted(
    name
    for name in mechanisms.__all__
    if name != "Mechanism"
    and inspect.isclass(found := getattr(mechanisms, name))
    and issubclass(found, mechanisms.Mechanism)
)


@pytest.mark.parametrize("name", NAMES)
def test_a_mechanism_is_in_the_decision_table_and_in_the_how_to_it_links(name: str) -> None:
    rows = [
        line
        for line in (DOCS / "choosing_a_mechanism.md").read_text().splitlines()
        if line.startswith("| [`")
    ]
    (row,) = [line for line in rows if line.startswith(f"| [`{name}`]")]
    assert row.count("|") == 8, "model, needs, delta, neighbours, gives, rests on"
    page = re.findall(r"\]\(([\w/-]+\.md)", row)[0]
    assert name in (DOCS / page).read_text()


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "cli"])
def test_a_room_is_in_the_reference(room: str) -> None:
    assert f"::: discreet.{room}" in (DOCS / "reference" / f"{room}.md").read_text()


def test_the_table_names_only_what_exists() -> None:
    named = re.findall(r"^\| \[`(\w+)`\]", (DOCS / "choosing_a_mechanism.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted({*NAMES, "VariationalStart"})
