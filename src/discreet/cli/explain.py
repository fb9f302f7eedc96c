"""`discreet explain`: a guarantee in plain words, for whoever must sign it off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import discreet as dc
from discreet.cli import describe, folder, numbers, show, words
from discreet.cli.errors import RequestError, refusals
from discreet.cli.tables import read_guarantee, read_json

if TYPE_CHECKING:
    from discreet.privacy import Evidence, Guarantee

DELTAS = (1e-3, 1e-6, 1e-9)
"""Asked where nothing says which delta is meant."""

RELATIONS = {
    "substitute": "any one person: compare the table as it is with the same table in which this person's "
    "record was replaced by any other. That the person is in the table is not hidden, and the number of "
    "records is public.",
    "add_remove": "any one person: compare the table as it is with the same table without this person's "
    "record, or with one more. That the person is in the table is hidden too, and the number of records is "
    "private.",
}
OPPONENT = (
    "anybody who sees everything that is released, whatever else they know, all the other records included, "
    "and however much they compute; as far as what is assumed below is so."
)
LIMITS = (
    "what the release teaches about people in general, and so about anybody; what is released from the same "
    "data without the same ledger; somebody with several records, who needs a guarantee for a group."
)


@dataclass(frozen=True)
class Told:
    """What is explained.

    Attributes:
        heading: what it is.
        guarantee: what it costs.
        deltas: where to ask.
        evidence: what it rests on; none where only a guarantee was saved.
        rule: what ran or will run, in words.
    """

    heading: str
    guarantee: Guarantee
    deltas: Sequence[float]
    evidence: Sequence[Evidence]
    rule: str | None = None


def explain(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="WHAT", help="A study (.toml), a release folder, or a plan or guarantee that was saved."
        ),
    ],
    *,
    delta: Annotated[
        list[float] | None,
        typer.Option(parser=numbers.real, metavar="DELTA", help="Ask at this delta; may be repeated."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say in plain words who is protected against what, and what is proved, checked, and assumed."""
    with refusals("discreet explain"):
        for value in delta or ():
            if not 0 <= value < 1:
                raise RequestError(f"--delta must be at least 0 and below 1, got {value:g}; 1e-6 is usual")
        told = _read(what)
    deltas = delta or told.deltas
    found = told.guarantee
    if json:
        values: dict[str, Any] = {
            "what": told.heading,
            "neighbours": str(found.neighbours),
            "answers": [
                {
                    "delta": d,
                    "epsilon": found.epsilon(d),
                    "guess": dc.privacy.attacker_success(found.epsilon(d), d),
                }
                for d in deltas
            ],
            "evidence": [claim.to_dict() for claim in told.evidence],
            "guarantee": found.to_dict(),
        }
        show.show_json(values)
        return
    show.show(
        show.Page(
            told.heading,
            [
                describe.price(found, deltas),
                *([describe.rests_on(told.evidence)] if told.evidence else []),
            ],
            [*_sentences(told, deltas), *_standing(told.evidence)],
        )
    )


def _sentences(told: Told, deltas: Sequence[float]) -> describe.Sentences:
    found = told.guarantee
    answers = [(found.epsilon(delta), delta) for delta in deltas]
    guess, _ = words.attacker(answers, found, 1)
    epsilon, delta = answers[0]
    more = f", plus {numbers.plain(delta)} for all such outcomes together" if delta else ""
    loss = (
        f"whatever outcomes one picks, they are at most {_times(epsilon)} times as likely with the one table "
        f"as with the other{more} (epsilon {numbers.upward(epsilon)})."
    )
    sentences = [
        ("Who", RELATIONS[str(found.neighbours)]),
        ("Against whom", OPPONENT),
        ("Against what", loss),
        ("An attacker", guess),
        ("Not against", LIMITS),
    ]
    return [("What runs", told.rule), *sentences] if told.rule else sentences


def _times(epsilon: float) -> str:
    return numbers.upward(math.exp(epsilon)) if epsilon < 700 else "infinitely many"


def _standing(claims: Sequence[Evidence]) -> describe.Sentences:
    found = {str(claim.standing) for claim in claims}
    if not found:
        return [("Rests on", "not said: only the guarantee was saved, without its evidence.")]
    return [
        (standing.capitalize(), f"{meaning}.")
        for standing, meaning in describe.STANDINGS.items()
        if standing in found
    ]


# --- what can be explained ------------------------------------------------------------


def _read(what: Path) -> Told:
    if what.is_dir():
        return _release(what)
    if what.suffix.lower() == ".toml":
        return _study(what)
    if what.suffix.lower() == ".json":
        return _saved(what)
    raise RequestError(
        f"{what} must be a study (.toml), a release folder, or a saved plan or guarantee (.json)"
    )


def _study(what: Path) -> Told:
    from discreet.study import load

    study = load(what)
    plan = study.plan()
    rule = f"{describe.heading(plan)}, planned and not run"
    return Told(f"{what.name}: a plan", plan.guarantee, [study.privacy.delta], plan.evidence, rule)


def _release(what: Path) -> Told:
    found = folder.read(what)
    about = found.provenance.get("study")
    deltas = [about["delta"]] if isinstance(about, dict) and "delta" in about else DELTAS
    return Told(
        f"{what}: a release", found.guarantee, deltas, found.evidence, _rule(found.provenance["plan"])
    )


def _saved(what: Path) -> Told:
    from discreet.privacy import Evidence

    guarantee = read_guarantee(what)
    data = read_json(what)
    claims = data.get("evidence") if isinstance(data, dict) else None
    if claims is None:
        return Told(f"{what.name}: a guarantee", guarantee, DELTAS, ())
    try:
        evidence = [Evidence.from_dict(claim) for claim in claims]
        rule = _rule(data)
    except (KeyError, TypeError, ValueError):
        raise RequestError(f"{what} must be a plan written by discreet plan --save, unchanged") from None
    return Told(f"{what.name}: a plan", guarantee, DELTAS, evidence, rule)


def _rule(plan: Any) -> str:
    settings = plan["settings"]
    return f"{settings['mechanism']} on {settings['model']['model']}"
