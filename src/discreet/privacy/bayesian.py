"""`BayesianAccountant`: what a person like those in the data risks, beside the guarantee for everybody.

Bayesian differential privacy (paper Y) is about a person drawn from the same
distribution as the data. It is data-dependent, so it is `Sensitive`; it protects
nobody who is unusual, so it is no `Guarantee`. Proof page:
docs/proofs/bayesian_accountant.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike

from discreet.privacy import checks, conversion
from discreet.privacy.arrays import Array
from discreet.privacy.bayesian_costs import SubsampledGaussian, SubstitutedGaussian
from discreet.privacy.bayesian_estimators import survival_band
from discreet.privacy.bayesian_loss import BayesianLoss, Definition
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.observer import ObservedRun
from discreet.privacy.sensitive import Sensitive

NODES = 2048
"""Distances are rounded up to one of so many values, the smallest a thousandth of the largest."""

_UNIT_NODES: Array = np.geomspace(1e-3, 1.0, NODES)

ORDERS: Array = np.concatenate(
    [np.geomspace(0.1, 0.9, 8), np.arange(1.0, 33.0), np.round(np.geomspace(34, 256, 24))]
)
"""lambda in fixed composition, where any number of orders is free; the best is refined."""

ADAPTIVE_ORDERS: Array = np.array([0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64])
"""lambda in adaptive composition, where each costs its share of delta."""

_POWERS: Array = np.geomspace(1 / 16, 256, 25)
_OVER = 1e-4
"""What a distance may exceed the largest by, relative: single precision, no more."""

_ROUNDING = 1e-6
"""What single precision takes from a squared distance, over the largest squared."""


class Cost(Protocol):
    """lambda D_{lambda + 1} of one step, increasing in the distance."""

    def log_moments(self, orders: ArrayLike, distances: ArrayLike) -> Array:
        """One row for each order, one column for each distance."""
        ...


@dataclass(frozen=True)
class Moments:
    """Upper bounds on log E exp(power * K) over people, K being a person's log moment of the whole run.

    Attributes:
        orders: lambda, one for each row.
        powers: one for each column.
        log_means: the bounds.
        gamma: the probability that one of them is none.
        definition: of the loss.
        adaptive: whether each step may depend on the outputs of earlier ones.
    """

    orders: Array
    powers: Array
    log_means: Array
    gamma: float
    definition: Definition
    adaptive: bool

    def __post_init__(self) -> None:
        # What is no number bounds nothing.
        object.__setattr__(self, "log_means", np.where(np.isnan(self.log_means), np.inf, self.log_means))

    @property
    def price(self) -> float:
        """Log of the number of orders that share delta; any number is free in fixed composition."""
        return math.log(self.orders.size) if self.adaptive else 0.0

    def epsilons(self, delta: float) -> Array:
        """One epsilon for each order."""
        if delta <= self.gamma:
            return np.full(self.orders.shape, np.inf)
        share = -math.log((delta - self.gamma) / (2 if self.adaptive else 1))
        if self.definition == "average":
            return conversion.improved(self.orders + 1, self.log_means[:, 0] / self.orders, share)
        return (self._means(share) + self.price + share * self.adaptive) / self.orders

    def _means(self, share: float) -> Array:
        # In adaptive composition Markov's inequality is used twice, over people and over outputs.
        return ((self.log_means + share) / self.powers).min(axis=1)

    def delta(self, epsilon: float) -> float:
        """The smallest delta of all orders and powers."""
        return min(1.0, math.exp(min(0.0, float(self.log_deltas(epsilon).min()))) + self.gamma)

    def log_deltas(self, epsilon: float) -> Array:
        """log(delta - gamma) for each order."""
        loss = self.orders[:, None] * epsilon - self.price
        if self.definition == "average":
            return conversion.log_delta(self.orders + 1, self.log_means[:, 0] / self.orders, epsilon)
        if not self.adaptive:
            return (self.log_means - loss).min(axis=1)
        return math.log(2) - ((loss * self.powers - self.log_means) / (1 + self.powers)).max(axis=1)


class BayesianAccountant:
    """Watches a run of noisy sums, and says what a person like those in it risks.

    One observer, one run: `begin`, `observe` once for each step, then `result`.
    Memory is constant. Steps that were declared and not observed, distances
    that were asked for and not given, and distances that are no numbers count as
    the largest. A distance above the largest makes every answer infinite: the run is not
    the one that was declared, and an exception would say so in public.

    Args:
        pairs: how many distances of each step are used.
        gamma: the probability that the estimate is too low; part of delta.
        definition: "average" is the hockey-stick divergence, averaged over people (paper Y's
            weak form, and comparable with a DP epsilon); "tail" is the probability of a
            larger loss (its strong form, which adaptive composition proves).
        adaptive: False is composition as in paper Y, corrected: it assumes that what a
            step costs a person does not depend on how earlier outputs answered to that
            person. True assumes nothing of the run, and costs more.
        blocks: how many stretches of the run are estimated separately. More follow a run
            whose distances change over time; fewer have more samples each.
        orders: lambda, if not the usual ones, refined on the reals.

    Guarantee:
        None: Bayesian differential privacy is not one, and cannot be added to one.

    References: Triastcyn & Faltings 2020; ERRATA 8, 9 and S7; docs/proofs/bayesian_accountant.md.

    Example:
        >>> from discreet.privacy import poisson_gaussian
        >>> cost = poisson_gaussian(0.01, 1.0, 500, neighbours="add_remove")
        >>> accountant = BayesianAccountant(pairs=64)
        >>> accountant.begin(ObservedRun(rate=0.01, sigma=1.0, largest=1.0, steps=500, guarantee=cost))
        >>> for _ in range(500):
        ...     accountant.observe(np.full(64, 0.2))
        >>> loss = accountant.result(1e-5)
        >>> print(loss)
        <Bayesian privacy loss: sensitive, not for release; the data holder may call reveal()>
    """

    def __init__(
        self,
        *,
        pairs: int = 64,
        gamma: float = 1e-6,
        definition: Definition = "average",
        adaptive: bool = False,
        blocks: int = 16,
        orders: Sequence[float] | None = None,
    ) -> None:
        self.pairs = checks.integer("pairs", pairs, at_least=1)
        self.gamma = checks.real("gamma", gamma, above=0.0, below=1.0)
        self.adaptive = adaptive
        self.definition: Definition = "tail" if adaptive else definition
        if definition not in ("average", "tail"):
            raise ValueError(
                f"definition must be average or tail, got {definition!r}; the default is average"
            )
        self.blocks = checks.integer("blocks", blocks, at_least=1)
        usual = ADAPTIVE_ORDERS if adaptive else ORDERS
        self._refined = orders is None and not adaptive
        chosen = usual.tolist() if orders is None else orders
        self._orders: Array = np.array([checks.real("orders", order, above=0.0) for order in chosen])
        self._run: ObservedRun | None = None

    # --- watching -----------------------------------------------------------------

    def begin(self, run: ObservedRun) -> None:
        """A run starts; what was seen of another is forgotten."""
        self._run, self._seen = run, 0
        self._nodes = run.largest * _UNIT_NODES
        blocks = min(self.blocks, run.steps)
        self._lengths = np.diff(np.linspace(0, run.steps, blocks + 1).round()).astype(np.int64)
        self._counts = np.zeros((blocks, NODES), dtype=np.int64)
        self._known: Moments | None = None
        self._broken = False

    def observe(self, distances: ArrayLike) -> None:
        """One step was taken: distances of records drawn at random, in random order, for this step."""
        run = self._begun()
        if self._seen == run.steps:
            raise ValueError(
                f"the run declared {run.steps} steps and took another; declare as many as it takes"
            )
        given = np.asarray(distances, dtype=np.float64).reshape(-1)[: self.pairs]
        self._broken |= bool(np.any(given > run.largest * (1 + _OVER)))
        given = np.hypot(given, math.sqrt(_ROUNDING) * run.largest)
        places = np.minimum(np.searchsorted(self._nodes, given), NODES - 1)  # NaN is sorted last
        block = int(np.searchsorted(np.cumsum(self._lengths), self._seen, side="right"))
        self._counts[block] += np.bincount(places, minlength=NODES)
        self._counts[block, -1] += self.pairs - given.size
        self._seen, self._known = self._seen + 1, None

    # --- answers --------------------------------------------------------------------

    def epsilon(self, delta: float) -> Sensitive[float]:
        """The Bayesian epsilon at `delta`, gamma included."""
        return self.result(delta).map(lambda loss: loss.epsilon, "Bayesian epsilon")

    def delta(self, epsilon: float) -> Sensitive[float]:
        """The Bayesian delta at `epsilon`, gamma included."""
        checks.real("epsilon", epsilon, at_least=0.0)
        self._begun()
        _, moments = self._best(lambda known: known.log_deltas(epsilon))
        return Sensitive(moments.delta(epsilon), "Bayesian delta")

    def result(self, delta: float) -> Sensitive[BayesianLoss]:
        """The Bayesian privacy loss at `delta`, beside the guarantee of the run."""
        checks.real("delta", delta, above=0.0, below=1.0)
        run = self._begun()
        order, moments = self._best(lambda known: known.epsilons(delta))
        epsilon = max(0.0, float(moments.epsilons(delta).min()))
        return Sensitive(
            BayesianLoss(
                epsilon=epsilon,
                delta=delta,
                gamma=self.gamma,
                order=order,
                guarantee=run.guarantee,
                neighbours=Neighbours(run.neighbours),
                definition=self.definition,
                adaptive=self.adaptive,
            ),
            "Bayesian privacy loss",
        )

    # --- inside ---------------------------------------------------------------------

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a BayesianAccountant holds what it saw of the data and cannot be pickled or copied; "
            "call result and reveal, and keep what you choose to"
        )

    def _begun(self) -> ObservedRun:
        if self._run is None:
            raise ValueError(
                "the accountant has seen no run; give it to a mechanism as an observer, or call begin"
            )
        return self._run

    def _best(self, loss: Callable[[Moments], Array]) -> tuple[float, Moments]:
        """The order of least loss; in fixed composition the orders are refined on the reals."""
        known = self._moments()
        found = loss(known)
        for _ in range(2 if self._refined else 0):
            best = int(np.argmin(found))
            low, high = known.orders[max(best - 1, 0)], known.orders[min(best + 1, found.size - 1)]
            finer: Array = np.geomspace(float(low), float(high), 9)
            finer[4] = known.orders[best]
            known = self._moments_at(np.sort(finer))
            found = loss(known)
        return float(known.orders[int(np.argmin(found))]), known

    def _moments(self) -> Moments:
        if self._known is None or self._run is None:
            self._known = self._moments_at(self._orders)
        return self._known

    def _moments_at(self, orders: Array) -> Moments:
        counts = self._counts.copy()
        counts[:, -1] += self._lengths * self.pairs - counts.sum(axis=1)  # what was not observed
        bands = np.stack([survival_band(one, self.gamma / len(counts)) for one in counts])
        powers = powers_of(self.adaptive)
        costs = _costs(cost_of(self._begun()), self._begun().largest, tuple(orders.tolist()))
        lengths = self._lengths.astype(np.float64)
        means = np.stack([log_mean_bound(row, bands, powers, lengths) for row in costs])
        if self._broken:
            means = np.full_like(means, np.inf)
        return Moments(orders, powers, means, self.gamma, self.definition, self.adaptive)


@lru_cache(maxsize=16)
def _costs(cost: Cost, largest: float, orders: tuple[float, ...]) -> Array:
    """The costs of one step at every order and node."""
    return cost.log_moments(orders, largest * _UNIT_NODES)


def cost_of(run: ObservedRun) -> Cost:
    """What a step of a run costs."""
    if run.neighbours is Neighbours.ADD_REMOVE:
        return SubsampledGaussian(run.rate, run.sigma)
    return SubstitutedGaussian(run.rate, run.sigma, run.largest / 2)


def powers_of(adaptive: bool) -> Array:
    """The powers s of the moments: free to choose in adaptive composition, 1 in fixed."""
    return _POWERS if adaptive else np.ones(1)


def log_mean_bound(values: Array, bands: Array, powers: Array, lengths: Array) -> Array:
    """Log of an upper bound on E exp(power * sum of all costs), over people, for each power.

    `values` is the cost of one step, increasing over bins; a band S of a block gives
    E h <= h_0 + sum_k (h_{k+1} - h_k) S_k for every increasing h. Hoelder's inequality
    joins the steps, with any exponents: the best of three choices is taken.
    """
    if not math.isfinite(values[-1]):
        return np.full(powers.shape, np.inf)
    usual = values[0] + bands[:, :-1] @ np.diff(values)  # the mean cost of a step of each block
    found: list[Array] = []
    for tilt in (0.0, 0.5, 1.0):
        weight = np.maximum(usual / usual.max(), 1e-3) ** tilt
        weight = weight / (weight * lengths).sum()  # 1 / exponent of each step; they sum to 1
        exponents = powers[:, None] / weight
        scaled = np.exp(exponents[:, :, None] * (values - values[-1]))
        total = scaled[:, :, 0] + (np.diff(scaled, axis=2) * bands[None, :, :-1]).sum(axis=2)
        found.append(((exponents * values[-1] + np.log(total)) * (weight * lengths)).sum(axis=1))
    return np.min(found, axis=0) * (1 + 1e-12) + 1e-12 * powers * values[-1]
