"""What an epsilon means to one person: how often somebody who must guess is right.

Proof page: docs/proofs/attacker.md.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal

from discreet.privacy import checks

PRIOR = "whoever found both of two neighbouring tables equally likely before"


def attacker_success(epsilon: float, delta: float = 0.0) -> float:
    """How often a guess between two neighbouring tables, equally likely before, can be right.

    For pure epsilon it is 1 / (1 + e^-epsilon), after every single output. For delta
    above 0 it is (e^epsilon + delta) / (e^epsilon + 1), on average over the
    outputs: delta lets rare outputs give a person away entirely.

    Args:
        epsilon: the privacy loss, at least 0; infinity is allowed and protects nobody.
        delta: the probability of a larger loss.

    References: Triastcyn & Faltings 2020, equation (1); Kairouz, Oh & Viswanath
        2015; docs/proofs/attacker.md.

    Example:
        >>> round(attacker_success(2.0), 4), round(attacker_success(5.0), 4)
        (0.8808, 0.9933)
        >>> attacker_success(0.0)
        0.5
    """
    if epsilon != math.inf:
        checks.real("epsilon", epsilon, at_least=0.0)
    checks.real("delta", delta, at_least=0.0, at_most=1.0)
    if epsilon == 0:
        return 0.5 + delta / 2
    against = math.exp(-epsilon)  # divided by e^epsilon, so that nothing overflows
    return min(1.0, math.nextafter((1 + delta * against) / (1 + against), 2.0))


def attacker_words(epsilon: float, delta: float = 0.0) -> str:
    """The sentence to print beside an epsilon, rounded upward.

    Example:
        >>> print(attacker_words(1.0))
        whoever found both of two neighbouring tables equally likely before is right about which it was at
        most 73.2 % of the time after seeing the output
    """
    average = ", on average over outputs" if delta > 0 else ""
    return (
        f"{PRIOR} is right about which it was at most {percent(attacker_success(epsilon, delta))} of the "
        f"time after seeing the output{average}"
    )


def percent(probability: float) -> str:
    """A probability as a percentage, rounded upward; never 100 % for less than certainty.

    Example:
        >>> percent(0.7310), percent(0.99996), percent(1.0)
        ('73.1 %', '99.996 %', '100 %')
    """
    value = (100 * Decimal(probability)).quantize(Decimal("1e-13"))  # 50.1 is no 50.100000000000001
    places = 1
    while places < 12 and probability < 1 and _up(value, places) >= 100:
        places += 1
    return f"{_up(value, places).normalize():f} %"


def _up(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING)
