"""What is known of the row shells before any data: a lower bound on their acceptance (Theorem B).

Proof page: docs/proofs/exact_sampling.md#public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from discreet.samplers._potential import RESIDUAL, Array, least_share

_LARGEST_LOAD = 2e5
_THRESHOLDS = (*np.arange(2.5, 12.0, 0.5).tolist(), *np.geomspace(12.0, 400.0, 20).tolist())
_FINE = 2001


@dataclass(frozen=True)
class Setting:
    """The public numbers of a posterior.

    Attributes:
        size: n, the number of records.
        dimension: d, the length of w.
        precision: lambda, of the prior.
        weight: rho, of the likelihood.
        row_norm: c, times the range of the response.
        even: whether the second derivative of a term is even, as for the logistic loss (Lemma 2).
    """

    size: int
    dimension: int
    precision: float
    weight: float
    row_norm: float
    even: bool = True

    @property
    def reach(self) -> float:
        """R = c / sqrt(lambda)."""
        return self.row_norm / math.sqrt(self.precision)

    @property
    def load(self) -> float:
        """The data's greatest curvature over the prior's: kappa = rho n c^2 / (4 lambda)."""
        return self.weight * self.size * self.reach**2 / 4

    @property
    def resolvable(self) -> bool:
        """Whether double precision finds the mode as well as the proofs ask, and resolves every row there.

        At the mode lambda |m|^2 = rho sum_i sigma(-t_i) t_i <= 0.28 rho n, so that
        |t_i| <= sqrt(1.12 kappa), which must stay where e^-t does not underflow.
        """
        found = self.weight * self.size * self.reach < 1e-2 * RESIDUAL / np.finfo(np.float64).eps
        return found and self.load < _LARGEST_LOAD


@dataclass(frozen=True)
class PublicShells:
    """The plain family and what it promises on every data set.

    Attributes:
        log_acceptance: no try is accepted with a smaller probability.
        thresholds: T of its finite levels; none if the last level alone is best.
    """

    log_acceptance: float
    thresholds: tuple[float, ...]


def public_shells(setting: Setting) -> PublicShells:
    """The best sequence of levels of the plain family, by a dynamic program over a grid."""
    R, kappa, d = setting.reach, setting.load, setting.dimension
    T = np.array([*_THRESHOLDS, math.inf])
    theta = np.array([*(2 * least_share(T[:-1] * R)).tolist(), 0.0])
    x = kappa / d
    log_mass = _log_masses(setting, theta)
    spread = np.sqrt((1 + kappa) / (1 + theta * kappa))
    best, before = log_mass.tolist(), [-1] * len(T)
    for j in range(len(T)):
        for i in range(j):
            tail = math.log(2 * setting.size) + float(log_ndtr(RESIDUAL - T[i] / spread[j]))
            mass = float(np.logaddexp(best[i], log_mass[j] + min(tail, 0.0)))
            if mass < best[j]:
                best[j], before[j] = mass, i
    path = [len(T) - 1]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    rounded = best[-1] + RESIDUAL**2 / 2 + 1e-6
    shells = PublicShells(-_jensen(setting) - rounded, tuple(float(T[k]) for k in reversed(path[1:])))
    # One level alone, the prior around the mode; best in few dimensions.
    prior = PublicShells(-0.5 * d * math.log1p(x) - RESIDUAL**2 / 2 - 1e-12, ())
    return max(shells, prior, key=lambda bound: bound.log_acceptance)


def _log_masses(setting: Setting, theta: Array) -> Array:
    """Upper bounds on log(W_l / S_l): the lesser of the two of Theorem B, level by level."""
    R, kappa, d = setting.reach, setting.load, setting.dimension
    x = kappa / d
    worst_rows = 0.5 * d * np.log((1 + x) / (1 + theta * x))
    y = np.linspace(0, x / (1 + x), _FINE)
    lost = np.array(
        [
            # From one grid point to the next y rises and the loss falls, so this is above the supremum.
            float((y[1:] * (1 - 2 * least_share(t * R * np.sqrt(1 - y[:-1])))).max())
            for t in _THRESHOLDS
        ]
        + [x / (1 + x)]
    )
    top = (1 - theta) * kappa / (1 + kappa)
    # Where the loss is lost in rounding the chord has slope 1.
    slope = np.where(top > 1e-9, -np.log1p(-top) / np.maximum(top, 1e-9), 1 + 1e-8)
    return np.minimum(worst_rows, 0.5 * d * slope * lost)


def _jensen(setting: Setting) -> float:
    """An upper bound on the first term of the certificate (2)."""
    R, x = setting.reach, setting.load / setting.dimension
    half = R * R / 2
    if half > 700:
        return math.inf
    y = x / (1 + x)
    if setting.even:
        # (e^h - 1 - h) / R^2, without cancellation for small R.
        small = half * (0.5 + half / 6 + half**2 / 24) / 2
        growth = small if half < 1e-3 else (math.expm1(half) - half) / R**2
        most = min(y, 0.5)
        return setting.dimension * most * (1 - most) * growth
    small = R * (math.sqrt(8 / math.pi) / 6 + R / 7)
    exact = (2 * math.exp(half) * float(ndtr(R)) - 1 - R * math.sqrt(2 / math.pi) - half) / R**2
    most = min(y, 2 / 3)
    return setting.dimension * most * math.sqrt(1 - most) * (small if R < 1e-2 else exact)


def tries_for(log_acceptance: float, gamma: float) -> float:
    """K with (1 - acceptance)^K <= gamma; infinite if there is no use in trying."""
    if log_acceptance < -600:
        return math.inf
    if log_acceptance > -1e-15:
        return 1.0
    return math.ceil(math.log(gamma) / math.log1p(-math.exp(log_acceptance)))
