"""One test per line of ERRATA that is accounting: the printed claim fails it, ours passes.

B, R, Y, M, N are the papers of docs/errata.md.
"""

import math

import mpmath as mp
import numpy as np
import oracles
import pytest
from scipy import optimize, special

from discreet.privacy import (
    Budget,
    BudgetError,
    barker,
    beta_bernoulli,
    bounded_range,
    calibrate,
    classical_epsilon,
    divergences,
    gaussian,
    gdp_central_limit,
    inexact,
    poisson_gaussian,
    pure,
    strongly_convex_posterior,
    zcdp,
)
from discreet.privacy.barker import BarkerBatch, BarkerBatchPublished, BarkerBatchRenyi
from discreet.privacy.neighbours import Neighbours

# --- 2: B, Theorem 1 has a floor ---------------------------------------------------

LARGEST_DENSITY = 1 / math.sqrt(2 * math.pi * 0.01)  # M = 3.989


def theorem_one(b: float, density: float = LARGEST_DENSITY, weight: float = 1.0) -> float:
    return 2 * weight * density**b / b


def test_errata_02_no_beta_reaches_epsilon_one() -> None:
    assert pytest.approx(3.989, abs=5e-4) == LARGEST_DENSITY
    turning = 1 / math.log(LARGEST_DENSITY)
    with pytest.raises(BudgetError, match=r"smallest epsilon is 7\.52") as refused:
        calibrate(lambda b: pure(theorem_one(b), neighbours="substitute"), Budget(1.0), (1e-3, turning))
    assert refused.value.smallest_epsilon == pytest.approx(7.52, abs=5e-3)
    assert refused.value.smallest_epsilon == pytest.approx(2 * math.e * math.log(LARGEST_DENSITY), rel=1e-9)
    assert refused.value.at == pytest.approx(turning)
    # Past the turning point it only rises again.
    grid = np.geomspace(1e-3, 50, 20_000)
    assert min(theorem_one(b) for b in grid) == pytest.approx(refused.value.smallest_epsilon, rel=1e-6)


def test_errata_02_a_weight_reaches_it() -> None:
    b = 1 / math.log(LARGEST_DENSITY)
    found = calibrate(
        lambda w: pure(theorem_one(b, weight=w), neighbours="substitute"), Budget(1.0), (1e-6, 1.0)
    )
    assert found.guarantee.epsilon(0) <= 1
    assert found.value == pytest.approx(1 / 7.52, rel=1e-3)


@pytest.mark.parametrize(
    ("asked", "spent"), [(1.0, 7.65), (0.2, 8.31), (0.5, 7.56), (2.0, 8.48), (5.0, 11.48)]
)
def test_errata_02_what_the_authors_code_spends(asked: float, spent: float) -> None:
    """Calibrated with the prior variance 9 in place of its lower bound 0.01."""
    wrong = 1 / math.sqrt(2 * math.pi * 9)
    b = optimize.brentq(lambda x: theorem_one(x, wrong) - asked, 1e-6, 50)
    real = pure(theorem_one(b), neighbours="substitute")
    assert real.epsilon(0) == pytest.approx(spent, abs=6e-3)
    assert not real.fits(Budget(asked))


# --- 4 and S6: bounded range -------------------------------------------------------


def test_errata_04_one_draw_is_four_times_better_in_zcdp() -> None:
    epsilon = 0.3
    draw, generic = bounded_range(epsilon, neighbours="substitute"), pure(epsilon, neighbours="substitute")
    quarter, whole = (
        zcdp(epsilon**2 / 8, neighbours="substitute"),
        zcdp(epsilon**2 / 2, neighbours="substitute"),
    )
    for order in (1.01, 1.5, 2.0, 5.0, 30.0):
        assert draw.renyi(order) <= quarter.renyi(order) * (1 + 1e-12)
        assert generic.renyi(order) <= whole.renyi(order) * (1 + 1e-12)
    # Pure differential privacy really is worse: the quarter does not hold for it.
    assert generic.renyi(1.5) > 3.9 * quarter.renyi(1.5)
    assert draw.epsilon(0) == generic.epsilon(0)


