"""Algorithms 4 and 5 of paper R on logistic regression, and OPS on a ball."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from discreet.mechanisms import ConcentratedPosterior, DiffusedPosterior, DirectPosterior
from discreet.mechanisms.truncated_posterior import TruncatedPosterior
from discreet.models import (
    BetaBernoulli,
    LogisticRegression,
    TruncatedGammaRegression,
    TruncatedPoissonRegression,
)
from discreet.models.poisson import PoissonRegression
from discreet.models.probit import ProbitRegression
from discreet.privacy import Budget, BudgetError, Guarantee, Neighbours, Standing, gaussian
from discreet.samplers.exact import ExactRegression

N, PRECISION = 2784, 2.784
MODEL = LogisticRegression(features=9, prior_precision=PRECISION)


def records(n: int = N, d: int = 9) -> dict[str, np.ndarray]:
    source = np.random.default_rng(n)
    return {"x": source.standard_normal((n, d)), "y": source.integers(0, 2, n)}


@pytest.mark.parametrize(("order", "epsilon"), [(1 + 1e-9, 0.1), (10.0, 0.1), (100.0, 1.0), (10.0, 20.0)])
def test_renyi_target_gives_the_papers_numbers(order: float, epsilon: float) -> None:
    """beta = max(2 c^2 lambda / (n epsilon), beta_0), rho = min(1, sqrt(epsilon n beta / (2 c^2 lambda)))."""
    stronger = ConcentratedPosterior(MODEL).plan(N, renyi=(order, epsilon))
    beta = max(2 * order / (N * epsilon), PRECISION / N)
    assert stronger.parameters["prior_precision"] == pytest.approx(beta * N, rel=1e-8)
    assert stronger.guarantee.renyi(order) <= epsilon
    weaker = DiffusedPosterior(MODEL).plan(N, renyi=(order, epsilon))
    rho = min(1.0, math.sqrt(epsilon * PRECISION / (2 * order)))
    assert weaker.parameters["weight"] == pytest.approx(rho, rel=1e-8)
    assert weaker.guarantee.renyi(order) <= epsilon
    assert weaker.guarantee.inexactness == 0


@pytest.mark.parametrize("mechanism", [ConcentratedPosterior, DiffusedPosterior])
def test_profile_allows_more_than_renyi(mechanism: Any) -> None:
    budget = Budget(1.0, 1e-6)
    plan = mechanism(MODEL).plan(N, budget=budget)
    assert plan.guarantee.fits(budget)
    assert plan.guarantee.epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)
    assert plan.guarantee.inexactness == 1e-12
    mu = 2 * plan.parameters["weight"] / math.sqrt(plan.parameters["prior_precision"])
    classical = math.sqrt(2) * (math.sqrt(math.log(1e6) + 1) - math.sqrt(math.log(1e6)))
    assert mu > 1.2 * classical
    assert "exact profile" in plan.reasons[0]


@pytest.mark.parametrize("mechanism", [ConcentratedPosterior, DiffusedPosterior])
def test_release_draws_as_planned(mechanism: Any) -> None:
    plan = mechanism(MODEL, draws=2).plan(N, budget=Budget(1.0, 1e-6))
    release = plan.release(records(), key=3)
    again = plan.release(records(), key=3)
    assert release.draws["w"].shape == (2, 9)
    assert np.array_equal(release.draws["w"], again.draws["w"])
    assert release.guarantee == plan.guarantee
    assert any(
        claim.standing is Standing.PROVED and "total variation" in claim.claim for claim in release.evidence
    )
    assert plan.guarantee.inexactness == 2e-12
    tries = json.loads(plan.to_json())["parameters"]["tries"]
    assert tries < 1000
    assert release.diagnostics["tries"].reveal() == 2 * tries


def test_direct_posterior_needs_no_budget_and_refuses_one_that_is_too_small() -> None:
    plan = DirectPosterior(MODEL).plan(N)
    assert Guarantee(plan.guarantee.pieces, Neighbours.SUBSTITUTE) == gaussian(
        math.sqrt(PRECISION) / 2, neighbours="substitute"
    )
    with pytest.raises(BudgetError, match="DiffusedPosterior or ConcentratedPosterior"):
        DirectPosterior(MODEL).plan(N, budget=Budget(0.1, 1e-6))


def test_a_sampler_is_part_of_the_plan() -> None:
    constant = DiffusedPosterior(MODEL, sampler=ExactRegression(gamma=1e-9))
    plan = constant.plan(N, budget=Budget(1.0, 1e-6))
    assert 10 < plan.parameters["tries"] < 5000  # pyright: ignore[reportOperatorIssue]
    assert "proximal_steps" not in plan.parameters
    assert "constant_time" in plan.to_json()
    assert plan.guarantee.inexactness == 1e-9
    with pytest.raises(ValueError, match="Renyi target must have a sampler of distance 0"):
        constant.plan(N, renyi=(10.0, 0.1))
    with pytest.raises(ValueError, match="sampler must be None"):
        DiffusedPosterior(BetaBernoulli(), sampler=ExactRegression())


def test_probit_and_poisson_are_refused() -> None:
    for mechanism in (DirectPosterior, DiffusedPosterior, ConcentratedPosterior):
        with pytest.raises(ValueError, match=r"bounded score.*complementary log-log.*beta-divergence"):
            mechanism(ProbitRegression(features=2))
        with pytest.raises(ValueError, match=r"log-concave.*beta-divergence"):
            mechanism(PoissonRegression(features=2))


# --- the claim against the truth -------------------------------------------------------------------


GRID = np.linspace(-40, 40, 80_001)


def log_density(z: np.ndarray, precision: float, weight: float) -> np.ndarray:
    """Log posterior density in one dimension, on GRID."""
    values, counts = np.unique(z, return_counts=True)
    height = -0.5 * precision * GRID**2
    for value, count in zip(values, counts, strict=True):
        height -= weight * count * np.logaddexp(0, -value * GRID)
    height -= height.max()
    return height - math.log(np.exp(height).sum() * (GRID[1] - GRID[0]))


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(np.exp(p) - np.exp(epsilon + q), 0).sum() * (GRID[1] - GRID[0]))


def neighbours_in_one_dimension() -> list[tuple[np.ndarray, np.ndarray]]:
    """Balanced, one-sided and empty rests; a row at its bound against every other row."""
    rests = [
        np.zeros(0),
        np.ones(20),
        -np.ones(20),
        np.repeat([1.0, -1.0], 10),
        np.full(20, 0.2),
        np.zeros(20),
    ]
    return [
        (np.append(rest, 1.0), np.append(rest, other))
        for rest in rests
        for other in (-1.0, -0.5, 0.0, 0.25, 0.5)
    ]


@pytest.mark.parametrize(("precision", "weight"), [(0.3, 1.0), (2.0, 1.0), (0.3, 0.2), (30.0, 0.7)])
def test_privacy_loss_in_one_dimension_is_below_the_claim(precision: float, weight: float) -> None:
    model = LogisticRegression(features=1, prior_precision=precision)
    exact = DiffusedPosterior(model, sampler=ExactRegression(gamma=0.0, constant_time=False)).price(
        21, weight=weight
    )
    mu = 2 * weight / math.sqrt(precision)
    too_small = gaussian(1 / (0.2 * mu), neighbours="substitute")
    caught = False
    for one, other in neighbours_in_one_dimension():
        p, q = (log_density(z, precision, weight) for z in (one, other))
        for first, second in ((p, q), (q, p)):
            for epsilon in (0.0, 0.05, 0.2, 0.5, 1.0, 2.0):
                true = hockey_stick(first, second, epsilon)
                assert true <= exact.delta(epsilon) + 1e-9
                caught |= true > too_small.delta(epsilon) + 1e-6
    assert caught, "the control, a fifth of mu, must be violated by one of the pairs"


def test_errata_19_algorithm_5_is_not_always_better() -> None:
    """The chance that a draw has the wrong sign, by quadrature: 52 % of 2784 records say w > 0."""
    model = replace(MODEL, features=1)
    z = np.repeat([1.0, -1.0], [1448, N - 1448])
    wrong = {}
    for mechanism in (ConcentratedPosterior, DiffusedPosterior):
        fixed = mechanism(model).plan(N, renyi=(100.0, math.exp(-5))).parameters
        precision, weight = (float(fixed[name]) for name in ("prior_precision", "weight"))  # pyright: ignore[reportArgumentType]
        density = np.exp(log_density(z, precision, weight))
        wrong[mechanism] = density[GRID < 0].sum() / density.sum()
    assert 0.2 < wrong[ConcentratedPosterior] < wrong[DiffusedPosterior] - 0.02


def test_two_c_is_reached_in_two_dimensions() -> None:
    angle = 0.02
    one, other = np.array([math.cos(angle), -math.sin(angle)]), np.array([-math.cos(angle), -math.sin(angle)])
    w = np.array([0.0, 2000.0])
    difference = one * expit(-one @ w) - other * expit(-other @ w)
    assert 1.999 < float(np.linalg.norm(difference)) <= 2


@pytest.mark.parametrize(
    "model",
    [
        TruncatedPoissonRegression(features=1, largest=4, prior_precision=3.0),
        TruncatedGammaRegression(features=1, largest=4.0, prior_precision=3.0, shape=2.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_bounded_privacy_loss_is_below_the_claim(model: Any) -> None:
    """One of 12 responses goes from least to greatest, by quadrature; a fifth of mu is too small."""
    weight = 0.5
    exactly = ExactRegression(gamma=0.0, constant_time=False)
    priced = DiffusedPosterior(model, sampler=exactly).price(12, weight=weight)
    too_small = gaussian(5 * math.sqrt(3.0) / (2 * 4.0 * weight), neighbours="substitute")
    nodes, log_masses = model.base_measure
    partition = np.logaddexp.reduce(log_masses[:, None] + np.outer(nodes, GRID), axis=0)
    pair = []
    for response in (0.0, 4.0):
        height = -0.5 * 3.0 * GRID**2 + weight * ((11 * 1.5 + response) * GRID - 12 * partition)
        pair.append(
            height - height.max() - math.log(np.exp(height - height.max()).sum() * (GRID[1] - GRID[0]))
        )
    caught = False
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        true = max(hockey_stick(pair[0], pair[1], epsilon), hockey_stick(pair[1], pair[0], epsilon))
        assert true <= priced.delta(epsilon) + 1e-9
        caught |= true > too_small.delta(epsilon) + 1e-6
    assert caught, "the control, a fifth of mu, must be violated"


def test_bounded_responses_are_planned_and_released() -> None:
    source = np.random.default_rng(8)
    data = {"x": source.standard_normal((200, 3)), "y": source.integers(0, 9, 200)}
    for model in (
        TruncatedPoissonRegression(features=3, largest=5, prior_precision=5.0),
        TruncatedGammaRegression(features=3, largest=5.0, prior_precision=5.0, shape=1.5),
    ):
        for mechanism in (DiffusedPosterior, ConcentratedPosterior):
            plan = mechanism(model).plan(200, budget=Budget(1.0, 1e-6))
            assert plan.guarantee.epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)
            weight, precision = (float(plan.parameters[name]) for name in ("weight", "prior_precision"))  # pyright: ignore[reportArgumentType]
            same = replace(MODEL, row_norm=5.0, prior_precision=precision)
            logistic = DiffusedPosterior(same).price(200, weight=weight)
            assert plan.guarantee == logistic, "as logistic regression with rows 5 times as long"
            assert "same number of tries" in plan.reasons[-1]
            assert plan.release(data, key=1).draws["w"].shape == (1, 3)


def test_where_constant_time_is_too_slow_the_plan_says_so() -> None:
    large = LogisticRegression(features=784, prior_precision=7.988)
    plan = DiffusedPosterior(large).plan(7988, budget=Budget(5.0, 1e-6))
    assert "how many are made depends on the data" in plan.reasons[-1]
    assert any("nobody times the run" in claim.claim for claim in plan.evidence)
    with pytest.raises(ValueError, match="constant_time=False"):
        DiffusedPosterior(large, sampler=ExactRegression()).plan(7988, budget=Budget(5.0, 1e-6))


# --- OPS --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "radius", "weight"), [(0.5, 3.0, 0.4), (5.0, 2.0, 1.0)])
def test_truncated_loss_spans_the_claimed_range(precision: float, radius: float, weight: float) -> None:
    """By quadrature: the log ratio spans at most 2 rho c radius, and nearly that on one pair."""
    model = LogisticRegression(features=1, prior_precision=precision)
    claimed = TruncatedPosterior(model, radius=radius).price(weight, radius).epsilon(0)
    inside = np.abs(GRID) <= radius
    widest = 0.0
    for one, other in neighbours_in_one_dimension():
        p, q = (log_density(z, precision, weight)[inside] for z in (one, other))
        p, q = (part - math.log(np.exp(part).sum()) for part in (p, q))
        widest = max(widest, float(np.ptp(p - q)))
        assert np.ptp(p - q) <= claimed * (1 + 1e-9)
        assert np.abs(p - q).max() <= claimed
    assert widest > 0.95 * claimed


def test_truncated_posterior_plans_and_draws_inside_its_ball() -> None:
    model = replace(MODEL, features=2, prior_precision=5.0)
    mechanism = TruncatedPosterior(model, draws=200, radius=0.4)
    plan = mechanism.plan(300, budget=Budget(4.0))
    assert plan.guarantee.epsilon(0) <= 4.0
    assert plan.parameters["weight"] == pytest.approx(4.0 / 200 / 0.8)
    draws = plan.release(records(300, 2)).draws["w"]
    assert np.linalg.norm(draws, axis=1).max() <= 0.4
    default = TruncatedPosterior(MODEL).plan(N, budget=Budget(1.0))
    assert default.parameters["radius"] == pytest.approx(N / PRECISION)
    # Wang et al.: 4 c^2 rho / beta; the range gives 2 c^2 rho / beta.
    assert default.parameters["weight"] == pytest.approx(1.0 * 1e-3 / 2, rel=1e-6)
