"""The page of a release: what was released, what it cost, whom that protects, what it rests on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.mechanisms.release import Release
from discreet.privacy import Neighbours, percent
from discreet.report._about import about, citation
from discreet.report._cost import cost, headline_delta, right_at_most
from discreet.report._evidence import evidence
from discreet.report._forecast import expected, forecast
from discreet.report._page import Html, Section, element, facts, headline, items, page, paragraph
from discreet.report._parameters import parameters, released
from discreet.report.numbers import plain, upward


def write(folder: str | Path) -> Path:
    """Write `report.html` into a release folder."""
    source = Path(folder)
    receipt = source / "receipt.json"
    paid = json.loads(receipt.read_text(encoding="utf-8")) if receipt.is_file() else {}
    target = source / "report.html"
    target.write_text(render(Release.load(source), paid), encoding="utf-8")
    return target


def render(release: Release, receipt: Mapping[str, Any] | None = None) -> str:
    """The page of a release.

    Args:
        release: as loaded.
        receipt: what the ledger gave for its spend.
    """
    plan: Mapping[str, Any] = release.provenance["plan"]
    study: Mapping[str, Any] = release.provenance.get("study", {})
    rule = f"{plan['settings']['mechanism']} on {plan['settings']['model']['model']}"
    delta = headline_delta(release.guarantee, plan["size"], study.get("delta"))
    draws = len(next(iter(release.draws.values()), ()))
    found = list(parameters(release, study.get("features", ())))
    width = expected(forecast(plan, release.model), max(draws, 1))
    return page(
        study.get("title") or rule,
        kind="A differentially private release",
        lead=_lead(release, study, delta, rule),
        sections=[
            Section("Whom it protects", "protects", _protects(release)),
            Section("What was released", "released", released(found)),
            Section("What it cost", "cost", cost(release.guarantee, delta)),
            Section("What that rests on", "evidence", evidence(release.evidence)),
            Section("What privacy cost in width", "width", width),
            Section("How it was made", "plan", _made(release, plan, receipt or {})),
            Section("How to cite", "cite", citation(release.provenance, release.guarantee, delta, draws)),
        ],
        footer=[
            paragraph(
                "This page is computed from the saved release alone. It never saw the data, and may be shown "
                "to whomever the release may be shown."
            )
        ],
    )


def _lead(release: Release, study: Mapping[str, Any], delta: float, rule: str) -> list[Html]:
    guarantee = release.guarantee
    known = about(release.provenance["plan"]["settings"]["mechanism"])
    by = ", ".join(study.get("authors") or ())
    words = [f"By {by}. "] if by else []
    words.append(f"{rule}: {known.sentence[0].lower() + known.sentence[1:]}" if known else f"{rule}.")
    epsilon = guarantee.epsilon(delta)
    at = "at most, at delta 0" if delta == 0 else f"at most, at delta {plain(delta)}"
    relation = str(guarantee.neighbours).replace("_", "-")
    return [
        paragraph(*words, class_="lead"),
        headline(
            (upward(epsilon) if math.isfinite(epsilon) else "none", f"epsilon, {at}"),
            (
                percent(right_at_most(guarantee)),
                "right, at most: a guess between two neighbouring tables that were equally likely before",
            ),
            (relation, f"neighbours: {guarantee.neighbours.explanation}"),
        ),
    ]


_PROTECTED = {
    Neighbours.SUBSTITUTE: "Any one person. Compared are the table as it is, and the same table with this "
    "person's record replaced by any other. That the person is in the table is not hidden, and the number "
    "of records is public.",
    Neighbours.ADD_REMOVE: "Any one person. Compared are the table as it is, and the same table without this "
    "person's record, or with one more. That the person is in the table is hidden too, and the number of "
    "records is private.",
}


def _protects(release: Release) -> list[Html]:
    seeded = any(claim.source == "a seed was given" for claim in release.evidence)
    shown = (
        "Only those who do not know the seed: this run was made from a seed that its user chose, and "
        "whoever knows it can undo the noise."
        if seeded
        else "Anybody. The guarantee is about a reader who has this whole folder, knows everything else, the "
        "other records included, and computes without limit."
    )
    return [
        facts([("Who is protected", _PROTECTED[release.guarantee.neighbours]), ("Who may see it", shown)]),
        paragraph("It does not protect against"),
        items(
            "what the release teaches about people in general, and so about anybody, in the table or not;",
            "other releases from the same people: what they cost adds up, and a ledger keeps the sum;",
            "somebody with several records in the table, such as a household: the cost grows with them.",
        ),
    ]


def _made(release: Release, plan: Mapping[str, Any], receipt: Mapping[str, Any]) -> list[Html]:
    settings, parameters = plan["settings"], plan["parameters"]
    known = about(settings["mechanism"])
    size = "private" if plan["size"] is None else f"{plan['size']:,}, public"
    chosen = {k: v for k, v in settings.items() if k not in {"model", "mechanism", *parameters}}
    versions = ", ".join(f"{name} {number}" for name, number in release.provenance["versions"].items())
    paid: list[tuple[str, str]] = []
    if {"position", "dataset"} <= set(receipt):
        paid.append(("Paid for by", f"entry {receipt['position']} of the ledger of {receipt['dataset']}"))
    return [
        *([paragraph(known.definition)] if known and known.definition else []),
        element("h3", "The model and the table"),
        facts([(_words(name), _short(value)) for name, value in settings["model"].items()]),
        facts([("records", size)]),
        element("h3", "The mechanism"),
        facts([("mechanism", settings["mechanism"]), *((_words(k), _short(v)) for k, v in chosen.items())]),
        element("h3", "What the plan fixed, before any data"),
        facts([(_words(name), _short(value)) for name, value in parameters.items()]),
        *([items(*plan["reasons"])] if plan["reasons"] else []),
        element("h3", "Where to check it"),
        facts(
            [
                *paid,
                ("plan, SHA-256", release.provenance["plan_hash"]),
                ("release, SHA-256", release.hash()),
                ("versions", versions),
            ]
        ),
    ]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _short(value: Any) -> str:
    """A setting as people write it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return plain(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(str(name))} {_short(part)}" for name, part in value.items()) or "none"
    if isinstance(value, list | tuple):
        parts = [_short(part) for part in value]
        return (
            ", ".join(parts if len(parts) <= 12 else [*parts[:12], f"and {len(parts) - 12} more"]) or "none"
        )
    return str(value)
