"""The Bayesian accountant: costs against integration, bounds against truth, the printed form against both."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize, special, stats

from discreet.privacy import (
    Approximation,
    BayesianAccountant,
    BayesianLoss,
    ObservedRun,
    Observer,
    PeopleCosts,
    PublishedBayesianAccountant,
    Sensitive,
    gaussian,
    poisson_gaussian,
    pure,
)
from discreet.privacy.bayesian_costs import (
    SubsampledGaussian,
    SubstitutedGaussian,
    left_term,
    normals_log_moments,
    right_term,
)
from discreet.privacy.bayesian_estimators import (
    betting,
    betting_total,
    clopper_pearson,
    empirical_bernstein,
    flat_prior_as_published,
    student_t_as_published,
    survival_band,
)
from discreet.privacy.bayesian_published import product_as_published
from discreet.privacy.divergences import renyi_normals
from discreet.privacy.observer import independent_pairs

Array = NDArray[np.float64]
RUNS = 2000


# --- costs -----------------------------------------------------------------------


def integral(log_integrand: Callable[[Array], Array], low: float, high: float) -> float:
    """log of an integral over a normal density, by adaptive quadrature."""
    grid = np.linspace(low, high, 4001)
    top = float(log_integrand(grid).max())
    at = float(grid[int(np.argmax(log_integrand(grid)))])
    value, _ = integrate.quad(
        lambda x: math.exp(float(log_integrand(np.array(x))) - top),
        low,
        high,
        points=[at, 0.0],
        epsabs=0,
        epsrel=1e-12,
        limit=500,
    )
    return top + math.log(value)


def log_mixture(x: Array, rate: float, d: float) -> Array:
    """log((1 - q) + q N(d, 1) / N(0, 1))."""
    return np.logaddexp(math.log1p(-rate), math.log(rate) + d * x - d * d / 2)


@pytest.mark.parametrize("rate", [0.01, 0.3])
@pytest.mark.parametrize("d", [0.05, 0.7, 2.0])
@pytest.mark.parametrize("order", [1, 2, 7, 20])
def test_terms_of_theorem_4_agree_with_integration(rate: float, d: float, order: int) -> None:
    def normal(x: Array) -> Array:
        return -(x**2) / 2 - math.log(2 * math.pi) / 2

    low, high = -40.0 - (order + 1) * d, 40.0 + (order + 1) * d
    left = integral(lambda x: normal(x) + (order + 1) * log_mixture(x, rate, d), low, high)
    assert left_term(order, rate, d) == pytest.approx(left, rel=1e-8, abs=1e-12)
    # The right term is the bound by convexity of 1/x; the divergence it bounds is below the left term.
    convex = integral(
        lambda x: normal(x) + order * np.logaddexp(math.log1p(-rate), math.log(rate) + d * d / 2 - d * x),
        low - order * d,
        high,
    )
    assert right_term(order, rate, d) == pytest.approx(convex, rel=1e-8, abs=1e-12)
    back = integral(lambda x: normal(x) - order * log_mixture(x, rate, d), low, high)
    assert back <= right_term(order, rate, d) + 1e-12
    assert back <= left_term(order, rate, d) + 1e-12
    # Real orders, by another quadrature.
    near = SubsampledGaussian(rate, 1.0).log_moments([order, order + 0.5], [d])
    half = integral(lambda x: normal(x) + (order + 1.5) * log_mixture(x, rate, d), low, high + d)
    assert near[:, 0] == pytest.approx([left, half], rel=1e-8, abs=1e-12)


def test_costs_grow_with_distance_and_order() -> None:
    table = SubsampledGaussian(0.02, 0.8).log_moments(np.geomspace(0.1, 60, 30), np.geomspace(1e-4, 1, 60))
    assert (np.diff(table, axis=0) >= -1e-15).all()
    assert (np.diff(table, axis=1) >= 0).all()


def test_substitution_is_bounded_by_both_of_its_bounds_and_above_the_truth() -> None:
    rate, a, b = 0.2, np.array([0.6, 0.3]), np.array([-0.1, 0.5])
    d = float(np.linalg.norm(a - b))
    x = np.stack(np.meshgrid(*[np.linspace(-9, 9, 401)] * 2), axis=-1)
    log_q, log_p = (np.logaddexp(math.log1p(-rate), math.log(rate) + x @ c - c @ c / 2) for c in (b, a))
    base = -(x**2).sum(axis=-1) / 2 - math.log(2 * math.pi)
    cost = SubstitutedGaussian(rate, 1.0, 1.0)
    for order in (1.0, 3.0):
        true = special.logsumexp(base + (order + 1) * log_p - order * log_q) + 2 * math.log(18 / 400)
        (stated,) = cost.log_moments([order], [d])[0]
        assert true <= stated
        assert stated <= math.log1p(rate * math.expm1(order * (order + 1) * d * d / 2)) + 1e-12
    unsampled = SubstitutedGaussian(1.0, 2.0, 1.0).log_moments([2.0], [1.0])
    assert unsampled[0, 0] == pytest.approx(2 * 3 / 2 / 4)


def test_normals_of_unequal_variances_add_over_coordinates() -> None:
    shift, sd_p, sd_q = np.array([0.3, 0.1]), np.array([1.0, 0.5]), np.array([1.2, 0.45])
    found = normals_log_moments([0.5, 3.0], shift, sd_p, sd_q)
    for row, order in enumerate((0.5, 3.0)):
        there, back = (
            sum(order * float(renyi_normals(order + 1, *three)) for three in zip(shift, p, q, strict=True))
            for p, q in ((sd_p, sd_q), (sd_q, sd_p))
        )
        assert found[row] == pytest.approx(max(there, back), rel=1e-10)
    assert normals_log_moments([10.0], [0.0], [2.0], [1.0])[0] == math.inf
    # Nearly equal: the logarithms cancel, and the result is that of the shift.
    close = normals_log_moments([4.0], [1e-7], [1.0], [1.0 + 1e-12])
    assert close[0] == pytest.approx(4 * 5e-14 / 2, rel=0.02)


# --- errata 8 and 9 ----------------------------------------------------------------


def test_errata_08_the_printed_product_is_below_the_truth_and_hoelder_is_not() -> None:
    moments, weights = 10 * np.array([0.0, 0.05]), np.array([0.99, 0.01])
    printed = product_as_published(moments, weights, 100)
    true = float(special.logsumexp(100 * moments, b=weights))
    assert printed == pytest.approx(0.647, abs=1e-3)
    assert true == pytest.approx(45.4, abs=0.05)
    # Ours on such people: distances 0 or 1, Gaussian noise, so that lambda D = 0.5 at lambda = 10.
    sigma = math.sqrt(10 * 11 / 2 / 0.5)
    run = ObservedRun(1.0, sigma, 1.0, 100, gaussian(sigma / 10, neighbours="add_remove"))
    ours = BayesianAccountant(pairs=64, definition="tail", orders=[10.0], blocks=1)
    ours.begin(run)
    rng = np.random.default_rng(0)
    for _ in range(100):
        ours.observe((rng.random(64) < 0.01).astype(float))
    delta = 1e-5
    reported = 10 * ours.epsilon(delta).reveal() + math.log(delta - 1e-6)
    assert true <= reported <= true + 2
    assert printed < true - 40


def test_errata_08_the_printed_epsilon_is_exceeded_by_more_people_than_its_delta() -> None:
    # A person in a hundred moves every step by 1; the others by nothing. Loss N(T/2s^2, T/s^2) or 0.
    steps, sigma, delta = 100, 5.0, 1e-3
    shares, moved = np.array([0.99, 0.01]), np.array([0.0, 1.0])
    printed = min(
        (product_as_published(lam * (lam + 1) / 2 / sigma**2 * moved, shares, steps) - math.log(delta)) / lam
        for lam in np.geomspace(0.1, 64, 200)
    )
    mean = steps / sigma**2 / 2
    exceeded = 0.01 * stats.norm.sf(printed, mean, math.sqrt(2 * mean))
    assert exceeded > 3 * delta


@dataclass(frozen=True)
class Distances:
    """Distances clipped at 1, with the survival function that they were drawn from."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Array]
    survival: Callable[[Array], Array]

    def mean(self, exponent: float, scale: float = 1.0) -> float:
        """E exp(exponent (scale d)^2), by quadrature over the survival function."""

        def slope(u: float) -> float:
            return 2 * exponent * u * math.exp(exponent * u * u) * float(self.survival(np.array(u / scale)))

        points = [0.05 * scale, 1e-3 * scale, 0.5 * scale]
        return 1 + integrate.quad(slope, 0.0, scale, points=points, epsrel=1e-10, limit=400)[0]


