"""FastMH: exact target on minibatches, price, sensitivity (docs/proofs/dp_mcmc.md#fast)."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from discreet.mechanisms import _chain, fast_mh
from discreet.mechanisms.fast_mh import FastMH, poisson_hits, poisson_terms
from discreet.mechanisms.proposals import RandomWalk
from discreet.models.gaussian_mixture import GaussianMixture
from discreet.privacy import Budget

CHAINS = 3_000
X = np.random.default_rng(0).normal(size=20) * math.sqrt(2) + 0.5


def last_states(start: np.ndarray, **plan: Any) -> np.ndarray:
    mechanism = FastMH(GaussianMixture(), RandomWalk(0.6), chains=CHAINS, start={"theta": start})
    made = mechanism.plan(n=20, limit=6.0, noise=1.0, **plan)
    release = made.release({"x": X}, key=3)
    assert release.diagnostics["clipped_share"].reveal().mean() < 1e-4
    return release.draws["theta"].reshape(CHAINS, -1, 2)[:, -1]


def exact_draws(count: int) -> np.ndarray:
    """By importance resampling from a wide normal, without replacement of the seed's luck: 2e5 points."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(400_000, 2)) * [1.5, 1.5]
    logs = -0.5 * (points[:, 0] ** 2 / 10 + points[:, 1] ** 2) + (points**2).sum(axis=1) / (2 * 1.5**2)
    for x in X:
        near, far = x - points[:, 0], x - points[:, 0] - points[:, 1]
        logs += np.logaddexp(-0.25 * near**2, -0.25 * far**2)
    p = np.exp(logs - logs.max())
    return points[rng.choice(len(points), size=count, p=p / p.sum())]


def p_value(states: np.ndarray, exact: np.ndarray) -> float:
    """The smaller of two Kolmogorov-Smirnov tests."""
    return min(float(stats.ks_2samp(states[:, i], exact[:, i]).pvalue) for i in (0, 1))  # pyright: ignore[reportAttributeAccessIssue]


def test_exact_draws_stay_exact_and_a_wrong_ratio_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tests at 5e-4 each; the negative control forgets that kept records depend on their ratio."""
    start, fresh = np.split(exact_draws(2 * CHAINS), 2)
    states = last_states(start, steps=40, batch=600)
    assert np.mean(np.any(states != start, axis=1)) > 0.5
    assert p_value(states, fresh) > 5e-4

    def careless(ratios: jax.Array, u: jax.Array, *, most: Any, floor: Any) -> jax.Array:
        kept = poisson_terms(ratios, u, most=most, floor=floor)
        return 2 * kept

    _chain._compile.cache_clear()
    monkeypatch.setattr(fast_mh, "poisson_terms", careless)
    wrong = last_states(start, steps=40, batch=600)
    _chain._compile.cache_clear()
    assert p_value(wrong, fresh) < 1e-6


def test_a_drawn_record_adds_no_more_than_billed() -> None:
    rng = np.random.default_rng(2)
    most, floor = 0.03, 0.2
    reach = math.log1p(most / floor)
    ratios = np.concatenate([rng.uniform(-1, 1, 2_000), [-1.0, 1.0]])
    with jax.enable_x64(True):
        terms = np.asarray(poisson_terms(jnp.asarray(ratios), jnp.zeros(2_002), most=most, floor=floor))
    assert np.abs(terms).max() <= reach * (1 + 1e-12)
    assert np.abs(terms).max() == pytest.approx(reach)


@pytest.mark.parametrize(("rate", "shift"), [(0.02, 0.8), (0.5, 0.3)])
def test_the_price_bounds_the_worst_mixtures(rate: float, shift: float) -> None:
    """Quadrature of the hockey stick of Poisson mixtures that move apart, or one way."""
    counts = np.arange(40)
    weights = stats.poisson.pmf(counts, rate)

    def density(step: float) -> Any:
        return lambda y: float(weights @ stats.norm.pdf(y - step * counts))

    def gap(step_p: float, step_q: float, epsilon: float) -> float:
        p, q = density(step_p), density(step_q)
        return integrate.quad(lambda y: max(p(y) - math.exp(epsilon) * q(y), 0.0), -12, 40, limit=500)[0]

    for epsilon in (0.0, 0.05, 0.3):
        bound = poisson_hits(rate, shift).delta(epsilon)
        for step_p, step_q in ((shift / 2, -shift / 2), (shift, 0.0), (0.0, shift)):
            assert gap(step_p, step_q, epsilon) <= bound + 1e-7


def test_plans() -> None:
    mechanism = FastMH(GaussianMixture(), RandomWalk(0.2), tempered_size=100, chains=2)
    plan = mechanism.plan(n=10**6, steps=50)
    shift = 2 * math.log1p(30 / 900) / 2.4
    assert plan.guarantee.epsilon(1e-6) == pytest.approx(
        poisson_hits(930 / 10**6, shift).repeat(100).epsilon(1e-6)
    )
    budget = Budget(0.3, 1e-6)
    assert mechanism.plan(n=10**6, budget=budget).guarantee.fits(budget)
    with pytest.raises(ValueError, match="batch must be a whole number at least 31, got 30"):
        mechanism.plan(n=10**6, steps=5, batch=30)
