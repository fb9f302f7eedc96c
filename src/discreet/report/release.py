"""The page of a release: what was released, what it cost, whom that protects, what it rests on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.mechanisms.release import Release
from discreet.privacy import Evidence, Guarantee, Standing
from discreet.report._figures import ACCENT, figure
from discreet.report._page import (
    Html,
    Section,
    code,
    element,
    facts,
    headline,
    join,
    page,
    paragraph,
    table,
)
from discreet.report.numbers import nearest, percent, plain, upward

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DELTAS = (1e-3, 1e-5, 1e-6, 1e-9)
"""The deltas at which a page answers, unless the budget names another."""

STANDINGS = {
    Standing.PROVED: "a theorem, and code that verified its conditions",
    Standing.CHECKED: "a statistical test or an estimate, wrong with the probability stated",
    Standing.ASSUMED: "taken on somebody's word: if it is not so, the guarantee does not hold",
}


def write(folder: str | Path) -> Path:
    """Write `report.html` into a release folder."""
    source = Path(folder)
    target = source / "report.html"
    target.write_text(render(Release.load(source)), encoding="utf-8")
    return target


def render(release: Release) -> str:
    """The page of a release."""
    plan = release.provenance["plan"]
    settings = plan["settings"]
    return page(
        f"{settings['mechanism']} on {settings['model']['model']}",
        kind="A differentially private release",
        lead=_lead(release),
        sections=[
            Section("What was released", "released", _released(release)),
            Section("What it cost", "cost", _cost(release.guarantee)),
            Section("What that rests on", "evidence", evidence(release.evidence)),
            Section("How it was made", "plan", _plan(plan)),
            Section("How to cite", "cite", _cite(release)),
        ],
        footer=[
            paragraph(
                "This page is computed from the saved release alone. It never saw the data, and may be shown "
                "to whomever the release may be shown."
            )
        ],
    )


def _lead(release: Release) -> list[Html]:
    guarantee = release.guarantee
    delta = 1e-6
    return [
        paragraph(
            "Whoever reads this may see everything on this page and everything in the release folder. "
            f"The guarantee is about {guarantee.neighbours.explanation}."
        ),
        headline(
            (upward(guarantee.epsilon(delta)), f"epsilon at delta {plain(delta)}, an upper bound"),
            (
                percent((1 + guarantee.delta(0.0)) / 2),
                "how often, at most, someone who must guess between two neighbouring tables is right",
            ),
        ),
    ]


def _released(release: Release) -> list[Html]:
    rows = []
    for name, values in release.draws.items():
        for label, column in _columns(name, values):
            low, high = np.quantile(column, [0.05, 0.95])
            rows.append(
                [element("code", label), *(nearest(v, 4) for v in (column.mean(), column.std(), low, high))]
            )
    number = len(next(iter(release.draws.values())))
    return [
        table(
            f"The {number} released draws, summarised",
            ["Parameter", "Mean", "Standard deviation", "5 %", "95 %"],
            rows,
            numbers=(1, 2, 3, 4),
        )
    ]


def _columns(name: str, values: Any) -> list[tuple[str, Any]]:
    """Each scalar of a parameter with its label."""
    flat = values.reshape(len(values), -1)
    if values.ndim == 1:
        return [(name, flat[:, 0])]
    places = np.ndindex(*values.shape[1:])
    return [(f"{name}[{', '.join(map(str, place))}]", flat[:, k]) for k, place in enumerate(places)]


def _cost(guarantee: Guarantee) -> list[Html]:
    rows = [[plain(d), upward(guarantee.epsilon(d)), percent((1 + guarantee.delta(0.0)) / 2)] for d in DELTAS]
    return [
        table(
            "Epsilon at a few deltas, rounded upward",
            ["delta", "epsilon", "a guess is right at most"],
            rows,
            numbers=(0, 1, 2),
        ),
        curve(guarantee),
        code(guarantee.describe()),
    ]


def curve(guarantee: Guarantee) -> Html:
    """Epsilon against delta."""
    deltas = np.logspace(-10, -2, 33)
    epsilons = [guarantee.epsilon(float(d)) for d in deltas]

    def draw(axes: Axes) -> None:
        axes.plot(deltas, epsilons, color=ACCENT)
        axes.set_xscale("log")
        axes.set_xlabel("delta")
        axes.set_ylabel("epsilon")
        axes.set_ylim(bottom=0)

    first, last = upward(epsilons[0]), upward(epsilons[-1])
    return figure(
        draw,
        caption="The whole guarantee: an upper bound on epsilon at every delta.",
        description=f"Epsilon falls from {first} at delta 1e-10 to {last} at delta 0.01.",
    )


def evidence(claims: tuple[Evidence, ...]) -> list[Html]:
    """Claims with their standing, those that somebody must believe first."""
    counted = Counter(claim.standing for claim in claims)
    order = [Standing.ASSUMED, Standing.CHECKED, Standing.PROVED]
    rows = [
        [
            claim.claim,
            join(
                element("span", str(claim.standing), class_=str(claim.standing)),
                "" if claim.confidence is None else f" with confidence {nearest(claim.confidence, 4)}",
            ),
            claim.source,
        ]
        for claim in sorted(claims, key=lambda claim: order.index(claim.standing))
    ]
    words = (
        (f"{standing}: {counted[standing]}", STANDINGS[standing]) for standing in order if counted[standing]
    )
    return [
        facts(list(words)),
        table("Every claim the guarantee rests on", ["Claim", "Standing", "Where it comes from"], rows),
    ]


def _plan(plan: dict[str, Any]) -> list[Html]:
    values = [(name, _short(value)) for name, value in plan["parameters"].items()]
    return [facts(values), *(paragraph(f"Because {reason}.", class_="note") for reason in plan["reasons"])]


def _short(value: Any) -> str:
    return nearest(value, 6) if isinstance(value, float) else str(value)


def _cite(release: Release) -> list[Html]:
    version = release.provenance["versions"]["discreet"]
    digest = release.provenance["plan_hash"]
    return [code(f"discreet {version}, plan {digest}")]
