"""Upper bounds on an expectation from samples of it, and the two published estimates that are none.

Proof page: docs/proofs/bayesian_accountant.md#estimators.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from discreet.privacy import checks
from discreet.privacy.arrays import Array

BETS: Array = np.concatenate([np.geomspace(1e-4, 0.9, 23), 1 - np.geomspace(0.05, 1e-6, 8), [1.0]])
"""Fixed before any sample: shares of the capital that are staked on small values."""


def betting_total(total: ArrayLike, count: int, gamma: ArrayLike) -> Array:
    """An upper bound on the mean of `count` variables in [0, 1], from their sum.

    The conditional mean of each may depend on all before it; what is bounded is
    the average of these means. Fails with probability at most gamma.

    Args:
        total: sum of the samples.
        count: how many there are.
        gamma: probability of failing.

    References: Waudby-Smith & Ramdas 2024 (hedged capital);
        docs/proofs/bayesian_accountant.md#betting.
    """
    sums = np.asarray(total, dtype=np.float64)[..., None]
    with np.errstate(divide="ignore"):
        log_stake: Array = np.asarray(special.xlog1py(sums, -BETS), dtype=np.float64)
    return _best_bet(log_stake, count, np.asarray(gamma, dtype=np.float64))


def betting(values: ArrayLike, maximum: float, gamma: float) -> Array:
    """An upper bound on the mean of variables in [0, maximum], by betting against large ones.

    The last axis is the sample. Sharper than `betting_total` where the values are
    not all near 0 or the maximum.

    Example:
        >>> round(float(betting([0.0] * 1000, 1.0, 0.01)), 4)
        0.008
    """
    maximum = checks.real("maximum", maximum, above=0.0)
    scaled = _bounded(values, maximum)
    with np.errstate(divide="ignore"):
        log_stake = np.stack([np.log1p(-bet * scaled).sum(axis=-1) for bet in BETS.tolist()], axis=-1)
    return maximum * _best_bet(log_stake, scaled.shape[-1], np.float64(_probability(gamma)))


def _best_bet(log_stake: Array, count: int, gamma: Array | np.float64) -> Array:
    """The least (1 - (gamma stake / bets)^(1 / count)) / bet over all bets; bets share gamma."""
    if count == 0:
        return np.ones(np.broadcast_shapes(log_stake.shape[:-1], np.shape(gamma)))
    log_share = np.log(np.asarray(gamma) / BETS.size)[..., None]
    bound = -np.expm1((log_share + log_stake) / count) / BETS
    return np.minimum(bound.min(axis=-1) * (1 + 1e-12), 1.0)


def survival_band(counts: ArrayLike, gamma: float) -> Array:
    """Upper bounds on P(X > k) for every bin k at once, from the numbers of samples in the bins.

    The last axis is the bin; every row must hold as many samples. Every expectation
    of a non-decreasing function is then bounded as well, however many are asked
    for: no union over orders is needed.
    """
    found = np.asarray(counts, dtype=np.float64)
    total = found.sum(axis=-1, keepdims=True)
    above = total - np.cumsum(found, axis=-1)
    share = _probability(gamma) / max(found.shape[-1] - 1, 1)
    band = betting_total(above, int(total.min()), share)
    band[..., -1] = 0.0  # nothing lies above the known maximum
    return np.minimum.accumulate(band, axis=-1)


def empirical_bernstein(values: ArrayLike, maximum: float, gamma: float) -> float:
    """An upper bound on the mean of independent, identically distributed variables in [0, maximum].

    References: Maurer & Pontil 2009, Theorem 4.
    """
    maximum = checks.real("maximum", maximum, above=0.0)
    scaled = _bounded(values, maximum)
    checks.integer("number of values", scaled.size, at_least=2)
    log_term = math.log(2 / _probability(gamma))
    spread = math.sqrt(2 * float(scaled.var(ddof=1)) * log_term / scaled.size)
    return maximum * min(1.0, float(scaled.mean()) + spread + 7 * log_term / (3 * (scaled.size - 1)))


def clopper_pearson(successes: int, trials: int, gamma: float) -> float:
    """The exact upper confidence limit for the probability of a binary outcome (Clopper & Pearson 1934)."""
    trials = checks.integer("trials", trials, at_least=1)
    successes = checks.integer("successes", successes, at_least=0, at_most=trials)
    if successes == trials:
        return 1.0
    return float(stats.beta.ppf(1 - _probability(gamma), successes + 1, trials - successes))


def flat_prior_as_published(successes: int, trials: int, gamma: float) -> float:
    """Paper Y, equation (12): a posterior quantile under a flat prior. Not a bound; for comparison only."""
    trials = checks.integer("trials", trials, at_least=1)
    successes = checks.integer("successes", successes, at_least=0, at_most=trials)
    return float(stats.beta.ppf(1 - _probability(gamma), successes + 1, trials - successes + 1))


def student_t_as_published(values: ArrayLike, gamma: float) -> float:
    """Paper Y, equation (13): mean plus a t quantile. Not a bound (ERRATA 9); for comparison only."""
    found = np.asarray(values, dtype=np.float64)
    quantile = float(stats.t.ppf(1 - _probability(gamma), found.size - 1))
    return float(found.mean() + quantile / math.sqrt(found.size - 1) * found.std())


def _probability(gamma: float) -> float:
    return checks.real("gamma", gamma, above=0.0, below=1.0)


def _bounded(values: ArrayLike, maximum: float) -> Array:
    """Values over their maximum; one that is above it, or no number, counts as the maximum."""
    scaled = np.asarray(values, dtype=np.float64) / maximum
    return np.clip(np.where(np.isnan(scaled), 1.0, scaled), 0.0, 1.0)
