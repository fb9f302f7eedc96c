"""Posteriors given noisy statistics, with the noise as a part of the model.

All of this is post-processing of what was released. References: Bernstein & Sheldon
2018; docs/proofs/perturbed_statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from discreet.mechanisms._lattice_noise import Array, Noise, NoisySum
from discreet.models.families import (
    BetaBernoulli,
    ConjugateFamily,
    DirichletCategorical,
    FamilyDraws,
    GammaPoisson,
    NormalKnownVariance,
)

Posterior = Callable[[ConjugateFamily, NoisySum, np.random.Generator, int], FamilyDraws]

_SCALES = 4001


def naive(
    family: ConjugateFamily, noisy: NoisySum, generator: np.random.Generator, draws: int
) -> FamilyDraws:
    """The posterior that takes the projected noisy statistic for the truth (paper R, Section 5.1)."""
    total = family.project(noisy.values, noisy.size)
    return family.draw(family.posterior_eta(total, noisy.size), generator, draws)


# --- one count: enumerate the sum ----------------------------------------------


def _latent_count(
    family: ConjugateFamily, noisy: NoisySum, generator: np.random.Generator, draws: int
) -> FamilyDraws:
    """P(sum of the records | noisy sum) is its prior predictive times the density of the noise."""
    sums = np.arange(noisy.size * float(family.measured_range[1][0]) + 1)
    logs = _PREDICTIVE[type(family)](family, sums, noisy.size) + noisy.log_likelihood(0, sums)
    return family.draw(
        _etas(family, sums[_choose(logs, generator, draws)][None], noisy.size), generator, draws
    )


def _beta_binomial(family: ConjugateFamily, sums: Array, size: int) -> Array:
    a, both = (float(value) for value in family.prior_eta)
    logs = special.betaln(a + sums, both - a + size - sums) - special.betaln(1 + sums, 1 + size - sums)
    return np.asarray(logs, dtype=np.float64)


def _negative_binomial(family: ConjugateFamily, sums: Array, size: int) -> Array:
    a, b = (float(value) for value in family.prior_eta)
    logs = special.gammaln(a + sums) - special.gammaln(sums + 1) + sums * math.log(size / (b + size))
    return np.asarray(logs, dtype=np.float64)


_PREDICTIVE: dict[type[ConjugateFamily], Callable[[ConjugateFamily, Array, int], Array]] = {
    BetaBernoulli: _beta_binomial,
    GammaPoisson: _negative_binomial,
}


# --- a table of counts: messages between categories --------------------------------


def _latent_counts(
    family: ConjugateFamily, noisy: NoisySum, generator: np.random.Generator, draws: int
) -> FamilyDraws:
    """The weight of a table of counts is a product over categories, tied by the public total.

    Messages run forward over the categories by convolution; counts are drawn
    backward. Multiplying every weight by e^(tilt count) changes nothing given the
    total, and brings the total to the middle of the untied law, out of underflow.
    """
    size, counts = noisy.size, np.arange(noisy.size + 1.0)
    logs = np.stack(
        [
            np.asarray(special.gammaln(a + counts) - special.gammaln(counts + 1), dtype=np.float64)
            + noisy.log_likelihood(k, counts)
            for k, a in enumerate(
                (*family.prior_eta[:-1], family.prior_eta[-1] - family.prior_eta[:-1].sum())
            )
        ]
    )

    def weights(tilt: float) -> Array:
        heights = logs + tilt * counts
        heights = np.exp(heights - heights.max(axis=1, keepdims=True))
        return heights / heights.sum(axis=1, keepdims=True)

    def surplus(tilt: float) -> float:
        return float((weights(tilt) @ counts).sum() - size)

    reach = 1.0
    while surplus(-reach) > 0 or surplus(reach) < 0:
        reach *= 2
    chosen = weights(float(optimize.brentq(surplus, -reach, reach)))
    messages = [chosen[0]]
    for weight in chosen[1:-1]:
        message = np.convolve(messages[-1], weight)[: size + 1]
        messages.append(message / message.max())
    left, totals = np.full(draws, size), np.zeros((len(chosen), draws))
    for k in range(len(chosen) - 1, 0, -1):
        for rest in np.unique(left):
            here = left == rest
            chance = chosen[k, : rest + 1] * messages[k - 1][rest::-1]
            totals[k, here] = generator.choice(rest + 1, size=int(here.sum()), p=chance / chance.sum())
        left = left - totals[k].astype(np.int64)
    totals[0] = left
    return family.draw(_etas(family, totals[:-1], size), generator, draws)


# --- a normal mean: variances add --------------------------------------------------


def _normal_mean(
    family: ConjugateFamily, noisy: NoisySum, generator: np.random.Generator, draws: int
) -> FamilyDraws:
    """Gaussian noise adds its variance; Laplace noise is normal with an exponential variance, summed over."""
    assert isinstance(family, NormalKnownVariance)  # noqa: S101 (for the type checker)
    m, v = family.prior
    total, scale = float(noisy.values[0]), float(noisy.scales[0])
    gain = noisy.size / family.variance  # the sum of S has mean gain * theta and variance gain
    variances: Array = np.array([scale**2])
    if noisy.kind is Noise.LAPLACE:
        gap = abs(total - gain * m)
        grid = scale**2 * np.exp(np.linspace(math.log(1e-12), math.log(200 + 8 * gap / scale), _SCALES))
        spread = gain**2 * v + gain + grid
        logs = np.log(grid) - grid / (2 * scale**2) - 0.5 * (np.log(spread) + gap**2 / spread)
        variances = grid[_choose(logs, generator, draws)]
    precision = 1 / v + gain**2 / (gain + variances)
    mean = (m / v + gain * total / (gain + variances)) / precision
    return {"mean": mean + generator.standard_normal(draws) / np.sqrt(precision)}


# --- which family has which ---------------------------------------------------------


class NoiseAware(NamedTuple):
    """How a family's noise-aware posterior is drawn, and the largest public n for which that is quick."""

    draw: Posterior
    largest_size: Callable[[ConjugateFamily], float]


def _most_sums(family: ConjugateFamily) -> float:
    return 20_000_000 // float(family.measured_range[1][0])


def _most_tables(_: ConjugateFamily) -> float:
    return 10_000


def _unlimited(_: ConjugateFamily) -> float:
    return math.inf


NOISE_AWARE: dict[type[ConjugateFamily], NoiseAware] = {
    BetaBernoulli: NoiseAware(_latent_count, _most_sums),
    DirichletCategorical: NoiseAware(_latent_counts, _most_tables),
    GammaPoisson: NoiseAware(_latent_count, _most_sums),
    NormalKnownVariance: NoiseAware(_normal_mean, _unlimited),
}
"""Families whose noise-aware posterior is known."""


def _choose(logs: Array, generator: np.random.Generator, draws: int) -> NDArray[np.intp]:
    """Indices drawn in proportion to exp(logs)."""
    heights = np.cumsum(np.exp(logs - logs.max()))
    return np.asarray(
        np.searchsorted(heights, generator.random(draws) * heights[-1], side="right"), dtype=np.intp
    )


def _etas(family: ConjugateFamily, totals: Array, size: int) -> Array:
    """Posterior natural parameters, one column per draw, of statistics with one column per draw."""
    added = np.concatenate([totals, np.full((1, totals.shape[1]), float(size))])
    return family.prior_eta[:, None] + added
