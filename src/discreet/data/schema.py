"""`Schema`: what is publicly known of a table before anyone looks at it."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, field_validator

from discreet.data.columns import TODO, AnyColumn, Scale
from discreet.data.encoding import Encoding, Records, chosen
from discreet.data.errors import DataError, Declared, SchemaError
from discreet.data.reading import source

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Schema(Declared):
    """The columns of a table with their public bounds or values.

    Everything here is declared by a person from public knowledge: the protocol of
    the study, the range of the instrument, a code book. Nothing is ever read off the
    data, because a smallest value, a largest value or a list of categories that
    occur is about the people in the table.

    Args:
        columns: each column by name. A table may have others; they are not read.
        title: for people.
        about: for people, such as where the table comes from.
        missing_marks: texts that mean "no value", unless a column declares them as a value.
        separator: between the cells of a CSV file.

    Example:
        >>> from discreet.data import Binary, Category, Integer
        >>> schema = Schema(
        ...     columns={
        ...         "age": Integer(lower=18, upper=98, unit="years"),
        ...         "sex": Category(values=("female", "male")),
        ...         "ill": Binary(values=("no", "yes")),
        ...     }
        ... )
        >>> table = {"age": [18, 58, 130], "sex": ["male", "female", "male"], "ill": ["yes", "no", "no"]}
        >>> records = schema.encode(table, target="ill", intercept=True)
        >>> records.features
        ('age', 'sex=female', 'sex=male', 'intercept')
        >>> records["x"][:, 0], records["y"]
        (array([0. , 0.5, 1. ]), array([1., 0., 0.]))
    """

    title: str | None = None
    about: str | None = None
    missing_marks: tuple[str, ...] = ("", "NA", "N/A", "NaN", "nan", "null")
    separator: str = ","
    columns: Annotated[dict[str, AnyColumn], Field(min_length=1)]

    @field_validator("missing_marks", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("separator")
    @classmethod
    def _one_character(cls, value: str) -> str:
        if len(value.encode()) != 1 or value in {'"', "\n", "\r"}:
            raise ValueError("it must be one plain character, such as ',' or ';'")
        return value

    @field_validator("columns", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"it must be a table of columns, got {type(value).__name__}")  # noqa: TRY004
        for name in value:
            if not isinstance(name, str) or not name.strip() or name != name.strip():
                raise ValueError("every column needs a name without spaces around it")
        return value

    # --- files ------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a schema from TOML."""
        place = Path(path)
        if not place.is_file():
            raise SchemaError(f"there is no file {place}; Schema.draft(table) begins one")
        problem = None
        try:
            values = tomllib.loads(place.read_bytes().decode("utf-8-sig"))
        except UnicodeDecodeError:
            values, problem = {}, "it must be text in UTF-8"
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            values, problem = {}, " ".join(str(error).split())
        if problem is None:
            try:
                return cls.of(values)
            except SchemaError as error:
                problem = str(error)
        raise SchemaError(f"{place.name}: {problem}")

    def write(self, path: str | Path) -> Path:
        """Write the schema as TOML; refuses to replace a file."""
        place = Path(path)
        with place.open("x", encoding="utf-8") as stream:
            stream.write(self.to_toml())
        return place

    def to_toml(self) -> str:
        """The schema as TOML."""
        settings = self.to_dict()
        columns = settings.pop("columns")
        lines = [f"{name} = {toml_value(value)}" for name, value in settings.items()]
        for name, column in columns.items():
            lines += ["", f"[columns.{toml_key(name)}]"]
            lines += [f"{setting} = {toml_value(value)}" for setting, value in column.items()]
        return "\n".join(lines).lstrip("\n") + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain values, without what was left at its default."""
        settings = self.model_dump(mode="json", exclude_defaults=True, exclude={"columns"})
        columns = {
            name: {"kind": column.kind, **column.model_dump(mode="json", exclude_defaults=True)}
            for name, column in self.columns.items()
        }
        return {**settings, "columns": columns}

    def hash(self) -> str:
        """SHA-256 of the schema, for provenance."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    @staticmethod
    def draft(table: Any, *, separator: str = ",") -> str:
        """Begin a schema, as TOML: the table's column names and types, and nothing else of it.

        Every bound and every list of values says "TODO", and a schema that still says
        so is refused: bounds read off the data would tell of the people in it.
        """
        reader = source(table, separator)
        names = reader.names()
        problem = _unlikely_header(names)
        if problem is not None:
            raise DataError(f"the first line of {reader.label} must hold column names, got {problem}")
        frame = next(reader.batches(names, 1000), None)
        lines = _DRAFT.splitlines()
        if separator != ",":
            lines += [f"separator = {toml_value(separator)}"]
        for name in names:
            kind = "category" if frame is None else _guess(frame[name])
            unfilled = ("values",) if kind == "category" else ("lower", "upper")
            lines += ["", f"[columns.{toml_key(name)}]", f'kind = "{kind}"']
            lines += [f'{setting} = "{TODO}"' for setting in unfilled]
        return "\n".join(lines) + "\n"

    # --- encoding ---------------------------------------------------------------

    def encoding(
        self,
        *,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        scale: str = "unit",
        intercept: bool = False,
        drop_first: bool = False,
        row_norm: float | None = None,
    ) -> Encoding:
        """How a table of this schema becomes records; needs no data, so a plan can use it.

        Args:
            target: the column of "y", or a threshold on it such as "rings >= 10".
            columns: the columns of "x"; by default all but the target.
            scale: "unit" maps declared bounds to [0, 1], "centred" to [-0.5, 0.5].
            intercept: add the constant 1 as the last feature.
            drop_first: give a category's first value no feature.
            row_norm: shorten rows of "x" to this Euclidean norm.
        """
        if scale not in list(Scale):
            raise SchemaError(f"scale must be 'unit' or 'centred', got {scale!r}")
        if row_norm is not None and not (math.isfinite(row_norm) and row_norm > 0):
            raise SchemaError(f"row_norm must be a positive number, got {row_norm!r}")
        return Encoding(
            schema=self,
            target=target,
            columns=chosen(self, target, columns),
            scale=Scale(scale),
            intercept=intercept,
            drop_first=drop_first,
            clip_norm=row_norm,
        )

    def encode(self, table: Any, **options: Any) -> Records:
        """Read a table into records: `encoding(**options).records(table)`."""
        return self.encoding(**options).records(table)