def test_errata_08_the_printed_right_term_ruins_a_subsampled_run() -> None:
    rate, steps, delta = 64 / 60_000, 10_000, 1e-5
    cost = poisson_gaussian(rate, 1.0, steps, neighbours="add_remove")
    found: dict[bool, float] = {}
    for right in (True, False):
        accountant = PublishedBayesianAccountant(pairs=8, orders=(4, 8, 12, 16, 32), right_term=right)
        accountant.begin(ObservedRun(rate, 1.0, 1.0, 20, cost))
        for _ in range(20):
            accountant.observe(np.ones(8))
        # 20 steps stand for 10,000: with equal distances the costs add, and delta is charged once.
        short = accountant.result().reveal().epsilon(delta * 1e-6)
        found[right] = short
        orders = np.array([4, 8, 12, 16, 32])
        term = np.array(
            [max(left_term(int(o), rate, 1.0), right * right_term(int(o), rate, 1.0)) for o in orders]
        )
        assert short == pytest.approx(min((20 * term - math.log(delta * 1e-6)) / orders), rel=0.01)
        found[right] = min((steps * term - math.log(delta)) / orders)
    assert found[True] > 18
    assert found[False] < 1.2


def clipped(name: str, law: Any) -> Distances:
    """A law with its 99th percentile as the unit, clipped there."""
    cut = float(law.ppf(0.99))
    return Distances(
        name,
        lambda rng, size: np.minimum(law.ppf(rng.random(size)) / cut, 1.0),
        lambda u: np.where(u < 1, law.sf(u * cut), 0.0),
    )


