"""The exact Barker profile is the supremum over every allowed pair of normals."""

import math
from typing import Any

import numpy as np
import oracles
import pytest

from discreet.privacy import barker
from discreet.privacy.barker import BarkerBatch, BarkerBatchPublished, BarkerBatchRenyi
from discreet.privacy.neighbours import Neighbours

EPSILONS = np.concatenate([[0.0], np.geomspace(1e-5, 2.0, 39)])


def batch_piece(batch: int, variance: float = 2.0, clip: float = 1.0) -> BarkerBatch:
    return BarkerBatch(Neighbours.SUBSTITUTE, batch, variance, clip)


def never_exceeds(
    piece: BarkerBatch,
    shift: np.ndarray,
    var_p: np.ndarray,
    var_q: np.ndarray,
    epsilons: np.ndarray = EPSILONS,
) -> np.ndarray:
    """Assert it for both orders of every pair; return the largest share of the bound that was reached."""
    bounds = piece.profile(epsilons)
    reached = np.zeros_like(bounds)
    for i, (eps, bound) in enumerate(zip(epsilons, bounds, strict=True)):
        for p, q in ((var_p, var_q), (var_q, var_p)):
            worst = float(oracles.hockey_stick_many_normals(float(eps), shift, p, q).max())
            assert worst <= bound * (1 + 1e-12) + 1e-14, f"epsilon {eps}"
            reached[i] = max(reached[i], worst / bound if bound > 1e-12 else 1.0)
    return reached


def released(first: np.ndarray, second: np.ndarray, variance: float, clip: float) -> tuple[np.ndarray, ...]:
    """From two batches of clipped ratios t in [-1, 1] to the distance of means and the two variances."""
    batch = first.shape[1]
    shift = np.abs(first.sum(1) - second.sum(1)) * clip / math.sqrt(batch)
    return shift, variance - clip**2 * first.var(1), variance - clip**2 * second.var(1)


def batches(rng: np.random.Generator, count: int, batch: int) -> np.ndarray:
    """Random, extreme and structured batches."""
    kind = rng.integers(0, 6, count)[:, None]
    uniform = rng.uniform(-1, 1, (count, batch))
    signs = np.where(rng.random((count, batch)) < rng.random((count, 1)), 1.0, -1.0)
    same = np.repeat(rng.choice([-1.0, 1.0], (count, 1)), batch, 1)
    narrow = np.clip(rng.normal(0, 0.1, (count, batch)), -1, 1)
    near_ends = np.sign(uniform) * (1 - np.abs(uniform) ** 8)
    zero = np.zeros_like(uniform)
    return np.select([kind == k for k in range(6)], [uniform, signs, same, narrow, near_ends, zero])


