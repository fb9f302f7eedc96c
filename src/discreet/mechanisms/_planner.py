"""The rule by which a chain is planned from a budget: public numbers in, public numbers out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from discreet.privacy import Budget, BudgetError, Guarantee, checks

WANTED_STEPS, MOST_STEPS = 5_000, 100_000


def choose(
    errors: Mapping[float, float],
    guarantee: Callable[[float, int], Guarantee],
    budget: Budget | None,
    steps: int | None,
) -> tuple[float, int, list[str]]:
    """An option, a number of steps, and why.

    Args:
        errors: the error of each option (a noise variance).
        guarantee: what an option costs for a number of steps.
        budget: what may be spent, or None when `steps` says it all.
        steps: of each chain, or None for as many as the budget allows.
    """
    wanted = WANTED_STEPS if steps is None else checks.integer("steps", steps, at_least=1)
    if budget is None:
        if steps is None:
            raise ValueError("plan must be given a budget, a number of steps, or both, got neither; add one")
        best = min(errors, key=lambda option: (round(errors[option], 6), -option))
        return best, wanted, [_because(best, errors, "no budget was given")]
    affordable = [option for option in errors if guarantee(option, wanted).fits(budget)]
    if affordable:
        best = min(affordable, key=lambda option: (round(errors[option], 6), -option))
        why = _because(best, errors, f"the budget allows {wanted} steps with it")
    elif steps is not None:
        cheapest = min(errors, key=lambda option: guarantee(option, wanted).epsilon(budget.delta))
        least = guarantee(cheapest, wanted).epsilon(budget.delta)
        raise BudgetError(
            f"a budget of epsilon {budget.epsilon:g} at delta {budget.delta:g} does not allow {steps} steps: "
            f"they cost {least:.4g} at least; raise the budget, or ask for fewer steps or smaller batches",
            least,
            float(steps),
        )
    else:
        best = max(errors)
        why = _because(
            best, errors, f"the budget does not allow {wanted} steps with any, and it allows the most"
        )
    if steps is not None:
        return best, steps, [why, _rest(guarantee(best, steps), budget)]
    most = _most(lambda count: guarantee(best, count), budget)
    if most == 0:
        least = guarantee(best, 1).epsilon(budget.delta)
        raise BudgetError(
            f"a budget of epsilon {budget.epsilon:g} at delta {budget.delta:g} does not allow one step, "
            f"which costs {least:.4g}; raise the budget or temper more",
            least,
            1.0,
        )
    reason = (
        f"{most} steps are what the budget allows"
        if most < MOST_STEPS
        else f"{most} steps are the most that are planned unasked; {_rest(guarantee(best, most), budget)}"
    )
    return best, most, [why, reason]


def _because(best: float, errors: Mapping[float, float], condition: str) -> str:
    among = f" among {', '.join(f'{option:g}' for option in errors)}" if len(errors) > 1 else ""
    return f"variance {best:g} has the smallest test error{among}, {errors[best]:.2g}, and {condition}"


def _rest(spent: Guarantee, budget: Budget) -> str:
    used = spent.epsilon(budget.delta)
    return (
        f"epsilon {used:.3g} of {budget.epsilon:g} is used: more steps or a larger tempered_size "
        "would use the rest"
    )


def _most(guarantee: Callable[[int], Guarantee], budget: Budget) -> int:
    """The largest number of steps up to MOST_STEPS that fits, 0 if none."""
    if guarantee(MOST_STEPS).fits(budget):
        return MOST_STEPS
    low, high, at = 0, MOST_STEPS, WANTED_STEPS
    while high - low > 1:
        used = guarantee(at).epsilon(budget.delta)
        low, high = (at, high) if used <= budget.epsilon else (low, at)
        # Epsilon grows about as the root of the steps; aim a little past it, so that the bracket closes.
        aim = at * (budget.epsilon / used) ** 2 if 0 < used < math.inf else 2.0 * at
        aim += math.copysign(max(1.0, 1e-3 * aim), aim - at)
        at = min(max(round(aim), low + 1), high - 1) if low < aim < high else (low + high) // 2
    return low
