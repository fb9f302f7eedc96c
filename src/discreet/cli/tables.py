"""Files that users hand over: tables of two columns, and saved guarantees."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.errors import RequestError

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
            raise RequestError(f"{path} must hold {wanted}; it is JSON of another shape")
        rows = [(f"entry {k}", x, y) for k, (x, y) in enumerate(pairs, 1)]
    else:
        for k, line in enumerate(csv.reader(text.splitlines()), 1):
            cells = [cell.strip() for cell in line]
            if not any(cells) or cells[0].startswith("#") or (k == 1 and cells == list(columns)):
                continue
            if len(cells) != 2:
                raise RequestError(f"{path} must hold {wanted}; line {k} has {len(cells)} columns")
            rows.append((f"line {k}", cells[0], cells[1]))
    table: dict[float, float] = {}
    for where, x, y in rows:
        try:
            key, value = float(x), float(y)
        except (TypeError, ValueError):
            raise RequestError(f"{path} must hold {wanted}; {where} is {x!r}, {y!r}") from None
        if math.isnan(key) or math.isnan(value):
            raise RequestError(
                f"{path} must hold numbers, {where} is {x}, {y}; replace the NaN or drop the line"
            )
        if key in table:
            raise RequestError(
                f"{path} must hold each {columns[0]} once, {where} repeats {x}; drop one of them"
            )
        table[key] = value
    if not table:
        raise RequestError(f"{path} must hold {wanted}; it has no rows")
    return table


def read_guarantee(path: Path) -> Guarantee:
    """Read what `--save` wrote, or what `--json` printed."""
    data = _json(path, _text(path))
    if isinstance(data, dict) and isinstance(data.get("guarantee"), dict):
        data = data["guarantee"]
    from discreet.privacy import Guarantee

    try:
        guarantee = Guarantee.from_dict(data)
        counted = all(isinstance(count, int) and count > 0 for _, count in guarantee.pieces)
        alike = all(piece.neighbours == guarantee.neighbours for piece, _ in guarantee.pieces)
        usable = (
            counted and alike and guarantee.inexactness < 1 and all(0 <= x < math.inf for x in _numbers(data))
        )
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        reason = (
            str(error) if isinstance(error, ValueError) else "a part of it is missing or of the wrong kind"
        )
        raise RequestError(
            f"{path} must be a guarantee written by `discreet account ... --save FILE`: {reason}"
        ) from None
    if not usable:
        raise RequestError(
            f"{path} must be a guarantee written by `discreet account ... --save FILE`, unchanged: "
            "a value in it is out of range; save it again"
        )
    return guarantee


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    return _json(path, _text(path))


def _numbers(data: object) -> Iterator[float]:
    """Every number in plain values; none of a guarantee is negative or infinite."""
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list):
        for item in data:
            yield from _numbers(item)
    elif isinstance(data, (int, float)):
        yield data


def write_guarantee(path: Path, guarantee: Guarantee) -> None:
    """Write a guarantee where `compose` finds it."""
    try:
        path.write_text(guarantee.to_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise RequestError(f"--save cannot write {path}: {_why(error)}; name another file") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise RequestError(f"FILE {path} cannot be read: {_why(error)}; check the path") from None
    except UnicodeDecodeError:
        raise RequestError(
            f"FILE {path} cannot be read: it is not UTF-8 text; save it as CSV or JSON"
        ) from None


def _json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{path} must be JSON, it is not: {error}; write it again") from None


def _why(error: OSError) -> str:
    return (error.strerror or "it fails").lower()