def test_errata_04_add_remove_halves_the_range() -> None:
    delta = 0.5  # B's Delta: the log density moves by at most this
    assert bounded_range(2 * delta, neighbours="substitute").epsilon(0) == 2 * bounded_range(
        delta, neighbours="add_remove"
    ).epsilon(0)


@pytest.mark.parametrize("draws", [10, 100])
def test_errata_s6_draws_compose_as_bounded_ranges(draws: int) -> None:
    epsilon, delta = 0.2, 1e-6
    ours = bounded_range(epsilon, neighbours="substitute").repeat(draws).epsilon(delta)
    by_zcdp = zcdp(draws * epsilon**2 / 8, neighbours="substitute").epsilon(delta)
    by_pure = pure(epsilon, neighbours="substitute").repeat(draws).epsilon(delta)
    assert ours <= by_zcdp * (1 + 1e-6)
    assert by_zcdp < by_pure
    # Never below what one fixed two-point pair inside the class costs (its composition is a binomial).
    t = epsilon / 2
    up = math.expm1(epsilon - t) / (math.exp(epsilon - t) - math.exp(-t))
    k = np.arange(draws + 1)
    losses = k * t + (draws - k) * (t - epsilon)
    chance = special.comb(draws, k) * up**k * (1 - up) ** (draws - k)
    assert float(chance @ np.maximum(-np.expm1(ours - losses), 0)) <= delta


# --- 5: the sampler is part of the statement -----------------------------------------


def test_errata_05_an_inexact_sampler_enters_delta() -> None:
    gamma = 1e-7
    drawn = pure(1.0, neighbours="substitute") + inexact(gamma, neighbours="substitute")
    assert drawn.epsilon(0) == math.inf
    assert drawn.delta(1.0) >= (1 + math.e) * gamma * (1 - 1e-9)
    assert drawn.delta(1.0) == pytest.approx((1 + math.e) * gamma, rel=1e-6)
    assert drawn.renyi(2.0) == math.inf


# --- 6: R, probit and cloglog ---------------------------------------------------------


def cut_moment(log_p, log_q, order: float, precision: float, reach: float) -> float:
    """log of E_Q[(P/Q)^order] over |w| < reach, for one record under N(0, 1/precision), unnormalised."""
    w = np.linspace(-reach, reach, 400_001)
    logs = order * log_p(w) + (1 - order) * log_q(w) - precision * w**2 / 2
    return float(special.logsumexp(logs) + math.log(w[1] - w[0]))


def probit(w: np.ndarray) -> np.ndarray:
    return special.log_ndtr(w)


def cloglog(w: np.ndarray) -> np.ndarray:
    return np.log(-np.expm1(-np.exp(w)))


def cloglog_zero(w: np.ndarray) -> np.ndarray:
    return -np.exp(w)


def test_errata_06_probit_is_infinite_past_its_asymptote() -> None:
    precision = 2.0  # n beta; the asymptote is at order 1 + 2
    for order, grows in ((2.5, False), (2.9, False), (3.1, True), (5.0, True)):
        near, far, farther = (
            cut_moment(probit, lambda w: probit(-w), order, precision, reach) for reach in (20.0, 40.0, 80.0)
        )
        assert (far > near + 10) == grows
        assert (farther > far + 10) == grows
    # At 40 digits as well, not only in double precision.
    with mp.workdps(40):

        def integrand(w: mp.mpf) -> mp.mpf:
            return oracles.tail(-w) ** 5 * oracles.tail(w) ** -4 * mp.exp(-precision * w**2 / 2)

        assert integrand(mp.mpf(60)) > integrand(mp.mpf(30)) > 1e100
    # Theorem 16 promises a finite number: 2 c^2 B^2 order / (n beta) with c = B = 1.
    assert 2 * 5.0 / precision < 10


@pytest.mark.parametrize("order", [1.01, 1.5, 3.0])
def test_errata_06_cloglog_is_infinite_at_every_order(order: float) -> None:
    near, far = (
        cut_moment(lambda w: np.where(w > 3, 0.0, cloglog(np.minimum(w, 3))), cloglog_zero, order, 2.0, reach)
        for reach in (8.0, 16.0)
    )
    assert far > near + 1e4 * (order - 1)


