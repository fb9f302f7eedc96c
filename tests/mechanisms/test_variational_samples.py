"""Variational samples: bounds by replay, shadows against runs without the person, the posterior."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

import discreet as dc
from discreet.mechanisms import VariationalSamples
from discreet.mechanisms.variational_samples import ORDERS, Step
from discreet.models import LogisticRegression
from discreet.privacy.bayesian_costs import normals_log_moments

Array = NDArray[np.float64]
N, D, STEPS, KEY = 120, 3, 40, 5
RATE = 0.2


@pytest.fixture(scope="module")
def records() -> dict[str, Array]:
    g = np.random.default_rng(0)
    x = g.normal(size=(N, D))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x[7] = [1.0, 0.0, 0.0]
    y = (g.random(N) < 1 / (1 + np.exp(-x @ np.array([2.0, -1.0, 0.5])))).astype(float)
    y[7] = 0.0
    return {"x": x, "y": y}


def mechanism(**settings: Any) -> VariationalSamples:
    chosen: dict[str, Any] = {
        "tempered_size": N,
        "shadows": N,
        "burn_in": 0.0,
        "rate": RATE,
        "precision_range": 4.0,
    }
    return VariationalSamples(LogisticRegression(features=D), **{**chosen, **settings})


@pytest.fixture(scope="module")
def ran(records: dict[str, Array]) -> tuple[dc.mechanisms.Plan, dc.mechanisms.Release]:
    plan = mechanism().plan(n=N, steps=STEPS)
    return plan, plan.release(records, key=KEY)


def states(records: dict[str, Array], samples: Array, step: Step) -> tuple[Array, Array]:
    """The state before every sample, by a plain loop through a given history: means and raw precisions."""
    mean, precision = np.zeros(D), np.full(D, step.high)
    means, precisions = [], []
    for w in samples:
        means.append(mean)
        precisions.append(precision)
        p = 1 / (1 + np.exp(-records["x"] @ w))
        each = (records["y"] - p)[:, None] * records["x"]
        target = w + (-w * step.prior + step.weight * each.sum(axis=0)) / step.high
        mean = (1 - RATE) * mean + RATE * target
        precision = (1 - RATE) * precision + RATE * (step.prior + step.weight * (each**2).sum(axis=0))
    return np.array(means), np.array(precisions)


def without(records: dict[str, Array], person: int) -> dict[str, Array]:
    return {name: np.delete(values, person, axis=0) for name, values in records.items()}


def log_moments(one: tuple[Array, Array], other: tuple[Array, Array], step: Step) -> Array:
    """lambda D for every order (rows) and step, between the normals of two states."""
    sds = [1 / np.sqrt(np.clip(state[1], step.low, step.high)) for state in (one, other)]
    return normals_log_moments(ORDERS, one[0] - other[0], *sds)


def test_shadows_are_the_runs_without_the_person(
    records: dict[str, Array], ran: tuple[dc.mechanisms.Plan, dc.mechanisms.Release]
) -> None:
    plan, release = ran
    step, samples = mechanism().step(N, N), release.draws["w"]
    assert samples.shape == (STEPS, D)
    costs = release.diagnostics["people"].reveal()
    assert costs.everyone
    assert costs.guarantee is plan.guarantee
    whole = states(records, samples, step)
    expected = np.stack(
        [log_moments(whole, states(without(records, i), samples, step), step).sum(axis=1) for i in range(N)]
    )
    # The mechanism picks everybody, in an order of its own.
    finite = np.isfinite(expected).all(axis=0)
    assert finite.sum() >= 8
    found, wanted = np.sort(costs.log_moments[finite], axis=1), np.sort(expected[:, finite].T, axis=1)
    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    assert (costs.log_moments.max(axis=1) <= costs.largest).all()


@pytest.mark.parametrize("wild", [False, True])
def test_state_moves_no_more_than_the_proof_says(records: dict[str, Array], wild: bool) -> None:
    # Any history will do, since the proof fixes it: that of a posterior, and one far away.
    g, step = np.random.default_rng(3), mechanism().step(N, N)
    samples = g.normal(scale=30.0 if wild else 1.0, size=(300, D))
    other = {name: values.copy() for name, values in records.items()}
    other["y"][7] = 1.0
    there, back = states(records, samples, step), states(other, samples, step)
    moved = np.linalg.norm(there[0] - back[0], axis=1)
    bound = 2 * step.weight * step.clip / step.high
    assert moved.max() <= bound * (1 + 1e-12)
    assert wild is False or moved.max() > 0.4 * bound  # the row of person 7 always pulls one way
    change = there[1] - back[1]
    for sign in (1, -1):
        assert np.maximum(sign * change, 0).sum(axis=1).max() <= step.weight * step.clip**2 * (1 + 1e-12)
    found = log_moments(there, back, step)
    for row, order in zip(found, ORDERS, strict=True):
        assert row.max() <= order * step.curve(order + 1, 2)
        alone = log_moments(there, states(without(records, 7), samples, step), step)
        assert alone.max(axis=1)[list(ORDERS).index(order)] <= order * step.curve(order + 1, 1)


def test_the_stated_curve_bounds_pairs_of_normals() -> None:
    # Differences spread over coordinates in any way that the proof allows.
    g, step = np.random.default_rng(4), Step(0.5, 1.0, 0.2, 20.0, 5.0, 1.0)
    share = step.weight * step.clip**2
    for d in (1, 3, 30):
        for _ in range(200):
            low = g.uniform(step.low, step.high - share, size=d) if g.random() < 0.5 else np.full(d, step.low)
            sign = g.choice([-1, 1], size=d)
            spread = g.dirichlet(np.full(d, 0.3)) * share
            high = low + spread
            p, q = np.where(sign > 0, high, low), np.where(sign > 0, low, high)
            shift = g.normal(size=d)
            shift *= 2 * step.weight * step.clip / step.high / np.linalg.norm(shift)
            found = normals_log_moments([0.5, 2.0, 4.0], shift, 1 / np.sqrt(p), 1 / np.sqrt(q))
            for row, order in zip(found, (0.5, 2.0, 4.0), strict=True):
                assert row <= order * step.curve(order + 1, 2)
    assert step.curve(1 + 1 / 0.1, 1) == math.inf
    fixed = Step(0.5, 1.0, 0.2, 20.0, 20.0, 1.0)
    assert fixed.curve(3.0, 2) == pytest.approx(fixed.guarantee(1).renyi(3.0), rel=1e-9)
    assert step.guarantee(5).renyi(3.0) >= 5 * step.curve(3.0, 2) * (1 - 1e-12)


def test_errata_10_one_step_updates_miss_the_carried_state(
    records: dict[str, Array], ran: tuple[dc.mechanisms.Plan, dc.mechanisms.Release]
) -> None:
    # As printed, the states before the last step are taken for equal: only kappa g_x(w) is left.
    _, release = ran
    step, samples = mechanism().step(N, N), release.draws["w"]
    means, precisions = states(records, samples, step)
    printed = np.zeros(len(ORDERS))
    for t in range(1, STEPS):
        p = 1 / (1 + np.exp(-records["x"][7] @ samples[t - 1]))
        g = (records["y"][7] - p) * records["x"][7]
        other = means[t] - RATE * step.weight * g / step.high, precisions[t] - RATE * step.weight * g**2
        printed += log_moments((means[t], precisions[t]), other, step)
    whole = states(records, samples, step)
    true = log_moments(whole, states(without(records, 7), samples, step), step).sum(axis=1)
    ratio = printed[:8] / true[:8]
    print(f"one-step updates see {100 * ratio.max():.1f} % of the cost")
    assert ratio.max() < 0.1


def test_variational_samples_are_near_the_posterior() -> None:
    # One mean-field optimum, by Newton steps on a large table; four runs against it.
    g, n = np.random.default_rng(1), 4000
    x = g.normal(size=(n, D))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = (g.random(n) < 1 / (1 + np.exp(-x @ np.array([2.0, -1.0, 0.5])))).astype(float)
    w, hessian = np.zeros(D), np.eye(D)
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ w))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + np.eye(D)
        w += np.linalg.solve(hessian, x.T @ (y - p) - w)
    sd = 1 / np.sqrt(np.diag(hessian))
    plan = mechanism(tempered_size=n, shadows=0, burn_in=0.25, precision_range=8.0).plan(n=n, steps=400)
    draws = plan.release({"x": x, "y": y}, key=9).draws["w"]
    assert np.abs(draws.mean(axis=0) - w).max() < 5 * sd.max() / math.sqrt(300 * RATE / 2)
    # A moving mean adds its own wander to the spread of q: between 1 and 1.5 of the Laplace deviations.
    assert (draws.std(axis=0) / sd).max() < 1.7
    assert (draws.std(axis=0) / sd).min() > 0.7


def test_a_plan_needs_no_data_and_fits_its_budget() -> None:
    free = VariationalSamples(LogisticRegression(features=D), shadows=16)
    plan = free.plan(n=5000, budget=dc.Budget(1.0, 1e-5), steps=20)
    assert plan.guarantee.fits(dc.Budget(1.0, 1e-5))
    assert plan.guarantee.epsilon(1e-5) > 0.99
    assert "the budget lets the likelihood count for" in plan.describe()
    assert "right about which it was at most" in plan.describe(1e-5)
    whole = mechanism().plan(n=N, steps=10)
    assert whole.guarantee.epsilon(1e-5) > plan.guarantee.epsilon(1e-5)
    assert "which is weak" in whole.describe()
    with pytest.raises(ValueError, match="budget must allow 10 samples at tempered_size 120"):
        mechanism().plan(n=N, steps=10, budget=dc.Budget(0.1, 1e-5))
    with pytest.raises(ValueError, match="proves no Lipschitz bound"):
        VariationalSamples(dc.models.GaussianMixture())


def test_bayesian_loss_of_the_people(
    records: dict[str, Array], ran: tuple[dc.mechanisms.Plan, dc.mechanisms.Release]
) -> None:
    plan, release = ran
    costs = release.diagnostics["people"].reveal()
    loss = costs.result(1e-3).reveal()
    assert loss.gamma == 0
    assert loss.epsilon < plan.guarantee.epsilon(1e-3)
    assert "the moments are those of everybody in the data" in str(loss)
    # By the definition, person by person: the mean of exp(K) is a mean.
    k = list(ORDERS).index(loss.order)
    mean = math.log(np.exp(costs.log_moments[k]).mean())
    alpha = loss.order + 1
    by_hand = (mean + math.log(1e3) - math.log(alpha)) / loss.order + math.log1p(-1 / alpha)
    assert loss.epsilon == pytest.approx(by_hand, rel=1e-9)
    # A sample of people needs a bound: larger than everybody's, and still a bound for them.
    panel = mechanism(shadows=60).plan(n=N, steps=STEPS).release(records, key=KEY)
    some = panel.diagnostics["people"].reveal()
    assert not some.everyone
    assert some.log_moments.shape == (len(ORDERS), 60)
    assert some.result(1e-3, gamma=1e-4).reveal().epsilon >= loss.epsilon
    assert str(release.diagnostics["people"]).startswith("<costs of people: sensitive")


def test_broken_records_cost_no_more(records: dict[str, Array]) -> None:
    from discreet.mechanisms.variational_samples import gradients

    broken = {name: values.copy() for name, values in records.items()}
    broken["x"][3] = np.nan
    with jax.enable_x64(True):
        _, each = gradients(LogisticRegression(features=D), 0.3)(np.full(D, 2.0), broken)
        found = np.asarray(each)
    assert not found[3].any()
    assert 0.3 * (1 - 1e-8) < np.linalg.norm(found, axis=1).max() <= 0.3
