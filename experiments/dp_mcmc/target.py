"""The tempered posterior of paper M's mixture, and how far draws are from it."""

from __future__ import annotations

import math

import numpy as np

N0 = 100


def data(n: int) -> np.ndarray:
    """Records of the mixture at (0, 1)."""
    rng = np.random.default_rng(2019)
    return rng.normal(size=n) * math.sqrt(2) + (rng.random(n) < 0.5)


class Truth:
    """The tempered posterior on a grid, from data counted in 1,000 cells."""

    def __init__(self, x: np.ndarray) -> None:
        counts, edges = np.histogram(x, bins=1_000)
        centres = (edges[1:] + edges[:-1]) / 2
        self.first, self.second = np.linspace(-2.5, 3.5, 151), np.linspace(-4, 4, 201)
        log_p = np.empty((151, 201))
        near = -0.25 * (centres - self.first[:, None]) ** 2
        for j, shift in enumerate(self.second):
            far = -0.25 * (centres - self.first[:, None] - shift) ** 2
            log_p[:, j] = np.logaddexp(near, far) @ counts
        log_p *= N0 / len(x)
        log_p -= 0.5 * (self.first[:, None] ** 2 / 10 + self.second**2)
        self.log_p = log_p - log_p.max()
        p = np.exp(self.log_p)
        p /= p.sum()
        marginals = (p.sum(axis=1), self.first), (p.sum(axis=0), self.second)
        self.mean = np.array([m @ g for m, g in marginals])
        self.variance = np.array([m @ g**2 for m, g in marginals]) - self.mean**2

    def chains(self, count: int, steps: int, scale: float, seed: int) -> np.ndarray:
        """The same chain without privacy: Barker's exact test on the exact tempered posterior."""
        from scipy.interpolate import RegularGridInterpolator

        log_p = RegularGridInterpolator(
            (self.first, self.second), self.log_p, bounds_error=False, fill_value=-1e9
        )
        rng, theta = np.random.default_rng(seed), np.tile([0.5, 0.0], (count, 1))
        at, out = log_p(theta), np.empty((count, steps, 2))
        for t in range(steps):
            candidate = theta + scale * rng.normal(size=theta.shape)
            there = log_p(candidate)
            accepted = there - at + rng.logistic(size=count) > 0
            theta = np.where(accepted[:, None], candidate, theta)
            at = np.where(accepted, there, at)
            out[:, t] = theta
        return out


def errors(draws: np.ndarray, times: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Mean absolute error of posterior mean and of variance over coordinates: shape (2, runs, times)."""
    first = np.cumsum(draws, axis=1)[:, times - 1] / times[:, None]
    second = np.cumsum(draws**2, axis=1)[:, times - 1] / times[:, None] - first**2
    return np.stack([np.abs(first - mean).mean(axis=2), np.abs(second - variance).mean(axis=2)])
