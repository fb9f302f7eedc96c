"""Observers of training: what they are told, in which order, and that the numbers cover the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import stats

import discreet as dc
from discreet.mechanisms import BayesByBackprop, LangevinDynamics, StochasticGradient
from discreet.models import LogisticRegression, NeuralNetwork
from discreet.neural import Dense, Flat, Tanh
from discreet.neural.clipping import ROUNDING
from discreet.privacy import BayesianAccountant, ObservedRun, Sensitive, poisson_gaussian

Array = NDArray[np.float64]
N, D, CLIP, WIDE = 40, 3, 0.4, 1.5


@dataclass
class Recorder:
    """Keeps what it is shown; for tests only."""

    pairs: int = 16
    runs: list[ObservedRun] = field(default_factory=list)
    seen: list[Array] = field(default_factory=list)

    def begin(self, run: ObservedRun) -> None:
        self.runs.append(run)
        self.seen.clear()

    def observe(self, distances: ArrayLike) -> None:
        self.seen.append(np.array(distances, dtype=np.float64))


def table(n: int = N, seed: int = 0) -> dict[str, Array]:
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, D))
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
    return {"x": x, "y": (g.random(n) < 0.5).astype(float)}


def network() -> NeuralNetwork:
    return NeuralNetwork(D, (Dense(4), Tanh(), Dense(2)))


def clipped_gradients(model: Any, theta: dict[str, Array], records: dict[str, Array], clip: float) -> Array:
    """One row per record, by automatic differentiation of the log density."""

    def one(record: Any) -> Any:
        slope = jax.grad(lambda t: -model.log_density(t, record))(theta)
        return jax.numpy.concatenate([slope[name].reshape(-1) for name in sorted(slope)])

    with jax.enable_x64(True):
        rows = np.asarray(jax.vmap(one)(jax.device_put(records)))
    return rows * np.minimum(1, clip * (1 - ROUNDING) / np.linalg.norm(rows, axis=1))[:, None]


@pytest.mark.parametrize("make", [lambda: LogisticRegression(D), network], ids=["vmap", "book-keeping"])
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
def test_observers_see_the_clipped_gradients_of_the_batch(make: Callable[[], Any], neighbours: str) -> None:
    watching, records, model = Recorder(pairs=6), table(), make()
    mechanism = LangevinDynamics(
        model,
        step_size=1e-3,
        burn_in=0.0,
        clipping=Flat(WIDE),
        neighbours=neighbours,
        observers=[watching],
    )
    plan = mechanism.plan(n=N, batch=20, steps=5)
    release = plan.release(records, key=1)
    (run,) = watching.runs
    assert run.steps == 5
    assert run.rate == 0.5
    assert run.guarantee is plan.guarantee
    assert str(run.neighbours) == neighbours
    assert run.largest / run.sigma == pytest.approx(
        (1 if neighbours == "add_remove" else 2) / float(str(plan.parameters["noise_multiplier"]))
    )
    unit = WIDE / (run.largest if neighbours == "add_remove" else run.largest / 2)
    for t in range(1, 5):  # the parameters of step t are the draw of the step before
        theta = {name: values[t - 1] for name, values in release.draws.items()}
        rows = clipped_gradients(model, theta, records, WIDE) / unit
        norms = np.linalg.norm(rows, axis=1)
        known = norms if neighbours == "add_remove" else np.linalg.norm(rows[:, None] - rows[None], axis=2)
        seen = watching.seen[t]
        assert 1 <= seen.size <= 6
        nearest = np.abs(known.reshape(1, -1) - seen[:, None]).min(axis=1)
        assert nearest.max() < 2e-5
        if neighbours == "add_remove":  # distinct records
            free = seen[seen < 0.99]
            assert free.size
            assert len({int(np.abs(norms - d).argmin()) for d in free}) == free.size


def test_records_of_a_batch_are_seen_in_random_order() -> None:
    # The first half of the table has no gradient at all. At batches of 20 of 40 the first 4 in the order
    # of the table would be nearly always of that half; in random order every second one is.
    records = table()
    records["x"][: N // 2] = 0.0
    watching = Recorder(pairs=4)
    plan = LangevinDynamics(
        LogisticRegression(D),
        step_size=1e-6,
        neighbours="add_remove",
        clipping=Flat(CLIP),
        observers=[watching],
    ).plan(n=N, batch=20, steps=60)
    plan.release(records, key=2)
    seen = np.concatenate(watching.seen)
    none = int((seen < 1e-6).sum())
    assert stats.binomtest(none, seen.size, 0.5).pvalue > 1e-4
    assert stats.binomtest(seen.size, seen.size, 0.5).pvalue < 1e-10  # negative control: order of the table


def test_pairs_of_a_batch_are_independent() -> None:
    # Four records, two and two equal: of two disjoint pairs, both join equal records or neither does.
    records = {"x": np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0]]), "y": np.ones(4)}
    watching = Recorder(pairs=2)
    plan = LangevinDynamics(
        LogisticRegression(D),
        step_size=1e-9,
        neighbours="substitute",
        clipping=Flat(CLIP),
        observers=[watching],
    ).plan(n=4, batch=4, steps=300)
    plan.release(records, key=3)
    equal = np.array([row < 1e-3 for row in watching.seen])
    assert equal.shape == (300, 2)
    both = int((equal[:, 0] == equal[:, 1]).sum())
    assert stats.binomtest(both, 300, 5 / 9).pvalue > 1e-4
    assert stats.binomtest(300, 300, 5 / 9).pvalue < 1e-10  # negative control: disjoint pairs


def test_reported_loss_covers_the_true_one_of_a_run() -> None:
    # Steps so small that gradients stay those of the start: |x| / 2 for every record. So every person's
    # loss distribution is known, and with it the true Bayesian delta of the run.
    g, steps, sigma, delta = np.random.default_rng(4), 200, 1.0, 1e-3
    norms = np.where(g.random(400) < 0.95, 0.1, 1.0)
    x = g.normal(size=(400, D))
    records = {"x": x / np.linalg.norm(x, axis=1, keepdims=True) * norms[:, None], "y": np.ones(400)}
    accountant = BayesianAccountant(pairs=16, gamma=1e-5, blocks=1)
    plan = StochasticGradient(
        LogisticRegression(D),
        optimiser=dc.mechanisms.Sgd(1e-9),
        clipping=Flat(0.5),
        neighbours="add_remove",
        observers=[accountant],
    ).plan(n=400, batch=40, steps=steps, noise_multiplier=sigma)
    release = plan.release(records, key=5)
    hidden = accountant.epsilon(delta)
    assert isinstance(hidden, Sensitive)
    reported = hidden.reveal()
    profiles = {d: poisson_gaussian(0.1, sigma / d, steps, neighbours="add_remove") for d in (0.1, 1.0)}
    true = sum(float((norms == d).mean()) * profiles[d].delta(reported) for d in profiles)
    print(f"Bayesian epsilon {reported:.3f}, DP {plan.guarantee.epsilon(delta):.3f}; true delta {true:.2g}")
    assert true <= delta
    half = sum(float((norms == d).mean()) * profiles[d].delta(reported / 3) for d in profiles)
    assert half > delta  # a third of it would not do
    assert release.guarantee is plan.guarantee


def test_bayes_by_backprop_is_watched() -> None:
    # Half of the table is the other half again: its gradients are the same, since the draw of the
    # weights is shared by the batch. A full batch shows 40 norms: every value twice.
    half, watching, accountant = table(20), Recorder(pairs=N), BayesianAccountant(pairs=16)
    records = {name: np.concatenate([values, values]) for name, values in half.items()}
    plan = BayesByBackprop(
        network(), clipping=Flat(WIDE), neighbours="add_remove", observers=[watching, accountant], draws=2
    ).plan(n=N, batch=N, steps=4, noise_multiplier=2.0)
    plan.release(records, key=7)
    assert [row.size for row in watching.seen] == [N] * 4
    for row in watching.seen:
        together = np.sort(row)
        assert np.abs(together[::2] - together[1::2]).max() < 1e-4
        assert 0 < together[0] < together[-1] <= 1.0
        assert together[-1] - together[0] > 1e-3
    hidden = accountant.result(1e-3)
    assert isinstance(hidden, Sensitive)
    assert 0 < hidden.reveal().epsilon < math.inf
    assert hidden.reveal().guarantee is plan.guarantee


def test_nothing_of_an_observer_is_saved(tmp_path: Path) -> None:
    watching = BayesianAccountant(pairs=8)
    plan = StochasticGradient(
        LogisticRegression(D), neighbours="add_remove", clipping=Flat(CLIP), observers=[watching]
    ).plan(n=N, batch=10, steps=4, noise_multiplier=1.0)
    assert "observer" not in plan.to_json().lower()
    release = plan.release(table(), key=6)
    release.save(tmp_path / "saved")
    texts = [
        p.read_text()
        for p in (tmp_path / "saved").rglob("*")
        if p.suffix in (".json", ".md", ".txt", ".html")
    ]
    assert texts
    assert not any("bayesian" in text.lower() or "observ" in text.lower() for text in texts)
    # Who watches does not change what the plan is, nor what it costs.
    alone = StochasticGradient(LogisticRegression(D), neighbours="add_remove", clipping=Flat(CLIP)).plan(
        n=N, batch=10, steps=4, noise_multiplier=1.0
    )
    assert alone.hash() == plan.hash()
    # Gradients at the limit everywhere are the worst case: the moments accountant's epsilon.
    assert math.isfinite(watching.epsilon(1e-3).reveal())
