"""Kinds of columns: what each may hold, by public declaration, and how it becomes numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from discreet.data.errors import DataError, Declared, rows

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]

TODO = "TODO"
"""What a drafted schema says where a person must decide; a schema with it is refused."""


OutOfRange = Literal["clip", "refuse"]
"""What happens to a value outside the declared bounds: moved to the nearest bound, or the table refused."""

Missing = Literal["refuse", "impute", "category"]
"""What happens to a missing value: the table refused, a declared constant, or a category of its own."""


def _filled(value: Any) -> Any:
    if value == TODO:
        raise ValueError("it is still to be filled in, from public knowledge and not from the data")
    return value


def _number(value: Any) -> Any:
    _filled(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"it must be a number, got {type(value).__name__}")  # noqa: TRY004  # for Pydantic
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or abs(number) > 1e300:
        raise ValueError("it must be a finite number up to 1e300; a bound that is not finite bounds nothing")
    return number


def _values(value: Any) -> Any:
    _filled(value)
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("it must be a list of values")
    wrong = {type(item).__name__ for item in value if not isinstance(item, str | int | float | bool)}
    if wrong:
        raise ValueError(f"it must be a list of texts or numbers, got {', '.join(sorted(wrong))} in it")
    if any(isinstance(item, str) and item.strip() == TODO for item in value):
        _filled(TODO)
    kinds = {_kind(item) for item in value}
    if len(kinds) > 1:
        raise ValueError(
            f"it must hold values of one type, got {' and '.join(sorted(kinds))}; quote them all"
        )
    keys = [_key(item) for item in value]
    if len(set(keys)) < len(keys):
        raise ValueError("it must not name a value twice")
    return tuple(value)


Number = Annotated[float, BeforeValidator(_number)]
Value = str | bool | int | float
Values = Annotated[tuple[Value, ...], BeforeValidator(_values)]


def _kind(value: Value) -> str:
    return "text" if isinstance(value, str) else "true or false" if isinstance(value, bool) else "numbers"


def _key(value: Value) -> str | float:
    """What a declared value and a cell are compared by."""
    return value.strip() if isinstance(value, str) else float(value)


class Column(Declared, ABC):
    """One column, by public declaration.

    Attributes:
        missing: what happens to a missing value.
        unit: for people.
        about: for people, such as where the bounds come from.
    """

    missing: Missing = "refuse"
    unit: str | None = None
    about: str | None = None

    @abstractmethod
    def features(self, name: str) -> tuple[str, ...]:
        """Names of the numbers that this column becomes."""

    @abstractmethod
    def encode(self, name: str, cells: pl.Series, scale: Scale) -> Array:
        """One row of features per cell."""

    @abstractmethod
    def outcome(self, name: str, cells: pl.Series) -> Array:
        """One number per cell, for a target: own units, or the number of the category from 0."""

    @abstractmethod
    def squared_norm(self, scale: Scale) -> float:
        """The largest sum of squares of a row of its features."""


class Scale(StrEnum):
    """The interval that a column's declared bounds are mapped to."""

    UNIT = "unit"
    """[0, 1]."""

    CENTRED = "centred"
    """[-0.5, 0.5]."""

    def apply(self, unit: Array) -> Array:
        """From [0, 1]."""
        return unit if self is Scale.UNIT else unit - 0.5

    @property
    def largest(self) -> float:
        """The largest absolute value."""
        return 1.0 if self is Scale.UNIT else 0.5


