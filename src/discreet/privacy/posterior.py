"""Prices of one draw from a conjugate posterior (paper R, sharpened by ERRATA S3).

Proof page: docs/proofs/conjugate_posteriors.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.privacy import chords
from discreet.privacy.arrays import Array
from discreet.privacy.divergences import hockey_stick_betas, renyi_betas
from discreet.privacy.pieces import Piece

Divergence = Callable[[Array, Array, Array, float], Array]


@dataclass(frozen=True)
class BetaBernoulli(Piece):
    """One draw from Beta(a + w k, b + w (n - k)), k successes among n records of weight w.

    Neighbours move one record between the counts, so the pairs are
    Beta(a + w k + w, .) against Beta(a + w k, . + w) for k = 0..n-1, both orders:
    n pairs, all of them covered.
    """

    successes: float
    failures: float
    size: int
    weight: float

    def renyi(self, orders: Array) -> Array:
        return self._supremum(renyi_betas, orders)

    def profile(self, epsilons: Array) -> Array:
        return chords.at_knots(lambda e: self._supremum(hockey_stick_betas, e), epsilons, knots=1024)

    def _supremum(self, divergence: Divergence, points: Array) -> Array:
        """Maximum over all n pairs, by branch and bound.

        A pair with larger parameters is a randomised function of one with smaller
        ones (Lemma 1), so a block of counts k is dominated by the pair that takes
        the smallest of each parameter over the block.
        """
        a, b, w, last = self.successes, self.failures, self.weight, self.size - 1
        worst = np.zeros_like(points)
        blocks = [(0, last)]
        while blocks:
            low, high = blocks.pop()
            bound = _both_orders(divergence, points, a + w * low, b + w * (last - high), w)
            if low == high:
                worst = np.maximum(worst, bound)
            elif not np.all(bound <= worst):
                middle = (low + high) // 2
                # Visit the outer half last pushed first: the worst pair is usually at an end.
                halves = [(low, middle), (middle + 1, high)]
                blocks += halves if low + high > last else halves[::-1]
        return worst

    def describe(self) -> str:
        prior = f"prior Beta({self.successes:g}, {self.failures:g})"
        return (
            f"one Beta-Bernoulli posterior draw, {prior}, n {self.size}, records weighted {self.weight:.6g}"
        )


@dataclass(frozen=True)
class DirichletCategorical(Piece):
    """One draw from a Dirichlet posterior of categorical records of weight w, any number of records.

    Only the ratio of the two probabilities between which a record moves matters,
    and it is a Beta pair of the two concentrations. The pair of the two smallest
    prior concentrations dominates every other (Lemma 2).
    """

    concentration: tuple[float, ...]
    weight: float

    def renyi(self, orders: Array) -> Array:
        return _both_orders(renyi_betas, orders, *self._smallest(), self.weight)

    def profile(self, epsilons: Array) -> Array:
        return _both_orders(hockey_stick_betas, epsilons, *self._smallest(), self.weight)

    def _smallest(self) -> tuple[float, float]:
        first, second = sorted(self.concentration)[:2]
        return first, second

    def describe(self) -> str:
        prior = f"{len(self.concentration)} categories"
        return f"one Dirichlet-categorical posterior draw, {prior}, records weighted {self.weight:.6g}"


def _both_orders(divergence: Divergence, points: Array, a: float, b: float, weight: float) -> Array:
    """The divergence of Beta(a + w, b) and Beta(a, b + w), whichever order is worse."""
    first, second = np.array([a]), np.array([b])
    there = divergence(points, first, second, weight)
    return there if a == b else np.maximum(there, divergence(points, second, first, weight))
