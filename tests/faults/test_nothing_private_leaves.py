"""Planted values of a table are in nothing that comes out: folder, ledger, output, logs, errors, files."""

import logging
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet.cli import app

NAME, NOTE = "Xanthippe-of-Athens", "hemlock, 83.619274 mg"
AGE, WEIGHT = 83.619274, 71.930517  # nobody else's
LOW, HIGH = 18.0, 98.0
STUDY = """
title = "Falls"

[data]
path = "ward.csv"
target = "fell"
records = 200
{stream}

[data.columns.age]
kind = "real"
lower = 18
upper = 98

[data.columns.weight]
kind = "real"
lower = 40
upper = 160
out_of_range = "refuse"

[data.columns.fell]
kind = "binary"
values = ["no", "yes"]

[model]
name = "LogisticRegression"

[mechanism]
{mechanism}

[privacy]
epsilon = 2.0
delta = 1e-6
neighbours = "substitute"

[ledger]
place = "ward.ledger"
"""
POINT = 'name = "OutputPerturbation"\nregularisation = 0.1'
CHAIN = 'name = "BarkerMCMC"\nscale = 0.1\nsteps = 5\nbatch = 200\ntempered_size = 20'


def needles() -> list[bytes]:
    """The planted values as anything might write them: texts, and numbers as read and as scaled."""
    texts = [NAME, NOTE, "Xanthippe", "hemlock", "83.619", "71.930"]
    scaled = [(AGE - LOW) / (HIGH - LOW), (WEIGHT - 40) / 120]
    texts += [f"{value:.5f}" for value in scaled]
    found = [text.encode(code) for text in texts for code in ("utf-8", "utf-16-le")]
    for value in (AGE, WEIGHT, *scaled):
        found += [struct.pack(layout, value) for layout in ("<d", ">d", "<f", ">f")]
    return found


def leaks(*seen: bytes) -> list[bytes]:
    return [needle for needle in needles() if any(needle in text for text in seen)]


def table(age: str = str(AGE)) -> str:
    g = np.random.default_rng(20_261_119)
    lines = [f"Somebody {k},{g.uniform(18, 98):.2f},{g.uniform(40, 160):.2f},note,no" for k in range(199)]
    lines.insert(87, f'{NAME},{age},{WEIGHT},"{NOTE}",yes')
    return "\n".join(["name,age,weight,note,fell", *lines]) + "\n"


@pytest.fixture
def ward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "ward.csv").write_text(table())
    return tmp_path


def files(folder: Path) -> Iterator[bytes]:
    """Everything that lies there, but for what was put there by hand; names too."""
    for place in sorted(folder.rglob("*")):
        if place.name not in {"ward.csv", "study.toml"} or place.parent != folder:
            yield place.name.encode()
            if place.is_file():
                yield place.read_bytes()


def run(*arguments: str, code: int = 0) -> bytes:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    said = done.output.encode()
    return (
        said + repr(done.exception).encode() if code and not isinstance(done.exception, SystemExit) else said
    )


@pytest.mark.parametrize(
    ("mechanism", "stream"), [(POINT, ""), (CHAIN, "stream = true")], ids=["point", "chain"]
)
def test_a_release_from_end_to_end(
    mechanism: str, stream: str, ward: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    (ward / "study.toml").write_text(STUDY.format(mechanism=mechanism, stream=stream))
    said = [
        run("schema", "init", "ward.csv", "--out", "draft.toml"),
        run("plan", "study.toml"),
        run(
            "ledger", "open", "ward.ledger", "--epsilon", "5", "--delta", "1e-6", "--neighbours", "substitute"
        ),
        run("release", "study.toml", "--out", "out", "--yes", "--json"),
        run("reproduce", "out", "--ledger", "ward.ledger"),
        run("explain", "out"),
        run("ledger", "show", "ward.ledger", "--json"),
        run("ledger", "verify", "ward.ledger"),
        run("release", "study.toml", "--out", "out", "--yes", code=2),  # the folder is there
    ]
    assert (ward / "out" / "report.html").exists()
    assert not list((ward / "tmp").iterdir())
    assert leaks(*said, caplog.text.encode(), *files(ward)) == []


@pytest.mark.parametrize(
    ("age", "column"),
    [("83.619274 years", "age"), ("", "age"), ("nan", "age"), ("=83.619274", "age")],
)
def test_a_refusal(age: str, column: str, ward: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    (ward / "ward.csv").write_text(table(age))
    (ward / "study.toml").write_text(STUDY.format(mechanism=POINT, stream=""))
    run("ledger", "open", "ward.ledger", "--epsilon", "5", "--delta", "1e-6", "--neighbours", "substitute")
    said = run("release", "study.toml", "--out", "out", "--yes", code=2)
    assert column.encode() in said
    assert leaks(said, caplog.text.encode(), *files(ward)) == []


def test_a_fault_after_the_spend(
    ward: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from discreet.mechanisms import OutputPerturbation

    def fails(*given: object, **_: object) -> None:
        raise RuntimeError(f"cannot work with {given} {NAME} {AGE}")

    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(OutputPerturbation, "draw", fails)
    (ward / "study.toml").write_text(STUDY.format(mechanism=POINT, stream=""))
    run("ledger", "open", "ward.ledger", "--epsilon", "5", "--delta", "1e-6", "--neighbours", "substitute")
    said = run("release", "study.toml", "--out", "out", "--yes", code=1)
    assert b"which stays spent" in said
    assert leaks(said, caplog.text.encode(), *files(ward)) == []


def test_a_leak_would_be_found(ward: Path) -> None:
    """What the tests above would see, were a value written in any of these ways."""
    for leak in (f"age {AGE}", f"{NAME}", f"{(AGE - LOW) / (HIGH - LOW):.6f}"):
        assert leaks(leak.encode())
    (ward / "out").mkdir()
    np.save(ward / "out" / "draws.npy", np.array([1.0, (WEIGHT - 40) / 120]))
    assert leaks(*files(ward))
    (ward / "out" / "draws.npy").unlink()
    (ward / "out" / "ward.csv").write_text(table())
    assert leaks(*files(ward))
