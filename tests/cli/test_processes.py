"""Several processes for one release, on loopback: the draws of one process, and one spend after agreement."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli import app

ROWS = 4001  # odd: the parts differ by one record
STUDY = f"""
[data]
path = "people.parquet"
target = "ill"
records = {ROWS}
scale = "centred"
stream = true

[data.columns.age]
kind = "real"
lower = 18
upper = 100

[data.columns.ill]
kind = "binary"
values = [0, 1]

[model]
name = "LogisticRegression"

[mechanism]
name = "BarkerMCMC"
scale = 0.2
steps = 40
batch = {ROWS}
tempered_size = 300

[privacy]
epsilon = 2.0
delta = 1e-6
neighbours = "substitute"

[ledger]
place = "people.ledger"

[report]
page = false
"""


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import polars as pl

    g = np.random.default_rng(20_261_119)
    age = g.uniform(18, 100, ROWS)
    ill = (g.random(ROWS) < (age - 18) / 82).astype(np.int8)
    pl.DataFrame({"age": age, "ill": ill}).write_parquet(tmp_path / "people.parquet", row_group_size=500)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    run("ledger", "open", "people.ledger", "--epsilon", "5", "--delta", "1e-5", "--neighbours", "substitute")
    return tmp_path


def together(folder: Path, *others: list[str]) -> list[subprocess.CompletedProcess[str]]:
    """`discreet release` in as many processes as there are lists of arguments."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", "from discreet.cli import app; app()", "release", "--yes", "--join",
             address, "--process", f"{k}/{len(others)}", *arguments],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )
        for k, arguments in enumerate(others)
    ]  # fmt: skip
    done = []
    for each in started:
        out, err = each.communicate(timeout=240)
        done.append(subprocess.CompletedProcess(each.args, each.returncode, out, err))
    return done


@pytest.mark.slow
def test_two_processes_release_what_one_does_for_one_spend(folder: Path) -> None:
    run("release", "study.toml", "--out", "one", "--yes", "--seed", "3")
    seeded = ["study.toml", "--out", "two", "--seed", "3", "--json"]
    first, second = together(folder, seeded, ["study.toml"])
    assert (first.returncode, second.returncode) == (0, 0), (first.stderr, second.stderr)
    assert json.loads(first.stdout)["folder"] == "two"
    assert second.stdout == ""
    one, two = dc.Release.load(folder / "one"), dc.Release.load(folder / "two")
    assert np.array_equal(one.draws["w"], two.draws["w"])
    assert 1 < len(np.unique(two.draws["w"], axis=0)) < 40
    kinds = [
        entry["kind"] for entry in json.loads(run("ledger", "show", "people.ledger", "--json"))["entries"]
    ]
    assert kinds.count("spend") == 2
    run("ledger", "verify", "people.ledger")


@pytest.mark.slow
def test_nothing_is_spent_where_one_process_refuses(folder: Path) -> None:
    (folder / "other.toml").write_text(STUDY.replace("records = 4001", "records = 4000"))
    first, second = together(folder, ["study.toml", "--out", "two"], ["other.toml"])
    assert (first.returncode, second.returncode) == (2, 2)
    assert "another process refused, or has another study; nothing was spent" in first.stderr
    assert "Traceback" not in first.stderr + second.stderr
    assert not (folder / "two").exists()
    entries = json.loads(run("ledger", "show", "people.ledger", "--json"))["entries"]
    assert [entry["kind"] for entry in entries] == ["opened"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--join", "127.0.0.1:9911"], "--join and --process go together"),
        (["--process", "0/2"], "--join and --process go together"),
        (["--join", "here", "--process", "0/2"], "--join must be HOST:PORT"),
        (["--join", "127.0.0.1:9911", "--process", "2/2"], "--process must be K/N"),
        (["--join", "127.0.0.1:9911", "--process", "first"], "--process must be K/N"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        app(["release", "study.toml", "--yes", *options])
    assert left.value.code == 2
    assert said in capsys.readouterr().err