def test_errata_06_logistic_keeps_the_promise() -> None:
    precision = 2.0

    def logistic(w: np.ndarray) -> np.ndarray:
        return special.log_expit(w)

    ours = strongly_convex_posterior(1.0, precision, neighbours="substitute")  # the potentials differ by w
    for order in (1.5, 3.1, 5.0, 20.0):
        top = cut_moment(logistic, lambda w: logistic(-w), order, precision, 80.0)
        both = [cut_moment(f, f, 1.0, precision, 80.0) for f in (logistic, lambda w: logistic(-w))]
        divergence = (top - order * both[0] + (order - 1) * both[1]) / (order - 1)
        assert divergence <= ours.renyi(order)


# --- 7: R, printing slips ---------------------------------------------------------------


def test_errata_07_the_logarithms_are_missing_from_the_beta_log_partition() -> None:
    """R writes the natural parameters as (a, a + b)."""

    def right(eta: np.ndarray) -> float:
        rest = eta[1] - eta[0]
        return (
            float(special.gammaln(eta[0]) + special.gammaln(rest) - special.gammaln(eta[1]))
            if rest > 0 < eta[0]
            else math.inf
        )

    def printed(eta: np.ndarray) -> float:
        rest = eta[1] - eta[0]
        return (
            float(special.gamma(eta[0]) + special.gamma(rest) - special.gamma(eta[1]))
            if rest > 0 < eta[0]
            else math.inf
        )

    # n = 100 records: counts 0..99 beside the one that moves; the four boundary pairs.
    boundary = [
        ((7, 118), (6, 118)),
        ((6, 118), (7, 118)),
        ((106, 118), (105, 118)),
        ((105, 118), (106, 118)),
    ]

    def worst(order: float, partition) -> float:
        return max(float(divergences.renyi_exponential_family(order, partition, p, q)) for p, q in boundary)

    for order, value in ((1.5, 0.1391), (2.0, 0.1913), (4.0, 0.4448), (6.9, 1.3926)):
        assert worst(order, right) == pytest.approx(value, abs=6e-5)
        assert beta_bernoulli(6, 12, 100).renyi(order) == pytest.approx(value, abs=6e-5)
        with np.errstate(over="ignore", invalid="ignore"):
            assert worst(order, printed) != pytest.approx(value, rel=0.5)
    assert worst(7.1, right) == math.inf


# --- 11: M, Theorem 2 ---------------------------------------------------------------------


def test_errata_11_the_printed_barker_bound_is_valid_and_far_from_tight() -> None:
    batch = 1000
    exact, tight, printed = (
        kind(Neighbours.SUBSTITUTE, batch, 2.0, 1.0)
        for kind in (BarkerBatch, BarkerBatchRenyi, BarkerBatchPublished)
    )
    orders = np.array([1.1, 1.5, 2.0, 4.0, 16.0, 64.0])
    assert np.all(exact.renyi(orders) <= tight.renyi(orders) * (1 + 1e-12))
    assert np.all(tight.renyi(orders) < printed.renyi(orders))
    # The printed bound keeps ln 2 / (2 (order - 1)), even without any data.
    no_data = BarkerBatchPublished(Neighbours.SUBSTITUTE, 10**9, 2.0, 1.0).renyi(orders)
    np.testing.assert_allclose(no_data, math.log(2) / (2 * (orders - 1)), rtol=1e-4)
    assert np.all(BarkerBatchRenyi(Neighbours.SUBSTITUTE, 10**9, 2.0, 1.0).renyi(orders) < 1e-6)


def test_errata_11_at_a_batch_of_50() -> None:
    two = np.array([2.0])
    assert BarkerBatchRenyi(Neighbours.SUBSTITUTE, 50, 2.0, 1.0).renyi(two)[0] == pytest.approx(
        0.0985, abs=6e-5
    )
    assert BarkerBatchPublished(Neighbours.SUBSTITUTE, 50, 2.0, 1.0).renyi(two)[0] == pytest.approx(
        0.608, abs=6e-4
    )
    # Batches, not only variances: 20,000 random pairs, and none reaches the tight bound.
    rng = np.random.default_rng(11)
    first = np.clip(rng.normal(rng.uniform(-1, 1, (20_000, 1)), rng.uniform(0, 1, (20_000, 1))), -1, 1)
    second = first.copy()
    second[:, 0] = -np.sign(first[:, 0])
    shift = (first[:, 0] - second[:, 0]) / math.sqrt(50)
    p, q = 2 - first.var(1), 2 - second.var(1)
    value = np.log(q / p) / 2 + np.log(q / (2 * q - p)) / 2 + shift**2 / (2 * q - p)
    assert 0.03 < value.max() <= 0.0804


