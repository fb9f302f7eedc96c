"""Processes and servers that die in the middle of a spend: never a release without a spend, never too much.

30 kills per kind of database; `DISCREET_KILLS=300 python -m pytest tests/faults -m slow -s` for more.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.ledger import BudgetExceeded, Ledger, Released, Spend
from discreet.privacy import Budget, Neighbours, pure

KILLS = int(os.environ.get("DISCREET_KILLS", "30"))
SWARM = Path(__file__).with_name("swarm.py")


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


def storm(place: str, folder: Path, kills: int) -> None:
    """Kill `kills` of 16 spending processes, let the rest use the budget up, and look at what is left."""
    folder.mkdir()
    done = run(str(SWARM), place, str(folder), str(kills), "20261118")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert (outcome["killed"], outcome["failed"]) == (kills, 0), done.stderr

    ledger = Ledger(place, dataset="clinic")
    entries = ledger.entries()
    spends = {entry.position: entry for entry in entries if isinstance(entry, Spend)}
    reported = {entry.spend: entry for entry in entries if isinstance(entry, Released)}
    releases = {int(file.stem): file.read_bytes() for file in folder.iterdir()}

    # Every release was paid for before, by the spend that it names.
    for position, content in releases.items():
        if content:  # empty: killed between opening the file and writing it
            assert json.loads(content) == {"position": position, "hash": spends[position].hash}
        assert position in spends
    # What is reported is there.
    for position, entry in reported.items():
        assert entry.release == hashlib.sha256(releases[position]).hexdigest()
    # The budget is used up and not exceeded: no spend was lost, none was counted twice.
    assert ledger.verify(), str(ledger.verify())
    limit = ledger.budget.epsilon
    assert ledger.spent() <= limit * (1 + 1e-9)
    assert len(spends) == 2 * kills + 40
    # Reconciling shows the spends that nobody reported, and only those.
    assert {spend.position for spend in ledger.reconcile()} == set(spends) - set(reported)
    print(
        f"{kills} kills, {outcome}, {len(releases)} releases, {len(ledger.reconcile())} open"
    )  # shown with -s


@pytest.mark.slow
def test_kills_among_16_processes_on_a_file(tmp_path: Path) -> None:
    storm(str(tmp_path / "clinic.ledger"), tmp_path / "releases", KILLS)


@pytest.mark.slow
def test_kills_among_16_processes_on_postgresql(postgres: Any, tmp_path: Path) -> None:
    storm(postgres.database(), tmp_path / "releases", KILLS)


DIE_AT = """
import json, os, signal, sys
from pathlib import Path
from sqlalchemy import Connection
from discreet.ledger import Ledger, store
from discreet.privacy import pure

die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)

def after(function):
    def call(*arguments, **named):
        function(*arguments, **named)
        die()
    return call

def work(point, place, release):
    ledger = Ledger(place, dataset="clinic")
    kind = type(ledger._store)
    if point == "once held": kind.hold = after(kind.hold)
    if point == "before the entry": store.Session.append = die
    if point == "after the entry": store.Session.append = after(store.Session.append)
    if point == "before the commit": Connection.commit = die
    if point == "after the commit": Connection.commit = after(Connection.commit)
    receipt = ledger.spend(pure(0.25, neighbours="substitute"), "fault test")
    if point == "before the release": die()
    Path(release).write_text("drawn")
    if point == "before the report": die()
    ledger.complete(receipt, "ab" * 32)

for task in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        work(*task)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, task
"""

STEPS = [  # where the process dies, whether that spends, whether something was released
    ("once held", False, False),
    ("before the entry", False, False),
    ("after the entry", False, False),
    ("before the commit", False, False),
    ("after the commit", True, False),
    ("before the release", True, False),
    ("before the report", True, True),
]


@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_a_kill_at_each_step(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    budget = Budget(1.0, neighbours=Neighbours.SUBSTITUTE)
    tasks = []
    for point, _, _ in STEPS:
        file = str(tmp_path / f"{point}.ledger")
        place = file if where == "sqlite" else request.getfixturevalue("postgres").database()
        Ledger.create(place, dataset="clinic", budget=budget)
        tasks.append((point, place, str(tmp_path / point)))
    done = run("-c", DIE_AT, json.dumps(tasks))
    assert done.returncode == 0, done.stderr
    for (point, spent, released), (_, place, release) in zip(STEPS, tasks, strict=True):
        ledger = Ledger(place, dataset="clinic")
        assert (point, len(ledger.reconcile()), Path(release).exists()) == (point, int(spent), released)
        assert ledger.remaining() == pytest.approx(0.75 if spent else 1.0)
        ledger.spend(pure(0.25, neighbours="substitute"), "life goes on")
        assert ledger.verify()


DIE_MAKING = """
import os, signal, sys
from discreet.ledger import Ledger, store
from discreet.privacy import Budget
store.Session.append = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
Ledger(sys.argv[1], budget=Budget(1.0, neighbours="substitute"))
"""


def test_a_kill_while_a_ledger_is_made_leaves_none(tmp_path: Path) -> None:
    place = tmp_path / "clinic.ledger"
    assert run("-c", DIE_MAKING, str(place)).returncode == -9
    assert Ledger(place, budget=Budget(2.0, neighbours=Neighbours.SUBSTITUTE)).verify()


def test_a_server_that_crashes_keeps_every_spend_it_confirmed(postgres: Any) -> None:
    place = postgres.database()
    ledger = Ledger.create(place, dataset="clinic", budget=Budget(1.0, neighbours=Neighbours.SUBSTITUTE))
    receipts = [ledger.spend(pure(0.125, neighbours="substitute"), "before the crash") for _ in range(7)]
    postgres.stop(mode="immediate")
    with pytest.raises(Exception, match="could not be used"):
        ledger.spend(pure(0.125, neighbours="substitute"), "nobody there")
    postgres.start()
    assert ledger.verify(receipts)
    assert ledger.remaining() == pytest.approx(0.125)
    ledger.spend(pure(0.125, neighbours="substitute"), "the last")
    with pytest.raises(BudgetExceeded):
        ledger.spend(pure(0.125, neighbours="substitute"), "too much")