_DRAFT = f"""\
# Names and types come from the table, and nothing else does. Replace every "{TODO}" from public knowledge:
# the study's protocol, the instrument's range, a code book. The smallest and the largest value in the table,
# and the categories that occur in it, are facts about the people in it: a bound read off the data breaks
# the guarantee. Kinds: real and integer (lower, upper), category, ordinal (from low to high) and binary
# (values). Remove the columns that are not needed.
"""


def _guess(cells: Any) -> str:
    import polars as pl

    if cells.dtype.is_integer():
        return "integer"
    if cells.dtype.is_float() or cells.dtype.is_decimal():
        return "real"
    if cells.dtype != pl.String:
        return "category"
    text = cells.str.strip_chars()
    text = text.filter(text.is_not_null() & ~text.is_in(["", "NA", "NaN", "null"]))
    if not len(text) or text.cast(pl.Float64, strict=False).is_null().any():
        return "category"
    return "real" if text.str.contains(r"[.eE]").any() else "integer"


def _unlikely_header(names: Sequence[str]) -> str | None:
    if any(not name.strip() for name in names):
        return "a name that is empty"
    if len(set(names)) < len(names):
        return "a name twice"
    if any(re.match(r"[=+@]|-?[\d.]", name.strip()) for name in names):
        return "numbers; is it a record?"
    return None


def toml_value(value: Any) -> str:
    """A plain value as TOML writes it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """A key as TOML writes it."""
    return name if _BARE.fullmatch(name) else toml_value(name)