def clipped_weibull(shape: float) -> Callable[[np.random.Generator, tuple[int, int]], Array]:
    """Weibull distances clipped at their 99th percentile, which becomes 1."""
    return clipped("weibull", stats.weibull_min(shape)).draw


WEIBULL = clipped("weibull", stats.weibull_min(0.5))
DISTRIBUTIONS = [
    WEIBULL,
    clipped("pareto", stats.lomax(1.1)),
    clipped("lognormal", stats.lognorm(2.0)),
    Distances("beta", lambda rng, size: rng.beta(2.0, 5.0, size), stats.beta(2.0, 5.0).sf),
    Distances(
        "two-point",
        lambda rng, size: np.where(rng.random(size) < 0.02, 1.0, 0.05),
        lambda u: np.where(u < 0.05, 1.0, np.where(u < 1, 0.02, 0.0)),
    ),
]
EXPONENT = 12.0  # T lambda (lambda + 1) / (2 sigma^2): what a person at the largest distance costs


@pytest.mark.parametrize("law", DISTRIBUTIONS, ids=lambda law: law.name)
def test_ours_covers(law: Distances) -> None:
    # 2,000 runs of 100 samples. At most gamma may fail; an estimator that failed twice as often as
    # it may would be found with probability above 0.999 (binomial tails at 2,000 runs).
    values = np.exp(EXPONENT * law.draw(np.random.default_rng(7), (RUNS, 100)) ** 2)
    known, true = math.exp(EXPONENT), law.mean(EXPONENT)
    for gamma in (0.05, 0.01):
        failed = int((betting(values, known, gamma) < true).sum())
        assert failed <= gamma * RUNS
        streamed = known * betting_total((values / known).sum(axis=1), 100, gamma)
        assert (streamed < true).sum() <= gamma * RUNS
    # Negative control: the sample mean fails about every second time.
    assert (values.mean(axis=1) < true).mean() > 0.3


