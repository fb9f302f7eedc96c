"""Audits in one run: valid at their rate, near the claim, and above it when noise is missing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

import discreet as dc
from discreet.audit import judge_one_run, one_run
from discreet.audit.one_run import inverse_blow_up, probability_of_right, refutes
from discreet.samplers.randomness import Randomness


def noisy_sum(sigma: float):
    """The plain Gaussian sum: canary i is the i-th axis, and its score the i-th coordinate."""

    def run(there: NDArray[np.bool_], randomness: Randomness) -> NDArray[np.float64]:
        return there + randomness.numpy().normal(0.0, sigma, len(there))

    return run


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_a_gaussian_sum_passes_and_is_bounded_from_near(sigma: float) -> None:
    claim = dc.privacy.gaussian(sigma, sensitivity=1.0, neighbours="add_remove")
    found = one_run(noisy_sum(sigma), 20_000, claim, key=5)
    assert found.passes
    assert found.mu is not None
    assert 0.4 / sigma < found.mu <= 1 / sigma
    assert found.epsilon_of_mu is not None
    assert found.epsilon < found.epsilon_of_mu <= found.claim


def test_missing_noise_is_caught() -> None:
    """The negative control: half of the noise that is claimed."""
    claim = dc.privacy.gaussian(1.0, sensitivity=1.0, neighbours="add_remove")
    found = one_run(noisy_sum(0.5), 5_000, claim, key=5)
    assert not found.passes
    assert found.refuted
    assert "VIOLATED" in found.describe()


def test_true_claims_are_refuted_at_most_at_the_rate() -> None:
    """600 runs at confidence 0.95: at most 48 refutations in 999 of 1000 such tests (binomial)."""
    rng = np.random.default_rng(3)
    mu, m, guesses = 1.0, 400, 80
    wrong = 0
    for _ in range(600):
        there = rng.random(m) < 0.5
        order = np.argsort(mu * there + rng.standard_normal(m))
        right = int(there[order[-40:]].sum() + (~there[order[:40]]).sum())
        wrong += refutes(lambda p: float(special.ndtr(special.ndtri(p) - mu)), m, guesses, right, 0.05)
    assert wrong <= stats.binom.isf(1e-3, 600, 0.05)


def test_randomized_response_meets_the_bound_of_steinke_et_al() -> None:
    """Every guess right with probability e^eps / (1 + e^eps): the p-value is the binomial tail itself."""
    assert probability_of_right(100, 100, 73, 1.0, 0.0) == pytest.approx(
        stats.binom.sf(72, 100, special.expit(1.0))
    )
    assert probability_of_right(100, 100, 73, 1.0, 1e-3) > probability_of_right(100, 100, 73, 1.0, 0.0)
    found = judge_one_run(10_000, 10_000, 7311, dc.privacy.pure(1.0, neighbours="add_remove"))
    assert 0.9 < found.epsilon <= 1.0
    assert found.passes
    assert not judge_one_run(10_000, 10_000, 7600, dc.privacy.pure(1.0, neighbours="add_remove")).passes


def test_a_curve_at_few_points_errs_for_the_claim() -> None:
    claim = dc.privacy.gaussian(1.0, sensitivity=1.0, neighbours="add_remove")
    exact = inverse_blow_up(claim)
    coarse = inverse_blow_up(claim + dc.privacy.pure(0.0, neighbours="add_remove"))
    for p in (0.01, 0.1, 0.5, 0.9):
        assert 0 <= coarse(p) <= exact(p) * (1 + 1e-9)
        assert coarse(p) > 0.8 * exact(p)
