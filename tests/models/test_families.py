"""The five conjugate families: the contract, and what is particular to each."""

# ruff: noqa: RUF012 (the contract declares these as ClassVar)

import itertools
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from family_contract import Array, FamilyContract
from scipy import special, stats

from discreet import privacy
from discreet.models import (
    BetaBernoulli,
    DirichletCategorical,
    GammaPoisson,
    NormalInverseGamma,
    NormalKnownVariance,
)
from discreet.models.logistic import OutOfRange
from discreet.privacy.conjugate import NormalInverseGamma as NormalInverseGammaPiece
from discreet.privacy.conjugate import hockey_stick_gammas, renyi_gammas
from discreet.privacy.divergences import renyi_exponential_family


def power_integral(a: Any, rest: Any, cuts: list[Any]) -> Any:
    """The integral of t^(a - 1) rest(t) over the cuts, of which the first is 0.

    t = u^(1/a) takes the singularity away. mpmath stops at an absolute error, hence the digits.
    """
    with mp.workdps(60):
        a, first = mp.mpf(a), mp.mpf(cuts[1])
        if a < 1:
            head = first**a / a * mp.quad(lambda u: rest(first * u ** (1 / a)), [0, 1])
            return head + mp.quad(lambda t: t ** (a - 1) * rest(t), cuts[1:])
        return mp.quad(lambda t: t ** (a - 1) * rest(t), cuts)


