"""Algorithm 1 of paper R: what a draw of the posterior itself costs, and the two extensions."""

import numpy as np
import pytest

from discreet import Budget, mechanisms, models
from discreet.privacy import BudgetError

BETA = models.BetaBernoulli(prior=(6, 12))
ALL = [
    BETA,
    models.DirichletCategorical((6, 12, 4)),
    models.GammaPoisson((20, 4), largest=5),
    models.NormalKnownVariance((0, 1), 1, (-1, 1)),
    models.NormalInverseGamma((0, 1, 50, 50), (-1, 1)),
]
BITS = {"x": np.arange(100.0) % 2}


def test_errata_7_and_s3_through_the_public_surface() -> None:
    plan = mechanisms.DirectPosterior(BETA).plan(n=100)
    for order, value in [(1.5, 0.1391), (2, 0.1913), (4, 0.4448), (6.9, 1.3926)]:
        assert plan.guarantee.renyi(order) == pytest.approx(value, abs=5e-5)
    assert plan.guarantee.renyi(7.0) == plan.guarantee.renyi(7.1) == np.inf
    for delta, value in [(1e-3, 1.353), (1e-5, 2.236), (1e-6, 2.648)]:
        assert plan.guarantee.epsilon(delta) == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize("family", ALL, ids=lambda f: type(f).__name__)
def test_a_release_has_the_draws_that_were_planned(family: models.ConjugateFamily) -> None:
    plan = mechanisms.DirectPosterior(family, draws=3).plan(n=100)
    release = plan.release(BITS, key=1)
    again = plan.release(BITS, key=1)
    for name, values in release.draws.items():
        assert len(values) == 3
        np.testing.assert_array_equal(values, again.draws[name])
    assert {shape for shape in family.parameter_shapes if shape not in release.draws} == set()
    assert "because the posterior itself is released" in plan.describe()
    assert plan.guarantee.pieces == (3 * family.guarantee(100)).pieces


@pytest.mark.parametrize("family", ALL[:4], ids=lambda f: type(f).__name__)
def test_draws_follow_the_posterior(family: models.ConjugateFamily) -> None:
    # Means of T over 20,000 draws within 6 standard errors; the prior's mean is the negative control.
    release = mechanisms.DirectPosterior(family, draws=20_000).plan(n=100).release(BITS, key=2)
    eta = family.posterior_eta(family.statistic(family.validate(BITS)).sum(axis=0), 100)
    error = np.sqrt(np.diag(family.hessian(eta)) / 20_000)
    mean = family.sufficient(release.draws).mean(axis=0)
    assert np.all(np.abs(mean - family.gradient(eta)) < 6 * error)
    assert np.any(np.abs(mean - family.gradient(family.prior_eta)) > 6 * error)


@pytest.mark.parametrize("family", ALL, ids=lambda f: type(f).__name__)
def test_an_answer_is_an_unbiased_estimate_of_the_mean_statistic(family: models.ConjugateFamily) -> None:
    mechanism = mechanisms.ConcentratedPosterior(family, draws=20_000)
    plan = mechanism.planned(100, weight=0.4, concentration=0.5, reasons=())
    answers = mechanism.answer(plan.release(BITS, key=3))
    truth = family.statistic(family.validate(BITS)).mean(axis=0)[: answers.shape[1]]
    error = answers.std(axis=0) / np.sqrt(20_000)
    assert np.all(np.abs(answers.mean(axis=0) - truth) < 6 * error)  # 2e-9 per coordinate over seeds


def test_public_records_make_a_draw_cheaper() -> None:
    public = {"x": [0, 1, 1, 0, 0, 1, 0, 0]}
    assert BETA.given_public(public) == models.BetaBernoulli((9, 17))
    cost = mechanisms.DirectPosterior(BETA).plan(n=100).guarantee.epsilon(1e-6)
    cheaper = mechanisms.DirectPosterior(BETA.given_public(public)).plan(n=100).guarantee.epsilon(1e-6)
    assert cheaper < 0.95 * cost


def test_a_budget_is_checked_and_a_pure_one_refused() -> None:
    mechanism = mechanisms.DirectPosterior(BETA)
    assert mechanism.plan(n=100, budget=Budget(3.0, 1e-6)).size == 100
    with pytest.raises(BudgetError, match="DiffusedPosterior") as caught:
        mechanism.plan(n=100, budget=Budget(1.0, 1e-6))
    assert caught.value.smallest_epsilon == pytest.approx(2.648, abs=1e-3)
    with pytest.raises(BudgetError, match="order 2"):
        mechanism.plan(n=100, renyi=(2.0, 0.1))
    for prior in ((6.0, 12.0), (1e9, 1e9)):  # the second has a profile that underflows to 0
        with pytest.raises(BudgetError, match="no pure epsilon") as refused:
            mechanisms.DirectPosterior(models.BetaBernoulli(prior)).plan(n=100, budget=Budget(1.0))
        assert refused.value.smallest_epsilon == np.inf


def test_other_models_and_counts_are_refused() -> None:
    for mechanism in (mechanisms.DirectPosterior, mechanisms.PerturbedStatistics):
        with pytest.raises(TypeError, match="conjugate family"):
            mechanism("a model")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="n must"):
        mechanisms.DirectPosterior(BETA).plan(n=0)
    with pytest.raises(ValueError, match="as many as the plan"):
        mechanisms.DirectPosterior(BETA).plan(n=99).release(BITS)
