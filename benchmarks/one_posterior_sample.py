"""Time from plan to one draw: OnePosteriorSample beside NumPyro's NUTS on the same posterior, in one run.

    export DISCREET_DATA=/work/shared/data
    python benchmarks/one_posterior_sample.py            # abalone and adult: 15 minutes of a quiet machine
    python benchmarks/one_posterior_sample.py abalone    # half a minute

Logistic regression under the beta-divergence at epsilon 1, prior variance 9, features scaled by declared
bounds. Each side runs in a process of its own on one thread, both at the same time and so under the same
load; seconds of the processor decide, and those of the clock stand beside them. Compilation counts, imports
do not. Quality: our draw comes with a total variation distance that coupled chains measured; whether NUTS's
draws have the same law is measured by the largest Kolmogorov-Smirnov distance, over all coordinates, between
many of our draws and its run. Results: benchmarks/results/one_posterior_sample.json.
"""

import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FOLDER = Path(os.environ.get("DISCREET_DATA", "."))
RANGES = {  # declared, not read off
    "abalone": {"length": 1, "diameter": 1, "height": 1.2, "whole_weight": 3, "shucked_weight": 1.5,
                "viscera_weight": 1, "shell_weight": 1.2},
    "adult": {"age": 90, "fnlwgt": 1.5e6, "education_num": 16, "capital_gain": 1e5, "capital_loss": 5e3,
              "hours_per_week": 100},
}  # fmt: skip
CASES = {"abalone": ("abalone.csv.gz", 3759), "adult": ("adult_train.csv.gz", 29305)}


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The first rows, numbers over their declared range, categories one-hot without the first level."""
    file, n = CASES[name]
    with gzip.open(FOLDER / file, "rt") as stream:
        rows = list(csv.DictReader(stream))
    columns: list[np.ndarray] = []
    for column in rows[0]:
        values = [row[column] for row in rows]
        if column in {"rings", "income"}:
            y = np.array(
                [int(v) > 10 if column == "rings" else v.startswith(">") for v in values], dtype=float
            )
        elif (key := column) in RANGES[name] or _is_number(values[0]):
            columns.append(np.clip(np.array(values, dtype=float) / RANGES[name].get(key, 1.0), 0, 1))
        else:
            columns += [
                np.array([v == level for v in values], dtype=float) for level in sorted(set(values))[1:]
            ]
    if name == "abalone":
        columns.append(np.ones(len(rows)))
    return np.column_stack(columns)[:n], y[:n]


def _is_number(text: str) -> bool:
    return text.replace(".", "").replace("-", "").isdigit()


def plan_for(name: str, draws: int = 1, sampler: object = None):
    import discreet as dc

    x, y = table(name)
    model = dc.models.LogisticRegression(x.shape[1], row_norm=1e3, prior_precision=1 / 9)
    mechanism = dc.mechanisms.OnePosteriorSample(model, draws=draws, sampler=sampler)
    return mechanism, {"x": x, "y": y}


def ours(name: str) -> None:
    import discreet as dc

    mechanism, records = plan_for(name)
    clocks = []
    for _ in range(2):
        begin = time.perf_counter(), time.process_time()
        mechanism.plan(n=len(records["y"]), budget=dc.Budget(epsilon=1.0)).release(records)
        clocks.append([time.perf_counter() - begin[0], time.process_time() - begin[1]])
    print(json.dumps(clocks))


def theirs(name: str, loss_numbers: tuple[float, float], steps: int) -> None:
    """NUTS, `steps` of warm-up and as many after it, in double precision, as a NumPyro user writes it."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    x, y = table(name)
    beta, weight = loss_numbers
    with jax.enable_x64(True):
        sign, design = jnp.asarray(2 * y - 1), jnp.asarray(x)

        def posterior() -> None:
            w = numpyro.sample("w", dist.Normal(0.0, 3.0).expand([x.shape[1]]).to_event(1))
            z = sign * (design @ w)
            log_f, log_g = jax.nn.log_sigmoid(z), jax.nn.log_sigmoid(-z)
            whole = jnp.exp(beta * log_f) + jnp.exp(beta * log_g)
            numpyro.factor("loss", weight * jnp.sum(jnp.exp((beta - 1) * log_f) / (beta - 1) - whole / beta))

        begin = time.perf_counter(), time.process_time()
        run = MCMC(NUTS(posterior), num_warmup=steps, num_samples=steps, progress_bar=False)
        run.run(jax.random.key(0))
        draws = np.asarray(run.get_samples()["w"])
    seconds = [time.perf_counter() - begin[0], time.process_time() - begin[1]]
    print(json.dumps([seconds, draws.tolist()]))


