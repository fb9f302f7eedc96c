"""Time the accountant beside its peers, as ratios in one run.

    python benchmarks/privacy.py [--repeats 9] [--no-peers]

Each comparison interleaves the two sides and keeps the median of the repeats. Results go to
benchmarks/results/privacy.json; the exit status is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import dp_accounting
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.privacy import Budget, Neighbours, barker, calibrate, poisson_gaussian

HERE = Path(__file__).parent
PEERS = HERE / ".venv"
RESULTS = HERE / "results" / "privacy.json"

RATE, STEPS, DELTA = 256 / 60000, 3515, 1e-5
BARKER = {
    "N=1e5 b=1000 T=5000": (1000, 100_000, 5000, 1e-5),
    "N=1e5 b=1000 T=1000": (1000, 100_000, 1000, 1e-5),
    "N=6e4 b=500 T=2000": (500, 60_000, 2000, 1e-5),
    "N=1e6 b=1000 T=5000": (1000, 1_000_000, 5000, 1e-6),
}
CALIBRATION = {"epsilon": 1.0, "delta": 1e-6, "rate": 0.01, "steps": 10_000}


@dataclass(frozen=True)
class Line:
    """One measured number beside its target."""

    what: str
    value: float
    unit: str
    target: float | None
    at_most: bool
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


# --- (a) one epsilon beside dp-accounting -------------------------------------


def direct(sigma: float, interval: float) -> float:
    """What a user of dp-accounting writes."""
    one = pld.from_gaussian_mechanism(
        sigma,
        sampling_prob=RATE,
        value_discretization_interval=interval,
        neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    )
    return float(one.self_compose(STEPS).get_epsilon_for_delta(DELTA))


def ours(sigma: float) -> float:
    return poisson_gaussian(RATE, sigma, STEPS, neighbours="add_remove").epsilon(DELTA)


def poisson_epsilon(repeats: int) -> list[Line]:
    """Fresh parameters in every repeat, because discreet remembers what it has convolved."""
    # dp-accounting's own default interval.
    interval = 1e-4
    ours(1.29)
    direct(1.29, interval)
    mine, theirs = [], []
    for i in range(repeats):
        sigma = 1.3 + 1e-4 * i
        sides = [(mine, lambda s=sigma: ours(s)), (theirs, lambda s=sigma: direct(s, interval))]
        for store, call in sides if i % 2 else reversed(sides):
            store.append(seconds(call))
    note = (
        f"ours {1e3 * median(mine):.1f} ms (epsilon {ours(1.3):.4f}), "
        f"dp-accounting {1e3 * median(theirs):.1f} ms (epsilon {direct(1.3, interval):.4f})"
    )
    return [
        Line(
            "Poisson-Gaussian epsilon, ours / dp-accounting",
            median(mine) / median(theirs),
            "x",
            1.1,
            True,
            note,
        )
    ]


# --- (b) the exact Barker bound -----------------------------------------------


def barker_epsilon(repeats: int) -> list[Line]:
    times: dict[str, list[float]] = {name: [] for name in BARKER}
    processor: dict[str, list[float]] = {name: [] for name in BARKER}
    found: dict[str, float] = {}
    for i in range(repeats + 1):
        for name, (batch, size, steps, delta) in BARKER.items():
            # One more step each time, so that nothing is remembered.
            before = time.process_time()
            spent = seconds(lambda a=(batch, size, steps + i), d=delta: barker(*a).epsilon(d))
            if i:
                times[name].append(spent)
                processor[name].append(time.process_time() - before)
            else:
                found[name] = barker(batch, size, steps).epsilon(delta)
    return [
        Line(
            f"exact Barker epsilon, {name}",
            1e3 * median(spent),
            "ms",
            100.0,
            True,
            f"epsilon {found[name]:.4g}, processor time {1e3 * median(processor[name]):.0f} ms",
        )
        for name, spent in times.items()
    ]


# --- (c) calibration beside Opacus --------------------------------------------

_OPACUS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from opacus.accountants.utils import get_noise_multiplier
print("ready", flush=True)
for line in sys.stdin:
    a = json.loads(line)
    start = time.perf_counter()
    sigma = get_noise_multiplier(
        target_epsilon=a["epsilon"], target_delta=a["delta"], sample_rate=a["rate"], steps=a["steps"],
        accountant="prv", epsilon_tolerance=a["tolerance"],
    )
    print(json.dumps([sigma, time.perf_counter() - start]), flush=True)
"""


