"""The accounting that paper Y prints, for comparison: products of expectations, Student's t. Not a bound.

Why it is none: ERRATA 8 and 9, docs/errata.md#8 and docs/errata.md#9.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from discreet.privacy import checks
from discreet.privacy.arrays import Array
from discreet.privacy.bayesian_costs import left_term, right_term
from discreet.privacy.comparison import Approximation
from discreet.privacy.observer import ObservedRun
from discreet.privacy.sensitive import Sensitive

_REASON = (
    "it multiplies expectations that are dependent and estimates them with Student's t, and both may "
    "lie below the truth"
)
_NODES = 4096


class PublishedBayesianAccountant:
    """Paper Y's accountant as printed: Theorems 1 to 4 and equation (13).

    Args:
        pairs: how many distances of each step are used.
        gamma: the probability that the paper gives its estimator to fail.
        orders: lambda, whole numbers.
        right_term: whether the larger of both terms of Theorem 4 is taken, as printed. The
            right one is of first order in the rate and ruins every subsampled run; the
            authors' later code has the left one in its place.

    Example:
        >>> from discreet.privacy import poisson_gaussian
        >>> cost = poisson_gaussian(0.01, 1.0, 2, neighbours="add_remove")
        >>> accountant = PublishedBayesianAccountant()
        >>> accountant.begin(ObservedRun(rate=0.01, sigma=1.0, largest=1.0, steps=2, guarantee=cost))
        >>> accountant.observe(np.full(64, 0.2))
        >>> print(accountant.result().reveal())
        Bayesian accounting as published (approximation, not a guarantee: it multiplies expectations ...)
    """

    def __init__(
        self,
        *,
        pairs: int = 64,
        gamma: float = 1e-15,
        orders: tuple[int, ...] | None = None,
        right_term: bool = True,
    ) -> None:
        self.pairs = checks.integer("pairs", pairs, at_least=2)
        self.gamma = checks.real("gamma", gamma, above=0.0, below=1.0)
        self.right_term = right_term
        self.orders: Array = np.array(orders or range(1, 65), dtype=np.float64)

    def begin(self, run: ObservedRun) -> None:
        """A run starts; what was seen of another is forgotten."""
        self._nodes: Array = run.largest * np.linspace(0.0, 1.0, _NODES)
        noise = self._nodes / run.sigma
        self._table: Array = np.stack(
            [
                np.maximum(
                    left_term(o, run.rate, noise),
                    right_term(o, run.rate, noise) if self.right_term else 0.0,
                )
                for o in self.orders.astype(int).tolist()
            ]
        )
        self._costs: Array = np.zeros_like(self.orders)

    def observe(self, distances: ArrayLike) -> None:
        """Add the estimate of one step's cost, by equation (13)."""
        given = np.asarray(distances, dtype=np.float64).reshape(-1)[: self.pairs]
        places = np.minimum(np.searchsorted(self._nodes, given), _NODES - 1)
        logs = self._table[:, places]  # rounded up to a fine grid
        top = logs.max(axis=1, keepdims=True)
        values = np.exp(logs - top)
        quantile = float(stats.t.isf(self.gamma, given.size - 1)) / math.sqrt(given.size - 1)
        estimate = values.mean(axis=1) + quantile * values.std(axis=1)
        self._costs += top[:, 0] + np.log(estimate)

    def result(self) -> Sensitive[Approximation]:
        """What paper Y would report."""
        costs, orders, gamma = self._costs.copy(), self.orders, self.gamma

        def epsilon(delta: float) -> float:
            rest = delta - gamma
            return float(((costs - math.log(rest)) / orders).min()) if rest > 0 else math.inf

        return Sensitive(
            Approximation("Bayesian accounting as published", _REASON, epsilon),
            "published Bayesian accounting",
        )


def product_as_published(log_moments: ArrayLike, weights: ArrayLike, steps: int) -> float:
    """Theorem 1 for a known distribution: log E exp(lambda D), times steps. Not a bound (ERRATA 8)."""
    return steps * float(special.logsumexp(np.asarray(log_moments), b=np.asarray(weights)))
