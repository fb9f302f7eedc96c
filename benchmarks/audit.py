"""Attack every mechanism: three plans of each and more, replay, and the null test.

    make audit            # or: python benchmarks/audit.py [--only NAME] [--out FILE]

Writes benchmarks/results/audit.json after every plan. Target (issue 8): no lower bound at 99.9% confidence
above its claim; at most 40 minutes on 2 cores. Two processes share the plans.
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "audit"))


def cpu() -> float:
    """CPU seconds of this process and the children it waited for."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, whose))


def one(k: int) -> dict[str, Any]:
    """Everything about one plan."""
    import catalogue  # pyright: ignore[reportMissingImports]

    from discreet import audit

    entry = catalogue.ENTRIES[k]
    began, used = time.monotonic(), cpu()
    plan = entry.make()
    pair = audit.worst_pair(plan)
    found = audit.membership(plan, pair, trials=entry.trials, key=1000 + k)
    replayed = audit.sensitivity(plan, [pair, *audit.random_pairs(plan, 3, seed=k)], runs=2, key=2000 + k)
    row = {"name": entry.name, **found.to_dict(), "seconds": round(time.monotonic() - began, 1)}
    del row["curve"]
    row["cpu_seconds"] = round(cpu() - used, 1)
    row["moved"] = {moved.name: [moved.measured, moved.declared] for moved in replayed.moved}
    row["flow"], row["disclosed"] = list(replayed.flow), list(replayed.disclosed)
    row["replay_passes"] = replayed.passes
    return row


def null(k: int) -> dict[str, Any]:
    """The null test."""
    from discreet import audit

    found = audit.null(repetitions=200, key=k)
    return {"alarms": found.alarms, "allowed": found.allowed, "passes": found.passes}


def main() -> None:
    import catalogue  # pyright: ignore[reportMissingImports]

    asked = argparse.ArgumentParser()
    asked.add_argument("--only", default="")
    asked.add_argument("--out", type=Path, default=HERE / "results" / "audit.json")
    asked.add_argument("--processes", type=int, default=2)
    given = asked.parse_args()
    wanted = [k for k, entry in enumerate(catalogue.ENTRIES) if given.only in entry.name]
    wanted.sort(key=lambda k: catalogue.ENTRIES[k].trials)
    began = time.monotonic()
    rows: dict[str, dict[str, Any]] = {}
    result: dict[str, Any] = {"cores": os.cpu_count(), "confidence": 0.999, "plans": rows}
    if given.only and given.out.exists():
        rows.update(json.loads(given.out.read_text())["plans"])
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        nulled = None if given.only else pool.apply_async(null, (7,))
        for row in pool.imap_unordered(one, wanted):
            rows[row.pop("name")] = row
            worth = f"{row['epsilon']:.3f} of {row['claim']:.3f}"
            bad = "" if row["passes"] and row["replay_passes"] else "  <-- FAILS"
            print(f"{list(rows)[-1]:45} {worth:18} {row['seconds']:6.1f} s{bad}", flush=True)
            given.out.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
        if nulled is not None:
            result["null"] = nulled.get()
    result["minutes"] = round((time.monotonic() - began) / 60, 1)
    result["cpu_minutes"] = round(sum(row["cpu_seconds"] for row in rows.values()) / 60, 1)
    given.out.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    failed = [name for name, row in rows.items() if not (row["passes"] and row["replay_passes"])]
    print(
        f"{len(rows)} plans in {result['minutes']} minutes; null test: {result.get('null')}; failed: {failed}"
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