def test_empirical_bernstein_covers_as_well() -> None:
    draws = np.random.default_rng(8)
    for law in DISTRIBUTIONS[:2]:
        values = np.exp(EXPONENT * law.draw(draws, (300, 400)) ** 2)
        true = law.mean(EXPONENT)
        failed = sum(empirical_bernstein(one, math.exp(EXPONENT), 0.05) < true for one in values)
        assert failed <= 15


def test_errata_09_student_t_fails_more_often_than_it_says_and_ours_does_not() -> None:
    # Weibull(0.5) distances, clipped so that the truth is known; m = 100 as in the erratum.
    gamma, m = 1e-5, 100
    values = np.exp(EXPONENT * WEIBULL.draw(np.random.default_rng(1), (RUNS, m)) ** 2)
    true = WEIBULL.mean(EXPONENT)
    student = np.array([student_t_as_published(one, gamma) for one in values])
    failures = float((student < true).mean())
    print(f"Student's t below the truth in {100 * failures:.1f} % of {RUNS} runs; it says {100 * gamma:g} %")
    assert failures > 0.02
    assert not (betting(values, math.exp(EXPONENT), gamma) < true).any()


@pytest.mark.parametrize("law", DISTRIBUTIONS, ids=lambda law: law.name)
def test_the_band_covers_every_order_at_once(law: Distances) -> None:
    # 2,000 runs of steps that drift; every order must be covered together. The band is a union
    # over nodes and bets, so that failures are far fewer than gamma allows.
    nodes, exponents = np.geomspace(1e-3, 1.0, 96), np.geomspace(0.1, 200, 12)
    steps, m, rng = 8, 20, np.random.default_rng(3)
    counts, truths = np.zeros((RUNS, nodes.size)), np.zeros(exponents.size)
    for t in range(steps):
        scale = 1.0 - 0.08 * t
        places = np.searchsorted(nodes, scale * law.draw(rng, (RUNS, m)))
        np.add.at(counts, (np.arange(RUNS)[:, None], places), 1)
        truths += [math.exp(-e) * law.mean(e, scale) / steps for e in exponents.tolist()]
    h = np.exp(np.multiply.outer(exponents, nodes**2 - 1))
    for gamma in (0.05, 0.01):
        band = survival_band(counts, gamma)
        bound = h[:, 0] + band[:, :-1] @ np.diff(h, axis=1).T
        assert (bound < truths).any(axis=1).sum() <= gamma * RUNS
    # Negative control: the empirical survival function in the place of the band.
    above = 1 - np.cumsum(counts, axis=1) / (steps * m)
    plain = h[:, 0] + above[:, :-1] @ np.diff(h, axis=1).T
    assert (plain < truths).any(axis=1).mean() > 0.15


def test_the_own_batch_of_a_step_may_be_looked_at() -> None:
    # The records that are looked at move the next step's distances, as a gradient does: large
    # distances in a batch make those of the next step smaller.
    people, steps, m, rate, gamma = 60, 12, 10, 0.5, 0.05
    rng = np.random.default_rng(11)
    base = np.sort(np.concatenate([np.full(54, 0.1), np.full(6, 1.0)]))
    nodes = np.geomspace(1e-3, 1.0, 40)
    h = np.exp(4 * (nodes**2 - 1))
    counts, sorted_first = np.zeros((RUNS, nodes.size)), np.zeros((RUNS, nodes.size))
    truths, scale = np.zeros(RUNS), np.ones(RUNS)
    for _ in range(steps):
        distances = np.minimum(base * scale[:, None], 1.0)
        truths += np.exp(4 * (distances**2 - 1)).mean(axis=1) / steps
        keys = np.where(rng.random((RUNS, people)) < rate, rng.random((RUNS, people)), np.inf)
        order = np.argsort(keys, axis=1)[:, :m]
        missing = np.isinf(np.take_along_axis(keys, order, axis=1))
        for table, chosen in ((counts, order), (sorted_first, np.tile(np.arange(m), (RUNS, 1)))):
            seen = np.where(missing, 1.0, np.take_along_axis(distances, chosen, axis=1))
            np.add.at(table, (np.arange(RUNS)[:, None], np.searchsorted(nodes, seen)), 1)
        seen = np.where(missing, 1.0, np.take_along_axis(distances, order, axis=1))
        scale = np.where(seen.mean(axis=1) > 0.2, 0.3, 1.0)
    failures = [
        int(((h[0] + survival_band(table, gamma)[:, :-1] @ np.diff(h)) < truths).sum())
        for table in (counts, sorted_first)
    ]
    assert failures[0] <= gamma * RUNS
    assert failures[1] > 0.5 * RUNS  # negative control: the first records of a batch that is sorted


