"""The chain leaves the posterior where it is: exact starts stay exact draws (docs/proofs/dp_mcmc.md).

Chains start from exact posterior draws and run with all records and clipping that never acts.
If the kernel is right their last states are independent exact draws, which a
Kolmogorov-Smirnov test of each coordinate and of the log posterior, or a chi-square test, confirms. Each test
fails one time in 10^3 when the chain is right; a chain without the logistic correction must fail at 10^-6.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from discreet.mechanisms import barker_mcmc
from discreet.mechanisms._logistic_correction import Correction
from discreet.mechanisms.barker_mcmc import BarkerMCMC
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.proposals import IntegerWalk, Langevin, RandomWalk
from discreet.models.base import Model, Theta
from discreet.models.gaussian_mixture import GaussianMixture
from discreet.models.logistic import LogisticRegression

CHAINS = 2_000
UNCLIPPED = 1e4


@dataclass(frozen=True)
class Grade(Model):
    """y ~ Bernoulli((k + 1) / 12) with k uniform on 0, ..., 10: a discrete parameter."""

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"k": ()}

    def log_prior(self, theta: Theta) -> jax.Array:
        return jnp.where((theta["k"] >= 0) & (theta["k"] <= 10), 0.0, -jnp.inf)

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        p = (theta["k"] + 1) / 12
        return jnp.log(jnp.where(record["y"] == 1, p, 1 - p))


def log_posterior(
    model: Model, name: str, records: Mapping[str, np.ndarray], tau: float = 1.0
) -> Callable[[Any], np.ndarray]:
    def one(value: jax.Array) -> jax.Array:
        theta = {name: value}
        terms = jax.vmap(lambda record: model.log_density(theta, record))(records)
        return model.log_prior(theta) + tau * terms.sum()

    def many(values: Any) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(jax.jit(jax.vmap(one))(values))

    return many


def draws_from_grid(
    density: Callable[[Any], np.ndarray], box: list[tuple[float, float]], draws: int, seed: int
) -> np.ndarray:
    """Exact draws: a cell of a grid by its middle, a point in it, and rejection of what that gets wrong."""
    rng, side = np.random.default_rng(seed), 120
    axes = [np.linspace(low, high, side) for low, high in box]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = density(cells)
    p = np.exp(logs - logs.max())
    chosen = cells[rng.choice(len(cells), size=5 * draws, p=p / p.sum())]
    width = np.array([(high - low) / (side - 1) for low, high in box])
    moved = chosen + width * rng.uniform(-0.5, 0.5, size=chosen.shape)
    weight = np.exp(density(moved) - density(chosen))
    keep = rng.random(len(moved)) * 3.0 < weight
    assert keep.sum() >= draws
    return moved[keep][:draws]


def last_states(
    mechanism: Mechanism, records: Mapping[str, np.ndarray], name: str, **plan: Any
) -> np.ndarray:
    size = len(next(iter(records.values())))
    made = mechanism.plan(n=size, **plan)  # pyright: ignore[reportAttributeAccessIssue]
    draws = made.release(records, key=11).draws[name]
    return draws.reshape(mechanism.chains, -1, *draws.shape[1:])[:, -1]  # pyright: ignore[reportAttributeAccessIssue]


def p_values(states: np.ndarray, exact: np.ndarray, density: Callable[[Any], np.ndarray]) -> list[float]:
    pairs = [(states[:, 0], exact[:, 0]), (states[:, 1], exact[:, 1]), (density(states), density(exact))]
    return [float(stats.ks_2samp(a, b).pvalue) for a, b in pairs]  # pyright: ignore[reportAttributeAccessIssue]


MIXTURE_X = np.random.default_rng(1).normal(size=40) * math.sqrt(2) + (np.arange(40) < 20) * 1.0
LOGISTIC_X = np.random.default_rng(2).normal(size=(40, 2)) * 0.5
LOGISTIC_Y = (np.random.default_rng(3).random(40) < 0.7).astype(float)

CASES = {
    "mixture": (GaussianMixture(), "theta", {"x": MIXTURE_X}, [(-4.0, 4.0), (-4.0, 4.0)], RandomWalk(0.7)),
    "logistic": (
        LogisticRegression(features=2, row_norm=3.0),
        "w",
        {"x": LOGISTIC_X, "y": LOGISTIC_Y},
        [(-4.0, 4.0), (-4.0, 4.0)],
        RandomWalk(0.7),
    ),
    "langevin": (
        GaussianMixture(),
        "theta",
        {"x": MIXTURE_X},
        [(-4.0, 4.0), (-4.0, 4.0)],
        Langevin(0.5, GaussianMixture().log_prior),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_exact_draws_stay_exact(case: str) -> None:
    """Three Kolmogorov-Smirnov tests at 3.3e-4 each."""
    model, name, records, box, proposal = CASES[case]
    density = log_posterior(model, name, records)
    start, fresh = np.split(draws_from_grid(density, box, 2 * CHAINS, seed=4), 2)
    mechanism = BarkerMCMC(model, proposal, chains=CHAINS, start={name: start})
    states = last_states(mechanism, records, name, steps=40, clip=UNCLIPPED)
    assert min(p_values(states, fresh, density)) > 3.3e-4
    assert np.mean(np.any(states != start, axis=1)) > 0.99  # they moved


def test_a_chain_without_the_correction_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: N(0, 1) noise alone sharpens the target."""
    model, name, records, box, proposal = CASES["mixture"]
    nothing = Correction(1.0, (0.0,), (1.0,), 0.0)
    monkeypatch.setattr(barker_mcmc, "logistic_correction", lambda _: nothing)
    density = log_posterior(model, name, records)
    start, fresh = np.split(draws_from_grid(density, box, 2 * CHAINS, seed=4), 2)
    mechanism = BarkerMCMC(model, proposal, chains=CHAINS, start={name: start})
    states = last_states(mechanism, records, name, steps=40, clip=UNCLIPPED, variance=1.0)
    assert min(p_values(states, fresh, density)) < 1e-6


