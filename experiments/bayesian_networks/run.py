"""Tables 2 to 5 and Figures 1, 4 to 11 and 13 of Zhang, Bu, Chen & Long (paper N), at its true privacy.

    DISCREET_DATA=/path/to/data python experiments/bayesian_networks/run.py           # the targets, 3 seeds
    DISCREET_DATA=/path/to/data python experiments/bayesian_networks/run.py --full    # every cell, 3 seeds
    DISCREET_DATA=/path/to/data python experiments/bayesian_networks/run.py --quick --out DIR   # minutes

Writes runs/*.json, regression.json, sweeps.json, results.json, tables.md and figure*.png beside this file,
or to --out. What is there is not run again, unless --fresh asks for it. README.md says what differs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import figures
import numpy as np
import regression
import sweeps
import tables
from classify import Bench
from settings import Setting

HERE = Path(__file__).parent

TARGETS = [
    Setting("sgld", "mlp"),
    Setting("bbp", "mlp"),
    Setting("mcd", "mlp"),
    Setting("sgd", "mlp", "none"),
    Setting("sgld", "cnn"),
    Setting("sgld", "scattering"),
]


def cells() -> list[Setting]:
    """Every cell of Tables 2 to 4."""
    found = list(TARGETS)
    for private in (True, False):
        for network in ("mlp", "cnn"):
            for method in ("sgld", "bbp", "mcd", "sgd"):
                for prior in ("gaussian", "laplace", "none"):
                    # No variational convolution, as in the paper; Laplace priors where Table 2 has them.
                    unlisted = prior == "laplace" and method not in {"sgld", "bbp"}
                    if unlisted or (method, network) == ("bbp", "cnn"):
                        continue
                    found.append(Setting(method, network, prior, private))
    return list(dict.fromkeys(found))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="every cell of the tables")
    parser.add_argument(
        "--quick", action="store_true", help="6,000 digits, 60 steps, one seed: a test of the code"
    )
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")
    parser.add_argument(
        "--collect", action="store_true", help="run nothing; tables and figures of what is there"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None, help="folder of the results; this one by default")
    choice = parser.parse_args()
    if choice.quick and choice.out is None:
        parser.error("--quick must come with --out, so that it does not overwrite the full results")
    out: Path = choice.out or HERE
    out.mkdir(parents=True, exist_ok=True)
    if choice.fresh:
        for old in ("runs", "cache"):
            shutil.rmtree(out / old, ignore_errors=True)
        for old in ("regression.json", "sweeps.json"):
            (out / old).unlink(missing_ok=True)
    began = time.perf_counter()
    bench = Bench(out, rows=6000, steps=60) if choice.quick else Bench(out)
    seeds = 1 if choice.quick else choice.seeds
    wanted = cells() if choice.full or choice.quick else TARGETS
    for setting in [] if choice.collect else wanted:
        for seed in range(seeds):
            bench.run(setting, seed)
    errors = regression.table(out, 0 if choice.collect else 2 if choice.quick else 20)
    if (choice.full or choice.quick) and not choice.collect:
        sweeps.run(bench, quick=choice.quick)
    results = summary(out, errors)
    (out / "results.json").write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    (out / "tables.md").write_text(tables.markdown(results))
    missing = draw(out, errors)
    missed = [] if choice.quick else unexpected(results, json.loads((HERE / "expected.json").read_text()))
    for line in missed:
        print("unexpected:", line)
    if missing:
        print("not drawn, for want of runs (--full has them):", ", ".join(missing))
    print(f"{len(missed)} unexpected, {time.perf_counter() - began:.0f} s")
    return 1 if missed else 0


def summary(out: Path, errors: dict[str, Any]) -> dict[str, Any]:
    """Medians over seeds of every setting, and of the regression."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((out / "runs").glob("*.json")):
        one = json.loads(path.read_text())
        runs.setdefault(one["setting"], []).append(one)
    found: dict[str, Any] = {}
    for name, group in runs.items():
        numbers = [key for key, value in group[0].items() if isinstance(value, float)]
        medians = {key: float(np.median([one[key] for one in group])) for key in numbers}
        found[name] = {**medians, "seeds": len(group), "accounts": group[0]["accounts"]}
    small = {cell: {k: v for k, v in one.items() if k != "bands"} for cell, one in errors.items()}
    return {"digits": found, "regression": small}


def draw(out: Path, errors: dict[str, Any]) -> list[str]:
    """Every figure whose runs are there; the names of the others."""
    return [
        *figures.bands(out, errors),
        *figures.calibration(out),
        *figures.distributions(out),
        *sweeps.draw(out),
    ]


def unexpected(results: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Numbers outside of their interval in expected.json."""
    lines: list[str] = []
    for group, settings in expected.items():
        for name, intervals in settings.items():
            if name not in results[group]:
                lines.append(f"{name} was not run")
                continue
            for key, (low, high) in intervals.items():
                value = results[group][name][key]
                if not low <= value <= high:
                    lines.append(f"{name} {key} {value:.4f} is outside of {low} to {high}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
