"""Coupled chains and NUTS: invariance, the bound against a known distance, refusal, secrecy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, norm

from discreet.models import BetaDivergence, Gibbs, LogisticRegression, Model, NeuralClassification
from discreet.models.base import Theta
from discreet.privacy import Sensitive, Standing
from discreet.samplers import Randomness
from discreet.samplers.choice import default_sampler
from discreet.samplers.coupled import CoupledChains, _limit
from discreet.samplers.exact import ExactRegression
from discreet.samplers.nuts import NUTS
from discreet.samplers.posterior import SamplingError, Target


@dataclass(frozen=True)
class Lopsided(Model):
    """A density far from its Laplace approximation, with a known law: w = sinh(z), z standard normal."""

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"w": (2,)}

    def log_prior(self, theta: Theta) -> jax.Array:
        z = jnp.arcsinh(theta["w"])
        return (-0.5 * z**2 - 0.5 * jnp.log1p(theta["w"] ** 2)).sum()

    def log_density(self, theta: Theta, record: Mapping[str, Any]) -> jax.Array:
        return 0.0 * theta["w"].sum() * record["y"]


RECORDS = {"y": np.zeros(1)}


def test_the_chain_leaves_a_skewed_law_invariant() -> None:
    """Kolmogorov-Smirnov on 4,000 chains and 2 coordinates; rate of false alarms 1e-3 in all."""
    sampler = CoupledChains(meet=10, pairs=0)
    draws = sampler.sample(Lopsided(), Gibbs(1.0), RECORDS, Randomness(3), 4000).draws["w"]
    for k in range(2):
        assert kstest(np.arcsinh(draws[:, k]), norm.cdf).pvalue > 5e-4
        assert kstest(np.arcsinh(draws[:, k] * 1.3), norm.cdf).pvalue < 5e-4
    assert abs(np.corrcoef(np.arcsinh(draws.T))[0, 1]) < 0.07


def test_pairs_meet_and_say_so_without_numbers_that_depend_on_data() -> None:
    found = CoupledChains(meet=30, gamma=1e-6).sample(Lopsided(), Gibbs(1.0), RECORDS, Randomness(1), 1)
    (claim,) = found.evidence
    assert claim.standing is Standing.CHECKED
    assert claim.confidence == 0.999
    assert all(isinstance(value, Sensitive) for value in found.diagnostics.values())
    assert found.diagnostics["gamma"].reveal() <= 1e-6


def test_a_chain_that_is_too_short_is_refused() -> None:
    with pytest.raises(SamplingError, match="nothing was released"):
        CoupledChains(meet=1, gamma=1e-6).sample(Lopsided(), Gibbs(1.0), RECORDS, Randomness(1), 1)


@pytest.mark.parametrize("meet", [3, 6])
def test_the_distance_is_within_the_bound_where_the_law_is_known(meet: int) -> None:
    """Marginal Kolmogorov-Smirnov distances bound total variation from below; 4,000 draws err by 0.03."""
    sampler = CoupledChains(gamma=0.2, meet=meet)
    found = sampler.sample(Lopsided(), Gibbs(1.0), RECORDS, Randomness(3), 4000)
    bound = found.diagnostics["gamma"].reveal()
    for k in range(2):
        assert kstest(np.arcsinh(found.draws["w"][:, k]), norm.cdf).statistic <= bound + 0.03


def test_the_default_passes_on_one_hot_columns_with_rare_levels() -> None:
    """A refused check would spend for nothing: five runs, each of which fails less than once in 100."""
    rng = np.random.default_rng(4)
    levels = [np.minimum(rng.geometric(0.4, 800) - 1, 7) for _ in range(3)]
    x = np.concatenate([np.eye(8)[level] for level in levels], axis=1)
    y = (rng.random(800) < 1 / (1 + np.exp(-x @ rng.normal(0, 2, 24)))).astype(float)
    model = LogisticRegression(24, row_norm=9.0, prior_precision=1 / 9)
    loss = BetaDivergence(2.443, 0.721)
    sampler = default_sampler(model, loss, 0.0, 800)
    assert isinstance(sampler, CoupledChains)
    for seed in range(5):
        found = sampler.sample(model, loss, {"x": x, "y": y}, Randomness(seed), 1)
        assert found.diagnostics["gamma"].reveal() <= sampler.gamma


def test_run_lengths_are_fixed_in_advance() -> None:
    sampler = CoupledChains(gamma=1e-6, meet=12, pairs=24, stragglers=3)
    assert sampler.steps % 12 == 0
    assert sampler.estimate(3) <= 1e-6 < sampler.estimate(4), "3 of 24 may be late, and no more"
    # Every term of the sum over lags, by hand.
    limit, steps, lag = _limit(2, 24), sampler.steps, sampler.lag
    terms = [limit ** ((steps + j * lag) // 12) for j in range(2000)]
    assert sum(terms) <= sampler.estimate(2) * (1 + 1e-12)
    with pytest.raises(ValueError, match="stragglers must be fewer"):
        CoupledChains(pairs=4, stragglers=4)
    assert _limit(0, 24) == pytest.approx(1 - 0.001 ** (1 / 24))
    assert _limit(24, 24) == 1.0


def test_the_target_is_flat_and_back() -> None:
    target = Target(NeuralClassification(features=2, hidden=3), Gibbs)
    flat = np.arange(float(target.size))
    named = target.theta(jnp.asarray(flat))
    np.testing.assert_array_equal(target.flat({k: np.asarray(v) for k, v in named.items()}), flat)


@pytest.mark.slow
def test_nuts() -> None:
    draws = NUTS(60, 20, rhat=2.0, ess=10).sample(Lopsided(), Gibbs(1.0), RECORDS, Randomness(5), 60)
    assert kstest(np.arcsinh(draws.draws["w"][:, 0]), norm.cdf).pvalue > 1e-3
    assert set(draws.diagnostics) == {"rhat", "effective_sample_size", "divergences"}
    with pytest.raises(SamplingError, match="R-hat"):
        NUTS(warmup=60, steps=20, rhat=1.0001).sample(Lopsided(), Gibbs(1.0), RECORDS, Randomness(5), 60)
    with pytest.raises(SamplingError, match="effective sample size of at least 1e"):
        NUTS(60, 20, rhat=2.0, ess=1e6).sample(Lopsided(), Gibbs(1.0), RECORDS, Randomness(5), 60)
    (checked,) = draws.evidence
    assert checked.standing is Standing.CHECKED
    assert "R-hat" in checked.claim
    assert "effective sample size" in checked.claim
    assert "none diverged" in checked.claim


def test_the_default() -> None:
    assert isinstance(default_sampler(LogisticRegression(2), Gibbs(1.0), 1e-6, 100), ExactRegression)
    assert isinstance(default_sampler(LogisticRegression(2), BetaDivergence(), 1e-6, 100), CoupledChains)
    assert isinstance(
        default_sampler(LogisticRegression(2, row_norm=1e9), Gibbs(1.0), 1e-6, 100), CoupledChains
    )
    assert isinstance(default_sampler(NeuralClassification(2), Gibbs(1.0), 1e-6, 100), NUTS)
