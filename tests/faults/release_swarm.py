"""Many processes run `discreet release` on one ledger and are killed at random instants.

    python tests/faults/release_swarm.py FOLDER PLACE KILLS SEED

PLACE is where the ledger will lie. One process forks `WORKERS` others; each releases into FOLDER/out, again
and again, until the budget refuses it. One after another is killed with SIGKILL, some milliseconds after it
began, and replaced. What was killed is printed as JSON.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

# All imported once, before the processes part. Nothing of it has started a thread.
import arviz  # noqa: F401
import jax  # noqa: F401
import polars as pl  # noqa: F401

import discreet.report.release  # noqa: F401
from discreet.cli import app
from discreet.cli.errors import Exit
from discreet.ledger import Ledger
from discreet.privacy import Budget
from discreet.study import load

WORKERS = 16
COST = 0.01

STUDY = """
[data]
path = "survey.csv"
target = "agrees"
records = 40

[data.columns.agrees]
kind = "binary"
values = ["no", "yes"]

[model]
name = "LogisticRegression"

[mechanism]
name = "OutputPerturbation"
regularisation = 0.1

[privacy]
epsilon = {cost}
neighbours = "substitute"

[ledger]
place = "{place}"
dataset = "survey"

[report]
page = false
"""


def lay(folder: Path, place: str) -> None:
    """Write the study and its table."""
    (folder / "survey.csv").write_text("agrees\n" + "yes\nno\n" * 20)
    (folder / "study.toml").write_text(STUDY.format(cost=COST, place=place))
    (folder / "out").mkdir()


def allowed(kills: int) -> int:
    """How many releases the budget allows: enough that everybody is killed in the middle of one."""
    return kills + WORKERS


def work(folder: Path) -> NoReturn:
    """Release until killed or refused."""
    number = 0
    while True:
        number += 1
        out = folder / "out" / f"{os.getpid()}-{number}"
        try:
            app(["release", str(folder / "study.toml"), "--out", str(out), "--yes", "--json"])
        except SystemExit as left:
            if left.code == Exit.BUDGET:
                os._exit(0)
            if left.code != Exit.OK:
                os._exit(2)


def start(folder: Path) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work(folder)
    except BaseException as error:  # noqa: BLE001
        print(f"worker failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def main(folder: Path, place: str, kills: int, seed: int) -> None:
    draw = random.Random(seed)
    lay(folder, place)
    Ledger(place, dataset="survey", budget=Budget(COST * allowed(kills), neighbours="substitute"))
    load(folder / "study.toml").plan()  # what a plan imports
    report, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115, PTH123
    workers = [start(folder) for _ in range(WORKERS)]
    killed = exhausted = failed = 0
    while killed < kills:
        time.sleep(draw.uniform(0.0, 0.5))
        victim = workers.pop(draw.randrange(len(workers)))
        os.kill(victim, signal.SIGKILL)
        _, status = os.waitpid(victim, 0)
        killed += os.WIFSIGNALED(status)
        exhausted += status == 0
        failed += os.WIFEXITED(status) and status != 0
        workers.append(start(folder))
    failed += sum(os.waitpid(worker, 0)[1] != 0 for worker in workers)
    outcome = {"killed": killed, "exhausted": exhausted, "failed": failed, "allowed": allowed(kills)}
    json.dump(outcome, report)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
