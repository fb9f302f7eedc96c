"""Row shells, proximal chain and the cap rule.

Statistical tests have fixed seeds. A family of comparisons is rejected at RATE by Bonferroni, so with fresh
seeds each such test would fail about once in 1 / RATE runs; the negative controls show that it is not
blind. The 122 comparisons with NUTS at 4 standard errors would fail once in 130 runs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from discreet.models import BetaBernoulli, LogisticRegression
from discreet.models.losses import BetaDivergence, Gibbs
from discreet.privacy import Standing
from discreet.samplers._logistic import LogisticCurves, LogisticPotential, mean_curvature, remainder
from discreet.samplers._potential import Potential
from discreet.samplers._proximal import ProximalChain, ProximalPlan, plan_proximal
from discreet.samplers._public_bounds import Setting, public_shells
from discreet.samplers._shells import RowShells
from discreet.samplers.exact import ExactRegression, Schedule
from discreet.samplers.randomness import Randomness

from .posteriors import CASES, MOMENTS, Case

RATE = 1e-3
SMALL = [case for case in CASES if case.d <= 2]


def potential_of(case: Case) -> Potential:
    return LogisticPotential(case.signed(), case.precision, case.weight)


def setting_of(case: Case) -> Setting:
    return Setting(case.n, case.d, case.precision, case.weight, 1.0)


def accepted(shells: RowShells, generator: np.random.Generator, draws: int) -> np.ndarray:
    """That many accepted points."""
    found: list[np.ndarray] = []
    while sum(map(len, found)) < draws:
        points, log_accept = shells.propose(generator, 2000)
        assert log_accept.max() <= 0
        found.append(points[-generator.standard_exponential(2000) < log_accept])
    return np.concatenate(found)[:draws]


def uniform_rows(n: int, d: int) -> np.ndarray:
    """Rows of norm 1 with outcomes of a moderate model, signed."""
    source = np.random.default_rng([n, d])
    x = source.standard_normal((n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    chance = 1 / (1 + np.exp(-x @ (3 * source.standard_normal(d))))
    return x * np.where(source.random(n) < chance, 1.0, -1.0)[:, None]


# --- the lemmas -----------------------------------------------------------------------


@pytest.mark.parametrize("t", [0.0, 0.3, 2.0, 9.0, 40.0, 600.0])
def test_lemma_remainder_and_mean_curvature_against_mpmath(t: float) -> None:
    import mpmath

    mpmath.mp.dps = 400
    p = np.array([float(mpmath.mpf(1) / (1 + mpmath.exp(t)))])
    for u in (-900.0, -40.0, -3.0, -1e-2, -1.1e-3, -9e-4, -1e-6, 1e-9, 9e-4, 1e-2, 1.0, 60.0, 1e4):
        f = lambda x: mpmath.log(1 + mpmath.exp(-x))  # noqa: E731
        s = mpmath.mpf(t)
        exact = f(s + u) - f(s) + mpmath.mpf(u) / (1 + mpmath.exp(s))
        got = float(remainder(p, np.array([u]))[0])
        assert got == pytest.approx(float(exact), rel=1e-9, abs=4e-16 * float(p[0]) * abs(u) + 1e-300)
        if t < 40:
            curvature = float(2 * exact / mpmath.mpf(u) ** 2)
            assert float(mean_curvature(p, np.array([u]))[0]) == pytest.approx(curvature, rel=3e-11)


@pytest.mark.parametrize("t", [0.0, 0.5, 3.0, 12.0])
def test_lemma_mean_curvature_is_unimodal(t: float) -> None:
    p = np.array([1 / (1 + math.exp(t))])
    right = mean_curvature(p, np.linspace(0, 60, 4001))
    assert np.all(np.diff(right) <= 1e-14)
    left = mean_curvature(p, -np.linspace(0, 60, 4001))
    top = int(left.argmax())
    assert np.all(np.diff(left[: top + 1]) >= -1e-13)
    assert np.all(np.diff(left[top:]) <= 1e-13)


# --- exactness -------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_log_acceptance_is_never_positive(case: Case) -> None:
    shells = RowShells(potential_of(case))
    _, log_accept = shells.propose(np.random.default_rng(case.n), 1500)
    assert log_accept.max() <= 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_draws_match_nuts(case: Case) -> None:
    """Means and variances within 4 standard errors of both."""
    draws = accepted(RowShells(potential_of(case)), np.random.default_rng(case.d), 4000)
    with np.load(MOMENTS) as stored:
        nuts = {
            key: stored[f"{case.name}/{key}"]
            for key in ("mean", "variance", "size", "size_squares", "spread")
        }
    squares = (draws - draws.mean(0)) ** 2
    error = np.sqrt(draws.var(0) / len(draws) + nuts["variance"] / nuts["size"])
    assert np.all(np.abs(draws.mean(0) - nuts["mean"]) <= 4 * error)
    error = np.sqrt(squares.var(0) / len(draws) + nuts["spread"] ** 2 / nuts["size_squares"])
    assert np.all(np.abs(squares.mean(0) - nuts["variance"]) <= 4 * error)


def by_quadrature(case: Case, direction: np.ndarray) -> Any:
    """The distribution function of direction . w, d = 1 or 2."""
    potential = potential_of(case)
    mode, _ = potential.mode
    half = (
        9.5 / math.sqrt(case.precision)
        if case.d == 1
        else 9
        / math.sqrt(
            np.linalg.eigvalsh(potential.gram(np.full(case.n, 1e-9)))[0] + 0.03 * case.weight * case.n
        )
    )
    s = np.linspace(-half, half, 4001 if case.d == 1 else 121)
    if case.d == 1:
        points = (mode + s[:, None] * direction)[:, None, :]
    else:
        across = np.array([-direction[1], direction[0]])
        points = mode + s[:, None, None] * direction + s[None, :, None] * across
    u = np.log1p(np.exp(-points @ case.signed().T)).sum(-1) * case.weight + 0.5 * case.precision * (
        points**2
    ).sum(-1)
    density = np.exp(u.min() - u).sum(1)
    total = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return lambda x: np.interp(x - mode @ direction, s, total / total[-1])


def directions(d: int) -> list[np.ndarray]:
    if d == 1:
        return [np.ones(1)]
    return [np.array([math.cos(a), math.sin(a)]) for a in (0, math.pi / 2, math.pi / 4, -math.pi / 4)]


def smallest_p(case: Case, draws: np.ndarray) -> float:
    """Bonferroni over the directions."""
    ways = directions(case.d)
    return len(ways) * min(float(kstest(draws @ e, by_quadrature(case, e)).pvalue) for e in ways)


SEPARABLE = [Case(40, 1, 1.0, 0.04, separable=True), Case(5, 2, 1.0, 0.05, separable=True)]


def test_draws_pass_against_quadrature() -> None:
    cases = [*SMALL, *SEPARABLE]
    for case in cases:
        draws = accepted(RowShells(potential_of(case)), np.random.default_rng(10 + case.n), 8000)
        assert smallest_p(case, draws) > RATE / len(cases), case.name


@pytest.mark.parametrize("case", [SMALL[0], SMALL[2], SEPARABLE[0]], ids=lambda case: case.name)
def test_every_level_is_exact(case: Case) -> None:
    """Tiny first levels and no choice among them: most tries are forced past a row's interval."""
    shells = RowShells(
        potential_of(case), (0.3, 0.8, 1.3, 1.9, 2.5, 3.5, 5, 8, 13, 25, 60, 150), choose=False
    )
    draws = accepted(shells, np.random.default_rng(case.d), 3000)
    assert smallest_p(case, draws) > RATE / 3


