"""Prices of the classical mechanisms and definitions.

Proof page: docs/proofs/basic.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.privacy import chords, divergences
from discreet.privacy.arrays import Array
from discreet.privacy.conversion import delta_from_renyi
from discreet.privacy.pieces import Piece

NOT_ZERO = 1e-305
"""A delta too small for a float."""


@dataclass(frozen=True)
class Pure(Piece):
    """epsilon-differential privacy; randomised response is the worst such pair."""

    epsilon: float

    def pure(self) -> float:
        return self.epsilon

    def renyi(self, orders: Array) -> Array:
        return divergences.renyi_randomised_response(orders, self.epsilon)

    def profile(self, epsilons: Array) -> Array:
        # (e^eps0 - e^eps) / (1 + e^eps0), written so that large epsilons do not overflow.
        below = np.minimum(epsilons - self.epsilon, 0.0)
        return -np.expm1(below) * _heads(self.epsilon)

    def for_group(self, size: int) -> Piece:
        return Pure(self.neighbours, size * self.epsilon)

    def describe(self) -> str:
        return f"pure differential privacy, epsilon {self.epsilon:.6g}"


def _heads(epsilon: float) -> float:
    """The larger probability of randomised response at epsilon."""
    return 1 / (1 + math.exp(-epsilon))


@dataclass(frozen=True)
class Approximate(Piece):
    """(epsilon, delta)-differential privacy at one point and nothing else.

    Outside an event of probability delta it is epsilon-pure (Kairouz, Oh &
    Viswanath 2015), so delta is `slack` and the rest is `Pure`.
    """

    epsilon: float
    delta: float

    @property
    def slack(self) -> float:
        return self.delta

    def pure(self) -> float:
        return self.epsilon

    def renyi(self, orders: Array) -> Array:
        return self._rest.renyi(orders)

    def profile(self, epsilons: Array) -> Array:
        return self.delta + (1 - self.delta) * self._rest.profile(epsilons)

    @property
    def _rest(self) -> Pure:
        return Pure(self.neighbours, self.epsilon)

    def describe(self) -> str:
        return f"approximate differential privacy, epsilon {self.epsilon:.6g} at delta {self.delta:.3g}"


@dataclass(frozen=True)
class BoundedRange(Piece):
    """The privacy loss spans an interval no longer than `width` that covers 0.

    One draw of an exponential mechanism or of a posterior whose log density moves
    by at most width/2 either way. Worst case: two outcomes, at loss t and
    t - width, with the offset t chosen for the question asked.

    References: Durfee & Rogers 2019; Dong, Durfee & Rogers 2020.
    """

    width: float

    def pure(self) -> float:
        return self.width

    def renyi(self, orders: Array) -> Array:
        if self.width == 0:
            return np.zeros_like(orders)
        # E[(P/Q)^(order-1)] at offset t is y^(o-1) (E - E^(1-o)) - y^o (1 - E^(1-o)), over E - 1,
        # with y = e^t and E = e^width; the maximising y has a closed form.
        w, o = self.width, orders
        shrink = -np.expm1(-w * o)  # 1 - E^-o
        log_gap = w + np.log(shrink)  # log(E - E^(1-o))
        log_low = np.log(-np.expm1(-(o - 1) * w))  # log(1 - E^(1-o))
        t = np.clip(np.log1p(-1 / o) + log_gap - log_low, 0.0, w)
        log_mean = t * (o - 1) + log_gap + np.log1p(-np.minimum(np.exp(t - log_gap + log_low), 1 - 1e-16))
        log_mean -= w + math.log(-math.expm1(-w))
        # Rounding costs the closed form about 1e-16 / w; where that matters, w^2 / 8 is as good.
        exact = np.maximum(log_mean / (o - 1), 0.0) * (1 + 1e-12) + 4e-15 * (1 + 1 / w) / (o - 1)
        return np.minimum(np.where((w > 1e-3) & (o * w > 0.005), exact, np.inf), np.minimum(o * w**2 / 8, w))

    def profile(self, epsilons: Array) -> Array:
        # sup over t of P(loss = t)(1 - e^(eps - t)) = (e^(w/2) - e^(eps/2))^2 / (e^w - 1).
        if self.width == 0:
            return np.zeros_like(epsilons)
        gap = np.maximum(-np.expm1((epsilons - self.width) / 2), 0.0)
        return gap**2 / -math.expm1(-self.width)

    def for_group(self, size: int) -> Piece:
        return BoundedRange(self.neighbours, size * self.width)

    def describe(self) -> str:
        return f"bounded range, privacy loss within an interval of length {self.width:.6g}"


@dataclass(frozen=True)
class ZCDP(Piece):
    """rho-zero-concentrated differential privacy (Bun & Steinke 2016)."""

    rho: float

    def pure(self) -> float:
        return 0.0 if self.rho == 0 else math.inf

    def renyi(self, orders: Array) -> Array:
        return self.rho * orders

    def profile(self, epsilons: Array) -> Array:
        return delta_from_renyi(self.renyi, epsilons)

    def for_group(self, size: int) -> Piece:
        return ZCDP(self.neighbours, size**2 * self.rho)

    def describe(self) -> str:
        return f"zero-concentrated differential privacy, rho {self.rho:.6g}"


@dataclass(frozen=True)
class Gaussian(Piece):
    """N(0, 1) against N(mu, 1): Gaussian differential privacy (Dong, Roth & Su 2022)."""

    mu: float

    def pure(self) -> float:
        return 0.0 if self.mu == 0 else math.inf

    @np.errstate(over="ignore")
    def renyi(self, orders: Array) -> Array:
        return orders * np.float64(self.mu) ** 2 / 2

    def profile(self, epsilons: Array) -> Array:
        if self.mu == 0:
            return np.zeros_like(epsilons)
        return np.maximum(divergences.hockey_stick_normals(epsilons, self.mu, 1.0, 1.0), NOT_ZERO)

    def for_group(self, size: int) -> Piece:
        return Gaussian(self.neighbours, size * self.mu)

    def describe(self) -> str:
        return f"Gaussian differential privacy, mu {self.mu:.6g}"


@dataclass(frozen=True)
class Normals(Piece):
    """Two normals of any variances, in both orders: N(shift, sd_p^2) and N(0, sd_q^2)."""

    shift: float
    sd_p: float
    sd_q: float

    def pure(self) -> float:
        return 0.0 if self.shift == 0 and self.sd_p == self.sd_q else math.inf

    def renyi(self, orders: Array) -> Array:
        there = divergences.renyi_normals(orders, self.shift, self.sd_p, self.sd_q)
        return np.maximum(there, divergences.renyi_normals(orders, self.shift, self.sd_q, self.sd_p))

    def profile(self, epsilons: Array) -> Array:
        there = divergences.hockey_stick_normals(epsilons, self.shift, self.sd_p, self.sd_q)
        return np.maximum(there, divergences.hockey_stick_normals(epsilons, self.shift, self.sd_q, self.sd_p))

    def describe(self) -> str:
        return f"normals {self.shift:.6g} apart with standard deviations {self.sd_p:.6g} and {self.sd_q:.6g}"


@dataclass(frozen=True)
class Laplace(Piece):
    """Laplace noise of scale 1 on a quantity that moves by at most `shift`."""

    shift: float

    def pure(self) -> float:
        return self.shift

    def renyi(self, orders: Array) -> Array:
        return divergences.renyi_laplace(orders, self.shift, 1.0)

    def profile(self, epsilons: Array) -> Array:
        return divergences.hockey_stick_laplace(epsilons, self.shift, 1.0)

    def for_group(self, size: int) -> Piece:
        return Laplace(self.neighbours, size * self.shift)

    def describe(self) -> str:
        return f"Laplace mechanism, epsilon {self.shift:.6g}"


@dataclass(frozen=True)
class RenyiCurve(Piece):
    """A Renyi curve known at finitely many orders.

    Between two orders, (order - 1) D(order) is convex, so the chord of that
    product is an upper bound; below the first order D is at most D(first).
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]

    def pure(self) -> float:
        return 0.0 if self.values[-1] == 0 else math.inf

    @np.errstate(over="ignore", invalid="ignore")
    def renyi(self, orders: Array) -> Array:
        known, values = np.array(self.orders), np.array(self.values)
        right = np.clip(np.searchsorted(known, orders, side="left"), 0, len(known) - 1)
        left = np.maximum(right - 1, 0)
        width = np.where(right > left, known[right] - known[left], 1.0)
        weight = (orders - known[left]) / width
        chord = (1 - weight) * (known[left] - 1) * values[left] + weight * (known[right] - 1) * values[right]
        between = np.where(right > left, chord / (orders - 1), values[0])
        return np.where(orders > known[-1], np.inf, np.minimum(between, values[right]))

    def profile(self, epsilons: Array) -> Array:
        return delta_from_renyi(self.renyi, epsilons)

    def describe(self) -> str:
        return (
            f"Renyi curve known at {len(self.orders)} orders from {self.orders[0]:g} to {self.orders[-1]:g}"
        )


@dataclass(frozen=True)
class Profile(Piece):
    """A hockey-stick curve known at finitely many epsilons, the first of them 0.

    Between two points the chord in e^eps is an upper bound; past the last one
    the delta is at most the last.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]

    def pure(self) -> float:
        return next((e for e, d in zip(self.epsilons, self.deltas, strict=True) if d == 0), math.inf)

    def renyi(self, orders: Array) -> Array:
        worst = self.pure()
        return (
            Pure(self.neighbours, worst).renyi(orders)
            if math.isfinite(worst)
            else np.full_like(orders, worst)
        )

    def profile(self, epsilons: Array) -> Array:
        return chords.along(np.array(self.epsilons), np.array(self.deltas), epsilons)

    def largest_loss(self) -> float:
        floor = self.deltas[-1] + 1e-18
        return next(e for e, d in zip(self.epsilons, self.deltas, strict=True) if d <= floor and e > 0)

    def describe(self) -> str:
        return f"privacy profile known at {len(self.epsilons)} epsilons up to {self.epsilons[-1]:g}"
