"""Schemas: what a person declares, read, written, drafted, refused."""

import tomllib
from pathlib import Path

import polars as pl
import pytest

from discreet.data import (
    Binary,
    Category,
    DataError,
    Integer,
    Ordinal,
    Real,
    Schema,
    SchemaError,
    load,
    names,
)
from discreet.data.papers import _KNOWN

CLINIC = """
title = "Clinic"
missing_marks = ["", "?"]
separator = ";"

[columns.age]
kind = "integer"
lower = 18
upper = 100
unit = "years"

[columns."blood group"]
kind = "category"
values = ["A", "B", "AB", "0"]
missing = "category"

[columns.pain]
kind = "ordinal"
values = ["none", "some", "much"]
missing = "impute"
impute = "none"

[columns.weight]
kind = "real"
lower = 30.5
upper = 250
out_of_range = "refuse"

[columns.ill]
kind = "binary"
values = ["no", "yes"]
"""


def test_a_schema_goes_through_toml(tmp_path: Path) -> None:
    (tmp_path / "clinic.toml").write_text("\ufeff" + CLINIC, encoding="utf-8")
    schema = Schema.read(tmp_path / "clinic.toml")
    assert schema == Schema(
        title="Clinic",
        missing_marks=("", "?"),
        separator=";",
        columns={
            "age": Integer(lower=18, upper=100, unit="years"),
            "blood group": Category(values=("A", "B", "AB", "0"), missing="category"),
            "pain": Ordinal(values=("none", "some", "much"), missing="impute", impute="none"),
            "weight": Real(lower=30.5, upper=250, out_of_range="refuse"),
            "ill": Binary(values=("no", "yes")),
        },
    )
    assert tomllib.loads(schema.to_toml()) == tomllib.loads(CLINIC)
    assert Schema.read(schema.write(tmp_path / "copy.toml")).hash() == schema.hash()
    with pytest.raises(FileExistsError):
        schema.write(tmp_path / "copy.toml")


def test_odd_names_and_texts_survive_toml() -> None:
    odd = 'a "quoted"\\ näme = [x] # \x7f \U0001f600'
    schema = Schema(
        columns={odd: Category(values=(odd, "'"), about=odd), "1": Real(lower=1e-30, upper=1e300)}
    )
    assert Schema.of(tomllib.loads(schema.to_toml())) == schema


