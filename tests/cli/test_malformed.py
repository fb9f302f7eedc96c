"""More than 500 malformed studies, schemas and tables: one line, exit code 2, nothing spent, nothing told.

`DISCREET_EXAMPLES=1000` asks Hypothesis for more random damage than the usual 40 of each kind.
"""

import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from discreet.cli import app
from discreet.data.schema import toml_key, toml_value
from discreet.ledger import Ledger
from discreet.privacy import Budget

EXAMPLES = int(os.environ.get("DISCREET_EXAMPLES", "40"))
SECRET, NUMBER = "Xanthippe", "83.619274"
SECRETS = (SECRET, NUMBER, "Socrates", "Phaedo", "Crito", "97.3", "71.9", "88.8")
"""What stands in the tables and must not stand in a message."""

COLUMNS: dict[str, Any] = {
    "age": {"kind": "integer", "lower": 18, "upper": 98},
    "weight": {"kind": "real", "lower": 40, "upper": 160, "out_of_range": "refuse"},
    "smoker": {"kind": "category", "values": ["never", "former", "current"]},
    "pain": {"kind": "ordinal", "values": ["none", "some", "much"]},
    "ill": {"kind": "binary", "values": ["no", "yes"]},
}
STUDY: dict[str, Any] = {
    "title": "Ward",
    "data": {
        "path": "ward.csv",
        "target": "ill",
        "records": 4,
        "features": ["age", "weight", "smoker", "pain"],
        "intercept": True,
        "scale": "unit",
        "drop_first": False,
        "row_norm": 2.0,
        "separator": ",",
        "missing_marks": ["", "?"],
    },
    "model": {"name": "LogisticRegression", "prior_precision": 1.0},
    "mechanism": {"name": "OutputPerturbation", "regularisation": 0.1, "norm": "euclidean"},
    "privacy": {"epsilon": 0.5, "delta": 1e-6, "neighbours": "substitute"},
    "ledger": {"place": "ward.ledger", "dataset": "ward", "purpose": "test"},
    "report": {"folder": "out", "page": False, "authors": ["Anna"]},
}
ROWS = [
    ["name", "age", "weight", "smoker", "pain", "ill"],
    [SECRET, "58", NUMBER, "never", "none", "no"],
    ["Socrates", "71", "97.3", "former", "much", "yes"],
    ["Phaedo", "23", "71.9", "current", "some", "no"],
    ["Crito", "69", "88.8", "never", "some", "yes"],
]


def csv_of(rows: list[list[str]]) -> bytes:
    return "".join(",".join(row) + "\n" for row in rows).encode()


SOUND = csv_of(ROWS)


def toml_of(study: dict[str, Any], columns: dict[str, Any] | None = None) -> bytes:
    """A study file with its columns inside."""
    lines = [f"{name} = {toml_value(v)}" for name, v in study.items() if not isinstance(v, dict)]
    for section, part in study.items():
        if isinstance(part, dict):
            lines += [f"[{toml_key(section)}]", *(f"{toml_key(k)} = {_value(v)}" for k, v in part.items())]
    for name, column in (COLUMNS if columns is None else columns).items():
        lines.append(f"[data.columns.{toml_key(name)}]")
        lines += [f"{toml_key(k)} = {_value(v)}" for k, v in column.items()]
    return ("\n".join(lines) + "\n").encode()


class Raw(str):
    """TOML as it stands."""

    __slots__ = ()


def _value(value: Any) -> str:
    return value if isinstance(value, Raw) else toml_value(value)


@dataclass(frozen=True)
class Case:
    """One malformed input, and what the message must name."""

    what: str
    names: str
    study: bytes = toml_of(STUDY)
    table: bytes = SOUND
    file: str = "ward.csv"


# --- the corpus --------------------------------------------------------------------

