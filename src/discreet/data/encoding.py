"""`Encoding`: from the cells of a table to the records of a model, by declared bounds only."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.columns import Array, Binary, Category, Column, Ordinal, Real, Scale
from discreet.data.errors import DataError, SchemaError, nearest
from discreet.data.reading import BATCH, WHOLE, Source, source

if TYPE_CHECKING:
    import polars as pl

    from discreet.data.schema import Schema

_THRESHOLD = re.compile(r"(?P<name>.+?)\s*(?P<sign>>=|<=|==|>|<)\s*(?P<value>[^<>=]+)")
_COMPARE = {">=": np.greater_equal, "<=": np.less_equal, ">": np.greater, "<": np.less, "==": np.equal}


class Records(dict[str, Array]):
    """Named arrays as a model takes them, that do not print themselves.

    Attributes:
        features: the names of the columns of "x".
    """

    def __init__(self, arrays: dict[str, Array], features: tuple[str, ...]) -> None:
        super().__init__(arrays)
        self.features = features

    def __repr__(self) -> str:
        return f"<records {', '.join(self)} with {len(self.features)} features: sensitive>"


@dataclass(frozen=True)
class Encoding:
    """How a table becomes records: public, made without data.

    Made by `Schema.encoding`.

    Attributes:
        schema: the declaration.
        target: the column of "y", or a threshold on it such as "rings >= 10".
        columns: the columns of "x", in order.
        scale: the interval for numbers.
        intercept: whether the last feature is the constant 1.
        drop_first: whether a category's first value has no feature.
        clip_norm: the declared limit on a row's norm, to which longer rows are shortened.
    """

    schema: Schema
    target: str | None
    columns: tuple[str, ...]
    scale: Scale = Scale.UNIT
    intercept: bool = False
    drop_first: bool = False
    clip_norm: float | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns of "x"."""
        found = [feature for name in self.columns for feature in self._kept(name)]
        return (*found, "intercept") if self.intercept else tuple(found)

    @property
    def row_norm(self) -> float:
        """A bound on the Euclidean norm of every row of "x", from the declaration alone."""
        squares = [self.schema.columns[name].squared_norm(self.scale) for name in self.columns]
        largest = math.sqrt(math.fsum([*squares, float(self.intercept)])) * (1 + 1e-12)
        return largest if self.clip_norm is None else min(largest, self.clip_norm)

    def records(self, table: Any) -> Records:
        """Read a whole table: a path, a frame of any common library, or a dict of columns."""
        reader, names = self._reader(table)
        frame = reader.whole(names)
        if not len(frame):
            raise DataError(f"{reader.label} has no rows; there is nothing to infer from")
        return self._encode(frame)

    def batches(self, table: Any, *, rows: int = BATCH, part: slice = WHOLE) -> Iterator[Records]:
        """Read a table in pieces of at most `rows` rows, for one larger than memory.

        A refusal counts the rows of one piece.

        Args:
            table: as `records` takes it.
            rows: of a piece, at most.
            part: which rows to read, where several processes share a table.
        """
        reader, names = self._reader(table)
        empty = True
        for frame in reader.batches(names, rows, part):
            if len(frame):
                empty = False
                yield self._encode(frame)
        if empty:
            raise DataError(f"{reader.label} has no rows; there is nothing to infer from")

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, for provenance."""
        return {
            "schema": self.schema.hash(),
            "target": self.target,
            "columns": list(self.columns),
            "scale": str(self.scale),
            "intercept": self.intercept,
            "drop_first": self.drop_first,
            "clip_norm": self.clip_norm,
        }

    # --- inside -----------------------------------------------------------------

    def _reader(self, table: Any) -> tuple[Source, list[str]]:
        reader = source(table, self.schema.separator)
        names = list(self.columns)
        if self.target is not None and (name := target_column(self.schema, self.target)[0]) not in names:
            names.append(name)
        reader.check(names)
        return reader, names

    def _kept(self, name: str) -> tuple[str, ...]:
        features = self.schema.columns[name].features(name)
        return features[1:] if self._drops(name) else features

    def _drops(self, name: str) -> bool:
        column = self.schema.columns[name]
        return self.drop_first and isinstance(column, Category) and not isinstance(column, Ordinal)

    def _encode(self, frame: pl.DataFrame) -> Records:
        arrays: dict[str, Array] = {}
        if self.columns or self.intercept:
            x = np.ones((len(frame), len(self.features)))
            start = 0
            for name in self.columns:
                part = self.schema.columns[name].encode(name, self._cells(frame, name), self.scale)
                part = part[:, 1:] if self._drops(name) else part
                x[:, start : start + part.shape[1]] = part
                start += part.shape[1]
            arrays["x"] = x if self.clip_norm is None else _shortened(x, self.clip_norm)
        if self.target is not None:
            name, compare = target_column(self.schema, self.target)
            y = self.schema.columns[name].outcome(name, self._cells(frame, name))
            arrays["y"] = y if compare is None else _COMPARE[compare[0]](y, compare[1]).astype(np.float64)
        return Records(arrays, self.features)

    def _cells(self, frame: pl.DataFrame, name: str) -> pl.Series:
        """The cells of a column, with what means 'missing' made null."""
        import polars as pl

        cells = frame[name]
        if cells.dtype in (pl.Categorical, pl.Enum):
            cells = cells.cast(pl.String)
        if cells.dtype != pl.String:
            return cells
        cells = cells.str.strip_chars()
        column = self.schema.columns[name]
        declared = {str(value).strip() for value in getattr(column, "values", ())}
        marks = [mark for mark in self.schema.missing_marks if mark not in declared]
        return cells.set(cells.is_in(marks).fill_null(value=False), None)


def target_column(schema: Schema, target: str) -> tuple[str, tuple[str, float] | None]:
    """The column that a target names, and the threshold on it if there is one."""
    if target in schema.columns:
        return target, None
    found = _THRESHOLD.fullmatch(target.strip())
    name = found["name"] if found else target
    if name not in schema.columns:
        raise SchemaError(f"the schema has no column {name} for the target; {nearest(name, schema.columns)}")
    assert found is not None  # noqa: S101  # otherwise the target itself would be a column
    column = schema.columns[name]
    if not isinstance(column, Real):
        raise SchemaError(
            f"a threshold needs a target of numbers, got {name} of kind {column.kind}; choose another column"
        )
    try:
        value = float(found["value"])
    except ValueError:
        value = math.nan
    if not column.lower <= value <= column.upper:
        raise SchemaError(f"the threshold on {name} must be a number between its declared bounds")
    return name, (found["sign"], value)


def chosen(schema: Schema, target: str | None, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns of "x": those named, or all but the target."""
    outcome = None if target is None else target_column(schema, target)[0]
    if columns is None:
        return tuple(name for name in schema.columns if name != outcome)
    for name in columns:
        if name not in schema.columns:
            raise SchemaError(f"the schema has no column {name}; {nearest(name, schema.columns)}")
    if len(set(columns)) < len(columns):
        raise SchemaError("columns must not name a column twice")
    if outcome in columns:
        raise SchemaError(
            f"column {outcome} is the target and cannot be among the features too; take it out of them"
        )
    return tuple(columns)


def outcomes(column: Column) -> int | None:
    """How many values a target of this kind takes, if they are listed."""
    if isinstance(column, Binary):
        return 2
    return len(column.values) if isinstance(column, Category) else None


def _shortened(x: Array, norm: float) -> Array:
    lengths = np.linalg.norm(x, axis=1)
    # The last factor keeps a rounded norm from exceeding the limit.
    factor = np.where(lengths > norm, norm / np.maximum(lengths, norm) * (1 - 1e-15), 1.0)
    return x * factor[:, None]
