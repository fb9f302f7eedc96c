"""Files that users hand over: tables of two columns, and saved guarantees."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.errors import Refused

if TYPE_CHECKING:
    from discreet.privacy import Guarantee


def read_table(path: Path, columns: tuple[str, str]) -> dict[float, float]:
    """Read two columns: CSV with or without a header, or JSON as {x: y} or [[x, y], ...]."""
    text = _text(path)
    wanted = f"two columns {columns[0]},{columns[1]}, as CSV or as JSON [[{columns[0]}, {columns[1]}], ...]"
    rows: list[tuple[str, Any, Any]] = []
    if path.suffix.lower() == ".json":
        data = _json(path, text)
        pairs = list(data.items()) if isinstance(data, dict) else data
        if not isinstance(pairs, list) or not all(
            isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs
        ):
            raise Refused(f"{path} must hold {wanted}; it is JSON of another shape")
        rows = [(f"entry {k}", x, y) for k, (x, y) in enumerate(pairs, 1)]
    else:
        for k, line in enumerate(csv.reader(text.splitlines()), 1):
            cells = [cell.strip() for cell in line]
            if not any(cells) or cells[0].startswith("#") or (k == 1 and cells == list(columns)):
                continue
            if len(cells) != 2:
                raise Refused(f"{path} must hold {wanted}; line {k} has {len(cells)} columns")
            rows.append((f"line {k}", *cells))
    table: dict[float, float] = {}
    for where, x, y in rows:
        try:
            key, value = float(x), float(y)
        except (TypeError, ValueError):
            raise Refused(f"{path} must hold {wanted}; {where} is {x!r}, {y!r}") from None
        if math.isnan(key) or math.isnan(value):
            raise Refused(f"{path} must hold numbers, {where} is {x}, {y}; replace the NaN or drop the line")
        if key in table:
            raise Refused(f"{path} must hold each {columns[0]} once, {where} repeats {x}; drop one of them")
        table[key] = value
    if not table:
        raise Refused(f"{path} must hold {wanted}; it has no rows")
    return table


def read_guarantee(path: Path) -> Guarantee:
    """Read what `--save` wrote, or what `--json` printed."""
    data = _json(path, _text(path))
    if isinstance(data, dict) and isinstance(data.get("guarantee"), dict):
        data = data["guarantee"]
    from discreet.privacy import Guarantee

    try:
        guarantee = Guarantee.from_dict(data)
        sound = 0 <= guarantee.inexactness < 1 and all(
            isinstance(count, int) and count > 0 for _, count in guarantee.pieces
        )
        usable = sound and not math.isnan(guarantee.delta(1.0))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        reason = str(error) if isinstance(error, ValueError) else "a part of it is missing or of the wrong kind"
        raise Refused(
            f"{path} must be a guarantee written by `discreet account ... --save FILE`: {reason}"
        ) from None
    if not usable:
        raise Refused(
            f"{path} must be a guarantee written by `discreet account ... --save FILE`, unchanged: "
            "a number in it is out of range; save it again"
        )
    return guarantee


def write_guarantee(path: Path, guarantee: Guarantee) -> None:
    """Write a guarantee where `compose` finds it."""
    try:
        path.write_text(guarantee.to_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise Refused(f"--save cannot write {path}: {_why(error)}; name another file") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Refused(f"FILE {path} cannot be read: {_why(error)}; check the path") from None
    except UnicodeDecodeError:
        raise Refused(f"FILE {path} cannot be read: it is not UTF-8 text; save it as CSV or JSON") from None


def _json(path: Path, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=float if path.suffix else None)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path} must be JSON, it is not: {error}; write it again") from None


def _why(error: OSError) -> str:
    return (error.strerror or "it fails").lower()
