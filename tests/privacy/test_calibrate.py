"""Calibration: it fits, it is on the boundary, and it says why when it cannot."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.privacy import (
    Budget,
    BudgetError,
    Guarantee,
    barker,
    beta_bernoulli,
    calibrate,
    gaussian,
    inexact,
    laplace,
    poisson_gaussian,
    pure,
    strongly_convex_posterior,
    zcdp,
)

SUB = "substitute"
Build = Callable[[float], Guarantee]

CASES: dict[str, tuple[Build, Budget, tuple[float, float], int]] = {
    # name: build, budget, bracket, the direction in which the cost rises
    "gaussian": (lambda s: gaussian(s, neighbours=SUB), Budget(1.0, 1e-5), (1e-2, 1e4), -1),
    "laplace": (lambda s: laplace(s, neighbours=SUB), Budget(0.3), (1e-3, 1e3), -1),
    "pure": (lambda e: pure(e, neighbours=SUB), Budget(0.7), (1e-6, 1e2), 1),
    "pure composed": (lambda e: pure(e, neighbours=SUB).repeat(50), Budget(1.0, 1e-6), (1e-4, 10.0), 1),
    "zcdp": (lambda r: zcdp(r, neighbours=SUB), Budget(2.0, 1e-8), (1e-6, 1e3), 1),
    "weight": (
        lambda w: strongly_convex_posterior(2 * w, 1.0, neighbours=SUB),
        Budget(1.0, 1e-5),
        (1e-4, 10.0),
        1,
    ),
    "posterior": (lambda w: beta_bernoulli(2, 2, 50, weight=w), Budget(0.5, 1e-6), (1e-3, 1.0), 1),
    "sgd": (
        lambda s: poisson_gaussian(0.01, s, 1000, neighbours="add_remove"),
        Budget(1.0, 1e-6),
        (0.3, 100.0),
        -1,
    ),
    "barker clip": (lambda k: barker(1000, 100_000, 1000, clip=k), Budget(0.05, 1e-5), (0.05, 1.3), 1),
    "inexact": (
        lambda s: gaussian(s, neighbours=SUB) + inexact(1e-7, neighbours=SUB),
        Budget(1.0, 1e-5),
        (0.1, 1e3),
        -1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_answer_fits_and_is_on_the_boundary(name: str) -> None:
    build, budget, bracket, direction = CASES[name]
    found = calibrate(build, budget, bracket)
    assert found.guarantee == build(found.value)
    assert found.guarantee.fits(budget)
    assert found.guarantee.epsilon(budget.delta) <= budget.epsilon
    assert bracket[0] < found.value < bracket[1]
    # Two parts in a million further does not fit.
    assert not build(found.value * (1 + direction * 2e-6)).fits(budget)
    assert found.probes < 60


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.floats(0.01, 20), st.sampled_from([1e-12, 1e-6, 1e-2]), st.floats(1e-3, 0.05), st.floats(2e3, 1e4))
def test_any_gaussian_budget(epsilon: float, delta: float, low: float, high: float) -> None:
    found = calibrate(lambda s: gaussian(s, neighbours=SUB), Budget(epsilon, delta), (low, high))
    assert found.guarantee.epsilon(delta) <= epsilon
    if low < found.value < high:
        assert gaussian(found.value * (1 - 2e-6), neighbours=SUB).epsilon(delta) > epsilon


@pytest.mark.parametrize(
    ("build", "answer"),
    [(lambda s: gaussian(s, neighbours=SUB), 50.0), (lambda e: pure(e / 1e4, neighbours=SUB), 100.0)],
)
def test_if_both_ends_fit_the_costlier_is_taken(build: Build, answer: float) -> None:
    assert calibrate(build, Budget(1.0, 1e-5), (50.0, 100.0)).value == answer


@pytest.mark.parametrize(
    ("build", "at"),
    [(lambda s: gaussian(s, neighbours=SUB), 0.2), (lambda e: pure(e, neighbours=SUB).repeat(100), 0.1)],
)
def test_a_budget_out_of_reach_says_the_smallest_epsilon(build: Build, at: float) -> None:
    with pytest.raises(BudgetError) as refused:
        calibrate(build, Budget(0.01, 1e-6), (0.1, 0.2))
    error = refused.value
    assert error.at == at
    assert error.smallest_epsilon == pytest.approx(build(at).epsilon(1e-6), rel=1e-9)
    assert isinstance(error, ValueError)
    for part in ("epsilon 0.01", "delta 1e-06", "between 0.1 and 0.2", f"at {at:g}", "raise the budget"):
        assert part in str(error)


def test_a_pure_budget_for_a_mechanism_that_is_not_pure() -> None:
    with pytest.raises(BudgetError) as refused:
        calibrate(lambda s: gaussian(s, neighbours=SUB), Budget(1.0), (0.1, 1e8))
    assert refused.value.smallest_epsilon == math.inf


def test_the_relation_of_the_budget_is_respected() -> None:
    with pytest.raises(ValueError, match="add_remove"):
        calibrate(
            lambda s: gaussian(s, neighbours=SUB),
            Budget(1.0, 1e-5, neighbours="add_remove"),  # pyright: ignore[reportArgumentType]
            (0.1, 10.0),
        )


def test_a_step_is_found_from_the_safe_side() -> None:
    found = calibrate(
        lambda x: pure(0.1, neighbours=SUB).repeat(int(x)) if x >= 1 else pure(0.0, neighbours=SUB),
        Budget(1.0 + 1e-9),
        (1.0, 100.0),
    )
    assert found.guarantee.pieces[0][1] == 10
    assert 10 <= found.value < 11 * (1 + 1e-6)
