"""One draw from a generalised posterior, private by itself.

Proof page: docs/proofs/beta_divergence.md; Gibbs posteriors: docs/proofs/strongly_convex_posterior.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np

from discreet.mechanisms.base import Drawn, Mechanism, Plain, Plan
from discreet.mechanisms.release import Scale
from discreet.models.attack import refute, refute_concavity
from discreet.models.base import Bound, Model, Records
from discreet.models.bounded_response import BoundedRegression
from discreet.models.logistic import LogisticRegression
from discreet.models.losses import (
    BetaDivergence,
    ClippedGibbs,
    Gibbs,
    Loss,
    certificate,
    log_beta_range,
    typical_density,
)
from discreet.models.softmax import SoftmaxRegression
from discreet.privacy import (
    Budget,
    BudgetError,
    Evidence,
    Guarantee,
    Neighbours,
    bounded_range,
    calibrate,
    checks,
    inexact,
    strongly_convex_posterior,
)
from discreet.samplers.choice import default_sampler
from discreet.samplers.posterior import Sampler
from discreet.samplers.randomness import Randomness

PAGE = "docs/proofs/beta_divergence.md"
_CONVEX_PAGE = "docs/proofs/strongly_convex_posterior.md"
_SHARE = 0.1
"""Of a budget's delta, what the default sampler may take."""
_BELOW = 1 - 1e-12
_MANY = 10_000_000


@dataclass(frozen=True)
class OnePosteriorSample(Mechanism):
    """One or a few draws from prior * exp(-sum of losses), private by the randomness of the draw.

    The loss decides the guarantee: the beta-divergence and the clipped
    log-likelihood have a bounded range and are pure; the log-likelihood itself
    (Gibbs) needs a Lipschitz, concave one and a strongly convex prior, and delta > 0.

    Args:
        model: likelihood and prior.
        loss: with its numbers, or None for those that the plan shall choose.
        draws: independent draws; each is billed.
        sampler: None chooses (discreet.samplers.choice).

    Guarantee:
        Bounded range 2 Delta under substitution and Delta under add/remove per draw,
        Delta the range of the loss; for Gibbs, N(0, 1) against N(G / sqrt(m), 1). It
        is about exact draws: an inexact sampler's distance is billed, or stands in
        the evidence as assumed.

    References: Jewson, Ghalebikesabi & Holmes 2023, Theorem 1; Wang, Fienberg &
        Smola 2015, Theorem 1; Minami et al. 2016, Theorem 7; Gopi, Lee & Liu 2022,
        Theorem 4; ERRATA 2 to 5, S2 and S6; docs/proofs/beta_divergence.md.

    Example:
        >>> from discreet.models import LogisticRegression
        >>> model = LogisticRegression(features=2, prior_precision=1 / 9)
        >>> plan = OnePosteriorSample(model).plan(n=1000, budget=Budget(epsilon=1.0))
        >>> f"{plan.parameters['beta']:.3f} {plan.parameters['weight']:.3f} {plan.guarantee.epsilon(0):.6f}"
        '2.443 0.721 1.000000'
    """

    model: Model  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    loss: Loss = field(default_factory=BetaDivergence)
    draws: int = 1
    sampler: Sampler | None = None
    scale = Scale.NATURAL

    def __post_init__(self) -> None:
        checks.integer("draws", self.draws, at_least=1)
        if not isinstance(self.loss, tuple(_ROUTES)):
            allowed = ", ".join(kind.__name__ for kind in _ROUTES)
            raise TypeError(
                f"loss must be one of {allowed}, got {type(self.loss).__name__}; see discreet.models.losses"
            )

    def plan(self, n: int | None = None, *, budget: Budget) -> Plan:
        """Choose what the loss leaves open, and price the draws. No data is touched.

        Args:
            n: the public number of records, or None to protect it (add/remove).
            budget: what the draws may cost.
        """
        neighbours = Neighbours.ADD_REMOVE if n is None else Neighbours.SUBSTITUTE
        if n is not None:
            checks.integer("n", n, at_least=1)
        if budget.neighbours not in {None, neighbours}:
            raise ValueError(
                f"n must be given under substitution and left out under add_remove, got {n} for a budget "
                f"about {budget.neighbours} neighbours; the number is public under substitution only"
            )
        refute(self.model)
        room = _SHARE * budget.delta / (1 + math.exp(min(budget.epsilon, 700.0))) / self.draws
        sampler = self.sampler or default_sampler(self.model, self.loss, min(room, 1e-4), n or _MANY)
        refusal = sampler.refusal(self.model, self.loss)
        if refusal:
            raise ValueError(f"{type(sampler).__name__} cannot serve {type(self.model).__name__}: {refusal}")
        order = _Order(self.model, neighbours, budget, self.draws, sampler.distance)
        route = next(_ROUTES[kind] for kind in type(self.loss).__mro__ if kind in _ROUTES)
        settled = route(self.loss, order)
        order.require(settled.guarantee)
        return Plan(
            mechanism=replace(self, sampler=sampler),
            size=n,
            guarantee=settled.guarantee,
            evidence=(*settled.evidence, *sampler.evidence),
            parameters={**settled.loss.numbers, "draws": self.draws, **settled.extra},
            reasons=settled.reasons,
        )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:  # noqa: ARG002
        import jax

        assert self.sampler is not None, "a plan has chosen"  # noqa: S101
        loss = self.loss.with_numbers(plan.parameters)
        found = self.sampler.sample(self.model, loss, records, randomness, self.draws)
        with jax.enable_x64(True):
            free = {
                name: jax.numpy.asarray(value)  # pyright: ignore[reportUnknownMemberType]
                for name, value in found.draws.items()
            }
            natural = jax.vmap(self.model.constrain)(free)
            draws = {name: np.array(value, dtype=np.float64) for name, value in natural.items()}
        return Drawn(draws, found.evidence, found.diagnostics)

    def settings(self) -> dict[str, Plain]:
        return {
            **super().settings(),
            "loss": {"loss": type(self.loss).__name__, **asdict(self.loss)},
            "draws": self.draws,
            "sampler": type(self.sampler).__name__,
        }


