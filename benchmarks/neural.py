"""Private steps of neural networks beside their peers, as ratios in one run.

    python benchmarks/neural.py            # three minutes on two cores
    python benchmarks/neural.py --quick    # fewer repeats, nothing written

Paper N's network, 784-1200-1200-10, at batches of 256, and the CNN of Opacus' example. Plain steps are
ordinary jitted JAX with donated buffers. "Whole" steps are those of a release: Poisson batches of 256 from
60,000 records, noise, update; compilation is not counted. Peers (requirements-neural.txt) live in
benchmarks/.venv-neural, or in the environment that DISCREET_PEERS names; without them they are left out.
Writes benchmarks/results/neural.json; exit status 1 if a target is missed.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "neural.json"
PEERS = Path(os.environ.get("DISCREET_PEERS", HERE / ".venv-neural"))
N, BATCH = 60_000, 256
TARGETS = {
    "clipping / plain": (1.15, "at most"),
    "DP-SGD / plain": (2.0, "at most"),
    "DP-SGLD / plain": (2.0, "at most"),
    "Opacus ghost / DP-SGD": (1.7, "at least"),
    "Opacus default / DP-SGD": (40.0, "at least"),
    "Bayes by backprop / non-private": (1.5, "at most"),
    "Bayes by backprop / DP-SGLD": (2.5, "at most"),
    "private CNN / plain CNN": (3.0, "at most"),
    "peak memory, private / plain": (1.5, "at most"),
}


def timed(step: Callable[[Any], Any], state: Any, steps: int, repeats: int) -> float:
    """Milliseconds a step, the median of the repeats; the first call is not counted."""
    import jax

    state = jax.block_until_ready(step(state))
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(steps):
            state = step(state)
        jax.block_until_ready(state)
        found.append((time.perf_counter() - begin) / steps * 1e3)
    return median(found)


def records() -> dict[str, np.ndarray]:
    g = np.random.default_rng(0)
    x = np.tile(g.random((500, 784), dtype=np.float32), (N // 500, 1))
    return {"x": x, "y": g.integers(0, 10, N).astype(float)}


def network() -> Any:
    from discreet import models
    from discreet.neural import Dense, Relu

    layers = (Dense(1200), Relu(), Dense(1200), Relu(), Dense(10))
    return models.NeuralNetwork(784, layers, prior=models.GaussianPrior(0.1))


def cnn() -> Any:
    """The CNN of Opacus' MNIST example."""
    from discreet import models
    from discreet.neural import Conv, Dense, Flatten, MaxPool, Relu, Reshape

    layers = (
        Reshape((28, 28, 1)),
        *(Conv(16, (8, 8), 2, 3), Relu(), MaxPool((2, 2), 1)),
        *(Conv(32, (4, 4), 2), Relu(), MaxPool((2, 2), 1)),
        *(Flatten(), Dense(32), Relu(), Dense(10)),
    )
    return models.NeuralNetwork(784, layers)


def first(model: Any) -> dict[str, Any]:
    import jax.numpy as jnp

    start = model.network.initial(np.random.default_rng(0))
    return {name: jnp.asarray(values, jnp.float32) for name, values in start.items()}


def plain_step(model: Any) -> Callable[..., Any]:
    """Ordinary SGD on the mean loss of a batch: what anyone writes in JAX."""
    import jax

    def step(theta: Any, x: Any, y: Any) -> Any:
        def loss(at: Any) -> Any:
            return model.losses(jax.vmap(lambda one: model.network.apply(at, one))(x), y).mean()

        slope = jax.grad(loss)(theta)
        return {name: theta[name] - 0.1 * slope[name] for name in theta}

    return jax.jit(step, donate_argnums=0)


def clipped_step(model: Any) -> Callable[..., Any]:
    """The same with clipped gradients, and no noise."""
    import jax
    import jax.numpy as jnp

    from discreet.neural import Flat
    from discreet.neural.per_example import from_book

    def step(theta: Any, x: Any, y: Any) -> Any:
        book = model.network.book(theta, x, lambda outputs: model.losses(outputs, y))
        total = from_book(book, jnp.ones(len(x), bool), Flat(), 1.0).total
        return {name: theta[name] - 0.1 / BATCH * total[name] for name in theta}

    return jax.jit(step, donate_argnums=0, compiler_options={"xla_cpu_use_fusion_emitters": False})


