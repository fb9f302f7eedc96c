"""`discreet demo`: the whole way from a table to a signed-off release, on invented patients."""

from __future__ import annotations

import contextlib
import io
import time
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import audit, ledger, plan, release, reproduce, show
from discreet.cli.errors import RequestError

STUDY = """\
title = "Who is diagnosed? Invented patients"

[data]
path = "clinic.csv"          # 20,000 invented patients; nobody in it exists
schema = "clinic.toml"       # bounds and categories, declared by a person
target = "diagnosis"
records = {rows}
scale = "centred"

[model]
name = "LogisticRegression"
prior_precision = 1.0

[mechanism]
name = "OnePosteriorSample"
loss = "Gibbs"
draws = {draws}

[privacy]
epsilon = 2.0
delta = 1e-6
neighbours = "substitute"

[ledger]
place = "clinic.ledger"
purpose = "demonstration on invented patients"
"""
BUDGET = 3.0
ROWS = 20_000
SHORT, TRIALS, MINUTES = 300, 300, 0.5
"""The audit in short: 300 people instead of 20,000, and few runs. It would find a gross error, no more."""


def demo(
    *,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the files go; else demo, or demo-2, ...")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Go the whole way on a synthetic clinic: study, plan, ledger, release, check, report."""
    started = time.perf_counter()
    place = _new(folder)
    quiet = contextlib.redirect_stdout(io.StringIO()) if json else contextlib.nullcontext()
    with quiet:
        _run(place)
    seconds = time.perf_counter() - started
    if json:
        show.show_json(
            {"folder": str(place), "report": str(place / "release" / "report.html"), "seconds": seconds}
        )
        return
    show.show(
        show.Page(
            f"That was the whole way, in {seconds:.0f} s. Where to look:",
            [],
            [
                ("The report", f"{place / 'release' / 'report.html'} (open it in a browser)"),
                ("The audit", f"{place / 'audit' / 'audit.html'}, a short one"),
                (
                    "The study",
                    f"{place / 'study.toml'} and {place / 'clinic.toml'}: edit a copy for your own",
                ),
                ("In plain words", f"discreet explain {place / 'release'}"),
                ("The ledger", f"discreet ledger show {place / 'clinic.ledger'}"),
                ("Your own table", "the tutorial of the documentation takes ten minutes"),
            ],
        )
    )


def _run(place: Path) -> None:
    from discreet.data import synthetic_clinic

    study, book = place / "study.toml", place / "clinic.ledger"
    _say(
        f"A clinic's cohort of {ROWS:,} invented patients: nobody in it exists. "
        f"It lies in {place / 'clinic.csv'}, its public description in clinic.toml."
    )
    clinic = synthetic_clinic(ROWS)
    clinic.frame.write_csv(place / "clinic.csv")
    clinic.schema.write(place / "clinic.toml")
    study.write_text(STUDY.format(rows=ROWS, draws=50), encoding="utf-8")

    _command("plan", study, says="What would it cost? No data is touched.")
    plan.plan(study)
    price = f"--epsilon {BUDGET:g} --delta 1e-6 --neighbours substitute"
    _command("ledger open", book, price, says="The owner of the data sets what may be spent in all.")
    ledger.open_(str(book), epsilon=BUDGET, neighbours="substitute", delta=1e-6)
    _command("release", study, f"--out {place / 'release'} --yes", says="Spend, then draw.")
    release.release(study, out=place / "release", yes=True)
    _command("reproduce", place / "release", f"--ledger {book}", says="Is it what it says it is?")
    reproduce.reproduce(place / "release", ledger=str(book))
    short = place / "short.toml"
    short.write_text(STUDY.format(rows=SHORT, draws=5), encoding="utf-8")
    _command(
        "audit",
        short,
        f"--trials {TRIALS} --minutes {MINUTES:g} --out {place / 'audit'}",
        says=f"Attack it, in short: the same study of {SHORT} people, on made-up tables, never on the data.",
    )
    audit.audit(short, trials=TRIALS, minutes=MINUTES, out=place / "audit")
    _command("ledger show", book, says="What is left, and who spent what.")
    ledger.show_(str(book))


def _say(sentence: str) -> None:
    show.show(show.Page(sentence, [], []))


def _command(name: str, place: Path, *more: str, says: str) -> None:
    _say("")
    _say(f"# {says}")
    _say(f"$ discreet {' '.join([name, str(place), *more])}")


def _new(folder: Path | None) -> Path:
    """A folder that was not there."""
    candidates = (
        [folder] if folder is not None else [Path("demo"), *(Path(f"demo-{k}") for k in range(2, 1000))]
    )
    for place in candidates:
        try:
            place.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise RequestError(
                f"discreet demo: {place} cannot be made: {error.strerror}; name another"
            ) from None
        return place
    raise RequestError(f"discreet demo: {candidates[0]} is there already; name another --folder")
