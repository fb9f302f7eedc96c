"""A draw from a posterior in which every record counts r instead of 1."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.mechanisms._conjugate import ConjugateMechanism, solve
from discreet.mechanisms.base import Plan
from discreet.privacy import Budget, Guarantee, checks


@dataclass(frozen=True)
class DiffusedPosterior(ConjugateMechanism):
    """Draws from prior + r data, with the largest r in (0, 1] that fits (paper R, Algorithm 2).

    As r falls the draw falls back on the prior.

    Guarantee:
        As for `DirectPosterior`, with records that count r. Under (epsilon, delta) the
        exact profile chooses r where the family has one, and allows a larger r than the
        paper's Renyi route; the plan's reasons give both.

    References: Geumlek, Song & Chaudhuri 2017, Algorithm 2 and Theorem 13;
        ERRATA S3; docs/proofs/conjugate_families.md.

    Example:
        >>> from discreet.models import BetaBernoulli
        >>> mechanism = DiffusedPosterior(BetaBernoulli(prior=(6, 12)))
        >>> plan = mechanism.plan(n=100, budget=Budget(epsilon=1.0, delta=1e-6))
        >>> f"{plan.parameters['weight']:.4f}"
        '0.4031'
        >>> plan = mechanism.plan(n=100, renyi=(2.0, 0.1))
        >>> f"{plan.parameters['weight']:.4f}"
        '0.7183'
    """

    def plan(self, n: int, *, budget: Budget | None = None, renyi: tuple[float, float] | None = None) -> Plan:
        """Solve for r.

        Args:
            n: the public number of records.
            budget: what the draws may cost together, or
            renyi: (order, epsilon), the paper's target: a Renyi divergence of at most
                epsilon at this order.

        Raises:
            BudgetError: if no r fits, with the smallest epsilon reachable.
        """
        checks.integer("n", n, at_least=1)
        chosen = self.towards(renyi)

        def price(weight: float) -> Guarantee:
            return chosen.price(n, weight=weight)

        weight, reasons = solve("weight r", price, budget, renyi)
        return chosen.planned(n, weight=weight, reasons=reasons)
