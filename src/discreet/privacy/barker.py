"""Prices of one step of DP-MCMC with the subsampled Barker test (paper M).

The released quantity is a normal whose mean and variance both depend on the
batch. With log-likelihood ratios clipped to kappa sqrt(batch) / size, one record
moves the mean by at most 2 kappa / sqrt(batch) and the variance, which lies in
[C - kappa^2, C], by at most 4 kappa^2 (batch - 1) / batch^2.

Proof page: docs/proofs/barker.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet.privacy import chords, divergences
from discreet.privacy.arrays import Array
from discreet.privacy.basic import Normals
from discreet.privacy.conversion import delta_from_renyi
from discreet.privacy.pieces import Piece

_CELLS, _KNOTS = 256, 256


@dataclass(frozen=True)
class _Batch(Piece):
    """One release from a fixed batch: the allowed set of pairs of normals."""

    batch: int
    variance: float
    clip: float

    @property
    def shift(self) -> float:
        """The largest difference of means."""
        return 2 * self.clip / math.sqrt(self.batch)

    @property
    def spread(self) -> float:
        """The largest difference of variances."""
        return 4 * self.clip**2 * (self.batch - 1) / self.batch**2

    @property
    def floor(self) -> float:
        """The smallest variance."""
        return self.variance - self.clip**2


@dataclass(frozen=True)
class BarkerBatch(_Batch):
    """The supremum of the hockey-stick divergence over every allowed pair (ERRATA S1)."""

    def renyi(self, orders: Array) -> Array:
        # Scaling shows that the smaller variance is at the floor; both orders of the pair.
        narrow, wide = math.sqrt(self.floor), math.sqrt(self.floor + self.spread)
        there = divergences.renyi_normals(orders, self.shift, wide, narrow)
        # With P narrower, the part due to the means shrinks and the part due to the variances grows.
        back = orders * self.shift**2 / (2 * self.floor) + divergences.renyi_normals(
            orders, 0.0, narrow, wide
        )
        return np.maximum(there, back)

    def profile(self, epsilons: Array) -> Array:
        d, v, wide = self.shift, self.floor, self.floor + self.spread
        result = divergences.hockey_stick_normals(epsilons, d, math.sqrt(wide), math.sqrt(v))
        # Above d^2/2v the widest P is the worst (Lemma 3) and the narrower P never is (Lemma 4).
        unproved = epsilons < d**2 / (2 * v) if self._narrow_is_dominated() else np.full(epsilons.shape, True)
        if unproved.any():
            covered = chords.at_knots(self._by_cells, epsilons[unproved], knots=_KNOTS)
            result[unproved] = np.maximum(result[unproved], covered)
        return np.minimum(result, 1.0)

    def largest_loss(self) -> float:
        return self._widest().largest_loss()

    def _widest(self) -> Normals:
        return Normals(
            self.neighbours, self.shift, math.sqrt(self.floor + self.spread), math.sqrt(self.floor)
        )

    def _narrow_is_dominated(self) -> bool:
        """The condition of Lemma 4, with the worst of its two crossing points."""
        d, v, x = self.shift, self.floor, self.spread
        if x == 0:
            return True
        left, right = d / (2 * self.batch), d * v / x
        wide = v + x
        return right**2 >= wide and math.log(right / left) <= (right**2 - left**2) / (2 * wide)

    def _by_cells(self, epsilons: Array) -> Array:
        """A certified upper bound: each cell of variances is covered by its widest or narrowest member.

        A normal density is at most sqrt(s'/s) times a wider one with the same
        mean, so moving inside a cell costs that factor and nothing else.
        """
        d, v = self.shift, self.floor
        edges = v + self.spread * np.linspace(0.0, 1.0, _CELLS + 1)
        worst = np.zeros_like(epsilons)
        for low, high in pairwise(edges.tolist()):
            ratio = 0.5 * math.log(high / low)
            eps = epsilons - ratio
            wide = math.exp(ratio) * divergences.hockey_stick_normals(eps, d, math.sqrt(high), math.sqrt(v))
            narrow = divergences.hockey_stick_normals(eps, d, math.sqrt(v), math.sqrt(low))
            worst = np.maximum(worst, np.maximum(wide, narrow))
        return worst

    def describe(self) -> str:
        noise = f"noise variance {self.variance:g}, clipping factor {self.clip:g}"
        return f"Barker test on a batch of {self.batch}, {noise}"


@dataclass(frozen=True)
class BarkerBatchRenyi(_Batch):
    """Renyi bound with mean and variance moved together (ERRATA 11), tighter than paper M's Theorem 2."""

    def renyi(self, orders: Array) -> Array:
        # In units of the smallest variance.
        x, d2 = self.spread / self.floor, self.shift**2 / self.floor
        left = 1 - orders * x
        if x >= 1:
            return np.full_like(orders, np.inf)
        safe = np.where(left > 0, left, 1.0)
        value = math.log1p(-x) / 2 + np.log((1 - x) / safe) / (2 * (orders - 1)) + orders * d2 / (2 * safe)
        return np.where(left > 0, value, np.inf)

    def profile(self, epsilons: Array) -> Array:
        return delta_from_renyi(self.renyi, epsilons)

    def describe(self) -> str:
        return f"Barker test on a batch of {self.batch} by its Renyi bound"


@dataclass(frozen=True)
class BarkerBatchPublished(_Batch):
    """Paper M, Theorem 2, as printed: C = 2, clipping factor 1. For comparison only."""

    def renyi(self, orders: Array) -> Array:
        b, left = self.batch, self.batch - 5 * orders
        safe = np.where(left > 0, left, 1.0)
        value = 5 / (2 * b) + np.log(2 * b / safe) / (2 * (orders - 1)) + 2 * orders / safe
        return np.where(left > 0, value, np.inf)

    def profile(self, epsilons: Array) -> Array:
        return delta_from_renyi(self.renyi, epsilons)

    def describe(self) -> str:
        return f"Barker test on a batch of {self.batch} as published"
