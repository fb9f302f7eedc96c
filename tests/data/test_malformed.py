"""Tables that are not as declared: one sentence each, and nothing of the data in it.

A marker is planted in every table; it must not be in the message, nor in any exception behind it.
"""

# ruff: noqa: E501  # a corpus reads best with a case per line

import gzip
import traceback
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.data import Binary, Category, DataError, Integer, Ordinal, Real, Schema, SchemaError

WORD, NUMBER = "Zyzzyva4711", 918273645
MARKS = (WORD, str(NUMBER), WORD.lower())

SCHEMA = Schema(
    columns={
        "age": Integer(lower=18, upper=100, out_of_range="refuse"),
        "bmi": Real(lower=10, upper=60, out_of_range="refuse"),
        "sex": Category(values=("female", "male")),
        "ward": Category(values=(1, 2, 3)),
        "pain": Ordinal(values=("none", "some", "much")),
        "ill": Binary(values=("no", "yes")),
    }
)
GOOD: dict[str, Any] = {"age": 40, "bmi": 22.5, "sex": "male", "ward": 2, "pain": "some", "ill": "no"}
HEADER = ",".join(GOOD)
LINE = ",".join(str(value) for value in GOOD.values())


def refused(table: Any, *, schema: Schema = SCHEMA) -> str:
    """The sentence with which a table is refused, after checking that it is one and tells nothing."""
    with pytest.raises((DataError, SchemaError)) as caught:
        schema.encode(table, target="ill")
    return told_nothing(caught.value)


def told_nothing(error: BaseException) -> str:
    message = str(error)
    assert message
    assert "\n" not in message
    assert len(message) < 500
    assert error.__cause__ is None
    everything = "".join(traceback.format_exception(error))
    behind = error.__context__
    while behind is not None:
        everything += str(behind)
        behind = behind.__context__
    assert not [mark for mark in MARKS if mark in message or mark in everything]
    return message


# --- cells -----------------------------------------------------------------------------

WORDS = [
    WORD, f"={WORD}", f"=HYPERLINK(\"{WORD}\")", f"+{NUMBER}+A1", f"@{WORD}", f"{NUMBER}x", f"0x{NUMBER}", f"{NUMBER},5",
    f"1_{NUMBER}", f"{NUMBER} years", f"\u0663{WORD}", f"{WORD}\n{WORD}", f"'{NUMBER}", f"{WORD}\0", "\u200b" + WORD,
    f"<{NUMBER}", f"{NUMBER}%", f"--{NUMBER}", f"{NUMBER}-", "\U0001f600" + WORD, f"{{{WORD}}}", f"%s{WORD}", f"{WORD};DROP",
]  # fmt: skip
NUMBERS = [
    NUMBER, -NUMBER, float(NUMBER), NUMBER + 0.5, NUMBER * 10**300, -NUMBER * 10**400, float("inf"), float("-inf"),
    10**5000 + NUMBER, NUMBER * 1e-300, Decimal(NUMBER),
]  # fmt: skip
OBJECTS = [
    [NUMBER], {WORD: 1}, date(1999, 1, 2), timedelta(days=NUMBER % 1000), WORD.encode(), object(), 1j * NUMBER,
    np.datetime64("2020-01-01"), (WORD,), {NUMBER}, pd.Timestamp("2020-01-01"), pd.NaT, None, float("nan"), "",
]  # fmt: skip


def bad_cells() -> Iterator[Any]:
    yield from WORDS
    yield from OBJECTS
    yield from NUMBERS


@pytest.mark.parametrize("name", GOOD)
def test_bad_cells_in_a_dict(name: str) -> None:
    for cell in bad_cells():
        table = {column: [value, value] for column, value in GOOD.items()}
        table[name] = [table[name][0], cell]
        message = refused(table)
        assert f"column {name} " in message, (cell, message)
        assert "1 row" in message or "type" in message, message


