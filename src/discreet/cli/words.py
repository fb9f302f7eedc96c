"""What a number means, in plain sentences: against whom, for which neighbours, resting on what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import discreet as dc

if TYPE_CHECKING:
    from discreet.privacy import Guarantee

ROUTES = {
    "sum of pure losses": "the largest privacy losses added up; holds at every delta",
    "sum of Renyi divergences": "Renyi divergences added up, then converted at the best order "
    "(Canonne, Kamath & Steinke 2020)",
    "exact profile": "the privacy profile of the one application, without discretisation",
    "convolution of privacy losses": "privacy loss distributions, rounded upward to a grid and convolved",
}


def protects(guarantee: Guarantee, group: int) -> str:
    """The neighbour relation, in words."""
    relation = str(guarantee.neighbours).replace("_", "-")
    together = f"; here for {group} such people together" if group > 1 else ""
    return f"neighbours are {relation}: {guarantee.neighbours.explanation}{together}."


def computed_by(route: str) -> str:
    """Which route of composition won."""
    return f"{route}: {ROUTES.get(route, 'the best route')}."


def attacker(answers: list[tuple[float, float]], guarantee: Guarantee, group: int) -> tuple[str, float]:
    """The sentence about guessing, and its probability.

    Every (epsilon, delta) pair is a bound, so the smallest of their answers is one;
    epsilon 0 with its own delta is the total variation distance itself.
    """
    stated = min((dc.privacy.attacker_success(e, d) for e, d in answers), default=1.0)
    sharpest = min(stated, dc.privacy.attacker_success(0.0, guarantee.delta(0.0)))
    tables = "two neighbouring tables" if group == 1 else f"two tables that differ in {group} people"
    alone = (
        "" if stated < 1.0005 * sharpest else f" ({dc.privacy.percent(stated)} by the numbers above alone)"
    )
    text = (
        f"someone who must guess between {tables}, with no other knowledge, is right at most "
        f"{dc.privacy.percent(sharpest)} of the time{alone}; no other knowledge means "
        "that both were equally likely before."
    )
    return text, sharpest


def why_none(guarantee: Guarantee, delta: float) -> str:
    """Why there is no finite epsilon at this delta."""
    if delta == 0:
        return "its privacy loss has no largest value, so delta must be above 0"
    if guarantee.inexactness > 0:
        distance = float(guarantee.inexactness)
        return f"delta does not cover an inexactness of {distance:.3g}; ask at a larger delta"
    smallest = guarantee.delta(700.0)
    if smallest >= delta:
        return f"delta is not above the {smallest:.3g} that no epsilon covers; ask at a larger delta"
    return "no route has a finite answer at so small a delta; ask at a larger one"
