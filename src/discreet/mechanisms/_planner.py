"""The rule by which a chain is planned from a budget: public numbers in, public numbers out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from discreet.privacy import Budget, BudgetError, Guarantee, checks

WANTED_STEPS, MOST_STEPS = 5_000, 100_000

Price = Callable[[int], Guarantee]
"""What a number of steps costs."""


def choose(
    errors: Mapping[float, float],
    guarantee: Callable[[float, int], Guarantee],
    budget: Budget | None,
    steps: int | None,
) -> tuple[float, str]:
    """The noise variance to use, and why.

    The one with the smallest error among those with which the budget allows the steps,
    5,000 unless given; the cheapest where there is none.

    Args:
        errors: the error of each option.
        guarantee: what an option costs for a number of steps.
        budget: what may be spent, if anything limits it.
        steps: of each chain, or None for as many as the budget allows.
    """
    wanted = WANTED_STEPS if steps is None else checks.integer("steps", steps, at_least=1)
    allowed = [o for o in errors if budget is None or guarantee(o, wanted).fits(budget)]
    if not allowed:
        best = max(errors)
        condition = f"the budget does not allow {wanted} steps with any, and it allows the most"
    else:
        best = min(allowed, key=lambda option: (round(errors[option], 6), -option))
        condition = "no budget was given" if budget is None else f"the budget allows {wanted} steps with it"
    among = f" among {', '.join(f'{option:g}' for option in errors)}" if len(errors) > 1 else ""
    return best, f"variance {best:g} has the smallest test error{among}, {errors[best]:.2g}, and {condition}"


def count_steps(price: Price, budget: Budget | None, steps: int | None) -> tuple[int, list[str]]:
    """How many steps, and why: as given, or as many as the budget allows, at most 100,000."""
    if steps is not None:
        checks.integer("steps", steps, at_least=1)
        if budget is None:
            return steps, []
        least = price(steps).epsilon(budget.delta)
        if least > budget.epsilon:
            raise BudgetError(
                f"a budget of epsilon {budget.epsilon:g} at delta {budget.delta:g} does not allow {steps} "
                f"steps: they cost {least:.4g} at least; raise the budget, or ask for fewer steps or "
                "smaller batches",
                least,
                float(steps),
            )
        return steps, [_rest(least, budget)]
    if budget is None:
        raise ValueError("plan must be given a budget, a number of steps, or both, got neither; add one")
    count = most(price, budget, MOST_STEPS)
    if count == 0:
        least = price(1).epsilon(budget.delta)
        raise BudgetError(
            f"a budget of epsilon {budget.epsilon:g} at delta {budget.delta:g} does not allow one step, "
            f"which costs {least:.4g}; raise the budget or temper more",
            least,
            1.0,
        )
    if count < MOST_STEPS:
        return count, [f"{count} steps are what the budget allows"]
    used = price(count).epsilon(budget.delta)
    return count, [f"{count} steps are the most that are planned unasked; {_rest(used, budget)}"]


def _rest(used: float, budget: Budget) -> str:
    return (
        f"epsilon {used:.3g} of {budget.epsilon:g} is used: more steps or a larger tempered_size "
        "would use the rest"
    )


def most(price: Price, budget: Budget, high: int, *, within: float = 0.0) -> int:
    """The largest number up to `high` whose price fits, 0 if none.

    Args:
        price: of a number (of steps, of records); it grows with it.
        budget: what may be spent.
        high: the most.
        within: how far below the largest it may be, as a share.
    """

    def over(number: int) -> float:
        """Log of the price over the budget: about a straight line in the log of the number."""
        cost = price(number).epsilon(budget.delta)
        return math.log(max(cost, 1e-300) / budget.epsilon) if cost < math.inf else math.inf

    low, above = 0, over(high)
    below, side, margin = -math.inf, 0, 1.0
    if above <= 0:
        return high
    while high - low > max(1.0, within * low):
        slope = (above - below) / math.log(high / low) if -math.inf < below and above < math.inf else 0.5
        guess = high * math.exp(-above / slope) if above < math.inf else math.sqrt(low * high) / 4
        # Past the guess, further each time that the same end moves, so that the bracket closes.
        at = min(max(round(guess + side * margin), low + 1), high - 1)
        here = over(at)
        margin = 4 * margin if (here <= 0) == (side > 0) else max(1.0, within * at / 2)
        if here <= 0:
            low, below, side = at, here, 1
        else:
            high, above, side = at, here, -1
    return low
