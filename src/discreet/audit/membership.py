"""Can a release tell which of two neighbouring data sets it came from, more often than it claims?

Proof page: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from discreet.audit import bounds
from discreet.audit.bounds import Event
from discreet.audit.learned import learned
from discreet.audit.subject import Outputs, Pair, Score, Subject, cut, runs_of, subject
from discreet.mechanisms.base import Plan
from discreet.privacy import Guarantee, checks
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
_FIRST, _DELTA = 5, 1e-5
_THRESHOLDS, _LUCK = 400, 2.0
_ROUNDED = 1e-8


@dataclass(frozen=True)
class Found:
    """What an attack found.

    Attributes:
        epsilon: a lower bound on epsilon at `delta`, at `confidence`: Clopper-Pearson's, or
            that of the Gaussian family where the claim is Gaussian, whichever is larger.
        delta: where.
        confidence: of the bound; it is wrong with probability 1 - confidence at most.
        claim: what the guarantee says at `delta`.
        contradicted: a point (epsilon, delta) of the claim that cannot be true, or None.
        clopper_pearson: the lower bound that supposes nothing about the mechanism.
        mu: a lower bound on the claim's mu, where the claim is Gaussian.
        credible: what epsilon exceeds with posterior probability `confidence`; Bayesian,
            for comparison.
        attack: which score won on the runs it was chosen on.
        trials: runs on each of the two data sets.
        success: how often the best guess, data sets equally likely, was right on held-out runs.
        events: what was counted.
        curve: measured trade-off, rows (false positive rate, false negative rate).
        name: what was attacked.
        pair: how the pair was found.
    """

    epsilon: float
    delta: float
    confidence: float
    claim: float
    contradicted: tuple[float, float] | None
    clopper_pearson: float
    mu: float | None
    credible: float
    attack: str
    trials: int
    success: float
    events: tuple[Event, ...]
    curve: Array
    name: str = "subject"
    pair: str = "given"

    @property
    def passes(self) -> bool:
        """Whether nothing was found that the claim excludes."""
        return self.contradicted is None and self.epsilon <= self.claim

    def describe(self) -> str:
        """The finding in words."""
        verdict = "within the claim" if self.passes else "CLAIM VIOLATED"
        lines = [
            f"{self.name}: {verdict}",
            f"  claimed: epsilon {self.claim:.6g} at delta {self.delta:g}",
            f"  attacked: epsilon is at least {self.epsilon:.4g}, with confidence {self.confidence:g}",
            f"  by {self.attack}, on {self.trials:,} runs of each of two neighbouring data sets",
            f"  the best guess between the two was right {100 * self.success:.1f} % of the time",
        ]
        if self.contradicted is not None:
            epsilon, delta = self.contradicted
            lines.append(f"  contradicted: epsilon {epsilon:.4g} with delta {delta:.3g}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain values; an infinite number becomes None."""
        return {
            "subject": self.name,
            "pair": self.pair,
            "attack": self.attack,
            "trials": self.trials,
            "confidence": self.confidence,
            "delta": self.delta,
            "claim": _plain(self.claim),
            "epsilon": _plain(self.epsilon),
            "clopper_pearson": _plain(self.clopper_pearson),
            "mu": None if self.mu is None else _plain(self.mu),
            "credible": _plain(self.credible),
            "success": self.success,
            "passes": self.passes,
            "contradicted": None if self.contradicted is None else list(self.contradicted),
            "curve": self.curve.tolist(),
        }


