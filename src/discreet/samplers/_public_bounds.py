"""What is known of the row shells before any data: a lower bound on their acceptance (Theorem B).

Proof page: docs/proofs/exact_sampling.md#public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from discreet.samplers._logistic import RESIDUAL

_LARGEST_LOAD = 2e5
_GRID = (*np.arange(2.5, 12.0, 0.25).tolist(), *np.geomspace(12.0, 400.0, 40).tolist())


@dataclass(frozen=True)
class Setting:
    """The public numbers of a logistic posterior.

    Attributes:
        size: n, the number of records.
        dimension: d, the length of w.
        precision: lambda, of the prior.
        weight: rho, of the likelihood.
        row_norm: c.
    """

    size: int
    dimension: int
    precision: float
    weight: float
    row_norm: float

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
    T = np.array([*_GRID, math.inf])
    theta = np.array([*(2 * _smallest_share(t * R) for t in _GRID), 0.0])
    x = kappa / d
    log_mass = 0.5 * d * np.log((1 + x) / (1 + theta * x))
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
    half = R * R / 2
    # (e^h - 1 - h) / R^2, without cancellation for small R.
    growth = half * (0.5 + half / 6 + half**2 / 24) / 2 if half < 1e-3 else _growth(half) / R**2
    leverage = kappa / (1 + x)
    rounded = best[-1] + RESIDUAL**2 / 2 + 1e-6
    shells = PublicShells(-leverage * growth - rounded, tuple(float(T[k]) for k in reversed(path[1:])))
    # One level alone, the prior around the mode; best in few dimensions.
    prior = PublicShells(-0.5 * d * math.log1p(x) - RESIDUAL**2 / 2 - 1e-12, ())
    return max(shells, prior, key=lambda bound: bound.log_acceptance)


def _growth(half: float) -> float:
    return math.expm1(half) - half if half < 700 else math.inf


def _smallest_share(t: float) -> float:
    """g(t) = (e^-t + t - 1) / t^2: the mean curvature at a distance t is at least 2 g(t) times that at 0."""
    if t < 1e-3:
        return 0.5 - t / 6
    return (math.expm1(-t) + t) / (t * t)


def tries_for(log_acceptance: float, gamma: float) -> float:
    """K with (1 - acceptance)^K <= gamma; infinite if there is no use in trying."""
    if log_acceptance < -600:
        return math.inf
    if log_acceptance > -1e-15:
        return 1.0
    return math.ceil(math.log(gamma) / math.log1p(-math.exp(log_acceptance)))
