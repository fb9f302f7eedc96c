# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""How a record's gradient is kept bounded: the weight it gets, given its norm.

Proof page: docs/proofs/private_gradients.md#clipping.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.neural.schedules import Schedule, as_schedule
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax

ROUNDING = 2.0**-10
"""The norm that is clipped to lies so much below C, which is more than single precision loses in a norm."""


@dataclass(frozen=True)
class Clipping(ABC):
    """A rule for the weight of a gradient.

    Args:
        norm: C, public: what no contribution exceeds; a number, or a schedule of them.
    """

    norm: float | Schedule = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.norm, Schedule):
            checks.real("norm", self.norm, above=0.0)

    @property
    def norms(self) -> Schedule:
        """C, step by step."""
        return as_schedule(self.norm)

    def settled(self, slope: Callable[[], float]) -> Clipping:  # noqa: ARG002
        """The rule with its C.

        Args:
            slope: gives the proved bound on the gradients of the loss, or refuses.
        """
        return self

    def weights(self, squares: Any, bound: Any) -> jax.Array:
        """The weight of each gradient; 0 for one whose norm is not finite.

        Args:
            squares: the squared norms.
            bound: C of this step.
        """
        import jax.numpy as jnp

        norms = jnp.sqrt(squares)
        good = jnp.isfinite(norms)
        found = self.factor(jnp.where(good, norms, 1.0), bound * (1 - ROUNDING))
        return jnp.where(good, found, 0.0)

    @abstractmethod
    def factor(self, norms: Any, bound: Any) -> jax.Array:
        """The weights, such that weight times norm is at most `bound`; norms are finite."""


@dataclass(frozen=True)
class Flat(Clipping):
    """min(1, C / |g|): gradients longer than C are shortened (Abadi et al. 2016).

    Args:
        norm: C, public; a number or a schedule.
    """

    def factor(self, norms: Any, bound: Any) -> jax.Array:
        import jax.numpy as jnp

        return jnp.minimum(1.0, bound / jnp.maximum(norms, 1e-30))


@dataclass(frozen=True)
class Automatic(Clipping):
    """C / (|g| + gamma): every gradient gets about the same length (Bu et al. 2023).

    Args:
        norm: C, public; a number or a schedule.
        stability: gamma, which lets short gradients stay short.
    """

    stability: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("stability", self.stability, above=0.0)

    def factor(self, norms: Any, bound: Any) -> jax.Array:
        return bound / (norms + self.stability)


@dataclass(frozen=True)
class Unclipped(Clipping):
    """Every gradient as it is, where it is proved that none is longer than C.

    A gradient whose computed norm contradicts the proof, or is not finite, counts 0: what
    is computed is bounded by C whatever the proof is worth.

    Args:
        norm: left out; the mechanism fills in the bound that is proved for its model and
            loss.

    References: paper B, Condition 2 and Proposition 3; docs/proofs/private_gradients.md#certified.
    """

    norm: float | Schedule = math.inf

    def __post_init__(self) -> None:
        if self.norm != math.inf:
            super().__post_init__()

    def settled(self, slope: Callable[[], float]) -> Clipping:
        norm = slope() * (1 + 1e-9) / (1 - ROUNDING)
        if self.norm not in {math.inf, norm}:
            raise ValueError(
                f"norm must be left out, as C is the proved bound {norm:.6g}, got {self.norm}; "
                "write Unclipped(), or clip with Flat"
            )
        return Unclipped(norm)

    def factor(self, norms: Any, bound: Any) -> jax.Array:
        import jax.numpy as jnp

        return jnp.where(norms <= bound, 1.0, 0.0)