def peers() -> tuple[str, str]:
    """The interpreter of the peers' environment, made when missing; and why not, if it cannot be."""
    python = PEERS / ("Scripts" if os.name == "nt" else "bin") / "python"
    probe = [str(python), "-c", "import opacus"]
    if python.exists() and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        return str(python), ""
    print("making benchmarks/.venv for the peers ...", flush=True)
    venv.create(PEERS, with_pip=True)
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "-r",
        str(HERE / "requirements.txt"),
    ]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return str(python), ""
    return (
        "",
        "benchmarks/requirements.txt cannot be installed here (pip exit status " + f"{done.returncode})",
    )


def our_calibration(epsilon: float) -> tuple[float, float]:
    budget = Budget(epsilon, CALIBRATION["delta"], Neighbours.ADD_REMOVE)
    start = time.perf_counter()
    found = calibrate(
        lambda sigma: poisson_gaussian(
            CALIBRATION["rate"], sigma, int(CALIBRATION["steps"]), neighbours="add_remove"
        ),
        budget,
        bracket=(0.3, 100.0),
    )
    return found.value, time.perf_counter() - start


def calibration(repeats: int, use_peers: bool) -> tuple[list[Line], list[str]]:
    python, why = peers() if use_peers else ("", "--no-peers was given")
    # Ours is within 1e-6 of the boundary, so the comparable tolerance is the finer one.
    tolerances = {"0.0001": (1e-4, 5.0), "0.01, its default": (0.01, None)}
    mine: list[float] = []
    theirs: dict[str, list[tuple[float, float]]] = {name: [] for name in tolerances}
    first = our_calibration(CALIBRATION["epsilon"])
    process = None
    if python:
        process = subprocess.Popen(
            [python, "-c", _OPACUS], stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
    for i in range(max(3, repeats // 3)):
        # A slightly different budget each time, so that neither side remembers.
        epsilon = CALIBRATION["epsilon"] + 1e-7 * (i + 1)
        mine.append(our_calibration(epsilon)[1])
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            for name, (tolerance, _) in tolerances.items():
                asked = {**CALIBRATION, "epsilon": epsilon, "tolerance": tolerance}
                process.stdin.write(json.dumps(asked) + "\n")
                process.stdin.flush()
                sigma, spent = json.loads(process.stdout.readline())
                theirs[name].append((sigma, spent))
    if process is not None:
        process.communicate()
    note = f"sigma {first[0]:.6f}, within 1e-6 relative"
    lines = [Line("calibrating sigma", median(mine), "s", 2.0, True, note)]
    for name, runs in theirs.items():
        if runs:
            spent = median(t for _, t in runs)
            note = f"Opacus {spent:.2f} s, sigma {median(s for s, _ in runs):.6f}"
            what = f"calibrating sigma, Opacus PRV (epsilon tolerance {name}) / ours"
            lines.append(Line(what, spent / median(mine), "x", tolerances[name][1], False, note))
    return lines, [f"skipped: Opacus PRV calibration, because {why}"] if why else []


# --- report -------------------------------------------------------------------


def machine() -> dict[str, Any]:
    names = {"opacus", "torch"}
    pins = dict(
        line.strip().split("==")
        for line in (HERE / "requirements.txt").read_text().splitlines()
        if "==" in line and line.split("==")[0] in names
    )
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {p: version(p) for p in ("discreet", "dp-accounting", "numpy", "scipy")},
        "peers": pins,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--no-peers", action="store_true", help="leave Opacus out")
    asked = parser.parse_args()
    calibrated, skipped = calibration(asked.repeats, not asked.no_peers)
    lines = [*poisson_epsilon(asked.repeats), *barker_epsilon(asked.repeats), *calibrated]

    width = max(len(line.what) for line in lines)
    print(f"{'':{width}}  {'measured':>12}  {'target':>12}")
    for line in lines:
        sign = "<=" if line.at_most else ">="
        measured = f"{line.value:.3g} {line.unit}"
        target = "none" if line.target is None else f"{sign} {line.target:g} {line.unit}"
        verdict = {True: "met; ", False: "MISSED; ", None: ""}[line.met]
        print(f"{line.what:{width}}  {measured:>12}  {target:>12}  {verdict}{line.note}")
    for sentence in skipped:
        print(sentence)
    about = machine()
    load, cores = about["load"], about["cores"]
    if load is not None and load > 1.5 * cores:
        print(f"load {load} on {cores} cores: times are of a busy machine, only the ratios mean something")
    RESULTS.parent.mkdir(exist_ok=True)
    stored = {
        "machine": about,
        "repeats": asked.repeats,
        "results": [{**asdict(line), "met": line.met} for line in lines],
        "skipped": skipped,
    }
    RESULTS.write_text(json.dumps(stored, indent=2) + "\n")
    return 1 if any(line.met is False for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
