"""Figures 1 to 6 of Heikkila et al. (2019), and the one the paper lacks: posterior error against epsilon.

    python experiments/dp_mcmc/run.py            # N = 1e6, 20 runs: a quarter of an hour
    python experiments/dp_mcmc/run.py --quick    # N = 1e5, 4 runs: for CI

Writes figure1.png .. figure7.png and results.json beside this file (to --out with --quick), and compares the
numbers with expected.json. The fits of paper M (a mixture) and of Seita et al. (ridge regression) to the
logistic correction live here only: the library uses a linear program.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from chains import BATCH, FREED, SCALE, STEPS, exact, langevin, piloted, private, published
from corrections import figures456
from figures import figure1, figure2, figure3, figure7
from style import BLUE, GREEN, ORANGE
from target import Truth, data, errors

HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--only7", action="store_true", help="figures 2, 3 and 7, with the other numbers kept"
    )
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    quick, out = options.quick, options.out
    if quick and out == HERE:
        parser.error("--quick needs --out, so that the committed figures stay")
    out.mkdir(parents=True, exist_ok=True)
    n, runs = (10**5, 4) if quick else (10**6, 20)
    x = data(n)
    truth = Truth(x)
    times = np.linspace(1_000, STEPS, 9).astype(int)
    print(f"posterior mean {truth.mean.round(3)}, variance {truth.variance.round(3)}", flush=True)

    plain = truth.chains(runs, STEPS, SCALE, seed=1)
    draws, clipped = private(x, runs, steps=STEPS, batch=BATCH, key=1)
    reference = plain[0].mean(axis=0), plain[0].var(axis=0)
    at_paper = errors(draws, times, *reference)
    results: dict[str, float] = {
        "epsilon_published": published(n, STEPS),
        "epsilon_exact": exact(n, STEPS),
        "figure3_mean_error_at_5000": float(at_paper[0, :, -1].mean()),
        "figure3_variance_error_at_5000": float(at_paper[1, :, -1].mean()),
        "clipped_share": float(clipped),
    }
    figure2(out, plain[0], draws[0], (results["epsilon_published"], results["epsilon_exact"]))
    figure3(out, times, at_paper, errors(plain[1:], times, *reference), n)
    print("figures 2, 3", flush=True)
    if options.only7:
        results = json.loads((out / "results.json").read_text()) | results
    else:
        results |= figure1(out, x, quick)
        results |= figures456(out, 500 if quick else 20_000, quick)
        print("figures 1, 4, 5, 6", flush=True)

    freed = dict(FREED, steps=2_000) if quick else FREED
    steps, batch = freed["steps"], freed["batch"]
    begin = time.perf_counter()
    long, freed_clipped = piloted(x, runs, steps=steps, batch=batch)
    print(f"figure 7: {time.perf_counter() - begin:.0f} s", flush=True)
    later = np.linspace(steps / 10, steps, 10).astype(int)
    begin, moments = time.perf_counter(), np.linspace(1_000, 2_000 if quick else 10_000, 10).astype(int)
    moved, moved_spent = langevin(x, runs, moments)
    print(f"Langevin dynamics: {time.perf_counter() - begin:.0f} s", flush=True)
    before, after, beside = (
        errors(d, t, truth.mean, truth.variance) for d, t in ((draws, times), (long, later), (moved, moments))
    )
    figure7(
        out,
        {
            "published accounting": ([published(n, int(t)) for t in times], before, ORANGE, "o-"),
            "same chain, exact accounting": ([exact(n, int(t)) for t in times], before, BLUE, "s--"),
            "the freed budget spent": ([exact(n, int(t), batch, runs) for t in later], after, BLUE, "o-"),
            "Langevin dynamics": (moved_spent, beside, GREEN, "^-"),
        },
    )
    results |= {
        "freed_epsilon": exact(n, steps, batch, runs),
        "freed_clipped_share": float(freed_clipped),
        "error_mean_published": float(before[0, :, -1].mean()),
        "error_mean_freed": float(after[0, :, -1].mean()),
        "error_variance_published": float(before[1, :, -1].mean()),
        "error_variance_freed": float(after[1, :, -1].mean()),
        "langevin_epsilon": moved_spent[-1],
        "error_mean_langevin": float(beside[0, :, -1].mean()),
        "error_variance_langevin": float(beside[1, :, -1].mean()),
    }
    results["times_smaller"] = (results["error_mean_published"] + results["error_variance_published"]) / (
        results["error_mean_freed"] + results["error_variance_freed"]
    )
    (out / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))
    if quick:
        return 0
    expected = json.loads((HERE / "expected.json").read_text())
    wrong = [k for k, (low, high) in expected.items() if not low <= results[k] <= high]
    print("as expected" if not wrong else f"not as expected: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
