"""`discreet ledger`: open one, look at it, verify it, settle what a crash left open."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import numbers, show, words
from discreet.cli.errors import Exit, OneLineErrors, RequestError, plainly, refusals
from discreet.cli.tables import read_json

if TYPE_CHECKING:
    from discreet.ledger import Anchor, Entry, Ledger

app = typer.Typer(
    cls=OneLineErrors,
    invoke_without_command=True,
    help="Who spent what on one data set: append-only, hash-chained, and it refuses overspends.",
)

PLACE = Annotated[str, typer.Argument(metavar="PLACE", help="A file, or postgresql://user@host/database.")]
DATASET = Annotated[
    str | None, typer.Option(metavar="NAME", help="The data set, where the place keeps several.")
]
WHO = Annotated[str | None, typer.Option(metavar="NAME", help="Who writes; by default the login name.")]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def _ledger(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def at(place: str, dataset: str | None, who: str | None = None) -> Ledger:
    """The ledger at a place; it must be there."""
    from discreet.ledger import Ledger, LedgerMissing

    try:
        with plainly():
            return Ledger(place, dataset=dataset, who=who)
    except LedgerMissing as error:
        said = str(error).replace("give budget= to open one", "open one with discreet ledger open")
        raise RequestError(said.replace("give dataset=", "give --dataset")) from None
    raise AssertionError  # for the type checker: the block returns or raises


@app.command(
    "open",
    epilog="Example: discreet ledger open ward.ledger --epsilon 3 --delta 1e-6 --neighbours substitute",
)
def open_(
    place: PLACE,
    *,
    epsilon: Annotated[
        float, typer.Option(parser=numbers.real, metavar="EPSILON", help="What may be spent in all.")
    ],
    neighbours: Annotated[
        str, typer.Option(parser=numbers.relation, metavar="RELATION", help="substitute or add-remove.")
    ],
    delta: Annotated[
        float, typer.Option(parser=numbers.real, metavar="DELTA", help="The delta epsilon is read at.")
    ] = 0.0,
    dataset: DATASET = None,
    who: WHO = None,
    json: JSON = False,
) -> None:
    """Open a ledger and set its budget, once and for all. For the owner of the data."""
    with refusals("discreet ledger open"), plainly():
        from discreet.ledger import Ledger
        from discreet.privacy import Budget

        ledger = Ledger.create(place, budget=Budget(epsilon, delta, neighbours), dataset=dataset, who=who)
    _show(ledger, as_json=json, heading=f"opened the ledger of {ledger.dataset}")


@app.command("show", epilog="Example: discreet ledger show ward.ledger")
def show_(place: PLACE, *, dataset: DATASET = None, json: JSON = False) -> None:
    """Print the budget, what is spent and left, and every entry."""
    with refusals("discreet ledger show"):
        ledger = at(place, dataset)
        _show(ledger, as_json=json, heading=f"ledger of {ledger.dataset}")


@app.command("verify", epilog="Example: discreet ledger verify ward.ledger --receipt release/receipt.json")
def verify(
    place: PLACE,
    *,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A receipt or anchor kept elsewhere; may be repeated."),
    ] = None,
    dataset: DATASET = None,
    json: JSON = False,
) -> None:
    """Read every entry and look for changes; exit code 4 if there is one."""
    with refusals("discreet ledger verify"):
        anchors = [anchor_in(path) for path in receipt or ()]
        from discreet.ledger import LedgerBroken

        try:
            found = at(place, dataset).verify(anchors)
            position, problem, entries = found.position, found.problem, found.entries
        except LedgerBroken as broken:
            position, problem, entries = broken.position, broken.problem, broken.position
    if json:
        show.show_json(
            {"intact": problem is None, "entries": entries, "position": position, "problem": problem}
        )
    if problem is not None:
        raise RequestError(
            f"discreet ledger verify: entry {position} is not as it was written: {problem}; "
            "restore the ledger from a backup, and release nothing until then",
            Exit.VERIFICATION,
        )
    if not json:
        kept = f", and as what was kept elsewhere says ({len(anchors)} of {len(anchors)})" if anchors else ""
        show.show(show.Page(f"{entries} entries, every one as it was written{kept}", [], []))


@app.command("reconcile", epilog="Example: discreet ledger reconcile ward.ledger")
def reconcile(
    place: PLACE,
    *,
    release: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A release folder whose spend was not closed; may be repeated."),
    ] = None,
    abandon: Annotated[
        int | None, typer.Option(metavar="ENTRY", help="A spend of which nothing came; it stays spent.")
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why, with --abandon.")] = None,
    dataset: DATASET = None,
    who: WHO = None,
    json: JSON = False,
) -> None:
    """List the spends of which no release is known: running, crashed, or never reported; close them."""
    with refusals("discreet ledger reconcile"):
        ledger = at(place, dataset, who)
        for folder in release or ():
            _complete(ledger, folder)
        if abandon is not None:
            _abandon(ledger, abandon, reason)
        elif reason is not None:
            raise RequestError("--reason was given without --abandon; say which entry came to nothing")
        left = ledger.reconcile()
    if json:
        show.show_json({"open": [_values(spend) for spend in left]})
        return
    rows = [(str(s.position), f"{s.when:%Y-%m-%d %H:%M} UTC", s.who, s.purpose) for s in left]
    columns = [show.Column("entry", number=True), *map(show.Column, ("when", "who", "purpose"))]
    heading = f"{len(left)} spends of {ledger.dataset} without a release" if left else "every spend is closed"
    advice = [
        ("They stay spent", "nobody can know that nothing was seen."),
        ("If the release exists", f"discreet ledger reconcile {_quiet(place)} --release DIR"),
        ("If nothing came of it", f"discreet ledger reconcile {_quiet(place)} --abandon ENTRY --reason TEXT"),
    ]
    show.show(show.Page(heading, [show.Table("", columns, rows)] if rows else [], advice if rows else []))


# --- inside ------------------------------------------------------------------------


def _quiet(place: str) -> str:
    """A place without what may be a password."""
    return place if "://" not in place else "PLACE"


def anchor_in(path: Path) -> Anchor:
    """What a receipt or an anchor says, in a file or in a release folder."""
    from discreet.ledger import Anchor

    data = read_json(path / "receipt.json" if path.is_dir() else path)
    anchor = data.get("anchor", data) if isinstance(data, dict) else {}
    found: Anchor | None = None
    with suppress(KeyError, TypeError):
        found = Anchor.from_dict(anchor)
    if found is None or not (isinstance(found.position, int) and found.position >= 0):
        raise RequestError(f"{path} must be a receipt or an anchor: JSON with dataset, position and hash")
    return found


def _complete(ledger: Ledger, folder: Path) -> None:
    """Close the spend that a release folder says it was paid by, if it is that spend's."""
    from discreet.mechanisms import Release

    anchor = anchor_in(folder)
    spend = next((one for one in ledger.reconcile() if one.position == anchor.position), None)
    if spend is None or spend.hash != anchor.hash:
        raise RequestError(
            f"{folder} was not paid for by an open spend of this ledger; see discreet ledger show"
        )
    with plainly():
        release = Release.load(folder)
    if release.provenance.get("plan_hash") != spend.plan:
        raise RequestError(
            f"{folder} is of another plan than entry {spend.position}; it may have been changed"
        )
    ledger.complete(spend, release.hash())