def bayes_step(model: Any) -> Callable[..., Any]:
    """Bayes by backprop without privacy: what anyone writes in JAX, one draw of the weights a step."""
    import jax
    import jax.numpy as jnp

    names = [name for name in model.trained_shapes if not name.endswith("_rho")]

    def step(state: Any, x: Any, y: Any) -> Any:
        theta, key = state
        key, *keys = jax.random.split(key, len(names) + 1)
        e = {name: jax.random.normal(k, theta[name].shape) for name, k in zip(names, keys, strict=True)}

        def loss(at: Any) -> Any:
            w = {name: at[name] + jax.nn.softplus(at[name + "_rho"]) * e[name] for name in names}
            h = x
            for layer in (0, 2, 4):
                h = h @ w[f"variational_dense_{layer}_weight"] + w[f"variational_dense_{layer}_bias"]
                h = jnp.maximum(h, 0) if layer < 4 else h
            return model.losses(h, y).mean() - model.log_prior(at) / N

        slope = jax.grad(loss)(theta)
        return {name: theta[name] - 1e-3 * slope[name] for name in theta}, key

    return jax.jit(step, donate_argnums=0)


def whole(mechanism: Any, table: dict[str, np.ndarray], steps: int, **settings: Any) -> dict[str, float]:
    """Milliseconds a step of a release, from the first pass of the second half on: median and mean."""
    from discreet.mechanisms._private_training import Training
    from discreet.samplers.randomness import Randomness

    plan = mechanism.plan(n=N, batch=BATCH, steps=steps, **settings)
    times: list[float] = []
    before = Training._observe
    Training._observe = lambda *_: times.append(time.perf_counter())  # pyright: ignore[reportAttributeAccessIssue]
    try:
        # Twice: the second time everything is compiled, the passes of overflowing batches included.
        for _ in range(2):
            times.clear()
            mechanism.draw(plan, table, Randomness(0), progress=False)
    finally:
        Training._observe = before
    gaps = np.diff(times)[5:] * 1e3
    return {"median": float(np.median(gaps)), "mean": float(gaps.mean())}