BAD = {
    "reversed": (
        'kind = "real"\nlower = 5\nupper = 1',
        "columns.x: lower must be below upper, got 5 and 1; are they rev",
    ),
    "equal": ('kind = "real"\nlower = 5\nupper = 5', "lower must be below upper"),
    "no bound": ('kind = "real"\nlower = 5', "columns.x.upper: it is missing"),
    "infinite": ('kind = "real"\nlower = 5\nupper = inf', "columns.x.upper: it must be a finite number"),
    "nan": ('kind = "real"\nlower = nan\nupper = 1', "columns.x.lower: it must be a finite number"),
    "huge": (
        f'kind = "integer"\nlower = 0\nupper = {"9" * 400}',
        "columns.x.upper: it must be a finite number",
    ),
    "text": ('kind = "real"\nlower = "5"\nupper = 7', "columns.x.lower: it must be a number, got str"),
    "true": ('kind = "real"\nlower = true\nupper = 7', "columns.x.lower: it must be a number, got bool"),
    "todo": (
        'kind = "real"\nlower = "TODO"\nupper = 7',
        "columns.x.lower: it is still to be filled in, from public",
    ),
    "todo values": ('kind = "category"\nvalues = "TODO"', "columns.x.values: it is still to be filled in"),
    "todo value": (
        'kind = "category"\nvalues = ["a", "TODO"]',
        "columns.x.values: it is still to be filled in",
    ),
    "fraction": ('kind = "integer"\nlower = 0.5\nupper = 7', "must be whole numbers"),
    "key": (
        'kind = "real"\nlower = 5\nuper = 7',
        "columns.x: there is no setting 'uper' here; did you mean upper",
    ),
    "kind": (
        'kind = "intger"\nlower = 5\nupper = 7',
        "columns.x: there is no kind 'intger'; did you mean integer",
    ),
    "no kind": ("lower = 5\nupper = 7", "columns.x.kind: it is missing; it is one of real, integer"),
    "policy": (
        'kind = "real"\nlower = 5\nupper = 7\nout_of_range = "clamp"',
        "out_of_range: it must be clip or refuse, got 'clamp'",
    ),
    "impute": ('kind = "real"\nlower = 5\nupper = 7\nmissing = "impute"', "impute = ... go together"),
    "impute outside": (
        'kind = "real"\nlower = 5\nupper = 7\nmissing = "impute"\nimpute = 9',
        "impute must lie within",
    ),
    "number category": (
        'kind = "real"\nlower = 5\nupper = 7\nmissing = "category"',
        "cannot be a category of a number",
    ),
    "one value": ('kind = "category"\nvalues = ["a"]', "values must be at least two"),
    "twice": ('kind = "category"\nvalues = ["a", "b", " a"]', "must not name a value twice"),
    "mixed": ('kind = "category"\nvalues = ["a", 1]', "values of one type, got numbers and text"),
    "nested": ('kind = "category"\nvalues = ["a", ["b"]]', "list of texts or numbers, got list"),
    "no list": ('kind = "category"\nvalues = "a"', "must be a list of values"),
    "three": ('kind = "binary"\nvalues = ["a", "b", "c"]', "values must be two, got 3"),
    "other": (
        'kind = "category"\nvalues = ["a", "b"]\nother = "c"',
        "other must be one of the declared values",
    ),
    "ordinal category": (
        'kind = "ordinal"\nvalues = ["a", "b"]\nmissing = "category"',
        "cannot be a category of ordinal",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_column_is_refused_in_one_sentence(case: str, tmp_path: Path) -> None:
    body, message = BAD[case]
    (tmp_path / "s.toml").write_text(f"[columns.x]\n{body}\n")
    with pytest.raises(SchemaError, match=message) as caught:
        Schema.read(tmp_path / "s.toml")
    assert str(caught.value).startswith("s.toml: columns")
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "columns: it is missing"),
        (b"[columns]\n", "columns: it must be longer, with at least 1 item, got nothing"),
        (b"columns = 3\n", "columns: it must be a table of columns, got int"),
        (
            b"[colums.x]\nkind = 'binary'\n",
            "no setting 'colums' here; did you mean columns",
        ),
        (b"[columns.x]\nkind = 'binary'\n[columns.x]\n", "s.toml: Cannot declare"),
        (b"[columns.x\n", r"s.toml: .* \(at line 1"),
        (b"title = '\xff'\n", "must be text in UTF-8"),
        (b"separator = ',,'\n[columns.x]\nkind = 'binary'\n", "separator: it must be one plain character"),
        (b"title = 7\n[columns.x]\nkind = 'binary'\n", "title: it must be text in quotes, got 7"),
        (b"[columns.' x']\nkind = 'binary'\n", "every column needs a name without spaces"),
        (b"[columns]\nx = 1\n", "columns.x"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(content)
    with pytest.raises(SchemaError, match=message) as caught:
        Schema.read(tmp_path / "s.toml")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"there is no file .*s\.toml; Schema\.draft"):
        Schema.read(tmp_path / "s.toml")


def test_a_column_made_in_python_is_refused_in_one_sentence() -> None:
    with pytest.raises(SchemaError, match=r"^lower must be below upper, got 2 and 1") as caught:
        Real(lower=2, upper=1)
    assert "\n" not in str(caught.value)
    with pytest.raises(SchemaError, match=r"^columns\.x: "):
        Schema(columns={"x": {"kind": "real", "lower": 2, "upper": 1}})  # pyright: ignore[reportArgumentType]


def test_a_schema_cannot_change() -> None:
    schema = Schema(columns={"x": Binary()})
    with pytest.raises(ValueError, match="frozen"):
        schema.title = "other"
    with pytest.raises(ValueError, match="frozen"):
        schema.columns["x"].unit = "cm"


# --- drafts ------------------------------------------------------------------------


def test_a_draft_has_names_and_types_and_is_refused_until_filled_in(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("age,bmi,sex,code,empty\n41,22.5,SECRET1,7,\n93,NA,SECRET2,1e3,\n")
    draft = Schema.draft(table)
    columns = tomllib.loads(draft)["columns"]
    assert {name: column["kind"] for name, column in columns.items()} == {
        "age": "integer",
        "bmi": "real",
        "sex": "category",
        "code": "real",
        "empty": "category",
    }
    assert {value for column in columns.values() for key, value in column.items() if key != "kind"} == {
        "TODO"
    }
    for value in ("41", "93", "22.5", "SECRET"):
        assert value not in draft
    assert "about the people in it" in draft
    (tmp_path / "s.toml").write_text(draft)
    with pytest.raises(
        SchemaError, match="still to be filled in, from public knowledge and not from the data"
    ):
        Schema.read(tmp_path / "s.toml")


def test_a_draft_of_a_frame_and_of_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame({"n": [1, 2], "x": [0.5, None], "s": ["a", "b"], "b": [True, False]})
    frame.write_parquet(tmp_path / "t.parquet")
    assert Schema.draft(frame) == Schema.draft(tmp_path / "t.parquet")


@pytest.mark.parametrize("first", ["41,SECRET", "a,a", "a,", "=SUM(A1),b", "-3.5,b"])
def test_a_first_line_that_is_no_header_is_not_drafted(first: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{first}\n1,2\n")
    with pytest.raises(DataError, match=r"the first line of t\.csv must hold column names") as caught:
        Schema.draft(tmp_path / "t.csv")
    assert "SECRET" not in str(caught.value)


# --- the papers' -------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_the_shipped_schemas_are_sound(name: str) -> None:
    schema = _KNOWN[name].schema()
    assert schema.encoding(target=_KNOWN[name].target).features
    assert Schema.of(tomllib.loads(schema.to_toml())) == schema


def test_a_data_set_that_is_not_there_says_what_to_put_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(
        DataError, match=r"abalone\.csv\.gz is not in .* or .*cache/discreet; put it there \(origin"
    ):
        load("abalone")
    (tmp_path / "abalone.csv.gz").write_bytes(b"other")
    with pytest.raises(DataError, match=r"is not the known file, whose SHA-256 is 7b21"):
        load("abalone")
    with pytest.raises(DataError, match="no data set 'abalon'; did you mean abalone"):
        load("abalon")
