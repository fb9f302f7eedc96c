"""Readers: a file or a frame becomes columns of cells, only those that are asked for."""

from __future__ import annotations

import csv
import gzip
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.data.errors import DataError, nearest

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

BATCH = 65_536
"""Rows per piece of a table that is read in pieces."""

WHOLE = slice(None)
"""All rows."""


class Source(ABC):
    """A table that has names and can give cells."""

    def __init__(self, label: str) -> None:
        self.label = label

    @abstractmethod
    def names(self) -> list[str]:
        """The names of its columns."""

    @abstractmethod
    def batches(self, names: Sequence[str], size: int, part: slice = WHOLE) -> Iterator[pl.DataFrame]:
        """The named columns, in pieces of about `size` rows; `part` are the rows to read."""

    @abstractmethod
    def whole(self, names: Sequence[str]) -> pl.DataFrame:
        """The named columns."""

    def check(self, wanted: Sequence[str]) -> None:
        """Refuse a table without the wanted columns, or with one of them twice."""
        names = self.names()
        known = set(names)
        absent = [name for name in wanted if name not in known]
        if absent:
            found = len(wanted) - len(absent)
            # Where hardly a name is known, the first line may be a person's record: nothing of it is shown.
            if 2 * found >= len(wanted):
                advice = nearest(absent[0], [name for name in names if name not in wanted])
                if not advice.startswith("did you mean"):
                    advice = "correct the header, or the schema"
            else:
                advice = "is its first line a header, and the separator the declared one?"
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            raise DataError(f"{self.label} has no column {absent[0]}{more} of the schema; {advice}")
        if len(known) < len(names):
            for name in wanted:
                if (times := names.count(name)) > 1:
                    raise DataError(f"{self.label} has {times} columns named {name}; rename all but one")


class _Scanned(Source):
    """A file that Polars reads lazily."""

    def __init__(self, path: Path, scan: Callable[..., pl.LazyFrame], kind: str) -> None:
        super().__init__(path.name)
        self.path, self.scan, self.kind = path, scan, kind

    def lazy(self, names: Sequence[str]) -> pl.LazyFrame:
        import polars as pl

        return self.scan(self.path).select([pl.col(name) for name in names])

    def names(self) -> list[str]:
        return self._guarded(lambda: self.scan(self.path).collect_schema().names())

    def whole(self, names: Sequence[str]) -> pl.DataFrame:
        return self._guarded(lambda: self.lazy(names).collect(engine="streaming"))

    def batches(self, names: Sequence[str], size: int, part: slice = WHOLE) -> Iterator[pl.DataFrame]:
        start, length = part.start or 0, None if part.stop is None else part.stop - (part.start or 0)
        lazy = self.lazy(names) if part == WHOLE else self.lazy(names).slice(start, length)
        pieces = self._guarded(lambda: iter(lazy.collect_batches(chunk_size=size)))
        while (piece := self._guarded(lambda: next(pieces, None))) is not None:
            yield from piece.iter_slices(size)

    def _guarded(self, step: Callable[[], T]) -> T:
        """Run a step of Polars, whose messages quote the data."""
        import polars as pl

        try:
            return step()
        except (pl.exceptions.PolarsError, OSError, ValueError, pl.exceptions.PanicException):
            pass
        raise DataError(self.unreadable())

    def unreadable(self) -> str:
        return f"{self.label} could not be read as {self.kind}; was it saved as that, and completely?"


class CsvSource(_Scanned):
    """A CSV file in UTF-8, every cell text."""

    def __init__(self, path: Path, separator: str) -> None:
        import polars as pl

        def scan(place: Path) -> pl.LazyFrame:
            return pl.scan_csv(
                place, separator=separator, infer_schema=False, glob=False, missing_columns="raise",
                with_column_names=self._unique,
            )  # fmt: skip

        super().__init__(path, scan, "CSV")
        self.separator = separator
        self._names: list[str] | None = None

    def names(self) -> list[str]:
        """The header, with duplicates as they stand there."""
        if self._names is None:
            self._names = self._header()
        return self._names

    def _header(self) -> list[str]:
        problem = None
        try:
            with self._open() as stream:
                line = next(csv.reader(stream, delimiter=self.separator), None)
        except (UnicodeDecodeError, EOFError, OSError, csv.Error) as error:
            line, problem = None, type(error)
        if problem is not None:
            raise DataError(self.unreadable())
        if not line or not any(name.strip() for name in line):
            raise DataError(f"{self.label} must begin with a line of column names, got an empty first line")
        return [name.strip() for name in line]

    def _unique(self, found: list[str]) -> list[str]:
        """Names for Polars: the header's, a repeated one marked; its own where it sees another header."""
        if len(found) != len(self.names()):
            return (
                found  # an error in here would be a panic there; the columns that are wanted will be missing
            )
        seen: dict[str, int] = {}
        unique = []
        for name in self.names():
            seen[name] = times = seen.get(name, 0) + 1
            unique.append(name if times == 1 else f"{name}\0{times}")
        return unique

    def _open(self) -> io.TextIOBase:
        reader = gzip.open if self.path.suffix == ".gz" else open
        raw = reader(self.path, "rb")
        return io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")

    def unreadable(self) -> str:
        """Say why, as far as it can be found out without quoting."""
        try:
            with self._open() as stream:
                while stream.read(1 << 20):
                    pass
        except UnicodeDecodeError:
            return f"{self.label} must be text in UTF-8, got another encoding; save it again as CSV UTF-8"
        except (EOFError, OSError):
            return f"{self.label} could not be read to its end; is it a complete file?"
        return (
            f"{self.label} could not be read as CSV; a line with more cells than the header, "
            "or a quotation mark that is not closed, is the usual cause"
        )


