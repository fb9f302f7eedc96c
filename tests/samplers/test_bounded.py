"""Exact draws where the response is bounded: truncated Poisson and gamma regressions.

Statistical tests have fixed seeds; each is rejected at RATE by Bonferroni, and has a negative control.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import kstest

from discreet.models import TruncatedGammaRegression, TruncatedPoissonRegression
from discreet.models.bounded_response import BoundedRegression
from discreet.models.losses import Gibbs
from discreet.samplers._bounded import BoundedCurves, BoundedPotential
from discreet.samplers._potential import least_share
from discreet.samplers._proximal import ProximalChain, plan_proximal
from discreet.samplers._public_bounds import public_shells
from discreet.samplers._shells import RowShells
from discreet.samplers.exact import ExactRegression, potential_of, setting_of
from discreet.samplers.randomness import Randomness

RATE = 1e-3
POISSON = TruncatedPoissonRegression(features=1, largest=4, prior_precision=0.8)
GAMMA = TruncatedGammaRegression(features=1, largest=3.0, prior_precision=0.5, shape=2.0)
MODELS = [POISSON, GAMMA]


def records(model: BoundedRegression, n: int = 40) -> dict[str, np.ndarray]:
    """Rows at their bound, some responses at theirs."""
    source = np.random.default_rng([n, model.features])
    x = source.standard_normal((n, model.features))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.clip(source.gamma(2, np.exp(0.5 * x[:, 0])), 0, model.largest)
    return model.validate({"x": x, "y": np.floor(y) if isinstance(model, TruncatedPoissonRegression) else y})


def potential(model: BoundedRegression, n: int = 40, weight: float = 1.0) -> Any:
    return potential_of(model, records(model, n), weight)


def by_quadrature(model: BoundedRegression, weight: float = 1.0) -> Any:
    """The distribution function of w in one dimension, from the model's own partition function."""
    data, (nodes, log_masses) = records(model), model.base_measure
    grid = np.linspace(-8, 8, 4001)
    height = -0.5 * model.prior_precision * grid**2
    for x, y in zip(data["x"][:, 0], data["y"], strict=True):
        t = x * grid
        height += weight * (y * t - np.logaddexp.reduce(log_masses[:, None] + np.outer(nodes, t), axis=0))
    density = np.exp(height - height.max())
    total = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return lambda w: np.interp(w, grid, total / total[-1])


def accepted(shells: RowShells, seed: int, tries: int = 6000) -> np.ndarray:
    generator = np.random.default_rng(seed)
    points, log_accept = shells.propose(generator, tries)
    return points[-generator.standard_exponential(tries) < log_accept]


@pytest.mark.parametrize("t", [-30.0, -2.0, 0.0, 0.7, 30.0, 900.0])
def test_lemma_bounded_remainder_against_mpmath_and_its_bound(t: float) -> None:
    """phi to 1e-9, and at least s u^2 g(|u|), for the truncated Poisson's A."""
    nodes, log_base = POISSON.base_measure
    potential = BoundedPotential(
        np.ones((1, 1)), 1.0, 1.0, outcomes=np.zeros(1), nodes=nodes / 4, log_base=log_base
    )
    curves = potential.around(np.array([t]))
    with mp.workdps(60):
        masses = [mp.exp(mp.mpf(float(b)) + mp.mpf(t) * k / 4) for k, b in enumerate(log_base)]
        mean = mp.fsum(m * k / 4 for k, m in enumerate(masses)) / mp.fsum(masses)
        for u in (-2000.0, -700.0, -30.0, -1.0, -1e-3, 1e-4, 0.2, 4.0, 499.0, 501.0):
            exact = mp.log(
                mp.fsum(m * mp.exp((mp.mpf(k) / 4 - mean) * u) for k, m in enumerate(masses))
                / mp.fsum(masses)
            )
            got = float(curves.remainder(np.array([u]))[0])
            assert got == pytest.approx(float(exact), rel=1e-8, abs=1e-15 * abs(u))
            bound = float(curves.mean_curvature(np.array([u]))[0]) * u * u / 2
            assert bound <= float(exact) * (1 + 1e-9) + 1e-15 * abs(u)


