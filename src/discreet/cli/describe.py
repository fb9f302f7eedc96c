"""A plan, its price and what that rests on, as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import discreet as dc
from discreet.cli import numbers, show, words

if TYPE_CHECKING:
    from discreet.ledger import Quote
    from discreet.mechanisms import Plan
    from discreet.privacy import Evidence, Guarantee

Sentences = list[tuple[str, str]]

STANDINGS = {
    "proved": "a theorem, whose conditions the code verified",
    "checked": "a statistical test or an estimate, wrong with the probability stated",
    "assumed": "taken on somebody's word: if it is not so, the guarantee does not hold",
}


def heading(plan: Plan) -> str:
    """What runs on what."""
    return f"{type(plan.mechanism).__name__} on {type(plan.mechanism.model).__name__}"


def parameters(settled: Mapping[str, Any]) -> show.Table:
    """What the plan solved for."""
    rows = [(name.replace("_", " "), _short(value)) for name, value in settled.items()]
    return show.Table(
        "What was solved for", (show.Column("setting"), show.Column("value", number=True)), rows
    )


def price(guarantee: Guarantee, deltas: Iterable[float]) -> show.Table:
    """Epsilon at some deltas, and how often a guess is right."""
    rows = [
        (
            numbers.plain(delta),
            numbers.upward(epsilon := guarantee.epsilon(delta)),
            dc.privacy.percent(dc.privacy.attacker_success(epsilon, delta)),
        )
        for delta in deltas
    ]
    columns = [show.Column(title, number=True) for title in ("delta", "epsilon", "right guess")]
    return show.Table("What it costs", columns, rows)


def rests_on(claims: Sequence[Evidence]) -> show.Table:
    """Every claim with its standing, those that somebody must believe first."""
    order = {standing: place for place, standing in enumerate(reversed(STANDINGS))}
    rows = [
        (
            str(claim.standing) if claim.confidence is None else f"{claim.standing} ({claim.confidence:g})",
            claim.claim,
            claim.source,
        )
        for claim in sorted(claims, key=lambda claim: order[str(claim.standing)])
    ]
    titles = ("standing", "claim", "where it comes from")
    return show.Table("What that rests on", [show.Column(title) for title in titles], rows)


def protection(guarantee: Guarantee, delta: float) -> Sentences:
    """Who is protected against what."""
    guess, _ = words.attacker([(guarantee.epsilon(delta), delta)], guarantee, 1)
    return [("Protects", words.protects(guarantee, 1)), ("An attacker", guess)]


def counted(claims: Sequence[Evidence]) -> str:
    """How many claims of each standing."""
    found = [str(claim.standing) for claim in claims]
    return ", ".join(f"{found.count(standing)} {standing}" for standing in STANDINGS if standing in found)


def budget_line(quote: Quote) -> str:
    """What a ledger says about a price."""
    left = max(0.0, quote.budget.epsilon - quote.after)
    return (
        f"costs {numbers.upward(quote.asked)} of {numbers.plain(quote.budget.epsilon)}, spent so far "
        f"{numbers.upward(quote.spent)}, left {numbers.downward(quote.left)}; afterwards spent "
        f"{numbers.upward(quote.after)}, left {numbers.downward(left)} "
        f"(epsilon, composed, at delta {numbers.plain(quote.budget.delta)})"
    )


def quote_values(quote: Quote) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "epsilon": quote.budget.epsilon,
        "delta": quote.budget.delta,
        "neighbours": str(quote.budget.neighbours),
        "asked": quote.asked,
        "spent": quote.spent,
        "left": quote.left,
        "after": quote.after,
        "fits": quote.fits,
    }


def _short(value: Any) -> str:
    if isinstance(value, float):
        return numbers.nearest(value, 6) if math.isfinite(value) else str(value)
    return numbers.plain(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)
