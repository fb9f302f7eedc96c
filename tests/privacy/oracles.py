"""Slow and independent ways to the numbers of discreet.privacy: nothing here imports it.

mpmath for closed forms and quadrature, plain loops for amplification, and a naive privacy loss
distribution that rounds every loss up, or every loss down, to a grid and convolves.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
Density = Callable[[Any], Any]
DIGITS = 50


_armed: list[float] = []


def _stop(*_: object) -> None:
    if _armed:
        raise TimeoutError(f"took more than {_armed[-1]:g} s of processor time")


@contextmanager
def within(limit: float) -> Iterator[None]:
    """Fail, rather than hang, if the body takes longer than `limit` seconds of processor time."""
    signal.signal(signal.SIGVTALRM, _stop)
    _armed.append(limit)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        # The handler stays: a late signal finds nothing armed and does nothing.
        _armed.clear()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


# --- quadrature of any pair of densities ---------------------------------------


def hockey_stick(log_p: Density, log_q: Density, eps: float, ends: list[float], cells: int = 400) -> Any:
    """sup_A P(A) - e^eps Q(A) by quadrature between the sign changes of p - e^eps q."""
    with mp.workdps(30):
        e = mp.mpf(eps)

        def gap(x: Any) -> Any:
            return log_p(x) - log_q(x) - e

        grid = [mp.mpf(ends[0]) + (mp.mpf(ends[1]) - ends[0]) * i / cells for i in range(cells + 1)]
        signs = [gap(x) > 0 for x in grid]
        points = [grid[0]]
        for left, right, s, t in zip(grid, grid[1:], signs, signs[1:], strict=False):
            if s != t:
                points.append(mp.findroot(gap, (left, right), solver="anderson", tol=1e-25, verify=False))
        points.append(grid[-1])
        total = mp.mpf(0)
        for left, right in pairwise(points):
            if gap((left + right) / 2) > 0:
                cuts = [left + (right - left) * i / 16 for i in range(17)]
                total += mp.quad(lambda x: mp.exp(log_p(x)) - mp.exp(e + log_q(x)), cuts)
        return total


def renyi(log_p: Density, log_q: Density, order: float, ends: list[float], cells: int = 32) -> Any:
    """The Renyi divergence by quadrature."""
    with mp.workdps(30):
        o = mp.mpf(order)
        cuts = [mp.mpf(ends[0]) + (mp.mpf(ends[1]) - ends[0]) * i / cells for i in range(cells + 1)]
        moment = mp.quad(lambda x: mp.exp(o * log_p(x) + (1 - o) * log_q(x)), cuts)
        return mp.log(moment) / (o - 1)


def log_normal(mean: float, sd: float) -> Density:
    m, s = mp.mpf(mean), mp.mpf(sd)
    return lambda x: -(((x - m) / s) ** 2) / 2 - mp.log(s) - mp.log(2 * mp.pi) / 2


def log_mixture(rate: float, shift: float, sigma: float) -> Density:
    """The log density of (1 - rate) N(0, sigma^2) + rate N(shift, sigma^2)."""
    zero, one, q = log_normal(0, sigma), log_normal(shift, sigma), mp.mpf(rate)
    return lambda x: mp.log((1 - q) * mp.exp(zero(x)) + q * mp.exp(one(x)))


# --- closed forms at high precision --------------------------------------------


def tail(z: Any) -> Any:
    """P(N(0, 1) > z)."""
    return mp.erfc(z / mp.sqrt(2)) / 2


def hockey_stick_normals(eps: float, shift: float, sd_p: float, sd_q: float) -> Any:
    """N(shift, sd_p^2) against N(0, sd_q^2): the crossing points of the densities, then tails."""
    with mp.workdps(120):
        e, d, s, t = (mp.mpf(v) for v in (eps, shift, sd_p, sd_q))
        a, b = (1 / t**2 - 1 / s**2) / 2, d / s**2
        c = -(d**2) / (2 * s**2) + mp.log(t / s) - e

        def above(x: Any) -> Any:
            return tail((x - d) / s) - mp.exp(e) * tail(x / t)

        if a == 0:
            return above(-c / b) if b != 0 else max(1 - mp.exp(e), mp.mpf(0))
        under = b**2 - 4 * a * c
        if under <= 0:
            return 1 - mp.exp(e) if a > 0 else mp.mpf(0)
        # The stable pair of roots.
        root = -(b + mp.sqrt(under)) / 2
        ends = sorted((c / root, root / a))
        if a < 0:
            return above(ends[0]) - above(ends[1])
        return above(ends[1]) + tail((d - ends[0]) / s) - mp.exp(e) * tail(-ends[0] / t)


def renyi_normals(order: float, shift: float, sd_p: float, sd_q: float) -> Any:
    ends = [-60 * (sd_p + sd_q) - abs(shift), 60 * (sd_p + sd_q) + abs(shift)]
    return renyi(log_normal(shift, sd_p), log_normal(0, sd_q), order, ends, 64)


def hockey_stick_betas(eps: float, a: float, b: float, weight: float) -> Any:
    """Beta(a + w, b) against Beta(a, b + w)."""
    with mp.workdps(40):
        e, x, y, w = (mp.mpf(v) for v in (eps, a, b, weight))
        # w log(t / (1 - t)) = eps + log B(a + w, b) - log B(a, b + w)
        odds = mp.exp((e + mp.log(mp.beta(x + w, y)) - mp.log(mp.beta(x, y + w))) / w)
        t = odds / (1 + odds)
        return mp.betainc(x + w, y, t, 1, regularized=True) - mp.exp(e) * mp.betainc(
            x, y + w, t, 1, regularized=True
        )


def renyi_betas(order: float, a: float, b: float, weight: float) -> Any:
    """The ratio of beta integrals at 60 digits (infinite at and past the asymptote)."""
    if b + (1 - order) * weight <= 0:
        return mp.inf
    with mp.workdps(60):
        o, x, y, w = (mp.mpf(v) for v in (order, a, b, weight))
        moment = mp.beta(x + o * w, y + (1 - o) * w)
        moment *= mp.beta(x + w, y) ** -o * mp.beta(x, y + w) ** (o - 1)
        return mp.log(moment) / (o - 1)


def two_point(epsilon: float) -> tuple[Any, Any]:
    """Randomised response at epsilon: P = (p, 1 - p), Q = (1 - p, p); p and 1 - p without cancellation."""
    e = mp.mpf(epsilon)
    return 1 / (1 + mp.exp(-e)), mp.exp(-e) / (1 + mp.exp(-e))


def renyi_pure(order: float, epsilon: float) -> Any:
    with mp.workdps(DIGITS):
        (p, q), o = two_point(epsilon), mp.mpf(order)
        return mp.log(p**o * q ** (1 - o) + q**o * p ** (1 - o)) / (o - 1)


def renyi_laplace(order: float, ratio: float) -> Any:
    with mp.workdps(DIGITS):
        r, o = mp.mpf(ratio), mp.mpf(order)
        w = o / (2 * o - 1)
        return mp.log(w * mp.exp((o - 1) * r) + (1 - w) * mp.exp(-o * r)) / (o - 1)


# --- amplification and conversion ---------------------------------------------


def without_replacement(
    order: int, rate: float, base: Callable[[int], Any], largest: Any, exponent: str = "true"
) -> Any:
    """Wang, Balle & Kasiviswanathan 2019, Theorem 9, term by term; "printed" is paper M's slip."""
    q, grown = mp.mpf(rate), (mp.exp(largest) - 1 if exponent == "true" else mp.exp(largest - 1))
    total = mp.mpf(1)
    for j in range(2, order + 1):
        here = base(j)
        term = mp.exp((j - 1) * here) * min(mp.mpf(2), grown**j)
        if j == 2:
            term = min(4 * (mp.exp(here) - 1), term)
        total += mp.binomial(order, j) * q**j * term
    return mp.log(total) / (order - 1)