@pytest.mark.parametrize("name", GOOD)
def test_bad_cells_in_csv(name: str, tmp_path: Path) -> None:
    place = list(GOOD).index(name)
    for i, cell in enumerate(["", *WORDS, *NUMBERS[:-1]]):
        cells = [str(value) for value in GOOD.values()]
        with_digits = (
            str(cell) if not isinstance(cell, int) or abs(cell) < 10**4000 else "1" + "0" * 4990 + str(NUMBER)
        )
        cells[place] = '"' + with_digits.replace('"', '""') + '"'
        table = tmp_path / f"{i}.csv"
        table.write_text(f"{HEADER}\n{LINE}\n{','.join(cells)}\n")
        assert f"column {name} " in refused(table), cell


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", GOOD)
def test_columns_of_another_type(name: str, make: Any) -> None:
    columns: list[Any] = [
        [WORD, WORD],
        [date(1999, 1, 2), date(1999, 1, 2)],
        [[NUMBER], [NUMBER]],
        [WORD.encode(), b""],
        [None, None],
        [NUMBER, NUMBER],
        [float("nan"), 1.0],
        [timedelta(1), timedelta(2)],
    ]
    for column in columns:
        frame = make({**{other: [value, value] for other, value in GOOD.items()}, name: column})
        assert f"column {name} " in refused(frame), column


# --- files -----------------------------------------------------------------------------

FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "only a mark": (b"\xef\xbb\xbf", "must begin with a line of column names"),
    "only line ends": (b"\n\n\n", "must begin with a line of column names"),
    "only commas": (b",,,,,\n", "must begin with a line of column names"),
    "only a header": (f"{HEADER}\n".encode(), "has no rows"),
    "a header without an end": (HEADER.encode(), "has no rows"),
    "latin-1": (f"{HEADER}\n{LINE}\n40,22.5,m\u00e4nnlich{WORD},2,some,no\n".encode("latin-1"), "must be text in UTF-8"),
    "latin-1 header": (f"\u00e4ge{WORD},bmi\n{LINE}\n".encode("latin-1"), "must be text in UTF-8"),
    "utf-16": (f"{HEADER}\n{LINE}{WORD}\n".encode("utf-16"), "must be text in UTF-8"),
    "utf-32": (f"{HEADER}\n{LINE}{WORD}\n".encode("utf-32"), "must be text in UTF-8"),
    "no header": (f"{NUMBER},22.5,{WORD},2,some,no\n{LINE}\n".encode(), "is its first line a header"),
    "semicolons": (f"{HEADER}\n{LINE}\n".replace(",", ";").encode(), "the separator the declared one"),
    "tabs": (f"{HEADER}\n{LINE}\n".replace(",", "\t").encode(), "the separator the declared one"),
    "a typo": (f"{HEADER.replace('bmi', 'bmy')}\n{LINE}\n".encode(), "no column bmi of the schema; did you mean bmy"),
    "capitals": (f"{HEADER.upper()}\n{LINE}\n".encode(), "no column age and 5 more of the schema"),
    "a missing column": (b"age,bmi,sex,ward,ill\n40,22.5,male,2,no\n", "no column pain of the schema"),
    "a column twice": (f"{HEADER},age\n{LINE},{NUMBER}\n".encode(), "has 2 columns named age"),
    "a column thrice": (f"age,{HEADER},age\n1,{LINE},{NUMBER}\n".encode(), "has 3 columns named age"),
    "too many cells": (f"{HEADER}\n{LINE}\n{LINE},{WORD}\n".encode(), "more cells than the header"),
    "too few cells": (f"{HEADER}\n{LINE}\n40,22.5\n".encode(), "column sex must not be empty, got no value in 1 row"),
    "an open quote": (f'{HEADER}\n{LINE}\n40,"{WORD},male,2,some,no\n'.encode(), ""),
    "an open quote in the header": (f'"{HEADER}\n{LINE}\n{WORD}\n'.encode(), ""),
    "null bytes": (b"\0" * 100, ""),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), ""),
    "parquet named csv": (b"PAR1" + bytes(range(200)) + b"PAR1", ""),
    "a page": (f"<html><body>{WORD}</body></html>\n".encode(), "is its first line a header"),
    "json": (f'{{"age": {NUMBER}}}\n'.encode(), "is its first line a header"),
    "a very long cell": (f"{HEADER}\n{'9' * 300_000}{WORD},1,male,2,some,no\n".encode(), "column age"),
    "a very long header": (b"a" * 300_000 + f"{WORD}\n1\n".encode(), ""),
    "classic line ends": (f"{HEADER}\r{LINE}{WORD}\r".encode(), ""),
    "an empty line": (f"{HEADER}\n{LINE}\n\n{LINE}\n{',' * 5}\n".encode(), "must not be empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_bad_files(case: str, zipped: bool, tmp_path: Path) -> None:
    content, message = FILES[case]
    table = tmp_path / ("t.csv.gz" if zipped else "t.csv")
    if zipped and not content:
        content, message = gzip.compress(b""), "must begin with a line of column names"
    elif zipped:
        content = gzip.compress(content)
    table.write_bytes(content)
    assert message in refused(table)
    with pytest.raises(DataError) as caught:  # and in pieces
        list(SCHEMA.encoding(target="ill").batches(table, rows=2))
    told_nothing(caught.value)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.csv.gz"])
def test_binary_files_that_are_broken(name: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({column: [value] * 500 for column, value in GOOD.items()}).with_columns(
        note=pl.lit(WORD)
    )
    path = tmp_path / name
    if name.endswith("parquet"):
        frame.write_parquet(path)
    elif name.endswith("arrow"):
        frame.write_ipc(path)
    else:
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    whole = path.read_bytes()
    SCHEMA.encode(path)
    for content in (whole[:4], whole[: len(whole) // 2], whole[:-3], WORD.encode(), LINE.encode() * 9):
        path.write_bytes(content)
        refused(path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "a table is a path"),
        (3, "a table is a path"),
        ([1, 2], "a table is a path"),
        (np.ones((2, 2)), "a table is a path"),
        (pl.Series([NUMBER]), "a table is a path"),
        ({}, "no column age and 5 more"),
        ({"age": [1], "bmi": [1, 2]}, "must be equally long"),
        ("nowhere.csv", "there is no file nowhere.csv"),
        ("/", "is not a file"),
        (pl.DataFrame(GOOD).clear(), "has no rows"),
        (pl.LazyFrame({"age": [WORD]}).select(pl.col("age").cast(pl.Int64)), "could not be collected"),
    ],
)
def test_what_is_no_table(table: Any, message: str) -> None:
    assert message in refused(table)


def test_a_misspelt_file_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "clinic.csv").write_text("a\n")
    assert "did you mean clinic.csv?" in refused(tmp_path / "clinc.csv")
    (tmp_path / "clinic.xlsx").write_bytes(b"PK")
    assert "must end in .csv" in refused(tmp_path / "clinic.xlsx")


# --- at random -------------------------------------------------------------------------

SOUND = f"{HEADER}\n{LINE}\n{LINE}\n".encode()
anything = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(
        [b",", b'"', b"\n", b"\r", b"\0", b"\xff", WORD.encode(), b"=1", b"NaN", b"-", b"1e999", b";"]
    ),
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(0, len(SOUND)), length=st.integers(0, 30), piece=anything)
def test_random_damage_is_refused_or_harmless(tmp_path: Path, start: int, length: int, piece: bytes) -> None:
    table = tmp_path / "t.csv"
    table.write_bytes(SOUND[:start] + piece + SOUND[start + length :])
    try:
        records = SCHEMA.encode(table, target="ill")
    except (DataError, SchemaError) as error:
        told_nothing(error)
    else:
        assert np.isfinite(records["x"]).all()
        assert records["x"].min() >= 0
        assert records["x"].max() <= 1


@settings(max_examples=250, deadline=None)
@given(
    table=st.dictionaries(
        st.sampled_from([*GOOD, "other"]),
        st.lists(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(max_size=5)
            | st.binary(max_size=3)
            | st.sampled_from(["male", "some", "no", 1, 20, WORD, NUMBER])
            | st.dates(),
            min_size=2,
            max_size=2,
        ),
    )
)
def test_random_columns_are_refused_or_harmless(table: dict[str, list[Any]]) -> None:
    full = {**{column: [value, value] for column, value in GOOD.items()}, **table}
    try:
        records = SCHEMA.encode(full, target="ill")
    except (DataError, SchemaError) as error:
        told_nothing(error)
    else:
        assert np.isfinite(records["x"]).all()
        assert records["x"].min() >= 0
        assert records["x"].max() <= 1
