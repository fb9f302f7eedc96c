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
    most = _most(price, budget)
    if most == 0:
        least = price(1).epsilon(budget.delta)
        raise BudgetError(
            f"a budget of epsilon {budget.epsilon:g} at delta {budget.delta:g} does not allow one step, "
            f"which costs {least:.4g}; raise the budget or temper more",
            least,
            1.0,
        )
    if most < MOST_STEPS:
        return most, [f"{most} steps are what the budget allows"]
    used = price(most).epsilon(budget.delta)
    return most, [f"{most} steps are the most that are planned unasked; {_rest(used, budget)}"]


def _rest(used: float, budget: Budget) -> str:
    return (
        f"epsilon {used:.3g} of {budget.epsilon:g} is used: more steps or a larger tempered_size "
        "would use the rest"
    )


def _most(price: Price, budget: Budget) -> int:
    """The largest number of steps up to MOST_STEPS that fits, 0 if none."""
    if price(MOST_STEPS).fits(budget):
        return MOST_STEPS
    low, high, at = 0, MOST_STEPS, WANTED_STEPS
    while high - low > 1:
        used = price(at).epsilon(budget.delta)
        low, high = (at, high) if used <= budget.epsilon else (low, at)
        # Epsilon grows about as the root of the steps; aim a little past it, so that the bracket closes.
        aim = at * (budget.epsilon / used) ** 2 if 0 < used < math.inf else 2.0 * at
        aim += math.copysign(max(1.0, 1e-3 * aim), aim - at)
        at = min(max(round(aim), low + 1), high - 1) if low < aim < high else (low + high) // 2
    return low
