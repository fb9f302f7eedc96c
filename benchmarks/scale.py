"""One chain on a table that is larger than it may be resident: time, and peak resident size of each process.

    python benchmarks/scale.py --rows 1e8 --folder /some/disk --out benchmarks/results/scale.json

Makes a Parquet file of that many invented rows, and releases a logistic regression of it twice with the
command line: by Barker's test on minibatches in one process, and by Barker's test on all records in two
processes of `jax.distributed` on loopback. Peak resident size is the kernel's (ru_maxrss, which counts
mapped pages of files). Fails where a process had more than 2 GiB.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

LIMIT_MIB = 2048
ROW_GROUP = 1 << 20

STUDY = """
[data]
path = "people.parquet"
target = "ill"
records = {rows}
scale = "centred"
stream = true
scratch = "."

[data.columns.age]
kind = "real"
lower = 18
upper = 100

[data.columns.bmi]
kind = "real"
lower = 12
upper = 60

[data.columns.ill]
kind = "binary"
values = [0, 1]

[model]
name = "LogisticRegression"

[mechanism]
name = "BarkerMCMC"
{mechanism}

[privacy]
epsilon = 1.0
delta = 1e-9
neighbours = "substitute"

[ledger]
place = "people.ledger"

[report]
page = false
"""

CHAINS = {
    "minibatches, 1 process": ("scale = 0.3\nsteps = {steps}\nbatch = 1000\ntempered_size = 100", 1),
    "all records, 2 processes": ("scale = 0.15\nsteps = {steps}\nbatch = {rows}\ntempered_size = 1000", 2),
}


def make(folder: Path, rows: int) -> None:
    """The table, in row groups, without ever holding it."""
    g = np.random.Generator(np.random.Philox(20_261_119))
    parts = folder / "parts"
    parts.mkdir()
    for place, start in enumerate(range(0, rows, ROW_GROUP)):
        n = min(ROW_GROUP, rows - start)
        age = g.uniform(18, 100, n).astype(np.float32)
        bmi = np.clip(g.normal(27, 5, n), 12, 60).astype(np.float32)
        score = 1.6 * (age - 59) / 41 + 2.4 * (bmi - 36) / 24 - 0.3
        ill = (g.random(n) < 1 / (1 + np.exp(-score))).astype(np.int8)
        pl.DataFrame({"age": age, "bmi": bmi, "ill": ill}).write_parquet(parts / f"{place:05d}.parquet")
    pl.scan_parquet(parts / "*.parquet").sink_parquet(folder / "people.parquet", row_group_size=ROW_GROUP)
    shutil.rmtree(parts)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from discreet.cli import app; app()", *arguments]


def run(commands: list[list[str]], folder: Path) -> tuple[float, list[dict[str, float]]]:
    """Seconds until all are done, and what the kernel says of each."""
    began = time.monotonic()
    started = [subprocess.Popen(each, cwd=folder, stdout=subprocess.DEVNULL) for each in commands]
    used: list[dict[str, float]] = []
    for each in started:
        _, status, usage = os.wait4(each.pid, 0)
        each.returncode = os.waitstatus_to_exitcode(status)
        assert each.returncode == 0, each.args
        used.append({
            "peak_resident_mib": round(usage.ru_maxrss / 1024, 1),
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        })  # fmt: skip
    return time.monotonic() - began, used


def chain(name: str, folder: Path, rows: int, steps: int) -> dict[str, Any]:
    settings, processes = CHAINS[name]
    study = STUDY.format(rows=rows, mechanism=settings.format(rows=rows, steps=steps))
    (folder / "study.toml").write_text(study)
    out = folder / f"release{processes}"
    release = ["release", "study.toml", "--out", out.name, "--yes"]
    if processes > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        together = [
            command(*release, "--join", address, "--process", f"{k}/{processes}") for k in range(processes)
        ]
    else:
        together = [command(*release)]
    seconds, used = run(together, folder)
    saved = json.loads((out / "release.json").read_text())
    import discreet as dc

    drawn = dc.Release.load(out)
    return {
        "steps": steps,
        "seconds": round(seconds, 1),
        "processes": used,
        "epsilon at delta 1e-9": drawn.guarantee.epsilon(1e-9),
        "evidence": [claim["claim"] for claim in saved["evidence"]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--steps", type=int, nargs=2, default=(5000, 60), metavar=("MINIBATCHES", "ALL"))
    parser.add_argument("--folder", type=Path, help="where the table and the stored records lie")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = int(given.rows)
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        folder = Path(place)
        began = time.monotonic()
        make(folder, rows)
        results: dict[str, Any] = {
            "rows": rows,
            "parquet_mib": round((folder / "people.parquet").stat().st_size / 2**20, 1),
            "in_memory_mib": round(rows * 4 * 8 / 2**20, 1),
            "limit_mib": LIMIT_MIB,
            "cpus": os.cpu_count(),
            "load_before": round(os.getloadavg()[0], 1),
            "python": platform.python_version(),
            "seconds_to_invent": round(time.monotonic() - began, 1),
        }
        budget = ["--epsilon", "9", "--delta", "1e-8", "--neighbours", "substitute", "--dataset", "people"]
        run([command("ledger", "open", "people.ledger", *budget)], folder)
        for name, steps in zip(CHAINS, given.steps, strict=True):
            results[name] = chain(name, folder, rows, steps)
            print(name, json.dumps(results[name], indent=2), flush=True)
    peaks = [each["peak_resident_mib"] for name in CHAINS for each in results[name]["processes"]]
    results["largest_peak_mib"] = max(peaks)
    if given.out is not None:
        given.out.write_text(json.dumps(results, indent=2) + "\n")
    print(
        f"largest peak {max(peaks):.0f} MiB of {LIMIT_MIB}, stored records {results['in_memory_mib']:.0f} MiB"
    )
    sys.exit(max(peaks) > LIMIT_MIB)


if __name__ == "__main__":
    main()
