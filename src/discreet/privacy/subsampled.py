# pyright: reportMissingTypeStubs=false
"""Prices of mechanisms that look at a random part of the data.

Proof pages: docs/proofs/poisson_gaussian.md, docs/proofs/without_replacement.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from discreet.privacy.arrays import Array
from discreet.privacy.basic import NOT_ZERO, Pure, RenyiCurve
from discreet.privacy.divergences import hockey_stick_normals
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.pieces import Piece

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@dataclass(frozen=True)
class PoissonGaussian(Piece):
    """A sum of vectors of norm at most 1 over a Poisson sample, plus N(0, sigma^2) noise.

    One record adds or removes a vector of norm 1 (`add_remove`), or turns one into
    its negative (`substitute`): the same noise, twice the distance.
    """

    rate: float
    sigma: float

    def renyi(self, orders: Array) -> Array:
        return _poisson_renyi(self).renyi(orders)

    def profile(self, epsilons: Array) -> Array:
        if self.neighbours is Neighbours.SUBSTITUTE:
            return np.maximum(self._substituted(epsilons), NOT_ZERO)
        return np.maximum(np.maximum(self._removed(epsilons), self._added(epsilons)), NOT_ZERO)

    def _removed(self, epsilons: Array) -> Array:
        """(1-q) N(0) + q N(1) against N(0): amplification gives q delta(log(1 + (e^eps - 1)/q))."""
        return self.rate * hockey_stick_normals(_amplified(epsilons, self.rate), 1 / self.sigma, 1.0, 1.0)

    def _added(self, epsilons: Array) -> Array:
        """N(0) against (1-q) N(0) + q N(1), on the half-line where the ratio exceeds e^eps."""
        odds = np.exp(-epsilons) - (1 - self.rate)
        reachable = odds > 0
        t = self.sigma**2 * np.log(np.where(reachable, odds, 1.0) / self.rate) + 0.5
        low, high = special.ndtr(t / self.sigma), special.ndtr((t - 1) / self.sigma)
        gap = low - np.exp(np.minimum(epsilons, 700.0)) * ((1 - self.rate) * low + self.rate * high)
        return np.where(reachable, np.maximum(gap, 0.0), 0.0)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _substituted(self, epsilons: Array) -> Array:
        """(1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1); the event is a half-line x > t."""
        q, s = self.rate, self.sigma
        # small z^2 - (a - 1)(1 - q) z - a small = 0 in z = e^(t / s^2), with a = e^eps, all in logs.
        log_small = math.log(q) - 1 / (2 * s**2)
        log_linear = epsilons + np.log(-np.expm1(-epsilons)) + (math.log1p(-q) if q < 1 else -math.inf)
        log_root = np.logaddexp(2 * log_linear, math.log(4) + 2 * log_small + epsilons) / 2
        t = s**2 * (np.logaddexp(log_linear, log_root) - math.log(2) - log_small)
        gap = (
            q * special.ndtr((1 - t) / s)
            - np.exp(epsilons + math.log(q) + special.log_ndtr((-1 - t) / s))
            - np.exp(log_linear + special.log_ndtr(-t / s))
        )
        return np.maximum(gap, 0.0)

    def loss_distribution(self, interval: float) -> PrivacyLossDistribution:
        import dp_accounting
        from dp_accounting.pld import privacy_loss_distribution

        relation = dp_accounting.NeighboringRelation
        substitute = self.neighbours is Neighbours.SUBSTITUTE
        return privacy_loss_distribution.from_gaussian_mechanism(
            self.sigma,
            sampling_prob=self.rate,
            value_discretization_interval=interval,
            neighboring_relation=relation.REPLACE_ONE if substitute else relation.ADD_OR_REMOVE_ONE,
        )

    def describe(self) -> str:
        return f"Poisson-subsampled Gaussian, rate {self.rate:.6g}, noise multiplier {self.sigma:.6g}"


def _amplified(epsilons: Array, rate: float) -> Array:
    """The epsilon at which the unsampled mechanism is asked: log(1 + (e^eps - 1)/rate)."""
    with np.errstate(over="ignore"):
        grown = np.expm1(np.minimum(epsilons, 700.0)) / rate
    return np.where(np.isfinite(grown), np.log1p(grown), epsilons - math.log(rate))


_TOO_QUIET = 0.1


@lru_cache(maxsize=256)
def _poisson_renyi(piece: PoissonGaussian) -> RenyiCurve:
    """The Renyi curve of the worst pair by quadrature, at 400 orders.

    The pair is (1-q) N(0) + q N(1) and N(0), or its own mirror image under
    substitution; the reverse order of the first never diverges more (Mironov, Talwar &
    Zhang 2019, Theorem 5). The integrand is analytic in a strip of half-width pi s^2,
    so the trapezoidal rule with this step errs by less than e^-38 of its value. Where there
    is next to no noise, the curve without sampling is an upper bound and enough.
    """
    q, s = piece.rate, piece.sigma
    if s < _TOO_QUIET:
        reach = 2 if piece.neighbours is Neighbours.SUBSTITUTE else 1
        return RenyiCurve(piece.neighbours, (2.0, 1e6), (reach**2 / s**2, 5e5 * reach**2 / s**2))
    top = 1 + 500 * min(1.0, s**2)
    whole = np.arange(2.0, min(64.0, top))  # the usual best orders, met exactly
    orders = np.unique(np.concatenate([1 + np.geomspace(0.05, top - 1, 400), whole]))
    chunks = np.array_split(orders, 8)
    values = np.concatenate([_mixture_renyi(q, s, chunk, piece.neighbours) for chunk in chunks])
    values = np.maximum.accumulate(values)
    return RenyiCurve(piece.neighbours, tuple(orders.tolist()), tuple(values.tolist()))


def _mixture_renyi(q: float, s: float, orders: Array, neighbours: Neighbours) -> Array:
    # The components of the integrand lie between -1 and the order, or 2 order - 1 under substitution.
    reach = 2 * orders[-1] if neighbours is Neighbours.SUBSTITUTE else orders[-1]
    x = np.arange(-2 - 14 * s, reach + 14 * s, min(s / 4, s**2 / 2))
    log_rest = math.log1p(-q) if q < 1 else -math.inf
    log_p = np.logaddexp(log_rest, math.log(q) + (2 * x - 1) / (2 * s**2))
    log_q = np.zeros_like(x)
    if neighbours is Neighbours.SUBSTITUTE:
        log_q = np.logaddexp(log_rest, math.log(q) - (2 * x + 1) / (2 * s**2))
    log_terms = np.outer(orders, log_p - log_q) + (log_q - x**2 / (2 * s**2))
    log_moments = special.logsumexp(log_terms, axis=1) + math.log(
        (x[1] - x[0]) / (s * math.sqrt(2 * math.pi))
    )
    margin = 1e-15 / (orders - 1)  # for rounding
    return np.maximum(log_moments / (orders - 1), 0.0) * (1 + 1e-12) + margin


@dataclass(frozen=True)
class WithoutReplacement(Piece):
    """A mechanism run on a uniform sample without replacement, a `rate` of the records.

    The profile is Balle, Barthe & Gaboardi 2018, Theorem 9; the Renyi curve is
    Wang, Balle & Kasiviswanathan 2019, Theorem 9 (integer orders, chords between).
    Both are about substitution of one record, and `base` prices the mechanism for
    substitution inside the sample.
    """

    base: Piece
    rate: float

    @property
    def slack(self) -> float:
        return self.rate * self.base.slack

    def pure(self) -> float:
        worst = self.base.pure()
        return math.log1p(self.rate * math.expm1(worst)) if worst < 700 else worst + math.log(self.rate)

    def renyi(self, orders: Array) -> Array:
        if self.base.slack > 0:  # outside the slack, only the pure bound is known
            return Pure(self.neighbours, self.pure()).renyi(orders)
        known, values = _sampled_curve(self)
        inside = np.clip(orders, 2.0, None)
        right = np.clip(np.searchsorted(known, inside, side="left"), 1, len(known) - 1)
        left = right - 1
        weight = inside - known[left]
        with np.errstate(invalid="ignore"):
            chord = (1 - weight) * (known[left] - 1) * values[left] + weight * (known[right] - 1) * values[
                right
            ]
        curve = np.where(weight == 1, values[right], chord / (inside - 1))
        return np.where((inside > known[-1]) | np.isnan(curve), np.inf, curve)

    def profile(self, epsilons: Array) -> Array:
        return self.rate * self.base.profile(_amplified(epsilons, self.rate))

    def largest_loss(self) -> float:
        worst = self.base.largest_loss()
        return math.log1p(self.rate * math.expm1(worst)) if worst < 700 else worst + math.log(self.rate)

    def describe(self) -> str:
        return f"sample without replacement at rate {self.rate:.6g} of [{self.base.describe()}]"


_SAMPLED_ORDERS = 256


@lru_cache(maxsize=64)
def _sampled_curve(piece: WithoutReplacement) -> tuple[Array, Array]:
    """Wang et al. 2019, Theorem 9 at the integer orders 2.. where the base is finite."""
    orders = np.arange(2.0, _SAMPLED_ORDERS + 1)
    base, worst = piece.base.renyi(orders), _log_expm1(piece.base.pure())
    terms = np.minimum(math.log(2), orders * worst) + (orders - 1) * base
    terms[0] = min(math.log(4) + _log_expm1(float(base[0])), float(terms[0]))
    log_q = math.log(piece.rate)
    values = np.full_like(orders, np.inf)
    for i, order in enumerate(orders):
        j = orders[: i + 1]
        binomial = special.gammaln(order + 1) - special.gammaln(j + 1) - special.gammaln(order - j + 1)
        log_sum = special.logsumexp(np.concatenate([[0.0], binomial + j * log_q + terms[: i + 1]]))
        values[i] = log_sum / (order - 1)
    return orders, values


def _log_expm1(x: float) -> float:
    """log(e^x - 1) without overflow; -inf at 0."""
    if x <= 0:
        return -math.inf
    return math.log(math.expm1(x)) if x < 700 else x