def membership(
    audited: Plan | Subject,
    pair: Pair | None = None,
    *,
    trials: int = 100_000,
    confidence: float = 0.999,
    delta: float | None = None,
    key: int | None = None,
    learn: bool | None = None,
    last_bits: bool = False,
) -> Found:
    """Attack a plan: run it on two neighbouring data sets, and tell the outputs apart.

    Half of the runs choose the attack and its threshold, the other half count.

    Args:
        audited: a plan, or any `Subject`.
        pair: two neighbouring data sets; None searches for the worst ones.
        trials: runs on each of the two.
        confidence: of the lower bound.
        delta: where epsilon is bounded; None is 0 where the claim has an epsilon there,
            and 1e-5 otherwise.
        key: makes the audit reproducible; None takes the operating system's entropy.
        learn: whether to train attackers; None does where the best one is not known.
        last_bits: whether scores keep the bits that rounding leaves, through which noise in
            floating point gives itself away (Mironov 2012); without them it is the noise
            of the proof that is attacked.

    References: Jagielski, Ullman & Oprea 2020; Nasr et al. 2023; paper B, Section 4;
        docs/proofs/audit.md.

    Example:
        >>> from discreet import Budget, mechanisms, models
        >>> mechanism = mechanisms.PerturbedStatistics(models.BetaBernoulli((6, 12)), "laplace")
        >>> found = membership(mechanism.plan(2, budget=Budget(1.0)), trials=10_000, key=7)
        >>> found.passes, 0.8 < found.epsilon <= found.claim
        (True, True)
    """
    checks.integer("trials", trials, at_least=20)
    thing = subject(audited)
    if pair is None:
        from discreet.audit.pairs import worst_pair

        if thing.plan is None:
            raise ValueError("pair must be given for a subject without a plan, got None; give two neighbours")
        pair = worst_pair(thing.plan)
    pair = thing.checked(pair)
    randomness = Randomness(key)
    first, second = (thing.draw_many(dict(side), trials, randomness) for side in pair.sides)  # pyright: ignore[reportArgumentType]
    score = None if thing.log_ratio is None else thing.log_ratio(pair)
    scores = [] if score is None else [("the best attack there is", score)]
    return attack(
        first,
        second,
        thing.guarantee,
        scores=scores,
        learn=not scores if learn is None else learn,
        confidence=confidence,
        delta=delta,
        key=randomness.integer() % 2**32,
        name=thing.name,
        pair=pair.why,
        last_bits=last_bits,
    )


def attack(
    first: Outputs,
    second: Outputs,
    claim: Guarantee,
    *,
    scores: list[tuple[str, Score]] | None = None,
    learn: bool = True,
    confidence: float = 0.999,
    delta: float | None = None,
    key: int = 0,
    name: str = "subject",
    pair: str = "given",
    last_bits: bool = False,
) -> Found:
    """Bound epsilon from outputs on two neighbouring data sets that are there already.

    Args:
        first: outputs of independent runs on the records.
        second: the same on the neighbour, as many.
        claim: the guarantee under test.
        scores: attacks by name; the best of them is chosen on half of the runs.
        learn: whether to train more of them, on a part of that half.
        confidence: of the lower bound.
        delta: where epsilon is bounded.
        key: seed of the training.
        name: what is attacked.
        pair: where the data sets come from.
        last_bits: whether to keep all bits of the scores.
    """
    checks.real("confidence", confidence, above=0.0, below=1.0)
    runs = runs_of(first)
    if runs_of(second) != runs:
        raise ValueError(
            f"both sides must have as many runs, got {runs} and {runs_of(second)}; run both again"
        )
    where = headline_delta(claim) if delta is None else checks.real("delta", delta, at_least=0.0, below=1.0)
    half = runs // 2
    candidates, start = list(scores or []), 0
    if learn:
        start = int(0.7 * half)
        candidates += learned(cut(first, 0, start), cut(second, 0, start), key)
    mu = bounds.claimed_mu(claim)
    tests = 1 if mu is None else 2
    failure = (1 - confidence) / tests
    best: dict[str, tuple[float, str, _Threshold]] = {}
    seen: dict[str, tuple[Array, Array]] = {}
    for label, score in candidates:
        one, other = _tidy(score(first), score(second), last_bits=last_bits)
        seen[label] = one, other
        for kind in ("any", "gaussian")[:tests]:
            value, threshold = _choose(one[start:half], other[start:half], where, failure, kind)
            if kind not in best or value > best[kind][0]:
                best[kind] = (value, label, threshold)
    events = {kind: t.count(*(side[half:] for side in seen[label])) for kind, (_, label, t) in best.items()}
    label = best["any"][1]
    one, other = (side[half:] for side in seen[label])
    plain = bounds.clopper_pearson(events["any"], where, 1 - failure)
    found_mu = None
    epsilon = plain
    if mu is not None:
        label = best["gaussian"][1]
        found_mu = bounds.gaussian_mu(events["gaussian"], 1 - failure, float(claim.inexactness))
        epsilon = max(plain, bounds.epsilon_of_mu(found_mu, where))
    contradictions = (bounds.refuted(event, claim, 1 - failure) for event in events.values())
    return Found(
        epsilon=epsilon,
        delta=where,
        confidence=confidence,
        claim=claim.epsilon(where),
        contradicted=next((c for c in contradictions if c is not None), None),
        clopper_pearson=plain,
        mu=found_mu,
        credible=bounds.credible(events["any"], where, confidence),
        attack=label,
        trials=runs,
        success=_success(one, other),
        events=tuple(events.values()),
        curve=_curve(one, other),
        name=name,
        pair=pair,
    )


