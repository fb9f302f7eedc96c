# pyright: reportMissingTypeStubs=false
"""What one application of one mechanism costs, and the contract every such price obeys."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from discreet.privacy import checks
from discreet.privacy.arrays import Array
from discreet.privacy.neighbours import Neighbours, as_neighbours

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@dataclass(frozen=True)
class Piece(ABC):
    """The price of ONE application of a mechanism; only composition multiplies.

    A piece answers in up to three currencies. Each answer is an upper bound over
    all neighbouring data sets and over both orders of a pair, and infinity (or 1
    for a delta) means "no bound in this currency":

    * `pure()`, the largest privacy loss;
    * `renyi(orders)`, the Renyi divergence at every order above 1;
    * `profile(epsilons)`, the hockey-stick divergence at every epsilon >= 0.

    `slack` is probability set aside before the first two answers hold: outside an
    event of that probability they hold for the rest (docs/proofs/composition.md).
    A subclass is a frozen dataclass of plain values, so that a ledger can store
    it; subclassing registers it under its name.
    """

    neighbours: Neighbours

    kinds: ClassVar[dict[str, type[Piece]]] = {}

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _plain_number(field, getattr(self, field.name)))

    def __init_subclass__(cls) -> None:
        Piece.kinds[cls.__name__] = cls

    # --- the three currencies -------------------------------------------------

    def pure(self) -> float:
        """The smallest epsilon at delta = 0, infinite if there is none."""
        return math.inf

    def renyi(self, orders: Array) -> Array:
        """The Renyi divergence bound at each order > 1, infinite where there is none."""
        return np.full_like(orders, np.inf)

    @abstractmethod
    def profile(self, epsilons: Array) -> Array:
        """The delta at each epsilon >= 0: non-increasing, at most 1."""

    @property
    def slack(self) -> float:
        """The probability outside of which `pure` and `renyi` hold."""
        return 0.0

    # --- derived --------------------------------------------------------------

    def loss_distribution(self, interval: float) -> PrivacyLossDistribution:
        """A discretised loss distribution that dominates this piece, on a grid of width `interval`."""
        from discreet.privacy.discretise import dominating_distribution

        return dominating_distribution(self.profile, self.largest_loss(), interval)

    def largest_loss(self) -> float:
        """An epsilon beyond which the profile is negligible or constant."""
        if math.isfinite(worst := self.pure()):
            return worst
        rest = one(self.profile, 1e5)  # what no epsilon removes, unless losses are larger still
        floor = (rest if rest < 0.5 else 0.0) + 1e-18

        def matters(epsilon: float) -> bool:
            return one(self.profile, epsilon) > floor

        high = 1.0
        while matters(high) and high < 1e5:
            high *= 2
        while not matters(high / 2) and high > 1e-12:
            high /= 2
        low = high / 2
        for _ in range(8):
            middle = (low + high) / 2
            low, high = (middle, high) if matters(middle) else (low, middle)
        return high

    def for_group(self, size: int) -> Piece | None:  # noqa: ARG002 (a contract, not an implementation)
        """The price for `size` people together in closed form, or None."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """One line, in words, without the neighbour relation."""

    # --- storage --------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The piece as plain values."""
        values = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        return {"kind": type(self).__name__, **values}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Piece:
        """Rebuild a piece from `to_dict`."""
        values = dict(data)
        kind = values.pop("kind", None)
        if kind not in Piece.kinds:
            known = ", ".join(sorted(Piece.kinds))
            raise ValueError(f"a stored piece has kind {kind!r}, allowed are {known}; upgrade discreet")
        values = {name: _rebuild(value) for name, value in values.items()}
        values["neighbours"] = as_neighbours(values["neighbours"])
        return Piece.kinds[kind](**values)


def _plain_number(field: Field[Any], value: object) -> object:
    """A price is made of finite, non-negative, plain numbers, wherever it was read from."""
    if field.type == "float":
        return checks.real(field.name, cast("float", value), at_least=0.0)
    if field.type == "int":
        return checks.integer(field.name, cast("int", value), at_least=0)
    if field.type == "tuple[float, ...]":
        numbers = cast("tuple[float, ...]", value)
        return tuple(checks.real(field.name, number, at_least=0.0) for number in numbers)
    return value


def _plain(value: object) -> Any:
    if isinstance(value, Piece):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(v) for v in cast("tuple[object, ...]", value)]
    return str(value) if isinstance(value, Neighbours) else value


def _rebuild(value: Any) -> Any:
    if isinstance(value, Mapping) and "kind" in value:
        return Piece.from_dict(cast("Mapping[str, Any]", value))
    return (
        tuple(_rebuild(v) for v in cast("list[Any]", value))
        if isinstance(value, list)
        else cast("Any", value)
    )


def one(function: Callable[[Array], Array], value: ArrayLike) -> float:
    """Evaluate a vectorised function at one point."""
    return float(function(np.atleast_1d(np.asarray(value, dtype=float)))[0])
