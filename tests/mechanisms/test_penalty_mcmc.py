"""PenaltyMCMC and PenaltyHMC: exact targets, prices, sensitivity (docs/proofs/dp_mcmc.md#penalty)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from discreet.mechanisms._ratios import moments
from discreet.mechanisms.barker_mcmc import BarkerMCMC
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.fast_mh import FastMH
from discreet.mechanisms.losses import LogLikelihood
from discreet.mechanisms.penalty_hmc import PenaltyHMC, clipped_gradient_sum
from discreet.mechanisms.penalty_mcmc import PenaltyMCMC, penalised_mean
from discreet.mechanisms.proposals import RandomWalk
from discreet.models import LogisticRegression
from discreet.models.base import Model, Theta
from discreet.models.losses import BetaDivergence
from discreet.privacy import Budget, gaussian, sampled_without_replacement

CHAINS = 3_000


@dataclass(frozen=True)
class Normal(Model):
    """x ~ N(t, 1) with t ~ N(0, 1): the posterior is N(sum x / (n + 1), 1 / (n + 1))."""

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"t": ()}

    def log_prior(self, theta: Theta) -> jax.Array:
        return -0.5 * theta["t"] ** 2

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return -0.5 * (record["x"] - theta["t"]) ** 2


X = np.random.default_rng(0).normal(size=20) + 0.5
POSTERIOR = stats.norm(X.sum() / 21, 1 / math.sqrt(21))


def uniformity(states: np.ndarray, law: Any) -> float:
    """p-value that the states are draws of the law."""
    return float(stats.kstest(law.cdf(states), "uniform").pvalue)


def last_states(mechanism: Mechanism, **plan: Any) -> np.ndarray:
    made = mechanism.plan(n=len(X), **plan)  # pyright: ignore[reportAttributeAccessIssue]
    return made.release({"x": X}, key=3).draws["t"].reshape(CHAINS, -1)[:, -1]


@pytest.mark.parametrize("noise", [0.5, 2.4])
def test_the_target_is_exact_for_every_noise(noise: float) -> None:
    """Kolmogorov-Smirnov at 10^-3, from a start two standard deviations away."""
    start = POSTERIOR.mean() + 2 * POSTERIOR.std()
    mechanism = PenaltyMCMC(Normal(), RandomWalk(0.5), chains=CHAINS, start={"t": start})
    states = last_states(mechanism, steps=150, limit=100.0, noise=noise)
    assert uniformity(states, POSTERIOR) > 1e-3


def test_without_the_penalty_the_target_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: twice the noise that the correction is for."""
    from discreet.mechanisms import penalty_mcmc

    def louder(g: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
        return 2 * g.standard_normal(shape), -g.standard_exponential(shape)

    monkeypatch.setattr(penalty_mcmc, "test_noise", louder)
    mechanism = PenaltyMCMC(Normal(), RandomWalk(0.5), chains=CHAINS, start={"t": POSTERIOR.mean()})
    states = last_states(mechanism, steps=150, limit=100.0, noise=1.5)
    assert uniformity(states, POSTERIOR) < 1e-6


def test_hmc_target_is_exact() -> None:
    start = POSTERIOR.mean() + 2 * POSTERIOR.std()
    mechanism = PenaltyHMC(Normal(), leapfrog_steps=4, step_size=0.1, chains=CHAINS, start={"t": start})
    states = last_states(
        mechanism, steps=60, limit=100.0, noise=1.0, gradient_limit=100.0, gradient_noise=2.0
    )
    assert uniformity(states, POSTERIOR) > 1e-3
    assert uniformity(states, stats.norm(start, 0.1)) < 1e-6  # it moved


def test_prices() -> None:
    full = PenaltyMCMC(Normal(), RandomWalk(0.5)).plan(n=1000, steps=7, limit=0.1, noise=2.0)
    assert full.guarantee == gaussian(2.0, sensitivity=0.2, neighbours="substitute").repeat(7)
    some = PenaltyMCMC(Normal(), RandomWalk(0.5), tempered_size=10, chains=2).plan(
        n=1000, steps=7, batch=100, limit=0.1, noise=2.0
    )
    kappa, shift = 0.1, some.parameters["sensitivity"]
    assert shift == pytest.approx(2 * kappa / 10 + 2 * kappa**2 * 99 / 100**2)
    base = gaussian(2.0, sensitivity=float(shift), neighbours="substitute")  # pyright: ignore[reportArgumentType]
    assert some.guarantee == sampled_without_replacement(base, 0.1, 14)
    budget = Budget(1.0, 1e-6)
    planned = PenaltyMCMC(Normal(), RandomWalk(0.5)).plan(n=100_000, budget=budget)
    assert planned.guarantee.fits(budget)
    hmc = PenaltyHMC(Normal(), leapfrog_steps=4, step_size=0.1).plan(
        n=1000, steps=7, limit=0.1, noise=2.0, gradient_limit=0.5, gradient_noise=10.0
    )
    step = gaussian(2.0, sensitivity=0.2, neighbours="substitute") + 5 * gaussian(
        10.0, sensitivity=1.0, neighbours="substitute"
    )
    assert hmc.guarantee.epsilon(1e-6) == pytest.approx(step.repeat(7).epsilon(1e-6))


def test_neighbours_move_the_penalised_mean_by_no_more_than_billed() -> None:
    rng, b, kappa = np.random.default_rng(4), 30, 0.9
    t = np.where(
        rng.random((2_000, b)) < 0.5, rng.uniform(-1, 1, (2_000, b)), rng.choice([-1.0, 1.0], (2_000, b))
    )
    t[:3] = 1.0
    other = t.copy()
    other[:, -1] = rng.choice([-1.0, 1.0, 0.0], 2_000)
    other[:3, -1] = -1.0
    with jax.enable_x64(True):
        one, two = (
            np.asarray(
                jax.vmap(lambda r: penalised_mean(moments(r), 0.0, batch=b, clip=kappa, sampled=1.0))(
                    jnp.asarray(rows)
                )
            )
            for rows in (t, other)
        )
    bound = 2 * kappa / math.sqrt(b) + 2 * kappa**2 * (b - 1) / b**2
    assert np.abs(one - two).max() <= bound * (1 + 1e-12)
    assert np.abs(one - two).max() > 0.7 * bound


def test_neighbours_move_the_gradient_sum_by_no_more_than_billed() -> None:
    rng, model = np.random.default_rng(5), LogisticRegression(features=3, row_norm=2.0)
    x, y = rng.normal(size=(200, 10, 3)) * 5, rng.integers(0, 2, (200, 10)).astype(float)
    other = x.copy()
    other[:, -1] = rng.normal(size=(200, 3)) * 1e6
    other[0, -1] = np.nan

    def total(rows: jax.Array, labels: jax.Array, w: jax.Array) -> jax.Array:
        mechanism = PenaltyHMC(model, leapfrog_steps=1, step_size=0.1)
        return clipped_gradient_sum(mechanism.loss, model, {"w": w}, {"x": rows, "y": labels}, 0.4)["w"]

    with jax.enable_x64(True):
        w = jnp.asarray(rng.normal(size=(200, 3)))
        one, two = (np.asarray(jax.vmap(total)(jnp.asarray(rows), jnp.asarray(y), w)) for rows in (x, other))
    moved = np.linalg.norm(one - two, axis=1)
    assert moved.max() <= 0.8 * (1 + 1e-12)
    assert moved.max() > 0.5


@pytest.mark.parametrize(
    ("kind", "settings", "planned"),
    [
        (BarkerMCMC, {"proposal": RandomWalk(0.5)}, {}),
        (PenaltyMCMC, {"proposal": RandomWalk(0.5)}, {}),
        (FastMH, {"proposal": RandomWalk(0.5)}, {}),
        (PenaltyHMC, {"leapfrog_steps": 3, "step_size": 0.1}, {"gradient_noise": 1.0}),
    ],
)
def test_a_certified_loss_is_not_clipped(
    kind: Any, settings: dict[str, Any], planned: dict[str, Any]
) -> None:
    """The beta-divergence's range is the clipping limit, which then never acts (paper B, Proposition 3)."""
    loss, model = BetaDivergence(beta=1.5, weight=0.01), LogisticRegression(features=2)
    plan = kind(model, loss=loss, **settings).plan(n=400, steps=50, **planned)
    if kind is not BarkerMCMC:
        assert plan.parameters["ratio_limit"] == pytest.approx(0.02)
        assert any("nothing is clipped" in reason for reason in plan.reasons)
    rng = np.random.default_rng(6)
    records = {"x": rng.normal(size=(400, 2)) * 3, "y": rng.integers(0, 2, 400).astype(float)}
    release = plan.release(records, key=1)
    assert release.diagnostics["clipped_share"].reveal()[0] == 0
    assert np.unique(release.draws["w"][:, 0]).size > 5


def test_the_target_of_a_beta_divergence_chain_is_its_posterior() -> None:
    """One coefficient; Kolmogorov-Smirnov at 10^-3 against quadrature; the log-likelihood's is refused."""
    loss, model = BetaDivergence(beta=1.5, weight=1.0), LogisticRegression(features=1, row_norm=9.0)
    rng = np.random.default_rng(7)
    records = {"x": rng.normal(size=(30, 1)), "y": (rng.random(30) < 0.8).astype(float)}
    grid = np.linspace(-6, 10, 2_001)

    def law(per_record: Any) -> Any:
        def log_density(w: jax.Array) -> jax.Array:
            theta = {"w": w[None]}
            terms = jax.vmap(lambda record: per_record(model, theta, record))(records)
            return model.log_prior(theta) - terms.sum()

        with jax.enable_x64(True):
            logs = np.asarray(jax.vmap(log_density)(jnp.asarray(grid)))
        mass = np.cumsum(np.exp(logs - logs.max()))
        return lambda w: np.interp(w, grid, mass / mass[-1])

    mechanism = PenaltyMCMC(model, RandomWalk(1.5), chains=CHAINS, loss=loss)
    draws = mechanism.plan(n=30, steps=60, limit=3.0, noise=1.0).release(records, key=3).draws["w"]
    states = draws.reshape(CHAINS, -1)[:, -1]
    assert stats.kstest(law(loss)(states), "uniform").pvalue > 1e-3
    assert stats.kstest(law(LogLikelihood())(states), "uniform").pvalue < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": 0.0}, "noise must be a finite number above 0"),
        ({"limit": -1.0}, "limit must be a finite number above 0"),
        ({"batch": 21}, "batch must be a whole number at least 2 and at most 20, got 21"),
    ],
)
def test_bad_plans(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PenaltyMCMC(Normal(), RandomWalk(0.5)).plan(n=20, steps=3, **arguments)