@dataclass(frozen=True)
class _Order:
    """What a route is asked for, and how it prices."""

    model: Model
    neighbours: Neighbours
    budget: Budget
    draws: int
    distance: float

    def total(self, one: Guarantee) -> Guarantee:
        """All draws, and the sampler's distance."""
        if self.distance == 0:
            return one.repeat(self.draws)
        return one.repeat(self.draws) + inexact(self.draws * self.distance, neighbours=self.neighbours)

    def ranged(self, width: float) -> Guarantee:
        """All draws of a posterior whose log ratio spans `width`."""
        return self.total(bounded_range(width, neighbours=self.neighbours))

    @property
    def sides(self) -> int:
        """Records whose losses can move against each other."""
        return 2 if self.neighbours is Neighbours.SUBSTITUTE else 1

    @property
    def width(self) -> float:
        """The longest interval for a draw's log ratio that the budget allows."""
        pure = self.budget.epsilon / self.draws
        if self.budget.delta == 0 and self.distance == 0:
            return pure
        largest = 8 * self.budget.epsilon + 8
        return calibrate(self.ranged, self.budget, (min(1e-3 * pure, 1e-3), largest)).value

    def require(self, guarantee: Guarantee) -> None:
        """Refuse what does not fit the budget."""
        cost = guarantee.epsilon(self.budget.delta)
        if cost > self.budget.epsilon * (1 + 1e-12):
            raise BudgetError(
                f"the draws must cost at most epsilon {self.budget.epsilon:g} at delta {self.budget.delta:g}"
                f", got {cost:.6g}; leave the weight to the plan, take fewer draws, raise the budget, or "
                "give it a delta if the sampler is inexact",
                cost,
                math.nan,
            )


@dataclass(frozen=True)
class _Settled:
    loss: Loss
    guarantee: Guarantee
    evidence: tuple[Evidence, ...]
    reasons: tuple[str, ...]
    extra: dict[str, Plain]


# --- bounded range: the beta-divergence, and clipped log-likelihoods ---------------


