"""Every closed form against mpmath: high-precision tails, quadrature, enumeration."""

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import oracles
import pytest
from scipy import special

from discreet.privacy import (
    beta_bernoulli,
    bounded_range,
    dirichlet_categorical,
    divergences,
    gaussian,
    laplace,
    poisson_gaussian,
    pure,
)
from discreet.privacy.routes import ROUND_UP

ORDERS = [1.001, 1.1, 1.5, 2.0, 3.3, 10.0, 64.0, 200.0]


def relative(ours: float, truth: mp.mpf) -> float:
    return float((mp.mpf(float(ours)) - truth) / truth)


# --- normals --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eps", "shift", "sd_p", "sd_q"),
    [
        (0.0, 1.0, 1.0, 1.0),
        (0.7, 1.0, 1.5, 1.0),
        (0.3, 1.0, 1.0, 1.5),
        (0.2, 0.0, 2.0, 1.0),
        (0.1, 0.0, 1.0, 1.3),
        (3.0, 2.0, 1.2, 1.0),
    ],
)
def test_normals_by_quadrature(eps: float, shift: float, sd_p: float, sd_q: float) -> None:
    log_p, log_q = oracles.log_normal(shift, sd_p), oracles.log_normal(0, sd_q)
    truth = oracles.hockey_stick(log_p, log_q, eps, [-40, 40])
    assert float(oracles.hockey_stick_normals(eps, shift, sd_p, sd_q)) == pytest.approx(
        float(truth), rel=1e-12
    )
    ours = float(divergences.hockey_stick_normals(np.array([eps]), shift, sd_p, sd_q)[0])
    assert ours == pytest.approx(float(truth), rel=1e-12)


def normal_pairs() -> list[tuple[float, float, float, float]]:
    rng = np.random.default_rng(20240601)
    pairs = []
    for i in range(1200):
        shift, sd_p = 10 ** rng.uniform(-3, 1.3), 10 ** rng.uniform(-1, 1)
        sign = rng.choice([-1.0, 1.0])
        sd_q = [
            sd_p * 10 ** rng.uniform(-0.5, 0.5),
            sd_p * (1 + 1e-9 * sign),
            sd_p * (1 + 10 ** rng.uniform(-8, -1) * sign),
            sd_p,
            sd_p * (1 + 10 ** rng.uniform(-16, -9) * sign),
        ][i % 5]
        shift = 0.0 if i % 5 == 0 and i % 3 == 0 else shift
        eps = 0.0 if i % 10 == 0 else 10 ** rng.uniform(-4, 2)
        pairs.append((float(eps), float(shift), float(sd_p), float(sd_q)))
    return pairs


def test_normals_of_any_variances_far_into_the_tails() -> None:
    """Both orders, nearly equal variances, eps up to 100: accurate down to 1e-30, never negative."""
    worst = 0.0
    deep = 0
    for eps, shift, sd_p, sd_q in normal_pairs():
        for s, t in ((sd_p, sd_q), (sd_q, sd_p)):
            ours = float(divergences.hockey_stick_normals(np.array([eps]), shift, s, t)[0])
            truth = oracles.hockey_stick_normals(eps, shift, s, t)
            assert 0 <= ours <= 1
            if truth > 1e-30:
                # Two tails that differ by shift / sd, or by the difference of the sds, cancel that much.
                gap = max(shift / s, abs(s / t - 1), 1e-300)
                worst = max(worst, abs(relative(ours, truth)) * min(gap, 1.0))
                deep += truth < 1e-12
    assert deep > 50
    assert worst < 1e-12, worst


@pytest.mark.parametrize(
    ("shift", "sd_p", "sd_q", "eps"), [(1.0, 1.0, 1.0, 36.6), (1.0, 1.001, 1.0, 35.5), (5.0, 1.0, 1.0, 170.0)]
)
def test_normals_at_1e_300(shift: float, sd_p: float, sd_q: float, eps: float) -> None:
    ours = float(divergences.hockey_stick_normals(np.array([eps]), shift, sd_p, sd_q)[0])
    truth = oracles.hockey_stick_normals(eps, shift, sd_p, sd_q)
    assert 1e-307 < truth < 1e-200
    assert abs(relative(ours, truth)) < 1e-9
    past = divergences.hockey_stick_normals(np.array([2 * eps, 1e3, 1e300]), shift, sd_p, sd_q)
    assert np.all((past >= 0) & (past < 1e-200))


