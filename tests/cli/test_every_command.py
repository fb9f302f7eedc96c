"""Every command: help with an example that parses, JSON for machines, exit codes in the documentation."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from discreet.cli import app
from discreet.cli.errors import Exit

ROOT = Path(__file__).parents[2]
WITHOUT_JSON = {"account", "ledger", "schema"}  # groups, which print their help


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, by the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def options(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_says_what_it_does_with_an_example_that_parses(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    assert command.help.strip().splitlines()[0].endswith(".")
    assert command.epilog is not None
    example = command.epilog.removeprefix("Example: ")
    words = shlex.split(example)
    assert words[: len(path) + 1] == ["discreet", *path]
    for parameter in command.params:
        if "--help" not in parameter.opts:
            assert getattr(parameter, "help", None), f"{parameter.name} of {' '.join(path)} has no help"
    context = command.make_context("discreet", words[len(path) + 1 :], resilient_parsing=False)
    assert context.args == []


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_machines_get_json(path: tuple[str, ...]) -> None:
    assert "--json" in options(COMMANDS[path])


def test_what_spends_asks_unless_told_not_to() -> None:
    assert "--yes" in options(COMMANDS["release",])


def test_the_tutorial_documents_every_exit_code() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text().partition("## Exit codes")[2].partition("\n## ")[0]
    documented = {int(line.split("|")[1]) for line in page.splitlines() if line[2:3].isdigit()}
    assert documented == {int(code) for code in Exit}


def test_a_shell_completes_commands_and_options() -> None:
    def completed(words: str, at: int) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", "from discreet.cli import app; app(prog_name='discreet')"],
            env={
                **os.environ,
                "_DISCREET_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": str(at),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.split()

    assert completed("discreet re", 1) == ["release", "reproduce"]
    assert completed("discreet release --se", 2) == ["--seed"]