class FrameSource(Source):
    """A frame in memory, of any library that Narwhals knows."""

    def __init__(self, frame: Any) -> None:
        import narwhals as nw

        super().__init__("the table")
        self.frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame

    def names(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    def whole(self, names: Sequence[str]) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame([_cells(self.frame[name]).alias(name) for name in names])

    def batches(self, names: Sequence[str], size: int, part: slice = WHOLE) -> Iterator[pl.DataFrame]:
        first, last, _ = part.indices(len(self.frame))
        for start in range(first, last, size):
            yield FrameSource(self.frame[start : min(start + size, last)]).whole(names)


def _cells(series: Any) -> pl.Series:
    """A Narwhals series as a Polars one, without converting through text where it is numeric."""
    import polars as pl

    native = series.to_native()
    if isinstance(native, pl.Series):
        return native if native.dtype != pl.Object else _mixed(native.to_list())
    if series.dtype.is_numeric() and not series.dtype.is_decimal() and not series.is_null().any():
        return pl.Series(series.to_numpy())
    return _mixed(series.to_list())


def _mixed(values: list[Any]) -> pl.Series:
    """Python objects: numbers and texts as texts, which are read with care later; others marked as wrong."""
    import polars as pl

    missing = [_is_missing(value) for value in values]
    plain = all(
        gone or isinstance(value, str | int | float) for gone, value in zip(missing, values, strict=True)
    )
    if not plain:
        return pl.Series(values, dtype=pl.Object)
    texts = [None if gone else _as_text(value) for gone, value in zip(missing, values, strict=True)]
    return pl.Series(texts, dtype=pl.String)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124  # NaN and its kin
    except Exception:  # noqa: BLE001  # an array, or anything else that does not compare: not a cell
        return False


def _as_text(value: str | float) -> str:
    try:
        return str(value)
    except ValueError:
        return "inf"  # a whole number with thousands of digits


def source(table: Any, separator: str) -> Source:
    """Whatever was given, as a table to read."""
    if isinstance(table, str | Path):
        return _file(Path(table), separator)
    import narwhals as nw
    import polars as pl

    if isinstance(table, Mapping):
        table = _from_mapping(table)
    elif isinstance(table, pl.LazyFrame):
        table = _collected(table)
    try:
        frame = nw.from_native(table)
    except TypeError:
        frame = None
    if frame is None or not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise DataError(
            "a table is a path, a Polars, pandas or Arrow table, or a dict of columns, "
            f"got {type(table).__name__}"
        )
    return FrameSource(frame)


def _collected(lazy: Any) -> pl.DataFrame:
    import polars as pl

    try:
        return lazy.collect(engine="streaming")
    except pl.exceptions.PolarsError:
        pass
    raise DataError("the lazy table could not be collected; collect it before encoding to see why")


def _from_mapping(table: Mapping[Any, Any]) -> pl.DataFrame:
    import polars as pl

    columns = {str(name): list(islice(values, None)) for name, values in table.items()}
    if len({len(values) for values in columns.values()}) > 1:
        raise DataError("the columns of a table must be equally long, got different lengths")
    return pl.DataFrame({name: _mixed(values) for name, values in columns.items()})


def _file(path: Path, separator: str) -> Source:
    import polars as pl

    if not path.exists():
        siblings = [p.name for p in islice(path.parent.iterdir(), 1000)] if path.parent.is_dir() else []
        advice = nearest(path.name, siblings)
        raise DataError(
            f"there is no file {path}" + (f"; {advice}" if "mean" in advice else "; check the path")
        )
    if not path.is_file():
        raise DataError(f"{path} is not a file")
    if path.stat().st_size == 0:
        raise DataError(f"{path.name} is empty; there is nothing to read")
    suffixes = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffixes in {"csv", "tsv", "txt"}:
        return CsvSource(path, "\t" if suffixes == "tsv" else separator)
    if suffixes in {"parquet", "pq"}:
        return _Scanned(path, lambda place: pl.scan_parquet(place, glob=False), "Parquet")
    if suffixes in {"arrow", "feather", "ipc"}:
        return _Scanned(path, pl.scan_ipc, "Arrow")
    raise DataError(f"{path.name} must end in .csv, .csv.gz, .tsv, .parquet or .arrow to be read")