WRONG = {
    "a number": Raw("7"),
    "a negative number": Raw("-7"),
    "a huge integer": Raw("1" + "0" * 400),
    "not a number": Raw("nan"),
    "infinity": Raw("inf"),
    "true": Raw("true"),
    "text": Raw('"abc"'),
    "empty text": Raw('""'),
    "a list": Raw('["abc"]'),
    "a list of numbers": Raw("[1, 2]"),
    "an empty list": Raw("[]"),
    "a table": Raw("{ a = 1 }"),
    "a date": Raw("2026-11-19"),
    "TODO": Raw('"TODO"'),
}
HARMLESS = {  # what a setting may well be
    "data.features": {"an empty list"},
    "data.intercept": {"true"},
    "data.drop_first": {"true"},
    "data.row_norm": {"a number"},
    "data.missing_marks": {"a list", "an empty list"},
    "model.prior_precision": {"a number"},
    "mechanism.regularisation": {"a number"},
    "privacy.epsilon": {"a number"},
    "ledger.purpose": {"text", "TODO"},
    "report.folder": {"text", "TODO"},
    "report.page": {"true"},
    "report.authors": {"a list", "an empty list"},
}


def wrong_types() -> Iterator[Case]:
    for section, part in STUDY.items():
        if not isinstance(part, dict):
            continue
        for key in part:
            for what, value in WRONG.items():
                if what in HARMLESS.get(f"{section}.{key}", set()) or (section, key, what) == _PLACE:
                    continue
                changed = deepcopy(STUDY)
                changed[section][key] = value
                yield Case(f"{section}.{key} is {what}", _named(section, key, what), toml_of(changed))


_PLACE = ("ledger", "place", "TODO")


def _named(section: str, key: str, what: str) -> str:
    """Where the message speaks of something else than the setting: a place or a name that is not there."""
    if (section, key) == ("ledger", "dataset") and what in {"text", "TODO"}:
        return "ledger"
    if (section, key) == ("ledger", "place"):
        return "ledger"
    if (section, key, what) == ("data", "features", "a list"):
        return "no column abc"
    if (section, key) == ("data", "path"):
        return "no file" if what in {"text", "TODO"} else key
    return key


def typos() -> Iterator[Case]:
    """Each key with one letter left out, doubled, and two exchanged."""
    for section, part in STUDY.items():
        keys = list(part) if isinstance(part, dict) else []
        for key in keys:
            if key == "name":
                continue
            for bad in {key[:1] + key[2:], key + key[-1], key[:-2] + key[-1] + key[-2]} - set(keys) - {key}:
                if len(bad) < 3:
                    continue
                changed = deepcopy(STUDY)
                changed[section] = {bad if k == key else k: v for k, v in part.items()}
                yield Case(f"{section}.{bad}", f"did you mean {_nearest(section, bad)}?", toml_of(changed))
    for section in ("data", "model", "mechanism", "privacy", "ledger", "report"):
        for bad in (section[:-1], section + "s"):
            changed = {bad if k == section else k: v for k, v in STUDY.items()}
            yield Case(f"section {bad}", f"'{bad}' here; did you mean {section}?", toml_of(changed))
    for section, names in (
        ("model", ["LogisticRegresion", "logistic", "Logit"]),
        ("mechanism", ["OutputPertubation", "output-perturbation"]),
    ):
        for name in names:
            changed = deepcopy(STUDY)
            changed[section]["name"] = name
            yield Case(
                f"{section} {name}", f"{section}.name: there is no {section} '{name}'", toml_of(changed)
            )
    for bad, meant in (
        ("lowr", "lower"),
        ("uper", "upper"),
        ("out_of_rang", "out_of_range"),
        ("mising", "missing"),
        ("kindd", "kind"),
    ):
        columns = deepcopy(COLUMNS)
        columns["weight"] = {bad if k == meant else k: v for k, v in columns["weight"].items()} | {
            bad: "refuse"
        }
        if meant == "kind":
            columns["weight"].pop("kind", None)
        said = "kind: it is missing" if meant == "kind" else f"did you mean {meant}?"
        yield Case(f"column setting {bad}", said, toml_of(STUDY, columns))


def _nearest(section: str, bad: str) -> str:
    from discreet.study import MECHANISMS, MODELS
    from discreet.study.study import Data, LedgerPlace, Privacy, Report

    known = {
        "data": [*Data.model_fields, "schema", "columns", "separator", "missing_marks"],
        "model": MODELS["LogisticRegression"].model_fields,
        "mechanism": MECHANISMS["OutputPerturbation"].model_fields,
        "privacy": Privacy.model_fields,
        "ledger": LedgerPlace.model_fields,
        "report": Report.model_fields,
    }[section]
    return difflib.get_close_matches(bad, known, 1, 0.6)[0]


