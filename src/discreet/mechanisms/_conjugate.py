"""What the three posteriors of paper R share: how r and m are found, and how they draw.

Proof page: docs/proofs/conjugate_families.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Self

from discreet.mechanisms._posteriors import posterior
from discreet.mechanisms.base import Drawn, Mechanism, Plain, Plan
from discreet.mechanisms.release import Release
from discreet.models.base import Model, Records
from discreet.models.families.base import Array, ConjugateFamily
from discreet.privacy import Budget, BudgetError, Guarantee, calibrate, checks
from discreet.privacy.routes import RenyiSum
from discreet.samplers.posterior import Sampler
from discreet.samplers.randomness import Randomness

TOLERANCE = 1e-9
SMALLEST = 1e-9
"""Where the search for r and m begins; a posterior with less of the data is the prior."""


@dataclass(frozen=True)
class ConjugateMechanism(Mechanism):
    """A posterior of a conjugate family or of a regression, of which draws are released.

    Args:
        model: the records, the likelihood and the prior.
        draws: how many independent draws to release; each is billed.
        sampler: for regressions only; None is `ExactRegression`.
    """

    model: Model  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    draws: int = 1
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        checks.integer("draws", self.draws, at_least=1)
        posterior(self.model, self.sampler)

    def settings(self) -> dict[str, Plain]:
        drawn = {"draws": self.draws}
        if self.sampler is None or not is_dataclass(self.sampler):
            return {**super().settings(), **drawn}
        return {
            **super().settings(),
            **drawn,
            "sampler": {"name": type(self.sampler).__name__, **asdict(self.sampler)},
        }

    def towards(self, renyi: tuple[float, float] | None) -> Self:
        """The same with a sampler that suits the target: no distance is allowed in a Renyi divergence."""
        if renyi is None:
            return self
        return replace(self, sampler=posterior(self.model, self.sampler).exactly())

    def answer(self, release: Release) -> Array:
        """An unbiased estimate of the mean of S(x) over the records, from each draw; costs nothing more.

        The posterior mean of E[S(x)] is linear in the sum of S(x) (Diaconis &
        Ylvisaker 1979), so that inverting it at a draw answers the query "what is
        the mean of S?" by the posterior's own randomness (paper R, Section 3,
        Extensions). One row per draw.
        """
        if not isinstance(self.model, ConjugateFamily):
            raise TypeError(
                f"answer needs a conjugate family, got {type(self.model).__name__}; "
                "a regression has no sum of S(x) to answer for"
            )
        plan = release.provenance["plan"]
        size, parameters = plan["size"], plan["parameters"]
        weight, concentration = parameters["weight"], parameters["concentration"]
        prior = self.model.prior_eta / concentration
        means = self.model.mean_statistic(release.draws)
        worth = prior[len(self.model.statistic_range[0])]
        return (means * (worth + weight * size) - prior[: means.shape[1]]) / (weight * size)

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:  # noqa: ARG002
        settings = {name: float(plan.parameters[name]) for name in ("weight", "concentration")}  # pyright: ignore[reportArgumentType]
        return posterior(self.model, self.sampler).draw(records, randomness, self.draws, **settings)

    def price(self, size: int, *, weight: float = 1.0, concentration: float = 1.0) -> Guarantee:
        """What all draws cost together."""
        one = posterior(self.model, self.sampler).guarantee(size, weight=weight, concentration=concentration)
        return self.draws * one

    def planned(
        self, n: int, *, weight: float = 1.0, concentration: float = 1.0, reasons: tuple[str, ...]
    ) -> Plan:
        """The plan with these two settings."""
        target = posterior(self.model, self.sampler)
        settings = {"weight": weight, "concentration": concentration}
        return Plan(
            mechanism=self,
            size=n,
            guarantee=self.price(n, **settings),
            evidence=target.evidence(n, **settings),
            parameters={**settings, "draws": self.draws, **target.parameters(n, **settings)},
            reasons=(*reasons, *target.reasons(n, **settings)),
        )


def solve(
    name: str,
    price: Callable[[float], Guarantee],
    budget: Budget | None,
    renyi: tuple[float, float] | None,
) -> tuple[float, tuple[str, ...]]:
    """The largest r or m in (0, 1] that fits, and why.

    Args:
        name: what the parameter is called in the reasons.
        price: the guarantee of a parameter.
        budget: an (epsilon, delta) budget, or None.
        renyi: a (lambda, epsilon) target in Renyi differential privacy, or None.
    """
    if (budget is None) == (renyi is None):
        given = "neither" if budget is None else "both"
        raise ValueError(
            f"a plan needs either a budget or a renyi target (order, epsilon), got {given}; "
            "pass budget=dc.Budget(...) or renyi=(2.0, 0.1)"
        )
    if renyi is not None:
        return _by_renyi_target(name, price, *renyi)
    assert budget is not None  # noqa: S101 (for the type checker)
    _require_delta(budget)
    found = calibrate(price, budget, (SMALLEST, 1.0), tolerance=TOLERANCE)
    return found.value, (_routes(name, found.value, price, budget),)


def require(guarantee: Guarantee, budget: Budget | None, renyi: tuple[float, float] | None) -> None:
    """Refuse a posterior that nothing can be tuned of, where it costs more than is allowed."""
    if budget is not None:
        guarantee.check_relation(budget)
        _require_delta(budget)
        smallest = guarantee.epsilon(budget.delta)
        if smallest > budget.epsilon:
            raise BudgetError(
                f"a budget of epsilon {budget.epsilon:g} at delta {budget.delta:g} is not met by the "
                f"posterior itself, which costs {smallest:.4g}; {_REMEDY}",
                smallest,
                1.0,
            )
    if renyi is not None:
        order, epsilon = _target(renyi)
        smallest = guarantee.renyi(order)
        if smallest > epsilon:
            raise BudgetError(
                f"a Renyi divergence of {epsilon:g} at order {order:g} is not met by the posterior itself, "
                f"which has {smallest:.4g}; {_REMEDY}",
                smallest,
                1.0,
            )


_REMEDY = "take DiffusedPosterior or ConcentratedPosterior"


def _require_delta(budget: Budget) -> None:
    """Refuse a pure budget: the density ratio of two conjugate posteriors has no bound."""
    if budget.delta == 0:
        raise BudgetError(
            "draws from a conjugate posterior have no pure epsilon, got a budget with delta 0, where the "
            "smallest epsilon is infinite; allow a delta, or take PerturbedStatistics with Laplace noise",
            math.inf,
            SMALLEST,
        )


def _by_renyi_target(
    name: str, price: Callable[[float], Guarantee], order: float, epsilon: float
) -> tuple[float, tuple[str, ...]]:
    order, epsilon = _target((order, epsilon))
    value = largest(lambda x: price(x).renyi(order) <= epsilon)
    if value is None:
        smallest = price(SMALLEST).renyi(order)
        raise BudgetError(
            f"a Renyi divergence of {epsilon:g} at order {order:g} cannot be met with {name} of at least "
            f"{SMALLEST:g}: the smallest is {smallest:.4g}; raise the target",
            smallest,
            SMALLEST,
        )
    reached = price(value).renyi(order)
    if value == 1:
        return value, (
            f"{name} 1 fits: the posterior itself has divergence {reached:.6g} at order {order:g}",
        )
    reason = (
        f"{name} {value:.6g} is the largest whose Renyi divergence of order {order:g}, {reached:.6g}, "
        f"is at most {epsilon:g}"
    )
    return value, (reason,)


def _target(renyi: tuple[float, float]) -> tuple[float, float]:
    order, epsilon = renyi
    return checks.real("order", order, above=1.0), checks.real("epsilon", epsilon, above=0.0)


def largest(fits: Callable[[float], bool]) -> float | None:
    """The largest number in [SMALLEST, 1] that fits, to TOLERANCE and on the side that fits, or None."""
    if fits(1.0):
        return 1.0
    if not fits(SMALLEST):
        return None
    low, high = SMALLEST, 1.0
    while high > low * (1 + TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _routes(name: str, value: float, price: Callable[[float], Guarantee], budget: Budget) -> str:
    """Which route allowed this parameter, and what the Renyi route alone would have allowed."""
    if value == 1:
        reached = price(value).epsilon(budget.delta)
        return f"{name} 1 fits: the posterior itself costs epsilon {reached:.6g} at delta {budget.delta:g}"
    alone = largest(lambda x: RenyiSum().epsilon(price(x).pieces, budget.delta) <= budget.epsilon)
    costs = price(value).by_route(budget.delta)
    winner = min(costs, key=lambda route: costs[route])
    goal = f"epsilon {budget.epsilon:g} at delta {budget.delta:g}"
    if winner == RenyiSum().name:
        return f"{name} {value:.6g} meets {goal} through the Renyi divergences, which no profile betters"
    if alone is None:
        return f"{name} {value:.6g} meets {goal} through the {winner}; the Renyi divergences alone allow none"
    return (
        f"{name} {value:.6g} meets {goal} through the {winner}, {value / alone:.4g} times the {alone:.6g} "
        "that the Renyi divergences alone allow"
    )