class Real(Column):
    """A number between declared bounds.

    Attributes:
        lower: the smallest value, from public knowledge.
        upper: the largest.
        out_of_range: "clip" moves a value beyond a bound to it, "refuse" stops.
        impute: the constant for a missing value, with missing = "impute".
    """

    kind: Literal["real"] = "real"
    lower: Number
    upper: Number
    out_of_range: OutOfRange = "clip"
    impute: Number | None = None

    whole: ClassVar[bool] = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.lower >= self.upper:
            raise ValueError(
                f"lower must be below upper, got {self.lower:g} and {self.upper:g}; are they reversed?"
            )
        if self.missing == "category":
            raise ValueError("missing cannot be a category of a number; choose refuse or impute")
        _check_impute(self.missing, self.impute)
        if self.impute is not None and not self.lower <= self.impute <= self.upper:
            raise ValueError("impute must lie within the bounds")
        if self.whole and not all(float(b).is_integer() for b in (self.lower, self.upper, self.impute or 0)):
            raise ValueError("lower, upper and impute of an integer column must be whole numbers")
        return self

    def features(self, name: str) -> tuple[str, ...]:
        return (name,)

    def encode(self, name: str, cells: pl.Series, scale: Scale) -> Array:
        # Halved, so that the width of no finite pair of bounds overflows; the minimum undoes a rounding up.
        unit = (self.outcome(name, cells) / 2 - self.lower / 2) / (self.upper / 2 - self.lower / 2)
        return scale.apply(np.clip(unit, 0.0, 1.0))[:, None]

    def outcome(self, name: str, cells: pl.Series) -> Array:
        numbers, absent = read_numbers(name, cells)
        if self.whole and (broken := int(np.count_nonzero(numbers[~absent] % 1))):
            raise DataError(f"column {name} must hold whole numbers, got fractions in {rows(broken)}")
        if absent.any():
            if self.impute is None:
                raise _missing(name, absent)
            numbers = np.where(absent, self.impute, numbers)
        outside = int(np.count_nonzero((numbers < self.lower) | (numbers > self.upper)))
        if outside and self.out_of_range == "refuse":
            raise DataError(
                f"column {name} must lie between {self.lower:g} and {self.upper:g}, got {rows(outside)} "
                "outside; correct the table, or declare out_of_range = 'clip'"
            )
        return np.clip(numbers, self.lower, self.upper)

    def squared_norm(self, scale: Scale) -> float:
        return scale.largest**2


class Integer(Real):
    """A whole number between declared bounds; otherwise like `Real`."""

    kind: Literal["integer"] = "integer"  # pyright: ignore[reportIncompatibleVariableOverride]
    whole: ClassVar[bool] = True


class Category(Column):
    """One of several declared values without order: one 0-or-1 feature for each.

    Attributes:
        values: every value there can be, from public knowledge.
        impute: the value for a missing cell, with missing = "impute".
        other: the declared value that stands in for an undeclared one; without it, an
            undeclared value is refused.
    """

    kind: Literal["category"] = "category"
    values: Values
    impute: Value | None = None
    other: Value | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.values) < 2:
            raise ValueError("values must be at least two, got one; a constant says nothing")
        _check_impute(self.missing, self.impute)
        for setting in ("impute", "other"):
            value = getattr(self, setting)
            if value is not None and _key(value) not in map(_key, self.values):
                raise ValueError(f"{setting} must be one of the declared values")
        return self

    def features(self, name: str) -> tuple[str, ...]:
        extra = ("(missing)",) if self.missing == "category" else ()
        return tuple(f"{name}={_text(value)}" for value in (*self.values, *extra))

    def encode(self, name: str, cells: pl.Series, scale: Scale) -> Array:  # noqa: ARG002  # 0 or 1 in any scale
        codes = self.outcome(name, cells)
        return (codes[:, None] == np.arange(len(self.features(name)))).astype(np.float64)

    def outcome(self, name: str, cells: pl.Series) -> Array:
        places = {_key(value): place for place, value in enumerate(self.values)}
        codes, absent = read_codes(name, cells, places)
        if absent.any():
            if self.missing == "refuse":
                raise _missing(name, absent)
            stand_in = len(self.values) if self.impute is None else places[_key(self.impute)]
            codes = np.where(absent, stand_in, codes)
        unknown = codes < 0
        if unknown.any():
            if self.other is None:
                raise DataError(
                    f"column {name} must hold one of its {len(places)} declared values, got others in "
                    f"{rows(int(unknown.sum()))}; correct the table, or declare the value that is missing"
                )
            codes = np.where(unknown, places[_key(self.other)], codes)
        return codes.astype(np.float64)

    def squared_norm(self, scale: Scale) -> float:  # noqa: ARG002
        return 1.0