@pytest.mark.parametrize("broken", [False, True])
def test_a_discrete_parameter(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square against the exact posterior, tempered; started far away."""
    if broken:
        nothing = Correction(1.0, (0.0,), (1.0,), 0.0)
        monkeypatch.setattr(barker_mcmc, "logistic_correction", lambda _: nothing)
    y = (np.arange(30) < 12).astype(float)
    k = np.arange(11.0)
    logs = log_posterior(Grade(), "k", {"y": y}, tau=20 / 30)(k)
    exact = np.exp(logs - logs.max())
    mechanism = BarkerMCMC(Grade(), IntegerWalk(3), tempered_size=20, chains=CHAINS, start={"k": 9.0})
    states = last_states(mechanism, {"y": y}, "k", steps=120, batch=30, clip=UNCLIPPED, variance=1.0)
    cells = np.bincount(states.astype(int), minlength=11)
    expected = CHAINS * exact / exact.sum()
    rare = expected < 5
    cells = np.append(cells[~rare], cells[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    p = stats.chisquare(cells, expected).pvalue
    assert p < 1e-6 if broken else p > 1e-3


def test_the_batch_chain_is_near_the_posterior() -> None:
    """A batch of 400 of 2,000 records, N0 = 40, hardly any clipping: means and variances within the noise."""
    x = np.random.default_rng(5).normal(size=2_000) * math.sqrt(2) + 0.5
    density = log_posterior(GaussianMixture(), "theta", {"x": x}, tau=40 / 2_000)
    start, fresh = np.split(draws_from_grid(density, [(-4.0, 4.5), (-4.5, 4.5)], 2_000, seed=6), 2)
    mechanism = BarkerMCMC(
        GaussianMixture(), RandomWalk(0.3), tempered_size=40, chains=1_000, start={"theta": start}
    )
    states = last_states(mechanism, {"x": x}, "theta", steps=60, batch=400, clip=1.0, variance=2.0)
    for got, true in zip(states.T, fresh.T, strict=True):
        error = math.hypot(got.std(), true.std()) / math.sqrt(1_000)
        assert abs(got.mean() - true.mean()) < 4 * error
        assert abs(got.std() / true.std() - 1) < 0.15
