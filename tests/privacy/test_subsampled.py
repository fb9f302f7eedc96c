"""Sampling without replacement: enumeration of tiny mechanisms, and Theorem 9 as a loop."""

import itertools
import math

import mpmath as mp
import numpy as np
import oracles
import pytest

from discreet.privacy import (
    approximate,
    bounded_range,
    gaussian,
    laplace,
    pure,
    sampled_without_replacement,
    zcdp,
)

SUBSETS = list(itertools.combinations(range(4), 2))
OTHERS = list(itertools.product((0, 1), repeat=3))


def gaussian_stick(sigma: float, eps: float) -> float:
    """The true divergence of: draw 2 of 4 bits, release their noisy sum. Worst over the others."""
    x = np.linspace(-12 * sigma, 2 + 12 * sigma, 40_001)
    worst = 0.0
    for others in OTHERS:
        density = []
        for mine in (0, 1):
            bits = (mine, *others)
            density.append(
                np.mean([np.exp(-((x - bits[i] - bits[j]) ** 2) / (2 * sigma**2)) for i, j in SUBSETS], 0)
            )
        for p, q in (density, density[::-1]):
            gap = np.maximum(p - math.exp(eps) * q, 0)
            worst = max(worst, float(np.trapezoid(gap, x)) / (sigma * math.sqrt(2 * math.pi)))
    return worst


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
def test_profile_amplification_against_every_data_set_of_four(sigma: float) -> None:
    ours = sampled_without_replacement(gaussian(sigma, neighbours="substitute"), 0.5)
    ratios = []
    for eps in (0.0, 0.05, 0.2, 0.6):
        truth = gaussian_stick(sigma, eps)
        assert truth <= ours.delta(eps) * (1 + 1e-6)
        ratios.append(truth / ours.delta(eps))
    # At epsilon 0 nothing is lost, and without amplification the bound would be far away.
    assert ratios[0] > 0.5
    assert gaussian_stick(sigma, 0.2) < 0.75 * gaussian(sigma, neighbours="substitute").delta(0.2)


def response(bits: tuple[int, ...], heads: float, ordered: bool) -> dict[object, float]:
    """Randomised response on each of two sampled bits; released as a count, or in the order of the table."""
    law: dict[object, float] = {}
    for i, j in SUBSETS:
        for out in itertools.product((0, 1), repeat=2):
            chance = math.prod(heads if o == bits[k] else 1 - heads for o, k in zip(out, (i, j), strict=True))
            key = out if ordered else sum(out)
            law[key] = law.get(key, 0.0) + chance / len(SUBSETS)
    return law


def worst_loss(epsilon: float, ordered: bool) -> float:
    heads = 1 / (1 + math.exp(-epsilon))
    worst = 0.0
    for others in OTHERS:
        p, q = (response((mine, *others), heads, ordered) for mine in (0, 1))
        worst = max(worst, *(abs(math.log(p[o] / q[o])) for o in p))
    return worst


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_amplified_randomised_response_against_enumeration(epsilon: float) -> None:
    ours = sampled_without_replacement(pure(epsilon, neighbours="substitute"), 0.5)
    heads = 1 / (1 + math.exp(-epsilon))
    assert worst_loss(epsilon, ordered=False) <= ours.epsilon(0) * (1 + 1e-12)
    for others in OTHERS:
        first, second = (
            response((0, *others), heads, ordered=False),
            response((1, *others), heads, ordered=False),
        )
        for p, q in ((first, second), (second, first)):
            for eps in (0.0, 0.3, 1.0):
                assert sum(max(0, p[o] - math.exp(eps) * q[o]) for o in p) <= ours.delta(eps) * (1 + 1e-12)
            for order in (1.5, 2.0, 3.0, 8.0):
                divergence = math.log(sum(p[o] ** order * q[o] ** (1 - order) for o in p)) / (order - 1)
                assert divergence <= ours.renyi(order) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_amplification_is_for_samples_without_order(epsilon: float) -> None:
    """The condition of the theorem, and a control: a base that shows the order of the table breaks the bound.

    Replacing a sampled record by an unsampled one can move all the others up a place, which is more than one
    substitution to a mechanism that treats the places differently.
    """
    bound = sampled_without_replacement(pure(epsilon, neighbours="substitute"), 0.5).epsilon(0)
    assert worst_loss(epsilon, ordered=True) > bound * 1.01


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.2])
def test_renyi_amplification_is_theorem_nine(rate: float) -> None:
    bases = {
        "gaussian": (
            gaussian(1.5, neighbours="substitute"),
            lambda j: mp.mpf(j) / (2 * mp.mpf("2.25")),
            mp.inf,
        ),
        "zcdp": (zcdp(0.05, neighbours="substitute"), lambda j: mp.mpf("0.05") * j, mp.inf),
        "pure": (pure(0.7, neighbours="substitute"), lambda j: oracles.renyi_pure(j, 0.7), mp.mpf("0.7")),
        "laplace": (
            laplace(2.0, neighbours="substitute"),
            lambda j: oracles.renyi_laplace(j, 0.5),
            mp.mpf("0.5"),
        ),
    }
    for name, (base, curve, worst) in bases.items():
        ours = sampled_without_replacement(base, rate)
        for order in (2, 3, 7, 30, 120):
            truth = float(oracles.without_replacement(order, rate, curve, worst))
            assert ours.renyi(order) == pytest.approx(truth, rel=1e-8), name
        # Chords of (order - 1) D between integers, and never less below 2.
        assert ours.renyi(2.5) == pytest.approx((ours.renyi(2) + 2 * ours.renyi(3)) / 3, rel=1e-8)
        assert ours.renyi(1.2) >= ours.renyi(2) * (1 - 1e-12)
        assert ours.renyi(1000) == math.inf or ours.renyi(1000) <= base.renyi(1000) * (1 + 1e-9)


def test_sampling_everything_costs_what_the_base_costs() -> None:
    base = gaussian(1.0, neighbours="substitute")
    everything = sampled_without_replacement(base, 1.0)
    assert everything.delta(0.7) == pytest.approx(base.delta(0.7), rel=1e-11)
    assert everything.epsilon(1e-5) == pytest.approx(base.epsilon(1e-5), rel=1e-9)


def test_sampling_an_approximate_guarantee() -> None:
    """(log(1 + q(e^eps - 1)), q delta), which a point mass of probability delta attains."""
    ours = sampled_without_replacement(approximate(1.0, 1e-4, neighbours="substitute"), 0.1)
    grown = math.log1p(0.1 * math.expm1(1.0))
    assert ours.epsilon(1e-5 * (1 + 1e-9)) == pytest.approx(grown, rel=1e-6)
    assert ours.epsilon(0.99e-5) == math.inf


@pytest.mark.parametrize(
    "base", [gaussian(0.7, neighbours="substitute"), bounded_range(2.0, neighbours="substitute")]
)
def test_a_small_rate_is_nearly_linear(base) -> None:
    small, smaller = (sampled_without_replacement(base, q).delta(0.0) for q in (1e-6, 1e-7))
    assert small == pytest.approx(10 * smaller, rel=1e-9)
    assert small == pytest.approx(1e-6 * base.delta(0.0), rel=1e-9)
