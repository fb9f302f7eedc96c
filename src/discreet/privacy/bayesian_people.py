"""Bayesian privacy from whole runs: what the run cost each of some people, summed person by person.

Where a person's costs are known for every step (shadow trajectories), no inequality
between steps is needed. Proof page: docs/proofs/bayesian_accountant.md#people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.privacy import checks
from discreet.privacy.arrays import Array
from discreet.privacy.bayesian import Moments, log_mean_bound, powers_of
from discreet.privacy.bayesian_estimators import survival_band
from discreet.privacy.bayesian_loss import BayesianLoss, Definition
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.sensitive import Sensitive

_BINS = 512


@dataclass(frozen=True)
class PeopleCosts:
    """The log moments of a whole run, for people picked at random from those in the data.

    Attributes:
        orders: lambda, one for each row.
        log_moments: lambda D_{lambda + 1} summed over steps; a row for each order, a column
            for each person.
        largest: what no entry of a row can exceed, from the worst case.
        everyone: whether nobody was left out; then there is nothing to estimate.
        guarantee: the differential privacy of the run.
        neighbours: whether the person is absent or replaced in the other table.
    """

    orders: Array
    log_moments: Array
    largest: Array
    everyone: bool
    guarantee: Guarantee
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def result(
        self, delta: float, *, gamma: float = 1e-6, definition: Definition = "average", adaptive: bool = False
    ) -> Sensitive[BayesianLoss]:
        """The Bayesian privacy loss at `delta`, beside the guarantee of the run.

        Args:
            delta: gamma included.
            gamma: the probability that the estimate is too low; not needed for everyone.
            definition: "average" or "tail", as in `BayesianAccountant`.
            adaptive: as in `BayesianAccountant`.
        """
        checks.real("delta", delta, above=0.0, below=1.0)
        powers, shares = powers_of(adaptive), self.orders.size
        rows = zip(self.log_moments, self.largest, strict=True)
        means = np.stack([self._log_means(row, top, gamma / shares, powers) for row, top in rows])
        aside = 0.0 if self.everyone else gamma
        kind: Definition = "tail" if adaptive else definition
        moments = Moments(self.orders, powers, means, aside, kind, adaptive)
        found = moments.epsilons(delta)
        best = int(np.argmin(found))
        loss = BayesianLoss(
            epsilon=max(0.0, float(found[best])),
            delta=delta,
            gamma=aside,
            order=float(self.orders[best]),
            guarantee=self.guarantee,
            neighbours=self.neighbours,
            definition=kind,
            adaptive=adaptive,
        )
        return Sensitive(loss, "Bayesian privacy loss")

    def _log_means(self, values: Array, top: float, gamma: float, powers: Array) -> Array:
        """Bounds on log E exp(power * cost): the mean itself for everyone, else by the band."""
        if self.everyone:
            if not np.isfinite(values).all():
                return np.full(powers.shape, np.inf)
            scaled = np.multiply.outer(powers, values)
            most = scaled.max(axis=1)
            return most + np.log(np.exp(scaled - most[:, None]).mean(axis=1)) + 1e-12
        if not np.isfinite(top):
            return np.full(powers.shape, np.inf)
        nodes = top * np.geomspace(1e-3, 1.0, _BINS)
        places = np.minimum(np.searchsorted(nodes, values), _BINS - 1)
        band = survival_band(np.bincount(places, minlength=_BINS), gamma)
        return log_mean_bound(nodes, band[None], powers, np.ones(1))
