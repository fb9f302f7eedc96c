"""Figures 1 to 6, 9 and 10 and Table I of Triastcyn & Faltings (2020): DP and Bayesian DP of the same runs.

    DISCREET_DATA=/path/to/data python experiments/bayesian_dp/run.py
    DISCREET_DATA=/path/to/data python experiments/bayesian_dp/run.py --tasks synthetic abalone
    DISCREET_DATA=/path/to/data python experiments/bayesian_dp/run.py --quick --out DIR

Writes figures and results.json beside this file, or to --out, and compares the numbers with expected.json.
README.md says what reproduces, what does not, and where the settings differ from the paper's.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import digits
import synthetic
import variational

HERE = Path(__file__).parent
TASKS: dict[str, Callable[[Path, bool], dict[str, Any]]] = {
    "synthetic": synthetic.run,
    "abalone": lambda out, quick: variational.run(variational.abalone(), out / "figure9.png", quick),
    "adult": lambda out, quick: variational.run(variational.adult(), out / "figure10.png", quick),
    "mnist": digits.run,
}


def flat(results: Any, name: str = "") -> dict[str, float]:
    """All numbers by a flat name; infinity as a number larger than any."""
    if isinstance(results, dict):
        parts = (flat(value, f"{name}/{key}" if name else str(key)) for key, value in results.items())
        return {key: value for part in parts for key, value in part.items()}
    return {name: float(results)}


def unexpected(results: dict[str, Any], expected: dict[str, list[float]]) -> list[str]:
    """Numbers outside their intervals; an interval above 1e300 expects infinity."""
    measured = flat(results)
    return [
        f"{name}: {measured[name]:.4g} not in [{low:.4g}, {high:.4g}]"
        for name, (low, high) in expected.items()
        if name in measured and not low <= min(measured[name], 1e301) <= high
    ]


def finite(results: Any) -> Any:
    """Infinity as null, which JSON has."""
    if isinstance(results, dict):
        return {key: finite(value) for key, value in results.items()}
    return results if math.isfinite(results) else None


def restored(stored: Any) -> Any:
    if isinstance(stored, dict):
        return {key: restored(value) for key, value in stored.items()}
    return math.inf if stored is None else stored


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few points")
    parser.add_argument("--out", type=Path, default=None, help="folder of the results; this one by default")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    choice = parser.parse_args()
    if choice.quick and choice.out is None:
        parser.error("--quick must come with --out, so that it does not overwrite the full results")
    out: Path = choice.out or HERE
    out.mkdir(parents=True, exist_ok=True)
    stored = out / "results.json"
    results: dict[str, Any] = restored(json.loads(stored.read_text())) if stored.exists() else {}
    for name in choice.tasks:
        began = time.perf_counter()
        results[name] = TASKS[name](out, choice.quick)
        stored.write_text(json.dumps(finite(results), indent=1, sort_keys=True) + "\n")
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    expected = json.loads((HERE / "expected.json").read_text())
    asked = {k: v for k, v in expected["intervals"].items() if k.split("/")[0] in choice.tasks}
    missed = unexpected(results, asked)
    for line in missed:
        print("unexpected:", line)
    print(f"{len(asked)} expected numbers, {len(missed)} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