@pytest.mark.parametrize("exponent", range(0, 18, 2))
def test_a_gaussian_delta_is_never_below_the_truth(exponent: int) -> None:
    """Noise much larger than the sensitivity: the two tails cancel, and what is left must be rounded up."""
    for eps_over_mu in (0.0, 0.5, 3.0):
        mu = 10.0**-exponent
        truth = oracles.hockey_stick_normals(eps_over_mu * mu, mu, 1, 1)
        ours = gaussian(1 / mu, neighbours="substitute").delta(eps_over_mu * mu)
        assert ours >= truth * (1 - 1e-13)
        assert ours <= truth * (1 + 1e-4) + 1e-14


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("shift", "sd_p", "sd_q"),
    [(1.0, 1.0, 1.0), (0.3, 1.1, 1.0), (0.3, 1.0, 1.1), (0.0, 1.0, 1.01), (2.0, 0.5, 3.0)],
)
def test_renyi_normals(order: float, shift: float, sd_p: float, sd_q: float) -> None:
    ours = float(divergences.renyi_normals(order, shift, sd_p, sd_q))
    if order * sd_q**2 + (1 - order) * sd_p**2 <= 0:
        assert ours == math.inf
        return
    with mp.workdps(30):
        # Completing the square in closed form, at 30 digits ...
        o, d, s, t = (mp.mpf(v) for v in (order, shift, sd_p, sd_q))
        mixed = o * t**2 + (1 - o) * s**2
        closed = mp.log(t / s) + mp.log(t**2 / mixed) / (2 * (o - 1)) + o * d**2 / (2 * mixed)
    assert ours == pytest.approx(float(closed), rel=1e-8, abs=1e-13)


@pytest.mark.parametrize("order", [1.1, 2.0, 3.3])
@pytest.mark.parametrize(("shift", "sd_p", "sd_q"), [(1.0, 1.0, 1.0), (0.3, 1.1, 1.0), (0.3, 1.0, 1.1)])
def test_renyi_normals_by_quadrature(order: float, shift: float, sd_p: float, sd_q: float) -> None:
    truth = oracles.renyi_normals(order, shift, sd_p, sd_q)
    assert float(divergences.renyi_normals(order, shift, sd_p, sd_q)) == pytest.approx(float(truth), rel=1e-8)


def test_renyi_normals_is_infinite_at_and_past_its_asymptote() -> None:
    # 0.5625 o + 1.5625 (1 - o) vanishes at o = 1.5625, and all of these are exact in binary.
    past = divergences.renyi_normals(np.array([1.5625, 1.5626, 3.0, 1e6]), 0.5, 1.25, 0.75)
    assert past.tolist() == [math.inf] * 4
    assert np.isfinite(divergences.renyi_normals(1.5624, 0.5, 1.25, 0.75))


# --- Laplace and two points ------------------------------------------------------


@pytest.mark.parametrize("ratio", [1e-6, 0.1, 1.0, 5.0])
def test_laplace_by_quadrature(ratio: float) -> None:
    def log_laplace(mean: float) -> Callable[[mp.mpf], mp.mpf]:
        return lambda x: -abs(x - mean) - mp.log(2)

    for fraction in (0.0, 0.3, 0.9):
        eps = fraction * ratio
        ours = float(divergences.hockey_stick_laplace(np.array([eps]), ratio, 1.0)[0])
        # The event is x > (eps + ratio) / 2, between the two centres.
        with mp.workdps(40):
            cut = (mp.mpf(eps) + mp.mpf(ratio)) / 2
            truth = 1 - mp.exp(cut - mp.mpf(ratio)) / 2 - mp.exp(mp.mpf(eps) - cut) / 2
        assert ours == pytest.approx(float(truth), rel=1e-9)
        if ratio > 1e-3:
            densities = [log_laplace(ratio), log_laplace(0)]
            p, q = (
                mp.quad(lambda x, f=log_density: mp.exp(f(x)), [cut, ratio, 2 * ratio, 80])
                for log_density in densities
            )
            assert ours == pytest.approx(float(p - mp.exp(eps) * q), rel=1e-9)  # pyright: ignore[reportArgumentType]
    assert np.all(divergences.hockey_stick_laplace(np.array([ratio, 2 * ratio, 1e4]), ratio, 1.0) == 0)


SMALL_AND_LARGE = [1e-9, 1e-7, 1e-5, 1e-3, 0.1, 1.0, 5.0, 20.0, 30.0, 34.0, 35.0, 36.7, 40.0, 300.0, 800.0]


