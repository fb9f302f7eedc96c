"""README and documentation run: every ```python block, and every `$ discreet` line of a console block.

The blocks of one page run in the order in which they stand, in one namespace and in an empty folder, as a
reader would type them. A block with a title, such as ```toml title="study.toml", is a file that the reader
writes. What stands below a `$ discreet` line must be printed by it, in this order; `...` stands for anything.
A block that cannot run says so: ```python notest.
"""

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^[ \t]*(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: the line its body begins on, its language, what follows the language, and the body."""

    line: int
    language: str
    marker: str
    body: str

    def commands(self) -> Iterator[tuple[int, list[str], list[str]]]:
        """The lines `$ discreet ...`: line in the page, arguments, and what is said to be printed."""
        for found in re.finditer(
            r"^\$ discreet\b((?:.*\\\n)*.*)$((?:\n(?!\$ ).*)*)", self.body, re.MULTILINE
        ):
            arguments = shlex.split(found[1].replace("\\\n", " "), comments=True)
            shown = [line.rstrip() for line in found[2].splitlines() if line.strip()]
            yield self.line + self.body.count("\n", 0, found.start()), arguments, shown

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, if it is one."""
        found = re.fullmatch(r'title="([\w.-]+)"', self.marker)
        return found[1] if found else None


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            line=text.count("\n", 0, found.start("body")) + 1,
            language=found["info"].strip().partition(" ")[0],
            marker=found["info"].strip().partition(" ")[2].strip(),
            body=textwrap.dedent(found["body"]),
        )
        for found in FENCE.finditer(text)
    ]


def run_page(page: Path) -> None:
    """Run what a page shows; a failure names the page and the line."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text()):
        if block.language == "python":
            assert block.marker in {"", "notest"}, (
                f"{page}:{block.line - 1}: block marked {block.marker!r}; allowed is 'notest' or nothing."
            )
            if block.marker == "":
                # Empty lines in front, so that a traceback shows the line of the page.
                exec(compile("\n" * (block.line - 1) + block.body, str(page), "exec"), namespace)
        elif block.file is not None:
            Path(block.file).write_text(block.body)
        elif block.language in {"console", "bash"}:
            for line, arguments, shown in block.commands():
                check_shown(f"{page}:{line}", run_command(f"{page}:{line}", arguments), shown)


def check_shown(where: str, printed: str, shown: list[str]) -> None:
    """Every shown line is printed, in this order; one that ends in `...` need only begin so."""
    lines = iter(line.rstrip() for line in printed.splitlines())
    for wanted in shown:
        if wanted.strip() == "...":
            continue
        begins = wanted.removesuffix("...")
        found = any(line.startswith(begins) if begins != wanted else line == wanted for line in lines)
        assert found, f"{where}: {wanted!r} is shown, and not printed there:\n{printed}"


def run_command(where: str, arguments: list[str]) -> str:
    """Run `discreet` with these arguments; it must exit with 0. Returns what it prints."""
    shell = {"|", ">", ">>", "<", "&&", "||", ";"} & set(arguments)
    assert not shell, f"{where}: {shell} needs a shell; show one discreet command per line."
    from typer.testing import CliRunner

    from discreet.cli import app

    result = CliRunner().invoke(app, arguments, prog_name="discreet")
    assert result.exit_code == 0, (
        f"{where}: discreet {shlex.join(arguments)} exited with {result.exit_code}:\n{result.output}"
    )
    return result.output


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p.read_text())], ids=lambda p: str(p.relative_to(ROOT))
)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_a_broken_example_is_caught_and_the_next_block_sees_the_names(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n- item\n\n    ```python\n    assert x == 2, x\n    ```\n")
    with pytest.raises(AssertionError, match=r"^1") as caught:
        run_page(page)
    assert caught.traceback[-1].lineno == 7  # counted from 0: line 8 of the page
    page.write_text("```python notest\nraise SystemExit\n```\n")
    run_page(page)
    page.write_text("```python no-test\nx = 1\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:1: block marked 'no-test'"):
        run_page(page)


def test_a_console_block_yields_its_discreet_commands() -> None:
    (block,) = blocks(
        "text\n\n```console\n$ discreet account --sigma 1.3 \\\n    --steps 3  # three\n1\n$ ls\n```\n"
    )
    assert list(block.commands()) == [(4, ["account", "--sigma", "1.3", "--steps", "3"], ["1"])]
    (failing,) = blocks("```bash\n$ discreet demo | head\n```\n")
    ((_, arguments, _),) = failing.commands()
    with pytest.raises(AssertionError, match=r"README:1: \{'\|'\} needs a shell"):
        run_command("README:1", arguments)


def test_output_that_is_not_printed_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```console\n$ discreet account pure 1 --neighbours substitute\npure: loss 1\n...\n```\n")
    run_page(page)
    page.write_text("```console\n$ discreet account pure 1 --neighbours substitute\npure: loss 2\n```\n")
    with pytest.raises(AssertionError, match="'pure: loss 2' is shown, and not printed"):
        run_page(page)
    check_shown("here", "a 1\nb 2\n", ["a ...", "b 2"])
    with pytest.raises(AssertionError, match=r"'a \.\.\.' is shown"):
        check_shown("here", "a 1\nb 2\n", ["b 2", "a ..."])


def test_a_block_with_a_title_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        '```toml title="a.toml"\nx = 1\n```\n```python\nassert open("a.toml").read() == "x = 1\\n"\n```\n'
    )
    run_page(page)


@pytest.mark.parametrize(
    ("page", "section"), [("docs/tutorial.md", ""), ("README.md", "## A table of your own")]
)
def test_a_release_with_its_report_takes_at_most_ten_commands_and_edits(page: str, section: str) -> None:
    text = (ROOT / page).read_text()
    text = text[text.index(section) :].partition("\n## Status")[0]
    commands = [line for block in blocks(text) for line in block.body.splitlines() if line.startswith("$ ")]
    files = [block.file for block in blocks(text) if block.file]
    assert any("discreet release" in command for command in commands)
    install = 0 if any("make demo" in command for command in commands) else 1
    assert install + len(commands) + len(files) <= 10, (commands, files)