def headline_delta(claim: Guarantee) -> float:
    """0 where the claim has an epsilon there, else 1e-5."""
    return 0.0 if math.isfinite(claim.epsilon(0.0)) else _DELTA


@dataclass(frozen=True)
class _Threshold:
    """An event of a score: above `at`, or below it, where the neighbour is likelier."""

    at: float
    swapped: bool

    def count(self, first: Array, second: Array) -> Event:
        above = int(np.count_nonzero(first > self.at)), int(np.count_nonzero(second > self.at))
        if not self.swapped:
            return Event(*above, len(first))
        return Event(len(second) - above[1], len(first) - above[0], len(first), swapped=True)


def _choose(first: Array, second: Array, delta: float, failure: float, kind: str) -> tuple[float, _Threshold]:
    """The threshold and direction whose bound would be largest, on these runs."""
    both = np.sort(np.concatenate([first, second]))
    n = len(first)
    # The best of many is partly luck: the choice asks for more than the final limits do.
    strict = float(2 * stats.norm.sf(stats.norm.isf(failure / 2) + _LUCK))
    ends = both[[_FIRST, -_FIRST - 1]] if len(both) > 2 * _FIRST + 1 else both[[0, -1]]
    ranks = np.unique(
        np.concatenate(
            [np.geomspace(1, len(both), _THRESHOLDS // 4), np.linspace(1, len(both), _THRESHOLDS // 2)]
        )
    )
    places = np.unique(np.concatenate([ranks, len(both) - ranks]).astype(int).clip(0, len(both) - 1))
    values = np.unique(np.concatenate([both[places], ends]))
    # Between two different values, so that ties fall on one side.
    following = both[np.minimum(np.searchsorted(both, values, side="right"), len(both) - 1)]
    thresholds = np.unique(np.where(following > values, values / 2 + following / 2, values))
    above = [n - np.searchsorted(np.sort(side), thresholds, side="right") for side in (first, second)]
    options: list[tuple[float, _Threshold]] = []
    for swapped in (False, True):
        hits, misses = (n - above[1], n - above[0]) if swapped else (above[0], above[1])
        hit = bounds.at_least(hits, n, strict / 2)
        miss = bounds.at_most(misses, n, strict / 2)
        found = bounds.epsilon_of(hit, miss, delta) if kind == "any" else bounds.mu_of(hit, miss)
        # Where no bound is above 0, the event that differs most.
        worth = np.where(found > 0, found, -1 + 0.5 * (hits - misses) / n)
        k = int(np.argmax(worth))
        options.append((float(worth[k]), _Threshold(float(thresholds[k]), swapped)))
    return max(options, key=lambda option: option[0])


def _tidy(first: Array, second: Array, *, last_bits: bool) -> tuple[Array, Array]:
    """Scores as finite numbers, rounded unless told otherwise; one that is not a number says nothing."""
    both = np.concatenate([np.asarray(side, np.float64).reshape(-1) for side in (first, second)])
    both = np.nan_to_num(both, nan=0.0, posinf=1e300, neginf=-1e300)
    if not last_bits:
        step = _ROUNDED * float(np.quantile(np.abs(both), 0.9))
        if step > 0:
            both = np.where(np.abs(both) < 1e299, np.round(both / step) * step, both)
    return both[: len(first)], both[len(first) :]


def _success(first: Array, second: Array) -> float:
    """(1 + largest difference of the two distribution functions) / 2."""
    both = np.sort(np.concatenate([first, second]))
    gaps = np.searchsorted(np.sort(first), both, side="right") - np.searchsorted(
        np.sort(second), both, side="right"
    )
    return 0.5 + 0.5 * float(np.abs(gaps).max()) / len(first)


def _curve(first: Array, second: Array, points: int = 129) -> Array:
    """False positive and false negative rates of thresholds all along the score."""
    both = np.quantile(np.concatenate([first, second]), np.linspace(0, 1, points))
    wrong = 1 - np.searchsorted(np.sort(second), both, side="right") / len(second)
    left = np.searchsorted(np.sort(first), both, side="right") / len(first)
    return np.stack([wrong, left], axis=1)


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
