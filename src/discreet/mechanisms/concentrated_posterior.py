"""A draw from a posterior whose prior was made 1/m times as strong."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.mechanisms._conjugate import ConjugateMechanism, solve
from discreet.mechanisms.base import Plan
from discreet.privacy import Budget, Guarantee, checks


@dataclass(frozen=True)
class ConcentratedPosterior(ConjugateMechanism):
    """Draws from prior / m + data, with the largest m in (0, 1] that fits (paper R, Algorithm 3).

    As m falls the draw falls back on the mode of the prior.

    Guarantee:
        As for `DirectPosterior`, with the stronger prior. Under (epsilon, delta) the
        exact profile chooses m where the family has one, and allows a larger m than the
        paper's Renyi route; the plan's reasons give both.

    References: Geumlek, Song & Chaudhuri 2017, Algorithm 3 and Theorem 14;
        ERRATA S3; docs/proofs/conjugate_families.md.

    Example:
        >>> from discreet.models import BetaBernoulli
        >>> mechanism = ConcentratedPosterior(BetaBernoulli(prior=(6, 12)))
        >>> plan = mechanism.plan(n=100, budget=Budget(epsilon=1.0, delta=1e-6))
        >>> f"{plan.parameters['concentration']:.4f}"
        '0.2270'
    """

    def plan(self, n: int, *, budget: Budget | None = None, renyi: tuple[float, float] | None = None) -> Plan:
        """Solve for m.

        Args:
            n: the public number of records.
            budget: what the draws may cost together, or
            renyi: (order, epsilon), the paper's target: a Renyi divergence of at most
                epsilon at this order.

        Raises:
            BudgetError: if no m fits, with the smallest epsilon reachable.
        """
        checks.integer("n", n, at_least=1)
        chosen = self.towards(renyi)

        def price(concentration: float) -> Guarantee:
            return chosen.price(n, concentration=concentration)

        concentration, reasons = solve("prior divisor m", price, budget, renyi)
        return chosen.planned(n, concentration=concentration, reasons=reasons)
