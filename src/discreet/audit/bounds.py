"""Lower bounds on epsilon from how often an attack was right and wrong.

Proof page: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

from discreet.privacy import Guarantee, checks, gaussian
from discreet.privacy.basic import Gaussian

Array = NDArray[np.float64]
PAGE = "docs/proofs/audit.md"


def at_least(successes: ArrayLike, trials: int, failure: float) -> Array:
    """Clopper-Pearson's lower limit of a probability; wrong with probability `failure` at most."""
    k = np.asarray(successes, dtype=np.float64)
    return np.where(k > 0, stats.beta.ppf(failure, np.maximum(k, 1e-9), trials - k + 1), 0.0)


def at_most(successes: ArrayLike, trials: int, failure: float) -> Array:
    """Clopper-Pearson's upper limit of a probability; wrong with probability `failure` at most."""
    k = np.asarray(successes, dtype=np.float64)
    left = np.maximum(trials - k, 1e-9)
    return np.where(k < trials, stats.beta.ppf(1 - failure, k + 1, left), 1.0)


def epsilon_of(hit: ArrayLike, miss: ArrayLike, delta: float) -> Array:
    """The epsilon without which an event cannot have probability `hit` here and `miss` there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(np.maximum(np.asarray(hit) - delta, 0.0)) - np.log(np.asarray(miss))
    return np.maximum(np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=0.0), 0.0)


def mu_of(hit: ArrayLike, miss: ArrayLike) -> Array:
    """The mu of Gaussian differential privacy without which these two probabilities cannot be."""
    return np.maximum(special.ndtri(np.asarray(hit)) - special.ndtri(np.asarray(miss)), 0.0)


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Epsilon at `delta` of N(0, 1) against N(mu, 1)."""
    if mu <= 0:
        return 0.0
    return math.inf if not math.isfinite(mu) else gaussian(1 / mu, neighbours="substitute").epsilon(delta)


@dataclass(frozen=True)
class Event:
    """An event that an attack settled on, and how often it happened in trials it had not seen.

    Attributes:
        hits: with the records under which it is likelier.
        misses: with their neighbour.
        trials: of each.
        swapped: whether the likelier ones are the neighbour's.
    """

    hits: int
    misses: int
    trials: int
    swapped: bool = False

    def limits(self, failure: float) -> tuple[float, float]:
        """Of both probabilities, the first from below, the second from above; joint failure `failure`."""
        hit = float(at_least(self.hits, self.trials, failure / 2))
        return hit, float(at_most(self.misses, self.trials, failure / 2))


def clopper_pearson(event: Event, delta: float, confidence: float) -> float:
    """A lower bound on epsilon at `delta`, at this confidence, whatever the mechanism.

    Example:
        >>> round(clopper_pearson(Event(7_311, 2_689, 10_000), 0.0, 0.999), 2)
        0.93
    """
    _check(confidence)
    return float(epsilon_of(*event.limits(1 - confidence), delta))


def gaussian_mu(event: Event, confidence: float, inexactness: float = 0.0) -> float:
    """A lower bound on mu, for a mechanism that claims mu-Gaussian differential privacy.

    Args:
        event: what the attack saw.
        confidence: of the bound.
        inexactness: the total variation that the claim allows on top; it counts for the claim.
    """
    _check(confidence)
    hit, miss = event.limits(1 - confidence)
    return float(mu_of(max(hit - inexactness, 0.0), min(miss + inexactness, 1.0)))


def credible(event: Event, delta: float, probability: float) -> float:
    """What epsilon at `delta` exceeds with this posterior probability, under Jeffreys' priors.

    A Bayesian credible bound, not a confidence bound: how often it fails depends on
    the truth. It is shown beside the others and decides nothing.

    References: Zanella-Beguelin et al. 2023, Section 4.
    """
    _check(probability)
    n = event.trials
    wrong = stats.beta(event.misses + 0.5, n - event.misses + 0.5)  # false positives
    left = stats.beta(n - event.hits + 0.5, event.hits + 0.5)  # false negatives
    grid = np.asarray(wrong.ppf((np.arange(4000) + 0.5) / 4000))

    def below(epsilon: float) -> float:
        """Posterior probability that both rates are possible at epsilon."""
        least = np.maximum(1 - delta - math.exp(epsilon) * grid, math.exp(-epsilon) * (1 - delta - grid))
        return float(np.mean(left.sf(least)))

    target = 1 - probability
    if below(0.0) >= target:
        return 0.0
    high = 1.0
    while below(high) < target and high < 600:
        high *= 2
    return float(optimize.brentq(lambda e: below(e) - target, 0.0, high, xtol=1e-6))


def refuted(event: Event, guarantee: Guarantee, confidence: float) -> tuple[float, float] | None:
    """A point (epsilon, delta) of the claim that the event contradicts, or None.

    The limits of one event hold together, so that the whole claimed curve may be
    searched for a contradiction without any correction (docs/proofs/audit.md#curve).
    """
    hit, miss = event.limits(1 - confidence)
    if hit <= miss:
        return None
    steepest = math.log(hit / miss) if miss > 0 else 30.0
    for epsilon in np.linspace(0.0, min(steepest, 30.0), 13)[:-1].tolist():
        if hit - math.exp(epsilon) * miss <= 1e-9:
            break
        delta = guarantee.delta(epsilon)
        if hit > math.exp(epsilon) * miss + delta:
            return epsilon, delta
    return None


def claimed_mu(guarantee: Guarantee) -> float | None:
    """The mu that a claim made of Gaussians alone comes to, or None for any other."""
    if not guarantee.pieces or not all(isinstance(piece, Gaussian) for piece, _ in guarantee.pieces):
        return None
    return math.sqrt(
        sum(count * piece.mu**2 for piece, count in guarantee.pieces if isinstance(piece, Gaussian))
    )


def _check(confidence: float) -> None:
    checks.real("confidence", confidence, above=0.0, below=1.0)
