"""`discreet reproduce FOLDER`: is a release what it says it is, and the same again from seed and data?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import describe, folder, numbers, show
from discreet.cli.errors import Exit, RequestError, plainly, refusals
from discreet.cli.tables import read_json

if TYPE_CHECKING:
    from discreet.mechanisms import Plan, Release
    from discreet.study import Study


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        what: was looked at.
        holds: what was found; None where it could not be looked at.
        note: more about it.
    """

    what: str
    holds: bool | None
    note: str = ""


def reproduce(
    release: Annotated[Path, typer.Argument(metavar="FOLDER", help="What discreet release wrote.")],
    *,
    data: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="The table, to draw again; needs --seed.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(parser=numbers.whole, metavar="N", help="The seed of the release.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="PLACE", help="The ledger that the release was paid from.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="The data set, where the ledger keeps several.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Plan a release again from its own study and compare; with seed and data, draw it again bit by bit.

    Spends nothing. Exit code 4 if something is not as the release says.
    """
    with refusals("discreet reproduce"):
        if (data is None) != (seed is None):
            raise RequestError("--data and --seed go together: one without the other draws nothing again")
        found = folder.read(release)
        study = _study(release)
        plan = study.plan()
        checks = [*_plan(found, plan), _versions(found), _draws(release, found)]
        if ledger is not None:
            checks.append(_ledger(release, found, ledger, dataset))
        if data is not None and seed is not None:
            checks.append(_again(found, study, data, seed))
    wrong = [check for check in checks if check.holds is False]
    if json:
        show.show_json({"holds": not wrong, "checks": [vars(check) for check in checks]})
    else:
        _show(release, found, plan, checks, study.privacy.delta)
    if wrong:
        raise RequestError(
            f"discreet reproduce: {release} is not what it says: it fails that "
            f"{', that '.join(check.what for check in wrong)}; do not rely on it",
            Exit.VERIFICATION,
        )


def _study(place: Path) -> Study:
    from discreet.study import load

    if not (place / "study.toml").is_file():
        raise RequestError(f"{place} holds no study.toml, so that nothing can be planned again")
    return load(place / "study.toml")


def _plan(found: Release, plan: Plan) -> list[Check]:
    """The plan, its price and its evidence, worked out again without data."""
    recorded = found.provenance.get("plan_hash")
    claims = found.evidence[: len(plan.evidence)]
    return [
        Check("the plan is the one of its study", recorded == plan.hash(), f"SHA-256 {plan.hash()}"),
        Check("the guarantee is the one of the plan", found.guarantee == plan.guarantee),
        Check("the plan's evidence stands in it", claims == plan.evidence),
    ]


def _versions(found: Release) -> Check:
    """Other versions are no fault, and the first suspects if something differs."""
    from discreet.mechanisms.base import versions

    recorded, here = found.provenance.get("versions", {}), versions()
    other = [
        f"{name} {recorded.get(name, 'none')}, here {version}"
        for name, version in here.items()
        if recorded.get(name) != version
    ]
    return Check("the versions are those of here", None if other else True, "; ".join(other))


def _draws(place: Path, found: Release) -> Check:
    receipt = place / "receipt.json"
    if not receipt.is_file():
        return Check("the draws are those of the receipt", None, "there is no receipt.json")
    data = read_json(receipt)
    recorded = data.get("release") if isinstance(data, dict) else None
    return Check("the draws are those of the receipt", recorded == found.hash(), f"SHA-256 {found.hash()}")


def _ledger(place: Path, found: Release, ledger: str, dataset: str | None) -> Check:
    """The ledger is intact, and its entries say that this release was paid for."""
    from discreet.cli.ledger import anchor_in, at
    from discreet.ledger import Released, Spend

    what = "the ledger says that it was paid for"
    kept = anchor_in(place / "receipt.json")
    book = at(ledger, dataset)
    verified = book.verify([kept])
    if not verified:
        return Check(what, False, str(verified))
    entries = book.entries()
    spend = entries[kept.position]
    paid = isinstance(spend, Spend) and spend.plan == found.provenance.get("plan_hash")
    closed = any(
        isinstance(entry, Released) and entry.spend == kept.position and entry.release == found.hash()
        for entry in entries
    )
    same = isinstance(spend, Spend) and spend.guarantee == found.guarantee
    return Check(what, paid and same and closed, f"entry {kept.position} of {book.dataset}")


def _again(found: Release, study: Study, data: Path, seed: int) -> Check:
    import numpy as np

    with plainly():
        records = replace(study, folder=data.parent, data=study.data.at(data.name)).records()
        again = study.plan().release(records, key=seed)
    same = found.draws.keys() == again.draws.keys() and all(
        np.array_equal(values, again.draws[name], equal_nan=True) for name, values in found.draws.items()
    )
    return Check(
        "the draws come out the same again, bit by bit", same, "" if same else "another seed or table?"
    )


_WORDS = {True: "yes", False: "NO", None: "not known"}


def _show(place: Path, found: Release, plan: Plan, checks: list[Check], delta: float) -> None:
    rows = [(_WORDS[check.holds], check.what, check.note) for check in checks]
    columns = [show.Column(title) for title in ("holds", "what", "note")]
    sentences: list[tuple[str, Any]] = [*describe.protection(found.guarantee, delta), ("Spent", "nothing.")]
    show.show(
        show.Page(
            f"{place}: {describe.heading(plan)}",
            [show.Table("", columns, rows), describe.price(found.guarantee, [delta])],
            sentences,
        )
    )
