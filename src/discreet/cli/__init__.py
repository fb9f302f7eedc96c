"""The command line: plan, release, audit, account, ledger, reproduce, explain, compare, demo, schema.

Nothing here imports `discreet.privacy`, NumPy or SciPy before a command runs: `discreet --help` is fast.
"""

from typing import Annotated

import typer

from discreet.cli import audit, demo, explain, ledger, mechanisms, plan, release, reproduce, schema, worth
from discreet.cli.errors import OneLineErrors

__all__ = ["app"]

app = typer.Typer(
    name="discreet",
    cls=OneLineErrors,
    add_completion=True,
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


app.command("plan", epilog="Example: discreet plan study.toml")(plan.plan)
app.command("release", epilog="Example: discreet release study.toml --out release")(release.release)
app.command("audit", epilog="Example: discreet audit study.toml --minutes 5")(audit.audit)
app.command("reproduce", epilog="Example: discreet reproduce release --ledger ward.ledger")(
    reproduce.reproduce
)
app.command("explain", epilog="Example: discreet explain release")(explain.explain)
app.command("compare", epilog="Example: discreet compare --epsilon 1")(worth.compare)
app.command("demo", epilog="Example: discreet demo")(demo.demo)
app.add_typer(mechanisms.app, name="account")
app.add_typer(ledger.app, name="ledger")
app.add_typer(schema.app, name="schema")
