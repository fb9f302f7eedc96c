"""Group privacy of a composition that has no closed form for groups.

Proof page: docs/proofs/composition.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.privacy import chords, routes
from discreet.privacy.arrays import Array
from discreet.privacy.pieces import Piece
from discreet.privacy.routes import Counted

_KNOTS = 400


@dataclass(frozen=True)
class Group(Piece):
    """The price, for `size` people together, of a whole composition.

    A chain of `size` neighbours gives delta_size(eps) = delta(eps/size) (e^eps - 1) /
    (e^(eps/size) - 1), and for Renyi curves D_size(order) <= 3^c D(2^c order) with
    2^c >= size (Mironov 2017, Proposition 2).
    """

    members: Counted
    size: int

    def pure(self) -> float:
        return self.size * routes.pure_sum(self.members) if routes.slack(self.members) == 0 else np.inf

    def renyi(self, orders: Array) -> Array:
        if routes.slack(self.members) > 0:
            return np.full_like(orders, np.inf)
        doublings = int(np.ceil(np.log2(self.size)))
        return 3.0**doublings * routes.renyi_sum(self.members, 2.0**doublings * np.maximum(orders, 2.0))

    def profile(self, epsilons: Array) -> Array:
        return chords.at_knots(self._deltas, epsilons, knots=_KNOTS)

    def _deltas(self, epsilons: Array) -> Array:
        """The chain's delta, or a smaller one that it has at a smaller epsilon."""
        known, smallest = _running_minimum(self)
        before = smallest[np.searchsorted(known, epsilons, side="right") - 1]
        return np.minimum(self.chained(epsilons), before)

    def largest_loss(self) -> float:
        known, smallest = _running_minimum(self)
        return float(known[np.argmax(smallest <= smallest[-1] + 1e-18)])

    def chained(self, epsilons: Array) -> Array:
        """delta(eps/size) (e^eps - 1) / (e^(eps/size) - 1), not always falling."""
        each = epsilons / self.size
        deltas = routes.deltas(self.members, each)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            ratio = np.where(each > 0, np.expm1(-self.size * each) / np.expm1(-each), self.size)
            grown = np.exp((self.size - 1) * each) * ratio * deltas
        return np.where(deltas > 0, np.minimum(grown, 1.0), 0.0)

    def describe(self) -> str:
        inside = "; ".join(f"{count} x {piece.describe()}" for piece, count in self.members)
        return f"group of {self.size} under [{inside}]"


@lru_cache(maxsize=64)
def _running_minimum(group: Group) -> tuple[Array, Array]:
    """Smallest chained delta up to each of some epsilons, the end of the pure losses among them."""
    end = group.size * routes.pure_sum(group.members)
    known = np.concatenate([[0.0], np.geomspace(1e-3, 1e4, 120), [end] if np.isfinite(end) else []])
    known.sort()
    return known, np.minimum.accumulate(group.chained(known))