def test_errata_11_in_a_whole_chain() -> None:
    chain = (1000, 100_000, 5000)
    printed = barker(*chain, bound="as_published").epsilon(1e-5)
    tight = barker(*chain, bound="tight")
    assert printed == pytest.approx(4.94, abs=6e-3)
    assert classical_epsilon(tight, 1e-5) == pytest.approx(1.22, abs=6e-3)
    assert tight.epsilon(1e-5) <= 0.961


# --- 12: M, Proposition 2 -------------------------------------------------------------------


@pytest.mark.parametrize("worst", [0.5, 0.7, 1.0])
def test_errata_12_the_exponent_is_misplaced(worst: float) -> None:
    """The printed (e^(eps - 1))^j is smaller than (e^eps - 1)^j from eps = 0.459 on, and larger below."""
    from discreet.privacy import sampled_without_replacement

    right = oracles.without_replacement(8, 0.1, lambda j: oracles.renyi_pure(j, worst), mp.mpf(worst))
    printed = oracles.without_replacement(
        8, 0.1, lambda j: oracles.renyi_pure(j, worst), mp.mpf(worst), "printed"
    )
    ours = sampled_without_replacement(pure(worst, neighbours="substitute"), 0.1).renyi(8)
    assert ours == pytest.approx(float(right), rel=1e-8)
    assert float(printed) < 0.97 * float(right)


def test_errata_12_without_data_the_printed_form_still_charges() -> None:
    """A mechanism that ignores its input: the right term vanishes, the printed one is e^(-j)."""
    right = oracles.without_replacement(4, 0.1, lambda _: mp.mpf(0), mp.mpf(0))
    printed = oracles.without_replacement(4, 0.1, lambda _: mp.mpf(0), mp.mpf(0), "printed")
    assert right == 0
    assert printed > 1e-6


# --- 13 to 15: N -------------------------------------------------------------------------------


def test_errata_13_the_noise_scale_is_inverted() -> None:
    """Langevin noise sqrt(eta) against eta n C / |B| times the noise multiplier."""
    eta, batch, size, clip = 5e-6, 256, 60_000, 1.5
    right = batch / (math.sqrt(eta) * size * clip)
    printed = math.sqrt(eta) * batch / (size * clip)
    assert right == pytest.approx(1.2721, abs=5e-5)
    assert eta * size * clip / batch * right == pytest.approx(math.sqrt(eta))
    assert eta * size * clip / batch * printed != pytest.approx(math.sqrt(eta), rel=0.5)
    steps = 3515
    assert poisson_gaussian(batch / size, right, steps, neighbours="add_remove").epsilon(
        1e-5
    ) == pytest.approx(0.894, abs=6e-4)
    # Theorem 3's exponent n^2 eta C^2 / |B|^2 is 1 / sigma^2.
    assert size**2 * eta * clip**2 / batch**2 == pytest.approx(right**-2)


@pytest.mark.parametrize(("sigma", "gdp"), [(1.2721, 0.861), (1.3, 0.834)])
def test_errata_14_the_central_limit_is_below_the_truth(sigma: float, gdp: float) -> None:
    limit = gdp_central_limit(256 / 60000, sigma, 3515)
    assert limit.epsilon(1e-5) == pytest.approx(gdp, abs=6e-4)
    # The rounded-down losses of the naive convolution are a lower bound of the truth, and already above it.
    above = oracles.poisson_above(256 / 60000, sigma, "remove")
    low, _ = oracles.NaivePLD(above, 2e-6, 1.5, 2**21, 3515).epsilons(1e-5)
    assert (
        limit.epsilon(1e-5)
        < low
        <= poisson_gaussian(256 / 60000, sigma, 3515, neighbours="add_remove").epsilon(1e-5)
    )
    assert "not a guarantee" in str(limit)


