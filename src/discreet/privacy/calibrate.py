"""The largest parameter that a budget allows.

Proof page: docs/proofs/calibration.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from discreet.privacy import checks
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.routes import RenyiSum

TOLERANCE = 1e-6
_MOST_PROBES = 200


class BudgetError(ValueError):
    """A budget that no allowed parameter meets.

    Attributes:
        smallest_epsilon: the smallest epsilon reachable inside the bracket, at the
            budget's delta.
        at: the parameter that reaches it.
    """

    def __init__(self, message: str, smallest_epsilon: float, at: float) -> None:
        super().__init__(message)
        self.smallest_epsilon = smallest_epsilon
        self.at = at


@dataclass(frozen=True)
class Calibration:
    """A parameter and the guarantee it has.

    Attributes:
        value: the parameter; it fits the budget.
        guarantee: what it guarantees.
        probes: how many guarantees were evaluated to find it.
    """

    value: float
    guarantee: Guarantee
    probes: int


def calibrate(
    build: Callable[[float], Guarantee],
    budget: Budget,
    bracket: tuple[float, float],
    *,
    tolerance: float = TOLERANCE,
) -> Calibration:
    """Find the parameter that uses the budget best: the last one that fits.

    Args:
        build: the guarantee of a parameter. Its epsilon must rise or fall
            monotonically over the bracket; which of the two is found out.
        budget: what may be spent.
        bracket: two positive ends of the search. If both fit, the costlier end is
            the answer.
        tolerance: how near the boundary the answer lies, relative.

    Returns:
        A parameter within `tolerance` of the boundary, always on the side that fits.

    Raises:
        BudgetError: if neither end fits, with the smallest epsilon reachable.

    Example:
        >>> from discreet.privacy import Budget, calibrate, poisson_gaussian
        >>> found = calibrate(
        ...     lambda sigma: poisson_gaussian(0.01, sigma, 1000, neighbours="add_remove"),
        ...     Budget(1.0, 1e-6),
        ...     bracket=(0.3, 100.0),
        ... )
        >>> found.guarantee.epsilon(1e-6) <= 1.0
        True
    """
    if not isinstance(budget, Budget):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"budget must be a Budget, got {budget!r}; write Budget(epsilon, delta)")
    try:
        low, high = (checks.real("bracket", end, above=0.0) for end in bracket)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"bracket must be two increasing positive numbers, got {bracket!r}; {error}"
        ) from None
    if low >= high:
        raise ValueError(f"bracket must be two increasing positive numbers, got {bracket}; swap them")
    search = _Search(build, budget, checks.real("tolerance", tolerance, at_least=1e-12, at_most=0.1))
    ends = _End(low, search.quick(low)), _End(high, search.quick(high))
    if ends[0].fits != ends[1].fits:
        inner, outer = _sorted(ends)
        start = _crossing(search.quick, inner, outer, tolerance=1e-2)
        if (best := search.outward(start.value, far=outer.value)) is not None:
            return search.found(best)
    ends = _End(low, search.exact(low)), _End(high, search.exact(high))
    if ends[0].fits != ends[1].fits:
        return search.found(_crossing(search.exact, *_sorted(ends), tolerance=tolerance).value)
    if not ends[0].fits:
        search.refuse(min(ends, key=lambda end: end.excess), bracket)
    return search.found(max(ends, key=lambda end: end.excess).value)


class _End(NamedTuple):
    """A parameter and how far it is above the budget on a log scale: at most 0 exactly when it fits."""

    value: float
    excess: float

    @property
    def fits(self) -> bool:
        return self.excess <= 0


def _sorted(ends: tuple[_End, _End]) -> tuple[_End, _End]:
    """The end that fits first."""
    return ends if ends[0].fits else (ends[1], ends[0])


class _Search:
    """Evaluates parameters against the budget, and counts how often."""

    def __init__(self, build: Callable[[float], Guarantee], budget: Budget, tolerance: float) -> None:
        self.build, self.budget, self.tolerance, self.probes = build, budget, tolerance, 0

    def exact(self, value: float) -> float:
        """Excess by the guarantee's best route."""
        self.probes += 1
        guarantee = self._built(value)
        return self._excess(guarantee.epsilon(self.budget.delta))

    def quick(self, value: float) -> float:
        """Excess by the Renyi sum alone: an upper bound of `exact` that costs little."""
        guarantee = self._built(value)
        if guarantee.inexactness > 0:
            return math.inf
        return self._excess(RenyiSum().epsilon(guarantee.pieces, self.budget.delta))

    def _built(self, value: float) -> Guarantee:
        guarantee = self.build(value)
        if not isinstance(guarantee, Guarantee):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(guarantee).__name__
            raise TypeError(f"build must return a Guarantee, got {kind}; return what a constructor made")
        guarantee.check_relation(self.budget)
        return guarantee

    def _excess(self, epsilon: float) -> float:
        if epsilon <= self.budget.epsilon:
            return min(0.0, math.log(epsilon / self.budget.epsilon)) if epsilon > 0 else -math.inf
        return max(math.log(epsilon / self.budget.epsilon), 1e-300)

    def outward(self, start: float, far: float) -> float | None:
        """From a parameter that fits (None if it does not after all), towards the end not known to."""
        fit, slope = _End(start, self.exact(start)), 1.0
        if not fit.fits:
            return None
        while fit.value != far:
            span = math.log(far / fit.value)
            # To where the last slope meets the budget, and a little further.
            step = max(2 * self.tolerance, 1.1 * min(-fit.excess, 3.0) / slope)
            value = far if step >= abs(span) else fit.value * math.exp(math.copysign(step, span))
            end = _End(value, self.exact(value))
            if not end.fits:
                return _crossing(self.exact, fit, end, tolerance=self.tolerance).value
            slope = min(max((end.excess - fit.excess) / step, 0.1), 10.0)
            fit = end
        return far

    def found(self, value: float) -> Calibration:
        return Calibration(value, self.build(value), self.probes)

    def refuse(self, best: _End, bracket: tuple[float, float]) -> NoReturn:
        smallest = self.budget.epsilon * math.exp(best.excess) if best.excess < 700 else math.inf
        raise BudgetError(
            f"a budget of epsilon {self.budget.epsilon:g} at delta {self.budget.delta:g} cannot be met with "
            f"a parameter between {bracket[0]:g} and {bracket[1]:g}: the smallest epsilon is {smallest:.4g}, "
            f"at {best.value:g}; raise the budget, widen the bracket or weaken what is released",
            smallest,
            best.value,
        )


def _crossing(excess: Callable[[float], float], fit: _End, misfit: _End, tolerance: float) -> _End:
    """The end that fits of a bracket narrowed to `tolerance`: secant steps, a stale end discounted."""
    moved = 0
    for _ in range(_MOST_PROBES):
        span = math.log(misfit.value / fit.value)
        if abs(span) <= tolerance:
            break
        gap = misfit.excess - fit.excess
        share = -fit.excess / gap if math.isfinite(gap) else 0.5
        # Aim past the estimate, at the end that stood still, so that the bracket closes from both sides.
        margin = 0.4 * tolerance / abs(span)
        share = min(max(share + math.copysign(margin, moved), margin), 1 - margin)
        value = fit.value * math.exp(span * share)
        end = _End(value, excess(value))
        if end.fits:
            misfit = misfit._replace(excess=misfit.excess / 2) if moved > 0 else misfit
            fit, moved = end, 1
        else:
            fit = fit._replace(excess=fit.excess / 2) if moved < 0 else fit
            misfit, moved = end, -1
    return fit
