"""Tables: Rich on a terminal, aligned text when piped, JSON when asked."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Column:
    """A column: its title, and whether it holds numbers."""

    title: str
    number: bool = False


@dataclass(frozen=True)
class Table:
    """Cells with titles; the marked rows stand out."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    marked: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Page:
    """A heading, tables, and sentences, each with a word in front."""

    heading: str
    tables: Sequence[Table]
    sentences: Sequence[tuple[str, str]]


def show(page: Page) -> None:
    """Print a page, coloured and wrapped on a terminal, one line per row and sentence otherwise."""
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        _rich(console, page)
    else:
        typer.echo(_plain(page))


def show_json(data: dict[str, Any]) -> None:
    """Print strict JSON; a number that is not finite is null."""
    typer.echo(json.dumps(_finite(data), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _plain(page: Page) -> str:
    lines = [page.heading]
    for table in page.tables:
        lines += ["", *([table.title] if table.title else [])]
        cells = [[column.title for column in table.columns], *table.rows]
        widths = [max(len(row[k]) for row in cells) for k in range(len(table.columns))]
        lines += [
            "  ".join(
                cell.rjust(width) if column.number else cell.ljust(width)
                for cell, width, column in zip(row, widths, table.columns, strict=True)
            ).rstrip()
            for row in cells
        ]
    lines += [""] * bool(page.sentences)
    lines += [f"{word}: {sentence}" for word, sentence in page.sentences]
    return "\n".join(lines)


def _rich(console: Console, page: Page) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    console.print()
    console.print(Text(page.heading, style="bold"))
    for table in page.tables:
        console.print()
        if table.title:
            console.print(Text(table.title, style="italic"))
        drawn = RichTable(
            box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold cyan", show_edge=False
        )
        for column in table.columns:
            drawn.add_column(
                column.title,
                justify="right" if column.number else "left",
                no_wrap=column.number,
                overflow="fold",
            )
        for k, row in enumerate(table.rows):
            drawn.add_row(*map(Text, row), style="bold green" if k in table.marked else "")
        console.print(drawn)
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for word, sentence in page.sentences:
        grid.add_row(word, Text(sentence))
    if page.sentences:
        console.print()
        console.print(grid)
    console.print()