def test_errata_15_the_relation_changes_the_number() -> None:
    run = {n: poisson_gaussian(256 / 60000, 1.3, 3515, neighbours=n) for n in ("add_remove", "substitute")}
    assert run["add_remove"].epsilon(1e-5) == pytest.approx(0.864, abs=6e-4)
    assert run["substitute"].epsilon(1e-5) == pytest.approx(1.555, abs=1e-3)
    with pytest.raises(ValueError, match="add_remove"):
        _ = run["add_remove"] + run["substitute"]
    with pytest.raises(ValueError, match="one relation"):
        run["add_remove"].fits(Budget(1.0, 1e-5, neighbours="substitute"))  # pyright: ignore[reportArgumentType]


# --- 18: R, the Gaussian baseline -----------------------------------------------------------


@pytest.mark.parametrize("order", [1.5, 2.0, 15.0])
def test_errata_18_gaussian_noise_costs_half_of_what_is_printed(order: float) -> None:
    sigma, delta = 3.0, 1.0
    lowest, highest = -12 * sigma * order, 12 * sigma * order
    moment = mp.quad(
        lambda x: mp.npdf(x, delta, sigma) ** order * mp.npdf(x, 0, sigma) ** (1 - order),
        [lowest, 0, order, highest],
    )
    true = float(mp.log(moment)) / (order - 1)
    printed = order * delta**2 / sigma**2
    ours = gaussian(sigma / delta, neighbours="substitute").renyi(order)
    assert true == pytest.approx(printed / 2, rel=1e-9)
    assert ours == pytest.approx(true, rel=1e-12)


# --- sharper than the papers ----------------------------------------------------------------------


def test_errata_s1_the_exact_profile_is_33_times_cheaper() -> None:
    exact = barker(1000, 100_000, 5000).epsilon(1e-5)
    printed = barker(1000, 100_000, 5000, bound="as_published").epsilon(1e-5)
    assert printed / exact == pytest.approx(33, rel=0.02)


@pytest.mark.parametrize(("epsilon", "gain"), [(1.0, 1.31), (0.2, 1.50), (5.0, 1.10)])
def test_errata_s2_more_weight_than_minami(epsilon: float, gain: float) -> None:
    delta, convexity = 1e-5, 1.0
    # Minami et al. 2016, Theorem 7: 2 w sqrt((1 + 2 log(1/delta)) / m) <= epsilon, for row norms at most 1.
    minami = epsilon / 2 * math.sqrt(convexity / (1 + 2 * math.log(1 / delta)))
    ours = calibrate(
        lambda w: strongly_convex_posterior(2 * w, convexity, neighbours="substitute"),
        Budget(epsilon, delta),
        (1e-6, 1e3),
    )
    assert ours.value / minami == pytest.approx(gain, abs=6e-3)
    # By the definition of Gaussian differential privacy, with mpmath.
    truth = oracles.hockey_stick_normals(epsilon, 2 * ours.value, 1, 1)
    assert delta * (1 - 1e-4) < truth <= delta


def test_errata_s2_is_the_exact_curve_of_theorem_16() -> None:
    c, b, n_beta = 1.0, 1.0, 40.0
    ours = strongly_convex_posterior(2 * c * b, n_beta, neighbours="substitute")
    for order in (1.5, 4.0, 64.0):
        assert ours.renyi(order) == pytest.approx(2 * c**2 * b**2 * order / n_beta, rel=1e-12)
    assert ours.epsilon(1e-5) == pytest.approx(
        gaussian(math.sqrt(n_beta) / 2, neighbours="substitute").epsilon(1e-5)
    )
    assert ours.epsilon(1e-5) < classical_epsilon(ours, 1e-5)


@pytest.mark.parametrize(
    ("delta", "exact", "classical", "improved"),
    [(1e-3, 1.353, 2.240, 1.680), (1e-5, 2.236, 3.138, 2.615), (1e-6, 2.648, 3.565, 3.051)],
)
def test_errata_s3_conjugate_posteriors_have_an_exact_profile(
    delta: float, exact: float, classical: float, improved: float
) -> None:
    ours = beta_bernoulli(6, 12, 100)
    assert ours.epsilon(delta) == pytest.approx(exact, abs=6e-4)
    assert ours.by_route(delta)["sum of Renyi divergences"] == pytest.approx(improved, abs=6e-4)
    assert classical_epsilon(ours, delta) == pytest.approx(classical, abs=6e-4)
