"""What a sampler gets and gives: a generalised posterior, draws from it, and evidence that they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.models.base import Model, Records, Theta
from discreet.models.losses import Loss
from discreet.privacy.evidence import Evidence
from discreet.privacy.sensitive import Sensitive
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax

TRACES: Counter[str] = Counter()
"""How often each program was traced, which is how often it was compiled."""


class SamplingError(RuntimeError):
    """A sampler's own check failed, and nothing was released."""


@dataclass(frozen=True)
class Sampled:
    """What a sampler hands back.

    Attributes:
        draws: unconstrained parameters by name, leading axis = draw.
        evidence: what is known of their law, without a word that depends on data.
        diagnostics: for the data holder's eyes.
    """

    draws: dict[str, NDArray[np.float64]]
    evidence: tuple[Evidence, ...] = ()
    diagnostics: dict[str, Sensitive[Any]] = field(default_factory=dict[str, Sensitive[Any]])


class Sampler(Protocol):
    """A way to draw from exp(-sum of losses) times the prior; a frozen dataclass of public settings."""

    @property
    def distance(self) -> float:
        """Total variation per draw that the plan must bill; 0 for an exact sampler, or on trust."""
        ...

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What is known before any data."""
        ...

    def refusal(self, model: Model, loss: Loss) -> str | None:
        """Why it cannot serve this posterior, or None if it can."""
        ...

    def sample(
        self, model: Model, loss: Loss, records: Records, randomness: Randomness, draws: int
    ) -> Sampled:
        """Independent draws."""
        ...


@dataclass(frozen=True)
class Target:
    """A generalised posterior as a function of one flat vector.

    Attributes:
        model: likelihood and prior.
        loss: the loss; only its type matters here, its numbers are arguments.
    """

    model: Model
    loss: type[Loss]

    @property
    def size(self) -> int:
        """Number of unconstrained parameters."""
        return sum(math.prod(shape) for shape in self.model.parameter_shapes.values())

    def theta(self, flat: jax.Array) -> Theta:
        """The named parameters; leading axes of `flat` stay leading axes."""
        named: Theta = {}
        start = 0
        for name, shape in self.model.parameter_shapes.items():
            stop = start + math.prod(shape)
            named[name] = flat[..., start:stop].reshape(*flat.shape[:-1], *shape)
            start = stop
        return named

    def flat(self, theta: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The inverse of `theta`, for one draw."""
        return np.concatenate([np.ravel(theta[name]) for name in self.model.parameter_shapes])

    def log_density(
        self, flat: jax.Array, numbers: Mapping[str, Any], records: Mapping[str, jax.Array]
    ) -> jax.Array:
        """Log prior minus the sum of the losses, up to a constant."""
        import jax

        theta = self.theta(flat)
        loss = object.__new__(self.loss)  # only `value`, which takes its numbers as arguments
        losses = jax.vmap(lambda record: loss.value(self.model, numbers, theta, record))(dict(records))
        return self.model.log_prior(theta) - losses.sum()


def named_draws(target: Target, flat: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Draws by name from an array (draws, size), in double precision."""
    return {name: np.asarray(value, dtype=np.float64) for name, value in target.theta(flat).items()}  # pyright: ignore[reportArgumentType]