def _ranged(loss: Loss, order: _Order, reasons: tuple[str, ...], extra: dict[str, Plain]) -> _Settled:
    """The guarantee of a loss whose range is known."""
    bound: Bound = loss.range(order.model)
    width = order.sides * bound.value
    claim = f"one draw's privacy loss lies in an interval of length {width:.6g} around 0"
    evidence = (bound.evidence, Evidence.proved(claim, PAGE))
    return _Settled(loss, order.ranged(width), evidence, reasons, {**extra, "range": bound.value})


def _given(loss: BetaDivergence | ClippedGibbs, order: _Order, extra: dict[str, Plain]) -> _Settled:
    """A loss with all its numbers; the weight gives way to the rounding of its price, 1e-9, no more."""
    settled = _ranged(loss, order, ("all numbers were given",), extra)
    over = settled.guarantee.epsilon(order.budget.delta) / order.budget.epsilon
    if not 1 < over <= 1 + 3e-9 or loss.weight is None:
        return settled
    lower = replace(loss, weight=loss.weight / over * _BELOW)
    return _ranged(
        lower, order, ("all numbers were given; the weight is lowered by the rounding of the price",), extra
    )


def _beta_divergence(loss: Loss, order: _Order) -> _Settled:
    assert isinstance(loss, BetaDivergence)  # noqa: S101
    peak = certificate(order.model, "density", "the beta-divergence").value
    floor = 2 * math.e * math.log(peak) if peak > 1 else 0.0
    extra: dict[str, Plain] = {"epsilon_floor_at_weight_1": floor * order.sides / 2}
    if loss.beta is not None and loss.weight is not None:
        return _given(loss, order, extra)
    width = order.width * _BELOW
    # log of the largest weight at b, and of the count of a typical record at it
    typical = math.log(typical_density(order.model))
    weight = partial(_log_weight, order.model, math.log(width / order.sides))
    if loss.beta is not None:
        b, reason = loss.beta - 1, "beta was given, and the weight is the largest that the budget allows"
        log_weight = weight(b)
    elif loss.weight is not None:
        needed = math.log(loss.weight)
        best = _maximise(weight)
        if weight(best) < needed:
            least = order.sides * loss.weight * math.exp(-weight(best)) * width / order.sides
            raise BudgetError(
                f"the weight must be at most {math.exp(weight(best)):.6g} at this budget, whatever beta, got "
                f"{loss.weight:g}, which costs {least:.4g} at least; leave the weight to the plan",
                least,
                1 + best,
            )
        b, reason = (
            _first(lambda b: weight(b) - needed, best),
            "the weight was given, and beta is the smallest",
        )
        log_weight = needed
    else:

        def counts(b: float) -> float:
            return weight(b) + b * typical

        best = _maximise(counts)
        if counts(best) >= 0:
            b = _first(counts, best)
            log_weight = -b * typical
            reason = "beta is the smallest at which a typical record can count once"
        else:
            b, log_weight = best, weight(best)
            reason = "beta is where a typical record counts most"
        extra["typical_count"] = math.exp(min(counts(b), 0.0))
    settled = BetaDivergence(1 + b, math.exp(min(log_weight, weight(b))) * _BELOW)
    return _ranged(settled, order, (f"{reason} ({PAGE})",), extra)


def _log_weight(model: Model, log_range: float, b: float) -> float:
    """Log of the weight at which the beta-loss has the range exp(log_range)."""
    return log_range - log_beta_range(model, b)


