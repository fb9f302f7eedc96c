"""Perturbed statistics: the lattice, the price, and intervals that cover as they say."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from discreet import Budget, mechanisms, models, privacy
from discreet.mechanisms._lattice_noise import LatticeNoise, Noise, NoisySum
from discreet.mechanisms._noise_aware import NOISE_AWARE
from discreet.mechanisms.perturbed_statistics import Reading
from discreet.privacy import BudgetError, Standing
from discreet.privacy.divergences import hockey_stick_laplace, hockey_stick_normals
from discreet.samplers import Randomness

BETA = models.BetaBernoulli(prior=(6, 12))
NORMAL = models.NormalKnownVariance((0, 1), 1, (-6, 6))
FAMILIES = [
    BETA,
    models.DirichletCategorical((6, 12, 4)),
    models.GammaPoisson((20, 10), largest=20),
    NORMAL,
    models.NormalInverseGamma((0, 1, 5, 5), (-1, 1)),
]
BITS = {"x": np.arange(100.0) % 2}


# --- the price -------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(Noise))
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_the_noise_uses_the_budget_up(family: models.ConjugateFamily, kind: Noise) -> None:
    mechanism = mechanisms.PerturbedStatistics(family, kind, Reading.NAIVE)
    plan = mechanism.plan(n=100, budget=Budget(0.5, 1e-6))
    assert 0.499 < plan.guarantee.epsilon(1e-6) <= 0.5
    assert (
        plan.guarantee
        == mechanisms.PerturbedStatistics(family, kind, Reading.NAIVE, draws=5)
        .plan(n=100, budget=Budget(0.5, 1e-6))
        .guarantee
    ), "draws are free"
    release = plan.release(BITS, key=1)
    assert all(len(values) == 1000 and np.isfinite(values).all() for values in release.draws.values())


def test_gaussian_noise_costs_what_the_gaussian_mechanism_costs() -> None:
    multiplier = (
        mechanisms.PerturbedStatistics(BETA).plan(n=100, budget=Budget(1.0, 1e-6)).parameters["multiplier"]
    )
    alone = privacy.calibrate(
        lambda s: privacy.gaussian(s, neighbours="substitute"), Budget(1.0, 1e-6), (0.1, 100)
    ).value
    assert multiplier == pytest.approx(alone, rel=1e-5)
    target = mechanisms.PerturbedStatistics(BETA).plan(n=100, renyi=(2.0, 0.1))
    assert target.parameters["multiplier"] == pytest.approx(math.sqrt(10), rel=1e-7)  # lambda / (2 sigma^2)
    assert target.guarantee.renyi(2.0) <= 0.1


def test_laplace_noise_allows_a_pure_budget_and_gaussian_does_not() -> None:
    plan = mechanisms.PerturbedStatistics(BETA, Noise.LAPLACE).plan(n=100, budget=Budget(1.0))
    assert plan.parameters["multiplier"] == pytest.approx(1.0, rel=2e-6)
    assert plan.guarantee.epsilon(0) <= 1.0
    with pytest.raises(BudgetError, match="laplace"):
        mechanisms.PerturbedStatistics(BETA).plan(n=100, budget=Budget(1.0))


# --- the lattice -------------------------------------------------------------------


def lattice_profile(kind: Noise, scale: int, shift: int, eps: float) -> float:
    """The hockey-stick divergence of discrete noise on the integers, by its sum."""
    k = np.arange(-40 * scale, 40 * scale + shift + 1.0)

    def log_mass(x: np.ndarray) -> np.ndarray:
        log = -0.5 * (x / scale) ** 2 if kind is Noise.GAUSSIAN else -np.abs(x) / scale
        return log - special.logsumexp(log[np.abs(x) <= 40 * scale])

    return float(np.maximum(np.exp(log_mass(k - shift)) - np.exp(eps + log_mass(k)), 0).sum())


@pytest.mark.parametrize(("scale", "shift"), [(4, 1), (16, 5), (16, 40)])
def test_two_steps_more_of_continuous_noise_dominate_the_lattice(scale: int, shift: int) -> None:
    # Lemma 1; without the two steps it would be false for Laplace between grid points.
    for eps in np.linspace(0, 4, 81):
        gaussian = lattice_profile(Noise.GAUSSIAN, scale, shift, eps)
        assert gaussian <= hockey_stick_normals(eps, (shift + 2) / scale, 1, 1) + 1e-12
        laplace = lattice_profile(Noise.LAPLACE, scale, shift, eps)
        assert laplace <= hockey_stick_laplace(eps, shift + 2, scale) + 1e-12
    gaps = [
        lattice_profile(Noise.LAPLACE, 4, 1, e) - float(hockey_stick_laplace(e, 1, 4)) for e in (0.1, 0.2)
    ]
    assert max(gaps) > 1e-3, "negative control"


@pytest.mark.parametrize("kind", list(Noise))
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_sensitivity_replay(family: models.ConjugateFamily, kind: Noise) -> None:
    # Same noise, neighbouring data: the measured sums move by no more than was billed.
    noise = LatticeNoise(kind, 3.0, 50, family.movable)
    low, high = family.measured_range
    rng = np.random.default_rng(1)
    values = {"BetaBernoulli": [0, 1], "DirichletCategorical": [0, 1, 2], "GammaPoisson": [0, 7, 20]}.get(
        type(family).__name__, [-1, -0.9999999, 0.1234567, 1]
    )
    for x, y in itertools.permutations(values, 2):
        common = rng.choice(values, 49)
        sums = [
            noise.add(family.measured(family.validate({"x": [*common, z]})), low, high, Randomness(5)).values
            for z in (x, y)
        ]
        moved = np.abs(sums[0] - sums[1]) / (3.0 * (high - low))
        assert np.all(moved <= noise.loss)
        assert np.count_nonzero(moved) <= family.movable
        assert noise.loss < (1 + 1e-7) / 3


@pytest.mark.parametrize("kind", list(Noise))
def test_opendp_draws_the_noise(kind: Noise) -> None:
    # Operating system's entropy: each assertion fails once in a million runs.
    noise = LatticeNoise(kind, 2.5, 1, 1)
    ends = np.array([0.0]), np.array([1.0])
    drawn = np.array([noise.add(np.array([[1.0]]), *ends, Randomness()).values[0] for _ in range(600)])
    law = stats.norm(1, 2.5) if kind is Noise.GAUSSIAN else stats.laplace(1, 2.5)
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-6
    assert stats.kstest(drawn, stats.norm(1.8, 2.5).cdf).pvalue < 1e-3, "negative control"
    steps = drawn / 2.0 ** (np.floor(np.log2(2.5)) - noise.bits)
    assert np.array_equal(steps, np.rint(steps)), "on the lattice"
    assert noise.evidence(Randomness()).standing is Standing.PROVED
    assert noise.evidence(Randomness(1)).standing is Standing.ASSUMED


def test_opendp_is_left_as_it_was_found() -> None:
    from opendp.mod import assert_features, disable_features

    disable_features("contrib")
    mechanisms.PerturbedStatistics(BETA).plan(n=100, budget=Budget(1.0, 1e-6)).release(BITS)
    with pytest.raises(Exception, match="contrib"):
        assert_features("contrib")


def test_large_offsets_do_not_overflow_the_lattice() -> None:
    family = models.NormalKnownVariance((1e9, 1), 1, (1e9, 1e9 + 1))
    noise = LatticeNoise(Noise.GAUSSIAN, 1e-3, 1000, 1)
    low, high = family.measured_range
    total = noise.add(np.full((1000, 1), 1e9 + 0.5), low, high, Randomness(1)).values[0]
    assert abs(total - 1000 * (1e9 + 0.5)) < 1


# --- the posterior -------------------------------------------------------------------


def test_beta_posterior_is_the_mixture_over_the_hidden_count() -> None:
    noisy = NoisySum(Noise.LAPLACE, 30, np.array([14.0]), np.array([6.0]))
    draws = NOISE_AWARE[models.BetaBernoulli].draw(BETA, noisy, np.random.default_rng(1), 40_000)[
        "probability"
    ]
    k = np.arange(31)
    weights = stats.betabinom(30, 6, 12).pmf(k) * stats.laplace(0, 6).pdf(14 - k)
    weights /= weights.sum()
    grid = np.linspace(0, 1, 2001)
    cdf = weights @ np.array([stats.beta(6 + c, 42 - c).cdf(grid) for c in k])
    assert stats.kstest(draws, lambda x: np.interp(x, grid, cdf)).pvalue > 1e-6
    assert stats.kstest(draws, stats.beta(20, 28).cdf).pvalue < 1e-6, "negative control: the naive posterior"


@pytest.mark.parametrize("kind", list(Noise))
def test_dirichlet_posterior_is_the_mixture_over_all_tables(kind: Noise) -> None:
    # Messages against enumeration of all tables; means within 6 standard errors.
    family = models.DirichletCategorical((2.0, 1.0, 3.0))
    noisy = NoisySum(kind, 8, np.array([6.0, -1.5, 0.5]), np.array([2.0, 1.0, 1.5]))
    draws = NOISE_AWARE[type(family)].draw(family, noisy, np.random.default_rng(2), 40_000)["probabilities"]
    tables = np.array([(i, j, 8 - i - j) for i in range(9) for j in range(9 - i)], float)
    a = np.array(family.prior)
    logs = (special.gammaln(a + tables) - special.gammaln(tables + 1)).sum(axis=1)
    logs += sum(noisy.log_likelihood(k, tables[:, k]) for k in range(3))
    weights = special.softmax(logs)
    means = (a + tables) / (a.sum() + 8)
    truth, error = weights @ means, draws.std(axis=0) / 200
    assert np.all(np.abs(draws.mean(axis=0) - truth) < 6 * error)
    assert np.any(np.abs(draws.mean(axis=0) - means.mean(axis=0)) > 6 * error), "negative control"


def test_dirichlet_posterior_survives_sums_that_contradict_the_total() -> None:
    family = models.DirichletCategorical((1.0, 1.0, 1.0, 1.0))
    noisy = NoisySum(Noise.GAUSSIAN, 1000, np.array([9e3, 8e3, -5e3, 1.0]), np.full(4, 5.0))
    draws = NOISE_AWARE[type(family)].draw(family, noisy, np.random.default_rng(3), 100)
    assert all(np.isfinite(values).all() for values in draws.values())


@pytest.mark.parametrize("total", [-40.0, 3.0, 500.0])
def test_normal_posterior_under_laplace_noise_against_quadrature(total: float) -> None:
    family = models.NormalKnownVariance((0.3, 2), 1.5, (-6, 6))
    noisy = NoisySum(Noise.LAPLACE, 20, np.array([total]), np.array([7.0]))
    draws = NOISE_AWARE[type(family)].draw(family, noisy, np.random.default_rng(4), 40_000)["mean"]
    grid = np.linspace(-12, 14, 6001)
    gain = 20 / 1.5
    e = np.linspace(-1, 1, 4001) * 40 * math.sqrt(gain)  # the sum around its mean
    logs = -0.5 * (grid - 0.3) ** 2 / 2
    noise = np.array(
        [special.logsumexp(-0.5 * e**2 / gain - np.abs(total - gain * t - e) / 7.0) for t in grid]
    )
    cdf = np.cumsum(np.exp(logs + noise - (logs + noise).max()))
    assert stats.kstest(draws, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-6


def covered(plan: mechanisms.Plan, name: str, data_sets: int, draw: Any) -> float:
    """The share of true parameters between the 10th and the 190th of 199 draws: 0.9 if all is right."""
    hits = 0
    for i in range(data_sets):
        truth, x = draw(np.random.default_rng([7, i]))
        draws = np.sort(plan.release({"x": x}, key=i).draws[name])
        hits += bool(draws[9] < truth < draws[189])
    return hits / data_sets


def beta_data(rng: np.random.Generator) -> tuple[float, np.ndarray]:
    p = rng.beta(6, 12)
    return p, (rng.random(500) < p).astype(float)


def normal_data(rng: np.random.Generator) -> tuple[float, np.ndarray]:
    m = rng.normal()
    return m, rng.normal(m, 1, 500)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(Noise))
@pytest.mark.parametrize(
    ("family", "name", "data"), [(BETA, "probability", beta_data), (NORMAL, "mean", normal_data)]
)
def test_noise_aware_intervals_cover_and_naive_ones_do_not(
    kind: Noise, family: Any, name: str, data: Any
) -> None:
    # True parameters come from the prior, so that a right posterior covers exactly 0.9. Over 1,000 data sets
    # the standard error is 0.0095: [0.88, 0.92] fails one seed in 28; this seed is fixed.
    cover = {}
    for posterior in Reading:
        mechanism = mechanisms.PerturbedStatistics(family, kind, posterior, draws=199)
        cover[posterior] = covered(mechanism.plan(n=500, budget=Budget(0.1, 1e-6)), name, 1000, data)
    assert 0.88 <= cover[Reading.NOISE_AWARE] <= 0.92
    assert cover[Reading.NAIVE] < 0.75


# --- refusals --------------------------------------------------------------------------


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(
        ValueError, match="BetaBernoulli, DirichletCategorical, GammaPoisson, NormalKnownVariance"
    ):
        mechanisms.PerturbedStatistics(FAMILIES[4])
    with pytest.raises(ValueError, match="at most 10000"):
        mechanisms.PerturbedStatistics(FAMILIES[1]).plan(n=20_000, budget=Budget(1.0, 1e-6))
    with pytest.raises(ValueError, match="neither"):
        mechanisms.PerturbedStatistics(BETA).plan(n=100)
    with pytest.raises(ValueError, match="uniform"):
        mechanisms.PerturbedStatistics(BETA, "uniform")  # pyright: ignore[reportArgumentType]
