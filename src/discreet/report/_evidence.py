"""What a guarantee rests on, in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from discreet.privacy import Evidence, Standing
from discreet.report._page import Html, element, facts, join, paragraph, table
from discreet.report.numbers import plain

STANDINGS = {
    Standing.ASSUMED: "taken on somebody's word: if it is not so, the guarantee does not hold",
    Standing.CHECKED: "a statistical test or an estimate, wrong with the probability stated",
    Standing.PROVED: "a theorem, whose conditions the code verified",
}
"""What each standing means, those that somebody must believe first."""


def evidence(claims: Sequence[Evidence]) -> list[Html]:
    """Every claim with its standing and where it comes from."""
    counted = Counter(claim.standing for claim in claims)
    order = list(STANDINGS)
    rows = [
        [claim.claim, standing(claim), claim.source]
        for claim in sorted(claims, key=lambda claim: order.index(claim.standing))
    ]
    return [
        paragraph(
            "A guarantee is no firmer than what it rests on. Of the claims below, somebody must believe "
            "those that are assumed; the rest can be checked by whoever reads the source."
        ),
        facts([(f"{counted[s]} {s}", STANDINGS[s]) for s in order if counted[s]]),
        table("The claims", ["Claim", "Standing", "Where it comes from"], rows, stacked=True),
    ]


def standing(claim: Evidence) -> Html:
    """The standing of a claim, coloured, and its confidence."""
    sure = "" if claim.confidence is None else f" with confidence {plain(claim.confidence)}"
    return join(element("span", str(claim.standing), class_=str(claim.standing)), sure)
