"""`discreet release STUDY`: check everything, spend, draw, and put a folder in place, in this order.

Killed at any moment it leaves no folder without a spend, no half of a folder under its
name, and a spend without a folder at worst, which `discreet ledger reconcile` shows.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet import report
from discreet.cli import describe, numbers, processes, show
from discreet.cli.confirm import confirm
from discreet.cli.errors import Exit, RequestError, plainly, refusals
from discreet.cli.plan import STUDY, ledger_of

if TYPE_CHECKING:
    from discreet.ledger import Ledger, Quote, Receipt
    from discreet.mechanisms import Plan, Release
    from discreet.privacy import Guarantee
    from discreet.study import Study


class Held:
    """A ledger whose spend is closed later, when what it paid for lies in its place."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.receipt: Receipt | None = None

    def spend(self, guarantee: Guarantee, purpose: str, *, plan: str) -> Receipt:
        """Spend now."""
        self.receipt = self.ledger.spend(guarantee, purpose, plan=plan)
        return self.receipt

    def complete(self, receipt: Receipt, release: str, /) -> None:
        """Not yet."""


def release(
    study: STUDY,
    *,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the release goes; else [report] folder of the study."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Spend without asking.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            parser=numbers.whole,
            metavar="N",
            help="Make the draws reproducible; whoever knows the number can undo the noise.",
        ),
    ] = None,
    who: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who spends; by default the login name.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    join: processes.JOIN = None,
    process: processes.PROCESS = None,
) -> None:
    """Spend, draw, and write the release folder. Says first what it costs and what is left."""
    with refusals("discreet release"), processes.joined(join, process) as group:
        from discreet.mechanisms.interruption import Interrupted
        from discreet.study import load

        if group.process > 0:
            _assist(study, group)
            return
        agreed: list[str] = []
        with group.agreeing(agreed):
            if seed is not None and not 0 <= seed < 2**256:
                raise RequestError("--seed must be a whole number from 0 to 2^256 - 1; leave it out for none")
            asked = load(study)
            target = _target(asked, out)
            found = asked.plan()
            ledger = ledger_of(asked, who)
            records = asked.records(group.share)
            with plainly():
                found.check(records)
                quote = ledger.quote(found.guarantee)
            _affordable(quote)
            if not as_json:
                show.show(_announcement(study, found, quote, asked, ledger))
            confirm(f"Spend {numbers.upward(quote.asked)} of the budget of {ledger.dataset}?", yes=yes)
            agreed.append(found.hash())
        held = Held(ledger)
        staging = _staging(target)
        stopped = False
        try:
            try:
                drawn = asked.release(
                    records, key=seed, ledger=held, progress=not as_json and sys.stderr.isatty()
                )
            except Interrupted as interrupted:  # what was drawn so far is billed, and released
                drawn, stopped = asked.described(interrupted.release), True
            receipt = held.receipt
            assert receipt is not None  # noqa: S101  # `Plan.release` spends
            prepared = prepare(staging / "release", drawn, asked, receipt)
            put(prepared, target)
            ledger.complete(receipt, drawn.hash())
            staging.rmdir()
        except (Exception, KeyboardInterrupt) as error:
            if held.receipt is None:
                shutil.rmtree(staging, ignore_errors=True)
                raise
            raise _lost(held.receipt, error, target, staging) from None
    result: dict[str, Any] = {
        "folder": str(target),
        "plan": found.hash(),
        "release": drawn.hash(),
        "receipt": receipt.to_dict(),
        "ledger": describe.quote_values(quote),
        "interrupted": stopped,
    }
    if as_json:
        show.show_json(result)
        raise typer.Exit(Exit.INTERRUPTED if stopped else Exit.OK)
    page = target / "report.html"
    wanted = asked.report.page
    sentences = [
        ("Released", f"{target}, paid for by entry {receipt.position} of the ledger of {ledger.dataset}"),
        *([("Read", str(page))] if page.exists() else []),
        *([("No page", "report.html could not be drawn; the release is whole")] * (wanted > page.exists())),
        *([("Interrupted", "the draws are those made so far, at the price of all")] if stopped else []),
        ("Left", f"{numbers.downward(receipt.left)} of {numbers.plain(quote.budget.epsilon)}"),
        ("Check", f"discreet reproduce {target}"),
    ]
    show.show(show.Page("done", [], sentences))
    if stopped:
        raise typer.Exit(Exit.INTERRUPTED)