def test_pairs_of_one_batch_are_independent_draws() -> None:
    # A table of four and batches of four: all 12 x 12 outcomes of two pairs are equally likely.
    rng, runs = np.random.default_rng(4), 20_000
    found = np.zeros((12, 12))
    for _ in range(runs):
        batch = rng.permutation(4)
        first, second = independent_pairs(4, 2, size=4, generator=rng)
        codes = 3 * batch[first] + (batch[second] - batch[first]) % 4 - 1
        found[codes[0], codes[1]] += 1
    assert stats.chisquare(found.ravel()).pvalue > 1e-4
    # Pairs without room are left out, and nothing else is.
    small = [independent_pairs(3, 8, size=1000, generator=rng) for _ in range(50)]
    assert all(first.size == second.size >= 1 for first, second in small)
    assert all(max(first.max(), second.max()) < 3 and (first != second).all() for first, second in small)
    assert independent_pairs(1, 5, size=9, generator=rng)[0].size == 0


def test_disjoint_pairs_would_not_be() -> None:
    # Records 0-1 and 2-3 are far apart, all others near. The capital of a bet against large distances
    # may not grow on average, or Markov's inequality bounds nothing: with two disjoint pairs it does.
    rng, runs, bet = np.random.default_rng(5), 4000, 0.9
    capital = {"disjoint": 0.0, "independent": 0.0}
    for _ in range(runs):
        batch = rng.permutation(4)
        ours = independent_pairs(4, 2, size=4, generator=rng)
        for name, (first, second) in {"disjoint": ([0, 2], [1, 3]), "independent": ours}.items():
            far = (batch[first] // 2 == batch[second] // 2).sum()
            capital[name] += (1 - bet) ** far / (1 - bet / 3) ** 2 / runs
    error = 4 / math.sqrt(runs)  # four standard errors: the capital is at most 2.05, its deviation below 1
    assert abs(capital["independent"] - 1) < error
    assert capital["disjoint"] > 1.3 > 1 + error


def test_binary_data() -> None:
    # Paper Y, Section IV-C: 100 zeros; 0.01 is output at gamma = 0.99^101 under the flat prior.
    assert flat_prior_as_published(0, 100, 0.99**101) == pytest.approx(0.01, rel=1e-6)
    assert clopper_pearson(0, 100, 0.99**100) == pytest.approx(0.01, rel=1e-6)
    assert clopper_pearson(5, 5, 0.1) == 1.0
    for p in (0.003, 0.02, 0.4):
        k = np.arange(101)
        chance = stats.binom.pmf(k, 100, p)
        below = np.array([clopper_pearson(int(i), 100, 0.05) < p for i in k])
        assert chance[below].sum() <= 0.05
    # The flat prior's quantile is no confidence bound.
    worst = max(stats.binom.cdf(i, 100, 1.0001 * flat_prior_as_published(i, 100, 0.05)) for i in range(3))
    assert worst > 0.05


# --- the accountant ------------------------------------------------------------------


def watched(
    accountant: BayesianAccountant | PublishedBayesianAccountant,
    run: ObservedRun,
    draw: Callable[[int], Array],
) -> None:
    accountant.begin(run)
    for t in range(run.steps):
        accountant.observe(draw(t))


def test_worst_case_is_the_moments_accountant() -> None:
    import dp_accounting

    rate, sigma, steps, delta = 0.01, 1.1, 500, 1e-5
    orders = list(range(2, 40))
    moments = dp_accounting.rdp.RdpAccountant(orders)
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))
    moments.compose(dp_accounting.SelfComposedDpEvent(event, steps))
    theirs = np.array(moments._rdp)
    ours = steps * np.array([left_term(a - 1, rate, 1 / sigma) / (a - 1) for a in orders])
    assert ours == pytest.approx(theirs, rel=1e-6)
    cost = poisson_gaussian(rate, sigma, steps, neighbours="add_remove")
    run = ObservedRun(rate, sigma, 1.0, steps, cost)
    expected = min(theirs + math.log(1 / delta) / (np.array(orders) - 1))
    for blocks in (1, 16):
        accountant = BayesianAccountant(
            pairs=8, gamma=1e-14, definition="tail", blocks=blocks, orders=[a - 1 for a in orders]
        )
        watched(accountant, run, lambda _: np.ones(8))
        assert accountant.epsilon(delta).reveal() == pytest.approx(expected, rel=1e-6)
    average = BayesianAccountant(pairs=8, gamma=1e-14, orders=[a - 1 for a in orders])
    watched(average, run, lambda _: np.ones(8))
    assert average.epsilon(delta).reveal() == pytest.approx(moments.get_epsilon(delta), rel=1e-6)


