# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
"""Where a chain may go next: proposals that never look at the data.

A proposal takes the current parameters and fresh noise, and returns a candidate with
log q(theta | candidate) - log q(candidate | theta). Any object with that method will do.
A candidate outside the support of the prior is rejected, and the step is billed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from discreet.models.base import Theta
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax


class Noise(NamedTuple):
    """The randomness of one step; what a proposal leaves unused costs nothing.

    Attributes:
        normal: standard normals in the shapes of the parameters.
        uniform: uniforms on (0, 1) in the shapes of the parameters.
        words: two random words of 32 bits, from which `key` is made.
    """

    normal: Theta
    uniform: Theta
    words: jax.Array

    @property
    def key(self) -> jax.Array:
        """A JAX key for anything else."""
        import jax

        return jax.random.wrap_key_data(self.words, impl="threefry2x32")


class Proposal(Protocol):
    """What suggests the next state. It must not depend on the data, nor read it."""

    def propose(self, theta: Theta, noise: Noise) -> tuple[Theta, jax.Array | float]:
        """A candidate, and log q(theta | candidate) - log q(candidate | theta)."""
        ...


@dataclass(frozen=True)
class RandomWalk:
    """candidate = theta + scale * N(0, I), symmetric.

    Args:
        scale: one number, or one per parameter name.

    References: Metropolis et al. 1953.
    """

    scale: float | Mapping[str, float]

    def __post_init__(self) -> None:
        if isinstance(self.scale, Mapping):
            for name, value in self.scale.items():
                checks.real(f"scale of {name}", value, above=0.0)
        else:
            checks.real("scale", self.scale, above=0.0)

    def propose(self, theta: Theta, noise: Noise) -> tuple[Theta, float]:
        from jax import lax

        moves = {name: lax.mul(normal, self._of(name)) for name, normal in noise.normal.items()}
        return {name: lax.add(value, moves[name]) for name, value in theta.items()}, 0.0

    def _of(self, name: str) -> float:
        return float(self.scale[name] if isinstance(self.scale, Mapping) else self.scale)


@dataclass(frozen=True)
class CorrelatedWalk:
    """candidate = theta + N(0, covariance), over all parameters laid end to end, names in alphabetical order.

    The covariance must be public. That of an earlier release is, and costs nothing more.

    Args:
        covariance: positive definite; 2.4^2 / dimension times the posterior's is a good one.

    References: Roberts, Gelman & Gilks 1997.
    """

    covariance: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        given = np.asarray(self.covariance, dtype=np.float64)
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not np.allclose(given, given.T):
            raise ValueError(
                f"covariance must be a symmetric matrix, got shape {given.shape}; give a row per parameter"
            )
        if not np.all(np.isfinite(given)) or np.linalg.eigvalsh(given)[0] <= 0:
            raise ValueError(
                "covariance must be positive definite, got another; add a little to its diagonal"
            )
        object.__setattr__(self, "covariance", tuple(tuple(row) for row in given.tolist()))

    def propose(self, theta: Theta, noise: Noise) -> tuple[Theta, float]:
        import jax.numpy as jnp

        names = sorted(theta)
        flat = jnp.concatenate([noise.normal[name].ravel() for name in names])
        moves = np.linalg.cholesky(np.asarray(self.covariance)) @ flat
        ends = np.cumsum([theta[name].size for name in names])[:-1]
        parts = jnp.split(moves, ends)
        return {
            name: theta[name] + part.reshape(theta[name].shape)
            for name, part in zip(names, parts, strict=True)
        }, 0.0


@dataclass(frozen=True)
class IntegerWalk:
    """candidate = theta + a uniform step from -width, ..., width without 0; for whole-number parameters.

    Args:
        width: the longest step.
    """

    width: int = 1

    def __post_init__(self) -> None:
        checks.integer("width", self.width, at_least=1)

    def propose(self, theta: Theta, noise: Noise) -> tuple[Theta, float]:
        import jax.numpy as jnp

        def moved(name: str) -> jax.Array:
            step = jnp.floor(2 * self.width * noise.uniform[name]) - self.width
            return theta[name] + jnp.where(step >= 0, step + 1, step)

        return {name: moved(name) for name in theta}, 0.0


@dataclass(frozen=True)
class Langevin:
    """A preconditioned Langevin step along a public log density.

    candidate = theta + step/2 * P grad log g(theta) + sqrt(step P) N(0, I), with P
    diagonal. The drift must be public: the prior, an earlier release, an expert's
    guess. The data enter through the acceptance test only.

    Args:
        step: the step size.
        log_target: log g, a function of the parameters; it must not read the data.
        preconditioner: diagonal of P, a number, or one per parameter name.

    References: Roberts & Tweedie 1996; Girolami & Calderhead 2011.
    """

    step: float
    log_target: Callable[[Theta], jax.Array]
    preconditioner: float | Mapping[str, float] = 1.0

    def __post_init__(self) -> None:
        checks.real("step", self.step, above=0.0)
        given = self.preconditioner
        for value in given.values() if isinstance(given, Mapping) else (given,):
            checks.real("preconditioner", value, above=0.0)

    def propose(self, theta: Theta, noise: Noise) -> tuple[Theta, jax.Array | float]:
        ahead = self._mean(theta)
        candidate = {name: ahead[name] + self._sd(name) * noise.normal[name] for name in theta}
        back = self._mean(candidate)
        forth_square = sum((noise.normal[name] ** 2).sum() for name in theta)
        back_square = sum((((theta[name] - back[name]) / self._sd(name)) ** 2).sum() for name in theta)
        return candidate, 0.5 * (forth_square - back_square)

    def _mean(self, theta: Theta) -> Theta:
        import jax

        slope = jax.grad(self.log_target)(theta)
        return {name: value + 0.5 * self._sd(name) ** 2 * slope[name] for name, value in theta.items()}

    def _sd(self, name: str) -> float:
        p = self.preconditioner[name] if isinstance(self.preconditioner, Mapping) else self.preconditioner
        return (self.step * p) ** 0.5
