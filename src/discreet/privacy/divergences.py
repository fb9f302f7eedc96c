"""Closed-form divergences between output distributions.

Two quantities describe how well an attacker tells P from Q:

* the hockey-stick divergence H(P||Q; eps) = sup_A P(A) - e^eps Q(A), which is the
  delta at that eps, and
* the Renyi divergence D(P||Q; order) = log E_Q[(P/Q)^order] / (order - 1).

Every function here is vectorised over `epsilons` or `orders`, stable in the
tails, and infinite (never NaN) where the divergence is. Proofs and conditions:
docs/proofs/divergences.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from discreet.privacy.arrays import Array

LogPartition = Callable[[Array], float]

_ROOT_HALF_PI = np.sqrt(np.pi / 2)
_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)
_UP, _DOWN = 1 + 6e-16, 1 - 6e-16
_SPECIAL_UP = 1 + 1e-14


# --- normal against normal ---------------------------------------------------


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def hockey_stick_normals(epsilons: ArrayLike, shift: float, sd_p: float, sd_q: float) -> Array:
    """H(N(shift, sd_p^2) || N(0, sd_q^2); eps) for any two variances.

    The log density ratio is a quadratic, so the optimal event is a half-line, an
    interval or the complement of one. Where the two densities cross, P's density
    equals e^eps times Q's, which turns the difference of two tails into a
    difference of Mills ratios without cancellation.
    """
    eps = np.asarray(epsilons, dtype=float)
    d, sd_p, sd_q = (np.float64(abs(v)) for v in (shift, sd_p, sd_q))
    # L(x) - eps = a x^2 + b x + c with L the log ratio; a = 0 for equal variances.
    a = (1 / sd_q**2 - 1 / sd_p**2) / 2
    b = d / sd_p**2
    c = -(d**2) / (2 * sd_p**2) + np.log(sd_q / sd_p) - eps
    if b == 0 and a == 0:
        return np.maximum(-np.expm1(eps), 0.0)

    discriminant = b * b - 4 * a * c
    root = -(b + np.sqrt(np.maximum(discriminant, 0.0))) / 2
    near = np.where(root != 0, c / root, np.inf)
    far = root / a if a != 0 else np.full_like(root, -np.inf)

    def upper(t: Array) -> Array:  # P(X > t) - e^eps Q(X > t), at a crossing
        return _tail_gap(t - d, sd_p, t, sd_q, eps)

    if a > 0:  # P is wider: both tails belong to the event
        gap = upper(near) + _tail_gap(d - far, sd_p, -far, sd_q, eps)
        gap = np.where(discriminant <= 0, -np.expm1(eps), gap)
    elif a < 0:  # P is narrower: an interval, or nothing
        gap = np.where(discriminant <= 0, 0.0, upper(near) - upper(far))
    else:
        gap = upper(near)
    gap = np.where(np.isnan(gap), 1.0, gap)  # beyond the range of floats nothing is promised
    return np.clip(np.maximum(gap, -np.expm1(eps)), 0.0, 1.0)


def _tail_gap(u: Array, sd_p: float, v: Array, sd_q: float, eps: Array) -> Array:
    """P(X > t) - e^eps Q(X > t) where t lies u above P's mean and v above Q's."""
    z_p, z_q = u / sd_p, v / sd_q
    density = np.exp(-(z_p**2) / 2 - _LOG_ROOT_TWO_PI) / sd_p
    # The two terms may nearly cancel, so their rounding is added, not hoped away.
    mills = density * _ROOT_HALF_PI * (sd_p * _erfcx(z_p) * _UP - sd_q * _erfcx(z_q) * _DOWN)
    direct = special.ndtr(-z_p) * _UP - np.exp(np.minimum(eps + special.log_ndtr(-z_q), 700.0)) * _DOWN
    return np.where((z_p > -1) & (z_q > -1), np.where(density > 0, mills, 0.0), direct)


def _erfcx(z: Array) -> Array:
    return np.asarray(special.erfcx(np.maximum(z, -2.0) / np.sqrt(2)), dtype=np.float64)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def renyi_normals(orders: ArrayLike, shift: float, sd_p: float, sd_q: float) -> Array:
    """D(N(shift, sd_p^2) || N(0, sd_q^2); order), infinite past the asymptote (Gil et al. 2013)."""
    order, shift, sd_p, sd_q = np.asarray(orders, float), *map(np.float64, (shift, sd_p, sd_q))
    mixed = order * sd_q**2 + (1 - order) * sd_p**2
    ok = mixed > 0
    safe = np.where(ok, mixed, 1.0)
    value = np.log(sd_q / sd_p) + np.log(sd_q**2 / safe) / (2 * (order - 1)) + order * shift**2 / (2 * safe)
    return np.where(ok, np.maximum(value, 0.0), np.inf)


# --- Laplace -----------------------------------------------------------------


@np.errstate(over="ignore")
def hockey_stick_laplace(epsilons: ArrayLike, shift: float, scale: float) -> Array:
    """H between two Laplace laws of one scale whose centres differ by `shift`."""
    eps, ratio = np.asarray(epsilons, dtype=float), abs(shift) / scale
    gap = -np.expm1((eps - ratio) / 2)
    return np.clip(np.where(eps >= -ratio, np.maximum(gap, 0.0), -np.expm1(eps)), 0.0, 1.0)


def renyi_laplace(orders: ArrayLike, shift: float, scale: float) -> Array:
    """D between two Laplace laws of one scale whose centres differ by `shift` (Mironov 2017, Table II)."""
    order, r = np.asarray(orders, dtype=float), abs(shift) / scale
    w = order / (2 * order - 1)
    # The first powers of r cancel, so they are left out and not subtracted.
    excess = w * _exp_rest((order - 1) * r) + (1 - w) * _exp_rest(-order * r)
    large = np.logaddexp(np.log(w) + (order - 1) * r, np.log1p(-w) - order * r)
    log_moment = np.where(order * r > 1, large, np.log1p(excess))
    return np.asarray(np.maximum(log_moment / (order - 1), 0.0) * _SPECIAL_UP, dtype=np.float64)


@np.errstate(over="ignore")
def _exp_rest(x: Array) -> Array:
    """e^x - 1 - x without cancellation near 0."""
    series = x**2 / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7 * (1 + x / 8))))))
    return np.where(np.abs(x) < 0.05, series, np.expm1(x) - x)


@np.errstate(over="ignore", invalid="ignore")
def renyi_randomised_response(orders: ArrayLike, epsilon: float) -> Array:
    """D of randomised response: log(cosh((order - 1/2) epsilon) / cosh(epsilon / 2)) / (order - 1)."""
    order = np.asarray(orders, dtype=float)
    product = 2 * np.sinh(order * epsilon / 2) * np.sinh((order - 1) * epsilon / 2)
    small = np.log1p(product / math.cosh(min(epsilon, 700.0) / 2))
    large = (order - 1) * epsilon - np.log1p(np.exp(-epsilon)) + np.log1p(np.exp(-(2 * order - 1) * epsilon))
    log_moment: Array = np.where(order * epsilon > 30, large, small)
    return np.asarray(np.minimum(log_moment / (order - 1) * _SPECIAL_UP, epsilon), dtype=np.float64)


# --- two-point laws ----------------------------------------------------------


def hockey_stick_two_point(epsilons: ArrayLike, p: float, q: float) -> Array:
    """H(Bernoulli(p) || Bernoulli(q); eps)."""
    factor = np.exp(np.asarray(epsilons, dtype=float))
    return np.maximum(p - factor * q, 0.0) + np.maximum((1 - p) - factor * (1 - q), 0.0)


def renyi_two_point(orders: ArrayLike, p: float, q: float) -> Array:
    """D(Bernoulli(p) || Bernoulli(q); order)."""
    order = np.asarray(orders, dtype=float)

    def term(a: float, b: float) -> Array:
        if a == 0:
            return np.full_like(order, -np.inf)
        return np.full_like(order, np.inf) if b == 0 else order * np.log(a) + (1 - order) * np.log(b)

    return np.maximum(np.logaddexp(term(p, q), term(1 - p, 1 - q)) / (order - 1), 0.0)


# --- members of one exponential family ---------------------------------------


def renyi_exponential_family(
    orders: ArrayLike, log_partition: LogPartition, eta_p: Sequence[float], eta_q: Sequence[float]
) -> Array:
    """D between two members of one exponential family with natural parameters eta.

    D = [C(order eta_p + (1 - order) eta_q) - order C(eta_p)] / (order - 1) + C(eta_q)
    with C the log-partition function, which must return +inf outside its domain.

    References: Geumlek, Song & Chaudhuri 2017, equation (5).
    """
    p, q = np.asarray(eta_p, dtype=float), np.asarray(eta_q, dtype=float)
    at_p, at_q = log_partition(p), log_partition(q)
    orders_1d = np.atleast_1d(np.asarray(orders, dtype=float))
    values = [(log_partition(o * p + (1 - o) * q) - o * at_p) / (o - 1) + at_q for o in orders_1d]
    result = np.maximum(np.array(values, dtype=float), 0.0)
    return result.reshape(np.shape(orders))


def hockey_stick_betas(epsilons: ArrayLike, a: ArrayLike, b: ArrayLike, weight: float) -> Array:
    """H(Beta(a + weight, b) || Beta(a, b + weight); eps), broadcast over eps, a and b.

    The log ratio is increasing in theta, so the optimal event is theta > t and
    both tails are regularised incomplete beta functions.
    """
    eps, a, b = (np.asarray(v, dtype=float) for v in (epsilons, a, b))
    offset = special.betaln(a, b + weight) - special.betaln(a + weight, b)
    crossing = (eps - offset) / weight  # logit of t
    log_p = _log_beta_tail(crossing, a + weight, b)
    log_q = _log_beta_tail(crossing, a, b + weight)
    with np.errstate(invalid="ignore"):
        gap = np.exp(log_p) * -np.expm1(np.minimum(eps + log_q - log_p, 0.0))
    return np.asarray(np.where(np.isneginf(log_p), 0.0, gap), dtype=np.float64)


@np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore")
def _log_beta_tail(logit: Array, a: Array, b: Array) -> Array:
    """Log P(Beta(a, b) > t) at logit t.

    Within e^-40 of either end only the leading power is left, and it is exact to
    rounding; between, the smaller of t and 1 - t is handed to the incomplete beta.
    """
    log_beta = special.betaln(a, b)
    near_one = b * special.log_expit(-logit) - np.log(b) - log_beta
    near_zero = np.log(-np.expm1(np.minimum(a * special.log_expit(logit) - np.log(a) - log_beta, 0.0)))
    upper = special.betainc(b, a, special.expit(-logit))
    lower = special.betaincc(a, b, special.expit(logit))
    between = np.log(np.where(logit > 0, upper, lower))
    return np.where(logit > 40, near_one, np.where(logit < -40, near_zero, between))


def renyi_betas(orders: ArrayLike, a: ArrayLike, b: ArrayLike, weight: float) -> Array:
    """D(Beta(a + weight, b) || Beta(a, b + weight); order), infinite at and past the asymptote."""
    order, a, b = (np.asarray(v, dtype=float) for v in (orders, a, b))
    mixed_a, mixed_b = a + order * weight, b + (1 - order) * weight
    ok = mixed_b > 0
    terms = (
        special.betaln(mixed_a, np.where(ok, mixed_b, 1.0)),
        -order * special.betaln(a + weight, b),
        (order - 1) * special.betaln(a, b + weight),
    )
    log_moment = terms[0] + terms[1] + terms[2] + 1e-15 * sum(np.abs(term) for term in terms)  # rounded up
    return np.where(ok, np.maximum(log_moment / (order - 1), 0.0), np.inf)