@pytest.mark.parametrize("epsilon", SMALL_AND_LARGE)
@pytest.mark.parametrize(
    ("make", "oracle"),
    [(pure, oracles.renyi_pure), (lambda e, **k: laplace(1 / e, **k), oracles.renyi_laplace)],
)
def test_the_renyi_divergence_of_pure_and_laplace_is_exact_and_never_below(
    epsilon: float, make: Callable, oracle: Callable
) -> None:
    for order in ORDERS:
        ours, truth = make(epsilon, neighbours="substitute").renyi(order), oracle(order, epsilon)
        assert ours >= float(truth) / ROUND_UP, f"order {order}"
        assert ours == pytest.approx(float(truth), rel=1e-8), f"order {order}"


@pytest.mark.parametrize(("p", "q"), [(0.7, 0.2), (0.3, 0.3), (1.0, 0.5), (0.0, 0.4), (1e-12, 1e-9)])
def test_two_point_laws_by_enumeration(p: float, q: float) -> None:
    for eps in (0.0, 0.1, 1.0, 5.0):
        truth = max(0, p - math.exp(eps) * q) + max(0, (1 - p) - math.exp(eps) * (1 - q))
        assert float(divergences.hockey_stick_two_point(np.array([eps]), p, q)[0]) == pytest.approx(
            truth, rel=1e-12
        )
    for order in ORDERS:
        with mp.workdps(40):
            o, a, b = mp.mpf(order), mp.mpf(p), mp.mpf(q)
            moment = sum(x**o * y ** (1 - o) for x, y in ((a, b), (1 - a, 1 - b)) if x > 0)
            truth = float(mp.log(moment) / (o - 1))
        ours = float(divergences.renyi_two_point(np.array([order]), p, q)[0])
        assert ours == pytest.approx(truth, rel=1e-8, abs=1e-11)


def test_two_point_laws_without_absolute_continuity() -> None:
    assert divergences.renyi_two_point(np.array([1.5, 20.0]), 0.5, 0.0).tolist() == [math.inf, math.inf]
    assert divergences.renyi_two_point(np.array([1.5, 20.0]), 0.5, 1.0).tolist() == [math.inf, math.inf]


# --- Betas and exponential families ----------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "w"),
    [(6, 12, 1), (12, 6, 1), (0.5, 0.5, 1), (6, 111, 1), (55, 60, 1), (6, 12, 0.1), (1e-2, 3, 1)],
)
def test_betas_against_mpmath(a: float, b: float, w: float) -> None:
    for eps in (0.0, 0.1, 1.0, 3.0, 8.0):
        ours = float(divergences.hockey_stick_betas(np.array([eps]), a, b, w)[0])
        truth = float(oracles.hockey_stick_betas(eps, a, b, w))
        assert ours == pytest.approx(truth, rel=1e-9, abs=1e-15)
    for order in (1.01, 1.5, 2.0, 4.0):
        truth = oracles.renyi_betas(order, a, b, w)
        ours = float(divergences.renyi_betas(order, a, b, w))
        assert ours == pytest.approx(float(truth), rel=1e-8) or (ours == math.inf and truth == mp.inf)


def test_beta_hockey_stick_by_quadrature() -> None:
    def log_beta(a: float, b: float) -> Callable[[mp.mpf], mp.mpf]:
        return lambda t: (a - 1) * mp.log(t) + (b - 1) * mp.log(1 - t) - mp.log(mp.beta(a, b))

    truth = oracles.hockey_stick(log_beta(7, 12), log_beta(6, 13), 0.4, [1e-9, 1 - 1e-9])
    assert float(divergences.hockey_stick_betas(np.array([0.4]), 6, 12, 1)[0]) == pytest.approx(
        float(truth), rel=1e-10
    )


def test_betas_are_infinite_at_and_past_the_asymptote() -> None:
    assert divergences.renyi_betas(np.array([13.0, 14.0, 1e6]), 6, 12, 1).tolist() == [math.inf] * 3
    assert np.isfinite(divergences.renyi_betas(12.99, 6, 12, 1))


