"""Row shells: a mixture of Gaussians, some forced past a row's interval, that dominates a posterior.

Proof page: docs/proofs/exact_sampling.md#shells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from discreet.samplers._potential import Array, Potential, norms

LEVELS = (3.5, 4.5, 5.5, 7, 10, 16, 32, 90)
FEW = (4.5, 6.5, 11, 32, 90)
_MUCH_WORK = 1e9
_SLACK = 1e-10
_BASE = 4.0


@dataclass(frozen=True, eq=False)
class _Level:
    """One level: on `-low <= z_i . d <= high` for all i, U is above the quadratic of `factor`.

    Attributes:
        high, low: the ends of each row's interval, which contains 0.
        curvature: a_i, at most the mean curvature anywhere in the interval.
        factor: L with L L^T = H_l.
        shift: mu_l, the centre of the Gaussian.
        centre: z_i . mu_l.
        spread: v_i, the standard deviation of z_i . d.
        log_mass: log W_l before the factor S_l.
    """

    high: Array
    low: Array
    curvature: Array
    factor: Array
    shift: Array
    centre: Array
    spread: Array
    log_mass: float


class RowShells:
    """The envelope of one posterior.

    Args:
        potential: the posterior.
        thresholds: T of the finite levels to choose among, increasing; the choice
            changes the speed only.
        plain: no choice of intervals by row, the family of the public bound
            (Theorem B).
        choose: keep the best nested levels, or all of them.
    """

    def __init__(
        self,
        potential: Potential,
        thresholds: tuple[float, ...] | None = None,
        *,
        plain: bool = False,
        choose: bool = True,
    ) -> None:
        self.mode, self.gradient = potential.mode
        self.precision, self.weight = potential.precision, potential.weight
        t = potential.rows @ self.mode
        self._curves = potential.around(t)
        self._rows = potential.rows * self._curves.sign[:, None]
        self._potential = potential
        n, d = self._rows.shape
        s = self._curves.curvature
        hessian = cholesky(potential.gram(s), lower=True)
        self._log_det = 2 * float(np.log(np.diag(hessian)).sum())
        reach = norms(hessian, self._rows)
        if thresholds is None:
            thresholds = LEVELS if n * d * d < _MUCH_WORK else FEW
        if n == 0:  # the prior alone
            thresholds = ()
        price = np.maximum(reach**2 * (s - self._curves.mean_curvature(_BASE * reach)), 1e-300)
        extra = np.sqrt(_BASE**2 + 2 * np.minimum(np.log(price.max(initial=0.0) / price), 40.0)) - _BASE
        self.levels = self._candidates(thresholds, reach, np.zeros(n) if plain else extra)
        if choose:
            self.levels = _best_path(self.levels)
        tails = [
            None,
            *(_tail(inner, level) for inner, level in zip(self.levels, self.levels[1:], strict=False)),
        ]
        log_tails = [0.0 if tail is None else float(logsumexp(tail)) for tail in tails]
        # Where the bound on the tail says nothing, the whole Gaussian is proposed.
        self._tails = [
            None if tail is None or total >= 0 else np.cumsum(np.exp(tail - total).ravel())
            for tail, total in zip(tails, log_tails, strict=True)
        ]
        self._log_weights = np.array(
            [level.log_mass + min(total, 0.0) for level, total in zip(self.levels, log_tails, strict=True)]
        )
        self.log_mass = float(logsumexp(self._log_weights))
        self.log_certificate = -self.weight * float((s * potential.jensen(reach)).sum()) - self.log_mass
        """A lower bound on the log acceptance probability (Theorem A); depends on the data."""

    @property
    def size(self) -> int:
        """Rows that are not zero."""
        return len(self._rows)

    def _candidates(self, thresholds: tuple[float, ...], reach: Array, extra: Array) -> list[_Level]:
        n = len(reach)
        levels: list[_Level] = []
        low = np.zeros(n)
        for threshold in thresholds:
            high = (threshold + extra) * reach
            goal = self._curves.mean_curvature(high)
            # The intervals of a later level contain those of an earlier one, to the last bit.
            low = np.maximum(low, self._other_end(high, goal))
            curvature = np.minimum(goal, self._curves.mean_curvature(-low)) * (1 - _SLACK)
            levels.append(self._level(high, low, np.maximum(curvature, 0.0)))
        everywhere = np.full(n, np.inf)
        return [*levels, self._level(everywhere, everywhere, np.zeros(n))]

    def _other_end(self, high: Array, goal: Array) -> Array:
        """How far below 0 the mean curvature stays above `goal`, by bisection from inside."""
        inside, outside = high.copy(), np.maximum(2 * high, 1.0)
        for _ in range(14):
            still = self._curves.mean_curvature(-outside) >= goal
            if not still.any():
                break
            inside, outside = np.where(still, outside, inside), np.where(still, 2 * outside, outside)
        for _ in range(12):  # any end inside is valid
            middle = 0.5 * (inside + outside)
            still = self._curves.mean_curvature(-middle) >= goal
            inside, outside = np.where(still, middle, inside), np.where(still, outside, middle)
        return inside

    def _level(self, high: Array, low: Array, curvature: Array) -> _Level:
        factor = cholesky(self._potential.gram(curvature), lower=True)
        shift = -cho_solve((factor, True), self.gradient)
        log_det = 2 * float(np.log(np.diag(factor)).sum())
        return _Level(
            high=high,
            low=low,
            curvature=curvature,
            factor=factor,
            shift=shift,
            centre=self._rows @ shift,
            spread=norms(factor, self._rows),
            log_mass=0.5 * (self._log_det - log_det) - 0.5 * float(self.gradient @ shift),
        )

    def propose(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:
        """Independent tries: points, and the log probability to accept each, which is never positive."""
        shares = np.exp(self._log_weights - self.log_mass)
        chosen = generator.choice(len(shares), count, p=shares / shares.sum())
        steps = np.empty((count, len(self.mode)))
        log_accept = np.empty(count)
        for index in np.unique(chosen):
            here = np.flatnonzero(chosen == index)
            steps[here], log_accept[here] = self._from_level(int(index), len(here), generator)
        return self.mode + steps, log_accept

    def _from_level(self, index: int, count: int, generator: np.random.Generator) -> tuple[Array, Array]:
        level, tail = self.levels[index], self._tails[index]
        noise = generator.standard_normal((len(self.mode), count))
        d = level.shift + solve_triangular(level.factor, noise, lower=True, trans="T", check_finite=False).T
        if tail is not None:
            d = self._past(self.levels[index - 1], level, tail, d, generator)
        u = d @ self._rows.T
        allowed = np.all((u <= level.high) & (u >= -level.low), axis=1)
        log_accept = np.zeros(count)
        if index > 0:
            inner = self.levels[index - 1]
            outside = np.count_nonzero((u > inner.high) | (u < -inner.low), axis=1)
            allowed &= outside > 0
            if tail is not None:
                log_accept -= np.log(np.maximum(outside, 1))
        excess = self._curves.remainder(u)
        excess -= 0.5 * level.curvature * u * u
        log_accept -= self.weight * excess.sum(axis=1)
        return d, np.where(allowed, log_accept, -np.inf)

    def _past(
        self, inner: _Level, level: _Level, cumulative: Array, d: Array, generator: np.random.Generator
    ) -> Array:
        """Move each Gaussian draw so that one row, chosen by its share of the tail, is outside `inner`."""
        n, count = len(self._rows), len(d)
        pick = np.searchsorted(cumulative, generator.random(count) * cumulative[-1], side="right")
        side, row = np.divmod(np.minimum(pick, 2 * n - 1), n)
        sign = np.where(side == 0, 1.0, -1.0)
        centre, spread = level.centre[row], level.spread[row]
        start = np.where(side == 0, inner.high[row] - centre, inner.low[row] + centre) / spread
        # A standard normal beyond `start`, by inversion in logarithms.
        beyond = -ndtri_exp(log_ndtr(-start) - generator.standard_exponential(count))
        u = centre + sign * np.maximum(beyond, start) * spread
        direction = cho_solve((level.factor, True), self._rows[row].T).T
        gap = u - np.einsum("ij,ij->i", self._rows[row], d)
        return d + direction * (gap / spread**2)[:, None]


def _tail(inner: _Level, level: _Level) -> Array:
    """Log probability, by side and row, that z_i . d of `level`'s Gaussian is outside `inner`."""
    above = log_ndtr((level.centre - inner.high) / level.spread)
    below = log_ndtr((-inner.low - level.centre) / level.spread)
    return np.stack([above, below])


def _best_path(levels: list[_Level]) -> list[_Level]:
    """The nested levels, ending with the last, of least total mass (dynamic program)."""
    best = [level.log_mass for level in levels]
    before = [-1] * len(levels)
    for j, level in enumerate(levels):
        for i in range(j):
            mass = float(
                np.logaddexp(best[i], level.log_mass + min(float(logsumexp(_tail(levels[i], level))), 0.0))
            )
            if mass < best[j]:
                best[j], before[j] = mass, i
    path = [len(levels) - 1]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return [levels[k] for k in reversed(path)]
