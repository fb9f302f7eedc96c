"""Numbers as people read them: bounds are printed rounded to the safe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal


def upward(value: float, digits: int = 4) -> str:
    """A bound in a few digits, never below its value; `none` if infinite."""
    return _rounded(value, digits, ROUND_CEILING)


def downward(value: float, digits: int = 4) -> str:
    """A number in a few digits, never above its value."""
    return _rounded(value, digits, ROUND_FLOOR)


def nearest(value: float, digits: int = 3) -> str:
    """A number in a few digits."""
    return _rounded(value, digits, ROUND_HALF_EVEN)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return "none"
    if value == 0:
        return "0"
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    if digits > 3 and abs(exact - exact.quantize(unit)) <= abs(exact) * Decimal("1e-10"):
        rounding = ROUND_HALF_EVEN  # 10.000000000009 is 10: the library's own margin, not a digit
    number = exact.quantize(unit, rounding=rounding)
    if -4 <= number.adjusted() < 6:
        text = f"{number:f}"
        return text.rstrip("0").rstrip(".") if "." in text and number == number.to_integral() else text
    return f"{float(number):.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def plain(value: float) -> str:
    """A number as the user gave it."""
    if isinstance(value, int):
        return f"{value:,}"
    if 0 < abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.5e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:.6g}"