def test_exponential_families() -> None:
    """Exponential(1.3) against Exponential(0.8), Poisson(2) against Poisson(3), and the Beta of ERRATA 7."""

    def rates(eta: np.ndarray) -> float:
        return -math.log(-eta[0]) if eta[0] < 0 else math.inf

    ours = divergences.renyi_exponential_family(ORDERS, rates, [-1.3], [-0.8])
    for order, value in zip(ORDERS, ours, strict=True):
        truth = oracles.renyi(
            lambda x: mp.log(1.3) - 1.3 * x, lambda x: mp.log(0.8) - 0.8 * x, order, [0, 120]
        )
        assert value == pytest.approx(float(truth), rel=1e-8)
    back = divergences.renyi_exponential_family([1.5, 2.0, 3.0], rates, [-0.8], [-1.3])
    assert np.isfinite(back[:2]).all()
    assert back[2] == math.inf  # -0.8 * 3 + 1.3 * 2 > 0

    counts = divergences.renyi_exponential_family(
        [2.0, 3.5], lambda eta: math.exp(eta[0]), [math.log(2)], [math.log(3)]
    )
    for order, value in zip([2.0, 3.5], counts, strict=True):
        moment = mp.nsum(
            lambda k, order=order: (
                (mp.mpf(2) ** k * mp.exp(-2)) ** order
                * (mp.mpf(3) ** k * mp.exp(-3)) ** (1 - order)
                / mp.factorial(k)
            ),
            [0, mp.inf],
        )
        assert value == pytest.approx(float(mp.log(moment) / (order - 1)), rel=1e-8)

    def log_beta(eta: np.ndarray) -> float:
        return float(special.betaln(*eta)) if min(eta) > 0 else math.inf

    orders = np.array([1.5, 2.0, 4.0, 13.0])
    family = divergences.renyi_exponential_family(orders, log_beta, [7, 12], [6, 13])
    np.testing.assert_allclose(family, divergences.renyi_betas(orders, 6, 12, 1), rtol=1e-9)
    assert float(divergences.renyi_exponential_family(2.0, rates, [-1.3], [-0.8])) == pytest.approx(
        float(ours[3])
    )


# --- the same through the pieces --------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 7, 40])
@pytest.mark.parametrize(("a", "b", "w"), [(6, 12, 1.0), (1, 1, 1.0), (0.5, 3, 0.7), (20, 20, 1.0)])
def test_branch_and_bound_visits_the_worst_pair(a: float, b: float, w: float, size: int) -> None:
    piece = beta_bernoulli(a, b, size, weight=w)
    pairs = [(a + w * k, b + w * (size - 1 - k)) for k in range(size)]
    both = [pair for x, y in pairs for pair in ((x, y), (y, x))]
    for eps in (0.0, 0.5, 2.0, 6.0):
        truth = max(float(divergences.hockey_stick_betas(np.array([eps]), x, y, w)[0]) for x, y in both)
        assert piece.delta(eps) == pytest.approx(truth, rel=1e-11)
    for order in (1.2, 1.9, 5.0):
        truth = max(float(divergences.renyi_betas(order, x, y, w)) for x, y in both)
        assert piece.renyi(order) == pytest.approx(truth, rel=1e-11)


def test_dirichlet_is_the_worst_move_between_two_categories() -> None:
    piece = dirichlet_categorical([3.0, 1.5, 2.0, 7.0])
    for eps in (0.0, 0.5, 2.0):
        moves = [
            float(divergences.hockey_stick_betas(np.array([eps]), x + m, y + n, 1)[0])
            for i, x in enumerate((3.0, 1.5, 2.0, 7.0))
            for j, y in enumerate((3.0, 1.5, 2.0, 7.0))
            if i != j
            for m in range(4)
            for n in range(4)
        ]
        assert piece.delta(eps) == pytest.approx(max(moves), rel=1e-11)


@pytest.mark.parametrize("width", [0.01, 0.5, 2.0, 8.0])
def test_bounded_range_against_every_offset(width: float) -> None:
    """Two outcomes at losses t and t - width; P of the upper one follows from E_P[e^-loss] = 1."""
    t = np.linspace(1e-6, 1 - 1e-6, 200_001) * width
    upper = np.expm1(width - t) / (np.exp(width - t) - np.exp(-t))
    piece = bounded_range(width, neighbours="substitute")
    for eps in np.linspace(0, 0.95 * width, 7):
        stick = upper * np.maximum(-np.expm1(eps - t), 0) + (1 - upper) * np.maximum(
            -np.expm1(eps - t + width), 0
        )
        ours = piece.delta(float(eps))
        assert stick.max() <= ours * (1 + 1e-12)
        assert ours == pytest.approx(stick.max(), rel=1e-6)
    for order in (1.1, 2.0, 7.0, 60.0):
        logs = np.logaddexp(np.log(upper) + (order - 1) * t, np.log1p(-upper) + (order - 1) * (t - width))
        ours, truth = piece.renyi(order), logs.max() / (order - 1)
        assert truth <= ours + 1e-13 / (order - 1)
        assert ours == pytest.approx(truth, rel=1e-5)
        assert ours <= pure(width, neighbours="substitute").renyi(order) * (1 + 1e-9)
    assert piece.delta(width) == 0