def beta_integral(a: Any, b: Any) -> Any:
    """The integral of t^(a - 1) (1 - t)^(b - 1)."""
    cuts = [0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
    low = power_integral(a, lambda t: (1 - t) ** (b - 1), cuts)
    return low + power_integral(b, lambda t: (1 - t) ** (a - 1), cuts)


class TestBetaBernoulli(FamilyContract):
    family = BetaBernoulli(prior=(6, 12))
    etas = [[6, 18], [0.5, 1.2], [80, 118]]
    pairs = [([6, 118], [7, 118]), ([7, 118], [6, 118]), ([1.2, 3], [0.2, 3])]
    extremes = [[1e-300, 2e-300], [1e-3, 1e12], [1e12, 2e12]]
    outside = [[0, 1], [2, 2], [3, 1]]
    records = {"x": [0, 1, 1, 0]}
    bad_records = {"x": [0, 77.0]}

    def kernel(self, eta: Any) -> Any:
        a, b = eta[0], eta[1] - eta[0]
        return mp.log(beta_integral(a, b))

    def marginals(self, eta: Array) -> dict[str, tuple[Any, Any]]:
        return {"probability": (lambda d: d["probability"], stats.beta(eta[0], eta[1] - eta[0]))}


class TestDirichletCategorical(FamilyContract):
    family = DirichletCategorical(prior=(6, 12, 4))
    etas = [[6, 12, 22], [0.7, 2, 3.5]]
    pairs = [([6, 13, 30], [7, 12, 30]), ([2, 2, 6], [1, 2, 6])]
    extremes = [[1e-300, 1e-300, 3e-300], [1e-3, 1e9, 2e9]]
    outside = [[0, 1, 2], [1, 1, 2]]
    records = {"x": [0, 1, 2, 2]}
    bad_records = {"x": [0, 77.0]}

    def kernel(self, eta: Any) -> Any:
        a, b, c = eta[0], eta[1], eta[2] - eta[0] - eta[1]
        # The share of the first category, and of the second in what is left.
        first, second = beta_integral(a, b + c), beta_integral(b, c)
        return mp.log(first * second)

    def marginals(self, eta: Array) -> dict[str, tuple[Any, Any]]:
        a = [*eta[:-1], eta[-1] - eta[:-1].sum()]
        return {
            str(k): (lambda d, k=k: d["probabilities"][:, k], stats.beta(a[k], sum(a) - a[k]))
            for k in range(3)
        }


class TestGammaPoisson(FamilyContract):
    family = GammaPoisson(prior=(20, 4), largest=5, out_of_range=OutOfRange.REFUSE)
    etas = [[20, 4], [0.4, 3], [300, 104]]
    pairs = [([25, 54], [20, 54]), ([20, 54], [25, 54]), ([1, 2], [6, 2])]
    extremes = [[1e-300, 1], [1e-3, 1e300], [1e15, 1e-300]]
    outside = [[0, 1], [1, 0]]
    records = {"x": [0, 3, 5, 1]}
    bad_records = {"x": [0, 77.0]}

    def kernel(self, eta: Any) -> Any:
        a, b = mp.mpf(eta[0]), mp.mpf(eta[1])
        sd = mp.sqrt(a + 1) / b
        cuts = sorted(
            [0, *(max(a / b + k * sd, sd * mp.mpf(10) ** (k - 4)) for k in range(-8, 30)), (a + 300) / b]
        )
        return mp.log(power_integral(a, lambda x: mp.exp(-b * x), cuts))

    def marginals(self, eta: Array) -> dict[str, tuple[Any, Any]]:
        return {"rate": (lambda d: d["rate"], stats.gamma(eta[0], scale=1 / eta[1]))}

    def test_counts_are_clipped_when_declared_so(self) -> None:
        assert GammaPoisson((1, 1), largest=5).validate({"x": [9, 2]})["x"].tolist() == [5, 2]


class TestNormalKnownVariance(FamilyContract):
    family = NormalKnownVariance(prior=(0.5, 2), variance=1.5, limits=(-1, 4), out_of_range=OutOfRange.REFUSE)
    etas = [[0.4, 0.9], [12.0, 30]]
    pairs = [([3, 20], [1, 20]), ([1, 20], [4, 20])]
    extremes = [[0, 1e-300], [1e9, 1e-3], [1, 1e15]]
    outside = [[0, 0], [1, -1]]
    records = {"x": [-1, 3, 4, 1]}
    bad_records = {"x": [0, 77.0]}

    def kernel(self, eta: Any) -> Any:
        middle, sd = eta[0] * mp.mpf(1.5) / eta[1], mp.sqrt(mp.mpf(1.5) / eta[1])
        cuts = [middle + k * sd for k in (-14, -4, 0, 4, 14)]
        return mp.log(mp.quad(lambda t: mp.exp(eta[0] * t - eta[1] * t**2 / 3), cuts))

    def marginals(self, eta: Array) -> dict[str, tuple[Any, Any]]:
        return {"mean": (lambda d: d["mean"], stats.norm(eta[0] * 1.5 / eta[1], np.sqrt(1.5 / eta[1])))}


class TestNormalInverseGamma(FamilyContract):
    family = NormalInverseGamma(prior=(1.5, 2, 5, 6), limits=(0, 3), out_of_range=OutOfRange.REFUSE)
    etas = [[0.5, 12, 2, 10], [3, 40, 12, 20]]
    pairs = [([0.5, 12, 12, 20], [1.5, 13, 12, 20])]
    extremes = [[0, 1, 1e-9, 0.05], [0, 1e-300, 1, 1e9], [0, 1e300, 1, 1]]
    outside = [[0, 1, 0, 1], [0, 1, 1, 0], [2, 1, 1, 1]]
    records = {"x": [0, 3, 1, 1]}
    bad_records = {"x": [0, 77.0]}

    def kernel(self, eta: Any) -> Any:
        first, second, worth, twice = (mp.mpf(e) for e in eta)

        def inner(t: Any) -> Any:  # the mean, at precision t, in standard deviations
            middle, sd = first / worth, 1 / mp.sqrt(worth * t)

            def density(z: Any) -> Any:
                m = middle + z * sd
                return mp.exp(t * (first * m - second / 2 - worth * m**2 / 2))

            return sd * mp.quad(density, [-12, 0, 12], method="gauss-legendre", maxdegree=4)

        peak = twice / (second - first**2 / worth)
        cuts = [peak * k for k in (0, 0.25, 0.5, 1, 2, 4, 9, 40)]
        whole = mp.quad(
            lambda t: t ** ((twice - 1) / 2) * inner(t), cuts, method="gauss-legendre", maxdegree=4
        )
        return mp.log(whole)

    def marginals(self, eta: Array) -> dict[str, tuple[Any, Any]]:
        worth, shape, rate = eta[2], eta[3] / 2, (eta[1] - eta[0] ** 2 / eta[2]) / 2
        spread = np.sqrt(rate / (shape * worth))
        return {
            "variance": (lambda d: d["variance"], stats.invgamma(shape, scale=rate)),
            "mean": (lambda d: d["mean"], stats.t(2 * shape, 1.5 + eta[0] / worth, spread)),
        }

    def base(self, draws: dict[str, Array]) -> Array:
        return -draws["log_variance"] / 2


# --- suprema: exhaustive enumeration, asymptotes, conditions -------------------

ORDERS = np.array([1.05, 1.5, 2.0, 4.0, 6.9])


def enumerated(family: Any, totals: list[Array], moves: list[Array], size: int, weight: float) -> Array:
    """The largest divergence over sums of size - 1 records and all substitutions, by closed form."""
    worst = np.zeros(len(ORDERS))
    for total in totals:
        for x, y in itertools.permutations(moves, 2):
            p = family.posterior_eta(total + x, size, weight=weight)
            q = family.posterior_eta(total + y, size, weight=weight)
            worst = np.maximum(worst, renyi_exponential_family(ORDERS, family.log_normaliser, p, q))
    return worst


@pytest.mark.parametrize(("size", "weight"), [(1, 1.0), (7, 0.3), (200, 1.0)])
def test_beta_supremum_is_the_enumerated_one_and_stands_on_a_boundary_pair(size: int, weight: float) -> None:
    family = BetaBernoulli(prior=(6, 12))
    moves = [np.array([0.0]), np.array([1.0])]
    true = enumerated(family, [np.array([float(k)]) for k in range(size)], moves, size, weight)
    boundary = enumerated(family, [np.array([0.0]), np.array([size - 1.0])], moves, size, weight)
    priced = family.guarantee(size, weight=weight).pieces[0][0].renyi(ORDERS)
    np.testing.assert_allclose(priced, true, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(boundary, true, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("size", "weight"), [(1, 1.0), (6, 0.4)])
def test_dirichlet_supremum_is_the_enumerated_one(size: int, weight: float) -> None:
    family = DirichletCategorical(prior=(6, 12, 8))
    totals = [np.array([i, j], float) for i in range(size) for j in range(size - i)]
    moves = [np.array(m, float) for m in ([1, 0], [0, 1], [0, 0])]
    true = enumerated(family, totals, moves, size, weight)
    np.testing.assert_allclose(
        family.guarantee(size, weight=weight).pieces[0][0].renyi(ORDERS), true, rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_dirichlet_supremum_of_200_records_is_the_enumerated_one(weight: float) -> None:
    """All 20,100 tables of 199 records in three categories, and all six moves of the last."""
    prior, size = np.array([6.0, 12.0, 8.0]), 200
    i, j = np.tril_indices(size)
    common = prior + weight * np.stack([j, i - j, size - 1 - i], axis=1)
    worst = np.zeros(len(ORDERS))
    for a, b in itertools.permutations(range(3), 2):
        p, q = common.copy(), common.copy()
        p[:, a] += weight
        q[:, b] += weight
        at_p, at_q = special.gammaln(p).sum(axis=1), special.gammaln(q).sum(axis=1)
        for k, order in enumerate(ORDERS):
            mixed = special.gammaln(order * p + (1 - order) * q).sum(
                axis=1
            )  # the totals are equal and cancel
            worst[k] = max(worst[k], ((mixed - order * at_p) / (order - 1) + at_q).max())
    priced = DirichletCategorical(prior=(6, 12, 8)).guarantee(size, weight=weight).pieces[0][0].renyi(ORDERS)
    np.testing.assert_allclose(priced, worst, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize(("size", "weight"), [(1, 1.0), (20, 0.3), (200, 1.0)])
def test_gamma_supremum_is_the_enumerated_one(size: int, weight: float) -> None:
    family = GammaPoisson(prior=(20, 4), largest=3)
    totals = [np.array([float(s)]) for s in range(3 * (size - 1) + 1)]
    true = enumerated(family, totals, [np.array([float(x)]) for x in range(4)], size, weight)
    np.testing.assert_allclose(
        family.guarantee(size, weight=weight).pieces[0][0].renyi(ORDERS), true, rtol=1e-8, atol=1e-11
    )


@pytest.mark.parametrize(("size", "weight"), [(1, 1.0), (200, 0.3)])
def test_normal_supremum_is_the_enumerated_one(size: int, weight: float) -> None:
    family = NormalKnownVariance(prior=(0.5, 2), variance=1.5, limits=(-1, 4))
    grid = [np.array([x / 1.5]) for x in np.linspace(-1, 4, 5)]
    true = enumerated(family, [(size - 1) * x for x in grid], grid, size, weight)
    np.testing.assert_allclose(
        family.guarantee(size, weight=weight).pieces[0][0].renyi(ORDERS), true, rtol=1e-9
    )


@pytest.mark.parametrize(
    ("size", "weight", "centre"), [(1, 1.0, 0.0), (20, 0.05, 0.4), (200, 0.02, 0.4), (30, 0.1, 3.0)]
)
def test_normal_inverse_gamma_is_enclosed_and_not_by_much(size: int, weight: float, centre: float) -> None:
    family = NormalInverseGamma(prior=(centre, 1.3, 4, 5), limits=(-1, 1))
    ends = np.linspace(-1, 1, 9)
    totals = [(size - 1) * np.array([a, a * a]) for a in ends]
    true = enumerated(family, totals, [np.array([x, x * x]) for x in ends], size, weight)
    priced = family.guarantee(size, weight=weight).pieces[0][0].renyi(ORDERS)
    assert np.all(priced >= true * (1 - 1e-9))
    finite = np.isfinite(priced)
    assert finite[:3].all() or size == 1
    assert np.all(priced[finite] <= 1.6 * true[finite] + 1e-12)


def test_equal_common_records_are_the_worst_for_normal_inverse_gamma() -> None:
    # 3,000 random data sets of 12 records find nothing beyond the two bounds.
    rng = np.random.default_rng(3)
    piece = privacy.normal_inverse_gamma(1.3, 4, 5, (-1.0, 2.0), 12, weight=0.7).pieces[0][0]
    assert isinstance(piece, NormalInverseGammaPiece)
    total = 1.3 + 0.7 * 12
    rise, move = 0.0, 0.0
    for _ in range(3000):
        common = rng.choice([-1.0, 0.0, 2.0, rng.uniform(-1, 2)], 11)
        rates, means = [], []
        for x in rng.choice([-1.0, 0.0, 2.0, rng.uniform(-1, 2)], 2):
            s, t = 0.7 * (common.sum() + x), 0.7 * ((common**2).sum() + x**2)
            rates.append(5 + (t - s**2 / total) / 2)
            means.append(s / total)
        rise = max(rise, max(rates) / min(rates) - 1)
        move = max(move, (means[0] - means[1]) ** 2 * total / min(rates))
    assert 0.3 * piece.rise() < rise <= piece.rise()
    assert 0.3 * piece.move() < move <= piece.move()


def test_errata_7_direct_posterior_of_beta_6_12() -> None:
    guarantee = BetaBernoulli(prior=(6, 12)).guarantee(100)
    for order, value in [(1.5, 0.1391), (2, 0.1913), (4, 0.4448), (6.9, 1.3926)]:
        assert guarantee.renyi(order) == pytest.approx(value, abs=5e-5)
    for order in (7.0, 7.1, 50.0, 1e6):
        assert guarantee.renyi(order) == np.inf


@pytest.mark.parametrize(
    ("family", "asymptote"),
    [
        (BetaBernoulli((6, 12)), 1 + 6 / 0.5),
        (DirichletCategorical((6, 12, 4)), 1 + 4 / 0.5),
        (GammaPoisson((20, 4), largest=5), 1 + 20 / 2.5),
    ],
)
def test_infinite_at_and_beyond_the_asymptote(family: Any, asymptote: float) -> None:
    guarantee = family.guarantee(100, weight=0.5)
    assert np.isfinite(guarantee.renyi(asymptote - 1e-6))
    assert guarantee.renyi(asymptote) == guarantee.renyi(2 * asymptote) == np.inf


def second_difference(family: Any, eta: Array, v: Array, along: Array, step: float = 1e-3) -> float:
    g = [v @ family.hessian(eta + k * step * along) @ v for k in (-1, 0, 1)]
    return float((g[0] - 2 * g[1] + g[2]) / step**2)


def test_the_condition_of_theorem_15_holds_for_all_five_families() -> None:
    rng = np.random.default_rng(5)
    for family, d in [
        (BetaBernoulli((6, 12)), 1),
        (DirichletCategorical((6, 12, 4)), 2),
        (GammaPoisson((20, 4), largest=5), 1),
        (NormalKnownVariance((0, 1), 1, (-1, 1)), 1),
        (NormalInverseGamma((0.6, 1, 5, 5), (-1, 1)), 2),
    ]:
        eta0 = family.prior_eta
        for _ in range(200):
            eta = eta0 * rng.uniform(0.8, 1.2, len(eta0))
            v, along = np.zeros(len(eta0)), np.zeros(len(eta0))
            v[:d], along[:d] = rng.normal(size=d), rng.normal(size=d)
            assert second_difference(family, eta, v, along) >= -1e-6, (family, eta, v)
    # Negative control: a function that is not convex, the same g without its second term.
    assert min(u**2 / 1.1**2 + (2 - u) ** 2 / 0.9**2 - 2 for u in np.linspace(0.8, 1.2, 41)) < 0


def test_gamma_profile_against_mpmath() -> None:
    for shape, shift, eps in itertools.product((0.3, 20.0, 400.0), (0.2, 5.0), (0.0, 0.3, 1.5)):
        with mp.workdps(40):
            s, j, e = mp.mpf(shape), mp.mpf(shift), mp.mpf(eps)
            ratio = mp.loggamma(s + j) - mp.loggamma(s)
            above, below = mp.exp((ratio + e) / j), mp.exp((ratio - e) / j)
            up = mp.gammainc(s + j, above, regularized=True) - mp.exp(e) * mp.gammainc(
                s, above, regularized=True
            )
            low = mp.gammainc(s, 0, below, regularized=True) - mp.exp(e) * mp.gammainc(
                s + j, 0, below, regularized=True
            )
            true = float(max(up, low))
        ours = float(hockey_stick_gammas(np.array([eps]), shape, shift)[0])
        assert ours == pytest.approx(true, rel=1e-7, abs=1e-14)
        assert ours >= true * (1 - 1e-10)


def test_gamma_profile_dominates_every_smaller_move_and_larger_shape() -> None:
    eps = np.linspace(0, 4, 40)
    worst = hockey_stick_gammas(eps, 3.0, 2.0)
    for shape, shift in itertools.product((3.0, 3.5, 10.0), (0.5, 1.0, 2.0)):
        assert np.all(hockey_stick_gammas(eps, shape, shift) <= worst + 1e-13)
        for order in (1.5, 2.2):
            at = np.array([order])
            assert renyi_gammas(at, shape, shape + shift)[0] <= renyi_gammas(at, 3.0, 5.0)[0] + 1e-12


def test_wrong_settings_are_refused() -> None:
    for wrong in (
        lambda: BetaBernoulli((0, 1)),
        lambda: DirichletCategorical((1,)),
        lambda: GammaPoisson((1, 1), largest=0),
        lambda: NormalKnownVariance((0, 1), 1, (1, 1)),
        lambda: NormalInverseGamma((0, 1, 1, -1), (0, 1)),
    ):
        with pytest.raises((ValueError, TypeError), match=r"must"):
            wrong()
