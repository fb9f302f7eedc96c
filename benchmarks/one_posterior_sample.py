"""Time from plan to one draw: OnePosteriorSample beside NumPyro's NUTS on the same posterior, in one run.

    export DISCREET_DATA=/work/shared/data
    python benchmarks/one_posterior_sample.py            # abalone and adult
    python benchmarks/one_posterior_sample.py --quick    # abalone
    python benchmarks/one_posterior_sample.py --short    # adult, NUTS 50 + 50: a lower bound

Logistic regression under the beta-divergence at epsilon 1, prior variance 9, features scaled by declared
bounds. Each side runs in a fresh process, so compilation counts, imports do not. Quality: means and
deviations of many of our draws beside those of the NUTS run.
"""

import csv
import gzip
import json
import os
import subprocess
import sys
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
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        mechanism.plan(n=len(records["y"]), budget=dc.Budget(epsilon=1.0)).release(records)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps(seconds))


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

        begin = time.perf_counter()
        run = MCMC(NUTS(posterior), num_warmup=steps, num_samples=steps, progress_bar=False)
        run.run(jax.random.key(0))
        draws = np.asarray(run.get_samples()["w"])
    seconds = time.perf_counter() - begin
    print(json.dumps([seconds, draws.mean(0).tolist(), draws.std(0).tolist()]))


def check(name: str, draws: int) -> None:
    """Means and deviations of many of our draws, for the comparison of quality."""
    import discreet as dc
    from discreet.samplers.coupled import CoupledChains

    mechanism, records = plan_for(name, draws, CoupledChains(pairs=0, bill=False))
    plan = mechanism.plan(n=len(records["y"]), budget=dc.Budget(epsilon=1.0 * draws))
    found = plan.release(records, key=1).draws["w"]
    print(json.dumps([found.mean(0).tolist(), found.std(0).tolist()]))


def child(*arguments: object) -> list:
    command = [sys.executable, __file__, *map(str, arguments)]
    return json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    )


def main() -> None:
    import discreet as dc

    short = "--short" in sys.argv
    steps = 50 if short else 1000
    for name in ["abalone"] if "--quick" in sys.argv else ["adult"] if short else CASES:
        mechanism, records = plan_for(name)
        chosen = mechanism.plan(n=len(records["y"]), budget=dc.Budget(epsilon=1.0)).parameters
        first, second = child("ours", name)
        peer, means, deviations = child("theirs", name, chosen["beta"], chosen["weight"], steps)
        if short:
            print(
                f"adult: {first:.2f} s, again {second:.2f} s, NUTS {steps}+{steps} {peer:.1f} s", flush=True
            )
            continue
        mine = np.array(child("check", name, 400 if name == "abalone" else 100))
        shift = np.abs(mine[0] - means) / np.array(deviations)
        spread = np.abs(np.log(mine[1] / np.array(deviations)))
        print(
            f"{name}: n {len(records['y'])}, d {records['x'].shape[1]}: plan to draw {first:.2f} s, again "
            f"{second:.2f} s, NUTS {steps}+{steps} {peer:.1f} s: {peer / first:.1f} and {peer / second:.1f} "
            f"times faster; marginal means within {shift.max():.2f} (mean {shift.mean():.2f}) and log "
            f"deviations within {spread.max():.2f} (mean {spread.mean():.2f}) of NUTS's",
            flush=True,
        )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ours", name]:
            ours(name)
        case ["theirs", name, beta, weight, steps]:
            theirs(name, (float(beta), float(weight)), int(steps))
        case ["check", name, draws]:
            check(name, int(draws))
        case _:
            main()
