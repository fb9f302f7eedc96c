"""Metrics against definitions written another way, known values, and scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from discreet import metrics
from discreet.metrics import Reliability

Array = NDArray[np.float64]


def predictions(seed: int, rows: int = 200, labels: int = 4) -> tuple[NDArray[np.int64], Array]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(labels, 0.4), rows)
    return rng.integers(labels, size=rows), p


def naive_errors(y: NDArray[np.int64], p: Array, bins: int) -> tuple[float, float]:
    """Section 6.1 of paper N, one record after the other."""
    members: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for label, row in zip(y, p, strict=True):
        sure = float(max(row))
        b = next(k for k in range(bins) if sure <= (k + 1) / bins or k == bins - 1)
        members[b].append((sure, int(np.argmax(row)) == label))
    gaps = [
        (len(m), abs(sum(right for _, right in m) / len(m) - sum(s for s, _ in m) / len(m)))
        for m in members
        if m
    ]
    return sum(k * gap for k, gap in gaps) / len(y), max(gap for _, gap in gaps)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), bins=st.integers(1, 30), rows=st.integers(1, 60))
def test_calibration_errors_are_those_of_the_definition(seed: int, bins: int, rows: int) -> None:
    y, p = predictions(seed, rows)
    expected, greatest = naive_errors(y, p, bins)
    found = Reliability.of(y, p, bins=bins)
    assert found.expected_error == pytest.approx(expected, abs=1e-12)
    assert found.maximum_error() == pytest.approx(greatest, abs=1e-12)
    assert found.counts.sum() == rows
    assert metrics.expected_calibration_error(y, p, bins=bins) == found.expected_error
    assert metrics.maximum_calibration_error(y, p, bins=bins) == found.maximum_error()


def test_bins_are_closed_on_the_right() -> None:
    p = np.array([[0.5, 0.5], [0.75, 0.25], [0.76, 0.24], [1.0, 0.0]])
    found = Reliability.of([0, 0, 0, 0], p, bins=4)
    assert found.counts.tolist() == [0, 1, 1, 2]
    assert np.isnan(found.gaps[0])


def test_an_ece_tells_calibrated_from_over_confident() -> None:
    """10,000 records. ECE of the calibrated prediction: mean 0.008, standard deviation 0.002 over seeds
    (so that 0.02 is exceeded less than once in a million); of the sharpened one 0.11."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(5, 0.5), 10_000)
    y = (rng.random((10_000, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(max=4)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    assert metrics.expected_calibration_error(y, p) < 0.02
    assert metrics.expected_calibration_error(y, sharp) > 0.08
    calibrated = Reliability.of(y, p)
    assert calibrated.maximum_error(at_least=200) < 0.08 < calibrated.maximum_error(at_least=1) + 0.08
    with pytest.raises(ValueError, match="at_least must be at most"):
        calibrated.maximum_error(at_least=10_001)


def test_scores_agree_with_scikit_learn() -> None:
    y, p = predictions(3, 500)
    labels = list(range(4))
    assert metrics.accuracy(y, p) == accuracy_score(y, p.argmax(axis=1))
    assert metrics.negative_log_likelihood(y, p) == pytest.approx(log_loss(y, p, labels=labels))
    assert metrics.log_score(y, p) == -metrics.negative_log_likelihood(y, p)
    two = np.column_stack([1 - p[:, 0], p[:, 0]])
    assert metrics.brier((y == 0).astype(int), two) == pytest.approx(2 * brier_score_loss(y == 0, p[:, 0]))


def test_a_label_that_could_not_happen_scores_minus_infinity() -> None:
    assert metrics.log_score([1], [[1.0, 0.0]]) == -math.inf


def test_log_and_brier_scores_are_proper() -> None:
    """Believing q, nothing scores better in expectation than saying q."""
    q = np.array([0.6, 0.3, 0.1])
    rng = np.random.default_rng(0)
    for score in (metrics.log_score, lambda y, p: -metrics.brier(y, p)):
        truth = sum(q[k] * score([k], [q]) for k in range(3))
        for other in rng.dirichlet(np.ones(3), 50):
            assert sum(q[k] * score([k], [other]) for k in range(3)) < truth


def test_numbers() -> None:
    rng = np.random.default_rng(1)
    y, mean, variance = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.5, 2, 50)
    assert metrics.mean_squared_error(y, mean) == pytest.approx(np.mean((y - mean) ** 2))
    assert metrics.rmse(y, mean) ** 2 == pytest.approx(metrics.mean_squared_error(y, mean))
    assert metrics.mean_absolute_error(y, mean) == pytest.approx(np.mean(np.abs(y - mean)))
    oracle = stats.norm(mean, np.sqrt(variance))
    assert metrics.normal_log_score(y, mean, variance) == pytest.approx(oracle.logpdf(y).mean())
    lower, upper = metrics.normal_interval(mean, variance, level=0.8)
    np.testing.assert_allclose(lower, oracle.ppf(0.1))
    np.testing.assert_allclose(upper, oracle.ppf(0.9))
    assert metrics.width(lower, upper) == pytest.approx(np.mean(upper - lower))


def test_coverage_counts_ends_and_is_that_of_the_level() -> None:
    assert metrics.coverage([0.0, 1.0, 2.0, 3.1], [0.0] * 4, [1.0, 1.0, 3.0, 3.0]) == 0.75
    y = np.random.default_rng(2).normal(size=20_000)
    found = metrics.coverage(y, *metrics.normal_interval(np.zeros(20_000), 1.0, level=0.9))
    assert abs(found - 0.9) < 5 * math.sqrt(0.09 / 20_000)  # fails once in 2 million


def test_the_interval_score_is_least_at_the_quantiles() -> None:
    y = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)

    def score(half: float) -> float:
        return metrics.interval_score(y, np.full(2000, -half), np.full(2000, half), level=0.9)

    best = min(np.linspace(0.5, 3, 101), key=score)
    assert best == pytest.approx(1.645, abs=0.03)


def test_parts_of_variance_are_those_of_paper_n() -> None:
    """Appendix C.2: data uncertainty (1/n) sum s_i^2, posterior uncertainty (1/(n-1)) sum (y_i - mean)^2."""
    rng = np.random.default_rng(4)
    means, variances = rng.normal(size=(7, 3)), rng.uniform(1, 2, (7, 3))
    found = metrics.decompose_variance(means, variances)
    for j in range(3):
        centre = sum(means[i, j] for i in range(7)) / 7
        assert found.epistemic[j] == pytest.approx(sum((means[i, j] - centre) ** 2 for i in range(7)) / 6)
        assert found.aleatoric[j] == pytest.approx(sum(variances[i, j] for i in range(7)) / 7)
    assert metrics.decompose_variance(means[:1], variances[:1]).epistemic.tolist() == [0, 0, 0]


def test_parts_of_entropy_add_up() -> None:
    p = np.random.default_rng(6).dirichlet(np.full(3, 0.3), (9, 4))
    found = metrics.decompose_entropy(p)
    np.testing.assert_allclose(found.total, stats.entropy(p.mean(axis=0), axis=-1))
    np.testing.assert_allclose(found.aleatoric, stats.entropy(p, axis=-1).mean(axis=0))
    assert (found.epistemic > 0).all()
    same = metrics.decompose_entropy(np.repeat(p[:1], 5, axis=0))
    np.testing.assert_allclose(same.epistemic, 0, atol=1e-12)


GOOD = [[0.5, 0.5], [0.2, 0.8]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: metrics.accuracy([0, 1], [0.5, 0.5]), "one column per label"),
        (lambda: metrics.accuracy([0, 1], [[2.0, -1.0], [0.5, 0.5]]), "in 1 rows; pass probabilities"),
        (lambda: metrics.accuracy([0, 1], [[np.nan, 0.5], [0.5, 0.5]]), "in 1 rows"),
        (lambda: metrics.brier([0], GOOD), "one label for each of the 2 rows"),
        (lambda: metrics.log_score([0, 2], GOOD), "from 0 to 1, got others in 1 rows"),
        (lambda: metrics.log_score([0, 0.5], GOOD), "from 0 to 1, got others in 1 rows"),
        (lambda: Reliability.of([0, 1], GOOD, bins=0), "bins must be a whole number"),
        (lambda: metrics.rmse([], []), "at least one row"),
        (lambda: metrics.rmse([1.0, np.inf], [1.0, 1.0]), "y must be finite, got 1 values"),
        (lambda: metrics.rmse([1.0, 2.0], [1.0, 2.0, 3.0]), r"mean must have the shape \(2,\)"),
        (lambda: metrics.coverage([1.0], [2.0], [1.0]), "got more in 1 rows"),
        (lambda: metrics.normal_interval([0.0], [-1.0]), "variance must be at least 0"),
        (lambda: metrics.normal_log_score([0.0], [0.0], [0.0]), "variance must be above 0"),
        (lambda: metrics.normal_interval([0.0], [1.0], level=1.0), "level must be a finite number"),
        (lambda: metrics.decompose_variance([0.0], [1.0]), "leading axes draw and row"),
        (lambda: metrics.decompose_variance([[0.0]], [[-1.0]]), "in 1 places"),
        (lambda: metrics.decompose_entropy([[0.5, 0.5]]), "axes draw, row and label"),
    ],
)
def test_what_is_refused(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=words):
        call()
