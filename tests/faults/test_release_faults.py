"""`discreet release` killed at any moment: a spend at worst, never a free release, never half a folder.

8 kills per kind of database among 16 processes; `make faults` for 300.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.ledger import Abandoned, Anchor, Ledger, Released, Spend
from discreet.mechanisms import Release
from discreet.privacy import Budget

KILLS = int(os.environ.get("DISCREET_KILLS", "8"))
SWARM = Path(__file__).with_name("release_swarm.py")
WHOLE = {"posterior.nc", "receipt.json", "release.json", "study.toml"}


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


def look(place: str, out: Path) -> tuple[dict[int, Spend], dict[int, Path]]:
    """Check what must hold at any moment; returns the spends, and the release that each paid for."""
    ledger = Ledger(place, dataset="survey")
    entries = ledger.entries()
    spends = {entry.position: entry for entry in entries if isinstance(entry, Spend)}
    reported = {entry.spend: entry for entry in entries if isinstance(entry, Released)}
    abandoned = {entry.spend for entry in entries if isinstance(entry, Abandoned)}
    releases: dict[int, Path] = {}
    receipts = []
    for folder in out.iterdir():
        if folder.name.startswith("."):
            continue  # a killed process's staging folder: paid for, and under no name
        assert {file.name for file in folder.iterdir()} == WHOLE, f"half a folder: {folder}"
        release = Release.load(folder)
        receipt = json.loads((folder / "receipt.json").read_text())
        spend = spends[receipt["position"]]  # it was paid for
        assert (spend.hash, spend.plan) == (receipt["hash"], release.provenance["plan_hash"])
        assert spend.guarantee == release.guarantee
        assert receipt["position"] not in releases, "two releases of one spend"
        releases[receipt["position"]] = folder
        receipts.append(Anchor.from_dict(receipt))
    # What is reported is there.
    for position, entry in reported.items():
        assert entry.release == Release.load(releases[position]).hash()
    assert ledger.verify(receipts), str(ledger.verify(receipts))
    assert ledger.spent() <= ledger.budget.epsilon * (1 + 1e-9)
    assert {spend.position for spend in ledger.reconcile()} == set(spends) - set(reported) - abandoned
    return spends, releases


def settle(place: str, out: Path) -> int:
    """Close with `discreet ledger reconcile` what crashes left open; returns how many came to nothing."""
    spends, releases = look(place, out)
    ledger = Ledger(place, dataset="survey")
    for spend in ledger.reconcile():
        made = releases.get(spend.position)
        how = ["--release", str(made)] if made else ["--abandon", str(spend.position), "--reason", "killed"]
        done = CliRunner().invoke(app, ["ledger", "reconcile", place, "--dataset", "survey", *how])
        assert done.exit_code == 0, done.output
    assert not ledger.reconcile()
    assert ledger.verify()
    look(place, out)
    return len(spends) - len(releases)


def storm(place: str, folder: Path) -> None:
    done = run(str(SWARM), str(folder), place, str(KILLS), "20261119")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert (outcome["killed"], outcome["failed"]) == (KILLS, 0), done.stderr
    spends, releases = look(place, folder / "out")
    assert len(spends) == outcome["allowed"]  # used up and not exceeded: none was lost, none counted twice
    open_before = len(Ledger(place, dataset="survey").reconcile())
    lost = settle(place, folder / "out")
    print(f"{KILLS} kills, {len(spends)} spends, {len(releases)} releases, {open_before} open, {lost} lost")


@pytest.mark.slow
def test_kills_among_16_releasing_processes_on_a_file(tmp_path: Path) -> None:
    storm(str(tmp_path / "survey.ledger"), tmp_path)


@pytest.mark.slow
def test_kills_among_16_releasing_processes_on_postgresql(postgres: Any, tmp_path: Path) -> None:
    storm(postgres.database(), tmp_path)


DIE_AT = """
import json, os, pathlib, signal, sys
sys.path.insert(0, sys.argv[2])
import release_swarm as swarm
from discreet.cli import release
from discreet.ledger import Ledger
from discreet.mechanisms import Release
from discreet.mechanisms.output_perturbation import OutputPerturbation

die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)

def after(function):
    def call(*arguments, **named):
        found = function(*arguments, **named)
        die()
        return found
    return call

def work(point, folder):
    if point == "before the spend": Ledger.spend = die
    if point == "after the spend": Ledger.spend = after(Ledger.spend)
    if point == "while drawing": OutputPerturbation.draw = die
    if point == "before writing": Release.save = die
    if point == "after the draws are written": Release.save = after(Release.save)
    if point == "before the folder has its name": pathlib.Path.rename = die
    if point == "when the folder has its name": release.put = after(release.put)
    if point == "before the report": Ledger.complete = die
    if point == "after the report": Ledger.complete = after(Ledger.complete)
    sys.stdout = open(os.devnull, "w")
    swarm.app(["release", folder + "/study.toml", "--out", folder + "/out/r", "--yes"])

for point, folder in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        work(point, folder)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, point
"""

STEPS = [  # where the process dies, whether that spends, whether there is a release, whether it is reported
    ("before the spend", False, False, False),
    ("after the spend", True, False, False),
    ("while drawing", True, False, False),
    ("before writing", True, False, False),
    ("after the draws are written", True, False, False),
    ("before the folder has its name", True, False, False),
    ("when the folder has its name", True, True, False),
    ("before the report", True, True, False),
    ("after the report", True, True, True),
]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_a_release_killed_at_each_step(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    sys.path.insert(0, str(SWARM.parent))
    tasks: list[tuple[str, str]] = []
    places: list[str] = []
    lay = "import sys; sys.path.insert(0, sys.argv[1]); import release_swarm as s, json, pathlib\n"
    lay += "for folder, place in json.loads(sys.argv[2]): s.lay(pathlib.Path(folder), place)"
    for point, *_ in STEPS:
        folder = tmp_path / point.replace(" ", "-")
        folder.mkdir()
        file = str(folder / "survey.ledger")
        place = file if where == "sqlite" else request.getfixturevalue("postgres").database()
        Ledger.create(place, dataset="survey", budget=Budget(1.0, neighbours="substitute"))
        tasks.append((point, str(folder)))
        places.append(place)
    pairs = [(folder, place) for (_, folder), place in zip(tasks, places, strict=True)]
    assert run("-c", lay, str(SWARM.parent), json.dumps(pairs)).returncode == 0
    done = run("-c", DIE_AT, json.dumps(tasks), str(SWARM.parent))
    assert done.returncode == 0, done.stderr
    for (point, spent, released, reported), (_, folder), place in zip(STEPS, tasks, places, strict=True):
        out = Path(folder) / "out"
        spends, releases = look(place, out)
        open_ = Ledger(place, dataset="survey").reconcile()
        found = (point, len(spends), len(releases), len(open_))
        assert found == (point, int(spent), int(released), int(spent) - int(reported))
        settle(place, out)
