"""Bugs planted in noisy sums of clipped gradients: batches, divisors, noise, clipping."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from discreet.audit import Pair, Subject
from discreet.audit.subject import Score
from discreet.mechanisms.base import Plan
from discreet.privacy import (
    Budget,
    Guarantee,
    Neighbours,
    laplace,
    sampled_without_replacement,
)

from .kit import Array, Attack, attacked, planted
from .noisy_sums import NoisySums, Vectors

SUBSTITUTED = Pair({"x": [[1.0], [0.0]]}, {"x": [[-1.0], [0.0]]}, why="one record turned round")
REMOVED = Pair({"x": [[1.0], [0.0]]}, {"x": [[0.0]]}, why="one record removed")
EMPTY = Pair({"x": [[0.0], [0.0]]}, {"x": [[0.0]]}, why="an empty row removed")
Signal = Callable[[Array], Array]


def sums(
    mechanism: NoisySums,
    n: int | None,
    pair: Pair,
    budget: Budget,
    signal: Signal | None = None,
    *,
    trials: int = 20_000,
    delta: float | None = None,
) -> Attack:
    """An attack on all steps, by the density of the right mechanism or by something that a bug gives away."""
    plan = mechanism.plan(n, budget=budget)

    def score(pair: Pair) -> Score:
        seen = signal
        return mechanism.log_ratio(plan, pair) if seen is None else lambda outputs: seen(np.asarray(outputs))

    return Attack(
        Subject(plan.guarantee, partial(mechanism.many, plan), score, type(mechanism).__name__, plan),
        pair,
        trials=trials,
        delta=budget.delta if delta is None else delta,
    )


# --- sensitivity, and the neighbours it is about ------------------------------------------


class OneClip(NoisySums):
    """The noise of add_remove, C, under substitution, where a sum moves by 2 C."""

    def multiplier(self, budget: Budget, neighbours: Neighbours) -> float:  # noqa: ARG002
        return super().multiplier(budget, Neighbours.ADD_REMOVE)


def turned(kind: type[NoisySums]) -> Attack:
    return sums(kind(rate=1.0), 2, SUBSTITUTED, Budget(1.0, 1e-5))


planted("sensitivity C under substitution", attacked, lambda: turned(OneClip), lambda: turned(NoisySums))


class LargestEntry(NoisySums):
    """Each coordinate of a gradient is clipped, where the norm should be."""

    def clipped(self, x: Array) -> Array:
        return np.clip(x, -self.clip, self.clip)


class NotFinite(NoisySums):
    """A gradient that overflows makes the factor that should shrink it a NaN."""

    def clipped(self, x: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = (x**2).sum(axis=1, keepdims=True) * x
            return slopes * np.minimum(1.0, self.clip / np.linalg.norm(slopes, axis=1, keepdims=True))


def wide(kind: type[NoisySums]) -> Attack:
    x = np.zeros((2, 16))
    pair = Pair({"x": np.r_[[x[0] + 1], x[1:]]}, {"x": np.r_[[x[0] - 1], x[1:]]}, why="along the diagonal")
    return sums(kind(Vectors(16), rate=1.0), 2, pair, Budget(1.0, 1e-5))


def overflowing(kind: type[NoisySums]) -> Attack:
    pair = Pair({"x": [[1e200], [0.5]]}, {"x": [[0.5], [0.5]]}, why="a record whose gradient overflows")
    lost: Signal = lambda y: np.isnan(y).any(axis=(1, 2)) + 1e-9 * np.nan_to_num(y).sum(axis=(1, 2))  # noqa: E731
    return sums(kind(), 2, pair, Budget(1.0, 1e-5), lost)


planted("clipped in the wrong norm", attacked, lambda: wide(LargestEntry), lambda: wide(NoisySums))
planted(
    "a gradient that is not finite", attacked, lambda: overflowing(NotFinite), lambda: overflowing(NoisySums)
)


# --- batches -------------------------------------------------------------------------------


class RealisedBatch(NoisySums):
    """The noisy sum over the size of the batch that came up."""

    def shown(self, sums: Array, noise: Array, batches: Array) -> Array:
        return (sums + noise) / np.maximum(batches.sum(axis=2, keepdims=True), 1.0)


class EmptySkipped(NoisySums):
    """A step without records is passed over: nothing is added, not even noise."""

    def shown(self, sums: Array, noise: Array, batches: Array) -> Array:
        found = super().shown(sums, noise, batches)
        return np.where(batches.any(axis=2, keepdims=True), found, 0.0)


class ReusedKey(NoisySums):
    """The key of the first step serves every step."""

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(super().noise(generator, (shape[0], 1, *shape[2:])), shape)


class Shuffled(NoisySums):
    """Records are shuffled and cut into batches, and accounted as Poisson batches (ERRATA 15)."""

    def batches(self, generator: np.random.Generator, runs: int, n: int) -> Array:
        place = generator.integers(self.steps, size=(runs, 1, n))
        return (place == np.arange(self.steps)[None, :, None]).astype(np.float64)


def by_size(kind: type[NoisySums]) -> Attack:
    spread: Signal = lambda y: -(y**2).sum(axis=(1, 2))  # noqa: E731
    return sums(kind(rate=0.9, steps=10), None, EMPTY, Budget(1.0, 1e-5), spread)


def by_silence(kind: type[NoisySums]) -> Attack:
    zeros: Signal = lambda y: -(y == 0).sum(axis=(1, 2)) - 1e-9 * (y**2).sum(axis=(1, 2))  # noqa: E731
    return sums(kind(rate=0.5, steps=5), None, EMPTY, Budget(1.0, 1e-5), zeros)


def by_difference(kind: type[NoisySums]) -> Attack:
    apart: Signal = lambda y: np.ptp(y, axis=1).sum(axis=1)  # noqa: E731
    return sums(kind(rate=0.5, steps=5), None, REMOVED, Budget(1.0, 1e-5), apart)


def by_epoch(kind: type[NoisySums]) -> Attack:
    """A record is in one of two batches for certain, where Poisson batches miss it one time in four."""
    return sums(kind(rate=0.5, steps=2, sigma=0.25), None, REMOVED, Budget(50.0, 1e-5), delta=0.8)


planted("divided by the realised batch", attacked, lambda: by_size(RealisedBatch), lambda: by_size(NoisySums))
planted("empty batch skipped", attacked, lambda: by_silence(EmptySkipped), lambda: by_silence(NoisySums))
planted(
    "key used in every step", attacked, lambda: by_difference(ReusedKey), lambda: by_difference(NoisySums)
)
planted("shuffled, accounted as Poisson", attacked, lambda: by_epoch(Shuffled), lambda: by_epoch(NoisySums))


@dataclass(frozen=True)
class FixedBatch(NoisySums):
    """Sums of numbers in [0, 1] over a fixed number of records, without replacement, with Laplace noise."""

    def price(self, sigma: float, neighbours: Neighbours) -> Guarantee:
        return sampled_without_replacement(laplace(sigma, neighbours=neighbours), self.rate, self.steps)

    def plan(self, n: int | None, *, budget: Budget) -> Plan:
        """The noise is given by its scale."""
        del n, budget
        guarantee = FixedBatch.price(self, 0.5, Neighbours.SUBSTITUTE)
        return Plan(self, self.size, guarantee, (), {"multiplier": 0.5})

    def clipped(self, x: Array) -> Array:
        return np.clip(x, 0.0, 1.0)

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return generator.laplace(size=shape)

    def batches(self, generator: np.random.Generator, runs: int, n: int) -> Array:
        order = generator.random((runs, self.steps, n)).argsort(axis=2)
        return (order < round(self.rate * n)).astype(np.float64)


class WithReplacement(FixedBatch):
    """The same number with replacement: a record may come up more than once."""

    def batches(self, generator: np.random.Generator, runs: int, n: int) -> Array:
        rows = generator.integers(n, size=(runs, self.steps, round(self.rate * n)))
        return (rows[..., None] == np.arange(n)).sum(axis=2).astype(np.float64)


def repeated(kind: type[FixedBatch]) -> Attack:
    """Twice in a batch is twice as far: rare, and then plain to see."""
    rest = np.zeros((19, 1))
    pair = Pair({"x": np.r_[[[1.0]], rest]}, {"x": np.r_[[[0.0]], rest]}, why="one record at either end")
    total: Signal = lambda y: y.sum(axis=(1, 2))  # noqa: E731
    return sums(kind(rate=0.5, size=20), 20, pair, Budget(2.0), total, trials=40_000)


planted(
    "with replacement, accounted as without",
    attacked,
    lambda: repeated(WithReplacement),
    lambda: repeated(FixedBatch),
)


# --- Langevin dynamics (ERRATA 13) ----------------------------------------------------------


@dataclass(frozen=True)
class Langevin(NoisySums):
    """Steps of rate eta on an unbiased gradient, with noise sqrt(eta): what hides a record is the step's own.

    n / |B| eta (sum + sigma C z) is the step if sigma = |B| / (sqrt(eta) n C).
    """

    def noise_of(self, rate: float) -> float:
        """sigma, of a learning rate."""
        return self.rate / (math.sqrt(rate) * self.clip)

    def rate_for(self, sigma: float) -> float:
        """The learning rate whose noise is sigma."""
        return (self.rate / (sigma * self.clip)) ** 2

    def multiplier(self, budget: Budget, neighbours: Neighbours) -> float:
        return self.noise_of(self.rate_for(super().multiplier(budget, neighbours)))


class PublishedLangevin(Langevin):
    """D.2 of paper N: sigma = sqrt(eta) |B| / (n C)."""

    def rate_for(self, sigma: float) -> float:
        return (sigma * self.clip / self.rate) ** 2


def langevin(kind: type[Langevin]) -> Attack:
    return sums(kind(rate=0.5, steps=4), None, REMOVED, Budget(1.0, 1e-5))


planted(
    "published noise of Langevin steps",
    attacked,
    lambda: langevin(PublishedLangevin),
    lambda: langevin(Langevin),
)
