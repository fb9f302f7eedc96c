"""A small faithful noisy-sum mechanism: what private SGD does in every step, for all to see.

Bugs are planted in it by overriding one method. It has no
optimiser: every step releases the noisy sum of clipped gradients at a fixed point,
which is all that an attacker can want.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from discreet.audit import Pair
from discreet.audit.subject import Outputs, Score, matrix
from discreet.mechanisms.base import Drawn, Mechanism, Plan
from discreet.models.base import Model, Records, Theta, count
from discreet.privacy import Budget, Evidence, Guarantee, Neighbours, calibrate, poisson_gaussian
from discreet.samplers.randomness import Randomness

from .kit import Array


@dataclass(frozen=True)
class Vectors(Model):
    """Records {"x": a vector}; the gradient of one record is |x|^2 x, whatever the parameters."""

    length: int = 1

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": (self.length,)}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"w": (self.length,)}

    def log_prior(self, theta: Theta) -> Any:
        return 0.0 * theta["w"].sum()

    def log_density(self, theta: Theta, record: Any) -> Any:
        return (record["x"] ** 2).sum() * (record["x"] @ theta["w"])


@dataclass(frozen=True)
class NoisySums(Mechanism):
    """Noisy sums of clipped gradients over Poisson batches, divided by the expected batch.

    Args:
        model: the records.
        rate: with which a record enters a step.
        steps: how many.
        clip: C.
        size: the public number of records that the divisor is made of.
        sigma: the noise over the clipping norm, if it is not to be found from a budget.
    """

    model: Vectors = field(default_factory=Vectors)  # pyright: ignore[reportIncompatibleMethodOverride]
    rate: float = 0.5
    steps: int = 1
    clip: float = 1.0
    size: int = 2
    sigma: float | None = None

    # --- the claim ---------------------------------------------------------------------

    def price(self, sigma: float, neighbours: Neighbours) -> Guarantee:
        """What all steps cost."""
        return poisson_gaussian(self.rate, sigma, self.steps, neighbours=neighbours)

    def multiplier(self, budget: Budget, neighbours: Neighbours) -> float:
        """Noise over the clipping norm."""
        if self.sigma is not None:
            return self.sigma
        return calibrate(lambda sigma: self.price(sigma, neighbours), budget, (0.05, 1e3)).value

    def plan(self, n: int | None, *, budget: Budget) -> Plan:
        """Find the noise that the budget asks for; n is None under add_remove."""
        neighbours = Neighbours.ADD_REMOVE if n is None else Neighbours.SUBSTITUTE
        honest = NoisySums.multiplier(self, budget, neighbours)
        return Plan(
            mechanism=self,
            size=n,
            guarantee=NoisySums.price(self, honest, neighbours),
            evidence=(Evidence.proved("gradients are clipped one by one", "tests/planted"),),
            parameters={"multiplier": self.multiplier(budget, neighbours)},
        )

    # --- a run --------------------------------------------------------------------------

    def batches(self, generator: np.random.Generator, runs: int, n: int) -> Array:
        """How often each record is in each step: runs, steps, records."""
        return (generator.random((runs, self.steps, n)) < self.rate).astype(np.float64)

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Standard normal noise: runs, steps, coordinates."""
        return generator.standard_normal(shape)

    def clipped(self, x: Array) -> Array:
        """One gradient per record, of norm C at most; one that is not finite counts as 0."""
        with np.errstate(over="ignore", invalid="ignore"):
            square = (x**2).sum(axis=1, keepdims=True)
            slopes = square * x
            norms = np.linalg.norm(slopes, axis=1, keepdims=True)
            shrunk = slopes * np.minimum(1.0, self.clip / np.maximum(norms, 1e-300))
        return np.where(np.isfinite(norms), shrunk, 0.0)

    def shown(self, sums: Array, noise: Array, batches: Array) -> Array:  # noqa: ARG002
        """What is released of the sums and their noise: the noisy sum over the expected batch."""
        return (sums + noise) / (self.rate * self.size)

    def many(self, plan: Plan, records: Records, runs: int, randomness: Randomness) -> Outputs:
        """All steps of many runs."""
        generator = randomness.numpy()
        batches = self.batches(generator, runs, count(records))
        sums = batches @ self.clipped(records["x"])
        loud = float(plan.parameters["multiplier"]) * self.clip  # pyright: ignore[reportArgumentType]
        return self.shown(sums, loud * self.noise(generator, sums.shape), batches)

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:  # noqa: ARG002
        shown = np.asarray(self.many(plan, records, 1, randomness))
        return Drawn({"w": shown[0]})

    # --- the best attack where only one record is not 0 ------------------------------------

    def log_ratio(self, plan: Plan, pair: Pair) -> Score:
        """Of the right mechanism's density, step by step."""
        loud = float(plan.parameters["multiplier"]) * self.clip  # pyright: ignore[reportArgumentType]
        directions = [self.clipped(np.asarray(side["x"])).sum(axis=0) for side in pair.sides]

        def log_density(y: Array, g: Array) -> Array:
            apart = ((y - g) ** 2).sum(axis=2) / (2 * loud**2)
            away = (y**2).sum(axis=2) / (2 * loud**2)
            with np.errstate(divide="ignore"):
                terms = np.stack([math.log(self.rate) - apart, np.log1p(-self.rate) - away])
            return special.logsumexp(terms, axis=0).sum(axis=1)

        def score(outputs: Outputs) -> Array:
            y = np.asarray(outputs) * (self.rate * self.size)
            first, second = (log_density(y.reshape(len(y), self.steps, -1), g) for g in directions)
            return first - second

        return score


def flat(outputs: Outputs) -> Array:
    """One row per run."""
    return matrix(outputs)
