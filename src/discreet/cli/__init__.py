"""The command line: `discreet account`, `discreet demo`.

Nothing here imports `discreet.privacy`, NumPy or SciPy before a command runs: `discreet --help` is fast.
"""

from typing import Annotated

import typer

from discreet.cli import demo, mechanisms
from discreet.cli.errors import OneLineErrors

__all__ = ["app"]

app = typer.Typer(
    name="discreet",
    cls=OneLineErrors,
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        import discreet

        typer.echo(f"discreet {discreet.__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Differentially private Bayesian inference in which every guarantee can be checked."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.add_typer(mechanisms.app, name="account")
app.command("demo")(demo.demo)
