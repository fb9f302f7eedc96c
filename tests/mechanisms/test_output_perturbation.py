"""Output perturbation: the sensitivity is an upper bound, paper B's is not."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import gamma, kstest, laplace

from discreet.mechanisms.output_perturbation import Norm, OutputPerturbation, as_published_scale, minimise
from discreet.models import LogisticRegression, SoftmaxRegression
from discreet.privacy import Budget


def worst_pair() -> tuple[np.ndarray, np.ndarray]:
    """ERRATA 1: 99 rows at 0, one at (1, ..., 1) with either outcome."""
    x = np.zeros((100, 10))
    x[0] = 1.0
    return tuple(minimise(x, np.r_[y, np.zeros(99)], 1 / 9, tolerance=1e-12) for y in (1.0, 0.0))  # pyright: ignore[reportReturnType]


def test_the_printed_scale_is_not_private_and_ours_is() -> None:
    one, other = worst_pair()
    moved = np.abs(one - other).sum()
    assert moved == pytest.approx(0.7362, abs=5e-5)
    assert moved / as_published_scale(100, 1 / 9, 1.0) == pytest.approx(4.09, abs=0.005), "claimed 1"
    model = LogisticRegression(features=10, row_norm=math.sqrt(10))
    for norm, distance in [(Norm.COORDINATES, moved), (Norm.EUCLIDEAN, float(np.linalg.norm(one - other)))]:
        plan = OutputPerturbation(model, 1 / 9, norm).plan(n=100, budget=Budget(epsilon=1.0))
        assert distance / plan.parameters["scale"] <= 1.0
        assert distance / plan.parameters["scale"] >= 0.4
        assert plan.guarantee.epsilon(0) == 1.0


def test_sensitivity_replay() -> None:
    rng = np.random.default_rng(0)
    model = LogisticRegression(features=3)
    plan = OutputPerturbation(model, 0.2).plan(n=8, budget=Budget(epsilon=1.0))
    for trial in range(20):
        records = {"x": rng.standard_normal((8, 3)) * 3, "y": rng.integers(0, 2, 8).astype(float)}
        one = plan.release(records, key=trial).draws["w"][0]
        records["x"][0], records["y"][0] = rng.standard_normal(3) * 3, 1 - records["y"][0]
        other = plan.release(records, key=trial).draws["w"][0]
        assert np.linalg.norm(one - other) <= float(str(plan.parameters["sensitivity"]))


def test_the_minimiser_is_one() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((50, 4)) * [1, 10, 0.1, 3], rng.integers(0, 2, 50).astype(float)
    found = minimise(x, y, 0.01, tolerance=1e-10)
    peer = minimize(
        lambda w: np.logaddexp(0, -(2 * y - 1) * (x @ w)).mean() + 0.005 * w @ w, np.zeros(4), tol=1e-10
    )
    np.testing.assert_allclose(found, peer.x, atol=1e-4)


def test_the_noise_has_its_law() -> None:
    """Kolmogorov-Smirnov, rate of false alarms 1e-3 each, and power against a scale 10 % off."""
    from discreet.mechanisms.output_perturbation import _coordinates, _euclidean

    rng = np.random.default_rng(2)
    radii = np.linalg.norm(_euclidean(rng, (4000, 3), 0.7), axis=1)
    assert kstest(radii, gamma(3, scale=0.7).cdf).pvalue > 1e-3
    assert kstest(radii, gamma(3, scale=0.77).cdf).pvalue < 1e-3
    values = _coordinates(rng, (1000, 4), 0.7).ravel()
    assert kstest(values, laplace(scale=0.7).cdf).pvalue > 1e-3


def test_only_logistic_regression_is_served() -> None:
    """With a softmax model a run failed exactly when somebody had a label above 1, which tells of it."""
    with pytest.raises(TypeError, match="got SoftmaxRegression"):
        OutputPerturbation(SoftmaxRegression(2, 9), 0.1)  # pyright: ignore[reportArgumentType]


def test_the_last_bits_tell_nothing() -> None:
    """What is released is a whole number of steps; an attack on all bits finds no more than the claim.

    The negative control is the same noise added in floating point, as before: epsilon 4.8 for a claim of 1.
    """
    from dataclasses import dataclass

    from discreet.audit import membership
    from discreet.mechanisms import OutputPerturbation

    @dataclass(frozen=True)
    class InFloatingPoint(OutputPerturbation):
        def around(self, centre, plan, randomness, times):
            scale = float(str(plan.parameters["scale"]))
            return centre + randomness.numpy().laplace(0.0, scale, (times, self.model.features))

    model = LogisticRegression(1)
    for norm in Norm:
        plan = OutputPerturbation(model, 0.5, norm=norm).plan(2, budget=Budget(1.0))
        assert membership(plan, trials=20_000, key=1, last_bits=True).passes
    broken = InFloatingPoint(model, 0.5, norm=Norm.COORDINATES).plan(2, budget=Budget(1.0))
    assert not membership(broken, trials=20_000, key=1, last_bits=True).passes