def from_renyi(divergences: dict[int, Any], delta: float, rule: str) -> float:
    """epsilon at delta over the orders given, by the classical or the improved rule."""
    found = []
    for o, d in divergences.items():
        classical = d + mp.log(1 / mp.mpf(delta)) / (o - 1)
        found.append(
            classical if rule == "classical" else classical + mp.log(1 - mp.mpf(1) / o) - mp.log(o) / (o - 1)
        )
    return float(min(found))


# --- a naive privacy loss distribution -----------------------------------------


class NaivePLD:
    """T-fold composition of a loss whose tail under P is known, every loss rounded up (or down) to a grid.

    `above(l)` is P(loss > l). Rounded up, with what exceeds the grid counted as infinite, the result is an
    upper bound of the true delta; rounded down, with what exceeds the grid forgotten, a lower bound.
    """

    def __init__(
        self, above: Callable[[Array], Array], width: float, reach: float, cells: int, times: int
    ) -> None:
        half = round(reach / width)
        self.times, self.width, self.cells = times, width, cells
        grid: Array = np.arange(-half, half + 1, dtype=np.float64) * width
        survival = above(grid)
        self.lost = max(float(survival[-1]), 0.0)
        inside = np.maximum(survival[:-1] - survival[1:], 0.0)
        # Mass in (l_i, l_i+1] goes to l_i+1 or to l_i; what is below the grid, to its end or nowhere.
        self.up = self._power(np.concatenate([[max(1 - survival[0], 0.0)], inside]), -half)
        self.down = self._power(np.concatenate([inside, [0.0]]), -half)

    def _power(self, masses: Array, first: int) -> Array:
        """Self-convolution on a circle large enough for what is not negligible."""
        padded = np.zeros(self.cells)
        np.add.at(padded, (np.arange(len(masses)) + first) % self.cells, masses)
        return np.maximum(np.fft.irfft(np.fft.rfft(padded) ** self.times, self.cells), 0.0)

    def epsilons(self, delta: float) -> tuple[float, float]:
        """A lower and an upper bound of epsilon, to the grid."""
        losses = np.arange(-self.cells // 2, self.cells // 2) * self.width
        found = []
        for masses, infinite in ((self.down, 0.0), (self.up, -np.expm1(self.times * np.log1p(-self.lost)))):
            ordered = np.roll(masses, self.cells // 2)
            # delta(eps) = P(loss > eps) - e^eps Q(loss > eps), with dQ = e^-loss dP.
            above = np.cumsum(ordered[::-1])[::-1]
            twin = np.cumsum((ordered * np.exp(-losses))[::-1])[::-1]
            deltas = above - np.exp(losses) * twin + infinite
            found.append(float(losses[np.nonzero(deltas > delta)[0][-1] + 1]))
        return max(found[0] - self.width, 0.0), found[1]


def poisson_above(rate: float, sigma: float, relation: str) -> Callable[[Array], Array]:
    """P(loss > l) of the subsampled Gaussian: 'remove', 'add' or 'substitute'."""

    def location(level: Array) -> Array:
        """Where 1 - q + q e^((2x-1)/2s^2) equals e^level; -inf where it is always above."""
        odds = np.exp(level) - (1 - rate)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(odds > 0, sigma**2 * np.log(np.maximum(odds, 0) / rate) + 0.5, -np.inf)

    def remove(level: Array) -> Array:
        x = location(level)
        return (1 - rate) * special.ndtr(-x / sigma) + rate * special.ndtr((1 - x) / sigma)

    def add(level: Array) -> Array:
        return special.ndtr(location(-level) / sigma)

    def substitute(level: Array) -> Array:
        # The loss increases in x: log(1-q + q u e^(x/s^2)) - log(1-q + q u e^(-x/s^2)), u = e^(-1/2s^2).
        u = np.exp(-1 / (2 * sigma**2))
        low, high = np.full_like(level, -60 * sigma - 2), np.full_like(level, 60 * sigma + 2)
        for _ in range(70):
            x = (low + high) / 2
            loss = np.log1p(rate * np.expm1(x / sigma**2 + np.log(u))) - np.log1p(
                rate * np.expm1(-x / sigma**2 + np.log(u))
            )
            low, high = np.where(loss > level, low, x), np.where(loss > level, x, high)
        x = (low + high) / 2
        return (1 - rate) * special.ndtr(-x / sigma) + rate * special.ndtr((1 - x) / sigma)

    return {"remove": remove, "add": add, "substitute": substitute}[relation]


def hockey_stick_many_normals(eps: float, shift: Array, var_p: Array, var_q: Array) -> Array:
    """Many pairs at one epsilon, in plain double precision; absolute error about 1e-15."""
    a = (1 / var_q - 1 / var_p) / 2
    b = shift / var_p
    c = -(shift**2) / (2 * var_p) + np.log(var_q / var_p) / 2 - eps
    under = b**2 - 4 * a * c
    with np.errstate(divide="ignore", invalid="ignore"):
        root = -(b + np.sqrt(np.maximum(under, 0))) / 2
        near, far = np.where(root != 0, c / root, np.inf), np.where(a != 0, root / a, -np.inf)
    s, t, factor = np.sqrt(var_p), np.sqrt(var_q), np.exp(eps)

    def above(x: Array) -> Array:
        return special.ndtr((shift - x) / s) - factor * special.ndtr(-x / t)

    def below(x: Array) -> Array:
        return special.ndtr((x - shift) / s) - factor * special.ndtr(x / t)

    wider = np.where(under > 0, above(near) + below(far), 1 - factor)
    narrower = np.where(under > 0, above(near) - above(far), 0.0)
    return np.maximum(np.where(a > 0, wider, np.where(a < 0, narrower, above(near))), 0.0)
