"""The terms of a logistic posterior: f(t) = log(1 + e^-t), whose mean curvature is known exactly.

Proof page: docs/proofs/exact_sampling.md#setting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from discreet.samplers._potential import Array, Potential

_SERIES = 1e-3
_LARGE = 500.0


@dataclass(frozen=True, eq=False)
class LogisticPotential(Potential):
    """The potential with rows z_i = (2 y_i - 1) x_i; zero rows add a constant and are dropped."""

    def __post_init__(self) -> None:
        kept = np.ascontiguousarray(self.rows[np.linalg.norm(self.rows, axis=1) > 1e-150])
        object.__setattr__(self, "rows", kept)

    def total(self, t: Array) -> float:
        return float(np.logaddexp(0, -t).sum())

    def slopes(self, t: Array) -> Array:
        return -expit(-t)

    def curvatures(self, t: Array) -> Array:
        q = expit(-t)
        return q * (1 - q)

    def around(self, t: Array) -> LogisticCurves:
        # f_t(u) and f_-t(-u) differ by a linear function, so rows may be turned until t >= 0.
        return LogisticCurves(np.where(t >= 0, 1.0, -1.0), expit(-np.abs(t)))

    def jensen(self, reach: Array) -> Array:
        """By Lemma 2: E[cosh u] - 1 - r^2/2."""
        half = reach**2 / 2
        return np.expm1(half) - half


@dataclass(frozen=True, eq=False)
class LogisticCurves:
    """Terms around t >= 0, by p = sigma(-t) in (0, 1/2]."""

    sign: Array
    p: Array

    @property
    def curvature(self) -> Array:
        return self.p * (1 - self.p)

    def remainder(self, u: Array) -> Array:
        return remainder(self.p, u)

    def mean_curvature(self, u: Array) -> Array:
        return mean_curvature(self.p, u)


def remainder(p: Array, u: Array) -> Array:
    """phi(u) = f(t+u) - f(t) - f'(t) u for f(t) = log(1 + e^-t), with p = sigma(-t), t >= 0; never negative.

    Args:
        p: in (0, 1/2], one per row; broadcasts against `u`.
        u: where.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        out = np.expm1(-u)
        out *= p
        np.log1p(out, out=out)
        out += p * u
    far = u < -_LARGE
    if far.any():
        q, v = np.broadcast_to(p, u.shape)[far], u[far]
        out[far] = np.logaddexp(np.log1p(-q), np.log(np.maximum(q, 1e-320)) - v) + q * v
    return out


def mean_curvature(p: Array, u: Array) -> Array:
    """A(u) = 2 phi(u) / u^2, and f''(t) at 0; unimodal in u (Lemma 1)."""
    s = p * (1 - p)
    skew = 2 * p - 1
    near = np.abs(u) < _SERIES
    v = np.where(near, 1.0, u)
    series = s * (1 + u * (skew / 3 + u * ((1 - 6 * s) / 12 + u * skew * (1 - 12 * s) / 60)))
    return np.where(near, series, 2 * remainder(p, v) / (v * v))
