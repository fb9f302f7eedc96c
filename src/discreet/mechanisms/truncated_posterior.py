"""A draw from a logistic posterior whose prior is cut off at a ball: OPS, paper R's baseline."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.mechanisms._conjugate import largest
from discreet.mechanisms.base import Drawn, Mechanism, Plain, Plan
from discreet.models.base import Records
from discreet.models.logistic import LogisticRegression
from discreet.models.losses import Gibbs
from discreet.privacy import Budget, BudgetError, Evidence, Guarantee, Neighbours, bounded_range, checks
from discreet.samplers.exact import ExactRegression
from discreet.samplers.randomness import Randomness

PAGE = "docs/proofs/glm_posteriors.md"
_SMALLEST = 1e-12


@dataclass(frozen=True)
class TruncatedPosterior(Mechanism):
    """Draws from the posterior of weighted records under a Gaussian prior cut off at |w| <= radius.

    On the ball one record's loss has a range of c * radius, so a draw is pure. The
    default radius is c n / precision, the smallest that holds the mode of every data
    set (c / beta in paper R).

    Args:
        model: logistic regression.
        draws: independent draws; each is billed.
        radius: of the ball, public; None for c n / precision.

    Guarantee:
        Bounded range 2 weight c radius per draw, half of the 4 weight c^2 / beta that
        Wang et al. and paper R give (docs/proofs/glm_posteriors.md#truncated).

    References: Wang, Fienberg & Smola 2015, Theorem 1; Geumlek, Song & Chaudhuri
        2017, Section 4.2.

    Example:
        >>> mechanism = TruncatedPosterior(LogisticRegression(features=9, prior_precision=2.784))
        >>> plan = mechanism.plan(n=2784, budget=Budget(epsilon=1.0))
        >>> f"{plan.parameters['weight']:.6f} {plan.guarantee.epsilon(0):.6f}"
        '0.000500 1.000000'
    """

    model: LogisticRegression  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    draws: int = 1
    radius: float | None = None

    def __post_init__(self) -> None:
        checks.integer("draws", self.draws, at_least=1)
        if not isinstance(self.model, LogisticRegression):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"model must be LogisticRegression, got {type(self.model).__name__}; take OnePosteriorSample"
            )
        if self.radius is not None:
            checks.real("radius", self.radius, above=0.0)

    def settings(self) -> dict[str, Plain]:
        return {**super().settings(), "draws": self.draws, "radius": self.radius}

    def price(self, weight: float, radius: float) -> Guarantee:
        """What all draws cost together."""
        width = 2 * weight * self.model.row_norm * radius
        return self.draws * bounded_range(width, neighbours=Neighbours.SUBSTITUTE)

    def plan(self, n: int, *, budget: Budget) -> Plan:
        """Solve for the weight, at most 1.

        Args:
            n: the public number of records.
            budget: what the draws may cost together; delta may be 0.

        Raises:
            BudgetError: if no weight fits.
        """
        checks.integer("n", n, at_least=1)
        radius = self.radius or self.model.row_norm * n / self.model.prior_precision
        weight = largest(lambda w: self.price(w, radius).fits(budget))
        if weight is None:
            least = self.price(_SMALLEST, radius).epsilon(budget.delta)
            raise BudgetError(
                f"a budget of epsilon {budget.epsilon:g} at delta {budget.delta:g} cannot be met on a ball "
                f"of radius {radius:g}; choose a smaller radius, or DiffusedPosterior",
                least,
                _SMALLEST,
            )
        price = self.price(weight, radius)
        return Plan(
            mechanism=self,
            size=n,
            guarantee=price,
            evidence=(
                self.model.bounds["lipschitz"].evidence,
                Evidence.proved("the range of one record's loss on the ball is at most accounted", PAGE),
                *self._sampler(radius).evidence,
            ),
            parameters={"weight": weight, "radius": radius, "draws": self.draws},
            reasons=(f"weight {weight:.6g} is the largest up to 1 that meets the budget on this ball",),
        )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:  # noqa: ARG002
        weight, radius = (float(plan.parameters[name]) for name in ("weight", "radius"))  # pyright: ignore[reportArgumentType]
        sampler = self._sampler(radius)
        sampled = sampler.sample(self.model, Gibbs(weight), records, randomness, self.draws)
        return Drawn(sampled.draws, sampled.evidence, sampled.diagnostics)

    @staticmethod
    def _sampler(radius: float) -> ExactRegression:
        return ExactRegression(gamma=0.0, constant_time=False, radius=radius)