def left_out() -> Iterator[Case]:
    for section, key in (("data", "path"), ("data", "target"), ("data", "records"), ("model", "name"),
                         ("mechanism", "name"), ("mechanism", "regularisation"), ("privacy", "epsilon"),
                         ("privacy", "neighbours"), ("ledger", "place")):  # fmt: skip
        changed = deepcopy(STUDY)
        del changed[section][key]
        yield Case(f"without {section}.{key}", f"{section}.{key}", toml_of(changed))
    for section in ("model", "mechanism", "privacy", "ledger"):
        changed = {k: v for k, v in STUDY.items() if k != section}
        yield Case(f"without [{section}]", section, toml_of(changed))
    for column, declared in COLUMNS.items():
        columns = {k: v for k, v in COLUMNS.items() if k != column}
        yield Case(f"schema without {column}", f"no column {column}", toml_of(STUDY, columns))
        for setting in declared:
            columns = deepcopy(COLUMNS)
            del columns[column][setting]
            if (column, setting) == ("ill", "values"):  # 0 and 1 then, which the table does not hold
                yield Case("binary without values", "column ill", toml_of(STUDY, columns))
            elif setting != "out_of_range":
                yield Case(f"{column} without {setting}", f"columns.{column}", toml_of(STUDY, columns))


def declarations() -> Iterator[Case]:
    """Bounds reversed, and every other contradiction in a schema."""
    bad: list[tuple[str, dict[str, Any], str]] = [
        ("age", {"lower": 98, "upper": 18}, "are they reversed?"),
        ("age", {"lower": 18, "upper": 18}, "lower must be below upper"),
        ("age", {"lower": 18.5}, "whole numbers"),
        ("weight", {"lower": Raw("-inf")}, "finite"),
        ("weight", {"upper": Raw("nan")}, "finite"),
        ("weight", {"upper": Raw("1e400")}, "finite"),
        ("weight", {"missing": "category"}, "missing"),
        ("weight", {"missing": "impute"}, "impute"),
        ("weight", {"impute": 70}, "impute"),
        ("weight", {"missing": "impute", "impute": 7}, "impute must lie within the bounds"),
        ("weight", {"missing": "drop"}, "missing"),
        ("weight", {"out_of_range": "ignore"}, "out_of_range"),
        ("weight", {"kind": "float"}, "there is no kind 'float'"),
        ("weight", {"lower": "40"}, "lower"),
        ("smoker", {"values": []}, "values"),
        ("smoker", {"values": ["never"]}, "values must be at least two"),
        ("smoker", {"values": ["never", "never"]}, "twice"),
        ("smoker", {"values": ["never", 1]}, "one type"),
        ("smoker", {"values": "never"}, "list"),
        ("smoker", {"values": ["never", "TODO"]}, "still to be filled in"),
        ("smoker", {"other": "sometimes"}, "other must be one of the declared values"),
        ("ill", {"values": ["no", "yes", "perhaps"]}, "values must be two"),
        ("ill", {"values": ["no"]}, "values must be"),
        ("pain", {"missing": "category"}, "missing"),
    ]
    for column, change, said in bad:
        columns = deepcopy(COLUMNS)
        columns[column] |= change
        yield Case(f"{column} {change}", said, toml_of(STUDY, columns))


CELLS = {
    "age": ["abc", SECRET, "=1+1", "@SUM(A1)", "", "?", "inf", "-inf", "3.5", "1e999", "58 years", "0x3A",
            "58,", "1_8x", "\u0665x"],
    "weight": ["abc", SECRET, "=A1*2", "+cmd|' /C calc'!A0",
               "", "?", "inf", "9999", "-1", "83;6", "8 3", "NULL"],
    "smoker": ["Never", "sometimes", SECRET, "=HYPERLINK(1)", "", "?", "1", "never;"],
    "pain": ["NONE", "agony", SECRET, "-2+3", "", "?", "2", "nan"],
    "ill": ["maybe", "1", "0", SECRET, "TRUE", "=NOT(1)", "", "?", "y", "No", "nan"],
}  # fmt: skip