def _maximise(function: Callable[[float], float]) -> float:
    """The b of the largest value, for a function of b that rises and then falls."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda log_b: -function(math.exp(log_b)), bounds=(-12.0, 5.0), method="bounded")
    return math.exp(float(found.x))


def _first(excess: Callable[[float], float], best: float) -> float:
    """The smallest b at which an excess, rising up to `best`, is not negative."""
    low, high = math.log(best) - 60.0, math.log(best)
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(math.exp(middle)) >= 0 else (middle, high)
    return math.exp(high)


def _clipped(loss: Loss, order: _Order) -> _Settled:
    assert isinstance(loss, ClippedGibbs)  # noqa: S101
    if loss.weight is not None:
        return _given(loss, order, {})
    unit = replace(loss, weight=1.0).range(order.model).value
    weight = min(1.0, order.width / (order.sides * unit) * _BELOW) if unit > 0 else 1.0
    reason = "the weight is the largest that the budget allows, at most 1 (Wang, Fienberg & Smola 2015)"
    return _ranged(replace(loss, weight=weight), order, (reason,), {})


# --- Gibbs posteriors ---------------------------------------------------------------


def _gibbs(loss: Loss, order: _Order) -> _Settled:
    assert isinstance(loss, Gibbs)  # noqa: S101
    options = [option for option in (_gibbs_ranged(loss, order), _gibbs_convex(loss, order)) if option]
    if not options:
        pure = order.budget.delta == 0 and "log_density" not in order.model.bounds
        need = (
            "delta > 0"
            if pure and "lipschitz" in order.model.bounds
            else "a bounded or a Lipschitz log density"
        )
        raise ValueError(
            f"a Gibbs posterior needs {need}, got {type(order.model).__name__} with "
            f"{', '.join(sorted(order.model.bounds)) or 'no certificate'} at delta {order.budget.delta:g}; "
            "use the loss BetaDivergence() or ClippedGibbs(bound=...)"
        )
    return max(options, key=lambda option: option.loss.numbers["weight"])


def _gibbs_ranged(loss: Gibbs, order: _Order) -> _Settled | None:
    """Wang, Fienberg & Smola: the log density is bounded."""
    if "log_density" not in order.model.bounds:
        return None
    weight = loss.weight
    if weight is None:
        weight = min(1.0, order.width / (order.sides * Gibbs(1.0).range(order.model).value) * _BELOW)
    return _ranged(Gibbs(weight), order, ("the log density is bounded (Wang, Fienberg & Smola 2015)",), {})


def _gibbs_convex(loss: Gibbs, order: _Order) -> _Settled | None:
    """Minami et al., by the sharper curve of Gopi, Lee & Liu: Lipschitz and concave."""
    bounds = order.model.bounds
    name = "lipschitz_difference" if order.neighbours is Neighbours.SUBSTITUTE else "lipschitz"
    if (
        name not in bounds
        or "prior_convexity" not in bounds
        or (order.budget.delta == 0 and loss.weight is None)
    ):
        return None
    slope, convexity = bounds[name], bounds["prior_convexity"]

    def price(weight: float) -> Guarantee:
        one = strongly_convex_posterior(weight * slope.value, convexity.value, neighbours=order.neighbours)
        return order.total(one)

    reason = "the log density is Lipschitz and concave (Minami et al. 2016; Gopi, Lee & Liu 2022)"
    if loss.weight is not None:
        guarantee, weight = price(loss.weight), loss.weight
    else:
        found = calibrate(price, order.budget, (1e-9, 1.0))
        guarantee, weight = found.guarantee, found.value
    if isinstance(order.model, LogisticRegression | SoftmaxRegression | BoundedRegression):
        concave = Evidence.proved("the log density is concave in the parameters", _CONVEX_PAGE)
    else:
        refute_concavity(order.model)
        concave = Evidence.assumed("the log density is concave in the unconstrained parameters", _CONVEX_PAGE)
    evidence = (slope.evidence, convexity.evidence, concave)
    return _Settled(Gibbs(weight), guarantee, evidence, (reason,), {})


def minami_weight(epsilon: float, delta: float, *, lipschitz: float, convexity: float) -> float:
    """The weight of Minami et al. 2016 for (epsilon, delta) under substitution, for comparison.

    `Gibbs()` gets 1.31 times as much at epsilon 1 (ERRATA S2). At 9.80 it is no bound: it costs 9.99.
    """
    checks.real("delta", delta, above=0.0, below=1.0)
    return epsilon / (2 * lipschitz) * math.sqrt(convexity / (1 + 2 * math.log(1 / delta)))


def paper_epsilon(beta: float, peak: float) -> float:
    """Epsilon of paper B's Theorem 1 at weight 1: 2 M^(beta-1) / (beta-1), under substitution."""
    b = checks.real("beta", beta, above=1.0) - 1
    return 2 * checks.real("peak", peak, above=0.0) ** b / b


_ROUTES: dict[type[Loss], Callable[[Loss, _Order], _Settled]] = {
    BetaDivergence: _beta_divergence,
    ClippedGibbs: _clipped,
    Gibbs: _gibbs,
}
