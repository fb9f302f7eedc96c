"""What a chain sums over records: any loss of `discreet.models.losses`, or the log-likelihood itself.

A loss whose range over all records and parameters is certified needs no clipping: one
record's term changes by at most that range when the parameters move (the
beta-divergence, paper B, Lemma 2 and Proposition 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from discreet.models.base import Bound, Model, Theta
from discreet.models.slopes import lipschitz

if TYPE_CHECKING:
    import jax


class Loss(Protocol):
    """A term per record; the target is prior * exp(- sum of losses).

    A loss may also have `change(model, theta, candidate, record)`, loss(theta) - loss(candidate), where that
    is cheaper than the two.
    """

    def __call__(self, model: Model, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        """The loss of one record; small is likely."""
        ...

    def range(self, model: Model) -> Bound:
        """Sup minus inf over all records and parameters, or a refusal."""
        ...


@dataclass(frozen=True)
class LogLikelihood:
    """Minus the log density of a record."""

    def __call__(self, model: Model, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return -model.log_density(theta, record)

    def change(
        self, model: Model, theta: Theta, candidate: Theta, record: Mapping[str, jax.Array]
    ) -> jax.Array:
        """The log-likelihood ratio of one record."""
        return model.log_ratio(candidate, theta, record)

    def range(self, model: Model) -> Bound:
        """Certified only for models that bound the log density."""
        known = model.bounds.get("log_density")
        if known is None:
            raise ValueError(
                f"the log-likelihood of {type(model).__name__} has no certified range; "
                "clip its ratios, or use the beta-divergence"
            )
        return Bound(2 * known.value, known.evidence)

    def slope(self, model: Model) -> Bound:
        """The longest gradient of a record's log density, or a refusal."""
        return lipschitz(model)