def cells() -> Iterator[Case]:
    for column, bad in CELLS.items():
        place = ROWS[0].index(column)
        for cell in bad:
            rows = deepcopy(ROWS)
            rows[2][place] = f'"{cell}"'
            yield Case(f"{column} holds {cell!r}", f"column {column}", table=csv_of(rows))


def tables() -> Iterator[Case]:
    header, body = csv_of(ROWS[:1]), csv_of(ROWS[1:])
    whole = {
        "an empty file": (b"", "ward.csv is empty"),
        "a header alone": (header, "no rows"),
        "an empty first line": (b"\n" + SOUND, "line of column names"),
        "no header": (body, "has no column"),
        "too few rows": (csv_of(ROWS[:3]), "as many rows"),
        "too many rows": (SOUND + body, "as many rows"),
        "a byte-order mark of UTF-16": (SOUND.decode().encode("utf-16"), "UTF-8"),
        "Latin-1": (SOUND.replace(b"never", "jamais\u00e9".encode("latin-1")), "UTF-8"),
        "zeros": (b"\0" * 100, "ward.csv"),
        "semicolons": (SOUND.replace(b",", b";"), "separator"),
        "a line too long": (SOUND + b"a,b,c,d,e,f,g,h\n", "column age"),
        "an open quotation mark": (SOUND + b'"Plato,20,80,never,none,no\n', ""),
        "a column twice": (SOUND.replace(b"name,", b"age,"), "2 columns named age"),
        "100,000 other columns": (b",".join(b"c%d" % k for k in range(100_000)) + b"\n", "has no column"),
        "HTML": (b"<!DOCTYPE html><html><body>" + SECRET.encode() + b"</body></html>", "ward.csv"),
        "JSON": (json.dumps([{"name": SECRET}]).encode(), "ward.csv"),
    }
    for what, (table, names) in whole.items():
        yield Case(what, names, table=table)
    for column in COLUMNS:
        for other in (column[:-1], column.upper(), f"{column} (self-reported)"):
            yield Case(
                f"{column} called {other}",
                f"no column {column}",
                table=SOUND.replace(column.encode(), other.encode(), 1),
            )
        rows = [[cell for cell, name in zip(row, ROWS[0], strict=True) if name != column] for row in ROWS]
        yield Case(f"a table without {column}", f"no column {column}", table=csv_of(rows))
    for ending, said in (
        (".parquet", "Parquet"),
        (".arrow", "Arrow"),
        (".xlsx", "must end in"),
        (".json", "must end in"),
        ("", "must end in"),
        (".csv.gz", "complete"),
    ):
        changed = deepcopy(STUDY)
        changed["data"]["path"] = f"ward{ending}"
        yield Case(f"CSV called {ending}", said, toml_of(changed), file=f"ward{ending}")


