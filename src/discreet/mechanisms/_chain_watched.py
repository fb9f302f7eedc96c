# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
"""What observers are told of a chain whose tests read all records: distances of random pairs of them.

Proof: docs/proofs/dp_mcmc.md#observers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet.mechanisms._chain import Array, Moved, accept
from discreet.mechanisms._chain_mechanism import MomentStep
from discreet.mechanisms.base import Plan
from discreet.mechanisms.proposals import Noise
from discreet.models.base import Theta
from discreet.privacy import ObservedRun, Observer

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class WatchedPairs:
    """Draws the pairs of every step, and hands their distances to the observers.

    Args:
        plan: of a chain that reads all records in each step.
        observers: who watches.
    """

    plan: Plan
    observers: tuple[Observer, ...]

    @property
    def pairs(self) -> int:
        """How many distances each step has."""
        return max((observer.pairs for observer in self.observers), default=0)

    def begin(self) -> None:
        """Tell the observers what is public."""
        if not self.observers:
            return
        p, n = self.plan.parameters, cast("int", self.plan.size)
        run = ObservedRun(
            rate=1.0,
            sigma=math.sqrt(cast("float", p["variance"])),
            largest=2 * cast("float", p["clip"]) / math.sqrt(n),
            steps=cast("int", p["steps"]) * cast("int", p["chains"]),
            guarantee=self.plan.guarantee,
            neighbours=self.plan.guarantee.neighbours,
        )
        for observer in self.observers:
            observer.begin(run)

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, ...]:
        """Independent uniform pairs of two different records for each step: first all first ones."""
        if not self.observers:
            return ()
        n = cast("int", self.plan.size)
        first = generator.integers(n, size=(*shape, self.pairs))
        second = (first + 1 + generator.integers(n - 1, size=first.shape)) % n
        return (np.concatenate([first, second], axis=-1).astype(np.float64),)

    def observe(self, distances: Array) -> None:
        """Distances of some steps, leading axis = step."""
        for step in distances:
            for observer in self.observers:
                observer.observe(step[: observer.pairs])


class WatchedStep(MomentStep):
    """A step that also says how far pairs of records are apart, where the test noise names pairs."""

    def __call__(
        self, theta: Theta, noise: Noise, test: Any, batch: Theta, constants: Mapping[str, float]
    ) -> Moved:
        candidate, public = self.propose(theta, noise)
        ratios = self.ratios(theta, candidate, batch, constants)
        accepted, clipped = self.decide(ratios, public, test, constants)
        return Moved(
            accept(accepted, candidate, theta), accepted, clipped, _distances(ratios, test, constants["clip"])
        )


def _distances(ratios: jax.Array, test: Any, clip: float) -> tuple[jax.Array, ...]:
    """How far replacing the first record of a pair by the second moves the mean of the released normal."""
    from jax import lax

    _, _, *pairs = test
    if not pairs:
        return ()
    places = lax.convert_element_type(pairs[0], np.int64)
    first, second = lax.split(ratios[places], (len(places) // 2,) * 2)
    return (lax.mul(lax.abs(lax.sub(first, second)), clip / math.sqrt(len(ratios))),)
