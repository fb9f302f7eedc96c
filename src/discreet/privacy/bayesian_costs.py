"""What one step costs one person: lambda D_{lambda + 1} as a function of how far that person moves it.

`order` on this page is lambda = (Renyi order) - 1, as in paper Y. Proof page:
docs/proofs/bayesian_accountant.md#costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from discreet.privacy import checks
from discreet.privacy.arrays import Array
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.subsampled import PoissonGaussian

_TOO_QUIET = 0.1  # noise over distance below which sampling hides nothing


@dataclass(frozen=True)
class SubsampledGaussian:
    """(1 - q) N(0, sigma^2) + q N(d, sigma^2) against N(0, sigma^2): a person who moves a Poisson batch by d.

    Attributes:
        rate: q, the probability that a person enters a step.
        sigma: standard deviation of the noise, in the unit of the distances.

    References: paper Y, Theorem 4; Mironov, Talwar & Zhang 2019.
    """

    rate: float
    sigma: float

    def __post_init__(self) -> None:
        checks.real("rate", self.rate, above=0.0, at_most=1.0)
        checks.real("sigma", self.sigma, above=0.0)

    def log_moments(self, orders: ArrayLike, distances: ArrayLike) -> Array:
        """Lambda D_{lambda + 1} for every order (rows) and distance (columns), increasing in both."""
        lam = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        far = np.atleast_1d(np.asarray(distances, dtype=np.float64)) / self.sigma
        plain = np.multiply.outer(lam * (lam + 1) / 2, far**2)
        if self.rate == 1:
            return plain
        found = np.empty_like(plain)
        whole = lam == np.floor(lam)
        for row in np.flatnonzero(whole):
            found[row] = left_term(int(lam[row]), self.rate, far)
        if not whole.all():
            sorted_first = np.argsort(far, kind="stable")
            for chunk in np.array_split(sorted_first, -(-far.size // 64)):
                found[np.ix_(~whole, chunk)] = _quadrature(self.rate, lam[~whole], far[chunk])
        return np.minimum(np.maximum.accumulate(found, axis=1) * (1 + 1e-11), plain)


def _quadrature(rate: float, orders: Array, distances: Array) -> Array:
    """The moments of real orders by the trapezoidal rule (docs/proofs/poisson_gaussian.md), noise 1."""
    most = float(distances.max())
    if most * _TOO_QUIET > 1:  # the curve without sampling is used
        return np.full((orders.size, distances.size), np.inf)
    z = np.arange(-2 * most - 14, (float(orders.max()) + 2) * most + 14, min(0.25, 0.5 / max(most, 1e-9)))
    log_ratio = np.logaddexp(
        math.log1p(-rate), math.log(rate) + np.multiply.outer(distances, z) - distances[:, None] ** 2 / 2
    )
    log_weight = math.log((z[1] - z[0]) / math.sqrt(2 * math.pi)) - z**2 / 2
    rows = [special.logsumexp((order + 1) * log_ratio + log_weight, axis=1) for order in orders]
    return np.maximum(np.stack(rows), 0.0) * (1 + 1e-12) + 1e-15


@dataclass(frozen=True)
class SubstitutedGaussian:
    """(1 - q) N(0) + q N(a) against (1 - q) N(0) + q N(b), |a - b| = d: a person is replaced.

    Without sampling it is exact. With it, the smaller of two bounds: joint
    convexity, which sees d but wins a factor q only, and the worst case, which
    wins q^2 but does not see d. Where people are sampled, ask about presence instead.

    Attributes:
        rate: q, the probability that a person enters a step.
        sigma: standard deviation of the noise, in the unit of the distances.
        largest: the norm that a and b were clipped to.
    """

    rate: float
    sigma: float
    largest: float

    def log_moments(self, orders: ArrayLike, distances: ArrayLike) -> Array:
        """Lambda D_{lambda + 1}, or a bound on it, for every order (rows) and distance (columns)."""
        lam = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        far = np.atleast_1d(np.asarray(distances, dtype=np.float64)) / self.sigma
        plain = np.multiply.outer(lam * (lam + 1) / 2, far**2)
        if self.rate == 1:
            return plain
        q = self.rate
        joint = np.where(
            plain < 1,
            np.log1p(q * np.expm1(np.minimum(plain, 1.0))),
            np.logaddexp(math.log1p(-q), math.log(q) + plain),
        )
        worst = PoissonGaussian(Neighbours.SUBSTITUTE, q, self.sigma / self.largest)
        return np.minimum(joint, (lam * worst.renyi(lam + 1))[:, None])


def left_term(order: int, rate: float, distances: ArrayLike) -> Array:
    """Log E_{k ~ B(order + 1, rate)} exp((k^2 - k) d^2 / 2), d in units of the noise: Theorem 4's c^L.

    It is order times D_{order + 1} of the subsampled law from the law without the
    person, exactly.
    """
    order = checks.integer("order", order, at_least=1)
    return _binomial_moment(order + 1, rate, distances, -1)


def right_term(order: int, rate: float, distances: ArrayLike) -> Array:
    """Log E_{k ~ B(order, rate)} exp((k^2 + k) d^2 / 2): Theorem 4's c^R.

    An upper bound on order times D_{order + 1} of the law without the person from
    the subsampled law; that divergence is never above the left term.
    """
    return _binomial_moment(checks.integer("order", order, at_least=1), rate, distances, 1)


def _binomial_moment(trials: int, rate: float, distances: ArrayLike, sign: int) -> Array:
    k = np.arange(trials + 1.0)
    square = np.asarray(distances, dtype=np.float64) ** 2
    with np.errstate(divide="ignore"):
        log_weight = (
            special.gammaln(trials + 1)
            - special.gammaln(k + 1)
            - special.gammaln(trials - k + 1)
            + special.xlogy(k, rate)
            + special.xlog1py(trials - k, -rate)
        )
    excess = np.multiply.outer(square, (k**2 + sign * k) / 2)
    # E (e^x - 1) keeps small moments; the logarithm of the sum keeps large ones.
    small = np.log1p((np.exp(log_weight) * np.expm1(np.minimum(excess, 30.0))).sum(axis=-1))
    large = special.logsumexp(log_weight + excess, axis=-1)
    return np.asarray(np.where(excess.max(axis=-1) < 30, small, large), dtype=np.float64)


def normals_log_moments(orders: ArrayLike, shift: ArrayLike, sd_p: ArrayLike, sd_q: ArrayLike) -> Array:
    """The log moment between independent normals, larger of both directions, summed over the last axis.

    For variational posteriors with and without a person; the last axis is the
    coordinate. Infinite where a divergence is.

    Returns:
        One row for each order, then the leading axes of the arguments.
    """
    lam = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    arrays = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (shift, sd_p, sd_q)))
    there, back = (
        np.stack([_renyi_normals(order + 1, arrays[0], p, q).sum(axis=-1) * order for order in lam])
        for p, q in ((arrays[1], arrays[2]), (arrays[2], arrays[1]))
    )
    return np.maximum(there, back)


def _renyi_normals(order: float, shift: Array, sd_p: Array, sd_q: Array) -> Array:
    """`divergences.renyi_normals` for arrays of normals, with the logarithms merged for nearly equal ones."""
    ratio = (sd_p / sd_q) ** 2 - 1
    mixed = 1 - (order - 1) * ratio  # order sd_q^2 + (1 - order) sd_p^2, over sd_q^2
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = -(np.log1p(ratio) + np.log1p(-(order - 1) * ratio) / (order - 1)) / 2
        value = logs + order * (shift / sd_q) ** 2 / (2 * mixed)
    return np.where(mixed > 0, np.maximum(value, 0.0) + 1e-16, np.inf)