def studies() -> Iterator[Case]:
    sound = toml_of(STUDY)
    damaged = {
        "an empty study": (b"", "data: it is missing"),
        "a study of spaces": (b" \n\t\n", "data: it is missing"),
        "a study in UTF-16": (sound.decode().encode("utf-16"), "UTF-8"),
        "a study in Latin-1": (sound.replace(b"Ward", "W\u00e4rd".encode("latin-1")), "UTF-8"),
        "zeros": (b"\0" * 50, "not TOML"),
        "the table instead": (SOUND, "not TOML"),
        "JSON": (json.dumps(STUDY).encode(), "not TOML"),
        "a bracket open": (sound.replace(b"[model]", b"[model"), "not TOML"),
        "a quotation mark open": (sound.replace(b'"ward.csv"', b'"ward.csv'), "not TOML"),
        "a key twice": (sound.replace(b"[model]", b"[model]\nname = 'a'"), "not TOML"),
        "a section twice": (sound + b"\n[model]\n", "not TOML"),
        "no equals sign": (sound.replace(b"epsilon =", b"epsilon"), "not TOML"),
        "yes for true": (sound.replace(b"intercept = true", b"intercept = yes"), "not TOML"),
        "a comma for a point": (sound.replace(b"0.5", b"0,5"), "not TOML"),
        "a bare word": (sound.replace(b'"substitute"', b"substitute"), "not TOML"),
        "an endless number": (sound.replace(b"records = 4", b"records = " + b"4" * 5000), "digits"),
        "a title of two lines": (sound.replace(b'"Ward"', b'"two\\nlines"'), "title"),
        "a title that is a number": (sound.replace(b'"Ward"', b"3"), "title"),
        "the data as a list": (b"data = []\n", "model: it is missing"),
        "the model as text": (re.sub(rb"\[model\][^\[]*", b"", b'model = "x"\n' + sound), "model"),
        "nested sections": (sound + b"[privacy.more]\na = 1\n", "more"),
        "add_remove with a number": (sound.replace(b'"substitute"', b'"add_remove"'), "data.records"),
        "a target among the features": (sound.replace(b'"age", ', b'"age", "ill", '), "ill"),
        "a feature twice": (sound.replace(b'"age", ', b'"age", "age", '), "twice"),
        "a feature that is not there": (sound.replace(b'"age", ', b'"aeg", '), "did you mean age?"),
        "a target of three values": (
            sound.replace(b'target = "ill"', b'target = "pain"').replace(b', "pain"]', b"]"), "two values"),
        "a threshold on a category": (
            sound.replace(b'target = "ill"', b'target = "smoker > 1"').replace(b', "smoker"', b""),
            "threshold"),
        "a threshold beyond the bounds": (
            sound.replace(b'target = "ill"', b'target = "age > 200"').replace(b'"age", ', b""), "threshold"),
        "a scale nobody knows": (sound.replace(b'"unit"', b'"standard"'), "data.scale"),
        "a norm nobody knows": (sound.replace(b'"euclidean"', b'"maximum"'), "mechanism.norm"),
        "a ledger elsewhere": (sound.replace(b"ward.ledger", b"no/such.ledger"), "no ledger"),
        "a ledger that is a table": (sound.replace(b"ward.ledger", b"ward.csv"), "ledger"),
        "a ledger of another kind": (sound.replace(b"ward.ledger", b"mysql://a@b/c"), "ledger"),
        "a ledger of another name": (sound.replace(b'dataset = "ward"', b'dataset = "word"'), "ledger"),
        "a purpose of two lines": (sound.replace(b'"test"', b'"two\\nlines"'), "purpose"),
        "a folder nowhere": (sound.replace(b'folder = "out"', b'folder = "no/such/out"'), "not a folder"),
        "a folder that is there": (sound.replace(b'folder = "out"', b'folder = "."'), "there already"),
    }  # fmt: skip
    for what, (study, names) in damaged.items():
        yield Case(what, names, study)
    for delta in ("1", "1.5", "-1e-6"):
        yield Case(f"delta {delta}", "privacy.delta", sound.replace(b"1e-06", delta.encode()))
    for epsilon in ("0", "0.0", "-1", "-0.0"):
        yield Case(
            f"epsilon {epsilon}",
            "privacy.epsilon",
            sound.replace(b"epsilon = 0.5", b"epsilon = " + epsilon.encode()),
        )


CORPUS = [*wrong_types(), *typos(), *left_out(), *declarations(), *cells(), *tables(), *studies()]


# --- the tests ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger."""
    folder = tmp_path_factory.mktemp("ward")
    Ledger.create(folder / "ward.ledger", dataset="ward", budget=Budget(1.0, 1e-6, "substitute"))
    return folder


def release(ward: Path, case: Case) -> tuple[int, str, str]:
    """What `discreet release` says to a case: exit code, standard output, standard error."""
    (ward / "study.toml").write_bytes(case.study)
    (ward / case.file).write_bytes(case.table)
    try:
        done = CliRunner().invoke(app, ["release", str(ward / "study.toml"), "--yes"], prog_name="discreet")
    finally:
        (ward / case.file).unlink()
    return done.exit_code, done.stdout, done.stderr


def refused(ward: Path, case: Case, before: str) -> None:
    code, out, err = release(ward, case)
    assert (code, out) == (2, ""), (case.what, code, out, err)
    said(err)
    assert case.names in err, (case.what, err)
    unspent(ward, before)


def said(err: str) -> None:
    """One line that says what to do, and nothing that stands in the table."""
    assert err.endswith("\n")
    assert err.count("\n") == 1, err
    assert err.startswith("discreet release: "), err
    assert "Traceback" not in err
    assert len(err) < 500
    assert re.search(r";|must|did you mean|are they reversed\?|still to be filled in|there is \w", err), err
    for secret in SECRETS:
        assert secret not in err, err


