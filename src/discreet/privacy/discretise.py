# pyright: reportMissingTypeStubs=false
"""From a hockey-stick curve to a discretised privacy loss distribution.

The discretisation is dp-accounting's pessimistic connect-the-dots (Doroshenko et
al. 2022): between grid points the curve is replaced by a chord in e^eps, which
lies above it because a hockey-stick curve is convex there. Proof page:
docs/proofs/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from numpy.typing import NDArray

from discreet.privacy.arrays import Array


def dominating_distribution(
    profile: Callable[[Array], Array], largest_loss: float, interval: float
) -> PrivacyLossDistribution:
    """The loss distribution of a pair that dominates `profile` at every epsilon.

    Args:
        profile: delta at each epsilon >= 0, over both orders of every pair.
        largest_loss: where the grid ends; what remains there counts as infinite loss.
        interval: the width of the grid.
    """
    last = max(1, math.ceil(largest_loss / interval))
    positive = np.arange(last + 1, dtype=np.float64) * interval
    deltas = lower_envelope(positive, np.minimum(profile(positive), 1.0))
    # Both orders are covered, so delta(-e) = 1 - e^-e + e^-e delta(e).
    negative = positive[:0:-1]
    mirrored = -np.expm1(-negative) + np.exp(-negative) * deltas[:0:-1]
    curve = np.clip(np.concatenate([mirrored, deltas]), 0.0, 1.0)
    # Each half is convex; where they meet, a loose profile may not be.
    before, at, after = curve[last - 1 : last + 2]
    if (after - at) / math.expm1(interval) < (at - before) / -math.expm1(-interval) * (1 + 1e-9):
        curve = lower_envelope(np.concatenate([-negative, positive]), curve)
    return PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -last, last, curve)
    )


def lower_envelope(epsilons: Array, deltas: Array) -> Array:
    """The largest curve under `deltas` that a hockey-stick divergence can have.

    A true curve is convex and non-increasing in e^eps. Whatever upper bound of it
    is given, its convex minorant is an upper bound still, and the masses that
    connect-the-dots takes from it are non-negative.
    """
    deltas = np.minimum.accumulate(deltas)
    gaps = np.diff(epsilons)
    # Slopes in e^eps, scaled by e^(left end) to stay in range.
    with np.errstate(over="ignore"):
        slopes = np.diff(deltas) / np.expm1(gaps)
        rising = slopes[1:] * np.exp(-gaps[:-1]) >= slopes[:-1] * (1 + 1e-9) - 1e-300
    if bool(np.all(rising)):
        return deltas
    hull = [0]
    for i in range(1, len(deltas)):
        while len(hull) > 1 and _above_chord(epsilons, deltas, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    return _along_chords(epsilons, deltas, np.array(hull))


def _above_chord(e: Array, d: Array, i: int, j: int, k: int) -> bool:
    weight = math.expm1(e[j] - e[i]) / math.expm1(min(e[k] - e[i], 700.0))
    return bool(d[j] >= d[i] + weight * (d[k] - d[i]))


def _along_chords(e: Array, d: Array, hull: NDArray[np.intp]) -> Array:
    right = np.clip(np.searchsorted(hull, np.arange(len(e)), side="left"), 1, len(hull) - 1)
    i, k = hull[right - 1], hull[right]
    weight = np.expm1(e - e[i]) / np.expm1(np.minimum(e[k] - e[i], 700.0))
    return d[i] + weight * (d[k] - d[i])
