# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Priors of a network's weights, and how far a normal is from them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.privacy import checks

if TYPE_CHECKING:
    import jax

PRIORS: dict[str, type[Prior]] = {}
"""Name of a prior -> its class, for models that were saved."""


@dataclass(frozen=True)
class Prior(ABC):
    """A distribution of every weight and bias by itself."""

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        PRIORS[cls.__name__] = cls

    @abstractmethod
    def log_density(self, weights: Any) -> jax.Array:
        """The sum over weights of the log density, up to a constant."""

    @abstractmethod
    def divergence(self, mean: Any, sd: Any) -> jax.Array:
        """The sum of KL(N(mean, sd^2) || prior), up to a constant."""

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray | None:
        """Weights drawn from it, or None if it is improper."""
        del generator, shape
        return None

    @property
    def precision(self) -> float | None:
        """That of a normal prior."""
        return None


@dataclass(frozen=True)
class GaussianPrior(Prior):
    """N(0, sd^2).

    Args:
        sd: its standard deviation.
    """

    sd: float = 1.0

    def __post_init__(self) -> None:
        checks.real("sd", self.sd, above=0.0)

    def log_density(self, weights: Any) -> jax.Array:
        return -0.5 / self.sd**2 * (weights**2).sum()

    def divergence(self, mean: Any, sd: Any) -> jax.Array:
        import jax.numpy as jnp

        return ((sd**2 + mean**2) / (2 * self.sd**2) - jnp.log(sd)).sum()

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.sd * generator.standard_normal(shape)

    @property
    def precision(self) -> float:
        return self.sd**-2


@dataclass(frozen=True)
class LaplacePrior(Prior):
    """exp(-|w| / scale) / (2 scale).

    Args:
        scale: the mean of |w|.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        checks.real("scale", self.scale, above=0.0)

    def log_density(self, weights: Any) -> jax.Array:
        import jax.numpy as jnp

        return -jnp.abs(weights).sum() / self.scale

    def divergence(self, mean: Any, sd: Any) -> jax.Array:
        import jax.numpy as jnp
        from jax.scipy.special import erf

        size = sd * math.sqrt(2 / math.pi) * jnp.exp(-0.5 * (mean / sd) ** 2)
        return ((size + mean * erf(mean / (sd * math.sqrt(2)))) / self.scale - jnp.log(sd)).sum()

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return generator.laplace(0.0, self.scale, shape)


@dataclass(frozen=True)
class FlatPrior(Prior):
    """No information: the density 1 everywhere, which no posterior draw but a gradient method takes."""

    def log_density(self, weights: Any) -> jax.Array:
        return 0.0 * weights.sum()

    def divergence(self, mean: Any, sd: Any) -> jax.Array:
        import jax.numpy as jnp

        return (0.0 * mean - jnp.log(sd)).sum()