def _assist(study: Path, group: processes.Group) -> None:
    """Sum over this process's part of the table for process 0; spend, draw and write nothing."""
    from discreet.data import StoredRecords
    from discreet.study import load

    agreed: list[str] = []
    with group.agreeing(agreed):
        asked = load(study)
        found, records = asked.plan(), asked.records(group.share)
        with plainly():
            found.check(records)
        agreed.append(found.hash())
    assert isinstance(records, StoredRecords)  # noqa: S101  # a share is streamed
    found.assist(records)


def _target(study: Study, out: Path | None) -> Path:
    """Where the folder will be; refuse a place that is taken, or where nothing can be written."""
    if out is None and study.report.folder is None:
        raise RequestError("--out is missing: give it, or set folder in [report] of the study")
    target = out if out is not None else study.folder / str(study.report.folder)
    if target.exists() or target.is_symlink():
        raise RequestError(f"{target} is there already; choose another --out, or remove it")
    if not target.parent.is_dir():
        raise RequestError(f"{target.parent} is not a folder; make it first")
    if not os.access(target.parent, os.W_OK):
        raise RequestError(f"{target.parent} cannot be written to; choose another --out")
    return target


def _affordable(quote: Quote) -> None:
    from discreet.ledger import BudgetExceeded

    if not quote.fits:
        raise BudgetExceeded(quote)


def _announcement(study: Path, plan: Plan, quote: Quote, asked: Study, ledger: Ledger) -> show.Page:
    return show.Page(
        f"release of {study.name}: {describe.heading(plan)}",
        [describe.price(plan.guarantee, [asked.privacy.delta])],
        [
            *describe.protection(plan.guarantee, asked.privacy.delta),
            ("Rests on", f"{describe.counted(plan.evidence)} claims; discreet plan {study} lists them"),
            (f"The ledger of {ledger.dataset}", describe.budget_line(quote)),
        ],
    )


# --- the folder --------------------------------------------------------------------


def _staging(target: Path) -> Path:
    """A new folder beside the target."""
    try:
        return Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError:
        raise RequestError(f"{target.parent} cannot be written to; choose another --out") from None


def prepare(folder: Path, drawn: Release, study: Study, receipt: Receipt) -> Path:
    """Write the whole folder, not yet under its name."""
    drawn.save(folder)
    (folder / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    paid = {**receipt.to_dict(), "release": drawn.hash()}
    (folder / "receipt.json").write_text(json.dumps(paid, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if study.report.page:
        # A page that cannot be drawn must not cost the release, which is paid for.
        with suppress(Exception):
            report.write(folder)
    return folder


def put(folder: Path, target: Path) -> None:
    """Move a finished folder under its name, in one step, once all of it is on disk."""
    for place, _, files in os.walk(folder):
        for name in files:
            _sync(Path(place) / name)
        _sync(Path(place))
    if target.exists():
        raise FileExistsError
    folder.rename(target)
    _sync(target.parent)


def _sync(place: Path) -> None:
    with suppress(OSError):  # some file systems cannot sync a folder
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _lost(receipt: Receipt, error: BaseException, target: Path, staging: Path) -> RequestError:
    """What to say after a spend that was not closed; the exception's message may quote the data."""
    interrupted = isinstance(error, KeyboardInterrupt)
    what = "was interrupted" if interrupted else f"failed ({type(error).__name__})"
    if target.exists():
        there = f"{target} is in place all the same"
    elif (staging / "release").exists():
        there = f"what was written lies in {staging}"
    else:
        there = "nothing was written"
        shutil.rmtree(staging, ignore_errors=True)
    return RequestError(
        f"the release {what} after its spend, entry {receipt.position}, which stays spent; {there}; "
        "close the entry with discreet ledger reconcile",
        Exit.INTERRUPTED if interrupted else Exit.FAULT,
    )
