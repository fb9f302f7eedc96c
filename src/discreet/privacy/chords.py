"""A hockey-stick curve between points at which it is known.

The curve is convex in e^eps, so a chord lies above it: reading a table is sound,
and a curve that costs much to evaluate may be replaced by one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.privacy.arrays import Array


def along(known: Array, deltas: Array, epsilons: Array) -> Array:
    """The chords through (known, deltas) at `epsilons`; constant past the last point."""
    right = np.clip(np.searchsorted(known, epsilons, side="left"), 1, len(known) - 1)
    left = right - 1
    width = np.minimum(known[right] - known[left], 700.0)
    weight = np.expm1(np.minimum(np.minimum(epsilons, known[right]) - known[left], 700.0)) / np.expm1(width)
    return deltas[left] + weight * (deltas[right] - deltas[left])


def at_knots(curve: Callable[[Array], Array], epsilons: Array, *, knots: int) -> Array:
    """`curve` itself for few points, its chords through `knots` points for many."""
    if epsilons.size <= knots:
        return curve(epsilons)
    known = np.linspace(float(epsilons.min()), float(epsilons.max()), knots)
    return along(known, curve(known), epsilons)
