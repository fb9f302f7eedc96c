"""The terms of a canonical regression with a bounded response: f(t) = A(t) - y t.

The response is scaled to [0, 1] and the rows by its range, so that A'' <= 1/4 and
|A'''| <= A'' as for the logistic loss. Proof page: docs/proofs/exact_sampling.md#bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp, ndtr

from discreet.samplers._potential import Array, Potential, least_share

_LARGE = 500.0


@dataclass(frozen=True, eq=False)
class BoundedPotential(Potential):
    """The potential with A(t) = log sum_j exp(log_base_j + nodes_j t).

    Args:
        outcomes: y, in [0, 1].
        nodes: where the base measure lives, in [0, 1].
        log_base: the logarithms of its masses.
    """

    outcomes: Array = field(kw_only=True)
    nodes: Array = field(kw_only=True)
    log_base: Array = field(kw_only=True)

    def _log_shares(self, t: Array) -> Array:
        """Log probabilities of the nodes, one row per t."""
        logs = self.log_base + t[:, None] * self.nodes
        return logs - logsumexp(logs, axis=1, keepdims=True)

    def total(self, t: Array) -> float:
        return float((logsumexp(self.log_base + t[:, None] * self.nodes, axis=1) - self.outcomes * t).sum())

    def slopes(self, t: Array) -> Array:
        return np.exp(self._log_shares(t)) @ self.nodes - self.outcomes

    def curvatures(self, t: Array) -> Array:
        return self.around(t).curvature

    def around(self, t: Array) -> BoundedCurves:
        return BoundedCurves(self._log_shares(t), self.nodes)

    def jensen(self, reach: Array) -> Array:
        """E[e^|u| - 1 - |u|] - r^2/2, as f''(t + v) <= f''(t) e^|v|."""
        half = reach**2 / 2
        exact = 2 * np.exp(half) * ndtr(reach) - 1 - reach * math.sqrt(2 / math.pi) - half
        # Where that would be rounding error, the first two terms of its series, rounded up.
        small = reach**3 * (math.sqrt(8 / math.pi) / 6 + reach / 7)
        return np.where(reach < 1e-2, small, exact)


class BoundedCurves:
    """Terms around t, by the probabilities of the nodes there.

    Args:
        log_shares: log probabilities, one row per record.
        nodes: in [0, 1].
    """

    def __init__(self, log_shares: Array, nodes: Array) -> None:
        self._log_shares = log_shares
        self._shares = np.exp(log_shares)
        self._centred = nodes - (self._shares @ nodes)[:, None]
        self.sign = np.ones(len(log_shares))
        # Zero but for rounding, which would otherwise outweigh phi for small u.
        self._drift = (self._shares * self._centred).sum(axis=1)
        self.curvature: Array = (self._shares * self._centred**2).sum(axis=1)

    def remainder(self, u: Array) -> Array:
        """phi(u) = log E[exp((y - E y) u)], which is not negative by Jensen's inequality."""
        near = np.clip(u, -_LARGE, _LARGE)
        out = -self._drift * near
        for share, centred in zip(self._shares.T, self._centred.T, strict=True):
            out += share * np.expm1(centred * near)
        np.log1p(out, out=out)
        far = np.abs(u) > _LARGE
        if far.any():
            row = np.broadcast_to(np.arange(u.shape[-1]), u.shape)[far]
            out[far] = logsumexp(self._log_shares[row] + self._centred[row] * u[far][:, None], axis=1)
        return np.maximum(out, 0.0)

    def mean_curvature(self, u: Array) -> Array:
        """2 g(|u|) s, the least that |f'''| <= f'' allows."""
        return 2 * self.curvature * least_share(np.abs(u))