def ours(quick: bool) -> dict[str, Any]:
    from dataclasses import replace

    import jax
    import jax.numpy as jnp

    from discreet import mechanisms as m

    steps, repeats = (8, 1) if quick else (25, 3)
    table, model = records(), network()
    x, y = jnp.asarray(table["x"][:BATCH]), jnp.asarray(table["y"][:BATCH], jnp.float32)
    found: dict[str, Any] = {}
    plain, clipped = plain_step(model), clipped_step(model)
    turns: dict[str, list[float]] = {"plain": [], "clipping": []}
    for _ in range(2 if quick else 9):  # in turns, so that both meet the same machine
        turns["plain"].append(timed(lambda t: plain(t, x, y), first(model), steps, 1))
        turns["clipping"].append(timed(lambda t: clipped(t, x, y), first(model), steps, 1))
    found |= {name: median(values) for name, values in turns.items()}
    relation = {"neighbours": "add_remove"}
    length = 40 if quick else 120
    sgd = m.StochasticGradient(model, **relation)
    found["DP-SGD"] = whole(sgd, table, length, noise_multiplier=1.3)
    found["DP-Adam"] = whole(replace(sgd, optimiser=m.Adam(1e-3)), table, length, noise_multiplier=1.3)
    langevin = m.LangevinDynamics(model, step_size=5e-6, temperature=0.5, burn_in=0.99, **relation)
    found["DP-SGLD"] = whole(langevin, table, length)
    bayes = m.BayesByBackprop(model, optimiser=m.Sgd(1e-3), **relation)
    found["Bayes by backprop"] = whole(bayes, table, length // 2, noise_multiplier=1.3)
    step, state = bayes_step(bayes.model), (first(bayes.model), jax.random.key(0))
    found["non-private Bayes"] = timed(lambda s: step(s, x, y), state, steps, repeats)
    small = cnn()
    plain = plain_step(small)
    found["plain CNN"] = timed(lambda t: plain(t, x, y), first(small), steps, repeats)
    private = replace(sgd, model=small)
    found["private CNN"] = whole(private, table, length, noise_multiplier=1.3)
    return found


def memory(private: bool) -> dict[str, float]:
    """Peak resident memory of a process that trains for 30 steps."""
    table, model = records(), network()
    if private:
        from discreet import mechanisms as m

        whole(m.StochasticGradient(model, neighbours="add_remove"), table, 30, noise_multiplier=1.3)
    else:
        import jax
        import jax.numpy as jnp

        x, y = jax.device_put(table["x"]), jnp.asarray(table["y"], jnp.float32)
        step, theta = plain_step(model), first(model)
        for t in range(30):
            rows = np.random.default_rng(t).integers(N, size=BATCH)
            theta = step(theta, x[rows], y[rows])
        jax.block_until_ready(theta)
    return {"megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def peers(quick: bool) -> dict[str, Any]:
    """Opacus, with its default hooks and with ghost clipping, and plain PyTorch; on the same network."""
    import torch
    from opacus import GradSampleModule
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer
    from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    torch.manual_seed(0)
    torch.set_num_threads(os.cpu_count() or 1)
    x, y = torch.rand(BATCH, 784), torch.randint(10, (BATCH,))

    def net() -> Any:
        nn = torch.nn
        return nn.Sequential(
            nn.Linear(784, 1200), nn.ReLU(), nn.Linear(1200, 1200), nn.ReLU(), nn.Linear(1200, 10)
        )

    def clock(step: Callable[[], None], steps: int, repeats: int) -> float:
        step()
        found = []
        for _ in range(repeats):
            begin = time.perf_counter()
            for _ in range(steps):
                step()
            found.append((time.perf_counter() - begin) / steps * 1e3)
        return median(found)

    found: dict[str, Any] = {"torch": torch.__version__}
    model = net()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.nn.CrossEntropyLoss()

    def plain() -> None:
        sgd.zero_grad()
        loss(model(x), y).backward()
        sgd.step()

    found["plain PyTorch"] = clock(plain, 4 if quick else 20, 1 if quick else 3)
    ghost = GradSampleModuleFastGradientClipping(net(), max_grad_norm=1.0, use_ghost_clipping=True)
    settings: dict[str, Any] = {"noise_multiplier": 1.3, "max_grad_norm": 1.0, "expected_batch_size": BATCH}
    fast = DPOptimizerFastGradientClipping(torch.optim.SGD(ghost.parameters(), lr=0.1), **settings)
    criterion = DPLossFastGradientClipping(ghost, fast, torch.nn.CrossEntropyLoss(reduction="mean"))

    def ghosted() -> None:
        fast.zero_grad()
        criterion(ghost(x), y).backward()
        fast.step()

    found["Opacus ghost"] = clock(ghosted, 3 if quick else 15, 1 if quick else 3)
    hooked = GradSampleModule(net())
    slow = DPOptimizer(torch.optim.SGD(hooked.parameters(), lr=0.1), **settings)

    def default() -> None:
        slow.zero_grad()
        loss(hooked(x), y).backward()
        slow.step()

    found["Opacus default"] = clock(default, 1, 1 if quick else 3)
    return found


CHILDREN: dict[str, Callable[[bool], dict[str, Any]]] = {
    "ours": ours,
    "peers": peers,
    "memory-plain": lambda _: memory(private=False),
    "memory-private": lambda _: memory(private=True),
}


def child(name: str, python: str, quick: bool) -> dict[str, Any]:
    command = [python, __file__, "--child", name, *(["--quick"] if quick else [])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def install_peers() -> None:
    if PEERS.exists() or "DISCREET_PEERS" in os.environ:
        return
    subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    requirements = str(HERE / "requirements-neural.txt")
    subprocess.run([str(PEERS / "bin" / "pip"), "install", "--quiet", "-r", requirements], check=True)


def main() -> int:
    quick = "--quick" in sys.argv
    if "--child" in sys.argv:
        print(json.dumps(CHILDREN[sys.argv[sys.argv.index("--child") + 1]](quick)))
        return 0
    found = child("ours", sys.executable, quick)
    try:
        install_peers()
        found |= child("peers", str(PEERS / "bin" / "python"), quick)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"peers left out: {error}", file=sys.stderr)
    both = (child(f"memory-{kind}", sys.executable, quick)["megabytes"] for kind in ("private", "plain"))
    found["memory, private"], found["memory, plain"] = both
    plain = found["plain"]

    def at(name: str) -> float:
        value = found[name]
        return value["mean"] if isinstance(value, dict) else value

    ratios = {
        "clipping / plain": at("clipping") / plain,
        "DP-SGD / plain": at("DP-SGD") / plain,
        "DP-SGLD / plain": at("DP-SGLD") / plain,
        "DP-Adam / plain": at("DP-Adam") / plain,
        "Bayes by backprop / non-private": at("Bayes by backprop") / at("non-private Bayes"),
        "Bayes by backprop / DP-SGLD": at("Bayes by backprop") / at("DP-SGLD"),
        "private CNN / plain CNN": at("private CNN") / at("plain CNN"),
        "peak memory, private / plain": found["memory, private"] / found["memory, plain"],
    }
    if "Opacus ghost" in found:
        ratios["Opacus ghost / DP-SGD"] = at("Opacus ghost") / at("DP-SGD")
        ratios["Opacus default / DP-SGD"] = at("Opacus default") / at("DP-SGD")
    missed = []
    for name, ratio in ratios.items():
        target, side = TARGETS.get(name, (None, ""))
        met = target is None or (ratio <= target if side == "at most" else ratio >= target)
        missed += [] if met else [name]
        asked = f"{side} {target:g}: {'met' if met else 'MISSED'}" if target else "no target"
        print(f"{name:<34} {ratio:8.2f}   {asked}")
    result = {"milliseconds": found, "ratios": ratios, "missed": missed, "cores": os.cpu_count()}
    if not quick:
        RESULTS.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