class Ordinal(Category):
    """One of several declared values from low to high: one feature, evenly spaced."""

    kind: Literal["ordinal"] = "ordinal"  # pyright: ignore[reportIncompatibleVariableOverride]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.missing == "category":
            raise ValueError(f"missing cannot be a category of {self.kind} values; choose refuse or impute")
        return self

    def features(self, name: str) -> tuple[str, ...]:
        return (name,)

    def encode(self, name: str, cells: pl.Series, scale: Scale) -> Array:
        return scale.apply(self.outcome(name, cells) / (len(self.values) - 1))[:, None]

    def squared_norm(self, scale: Scale) -> float:
        return scale.largest**2


class Binary(Ordinal):
    """One of two declared values, the second of which counts as 1; 0 and 1 unless declared."""

    kind: Literal["binary"] = "binary"  # pyright: ignore[reportIncompatibleVariableOverride]
    values: Values = (0, 1)

    @model_validator(mode="after")
    def _two(self) -> Self:
        if len(self.values) != 2:
            raise ValueError(f"values must be two, got {len(self.values)}; more make a category")
        return self

    def features(self, name: str) -> tuple[str, ...]:
        return (name,) if self.values == (0, 1) else (f"{name}={_text(self.values[1])}",)


AnyColumn = Annotated[Real | Integer | Category | Ordinal | Binary, Field(discriminator="kind")]


# --- cells -------------------------------------------------------------------------


def read_numbers(name: str, cells: pl.Series) -> tuple[Array, NDArray[np.bool_]]:
    """The cells as finite numbers, and where one is missing."""
    import polars as pl

    if not (cells.dtype == pl.String or cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)):
        raise DataError(f"column {name} must hold numbers, got cells of type {_type(cells)}")
    numbers = cells.cast(pl.Float64, strict=False)
    absent = cells.is_null() | numbers.is_nan().fill_null(value=False)
    wrong = int((numbers.is_null() & ~absent).sum())
    if wrong:
        raise DataError(
            f"column {name} must hold numbers, got text or formulas in {rows(wrong)}; "
            "correct the table, or list the text under missing_marks if it means that the value is missing"
        )
    infinite = int(numbers.is_infinite().fill_null(value=False).sum())
    if infinite:
        raise DataError(f"column {name} must hold finite numbers, got infinite ones in {rows(infinite)}")
    return numbers.fill_null(0.0).fill_nan(0.0).to_numpy().astype(np.float64), absent.to_numpy()


def read_codes(
    name: str, cells: pl.Series, places: dict[str | float, int]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Each cell's place among declared values, -1 where it has none, and where one is missing."""
    import polars as pl

    numeric = not any(isinstance(key, str) for key in places)
    if cells.dtype == pl.String:
        keys = cells
        if numeric:
            truth = keys.str.to_lowercase().replace({"true": "1", "false": "0"})
            keys = truth.cast(pl.Float64, strict=False)
    elif numeric and (cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)):
        keys = cells.cast(pl.Float64, strict=False)
    elif (
        cells.dtype.is_integer()
        or cells.dtype in (pl.Boolean, pl.Categorical, pl.Null)
        or cells.dtype == pl.Enum
    ):
        keys = cells.cast(pl.String)
    else:
        kind = "numbers" if numeric else "text"
        raise DataError(f"column {name} must hold {kind}, got cells of type {_type(cells)}")
    absent = cells.is_null()
    if cells.dtype.is_float():
        absent = absent | cells.is_nan().fill_null(value=False)
    codes = keys.replace_strict(
        old=list(places), new=list(places.values()), default=-1, return_dtype=pl.Int64
    ).fill_null(-1)
    return codes.to_numpy().astype(np.int64), absent.to_numpy()


def _type(cells: pl.Series) -> str:
    return str(cells.dtype.base_type())


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _missing(name: str, absent: NDArray[np.bool_]) -> DataError:
    return DataError(
        f"column {name} must not be empty, got no value in {rows(int(absent.sum()))}; "
        "declare missing = 'impute' with a public constant, or complete the table"
    )


def _check_impute(missing: Missing, impute: Value | None) -> None:
    if (missing == "impute") != (impute is not None):
        raise ValueError("missing = 'impute' and the constant impute = ... go together; give both or neither")
