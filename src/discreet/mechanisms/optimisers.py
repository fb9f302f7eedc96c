# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""What an optimiser makes of noisy gradients: Optax's rules, with the step size taken from a schedule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.neural.schedules import Schedule, as_schedule
from discreet.privacy import checks

if TYPE_CHECKING:
    import optax


@dataclass(frozen=True)
class Optimiser(ABC):
    """A rule that turns gradients into steps.

    Args:
        step_size: a number, or a schedule of them.
    """

    step_size: float | Schedule

    def __post_init__(self) -> None:
        if not isinstance(self.step_size, Schedule):
            checks.real("step_size", self.step_size, above=0.0)

    @property
    def step_sizes(self) -> Schedule:
        """Step by step."""
        return as_schedule(self.step_size)

    @abstractmethod
    def direction(self) -> optax.GradientTransformation:
        """Optax's transformation, before the step size and the sign."""


@dataclass(frozen=True)
class Sgd(Optimiser):
    """DP-SGD: the noisy gradient itself (Abadi et al. 2016).

    Args:
        step_size: a number, or a schedule of them.
    """

    def direction(self) -> optax.GradientTransformation:
        import optax

        return optax.identity()


@dataclass(frozen=True)
class HeavyBall(Optimiser):
    """DP-HeavyBall: a decaying sum of noisy gradients.

    Args:
        step_size: a number, or a schedule of them.
        momentum: what is left of the sum after a step.
        nesterov: whether the sum looks one step ahead.
    """

    momentum: float = 0.9
    nesterov: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("momentum", self.momentum, at_least=0.0, below=1.0)

    def direction(self) -> optax.GradientTransformation:
        import optax

        return optax.trace(self.momentum, nesterov=self.nesterov)


@dataclass(frozen=True)
class Adam(Optimiser):
    """DP-Adam: noisy gradients over the root of the mean of their squares (Kingma & Ba 2015).

    Args:
        step_size: a number, or a schedule of them.
        first: what is left of the mean after a step.
        second: what is left of the mean of squares.
        stability: added to the root.
    """

    first: float = 0.9
    second: float = 0.999
    stability: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("first", self.first, at_least=0.0, below=1.0)
        checks.real("second", self.second, at_least=0.0, below=1.0)
        checks.real("stability", self.stability, above=0.0)

    def direction(self) -> optax.GradientTransformation:
        import optax

        return optax.scale_by_adam(self.first, self.second, self.stability)
