"""Argument checks: one sentence that says what was wrong, given, and allowed."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import SupportsFloat


def real(
    name: str,
    value: SupportsFloat,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    below: float = math.inf,
) -> float:
    """Return `value` as a finite float inside the allowed interval, or raise."""
    allowed = _interval(above, at_least, at_most, below)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number {allowed}, got {type(value).__name__} {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and above < number < below and at_least <= number <= at_most):
        raise ValueError(f"{name} must be a finite number {allowed}, got {value!r}")
    return number


def integer(name: str, value: int, *, at_least: int, at_most: float = math.inf) -> int:
    """Return `value` as an int inside the allowed interval, or raise."""
    allowed = _interval(-math.inf, at_least, at_most, math.inf)
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number {allowed}, got {type(value).__name__} {value!r}")
    if not at_least <= value <= at_most:
        raise ValueError(f"{name} must be a whole number {allowed}, got {value!r}")
    return int(value)


def _interval(above: float, at_least: float, at_most: float, below: float) -> str:
    low = (
        f"above {above:g}" if above > -math.inf else f"at least {at_least:g}" if at_least > -math.inf else ""
    )
    high = f"below {below:g}" if below < math.inf else f"at most {at_most:g}" if at_most < math.inf else ""
    return " and ".join(part for part in (low, high) if part) or "(any finite value)"
