"""`discreet schema`: begin the public description of a table; a person finishes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import show
from discreet.cli.errors import OneLineErrors, refusals
from discreet.cli.plan import write

app = typer.Typer(
    cls=OneLineErrors,
    invoke_without_command=True,
    help="What is publicly known of a table: columns, bounds, categories.",
)


WHY = (
    "the smallest and the largest value of a column are somebody's, and so are the categories that occur; a "
    "bound read off the data breaks the guarantee. Take the study's protocol, the range of the instrument, a "
    "code book"
)


@app.callback()
def _schema(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("init", epilog="Example: discreet schema init ward.csv --out ward.toml")
def init(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV, Parquet or Arrow file.")],
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it; else it is printed.")
    ] = None,
    separator: Annotated[str, typer.Option(metavar="CHAR", help="Between the cells of a CSV file.")] = ",",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Draft a schema with the table's column names and types only; every bound is left for a person."""
    with refusals("discreet schema init"):
        from discreet.data import Schema

        draft = Schema.draft(table, separator=separator)
        if out is not None:
            write(out, draft)
    unfilled = draft.count('= "TODO"')
    if json:
        show.show_json({"schema": draft, "file": None if out is None else str(out), "unfilled": unfilled})
    elif out is None:
        typer.echo(draft, nl=False)
    else:
        show.show(
            show.Page(
                f"{out}: names and types, nothing else of the table",
                [],
                [
                    ("To do", f"replace {unfilled} times TODO: bounds and values, from public knowledge"),
                    ("Why you", WHY),
                    ("Not yet", "a schema that still says TODO is refused"),
                ],
            )
        )
