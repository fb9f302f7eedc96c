"""Numbers in: `256/60000` and `1e5` are read exactly as meant. Numbers out are those of the reports."""

from __future__ import annotations

import math
import re

from discreet.report.numbers import downward, nearest, plain, upward

__all__ = ["downward", "nearest", "plain", "real", "relation", "several", "upward", "whole"]

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