def _abandon(ledger: Ledger, position: int, reason: str | None) -> None:
    if reason is None:
        raise RequestError("--reason is missing: say in one line what became of the spend")
    spend = next((one for one in ledger.reconcile() if one.position == position), None)
    if spend is None:
        raise RequestError(
            f"entry {position} is not an open spend; run discreet ledger reconcile without --abandon"
        )
    with plainly():
        ledger.abandon(spend, reason)


def _show(ledger: Ledger, *, as_json: bool, heading: str) -> None:
    import discreet as dc

    budget, spent = ledger.budget, ledger.spent()
    entries, pending = ledger.entries(), {spend.position for spend in ledger.reconcile()}
    left = max(0.0, budget.epsilon - spent)
    if as_json:
        values: dict[str, Any] = {
            "dataset": ledger.dataset,
            "budget": {
                "epsilon": budget.epsilon,
                "delta": budget.delta,
                "neighbours": str(budget.neighbours),
            },
            "spent": spent,
            "left": left,
            "guess": dc.privacy.attacker_success(spent, budget.delta),
            "anchor": ledger.anchor().to_dict(),
            "open": sorted(pending),
            "entries": [_values(entry) for entry in entries],
        }
        show.show_json(values)
        return
    rows = [
        (
            str(entry.position),
            f"{entry.when:%Y-%m-%d %H:%M} UTC",
            entry.who,
            _cost(entry, budget.delta),
            _what(entry, entry.position in pending),
        )
        for entry in entries
    ]
    columns = (
        show.Column("entry", number=True),
        show.Column("when"),
        show.Column("who"),
        show.Column("epsilon", number=True),
        show.Column("what"),
    )
    allowed = f"epsilon {numbers.plain(budget.epsilon)} at delta {numbers.plain(budget.delta)}"
    sentences = [
        ("Budget", f"{allowed}, for all releases together"),
        ("Spent", f"{numbers.upward(spent)}, composed; left {numbers.downward(left)}"),
        ("Protects", words.protects(ledger.total(), 1)),
        ("An attacker", f"so far {dc.privacy.attacker_words(spent, budget.delta)}."),
    ]
    if pending:
        sentences.append(("Open", f"{len(pending)} spends without a release; see discreet ledger reconcile"))
    show.show(show.Page(heading, [show.Table("", columns, rows)], sentences))


def _cost(entry: Entry, delta: float) -> str:
    from discreet.ledger import Spend

    return numbers.upward(entry.guarantee.epsilon(delta)) if isinstance(entry, Spend) else ""


def _what(entry: Entry, pending: bool) -> str:
    return _WHAT[entry.kind](entry) + (" (no release known)" if pending else "")


_WHAT: dict[str, Callable[[Any], str]] = {
    "opened": lambda entry: f"opened for {entry.dataset}",
    "spend": lambda entry: f"spent: {entry.purpose}",
    "released": lambda entry: f"released what entry {entry.spend} paid for",
    "abandoned": lambda entry: f"nothing came of entry {entry.spend}: {entry.reason}",
}


def _values(entry: Entry) -> dict[str, Any]:
    """An entry as plain values."""
    return {"kind": entry.kind, **{field.name: _plain(getattr(entry, field.name)) for field in fields(entry)}}


def _plain(value: Any) -> Any:
    from discreet.privacy import Budget, Guarantee

    if isinstance(value, Guarantee):
        return value.to_dict()
    if isinstance(value, datetime):
        return value.isoformat()
    return {**asdict(value), "neighbours": str(value.neighbours)} if isinstance(value, Budget) else value