def unspent(ward: Path, before: str) -> None:
    assert state(ward) == before
    assert not (ward / "out").exists()


def state(ward: Path) -> str:
    return hashlib.sha256((ward / "ward.ledger").read_bytes()).hexdigest()


def test_the_corpus_has_500_inputs_and_no_input_twice() -> None:
    distinct = {(case.study, case.table, case.file) for case in CORPUS}
    assert len(distinct) >= 500
    assert len(CORPUS) - len(distinct) < 10


def test_the_sound_study_is_released(tmp_path: Path) -> None:
    """Without this, every refusal below could be for another reason than the one that is meant."""
    (tmp_path / "study.toml").write_bytes(toml_of(STUDY))
    (tmp_path / "ward.csv").write_bytes(b"\xef\xbb\xbf" + SOUND)  # a byte-order mark of UTF-8 is harmless
    Ledger.create(tmp_path / "ward.ledger", dataset="ward", budget=Budget(1.0, 1e-6, "substitute"))
    done = CliRunner().invoke(app, ["release", str(tmp_path / "study.toml"), "--yes"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "release.json").exists()


@pytest.mark.parametrize("kind", [wrong_types, typos, left_out, declarations, cells, tables, studies])
def test_every_malformed_input_is_refused_in_one_line(kind: Any, ward: Path) -> None:
    before, wrong = state(ward), []
    for case in kind():
        try:
            refused(ward, case, before)
        except AssertionError as error:
            wrong.append(f"{case.what} (wants {case.names!r}): {error}"[:600])
    assert not wrong, f"{len(wrong)} of them:\n" + "\n".join(wrong)


def outcome(ward: Path, case: Case, before: str) -> None:
    """Random damage is refused properly, or harmless: then the release is a proper one."""
    code, out, err = release(ward, case)
    if code == 0:
        import shutil

        shutil.rmtree(ward / "out")
        return
    assert code == 2, (code, out, err)
    said(err)
    unspent(ward, before)


PIECES = [b"\n", b'"', b"=", b"[", b",", b"\xef\xbb\xbf", b"nan", b"TODO", b"=1+1", b"9" * 30, b"1e5"]
anything = st.binary(max_size=12) | st.text(max_size=8).map(str.encode) | st.sampled_from(PIECES)
often = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def plentiful(tmp_path: Path) -> Path:
    """A folder whose ledger bears a release for each example, should the damage be harmless."""
    Ledger.create(tmp_path / "ward.ledger", dataset="ward", budget=Budget(1e6, 1e-6, "substitute"))
    return tmp_path


@often
@given(start=st.integers(0, len(toml_of(STUDY))), length=st.integers(0, 40), piece=anything)
def test_random_damage_to_a_study(plentiful: Path, start: int, length: int, piece: bytes) -> None:
    assume(not any(secret.encode() in piece for secret in SECRETS))  # a study is public and may be quoted
    sound = toml_of(STUDY)
    outcome(plentiful, Case("", "", sound[:start] + piece + sound[start + length :]), state(plentiful))


@often
@given(start=st.integers(0, len(SOUND)), length=st.integers(0, 40), piece=anything | st.just(SECRET.encode()))
def test_random_damage_to_a_table(plentiful: Path, start: int, length: int, piece: bytes) -> None:
    outcome(plentiful, Case("", "", table=SOUND[:start] + piece + SOUND[start + length :]), state(plentiful))


FRESH = ["an empty file", "age holds 'Xanthippe'", "a table without ill", "a bracket open", "Latin-1"]


@pytest.mark.parametrize("what", FRESH)
def test_a_fresh_process_says_the_same(what: str, ward: Path) -> None:
    case = next(case for case in CORPUS if case.what == what)
    before = state(ward)
    said_here = release(ward, case)
    (ward / case.file).write_bytes(case.table)
    code = "import sys; sys.argv[0] = 'discreet'; from discreet.cli import app; app()"
    done = subprocess.run(
        [sys.executable, "-c", code, "release", str(ward / "study.toml"), "--yes"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == said_here
    unspent(ward, before)