@pytest.mark.parametrize(
    ("batch", "variance", "clip"),
    [(50, 2.0, 1.0), (1000, 2.0, 1.0), (50, 1.2, 1.0), (50, 3.0, 0.3), (4, 2.0, 1.0)],
)
def test_no_neighbouring_batches_exceed_the_profile(batch: int, variance: float, clip: float) -> None:
    rng = np.random.default_rng(7)
    piece = batch_piece(batch, variance, clip)
    left = 20_000
    while left > 0:
        now = min(left, 4_000_000 // batch)
        left -= now
        first = batches(rng, now, batch)
        second = first.copy()
        # One record becomes any other, often the opposite end.
        second[:, 0] = np.where(rng.random(now) < 0.5, -np.sign(first[:, 0]), rng.uniform(-1, 1, now))
        never_exceeds(piece, *released(first, second, variance, clip))


def test_the_check_catches_a_bound_that_is_too_small() -> None:
    """Power: with three quarters of the spread of means, the same batches exceed the profile."""
    rng = np.random.default_rng(7)
    first = batches(rng, 5000, 50)
    second = first.copy()
    second[:, 0] = -np.sign(first[:, 0])
    with pytest.raises(AssertionError, match="epsilon"):
        never_exceeds(batch_piece(89), *released(first, second, 2.0, 1.0))


def allowed(piece: BarkerBatch, rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """Random points of the allowed set, and a fine grid of its boundary."""
    low, high = piece.floor, piece.variance
    p = rng.uniform(low, high, count)
    q = np.clip(p + piece.spread * rng.uniform(-1, 1, count), low, high)
    shift = piece.shift * np.where(rng.random(count) < 0.5, 1.0, rng.random(count))
    edge = np.linspace(0, 1, 2001)
    at_floor = np.full_like(edge, low)
    p = np.concatenate(
        [p, low + edge * piece.spread, np.full_like(edge, low + piece.spread), low + edge * (high - low)]
    )
    q = np.concatenate([q, at_floor, at_floor, low + edge * (high - low)])
    shift = np.concatenate(
        [shift, np.full_like(edge, piece.shift), edge * piece.shift, np.full_like(edge, piece.shift)]
    )
    return shift, p, q


@pytest.mark.parametrize(
    ("batch", "variance", "clip"),
    [
        (1000, 2.0, 1.0),
        (50, 2.0, 1.0),
        (500, 2.0, 1.0),
        (1000, 1.05, 1.0),
        (1000, 3.2, 0.1),
        (2, 2.0, 1.0),
        (3, 1.1, 1.0),
        (100, 2.0, 1.4),
    ],
)
def test_the_allowed_set_never_exceeds_the_profile_and_reaches_it(
    batch: int, variance: float, clip: float
) -> None:
    piece = batch_piece(batch, variance, clip)
    epsilons = piece.shift * np.concatenate([[0.0], np.geomspace(1e-3, 8, 39)])
    reached = never_exceeds(piece, *allowed(piece, np.random.default_rng(3), 20_000), epsilons=epsilons)
    # The supremum, not only a bound.
    assert reached.min() > (0.99 if batch > 3 else 0.97)


@pytest.mark.parametrize(
    ("batch", "variance", "clip"), [(1000, 2.0, 1.0), (50, 2.0, 1.0), (50, 1.2, 1.0), (4, 2.0, 1.0)]
)
def test_the_renyi_curves_bound_the_allowed_set(batch: int, variance: float, clip: float) -> None:
    piece = batch_piece(batch, variance, clip)
    tight = BarkerBatchRenyi(Neighbours.SUBSTITUTE, batch, variance, clip)
    printed = BarkerBatchPublished(Neighbours.SUBSTITUTE, batch, 2.0, 1.0)
    shift, p, q = allowed(piece, np.random.default_rng(5), 20_000)
    for order in (1.1, 2.0, 5.0, 40.0):
        mixed = order * q + (1 - order) * p
        worst = 0.0
        for u, v in ((p, q), (q, p)):
            mixed = order * v + (1 - order) * u
            with np.errstate(invalid="ignore", divide="ignore"):
                value = (
                    np.log(v / u) / 2 + np.log(v / mixed) / (2 * (order - 1)) + order * shift**2 / (2 * mixed)
                )
            worst = max(worst, float(np.where(mixed > 0, value, np.inf).max()))
        at = np.array([order])
        assert worst <= piece.renyi(at)[0] * (1 + 1e-12)
        assert worst <= tight.renyi(at)[0] * (1 + 1e-12)
        if (variance, clip) == (2.0, 1.0):
            assert worst <= printed.renyi(at)[0]
            assert tight.renyi(at)[0] <= printed.renyi(at)[0]


def test_monotone_in_the_distance_of_means_and_in_the_common_scale() -> None:
    """What the proof takes for granted, numerically: farther means and smaller variances are never safer."""
    shifts = np.linspace(0, 3, 400)
    for var_p, var_q in ((1.0, 1.0), (1.3, 1.0), (1.0, 1.3), (4.0, 1.0)):
        full = np.ones_like(shifts)
        for eps in (0.0, 0.05, 0.5, 2.0):
            by_shift = oracles.hockey_stick_many_normals(eps, shifts, var_p * full, var_q * full)
            assert np.all(np.diff(by_shift) >= -1e-14)
            scale = np.linspace(1, 4, 400)
            by_scale = oracles.hockey_stick_many_normals(eps, full, var_p * scale, var_q * scale)
            assert np.all(np.diff(by_scale) <= 1e-14)


@pytest.mark.parametrize("bound", ["exact", "tight"])
@pytest.mark.parametrize(
    ("batch", "variance", "clip"),
    [(2, 2.0, 1.0), (4, 2.0, 1.0), (2, 1.05, 1.0), (4, 1.0001, 1.0), (3, 3.0, 1e-4)],
)
def test_small_batches_and_extreme_clipping_have_an_answer(
    batch: int, variance: float, clip: float, bound: Any
) -> None:
    with oracles.within(6):
        run = barker(batch, 1000, 10, bound=bound, variance=variance, clip=clip)
        assert run.epsilon(1e-5) >= 0


def test_orders_out_of_range_bound_nothing_and_are_refused() -> None:
    """The printed theorem holds for orders below batch / 5; no divergence has an order of 1 or less."""
    printed = BarkerBatchPublished(Neighbours.SUBSTITUTE, 50, 2.0, 1.0).renyi(np.array([9.9, 10.0, 11.0]))
    assert math.isfinite(printed[0])
    assert np.all(np.isinf(printed[1:]))
    spent = barker(1000, 10**6, 100)
    for order in (1.0, 0.5, -1.0, math.nan):
        with pytest.raises(ValueError, match="order must be a finite number above 1, got"):
            spent.renyi(order)