@pytest.mark.parametrize("width", [1e-9, 1e-7, 1e-5, 1e-3])
def test_bounded_range_of_tiny_width_is_never_below(width: float) -> None:
    for order in (1.01, 1.5, 2.0, 10.0, 200.0):
        with mp.workdps(60):
            w, o = mp.mpf(width), mp.mpf(order)
            found = mp.mpf(0)
            for i in range(1, 200):
                t = w * i / 200
                p = mp.expm1(w - t) / (mp.exp(w - t) - mp.exp(-t))
                found = max(
                    found, mp.log(p * mp.exp((o - 1) * t) + (1 - p) * mp.exp((o - 1) * (t - w))) / (o - 1)
                )
        assert bounded_range(width, neighbours="substitute").renyi(order) >= float(found) * (1 - 1e-12)


# --- the Poisson-subsampled Gaussian ----------------------------------------------

GRID = [(1e-5, 1.0), (1e-5, 20.0), (256 / 60000, 1.3), (0.05, 0.6), (0.3, 0.3), (0.5, 5.0), (1.0, 1.0)]


def poisson_pairs(rate: float, sigma: float) -> dict[str, list[tuple[Callable, Callable]]]:
    mixed, plain = oracles.log_mixture(rate, 1, sigma), oracles.log_normal(0, sigma)
    return {
        "add_remove": [(mixed, plain), (plain, mixed)],
        "substitute": [(mixed, oracles.log_mixture(rate, -1, sigma))],
    }


@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
@pytest.mark.parametrize(("rate", "sigma"), GRID)
def test_poisson_gaussian_profile(rate: float, sigma: float, neighbours: str) -> None:
    piece = poisson_gaussian(rate, sigma, neighbours=neighbours)
    span = [-12 * sigma - 3, 12 * sigma + 3]
    for eps in (0.0, 2 * rate / sigma):
        truth = max(
            oracles.hockey_stick(p, q, eps, span, 100) for p, q in poisson_pairs(rate, sigma)[neighbours]
        )
        ours = piece.delta(eps)
        if truth > 1e-25:
            assert -1e-12 <= relative(ours, truth) < 1e-7, f"epsilon {eps}"


@pytest.mark.parametrize("sigma", [0.02, 0.025, 0.03, 0.1])
def test_poisson_gaussian_with_hardly_any_noise(sigma: float) -> None:
    """With almost no noise the record is seen whenever it is drawn: delta is the rate."""
    for neighbours in ("add_remove", "substitute"):
        piece = poisson_gaussian(0.01, sigma, neighbours=neighbours)
        assert 0.0099 < piece.delta(1.0) < 0.0101
        assert 0.0099 < piece.delta(0.0) < 0.0101


@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("rate", [1e-5, 0.01, 1.0])
def test_poisson_gaussian_renyi(rate: float, sigma: float, neighbours: str) -> None:
    piece = poisson_gaussian(rate, sigma, neighbours=neighbours)
    for order in (1.1, 2.0, 7.0, 32.0, 200.0):
        ours = piece.renyi(order)
        if ours == math.inf:
            assert order > 500 * min(1, sigma**2)
            continue
        if neighbours == "add_remove" and order == int(order):
            # For whole orders, the binomial sum of Mironov, Talwar & Zhang 2019.
            with mp.workdps(40):
                q, s, o = mp.mpf(rate), mp.mpf(sigma), int(order)
                total = mp.fsum(
                    mp.binomial(o, k) * (1 - q) ** (o - k) * q**k * mp.exp((k * k - k) / (2 * s * s))
                    for k in range(o + 1)
                )
                truth = mp.log(total) / (o - 1)
        elif order == 2 and rate < 1 and sigma in (0.5, 4.0):
            p, q = poisson_pairs(rate, sigma)[neighbours][0]
            truth = oracles.renyi(p, q, order, [-14 * sigma - 3, order + 14 * sigma + 3], 48)
        else:
            continue
        assert ours >= float(truth) * (1 - 1e-12), f"order {order}"
        # The chord between tabulated orders and the margin for rounding may cost this much.
        assert ours <= float(truth) * (1 + 5e-3) + 2e-13 / (order - 1), f"order {order}"


@pytest.mark.parametrize("sigma", [1e-2, 1e-3])
def test_poisson_gaussian_survives_tiny_noise(sigma: float) -> None:
    with oracles.within(3):
        assert poisson_gaussian(0.01, sigma, neighbours="add_remove").epsilon(1e-5) > 1000
