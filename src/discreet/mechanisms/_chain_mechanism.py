"""What the mechanisms that run a Markov chain have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from discreet.mechanisms._chain import Array, check_starts, starts
from discreet.mechanisms.base import Mechanism, Plain
from discreet.mechanisms.losses import LogLikelihood, Loss
from discreet.models.base import Model
from discreet.privacy import Evidence, checks

BLIND = Evidence.assumed("the proposal and the first state do not depend on the data", "said by the user")
"""What nobody but the user can know."""


@dataclass(frozen=True)
class ChainMechanism(Mechanism):
    """A mechanism that runs chains on prior(theta) * exp(-N0/n * sum of losses).

    Args:
        model: likelihood and prior.
        tempered_size: N0, what the data count for, in records. None is n.
        chains: how many run side by side; each is billed.
        start: first values of the parameters (public), for all chains or one by one.
        loss: what is summed over records; the log-likelihood by default.
    """

    model: Model  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    tempered_size: int | None = field(default=None, kw_only=True)
    chains: int = field(default=1, kw_only=True)
    start: Mapping[str, ArrayLike] | None = field(default=None, kw_only=True)
    loss: Loss = field(default_factory=LogLikelihood, kw_only=True)

    def __post_init__(self) -> None:
        if self.tempered_size is not None:
            checks.integer("tempered_size", self.tempered_size, at_least=1)
        checks.integer("chains", self.chains, at_least=1)
        check_starts(self.model, self.starts())

    def starts(self) -> dict[str, Array]:
        """The first states, leading axis = chain."""
        return starts(self.model, self.start, self.chains)

    def counted_size(self, n: int) -> int:
        """N0, for `n` records."""
        checks.integer("n", n, at_least=2)
        if self.tempered_size is None:
            return n
        return checks.integer("tempered_size", self.tempered_size, at_least=1, at_most=n)

    def settings(self) -> dict[str, Plain]:
        return {
            **super().settings(),
            "loss": repr(self.loss),
            "tempered_size": self.tempered_size,
            "chains": self.chains,
            "start": {name: values.tolist() for name, values in self.starts().items()},
        }
