"""The proximal chain: a Gibbs sampler whose distance from the posterior is proved for every data set.

Proof page: docs/proofs/exact_sampling.md#proximal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from discreet.samplers._potential import RESIDUAL, Array, Curves, Potential
from discreet.samplers._public_bounds import Setting, tries_for

_CENTRE = 0.01
"""|gradient|^2 at a centre over its precision is at most this; costs acceptance e^(-0.005)."""
_LOG_ACCEPTANCE = -4.0


@dataclass(frozen=True)
class ProximalPlan:
    """How the chain runs; from public numbers only.

    Attributes:
        width: h; the forward step has variance h / lambda.
        steps: N.
        tries: of each backward step.
    """

    width: float
    steps: int
    tries: int


def plan_proximal(setting: Setting, gamma: float) -> ProximalPlan:
    """The widest step with a worst-case acceptance of e^-4; half of gamma goes to running out."""
    d, kappa = setting.dimension, setting.load

    def log_acceptance(h: float) -> float:
        return -0.5 * d * math.log1p(kappa * h / ((1 + h) * d)) - _CENTRE / 2

    low, high = 1e-8, 1e4
    if log_acceptance(high) >= _LOG_ACCEPTANCE:
        low = high
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if log_acceptance(middle) >= _LOG_ACCEPTANCE else (low, middle)
    start = (1 + RESIDUAL) * math.sqrt(d / (2 * math.pi * low))
    steps = 1 + math.ceil(max(0.0, math.log(2 * start / gamma)) / math.log1p(low))
    tries = tries_for(log_acceptance(low), gamma / (2 * steps))
    return ProximalPlan(low, steps, int(tries))


class ProximalChain:
    """From the mode, N times: y ~ N(w, h/lambda I), w ~ exp(-U(w) - lambda |w - y|^2 / (2h)) by rejection.

    Args:
        potential: the posterior.
        setting: its public numbers.
        plan: how long.
    """

    def __init__(self, potential: Potential, setting: Setting, plan: ProximalPlan) -> None:
        self._potential, self._plan = potential, plan
        self._start, _ = potential.mode
        self._pull = potential.precision / plan.width
        self._precision = potential.precision + self._pull
        self._smoothness = self._precision + 0.25 * potential.weight * setting.size * setting.row_norm**2
        curvatures = potential.curvatures(potential.rows @ self._start)
        self._factor = cho_factor(potential.gram(curvatures, self._pull), lower=True)

    def draw(self, generator: np.random.Generator, batch: int = 4) -> Array | None:
        """The last point of the chain, or None if a step ran out of tries."""
        w: Array | None = self._start
        for _ in range(self._plan.steps):
            w = self._step(w, generator, batch)
            if w is None:
                return None
        return w

    def _step(self, w: Array, generator: np.random.Generator, batch: int) -> Array | None:
        d = len(w)
        y = w + generator.standard_normal(d) / math.sqrt(self._pull)
        centre, gradient, curves = self._centre(y)
        rows, used = self._potential.rows, 0
        while used < self._plan.tries:
            count = min(batch, self._plan.tries - used)
            noise = generator.standard_normal((count, d)) / math.sqrt(self._precision)
            step = noise - gradient / self._precision
            cost = self._potential.weight * curves.remainder((step @ rows.T) * curves.sign).sum(axis=1)
            accepted = np.flatnonzero(cost <= generator.standard_exponential(count))
            if len(accepted):
                return centre + step[accepted[0]]
            used += count
        return None

    def _centre(self, y: Array) -> tuple[Array, Array, Curves]:
        """A point where the backward potential is nearly flat, by a fixed matrix, then gradient descent."""
        potential = self._potential
        w = self._start + cho_solve(self._factor, self._pull * (y - self._start))
        last, descend = math.inf, False
        for count in range(1_000_000):
            t = potential.rows @ w
            gradient = (
                potential.precision * w
                + self._pull * (w - y)
                + potential.weight * (potential.rows.T @ potential.slopes(t))
            )
            flatness = float(gradient @ gradient) / self._precision
            if flatness <= _CENTRE:
                return w, gradient, potential.around(t)
            # Gradient descent always arrives; the fixed matrix nearly always sooner.
            descend = descend or (count > 3 and flatness > 0.5 * last)
            last = flatness
            w = w - (gradient / self._smoothness if descend else cho_solve(self._factor, gradient))
        raise FloatingPointError("the centre of a proximal step was not found")