def test_a_wrong_envelope_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Curvatures 40 % too large, acceptance cut off at 1: the same test rejects."""
    true = LogisticCurves.mean_curvature
    monkeypatch.setattr(LogisticCurves, "mean_curvature", lambda curves, u: 1.4 * true(curves, u))
    case = SMALL[0]
    shells = RowShells(potential_of(case))
    generator = np.random.default_rng(0)
    points, log_accept = shells.propose(generator, 16000)
    assert log_accept.max() > 0
    draws = points[-generator.standard_exponential(16000) < log_accept][:8000]
    assert smallest_p(case, draws) < RATE / 6


# --- acceptance --------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d", "least"), [(2784, 9, 0.34), (32561, 30, 0.09), (32561, 100, 1e-3)])
def test_acceptance_on_rows_at_their_bound(n: int, d: int, least: float) -> None:
    shells = RowShells(LogisticPotential(uniform_rows(n, d), 1e-3 * n, 1.0), (4.5, 6, 8, 16, 60))
    assert math.exp(shells.log_certificate) >= least
    _, log_accept = shells.propose(np.random.default_rng(d), 200)
    assert np.exp(log_accept).mean() >= least


@pytest.mark.parametrize("case", [CASES[5], CASES[9], CASES[4]], ids=lambda case: case.name)
def test_certificate_is_below_the_measured_acceptance(case: Case) -> None:
    shells = RowShells(potential_of(case))
    chance = np.exp(shells.propose(np.random.default_rng(3), 4000)[1])
    assert math.exp(shells.log_certificate) <= chance.mean() + 4 * chance.std() / math.sqrt(4000)


ONE_HOT = np.repeat(np.eye(6), 300, axis=0)


@pytest.mark.parametrize("rows", [uniform_rows(1800, 6), ONE_HOT, np.repeat(np.eye(6)[:1], 1800, axis=0)])
@pytest.mark.parametrize("precision", [0.5, 1.8, 100.0])
def test_public_bound_is_below_the_certificate(rows: np.ndarray, precision: float) -> None:
    public = public_shells(Setting(1800, 6, precision, 1.0, 1.0))
    plain = RowShells(LogisticPotential(rows, precision, 1.0), public.thresholds, plain=True)
    if public.thresholds:
        assert plain.log_certificate >= public.log_acceptance
    chance = np.exp(plain.propose(np.random.default_rng(0), 2000)[1])
    assert math.exp(public.log_acceptance) <= chance.mean() + 4 * chance.std() / math.sqrt(2000)


def test_public_bound_of_the_last_level_alone() -> None:
    """One dimension and a weak prior: no finite level helps, and (1 + kappa/d)^(-d/2) holds."""
    public = public_shells(Setting(50, 1, 0.05, 1.0, 1.0))
    assert public.thresholds == ()
    assert math.exp(public.log_acceptance) == pytest.approx(251**-0.5)


# --- the proximal chain --------------------------------------------------------------------


def test_proximal_chain_has_the_bias_it_promises() -> None:
    """With a normal target (no rows) the law after N steps is known: variance, distance, bound."""
    d, precision = 3, 2.0
    for h, steps in ((0.3, 3), (1.5, 4), (0.1, 12)):
        variance = 0.0
        for _ in range(steps):  # y has variance v + h/lam; w | y is N(y/(1+h), h/(lam(1+h)))
            variance = (variance + h / precision) / (1 + h) ** 2 + h / (precision * (1 + h))
        scale = math.sqrt(variance * precision)
        # TV of N(0, scale^2 I) and N(0, I), radial: one crossing.
        cross = 2 * d * math.log(scale) / (scale**2 - 1) * scale**2
        distance = chi2.cdf(cross / scale**2, d) - chi2.cdf(cross, d)
        assert 0 < distance <= math.sqrt(d / (2 * math.pi * h)) * (1 + h) ** (1 - steps)


def test_proximal_chain_is_planned_within_gamma() -> None:
    for case in CASES:
        for gamma in (1e-12, 1e-6):
            plan, setting = plan_proximal(setting_of(case), gamma), setting_of(case)
            far = math.sqrt(case.d / (2 * math.pi * plan.width)) * (1 + plan.width) ** (1 - plan.steps)
            load = setting.load * plan.width / (1 + plan.width)
            chance = math.exp(-0.005) * (1 + load / case.d) ** (-case.d / 2)
            assert far + plan.steps * (1 - chance) ** plan.tries <= gamma * (1 + 1e-5)


@pytest.mark.parametrize("case", [SMALL[0], SMALL[1], SMALL[2]], ids=lambda case: case.name)
def test_proximal_chain_passes_against_quadrature(case: Case) -> None:
    setting = setting_of(case)
    chain = ProximalChain(potential_of(case), setting, plan_proximal(setting, 1e-3))
    generator = np.random.default_rng(77)
    draws = chained(chain, generator, 800)
    assert len(draws) == 800
    assert smallest_p(case, draws) > RATE / 3


def test_proximal_chain_moments_in_five_dimensions() -> None:
    """Whitened means and variances against as many exact draws: two chi-squared tests, each at RATE / 2."""
    case = Case(150, 5, 0.2, 0.15)
    potential, setting = potential_of(case), setting_of(case)
    exact = accepted(RowShells(potential), np.random.default_rng(5), 60_000)
    chain = ProximalChain(potential, setting, plan_proximal(setting, 1e-4))
    generator = np.random.default_rng(6)
    draws = chained(chain, generator, 800)
    factor = np.linalg.cholesky(np.cov(exact.T))
    x, y = (np.linalg.solve(factor, (part - exact.mean(0)).T).T for part in (exact, draws))
    scale = math.sqrt(1 / len(x) + 1 / len(y))
    means = y.mean(0) / scale
    fourth = (x**4).mean(0)
    variances = ((y**2).mean(0) - (x**2).mean(0)) / np.sqrt(fourth - 1) / scale
    assert chi2.sf((means**2).sum(), case.d) > RATE / 2
    assert chi2.sf((variances**2).sum(), case.d) > RATE / 2


def test_proximal_chain_cut_short_is_caught() -> None:
    """Power: three narrow steps from the mode are rejected by the same test."""
    case = SMALL[0]
    chain = ProximalChain(potential_of(case), setting_of(case), ProximalPlan(5e-4, 3, 5000))
    generator = np.random.default_rng(1)
    draws = chained(chain, generator, 400)
    assert smallest_p(case, draws) < RATE / 3


# --- the sampler ----------------------------------------------------------------------------


def chained(chain: ProximalChain, generator: np.random.Generator, draws: int) -> np.ndarray:
    """Ends of that many chains."""
    ends = [chain.draw(generator, batch=8) for _ in range(draws)]
    return np.stack([end for end in ends if end is not None])


def model_of(case: Case) -> LogisticRegression:
    return LogisticRegression(features=case.d, prior_precision=case.precision)


def drawn(sampler: ExactRegression, case: Case, draws: int, seed: int = 1) -> Any:
    model = model_of(case)
    return sampler.sample(model, Gibbs(case.weight), model.validate(case.records()), Randomness(seed), draws)


@pytest.mark.parametrize(
    "sampler",
    [
        ExactRegression(),
        ExactRegression(gamma=1e-3, constant_time=False, tries=1),
        ExactRegression(gamma=0.0, constant_time=False),
        ExactRegression(constant_time=False),
    ],
    ids=["constant time", "one try, then the chain", "without end", "up to 1000 tries"],
)
def test_cap_rule_gives_the_posterior(sampler: ExactRegression) -> None:
    case = SMALL[0]
    draws = 500 if sampler.constant_time or sampler.tries == 1 else 4000
    sampled = drawn(sampler, case, draws)
    assert sampled.draws["w"].shape == (draws, 1)
    assert smallest_p(case, sampled.draws["w"]) > RATE / 4
    if sampler.tries == 1:
        assert sampled.diagnostics["fallbacks"].reveal() > 0


def test_constant_time_makes_all_tries() -> None:
    case, sampler = CASES[5], ExactRegression(gamma=1e-9, constant_time=True)
    schedule: Schedule = sampler.schedule(setting_of(case))
    assert schedule.tries is not None
    assert schedule.proximal is None
    assert (1 - math.exp(schedule.shells.log_acceptance)) ** schedule.tries <= 1e-9
    assert drawn(sampler, case, 3).diagnostics["tries"].reveal() == 3 * schedule.tries


def test_cap_rule_when_everything_runs_out() -> None:
    """No try accepted and no chain left: a public value, and still a draw of the right shape."""
    from discreet.samplers import exact

    class Never:
        size, log_certificate = 1, 0.0

        def propose(self, _: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
            return np.zeros((count, 1)), np.full(count, -np.inf)

    run = exact._Run(ExactRegression(), Never(), np.random.default_rng(0))  # pyright: ignore[reportArgumentType]
    assert run.tries_until(3, 7) == [None, None, None]
    assert run.all_tries(50) is None


def test_radius_keeps_draws_in_the_ball() -> None:
    case = SMALL[0]
    radius = float(np.linalg.norm(potential_of(case).mode[0]))
    draws = drawn(ExactRegression(gamma=0.0, constant_time=False, radius=radius), case, 2000).draws["w"]
    assert np.abs(draws).max() <= radius
    whole = by_quadrature(case, np.ones(1))
    low, high = whole(-radius), whole(radius)
    assert kstest(draws[:, 0], lambda x: (whole(x) - low) / (high - low)).pvalue > RATE


def test_zero_rows_cost_nothing() -> None:
    case = SMALL[2]
    rows = np.concatenate([case.signed(), np.zeros((30, 2))])
    one, two = (RowShells(LogisticPotential(z, case.precision, 1.0)) for z in (rows, case.signed()))
    assert one.log_certificate == pytest.approx(two.log_certificate)
    nothing = RowShells(LogisticPotential(np.zeros((4, 2)), 2.0, 1.0))
    draws = accepted(nothing, np.random.default_rng(0), 4000)
    assert kstest(draws[:, 0], norm(scale=math.sqrt(0.5)).cdf).pvalue > RATE


def test_evidence_is_proved_and_diagnostics_are_sensitive() -> None:
    for sampler in (
        ExactRegression(),
        ExactRegression(gamma=0.0, constant_time=False),
        ExactRegression(constant_time=False),
    ):
        assert sampler.evidence[0].standing is Standing.PROVED
        assert any("time" in claim.claim or "tries" in claim.claim for claim in sampler.evidence)
    sampled = drawn(ExactRegression(), SMALL[0], 2)
    assert not sampled.evidence
    for value in sampled.diagnostics.values():
        assert "sensitive" in repr(value)
        with pytest.raises(TypeError):
            float(value)


def test_what_it_refuses() -> None:
    sampler = ExactRegression()
    assert "CoupledChains" in str(sampler.refusal(LogisticRegression(features=2), BetaDivergence(1.5, 1.0)))
    assert "NUTS" in str(sampler.refusal(LogisticRegression(features=2001), Gibbs(1.0)))
    assert "logistic" in str(sampler.refusal(BetaBernoulli(), Gibbs(1.0)))
    with pytest.raises(ValueError, match="constant_time must need at most 200000 tries"):
        ExactRegression().schedule(Setting(7988, 784, 7.988, 1.0, 1.0))
    with pytest.raises(ValueError, match="double precision"):
        sampler.schedule(Setting(10**9, 3, 1e-6, 1.0, 1.0))
    with pytest.raises(ValueError, match="gamma above 0"):
        ExactRegression(gamma=0.0)
    with pytest.raises(ValueError, match="radius must come with gamma 0"):
        ExactRegression(radius=1.0)
