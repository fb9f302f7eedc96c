"""Many processes spend from one ledger and are killed at random instants.

    python tests/faults/swarm.py PLACE FOLDER KILLS SEED

One process forks `WORKERS` others, which spend, "release" a file into FOLDER and report it, again and
again. It kills one after another with SIGKILL, some milliseconds after it began, and replaces it. At the
end the survivors run until the budget refuses them. What was killed where is printed as JSON.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from discreet.ledger import BudgetExceeded, Ledger
from discreet.privacy import Budget, Neighbours, pure

WORKERS = 16
COST = 0.01


def allowed(kills: int) -> int:
    """How many spends the budget allows."""
    return 2 * kills + 40


def budget(kills: int) -> Budget:
    return Budget(COST * allowed(kills), neighbours=Neighbours.SUBSTITUTE)


def work(place: str, folder: Path, seed: int) -> NoReturn:
    """Spend, draw, release, report, until killed or refused. Nothing is released without a receipt."""
    draw = random.Random(seed)
    ledger = Ledger(place, dataset="clinic", who=f"worker {os.getpid()}")
    cost = pure(COST, neighbours="substitute")
    while True:
        try:
            receipt = ledger.spend(cost, "fault test", plan="ab" * 32)
        except BudgetExceeded:
            os._exit(0)
        time.sleep(draw.uniform(0.0, 0.1))
        release = json.dumps({"position": receipt.position, "hash": receipt.hash}).encode()
        with (folder / f"{receipt.position}.json").open("xb") as file:  # two releases of one spend would fail
            file.write(release)
        ledger.complete(receipt, hashlib.sha256(release).hexdigest())


def start(place: str, folder: Path, seed: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work(place, folder, seed)
    except BaseException as error:  # noqa: BLE001
        print(f"worker failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def main(place: str, folder: Path, kills: int, seed: int) -> None:
    draw = random.Random(seed)
    Ledger(place, dataset="clinic", budget=budget(kills))
    begun = time.monotonic()
    workers = [start(place, folder, draw.getrandbits(32)) for _ in range(WORKERS)]
    killed = exhausted = failed = 0
    while killed < kills:
        time.sleep(draw.uniform(0.0, 0.1))
        victim = workers.pop(draw.randrange(len(workers)))
        os.kill(victim, signal.SIGKILL)
        _, status = os.waitpid(victim, 0)
        killed += os.WIFSIGNALED(status)
        exhausted += status == 0
        failed += os.WIFEXITED(status) and status != 0
        workers.append(start(place, folder, draw.getrandbits(32)))
    storm = time.monotonic() - begun
    failed += sum(os.waitpid(worker, 0)[1] != 0 for worker in workers)
    print(
        json.dumps(
            {
                "killed": killed,
                "exhausted": exhausted,
                "failed": failed,
                "storm": storm,
                "all": time.monotonic() - begun,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
