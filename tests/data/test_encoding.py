"""From tables to records: by the declaration alone, the same from every kind of table."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.data import (
    Binary,
    Category,
    DataError,
    Encoding,
    Integer,
    Ordinal,
    Real,
    Schema,
    SchemaError,
    load,
    names,
    synthetic_clinic,
)

SCHEMA = Schema(
    columns={
        "age": Integer(lower=20, upper=100, missing="impute", impute=60),
        "dose": Real(lower=-1, upper=3),
        "group": Category(values=("A", "B", "AB"), missing="category"),
        "ward": Category(values=(1, 2, 3), other=3),
        "pain": Ordinal(values=("none", "some", "much"), missing="impute", impute="some"),
        "ill": Binary(values=("no", "yes")),
    }
)
TABLE = {
    "age": [20, 60, 120, None],
    "dose": [-1.0, 1.0, 3.0, 9.5],
    "group": ["A", "AB", None, "B"],
    "ward": [1, 2, 7, 3],
    "pain": ["none", "much", "some", None],
    "ill": ["yes", "no", "no", "yes"],
    "name": ["Ann", "Bob", "Cid", "Dee"],
}
X = [
    # age, dose, A, B, AB, missing, 1, 2, 3, pain, intercept
    [0.0, 0.0, 1, 0, 0, 0, 1, 0, 0, 0.0, 1],
    [0.5, 0.5, 0, 0, 1, 0, 0, 1, 0, 1.0, 1],
    [1.0, 1.0, 0, 0, 0, 1, 0, 0, 1, 0.5, 1],
    [0.5, 1.0, 0, 1, 0, 0, 0, 0, 1, 0.5, 1],
]


def as_csv(folder: Path) -> Any:
    pl.DataFrame(TABLE).write_csv(folder / "t.csv", include_bom=True)
    return folder / "t.csv"


def as_gzip(folder: Path) -> Any:
    import gzip

    path = folder / "t.csv.gz"
    path.write_bytes(gzip.compress(as_csv(folder).read_bytes()))
    return str(path)


def as_tsv(folder: Path) -> Any:
    pl.DataFrame(TABLE).write_csv(folder / "t.tsv", separator="\t", null_value="NA", line_terminator="\r\n")
    return folder / "t.tsv"


def as_parquet(folder: Path) -> Any:
    pl.DataFrame(TABLE).write_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def as_arrow(folder: Path) -> Any:
    pl.DataFrame(TABLE).write_ipc(folder / "t.arrow")
    return folder / "t.arrow"


FORMS: dict[str, Callable[[Path], Any]] = {
    "csv": as_csv,
    "gzip": as_gzip,
    "tsv": as_tsv,
    "parquet": as_parquet,
    "arrow": as_arrow,
    "dict": lambda _: TABLE,
    "polars": lambda _: pl.DataFrame(TABLE),
    "lazy": lambda _: pl.LazyFrame(TABLE),
    "categorical": lambda _: pl.DataFrame(TABLE).with_columns(pl.col("group").cast(pl.Categorical)),
    "pandas": lambda _: pd.DataFrame(TABLE),
    "pandas objects": lambda _: pd.DataFrame(TABLE).astype(object),
    "pandas categories": lambda _: pd.DataFrame(TABLE).astype({"group": "category", "ward": "category"}),
    "pyarrow": lambda _: pytest.importorskip("pyarrow").table(TABLE),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_table_gives_the_same_records(form: str, tmp_path: Path) -> None:
    table = FORMS[form](tmp_path)
    encoding = SCHEMA.encoding(target="ill", intercept=True)
    records = encoding.records(table)
    np.testing.assert_array_equal(records["x"], X)
    np.testing.assert_array_equal(records["y"], [1, 0, 0, 1])
    assert records.features == encoding.features
    pieces = list(encoding.batches(table, rows=3))
    assert [len(piece["y"]) for piece in pieces] == [3, 1]
    np.testing.assert_array_equal(np.concatenate([piece["x"] for piece in pieces]), X)


def test_features_are_named_before_any_data() -> None:
    encoding = SCHEMA.encoding(target="ill", intercept=True)
    assert encoding.features == (
        "age", "dose", "group=A", "group=B", "group=AB", "group=(missing)", "ward=1", "ward=2", "ward=3",
        "pain", "intercept",
    )  # fmt: skip
    dropped = SCHEMA.encoding(target="ill", drop_first=True)
    assert dropped.features == (
        "age",
        "dose",
        "group=B",
        "group=AB",
        "group=(missing)",
        "ward=2",
        "ward=3",
        "pain",
    )
    np.testing.assert_array_equal(dropped.records(TABLE)["x"], np.delete(np.array(X), [2, 6, 10], axis=1))


def test_centred_scale_and_chosen_columns() -> None:
    records = SCHEMA.encode(TABLE, columns=["dose", "ill", "group"], scale="centred")
    np.testing.assert_array_equal(records["x"][:, :2], [[-0.5, 0.5], [0, -0.5], [0.5, -0.5], [0.5, 0.5]])
    np.testing.assert_array_equal(records["x"][:, 2:].sum(axis=1), 1)
    assert "y" not in records


def test_targets_of_each_kind() -> None:
    def y(target: str) -> list[float]:
        return SCHEMA.encode(TABLE, target=target, columns=[])["y"].tolist()

    assert y("age") == [20, 60, 100, 60]
    assert y("group") == [0, 2, 3, 1]
    assert y("pain") == [0, 2, 1, 1]
    assert y("age >= 60") == [0, 1, 1, 1]
    assert y("age>60") == [0, 0, 1, 0]
    assert y("dose < 0.5") == [1, 0, 0, 0]
    assert "age" not in SCHEMA.encoding(target="age >= 60").features


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "il"}, "no column il for the target; did you mean ill"),
        ({"target": "agee > 3"}, "no column agee for the target; did you mean age"),
        ({"target": "age > 3"}, "must be a number between its declared bounds"),
        ({"target": "age > x"}, "must be a number between its declared bounds"),
        ({"target": "pain > 1"}, "needs a target of numbers, got pain of kind ordinal"),
        ({"columns": ["dos"]}, "no column dos; did you mean dose"),
        ({"columns": ["dose", "dose"]}, "not name a column twice"),
        ({"target": "ill", "columns": ["ill"]}, "is the target and cannot be among the features"),
        ({"scale": "minmax"}, "scale must be 'unit' or 'centred'"),
        ({"row_norm": 0.0}, "row_norm must be a positive number"),
        ({"row_norm": float("nan")}, "row_norm must be a positive number"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        SCHEMA.encoding(**options)


def test_one_person_changes_one_row_only() -> None:
    """What `Rule 1` asks: nothing in an encoding depends on the other rows."""
    encoding = SCHEMA.encoding(target="ill", intercept=True)
    base = encoding.records(TABLE)
    for row in range(4):
        other = {name: [*cells[:row], *cells[row + 1 :]] for name, cells in TABLE.items()}
        np.testing.assert_array_equal(encoding.records(other)["x"], np.delete(base["x"], row, axis=0))


cells = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(-(10**30), 10**30),
        "dose": st.floats(allow_nan=False, allow_infinity=False),
        "group": st.sampled_from(["A", "B", "AB", None]),
        "ward": st.integers(-5, 5),
        "pain": st.sampled_from(["none", "some", "much", None]),
        "ill": st.sampled_from(["no", "yes"]),
    }
)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(cells, min_size=1, max_size=6),
    scale=st.sampled_from(["unit", "centred"]),
    intercept=st.booleans(),
    norm=st.none() | st.floats(1e-3, 10),
)
def test_rows_are_within_the_declared_norm(
    rows: list[dict[str, Any]], scale: str, intercept: bool, norm: float | None
) -> None:
    encoding = SCHEMA.encoding(target="ill", scale=scale, intercept=intercept, row_norm=norm)
    x = encoding.records({name: [row[name] for row in rows] for name in SCHEMA.columns})["x"]
    assert np.linalg.norm(x, axis=1).max() <= encoding.row_norm
    assert norm is None or encoding.row_norm <= norm
    if norm is None:
        assert x.min() >= (0 if scale == "unit" else -0.5)
        assert x.max() <= 1


def test_out_of_range_and_missing_are_refused_where_declared() -> None:
    strict = Schema(columns={"x": Real(lower=0, upper=1, out_of_range="refuse")})
    with pytest.raises(DataError, match=r"column x must lie between 0 and 1, got 2 rows outside"):
        strict.encode({"x": [0.5, 7.25, -3.0]})
    with pytest.raises(DataError, match=r"column x must not be empty, got no value in 2 rows"):
        strict.encode({"x": [0.5, None, float("nan")]})


def test_values_that_look_like_marks_or_numbers() -> None:
    country = Schema(
        columns={"c": Category(values=("NA", "DE")), "b": Binary(), "t": Binary(values=(False, True))}
    )
    records = country.encode({"c": ["NA", " DE "], "b": ["1", "0.0"], "t": ["TRUE", "false"]})
    np.testing.assert_array_equal(records["x"], [[1, 0, 1, 1], [0, 1, 0, 0]])
    typed = country.encode({"c": ["NA", "DE"], "b": [True, False], "t": [1, 0]})
    np.testing.assert_array_equal(typed["x"], records["x"])


def test_records_do_not_print_their_values() -> None:
    records = SCHEMA.encode(TABLE, target="ill")
    assert repr(records) == f"{records}" == "<records x, y with 10 features: sensitive>"


def test_an_encoding_is_public_and_repeatable() -> None:
    encoding = SCHEMA.encoding(target="ill", row_norm=1.0)
    assert encoding == SCHEMA.encoding(target="ill", row_norm=1.0)
    assert encoding.to_dict()["schema"] == SCHEMA.hash()
    assert isinstance(encoding, Encoding)


def test_nothing_in_the_room_reads_a_bound_off_the_data() -> None:
    """No code here asks a column for its extremes, moments or distinct values."""
    folder = Path(dc.data.__file__).parent
    asks = re.compile(r"\.(min|max|mean|std|var|quantile|median|unique|value_counts|describe|n_unique)\(")
    assert [file.name for file in folder.glob("*.py") if asks.search(file.read_text())] == []


def test_a_wide_table_is_read_by_name(tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    count = 100_000
    wide.write_text(",".join(f"c{i}" for i in range(count)) + "\n" + ",".join(["0.5"] * count) + "\n")
    schema = Schema(columns={"c7": Real(lower=0, upper=1), "c99999": Real(lower=0, upper=2)})
    np.testing.assert_array_equal(schema.encode(wide)["x"], [[0.5, 0.25]])


def test_the_synthetic_clinic_is_repeatable_and_within_its_schema() -> None:
    clinic = synthetic_clinic(rows=500, seed=3)
    assert clinic.frame.equals(synthetic_clinic(rows=500, seed=3).frame)
    assert not clinic.frame.equals(synthetic_clinic(rows=500, seed=4).frame)
    strict = {
        name: column.model_copy(update={"out_of_range": "refuse"} if isinstance(column, Real) else {})
        for name, column in clinic.schema.columns.items()
    }
    assert len(Schema(columns=strict).encode(clinic.frame)["x"]) == 500
    assert "nobody in this table exists" in str(clinic.schema.about)
    for rows in (0, True, 2.5):
        with pytest.raises(DataError, match="rows must be a whole number"):
            synthetic_clinic(rows=rows)  # pyright: ignore[reportArgumentType]


SIZES = {
    "abalone": (4177, 2081),
    "adult_train": (32561, 7841),
    "adult_test": (16281, 3846),
    "banknote": (1372, 610),
}


@pytest.mark.skipif(
    not os.environ.get("DISCREET_DATA"), reason="DISCREET_DATA names no folder with the papers' data"
)
@pytest.mark.parametrize("name", [name for name in names() if name != "mnist"])
def test_the_papers_data(name: str) -> None:
    records = load(name).encode()
    assert np.isfinite(records["x"]).all()
    if name in SIZES:
        assert (len(records["y"]), records["y"].sum()) == SIZES[name]
