"""Numbers in and out: `256/60000` and `1e5` are read exactly as meant, bounds are printed rounded upward."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

_DECIMAL = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBER = re.compile(rf"({_DECIMAL})(?:/({_DECIMAL}))?", re.ASCII)
_LARGEST_EXACT = 2**53


def real(text: str | float) -> float:
    """Read a finite number, written as a decimal or as a fraction of two."""
    if not isinstance(text, str):
        return text
    found = _NUMBER.fullmatch(text.strip())
    if not found:
        raise ValueError(f"must be a finite number such as 0.5, 1e-6 or 256/60000, got {text!r}")
    top, bottom = float(found[1]), float(found[2] or 1)
    if bottom == 0:
        raise ValueError(f"must not divide by zero, got {text!r}")
    if not math.isfinite(value := top / bottom):
        raise ValueError(f"must be a finite number below 1e308, got {text!r}")
    return value


def whole(text: str | int) -> int:
    """Read a whole number; 1e5 is one."""
    if not isinstance(text, str):
        return text
    try:
        value = real(text)
    except ValueError:
        value = math.nan
    if not value.is_integer() or abs(value) > _LARGEST_EXACT:
        raise ValueError(f"must be a whole number such as 5000 or 1e5, got {text!r}")
    return int(value)


def several(text: str | tuple[float, ...]) -> tuple[float, ...]:
    """Read numbers separated by commas."""
    return text if isinstance(text, tuple) else tuple(real(part) for part in text.split(","))


def relation(text: str) -> str:
    """Read a neighbour relation, as the library writes it."""
    value = text.strip().lower().replace("-", "_")
    if value not in {"substitute", "add_remove"}:
        raise ValueError(
            f"must be substitute or add-remove, got {text!r}; choose what your statement is about"
        )
    return value


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
