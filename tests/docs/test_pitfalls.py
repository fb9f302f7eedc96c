"""docs/pitfalls.md: every planted bug has a section, whose bug, guard and tests are there."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from .test_anchors import functions_of_tests

ROOT = Path(__file__).parents[2]
PLANTED = ROOT / "tests" / "planted"
SECTION = re.compile(
    r"^### (?P<name>.+?) \{#(?P<id>[\w-]+)\}$(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL
)
SECTIONS = {m["id"]: m for m in SECTION.finditer((ROOT / "docs" / "pitfalls.md").read_text())}
FIELDS = re.compile(r"^- \*\*(Planted|Guard|Test of the guard):\*\* (.+)$", re.MULTILINE)
DOTTED = re.compile(r"`(discreet\.[\w.]+)`")


known_tests = cache(functions_of_tests)


def slug(name: str) -> str:
    return re.sub(r"[^\w-]", "", name.lower().replace(" ", "-"))


def planted_names() -> set[str]:
    """The first argument of every call of `planted` in tests/planted, read without importing them."""
    calls = (node for path in PLANTED.glob("*.py") for node in ast.walk(ast.parse(path.read_text())))
    return {
        str(node.args[0].value)
        for node in calls
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "planted"
        and isinstance(node.args[0], ast.Constant)
    }


def found(dotted: str) -> Any:
    """The object of that name, or an error."""
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(dotted)


def test_every_planted_bug_has_a_pitfall() -> None:
    assert {slug(name) for name in planted_names()} == set(SECTIONS)
    assert len(SECTIONS) >= 20


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_a_pitfall_names_what_is_there(name: str) -> None:
    fields = dict(FIELDS.findall(SECTIONS[name]["text"]))
    assert set(fields) == {"Planted", "Guard", "Test of the guard"}
    assert slug(SECTIONS[name]["name"]) == name
    kind, file = re.findall(r"`([\w/.]+)`", fields["Planted"])[:2]
    tree = ast.parse((ROOT / file).read_text())
    assert kind in {n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    guards = DOTTED.findall(fields["Guard"])
    assert guards
    assert all(found(guard) is not None for guard in guards)
    tests = re.findall(r"`(test_\w+)`", fields["Test of the guard"])
    assert tests
    assert set(tests) <= known_tests()
