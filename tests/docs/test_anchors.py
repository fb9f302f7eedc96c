"""What code and documentation name is there: proof pages, their anchors, and tests."""

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

ROOT = Path(__file__).parents[2]
PAGE = re.compile(r"\bdocs/[\w/.-]+?\.md(?:#[\w-]+)?")
TEST_PATH = re.compile(r"\btests/[\w/]+\.py\b")
TEST_NAME = re.compile(r"`(test_\w+(?:\*|\.py)?)`")
HEADING = re.compile(r"^#{1,6} +(?P<text>.*?)(?: *\{ *#(?P<id>[\w-]+) *\})? *$", re.MULTILINE)

SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = sorted(
    [ROOT / "docs" / "errata.md", ROOT / "docs" / "pitfalls.md", *(ROOT / "docs" / "proofs").rglob("*.md")]
)
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page."""
    return {found["id"] or slugify(found["text"], "-") for found in HEADING.finditer(page.read_text())}


def functions_of_tests() -> set[str]:
    """The names of all tests."""
    trees = (ast.parse(path.read_text()) for path in TESTS)
    return {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def missing_pages(text: str) -> list[str]:
    """The pages, or anchors of pages, that `text` names in vain."""
    missing: list[str] = []
    for name in PAGE.findall(text):
        path, _, anchor = name.partition("#")
        page = ROOT / path
        if not page.is_file() or (anchor and anchor not in anchors(page)):
            missing.append(name)
    return missing


def missing_tests(text: str, functions: set[str], files: set[str]) -> list[str]:
    """The tests that `text` names in vain; `test_name_*` stands for all that begin so."""
    return [
        name
        for name in TEST_NAME.findall(text)
        if not any(fnmatchcase(known, name) for known in (files if name.endswith(".py") else functions))
    ]


@pytest.mark.parametrize("source", SOURCES, ids=relative)
def test_pages_and_tests_that_code_names_exist(source: Path) -> None:
    text = source.read_text()
    assert missing_pages(text) == []
    assert [path for path in TEST_PATH.findall(text) if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_tests_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    assert missing_tests(text, functions_of_tests(), {path.name for path in TESTS}) == []
    assert [path for path in TEST_PATH.findall(text) if not (ROOT / path).is_file()] == []


def test_every_erratum_names_its_test_or_says_that_it_waits() -> None:
    sections = re.split(r"^#{2,3} (?=S?\d)", (ROOT / "docs" / "errata.md").read_text(), flags=re.MULTILINE)[
        1:
    ]
    assert len(sections) >= 27
    for section in sections:
        assert TEST_NAME.search(section) or "when the" in section.lower(), section.splitlines()[0]


def test_a_wrong_name_is_found() -> None:
    assert missing_pages(
        "docs/proofs/barker.md#profile, docs/proofs/barker.md#nowhere, docs/proofs/none.md."
    ) == [
        "docs/proofs/barker.md#nowhere",
        "docs/proofs/none.md",
    ]
    text = "`test_one`, `test_t*`, `test_three`, `test_a.py`, `test_b.py`"
    assert missing_tests(text, {"test_one", "test_two"}, {"test_a.py"}) == ["test_three", "test_b.py"]