def test_lemma_bounded_third_derivative() -> None:
    """|A'''| <= A'' <= 1/4 for random measures on [0, 1]; with the range doubled, the first is false."""
    source = np.random.default_rng(4)
    worst = 0.0
    for _ in range(300):
        shares, y = source.dirichlet(np.full(5, 0.3)), source.random(5)
        centred = y - shares @ y
        second, third = shares @ centred**2, shares @ centred**3
        assert second <= 0.25
        assert abs(third) <= second
        worst = max(worst, abs(third) / max(second, 1e-12))
    assert worst > 0.5


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_bounded_draws_pass_against_quadrature(model: BoundedRegression) -> None:
    """Row shells, every level of them, the chain, and the sampler as it is by default."""
    truth, target = by_quadrature(model), potential(model)
    setting = setting_of(model, 40, 1.0)
    chain = ProximalChain(target, setting, plan_proximal(setting, 1e-3))
    generator = np.random.default_rng(5)
    ends = [chain.draw(generator, batch=8) for _ in range(80)]
    sampled = ExactRegression(gamma=1e-6).sample(model, Gibbs(1.0), records(model), Randomness(11), 80)
    for draws in (
        accepted(RowShells(target), 1),
        accepted(RowShells(target, (0.3, 0.8, 1.5, 2.5, 4, 8, 20, 60), choose=False), 2),
        np.stack([end for end in ends if end is not None]),
        sampled.draws["w"],
    ):
        assert kstest(draws[:, 0], truth).pvalue > RATE / 4
    assert kstest(accepted(RowShells(target), 1)[:, 0], by_quadrature(model, 0.7)).pvalue < RATE / 4


def test_a_wrong_bounded_envelope_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    true = BoundedCurves.mean_curvature
    monkeypatch.setattr(BoundedCurves, "mean_curvature", lambda curves, u: 4 * true(curves, u))
    generator = np.random.default_rng(0)
    points, log_accept = RowShells(potential(POISSON)).propose(generator, 8000)
    assert log_accept.max() > 0
    draws = points[-generator.standard_exponential(8000) < log_accept]
    assert kstest(draws[:, 0], by_quadrature(POISSON)).pvalue < RATE / 4


@pytest.mark.parametrize("weight", [0.05, 1.0])
@pytest.mark.parametrize(("n", "d"), [(40, 1), (300, 4)])
def test_bounded_acceptance_is_what_was_promised(n: int, d: int, weight: float) -> None:
    """log acceptance is never positive; public bound <= certificate of the plain family <= measured."""
    for model in (
        TruncatedPoissonRegression(features=d, largest=4, prior_precision=4.0),
        TruncatedGammaRegression(features=d, largest=3.0, prior_precision=2.0, shape=2.0),
    ):
        target, public = potential(model, n, weight), public_shells(setting_of(model, n, weight))
        for shells in (RowShells(target), RowShells(target, public.thresholds, plain=True)):
            log_accept = shells.propose(np.random.default_rng(1), 1000)[1]
            assert log_accept.max() <= 0
            chance = np.exp(log_accept)
            assert math.exp(shells.log_certificate) <= chance.mean() + 4 * chance.std() / math.sqrt(1000)
            if shells is not None and public.thresholds:
                assert shells.log_certificate >= public.log_acceptance


def test_least_share_falls_from_a_half() -> None:
    t = np.concatenate([[0.0], np.geomspace(1e-8, 1e3, 4001)])
    share = least_share(t)
    assert share[0] == 0.5
    assert np.all(np.diff(share) <= 1e-12)
    assert share[-1] == pytest.approx(1e-3, rel=2e-3)
