"""An audit in one run: many canaries, each put in or left out by a coin, and guesses about all of them.

Proof page: docs/proofs/audit.md#one-run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from discreet.audit import bounds
from discreet.audit.membership import headline_delta
from discreet.privacy import Guarantee, checks
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
_LARGEST = 60.0


@dataclass(frozen=True)
class OneRun:
    """What guesses about canaries in one run say.

    Attributes:
        epsilon: a lower bound on epsilon at `delta`, whatever the mechanism (Steinke et al.).
        mu: a lower bound on mu, where the claim is Gaussian (Mahloujifar et al.); else None.
        epsilon_of_mu: what `mu` comes to at `delta`; else None.
        refuted: whether the claimed trade-off curve cannot give so many right guesses.
        delta: where.
        confidence: of every bound, each by itself.
        claim: what the guarantee says at `delta`.
        canaries: how many there were.
        guesses: how many were guessed about.
        right: how many guesses were right.
    """

    epsilon: float
    mu: float | None
    epsilon_of_mu: float | None
    refuted: bool
    delta: float
    confidence: float
    claim: float
    canaries: int
    guesses: int
    right: int

    @property
    def passes(self) -> bool:
        """Whether nothing was found that the claim excludes."""
        return not self.refuted and self.epsilon <= self.claim

    def describe(self) -> str:
        """The finding in words."""
        lines = [
            f"one run, {self.canaries:,} canaries: {'within the claim' if self.passes else 'CLAIM VIOLATED'}",
            f"  claimed: epsilon {self.claim:.6g} at delta {self.delta:g}",
            f"  {self.right:,} of {self.guesses:,} guesses right: epsilon is at least {self.epsilon:.4g}",
        ]
        if self.epsilon_of_mu is not None:
            lines.append(f"  if the claim is Gaussian, at least {self.epsilon_of_mu:.4g}")
        return "\n".join(lines)


def one_run(
    run: Callable[[NDArray[np.bool_], Randomness], Array],
    canaries: int,
    claim: Guarantee,
    *,
    share: float = 0.05,
    confidence: float = 0.999,
    delta: float | None = None,
    key: int | None = None,
) -> OneRun:
    """Put each canary in with probability a half, run once, and guess.

    A canary is one person's record. The relation of the claim must be what a coin
    decides: for add/remove that the record is there, for substitution that it is
    this record or a fixed other one.

    Args:
        run: from which canaries are in, to a score for each; a large score means in.
            Everything in it but the scoring is the mechanism.
        canaries: how many.
        claim: the guarantee under test, of the whole run.
        share: of the canaries that are guessed about: those with the most extreme
            scores, half of the guesses being in. Fixed before the run.
        confidence: of the bounds.
        delta: where epsilon is bounded; None is 0 or 1e-5, as for `membership`.
        key: makes the audit reproducible.

    References: Steinke, Nasr & Jagielski 2023, Theorem 5.2; Mahloujifar, Melis &
        Chaudhuri 2025, Algorithm 3; docs/proofs/audit.md#one-run.

    Example:
        >>> from discreet.privacy import gaussian
        >>> claim = gaussian(1.0, sensitivity=1.0, neighbours="add_remove")
        >>> def noisy_sum(there, randomness):  # canary i is the i-th axis
        ...     return there + randomness.numpy().normal(0, 1, len(there))
        >>> found = one_run(noisy_sum, 5_000, claim, key=3)
        >>> found.passes, 1.7 < found.epsilon_of_mu < found.claim
        (True, True)
    """
    checks.integer("canaries", canaries, at_least=2)
    checks.real("share", share, above=0.0, at_most=1.0)
    randomness = Randomness(key)
    there = randomness.numpy().random(canaries) < 0.5
    scores = np.asarray(run(there, randomness), dtype=np.float64)
    if scores.shape != (canaries,):
        raise ValueError(f"run must give one score per canary, {canaries}, got shape {scores.shape}")
    half = max(1, round(share * canaries / 2))
    order = np.argsort(scores, kind="stable")
    right = int(there[order[-half:]].sum() + (~there[order[:half]]).sum())
    return judge_one_run(canaries, 2 * half, right, claim, confidence=confidence, delta=delta)


def judge_one_run(
    canaries: int,
    guesses: int,
    right: int,
    claim: Guarantee,
    *,
    confidence: float = 0.999,
    delta: float | None = None,
) -> OneRun:
    """The bounds that a number of right guesses gives.

    Args:
        canaries: m, each in with probability a half.
        guesses: r, how many were guessed about.
        right: v, how many guesses were right.
        claim: the guarantee under test.
        confidence: of the bounds.
        delta: where epsilon is bounded.
    """
    where = headline_delta(claim) if delta is None else delta
    failure = 1 - confidence

    def too_many(epsilon: float) -> float:
        return probability_of_right(canaries, guesses, right, epsilon, where) - failure

    if too_many(0.0) >= 0:
        epsilon = 0.0
    elif too_many(_LARGEST) < 0:
        epsilon = math.inf
    else:
        epsilon = float(optimize.brentq(too_many, 0.0, _LARGEST, xtol=1e-6))
    claimed = bounds.claimed_mu(claim)
    mu = by_mu = None
    if claimed is not None:

        def impossible(value: float) -> bool:
            back = lambda p: float(special.ndtr(special.ndtri(p) - value))  # noqa: E731
            return refutes(back, canaries, guesses, right, failure)

        low, high = 0.0, 20.0
        if impossible(low):
            while high - low > 1e-4:
                middle = (low + high) / 2
                low, high = (middle, high) if impossible(middle) else (low, middle)
        mu = low
        by_mu = bounds.epsilon_of_mu(mu, where)
    back = inverse_blow_up(claim)
    return OneRun(
        epsilon=epsilon,
        mu=mu,
        epsilon_of_mu=by_mu,
        refuted=refutes(back, canaries, guesses, right, failure),
        delta=where,
        confidence=confidence,
        claim=claim.epsilon(where),
        canaries=canaries,
        guesses=guesses,
        right=right,
    )


def probability_of_right(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """An upper bound on the probability of so many right guesses under (epsilon, delta).

    P(V >= v) + 2 m delta max_i P(v - i <= V < v) / i, V binomial with r trials of
    probability 1 / (1 + e^-epsilon).
    """
    law = stats.binom(guesses, special.expit(epsilon))
    tail = float(law.sf(right - 1))
    if delta > 0 and right > 0:
        i = np.arange(1, right + 1)
        between = law.cdf(right - 1) - law.cdf(right - 1 - i)
        tail += 2 * canaries * delta * float(np.max(between / i))
    return min(1.0, tail)


def refutes(back: Callable[[float], float], canaries: int, guesses: int, right: int, failure: float) -> bool:
    """Whether a trade-off curve makes so many right guesses less likely than `failure`.

    Args:
        back: from the probability of an event to the least that it can be on a neighbour.
        canaries: m.
        guesses: c'.
        right: c.
        failure: the significance level.
    """
    if right <= guesses / 2:
        return False
    here = failure * right / canaries
    there = failure * (guesses - right) / canaries
    for i in range(right - 1, -1, -1):
        following = max(there, back(min(here, 1.0)))
        here += i / (guesses - i) * (following - there)
        there = following
        if here + there > guesses / canaries:
            return True
    return False


def inverse_blow_up(claim: Guarantee) -> Callable[[float], float]:
    """The least probability on a neighbour that a claim allows an event of some probability.

    max over epsilon of (p - delta(epsilon)) / e^epsilon, over a few points of the curve;
    fewer points allow more, so that the answer errs for the claim.
    """
    mu = bounds.claimed_mu(claim)
    if mu is not None and claim.inexactness == 0:
        return lambda p: float(special.ndtr(special.ndtri(p) - mu))
    pure = claim.epsilon(0.0)
    top = pure if math.isfinite(pure) else min(claim.epsilon(1e-9), 50.0)
    epsilons = np.unique(np.concatenate([np.linspace(0, top, 25)]))
    deltas = np.array([claim.delta(e) for e in epsilons.tolist()])
    return lambda p: float(np.max(np.maximum((p - deltas) * np.exp(-epsilons), 0.0)))
