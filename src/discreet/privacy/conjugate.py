"""Prices of one draw from a gamma, normal or normal-inverse-gamma posterior (paper R).

Proof page: docs/proofs/conjugate_families.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from discreet.privacy import checks
from discreet.privacy.arrays import Array
from discreet.privacy.basic import Gaussian
from discreet.privacy.conversion import delta_from_renyi
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.pieces import Piece

_UP = 1 + 1e-14
"""Relative margin for the rounding of a handful of arithmetic operations."""


# --- gamma -------------------------------------------------------------------


@dataclass(frozen=True)
class GammaPoisson(Piece):
    """One draw from Gamma(a + w sum(x), .) of counts in {0, .., largest} of weight w, any number of them.

    The rate cancels. Of all neighbours, Gamma(a + w largest) against Gamma(a) is
    the worst for every divergence (docs/proofs/conjugate_families.md#gamma).
    """

    shape: float
    largest: int
    weight: float

    def renyi(self, orders: Array) -> Array:
        shift = self.weight * self.largest
        there = renyi_gammas(orders, self.shape + shift, self.shape)
        return np.maximum(there, renyi_gammas(orders, self.shape, self.shape + shift))

    def profile(self, epsilons: Array) -> Array:
        return hockey_stick_gammas(epsilons, self.shape, self.weight * self.largest)

    def describe(self) -> str:
        counts = f"counts up to {self.largest}"
        return (
            f"one gamma-Poisson posterior draw, prior shape {self.shape:g}, {counts}, "
            f"records weighted {self.weight:.6g}"
        )


def renyi_gammas(orders: Array, shape_p: float, shape_q: float) -> Array:
    """D(Gamma(shape_p) || Gamma(shape_q); order) at one rate, infinite at and past the asymptote."""
    mixed = shape_q + orders * (shape_p - shape_q)
    ok = mixed > 0
    terms = (
        special.gammaln(np.where(ok, mixed, 1.0)),
        -orders * special.gammaln(shape_p),
        (orders - 1) * special.gammaln(shape_q),
    )
    log_moment = terms[0] + terms[1] + terms[2] + 1e-15 * sum(np.abs(term) for term in terms)  # rounded up
    return np.where(ok, np.maximum(log_moment / (orders - 1), 0.0), np.inf)


def hockey_stick_gammas(epsilons: Array, shape: float, shift: float) -> Array:
    """H between Gamma(shape + shift) and Gamma(shape) at one rate, whichever order is worse.

    The log ratio is increasing in x, so the optimal event is a half-line and both
    tails are regularised incomplete gamma functions.
    """
    eps = np.asarray(epsilons, dtype=np.float64)
    log_ratio = special.gammaln(shape + shift) - special.gammaln(shape)
    with np.errstate(over="ignore"):
        above, below = np.exp((log_ratio + eps) / shift), np.exp((log_ratio - eps) / shift)
        factor = np.exp(np.minimum(eps, 700.0))
    upper_p, upper_q = special.gammaincc(shape + shift, above), special.gammaincc(shape, above)
    lower_p, lower_q = special.gammainc(shape, below), special.gammainc(shape + shift, below)
    up = upper_p - np.where(upper_q > 0, factor * upper_q, 0.0) + 1e-14 * upper_p
    down = lower_p - np.where(lower_q > 0, factor * lower_q, 0.0) + 1e-14 * lower_p
    worse = np.maximum(up, down) * (1 + 1e-9)  # incomplete gammas lose digits deep in the tail
    return np.asarray(np.clip(worse, 0.0, 1.0), dtype=np.float64)


def gamma_poisson(shape: float, largest: int, *, weight: float = 1.0) -> Guarantee:
    """One draw from the gamma posterior of bounded counts, under substitution; any number of records.

    Args:
        shape: first parameter of the prior.
        largest: the declared largest count, enforced before use.
        weight: what each record counts (paper R's r).

    References: Geumlek, Song & Chaudhuri 2017, Algorithms 1 to 3;
        docs/proofs/conjugate_families.md.

    Example:
        >>> f"{gamma_poisson(20, 5, weight=0.2).epsilon(1e-6):.3f}"
        '1.128'
    """
    piece = GammaPoisson(
        Neighbours.SUBSTITUTE,
        checks.real("shape", shape, above=0.0),
        checks.integer("largest", largest, at_least=1),
        checks.real("weight", weight, above=0.0, at_most=1.0),
    )
    return Guarantee(((piece, 1),), Neighbours.SUBSTITUTE)


# --- normal, variance known --------------------------------------------------


def normal_mean(
    precision: float, variance: float, width: float, size: int, *, weight: float = 1.0
) -> Guarantee:
    """One draw from the normal posterior of a mean, variance known, under substitution.

    Neighbouring posteriors are normals of one variance, so this is exactly Gaussian
    differential privacy.

    Args:
        precision: of the prior, one over its variance.
        variance: of one record, known.
        width: largest minus smallest admissible record, enforced before use.
        size: number of records, public.
        weight: what each record counts (paper R's r).

    References: docs/proofs/conjugate_families.md.

    Example:
        >>> f"{normal_mean(1.0, 1.0, 2.0, 100).epsilon(1e-6):.3f}"
        '0.830'
    """
    checks.real("precision", precision, above=0.0)
    checks.real("variance", variance, above=0.0)
    checks.real("width", width, above=0.0)
    checks.integer("size", size, at_least=1)
    each = checks.real("weight", weight, above=0.0, at_most=1.0) / variance
    mu = each * width / math.sqrt(precision + each * size)
    return Guarantee(((Gaussian(Neighbours.SUBSTITUTE, mu * _UP), 1),), Neighbours.SUBSTITUTE)


# --- normal, variance unknown ------------------------------------------------


@dataclass(frozen=True)
class NormalInverseGamma(Piece):
    """One draw of (mean, variance) from a normal-inverse-gamma posterior of bounded records.

    Prior: precision t ~ Gamma(shape, rate), mean ~ N(0, 1/(worth t)); records within
    `half` of `offset`, counted from the prior mean. Two numbers bound every neighbouring
    pair: how far the rate can rise, relatively, and how far the mean can move,
    squared and in posterior standard deviations. The Renyi divergence increases in
    both (docs/proofs/conjugate_families.md#normal-inverse-gamma); the profile is
    taken from it.
    """

    worth: float
    shape: float
    rate: float
    offset: float
    half: float
    size: int
    weight: float

    @property
    def limits(self) -> tuple[float, float]:
        """Smallest and largest record, minus the prior mean; or both mirrored, which changes nothing."""
        return self.offset - self.half, self.offset + self.half

    def renyi(self, orders: Array) -> Array:
        rise, move = self.rise(), self.move()
        shape = self.shape + self.weight * self.size / 2
        drag = orders * (orders - 1) * move / 2
        up = _renyi_rates(orders, shape, rise, drag)
        return np.maximum(up, _renyi_rates(orders, shape, -rise / (1 + rise), drag))

    def profile(self, epsilons: Array) -> Array:
        return delta_from_renyi(self.renyi, epsilons)

    def rise(self) -> float:
        """The largest of rate'/rate - 1 over all neighbours, or slightly more.

        With the n - 1 common records at one point a, which is the worst case, it is
        a ratio of two quadratics in a.
        """
        w, k, others = self.weight, self.worth, self.size - 1
        total = k + w * self.size
        least = w * k * others / (2 * (k + w * others))  # the smallest rate is rate + least a^2
        worst = 0.0
        for x in self.limits:
            square = w * others * (k + w) / (2 * total) - least
            slope, level = -(w**2) * others * x / total, w * (k + w * others) * x**2 / (2 * total)
            worst = max(worst, _largest_ratio((square, slope, level), (least, self.rate), self.limits))
        return worst * _UP

    def move(self) -> float:
        """The largest (mean' - mean)^2 worth_n / rate_n over all neighbours, or slightly more."""
        w, k = self.weight, self.worth
        total = k + w * self.size
        least = w * k / (2 * (k + w))
        squares = [_largest_ratio((1.0, -2 * x, x**2), (least, self.rate), self.limits) for x in self.limits]
        return w**2 / total * max(squares) * _UP

    def describe(self) -> str:
        return (
            f"one normal-inverse-gamma posterior draw, prior worth {self.worth:g} records with shape "
            f"{self.shape:g} and rate {self.rate:g}, n {self.size}, records weighted {self.weight:.6g}"
        )


def _renyi_rates(orders: Array, shape: float, rise: float, drag: Array) -> Array:
    """D between rates 1 + rise and 1, with `drag` subtracted for the means; infinite past the asymptote."""
    inside = orders * rise - drag
    ok = inside > -1
    terms = orders * math.log1p(rise), np.log1p(np.where(ok, inside, 0.0))
    log_moment = terms[0] - terms[1] + 1e-15 * (np.abs(terms[0]) + np.abs(terms[1]))  # rounded up
    return np.where(ok, np.maximum(shape * log_moment / (orders - 1), 0.0), np.inf)


def _largest_ratio(
    top: tuple[float, float, float], bottom: tuple[float, float], limits: tuple[float, float]
) -> float:
    """The maximum over a in [low, high] of (A a^2 + B a + C) / (D a^2 + E), D >= 0 and E > 0."""
    (A, B, C), (D, E), (low, high) = top, bottom, limits
    # The derivative vanishes where -B D a^2 + 2 (A E - C D) a + B E = 0.
    square, half, level = -B * D, A * E - C * D, B * E
    points = [low, high]
    if square == 0:
        points += [-level / (2 * half)] if half != 0 else []
    else:
        root = math.sqrt(max(half**2 - square * level, 0.0))
        far = -(half + math.copysign(root, half))
        points += [far / square] + ([level / far] if far != 0 else [])
    inside = [min(max(a, low), high) for a in points]
    return max((A * a**2 + B * a + C) / (D * a**2 + E) for a in inside)


def normal_inverse_gamma(
    worth: float,
    shape: float,
    rate: float,
    limits: tuple[float, float],
    size: int,
    *,
    weight: float = 1.0,
) -> Guarantee:
    """One draw from the posterior of a mean and a variance of bounded records, under substitution.

    The Renyi route only: no closed profile is known. With a fixed prior the cost
    grows with `size`, because equal records make the posterior of the variance
    ever sharper.

    Args:
        worth: how many records the prior mean is worth.
        shape: of the prior of the precision.
        rate: of the prior of the precision.
        limits: smallest and largest admissible record, minus the prior mean; enforced
            before use.
        size: number of records, public.
        weight: what each record counts (paper R's r).

    References: docs/proofs/conjugate_families.md#normal-inverse-gamma.

    Example:
        >>> f"{normal_inverse_gamma(1, 50, 50, (-1, 1), 100, weight=0.1).epsilon(1e-6):.3f}"
        '0.330'
    """
    low = checks.real("low limit", limits[0])
    high = checks.real("high limit", limits[1], above=low)
    piece = NormalInverseGamma(
        Neighbours.SUBSTITUTE,
        checks.real("worth", worth, above=0.0),
        checks.real("shape", shape, above=0.0),
        checks.real("rate", rate, above=0.0),
        abs(low + high) / 2,
        (high - low) / 2 * _UP + 1e-15 * (abs(low) + abs(high)),
        checks.integer("size", size, at_least=1),
        checks.real("weight", weight, above=0.0, at_most=1.0),
    )
    return Guarantee(((piece, 1),), Neighbours.SUBSTITUTE)
