"""The attacker's chance: attained by an attack, never exceeded, printed beside every epsilon."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli import app
from discreet.privacy import attacker_success, attacker_words, gaussian, percent, pure


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.2])
def test_an_attackers_chance_is_attained_by_randomised_response(epsilon: float, delta: float) -> None:
    heads = Fraction(1) / (1 + Fraction(math.exp(-epsilon)))
    # Outcomes: "it is D", heads, tails, "it is D'". The likelier table is the guess.
    p = [Fraction(delta), (1 - Fraction(delta)) * heads, (1 - Fraction(delta)) * (1 - heads), Fraction(0)]
    right = sum(max(a, b) for a, b in zip(p, p[::-1], strict=True)) / 2
    stated = attacker_success(epsilon, delta)
    assert float(right) == pytest.approx(stated, rel=1e-14)
    assert epsilon == 0 or Fraction(stated) >= right * (1 - Fraction(1, 10**15))


def test_papers_values() -> None:
    # Paper Y, Section III-C and Table I.
    for epsilon, printed in ((2.18, 89.84), (8.0, 99.97), (0.62, 65.02), (0.51, 62.48), (0.16, 53.99)):
        assert 100 * attacker_success(epsilon) == pytest.approx(printed, abs=0.006)
    assert attacker_success(math.inf) == attacker_success(1e4, 0.5) == 1.0


@pytest.mark.parametrize(
    "guarantee", [gaussian(2.0, neighbours="substitute"), 3 * pure(0.4, neighbours="substitute")]
)
def test_no_pair_of_a_guarantee_undercuts_total_variation(guarantee: dc.privacy.Guarantee) -> None:
    smallest = attacker_success(0.0, guarantee.delta(0.0))
    for delta in (0.0, 1e-9, 1e-5, 1e-2):
        assert attacker_success(guarantee.epsilon(delta), delta) >= smallest * (1 - 1e-12)


def test_a_percentage_is_rounded_upward_and_is_100_only_for_certainty() -> None:
    assert percent(0.5) == "50 %"
    assert percent(0.50001) == "50.1 %"
    assert percent(1 - 1e-7) == "99.99999 %"
    assert percent(1.0) == "100 %"
    for p in np.random.default_rng(0).uniform(0.5, 1, 200):
        assert 100 * p <= float(percent(p).removesuffix(" %")) + 1e-11


@pytest.mark.parametrize("given", [(-1.0, 0.0), (math.nan, 0.0), (1.0, -0.1), (1.0, 1.1)])
def test_impossible_numbers_are_refused(given: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be a finite number"):
        attacker_success(*given)


def test_every_printed_epsilon_has_its_attacker(tmp_path: Path) -> None:
    cost = gaussian(4.0, neighbours="substitute")
    assert attacker_words(cost.epsilon(1e-6), 1e-6) in cost.describe(1e-6)
    assert attacker_words(0.0, cost.delta(0.0)) in cost.describe()
    plan = dc.mechanisms.DiffusedPosterior(dc.models.BetaBernoulli(prior=(6, 12))).plan(
        n=100, budget=dc.Budget(1.0, 1e-6)
    )
    assert attacker_words(plan.guarantee.epsilon(1e-6), 1e-6) in plan.describe(1e-6)
    assert "flat" not in plan.describe()
    assert "equally likely before" in plan.describe()
    ledger = dc.Ledger(tmp_path / "one.ledger", budget=dc.Budget(2.0, 1e-6, "substitute"))
    ledger.spend(cost, "a test")
    assert f"so far {attacker_words(ledger.spent(), 1e-6)}" in ledger.describe()
    with pytest.raises(dc.ledger.BudgetExceeded, match=r"would be right up to 9\d\.\d % of the time"):
        ledger.spend(pure(3.0, neighbours="substitute"), "too much")
    table = CliRunner().invoke(app, ["account", "pure", "2", "--neighbours", "substitute", "--delta", "0"])
    assert f"{percent(attacker_success(2.0))}" in table.stdout
    assert "right guess" in table.stdout
