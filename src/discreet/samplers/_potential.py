"""The potential of a regression with a Gaussian prior, its mode, and how its terms curve around a point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

Array = NDArray[np.float64]

RESIDUAL = 1e-6
"""Eta: the gradient left at the mode is at most eta sqrt(precision)."""
_SERIES = 1e-3


class Curves(Protocol):
    """What the terms f_i do around a point t_i each, once some rows have changed sign."""

    @property
    def sign(self) -> Array:
        """1, or -1 for a row to be turned."""
        ...

    @property
    def curvature(self) -> Array:
        """s_i = f''(t_i)."""
        ...

    def remainder(self, u: Array) -> Array:
        """phi_i(u) = f(t_i + u) - f(t_i) - f'(t_i) u, never negative; the last axis of `u` is the row."""
        ...

    def mean_curvature(self, u: Array) -> Array:
        """At most 2 phi_i(u) / u^2, and s_i at 0; unimodal in u and falling for u > 0 (Lemma 1)."""
        ...


@dataclass(frozen=True, eq=False)
class Potential(ABC):
    """U(w) = precision/2 |w|^2 + weight * sum_i f_i(z_i . w) with f'' <= 1/4 and |f'''| <= f''.

    Args:
        rows: z, one row per record.
        precision: lambda, of the prior.
        weight: rho, of the likelihood.
    """

    rows: Array
    precision: float
    weight: float

    @abstractmethod
    def total(self, t: Array) -> float:
        """The sum of f_i(t_i)."""

    @abstractmethod
    def slopes(self, t: Array) -> Array:
        """f_i'(t_i)."""

    @abstractmethod
    def curvatures(self, t: Array) -> Array:
        """f_i''(t_i)."""

    @abstractmethod
    def around(self, t: Array) -> Curves:
        """The terms around t."""

    @abstractmethod
    def jensen(self, reach: Array) -> Array:
        """At least E[phi_i(u)] / s_i - r^2/2 for u ~ N(0, r^2), at the mode."""

    @property
    def dimension(self) -> int:
        """Length of w."""
        return self.rows.shape[1]

    def value(self, w: Array) -> float:
        """U(w)."""
        return 0.5 * self.precision * float(w @ w) + self.weight * self.total(self.rows @ w)

    def gradient(self, w: Array) -> Array:
        """The gradient of U."""
        return self.precision * w + self.weight * (self.rows.T @ self.slopes(self.rows @ w))

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
            hessian = self.gram(self.curvatures(self.rows @ w))
            step = cho_solve(cho_factor(hessian, lower=True), slope)
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


def least_share(t: Array) -> Array:
    """g(t) = (e^-t + t - 1) / t^2: if |f'''| <= f'', 2 phi(u) / u^2 is at least 2 g(|u|) f''."""
    near = t < _SERIES
    v = np.where(near, 1.0, t)
    return np.where(near, 0.5 - t * (1 - t / 4) / 6, (np.expm1(-v) + v) / (v * v))


def norms(factor: Array, rows: Array) -> Array:
    """|z_i| in the inverse of L L^T, for all rows; `factor` is L."""
    solved = solve_triangular(factor, rows.T, lower=True, check_finite=False)
    return np.sqrt(np.einsum("ij,ij->j", solved, solved))
