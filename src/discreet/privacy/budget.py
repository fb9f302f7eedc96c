"""What may be spent."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.privacy import checks
from discreet.privacy.neighbours import Neighbours, as_neighbours


@dataclass(frozen=True)
class Budget:
    """An upper limit on privacy loss: epsilon at a delta.

    Args:
        epsilon: the largest privacy loss allowed, positive.
        delta: the probability of a larger one, in [0, 1); 0 asks for pure
            differential privacy.
        neighbours: the relation the budget is meant for. If it is given, a
            guarantee under the other relation is refused; if not, the budget is
            read in the relation of the guarantee it is compared with.

    Example:
        >>> Budget(epsilon=1.0, delta=1e-6, neighbours="substitute")
        Budget(epsilon=1.0, delta=1e-06, neighbours=<Neighbours.SUBSTITUTE: 'substitute'>)
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.real("epsilon", self.epsilon, above=0.0))
        object.__setattr__(self, "delta", checks.real("delta", self.delta, at_least=0.0, below=1.0))
        if self.neighbours is not None:
            object.__setattr__(self, "neighbours", as_neighbours(self.neighbours))
