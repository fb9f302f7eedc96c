"""`discreet plan STUDY`: what a study would cost, and why; touches no data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import describe, show
from discreet.cli.errors import RequestError, plainly, refusals

if TYPE_CHECKING:
    from discreet.ledger import Ledger, Quote
    from discreet.mechanisms import Plan
    from discreet.study import Study

STUDY = Annotated[Path, typer.Argument(metavar="STUDY", help="A study file, in TOML.")]


def plan(
    study: STUDY,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the plan as JSON, for `discreet explain`.")
    ] = None,
) -> None:
    """Say what a study would cost and what that rests on. Touches no data and spends nothing."""
    with refusals("discreet plan"):
        from discreet.study import load

        asked = load(study)
        found = asked.plan()
        quote, no_ledger = _quote(asked, found)
        if save is not None:
            write(save, found.to_json() + "\n")
    delta = asked.privacy.delta
    if json:
        values: dict[str, Any] = {
            "plan": found.to_dict(),
            "hash": found.hash(),
            "epsilon": found.guarantee.epsilon(delta),
            "delta": delta,
            "ledger": None if quote is None else describe.quote_values(quote),
        }
        show.show_json(values)
        return
    sentences = describe.protection(found.guarantee, delta)
    sentences += [("Because", f"{reason}.") for reason in found.reasons]
    if quote is not None:
        fits = "" if quote.fits else "; it does not fit, and a release will be refused"
        sentences.append(("The ledger", describe.budget_line(quote) + fits))
    elif no_ledger is not None:
        sentences.append(("The ledger", f"{no_ledger}."))
    sentences += [("Plan", found.hash()), ("Data", "none was touched.")]
    if save is not None:
        sentences.append(("Saved", str(save)))
    sentences.append(("Next", f"discreet release {study}"))
    show.show(
        show.Page(
            f"plan of {study.name}: {describe.heading(found)}",
            [
                describe.parameters(found.parameters),
                describe.price(found.guarantee, [delta]),
                describe.rests_on(found.evidence),
            ],
            sentences,
        )
    )


def _quote(study: Study, found: Plan) -> tuple[Quote | None, str | None]:
    """What the ledger says of the price, or why it says nothing."""
    from discreet.ledger import LedgerMissing

    if study.ledger_place is None:
        return None, None
    try:
        ledger = ledger_of(study)
        with plainly():
            return ledger.quote(found.guarantee), None
    except LedgerMissing as missing:
        return None, str(missing)
    raise AssertionError  # for the type checker: the block returns or raises


def ledger_of(study: Study, who: str | None = None) -> Ledger:
    """The ledger of a study, with advice for the command line where there is none."""
    from discreet.ledger import LedgerMissing

    named = study.ledger_place
    missing = None
    try:
        with plainly():
            return study.ledger(who)
    except LedgerMissing:
        missing = str(study.ledger_file() or "the database") if named is not None else ""
    price = study.privacy
    dataset = f" --dataset {named.dataset}" if named is not None and named.dataset is not None else ""
    raise LedgerMissing(
        f"there is no ledger at {missing}; the owner of the data opens one and sets its budget: "
        f"discreet ledger open {missing} --epsilon E --delta {price.delta:g} "
        f"--neighbours {price.neighbours.replace('_', '-')}{dataset}"
    )


def write(path: Path, text: str) -> None:
    """Write a file that is not there yet."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise RequestError(f"{path} is there already; choose another name, or remove it") from None
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror or 'no access'}") from None
