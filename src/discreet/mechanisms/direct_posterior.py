"""A draw from the posterior as it is."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.mechanisms._conjugate import ConjugateMechanism, require
from discreet.mechanisms.base import Plan
from discreet.privacy import Budget, checks


@dataclass(frozen=True)
class DirectPosterior(ConjugateMechanism):
    """Draws from the posterior of a conjugate family, unchanged (paper R, Algorithm 1).

    Nothing is tuned: the prior and the number of records decide what a draw costs,
    so a plan needs no budget. It has no pure epsilon, and its Renyi divergence
    becomes infinite at some order.

    Guarantee:
        The supremum over all substitutions of one record, by the exact privacy
        profile where the family has one (docs/proofs/conjugate_families.md).

    References: Geumlek, Song & Chaudhuri 2017, Algorithm 1, Theorem 12 and
        Corollary 1; ERRATA 7 and S3.

    Example:
        >>> from discreet.models import BetaBernoulli
        >>> plan = DirectPosterior(BetaBernoulli(prior=(6, 12))).plan(n=100)
        >>> f"{plan.guarantee.renyi(2.0):.4f} {plan.guarantee.epsilon(1e-6):.3f}"
        '0.1913 2.648'
        >>> release = plan.release({"x": [0, 1] * 50})
        >>> release.draws["probability"].shape
        (1,)
    """

    def plan(self, n: int, *, budget: Budget | None = None, renyi: tuple[float, float] | None = None) -> Plan:
        """What the draws cost.

        Args:
            n: the public number of records.
            budget: if given, a posterior that does not fit is refused.
            renyi: if given, (order, epsilon): a posterior above it is refused.
        """
        chosen = self.towards(renyi)
        guarantee = chosen.price(checks.integer("n", n, at_least=1))
        require(guarantee, budget, renyi)
        return chosen.planned(n, reasons=("the posterior itself is released; nothing is tuned",))