PEOPLE = np.array([0.02, 0.1, 0.3, 1.0])
SHARES = np.array([0.5, 0.3, 0.19, 0.01])


def true_epsilon(mean: Array, delta: float, definition: str) -> float:
    """The exact Bayesian epsilon where the loss of person i is N(mean_i, 2 mean_i), by root finding."""
    sd = np.sqrt(2 * mean)

    def excess(epsilon: float) -> float:
        tail = stats.norm.sf(epsilon, mean, sd)
        if (
            definition == "average"
        ):  # Gaussian hockey stick: P(L > e) - e^e Q(L > e), L ~ N(-mean, 2 mean) under Q
            tail = tail - np.exp(epsilon + stats.norm.logsf(epsilon, -mean, sd))
        return float(SHARES @ tail) - delta

    return float(optimize.brentq(excess, 1e-9, 200.0))


@pytest.mark.parametrize("definition", ["average", "tail"])
@pytest.mark.parametrize("adaptive", [False, True])
def test_true_loss_is_at_most_the_reported_one(definition: str, adaptive: bool) -> None:
    steps, sigma, delta = 60, 10.0, 1e-3
    run = ObservedRun(1.0, sigma, 1.0, steps, gaussian(sigma / math.sqrt(steps), neighbours="add_remove"))
    accountant = BayesianAccountant(
        pairs=256, gamma=1e-4, definition="average" if definition == "average" else "tail", adaptive=adaptive
    )
    rng = np.random.default_rng(5)
    watched(accountant, run, lambda _: rng.choice(PEOPLE, 256, p=SHARES))
    true = true_epsilon(steps * PEOPLE**2 / (2 * sigma**2), delta, accountant.definition)
    reported = accountant.epsilon(delta).reveal()
    everybody = run.guarantee.epsilon(delta)
    name = f"{accountant.definition}{', adaptive' if adaptive else ''}"
    print(f"{name}: true {true:.4f}, reported {reported:.4f}, ratio {reported / true:.2f}")
    print(f"everybody: {everybody:.4f}")
    assert true <= reported <= 4 * true
    assert accountant.delta(reported).reveal() <= delta * (1 + 1e-6)
    assert accountant.definition == "tail" or reported < everybody


