"""Algorithms 2 and 3 of paper R: r and m to 1e-9, on the side that fits, by the better route."""

from typing import Any

import numpy as np
import pytest

from discreet import Budget, mechanisms, models
from discreet.mechanisms._conjugate import largest
from discreet.privacy import BudgetError, Neighbours
from discreet.privacy.routes import RenyiSum

BUDGET = Budget(epsilon=1.0, delta=1e-6)
FAMILIES = [
    models.BetaBernoulli(prior=(6, 12)),
    models.DirichletCategorical((6, 12, 4)),
    models.GammaPoisson((20, 4), largest=5),
    models.NormalKnownVariance((0, 1), 1, (-3, 3)),
    models.NormalInverseGamma((0, 1, 50, 50), (-1, 1)),
]
TUNED: list[tuple[Any, str]] = [
    (mechanisms.DiffusedPosterior, "weight"),
    (mechanisms.ConcentratedPosterior, "concentration"),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize(("mechanism", "name"), TUNED)
def test_the_parameter_is_the_last_one_that_fits(mechanism: Any, name: str, family: Any) -> None:
    plan = mechanism(family).plan(n=100, budget=BUDGET)
    value = plan.parameters[name]
    assert 0.9999 < plan.guarantee.epsilon(1e-6) <= 1.0
    beyond = family.guarantee(100, **{name: value * (1 + 3e-9)})
    assert beyond.epsilon(1e-6) > 1.0
    target = mechanism(family).plan(n=100, renyi=(2.0, 0.05))
    value = target.parameters[name]
    assert (
        target.guarantee.renyi(2.0) <= 0.05 < family.guarantee(100, **{name: value * (1 + 2e-9)}).renyi(2.0)
    )


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize(("mechanism", "name"), TUNED)
def test_the_profile_allows_more_than_the_renyi_route(mechanism: Any, name: str, family: Any) -> None:
    plan = mechanism(family).plan(n=100, budget=BUDGET)
    alone = largest(lambda x: RenyiSum().epsilon(family.guarantee(100, **{name: x}).pieces, 1e-6) <= 1.0)
    assert alone is not None
    (reason,) = plan.reasons
    if isinstance(family, models.NormalInverseGamma):
        assert plan.parameters[name] == pytest.approx(alone, rel=1e-6)
        assert "through the Renyi divergences" in reason
    else:
        assert plan.parameters[name] > 1.09 * alone
        assert f"through the exact profile, {plan.parameters[name] / alone:.4g} times" in reason


def test_a_budget_that_the_posterior_meets_changes_nothing() -> None:
    family = FAMILIES[0]
    for mechanism, name in TUNED:
        for target in ({"budget": Budget(5.0, 1e-6)}, {"renyi": (2.0, 1.0)}):
            plan = mechanism(family).plan(n=100, **target)
            assert plan.parameters[name] == 1.0
            assert "1 fits: the posterior itself" in plan.reasons[0]


def test_several_draws_share_the_budget() -> None:
    one = mechanisms.DiffusedPosterior(FAMILIES[2]).plan(n=100, budget=BUDGET)
    three = mechanisms.DiffusedPosterior(FAMILIES[2], draws=3).plan(n=100, renyi=(2.0, 0.05))
    assert three.guarantee.renyi(2.0) == pytest.approx(0.05, rel=1e-6)
    assert float(str(three.parameters["weight"])) < float(str(one.parameters["weight"]))
    assert len(three.release({"x": np.ones(100)}, key=1).draws["rate"]) == 3


def test_the_draw_uses_r_and_m() -> None:
    # Means of 20,000 draws within 6 standard errors of prior/m + r data, and far from prior + data.
    family, x = FAMILIES[0], np.ones(100)
    for mechanism, name in TUNED:
        settings = {name: 0.1}
        plan = mechanism(family, draws=20_000).planned(100, **settings, reasons=())
        draws = plan.release({"x": x}, key=4).draws["probability"]
        w, m = settings.get("weight", 1.0), settings.get("concentration", 1.0)
        mean = (6 / m + 100 * w) / (18 / m + 100 * w)
        assert abs(draws.mean() - mean) < 6 * draws.std() / np.sqrt(20_000)
        assert abs(draws.mean() - 106 / 118) > 0.05


def test_targets_that_cannot_be_met_or_read_are_refused() -> None:
    family = FAMILIES[0]
    for mechanism, _ in TUNED:
        with pytest.raises(BudgetError, match="no pure epsilon"):
            mechanism(family).plan(n=100, budget=Budget(1.0))
        with pytest.raises(BudgetError, match="smallest epsilon is") as caught:
            mechanism(family).plan(n=100, budget=Budget(1e-12, 1e-12))
        assert 0 < caught.value.smallest_epsilon < 1e-3
        for target, word in (({}, "neither"), ({"budget": BUDGET, "renyi": (2.0, 0.1)}, "both")):
            with pytest.raises(ValueError, match=word):
                mechanism(family).plan(n=100, **target)
        with pytest.raises(ValueError, match="add_remove"):
            mechanism(family).plan(n=100, budget=Budget(1.0, 1e-6, Neighbours.ADD_REMOVE))