def many(name: str, draws: int) -> None:
    """Independent draws of ours, each by a chain of its own."""
    import discreet as dc
    from discreet.samplers.coupled import CoupledChains

    mechanism, records = plan_for(name, draws, CoupledChains(pairs=0, bill=False))
    plan = mechanism.plan(n=len(records["y"]), budget=dc.Budget(epsilon=1.0 * draws))
    print(json.dumps(plan.release(records, key=1).draws["w"].tolist()))


def start(*arguments: object) -> tuple[subprocess.Popen[str], Path]:
    """A child on one thread, and where it writes."""
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    environment = {**os.environ, "XLA_FLAGS": flags, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *map(str, arguments)]
    handle, path = tempfile.mkstemp()
    return subprocess.Popen(command, stdout=handle, text=True, env=environment), Path(path)


def answer(child: tuple[subprocess.Popen[str], Path]) -> list:
    """What it printed last."""
    process, path = child
    if process.wait():
        raise SystemExit(f"a child failed: {process.args}")
    return json.loads(path.read_text().splitlines()[-1])


def distance(mine: np.ndarray, peers: np.ndarray) -> dict[str, float]:
    """The largest marginal Kolmogorov-Smirnov distance, and its p-value over all coordinates.

    NUTS's draws depend on each other: each coordinate counts as many of them as its
    effective sample size.
    """
    from numpyro.diagnostics import effective_sample_size
    from scipy.stats import ks_2samp, kstwo

    sizes = np.minimum(effective_sample_size(peers[None]), len(peers))
    gaps = np.array([ks_2samp(mine[:, k], peers[:, k]).statistic for k in range(mine.shape[1])])
    counts = len(mine) * sizes / (len(mine) + sizes)
    p = [kstwo.sf(gap, max(1, round(count))) for gap, count in zip(gaps, counts, strict=True)]
    return {
        "largest marginal distance": float(gaps.max()),
        "p-value (Bonferroni)": float(min(1.0, min(p) * len(p))),
        "draws of ours": len(mine),
        "smallest effective sample size of NUTS": float(sizes.min()),
    }


def measure(name: str, steps: int) -> dict[str, object]:
    import discreet as dc

    mechanism, records = plan_for(name)
    plan = mechanism.plan(n=len(records["y"]), budget=dc.Budget(epsilon=1.0))
    chosen, sampler = plan.parameters, plan.mechanism.sampler
    nuts = start("theirs", name, chosen["beta"], chosen["weight"], steps)
    runs = [answer(start("ours", name)) for _ in range(3 if name == "abalone" else 1)]
    first, second = np.median([r[0] for r in runs], axis=0), np.median([r[1] for r in runs], axis=0)
    mine = np.array(answer(start("many", name, 400 if name == "abalone" else 100)))
    peer, draws = answer(nuts)
    return {
        "records": len(records["y"]),
        "parameters": records["x"].shape[1],
        "sampler": f"CoupledChains(meet={sampler.meet}, pairs={sampler.pairs}), {sampler.steps} steps",
        "total variation measured by coupled chains, at most": sampler.gamma,
        "processor seconds": {"ours": first[1], "again": second[1], f"NUTS {steps} + {steps}": peer[1]},
        "clock seconds": {"ours": first[0], "again": second[0], f"NUTS {steps} + {steps}": peer[0]},
        "runs of ours": [[round(v, 3) for clock in run for v in clock] for run in runs],
        "ratio": peer[1] / first[1],
        "ratio again": peer[1] / second[1],
        "ratio by the clock": peer[0] / first[0],
        "target": 5.0,
        "met": bool(peer[1] / first[1] >= 5.0),
        "same law": distance(mine, np.array(draws)),
        "load average at the end": os.getloadavg()[0],
    }


def main(names: list[str], steps: int = 1000) -> None:
    path = Path(__file__).parent / "results" / "one_posterior_sample.json"
    found: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        found[name] = json.loads(json.dumps(measure(name, steps), default=float))
        path.write_text(json.dumps(found, indent=2) + "\n")
        print(name, json.dumps(found[name], indent=2), flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ours", name]:
            ours(name)
        case ["theirs", name, beta, weight, steps]:
            theirs(name, (float(beta), float(weight)), int(steps))
        case ["many", name, draws]:
            many(name, int(draws))
        case names:
            main(names or list(CASES))
