# pyright: reportMissingTypeStubs=false
"""How unlike pieces compose: every route that is valid for all pieces, and the best of them.

A route turns counted pieces into a bound on (epsilon, delta). Each is an upper
bound by itself, so their minimum is one. Proof page: docs/proofs/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Protocol

import numpy as np

from discreet.privacy.arrays import Array
from discreet.privacy.basic import Gaussian
from discreet.privacy.conversion import (
    Conversion,
    delta_at,
    delta_from_renyi,
    epsilon_from_renyi,
    improved,
)
from discreet.privacy.pieces import Piece, one

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

Counted = tuple[tuple[Piece, int], ...]

ROUND_UP = 1 + 2.0**-40
"""Relative margin for the rounding of special functions, about 1e-12."""

CONVOLUTION_ALLOWANCE = 1e-11
"""Added to every delta that came out of an FFT; its error is measured in tests/privacy/test_routes.py."""

_FINEST, _COARSEST = 1e-8, 1e-4
_SMALLEST = 1e-304
_LARGEST_LOSS = 600.0
_MOST_STEPS = 10**6
_MEASURED_STEPS = 10**5
_MOST_CELLS = 2**21


class Route(Protocol):
    """One way to bound a composition."""

    @property
    def name(self) -> str:
        """What the route is called in a report."""
        ...

    def epsilon(self, pieces: Counted, delta: float) -> float:
        """An epsilon at `delta`, or infinity where the route has no answer."""
        ...

    def delta(self, pieces: Counted, epsilon: float) -> float:
        """A delta at `epsilon`, or 1 where the route has no answer."""
        ...


@dataclass(frozen=True)
class PureSum:
    """Largest losses add."""

    name: str = "sum of pure losses"

    def epsilon(self, pieces: Counted, delta: float) -> float:
        return pure_sum(pieces) if delta >= slack(pieces) else math.inf

    def delta(self, pieces: Counted, epsilon: float) -> float:
        return slack(pieces) if epsilon >= pure_sum(pieces) else 1.0


@dataclass(frozen=True)
class RenyiSum:
    """Renyi divergences add at every order; then a conversion to epsilon, the improved one by default."""

    name: str = "sum of Renyi divergences"
    conversion: Conversion = improved

    def epsilon(self, pieces: Counted, delta: float) -> float:
        aside = slack(pieces)
        if delta <= aside:
            return math.inf
        rest = (delta - aside) / (1 - aside)
        return ROUND_UP * epsilon_from_renyi(lambda o: renyi_sum(pieces, o), rest, self.conversion)

    def delta(self, pieces: Counted, epsilon: float) -> float:
        aside = slack(pieces)
        rest = delta_at(lambda orders: renyi_sum(pieces, orders), epsilon)
        return min(1.0, ROUND_UP * (aside + (1 - aside) * rest))


@dataclass(frozen=True)
class SingleProfile:
    """One piece, once: its own hockey-stick curve, without discretisation."""

    name: str = "exact profile"

    def epsilon(self, pieces: Counted, delta: float) -> float:
        if sum(count for _, count in pieces) != 1:
            return math.inf
        piece = pieces[0][0]
        if delta < _SMALLEST:  # a profile that underflows proves nothing
            return piece.pure() if piece.slack == 0 else math.inf
        return _smallest_epsilon(piece, delta / ROUND_UP)

    def delta(self, pieces: Counted, epsilon: float) -> float:
        if sum(count for _, count in pieces) != 1:
            return 1.0
        return min(1.0, ROUND_UP * one(pieces[0][0].profile, epsilon))


@dataclass(frozen=True)
class LossDistribution:
    """Discretised privacy loss distributions, convolved."""

    name: str = "convolution of privacy losses"

    def epsilon(self, pieces: Counted, delta: float) -> float:
        whole, aside = convolve(pieces), allowance(pieces)
        if whole is None or delta <= aside:
            return math.inf
        return (1 + 1e-9) * whole.get_epsilon_for_delta(delta - aside)

    def delta(self, pieces: Counted, epsilon: float) -> float:
        if (whole := convolve(pieces)) is None:
            return 1.0
        return min(1.0, float(whole.get_delta_for_epsilon(epsilon)) + allowance(pieces))


ROUTES: tuple[Route, ...] = (PureSum(), RenyiSum(), SingleProfile(), LossDistribution())


def applicable(pieces: Counted) -> Sequence[Route]:
    """All routes, without the convolution where a single exact profile says it better."""
    single = sum(count for _, count in pieces) == 1
    return [route for route in ROUTES if not (single and isinstance(route, LossDistribution))]


def merged(pieces: Counted) -> Counted:
    """Pieces counted once each, free ones dropped, Gaussians folded into one (their mus add in square)."""
    counts: dict[Piece, int] = {}
    shifts: list[float] = []
    for piece, count in pieces:
        if isinstance(piece, Gaussian):
            shifts.append(math.sqrt(count) * piece.mu)
        elif piece.pure() > 0 or piece.slack > 0:
            counts[piece] = counts.get(piece, 0) + count
    if any(shifts):
        counts[Gaussian(pieces[0][0].neighbours, math.hypot(*shifts) * ROUND_UP)] = 1
    return tuple(sorted(counts.items(), key=lambda item: repr(item[0])))


# --- the three sums ----------------------------------------------------------


def slack(pieces: Counted) -> float:
    """Probability that some piece leaves the event on which its pure and Renyi bounds hold."""
    slacks = [(piece.slack, count) for piece, count in pieces if piece.slack > 0]
    if not slacks:
        return 0.0
    if len(slacks) == 1 and slacks[0][1] == 1:
        return slacks[0][0]
    return -math.expm1(sum(count * math.log1p(-min(s, 1 - 1e-16)) for s, count in slacks)) * ROUND_UP


def pure_sum(pieces: Counted) -> float:
    """Sum of the largest losses, in exact arithmetic and rounded up once."""
    losses = [(piece.pure(), count) for piece, count in pieces]
    if any(math.isinf(loss) for loss, _ in losses):
        return math.inf
    total = sum((count * Fraction(loss) for loss, count in losses), Fraction(0))
    nearest = float(total)
    return nearest if Fraction(nearest) >= total else math.nextafter(nearest, math.inf)


def renyi_sum(pieces: Counted, orders: Array) -> Array:
    """Sum of the Renyi divergences at each order."""
    total = np.zeros_like(orders)
    for piece, count in pieces:
        total = total + count * piece.renyi(orders)
    return total


def allowance(pieces: Counted) -> float:
    """What the rounding of the convolution may take from a delta; it grows with the number of factors."""
    return CONVOLUTION_ALLOWANCE * max(1.0, sum(count for _, count in pieces) / _MEASURED_STEPS)


@lru_cache(maxsize=64)
def convolve(pieces: Counted) -> PrivacyLossDistribution | None:
    """The loss distribution of the whole; None where it would be pointless or out of the measured range."""
    steps = sum(count for _, count in pieces)
    if not 0 < steps <= _MOST_STEPS or any(
        piece.largest_loss() > _LARGEST_LOSS or piece.slack > 0.5 for piece, _ in pieces
    ):
        return None
    interval = grid_width(pieces)
    parts = [
        piece.loss_distribution(interval).self_compose(count)
        if count > 1
        else piece.loss_distribution(interval)
        for piece, count in pieces
    ]
    return reduce(lambda whole, part: whole.compose(part), parts)


def grid_width(pieces: Counted) -> float:
    """A grid fine enough for the spread of one loss, coarse enough for the whole to fit in memory.

    Rounding a loss to a grid of width h adds at most h^2/4 to its variance, so h is
    a twentieth of the root mean square loss. Any width is sound.
    """
    reaches = [(piece.largest_loss(), count) for piece, count in pieces]
    variances = [(count, (2.5 * one(piece.profile, 0.0)) ** 2) for piece, count in pieces]
    count, variance = sum(c for _, c in reaches), math.fsum(c * v for c, v in variances)
    width = min(max(0.05 * math.sqrt(variance / count), _FINEST), _COARSEST)
    reach = variance + 12 * math.sqrt(variance) + max(r for r, _ in reaches)
    return max(width, reach / _MOST_CELLS)


def deltas(pieces: Counted, epsilons: Array) -> Array:
    """The best delta of all routes at each of many epsilons in increasing order."""
    pieces = merged(pieces)
    if not pieces:
        return np.zeros_like(epsilons)
    aside = slack(pieces)
    renyi = delta_from_renyi(lambda orders: renyi_sum(pieces, orders), epsilons)
    best = np.minimum(ROUND_UP * (aside + (1 - aside) * renyi), 1.0)
    best = np.where(epsilons >= pure_sum(pieces), np.minimum(best, aside), best)
    if sum(count for _, count in pieces) == 1:
        return np.minimum(best, ROUND_UP * pieces[0][0].profile(epsilons))
    if (whole := convolve(pieces)) is None:
        return best
    points = np.minimum(epsilons, 700.0).tolist()
    # One at a time: dp-accounting's vectorised form walks the grid in Python.
    convolved = np.array([whole.get_delta_for_epsilon(e) for e in points], dtype=np.float64)
    return np.minimum(best, convolved + allowance(pieces))


def _smallest_epsilon(piece: Piece, delta: float) -> float:
    """The smallest epsilon whose delta is allowed, by repeated subdivision; always the safe end."""
    if one(piece.profile, 0.0) <= delta:
        return 0.0
    high = max(piece.largest_loss(), 1e-12)
    while not one(piece.profile, high) <= delta:
        if high > 1e6:
            return math.inf
        high *= 2
    low = 0.0
    while high - low > 1e-12 * high:
        grid = np.linspace(low, high, 10)
        fits = np.nonzero(piece.profile(grid) <= delta)[0]
        first = int(fits[0]) if fits.size else len(grid) - 1
        if first == 0 or (grid[first] == high and grid[first - 1] == low):
            break
        low, high = float(grid[first - 1]), float(grid[first])
    return high
