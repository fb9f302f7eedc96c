"""`Guarantee`: an upper bound on privacy loss between neighbouring data sets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from discreet.privacy import checks, routes
from discreet.privacy.attacker import attacker_words
from discreet.privacy.budget import Budget
from discreet.privacy.group import Group
from discreet.privacy.neighbours import Neighbours, as_neighbours
from discreet.privacy.pieces import Piece, one
from discreet.privacy.routes import ROUND_UP, Counted

_FORMAT = 1
_SMALLEST = 1e-304


@dataclass(frozen=True)
class Guarantee:
    """An upper bound on what one record can change, made of counted pieces.

    Build one with the functions of `discreet.privacy`; compose with `+`,
    `repeat(k)` or `k * g`; ask with `epsilon(delta)`, `delta(epsilon)`,
    `renyi(order)`. Numerical error is rounded up, an answer is never negative and
    never NaN, and asking changes nothing.

    Attributes:
        pieces: what was applied, and how often.
        neighbours: the relation the guarantee is about. Guarantees under
            different relations refuse to add.
        inexactness: summed total variation distance between what was run and what
            was analysed; it enters delta as (1 + e^epsilon) * inexactness.

    Guarantee:
        For every pair of neighbouring data sets, in both orders, and every event
        A: P(A) <= e^epsilon(delta) Q(A) + delta, for adaptively composed pieces.

    References: docs/proofs/composition.md.

    Example:
        >>> from discreet.privacy import pure
        >>> yearly = 12 * pure(0.1, neighbours="substitute")
        >>> round(yearly.epsilon(0), 6), round(yearly.epsilon(1e-6), 2)
        (1.2, 1.2)
    """

    pieces: Counted
    neighbours: Neighbours
    inexactness: Fraction | float = Fraction(0)

    def __post_init__(self) -> None:
        if self.inexactness < 0 or self.inexactness != self.inexactness:
            raise ValueError(f"inexactness must be at least 0, got {self.inexactness!r}; it is a distance")
        object.__setattr__(self, "inexactness", Fraction(self.inexactness))
        pieces: list[tuple[Piece, int]] = []
        for piece, count in self.pieces:
            pieces.append((piece, checks.integer("count", count, at_least=1)))
            if piece.neighbours != self.neighbours:
                raise ValueError(
                    f"a guarantee for {self.neighbours} neighbours has a piece for {piece.neighbours} "
                    "neighbours; restate one of them in the relation of the other"
                )
        object.__setattr__(self, "pieces", tuple(pieces))

    # --- questions ------------------------------------------------------------

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon this guarantee proves at `delta`, infinite if none."""
        checks.real("delta", delta, at_least=0.0, below=1.0)
        return self._solve(delta, self._epsilon_exact, self._delta_exact)

    def delta(self, epsilon: float) -> float:
        """The smallest delta this guarantee proves at `epsilon`."""
        checks.real("epsilon", epsilon, at_least=0.0)
        if self.inexactness == 0:
            return self._delta_exact(epsilon)
        # A bound at a smaller epsilon holds here too, and costs less inexactness.
        ends = self._cheapest(self._delta_exact)
        found = (self._with_inexactness(self._delta_exact, min(epsilon, end)) for end in ends)
        return min(1.0, *found)

    def renyi(self, order: float) -> float:
        """The Renyi divergence this guarantee proves at `order` > 1, infinite if none."""
        checks.real("order", order, above=1.0)
        if self.inexactness > 0 or routes.slack(self.pieces) > 0:
            return math.inf
        return one(lambda orders: routes.renyi_sum(self.pieces, orders), order)

    def by_route(self, delta: float) -> dict[str, float]:
        """Each route's epsilon at `delta`; `epsilon` is their minimum."""
        checks.real("delta", delta, at_least=0.0, below=1.0)
        pieces = routes.merged(self.pieces)
        found = {
            route.name: self._solve(delta, partial(route.epsilon, pieces), partial(route.delta, pieces))
            for route in routes.applicable(pieces)
        }
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def fits(self, budget: Budget) -> bool:
        """Whether this guarantee stays within `budget`."""
        self.check_relation(budget)
        return self.epsilon(budget.delta) <= budget.epsilon

    def check_relation(self, budget: Budget) -> None:
        """Refuse a budget that was stated for the other neighbour relation."""
        if budget.neighbours is not None and budget.neighbours != self.neighbours:
            raise ValueError(
                f"the budget is about {budget.neighbours} neighbours and the guarantee about "
                f"{self.neighbours} neighbours; state both in one relation"
            )

    # --- composition ----------------------------------------------------------

    def __add__(self, other: Guarantee) -> Guarantee:
        """The cost of both on the same data, the second chosen knowing the first's output."""
        if not isinstance(other, Guarantee):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        if self.neighbours != other.neighbours:
            raise ValueError(
                f"cannot add a guarantee for {self.neighbours} neighbours and one for "
                f"{other.neighbours} neighbours; restate one of them in the relation of the other"
            )
        return Guarantee(
            _counted(self.pieces + other.pieces), self.neighbours, self.inexactness + other.inexactness
        )

    def repeat(self, times: int) -> Guarantee:
        """The cost of `times` applications; equal to that many additions."""
        times = checks.integer("times", times, at_least=0)
        pieces = tuple((piece, count * times) for piece, count in self.pieces if times > 0)
        return Guarantee(pieces, self.neighbours, times * self.inexactness)

    def __mul__(self, times: int) -> Guarantee:
        """Same as `repeat`."""
        return self.repeat(times)

    __rmul__ = __mul__

    def for_group(self, size: int) -> Guarantee:
        """The guarantee for `size` people together (who may be a household, or one person's rows)."""
        size = checks.integer("size", size, at_least=1)
        if size == 1:
            return self
        if self.inexactness > 0:
            raise ValueError(
                f"a guarantee with inexactness {float(self.inexactness):.3g} has no group privacy; "
                "take the group of the exact part first and add the inexactness of the sampler to it"
            )
        grouped = [(piece.for_group(size), count) for piece, count in self.pieces]
        if all(piece is not None for piece, _ in grouped):
            pieces = tuple((piece, count) for piece, count in grouped if piece is not None)
            return Guarantee(_counted(pieces), self.neighbours)
        return Guarantee(((Group(self.neighbours, self.pieces, size), 1),), self.neighbours)

    # --- words and storage ----------------------------------------------------

    def describe(self, delta: float | None = None) -> str:
        """What was applied, how often, for whom, and how often a guess about one person can be right.

        The guess is that of an attacker who finds two neighbouring tables equally
        likely (docs/proofs/attacker.md). It needs no delta; if one is given, the
        epsilon at it stands before it.
        """
        lines = [f"neighbours: {self.neighbours} ({self.neighbours.explanation})"]
        lines += [f"{count} x {piece.describe()}" for piece, count in self.pieces]
        if not self.pieces:
            lines.append("nothing applied")
        if self.inexactness > 0:
            lines.append(f"sampling within {float(self.inexactness):.3g} of the exact law in total variation")
        if delta is not None:
            epsilon = self.epsilon(delta)
            lines.append(f"epsilon {epsilon:.6g} at delta {delta:g}: {attacker_words(epsilon, delta)}")
        else:  # epsilon 0 with its own delta is the total variation distance itself
            lines.append(attacker_words(0.0, self.delta(0.0)))
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as plain values, for a ledger or a release."""
        return {
            "format": _FORMAT,
            "neighbours": str(self.neighbours),
            "inexactness": str(self.inexactness),
            "pieces": [{"count": count, "piece": piece.to_dict()} for piece, count in self.pieces],
        }

    def to_json(self) -> str:
        """The guarantee as one line of JSON."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Guarantee:
        """Rebuild a guarantee from `to_dict`."""
        if data.get("format") != _FORMAT:
            given = data.get("format")
            raise ValueError(
                f"a stored guarantee has format {given!r}, allowed is {_FORMAT}; upgrade discreet"
            )
        pieces = tuple((Piece.from_dict(item["piece"]), item["count"]) for item in data["pieces"])
        return Guarantee(pieces, as_neighbours(data["neighbours"]), Fraction(data["inexactness"]))

    @staticmethod
    def from_json(text: str) -> Guarantee:
        """Rebuild a guarantee from `to_json`."""
        return Guarantee.from_dict(json.loads(text))

    # --- inside ---------------------------------------------------------------

    def _with_inexactness(self, delta: Callable[[float], float], epsilon: float) -> float:
        return delta(epsilon) + (1 + math.exp(min(epsilon, 700.0))) * float(self.inexactness) * ROUND_UP

    def _cheapest(self, delta: Callable[[float], float]) -> tuple[float, float]:
        """Where a larger epsilon saves less than the inexactness costs more: a minimum, by golden section."""
        low, high = 0.0, max(0.0, -math.log(float(self.inexactness)))
        ratio = (math.sqrt(5) - 1) / 2
        for _ in range(60):
            left, right = high - ratio * (high - low), low + ratio * (high - low)
            if self._with_inexactness(delta, left) <= self._with_inexactness(delta, right):
                high = right
            else:
                low = left
        return low, high

    def _solve(
        self, delta: float, exact: Callable[[float], float], exact_delta: Callable[[float], float]
    ) -> float:
        """The smallest epsilon at `delta`, with what inexactness adds; the safe end of a bisection."""
        if self.inexactness == 0:
            return exact(delta)
        high = min(self._cheapest(exact_delta), key=partial(self._with_inexactness, exact_delta))
        if self._with_inexactness(exact_delta, high) > delta:
            return math.inf
        low = 0.0
        if self._with_inexactness(exact_delta, low) <= delta:
            return low
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            fits = self._with_inexactness(exact_delta, middle) <= delta
            low, high = (low, middle) if fits else (middle, high)
        return high

    def _epsilon_exact(self, delta: float) -> float:
        pieces = routes.merged(self.pieces)
        return min((route.epsilon(pieces, delta) for route in routes.applicable(pieces)), default=0.0)

    def _delta_exact(self, epsilon: float) -> float:
        pieces = routes.merged(self.pieces)
        delta = min((route.delta(pieces, epsilon) for route in routes.applicable(pieces)), default=0.0)
        # A delta too small for a float is not zero.
        return max(delta, _SMALLEST) if epsilon < routes.pure_sum(pieces) else delta


def _counted(pieces: Counted) -> Counted:
    """Equal pieces merged, in a canonical order."""
    counts: dict[Piece, int] = {}
    for piece, count in pieces:
        counts[piece] = counts.get(piece, 0) + count
    return tuple(sorted(counts.items(), key=lambda item: repr(item[0])))