def test_true_loss_of_a_subsampled_run_by_convolution() -> None:
    # Losses of one step on a grid, convolved by FFT: the truth, with no formula of the accountant.
    steps, rate, sigma, delta = 50, 0.1, 1.0, 1e-4
    grid = np.linspace(-12, 14, 40_001)
    width, size = 1e-3, 2**17
    tails: list[Array] = []
    for d in PEOPLE:
        base = stats.norm.pdf(grid)
        p = (1 - rate) * base + rate * stats.norm.pdf(grid - d / sigma)
        loss = np.log(p / base)
        mass = p * (grid[1] - grid[0])
        places = np.round(loss / width).astype(int) % size
        whole = np.fft.irfft(np.fft.rfft(np.bincount(places, mass, size)) ** steps, size)
        value = width * ((np.arange(size) + size // 2) % size - size // 2)
        tails.append(np.array([whole[value >= e].sum() for e in np.arange(0, 6, 0.01)]))
    chance = SHARES @ np.array(tails)
    true = 0.01 * float(np.argmax(chance <= delta))
    cost = poisson_gaussian(rate, sigma, steps, neighbours="add_remove")
    accountant = BayesianAccountant(pairs=128, gamma=1e-5, definition="tail", blocks=4)
    rng = np.random.default_rng(6)
    watched(
        accountant, ObservedRun(rate, sigma, 1.0, steps, cost), lambda _: rng.choice(PEOPLE, 128, p=SHARES)
    )
    reported = accountant.epsilon(delta).reveal()
    print(f"subsampled: true {true:.2f}, reported {reported:.3f}, ratio {reported / true:.2f}")
    assert 0.5 < true <= reported <= 2 * true


def test_adaptive_composition_covers_a_run_that_learns_about_people() -> None:
    # First half: everybody moves each step. Second half: only those whom the outputs so far betray, where the
    # sum of their noise is above a threshold. Person by person, so with many people the fractions are exact.
    steps, first, second, threshold, delta = 8, 4.0, 5.0, 7.0, 2e-3
    betrayed = float(stats.norm.sf(threshold, first))
    run = ObservedRun(1.0, 1.0, second / math.sqrt(steps), 2 * steps, gaussian(1.0, neighbours="add_remove"))
    rng = np.random.default_rng(2)
    found: dict[bool, float] = {}
    for adaptive in (False, True):
        accountant = BayesianAccountant(
            pairs=20_000, gamma=1e-5, definition="tail", adaptive=adaptive, blocks=2
        )
        watched(
            accountant,
            run,
            lambda t: (
                np.full(20_000, first / math.sqrt(steps))
                if t < steps
                else np.where(rng.random(20_000) < betrayed, second / math.sqrt(steps), 0.0)
            ),
        )
        found[adaptive] = accountant.epsilon(delta).reveal()
    seen = rng.normal(first, 1.0, 2_000_000)
    loss = first * seen - first**2 / 2
    later = rng.normal(second**2 / 2, second, seen.size)
    loss += np.where(seen > threshold, later, 0.0)
    assert float((loss >= found[True]).mean()) <= delta
    assert found[True] > found[False]


def test_what_was_not_seen_counts_as_the_largest() -> None:
    cost = poisson_gaussian(0.05, 1.0, 20, neighbours="add_remove")
    run = ObservedRun(0.05, 1.0, 1.0, 20, cost)
    worst = BayesianAccountant(pairs=8)
    watched(worst, run, lambda _: np.ones(8))
    for careless in (lambda _: np.array([]), lambda _: np.full(8, np.nan), lambda _: np.ones(3)):
        other = BayesianAccountant(pairs=8)
        watched(other, run, careless)
        assert other.epsilon(1e-5).reveal() == worst.epsilon(1e-5).reveal()
    stopped = BayesianAccountant(pairs=8)
    stopped.begin(run)
    assert stopped.epsilon(1e-5).reveal() == worst.epsilon(1e-5).reveal()
    assert worst.epsilon(1e-6).reveal() == math.inf  # gamma alone is as large
    with pytest.raises(ValueError, match="declared 20 steps and took another"):
        worst.observe(np.ones(8))
    # A distance above the largest is no exception, which would be public, but an infinite answer.
    stopped.observe(np.array([1.2345]))
    assert stopped.epsilon(1e-5).reveal() == math.inf
    assert stopped.delta(5.0).reveal() == 1.0
    stopped.begin(run)
    assert stopped.epsilon(1e-5).reveal() < math.inf
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            leak(stopped)
    with pytest.raises(ValueError, match="has seen no run"):
        BayesianAccountant().epsilon(1e-5)


def test_moments_that_are_infinite_or_no_number_bound_nothing() -> None:
    cost = pure(1.0, neighbours="add_remove")
    for bad in (math.inf, math.nan):
        people = PeopleCosts(np.array([1.0, 2.0]), np.array([[0.1, bad], [0.1, bad]]), np.ones(2), True, cost)
        assert people.result(1e-3).reveal().epsilon == math.inf
    one = PeopleCosts(np.array([1.0, 2.0]), np.array([[0.1, 0.2], [0.1, math.nan]]), np.ones(2), True, cost)
    assert 0 < one.result(1e-3).reveal().epsilon < math.inf
    assert one.result(1e-3).reveal().order == 1.0
    some = PeopleCosts(np.array([1.0]), np.full((1, 50), 0.1), np.array([math.inf]), False, cost)
    assert some.result(1e-3).reveal().epsilon == math.inf


def test_memory_does_not_grow_with_steps() -> None:
    cost = poisson_gaussian(0.01, 1.0, 3000, neighbours="add_remove")
    accountant = BayesianAccountant(pairs=16)
    watched(accountant, ObservedRun(0.01, 1.0, 1.0, 3000, cost), lambda _: np.full(16, 0.3))
    sizes = {name: value.nbytes for name, value in vars(accountant).items() if isinstance(value, np.ndarray)}
    assert sum(sizes.values()) < 500_000
    assert not [name for name, value in vars(accountant).items() if isinstance(value, (list, dict))]


def test_a_bayesian_loss_is_no_guarantee() -> None:
    cost = poisson_gaussian(0.01, 1.0, 200, neighbours="add_remove")
    accountant = BayesianAccountant(pairs=64)
    watched(accountant, ObservedRun(0.01, 1.0, 1.0, 200, cost), lambda _: np.full(64, 0.1))
    hidden = accountant.result(1e-5)
    assert isinstance(hidden, Sensitive)
    assert isinstance(accountant, Observer)
    with pytest.raises(TypeError):
        cost + hidden  # pyright: ignore[reportOperatorIssue]
    loss = hidden.reveal()
    assert isinstance(loss, BayesianLoss)
    for wrong in (lambda: cost + loss, lambda: loss + cost, lambda: 2 * loss, lambda: loss + loss):
        with pytest.raises(TypeError, match="is not a guarantee and cannot be added"):
            wrong()
    text = str(loss)
    assert "protects a person drawn from the same distribution as the data" in text
    assert f"beside epsilon {cost.epsilon(1e-5):.4g} at delta 1e-05, which is guaranteed to everybody" in text
    assert text.count("% of the time") == 2
    assert {claim.standing.value for claim in loss.evidence} == {"proved", "checked", "assumed"}
    assert "add_remove neighbours (such a person is in the table, or is not)" in text
    assert "different questions" not in text
    replaced = replace(loss, guarantee=poisson_gaussian(0.01, 1.0, 200, neighbours="substitute"))
    assert "a person who is absent otherwise, the guarantee of one who is replaced otherwise" in str(replaced)
    assert "no more than the guarantee does" in str(replace(loss, epsilon=99.0))


def test_the_published_accountant_is_an_approximation() -> None:
    cost = poisson_gaussian(0.01, 1.0, 50, neighbours="add_remove")
    rng = np.random.default_rng(0)
    draw = clipped_weibull(0.5)
    published, ours = PublishedBayesianAccountant(gamma=1e-6), BayesianAccountant(definition="tail")
    for accountant in (published, ours):
        watched(accountant, ObservedRun(0.01, 1.0, 1.0, 50, cost), lambda _: draw(rng, (1, 64))[0])
    found = published.result().reveal()
    assert isinstance(found, Approximation)
    # 64 samples a step, t quantiles at 1e-6: pessimistic step by step, and not valid. Ours pools the steps.
    print(f"as published {found.epsilon(1e-5):.3f}, ours {ours.epsilon(1e-5).reveal():.3f}")
    assert 0 < found.epsilon(1e-5) < math.inf
    with pytest.raises(TypeError, match="cannot be added"):
        pure(1.0, neighbours="add_remove") + found  # pyright: ignore[reportOperatorIssue]
