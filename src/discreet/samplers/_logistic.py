"""The potential of a logistic posterior: its value, its mode, and the exact remainder of every row.

Proof page: docs/proofs/exact_sampling.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit

Array = NDArray[np.float64]

RESIDUAL = 1e-6
"""Eta: the gradient left at the mode is at most eta sqrt(precision)."""
_SERIES = 1e-3
_LARGE = 500.0


@dataclass(frozen=True, eq=False)
class LogisticPotential:
    """U(w) = precision/2 |w|^2 + weight * sum_i log(1 + exp(-z_i . w)), z_i = (2 y_i - 1) x_i.

    Args:
        rows: z, one row per record; zero rows add a constant and are dropped.
        precision: lambda, of the prior.
        weight: rho, of the likelihood.
    """

    rows: Array
    precision: float
    weight: float

    def __post_init__(self) -> None:
        kept = np.ascontiguousarray(self.rows[np.linalg.norm(self.rows, axis=1) > 1e-150])
        object.__setattr__(self, "rows", kept)

    @property
    def dimension(self) -> int:
        """Length of w."""
        return self.rows.shape[1]

    def value(self, w: Array) -> float:
        """U(w)."""
        return 0.5 * self.precision * float(w @ w) + self.weight * float(
            np.logaddexp(0, -self.rows @ w).sum()
        )

    def gradient(self, w: Array) -> Array:
        """The gradient of U."""
        return self.precision * w - self.weight * (self.rows.T @ expit(-self.rows @ w))

    def gram(self, curvatures: Array, extra: float = 0.0) -> Array:
        """(precision + extra) I + weight * sum_i a_i z_i z_i^T."""
        scaled = self.rows * np.sqrt(self.weight * curvatures)[:, None]
        matrix = scaled.T @ scaled
        matrix[np.diag_indices(self.dimension)] += self.precision + extra
        return matrix

    @cached_property
    def mode(self) -> tuple[Array, Array]:
        """A point m where the gradient is at most RESIDUAL * sqrt(precision), and the gradient there."""
        w = np.zeros(self.dimension)
        height, slope = self.value(w), self.gradient(w)
        goal = RESIDUAL * np.sqrt(self.precision)
        polished = 0
        for _ in range(200):
            if np.linalg.norm(slope) <= goal:
                polished += 1
                if polished > 1:  # one more step squares the error
                    break
            q = expit(-self.rows @ w)
            step = cho_solve(cho_factor(self.gram(q * (1 - q)), lower=True), slope)
            decrease, size = float(step @ slope), 1.0
            trial = w - step
            # Below the resolution of U the full step is right.
            if decrease > 1e-12 * max(1.0, abs(height)):
                while self.value(trial) > height - 1e-4 * size * decrease and size > 1e-10:
                    size *= 0.5
                    trial = w - size * step
            w = trial
            height, slope = self.value(w), self.gradient(w)
        return w, slope


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


def norms(factor: Array, rows: Array) -> Array:
    """|z_i| in the inverse of L L^T, for all rows; `factor` is L."""
    solved = solve_triangular(factor, rows.T, lower=True, check_finite=False)
    return np.sqrt(np.einsum("ij,ij->j", solved, solved))
