"""From a Renyi curve to epsilon and delta, by the two published rules.

Any order gives a valid bound, so the search over orders can only cost sharpness,
never soundness. Proof page: docs/proofs/conversion.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet.privacy import chords
from discreet.privacy.arrays import Array

Curve = Callable[[Array], Array]
Conversion = Callable[[Array, Array, float], Array]

_COARSE: Array = 1 + np.geomspace(1e-4, 1e6, 241)
_REFINEMENTS = 6


def improved(orders: Array, divergence: Array, log_inverse_delta: float) -> Array:
    """Canonne, Kamath & Steinke 2020, Proposition 12: epsilon at delta from one order."""
    return divergence + np.log1p(-1 / orders) + (log_inverse_delta - np.log(orders)) / (orders - 1)


def classical(orders: Array, divergence: Array, log_inverse_delta: float) -> Array:
    """Mironov 2017, Proposition 3: epsilon at delta from one order."""
    return divergence + log_inverse_delta / (orders - 1)


def epsilon_from_renyi(curve: Curve, delta: float, conversion: Conversion = improved) -> float:
    """The smallest epsilon over all orders that `conversion` allows at `delta`."""
    if delta <= 0:
        return math.inf
    bound = -math.log(delta)
    return max(0.0, _minimum(lambda orders: conversion(orders, curve(orders), bound)))


def delta_from_renyi(curve: Curve, epsilons: Array) -> Array:
    """The smallest delta over all orders at each epsilon >= 0, by the improved rule."""
    divergence = curve(_COARSE)
    finite = np.isfinite(divergence)
    if not finite.any():
        return np.ones_like(epsilons)
    known = list(zip(_COARSE[finite], divergence[finite], strict=True))

    def smallest(points: Array) -> Array:
        logs = np.stack([log_delta(order, value, points) for order, value in known])
        return np.exp(np.minimum(logs.min(axis=0), 0.0))

    return chords.at_knots(smallest, epsilons, knots=1024)


def delta_at(curve: Curve, epsilon: float) -> float:
    """The smallest delta over all orders at one epsilon, with the orders refined."""
    smallest = _minimum(lambda orders: log_delta(orders, curve(orders), epsilon))
    return math.exp(min(smallest, 0.0))


def log_delta(orders: Array | float, divergence: Array | float, epsilon: Array | float) -> Array:
    """Log delta at epsilon from one order, by the improved rule."""
    return np.asarray(
        (orders - 1) * (divergence - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    )


def _minimum(objective: Curve) -> float:
    """Smallest value over orders: a coarse grid, then finer grids around the best point."""
    orders: Array = _COARSE
    best = math.inf
    for _ in range(_REFINEMENTS):
        values = objective(orders)
        values = np.where(np.isnan(values), np.inf, values)
        k = int(np.argmin(values))
        if not math.isfinite(values[k]):
            # The curve may be finite only very near order 1.
            return best
        best = min(best, float(values[k]))
        low, high = float(orders[max(k - 1, 0)]), float(orders[min(k + 1, len(orders) - 1)])
        orders = 1 + np.geomspace(low - 1, high - 1, 41)
    return best
