"""The Laplace approximation: a mode, and a linear map that makes the posterior look standard normal there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax

STEPS = 12
_FRACTIONS = (1.0, 0.3, 0.1, 0.03, 0.003, 0.0)


def fit(
    log_density: Callable[[jax.Array], jax.Array],
    log_prior: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    steps: int = STEPS,
) -> tuple[jax.Array, jax.Array]:
    """A local maximum and a square root of the inverse curvature there.

    Newton's method with absolute eigenvalues (so that it climbs where the density
    is not concave), the best of six step lengths, and a fixed number of steps. It
    need not be exact: samplers use it as a proposal, and correct for it.

    Args:
        log_density: of the posterior.
        log_prior: its prior part, whose curvature is the least that is believed.
        start: where to begin.
        steps: Newton steps.

    Returns:
        mode, and a (size, size) matrix A with A A^T near the posterior covariance.
    """
    import jax
    import jax.numpy as jnp

    gradient = jax.grad(log_density)
    size = start.shape[0]

    def step(state: tuple[jax.Array, ...], _: None) -> tuple[tuple[jax.Array, ...], None]:
        x = state[0]
        slope, hessian = jax.vmap(lambda v: jax.jvp(gradient, (x,), (v,)), out_axes=(None, 0))(jnp.eye(size))
        prior = -jnp.diagonal(jax.hessian(log_prior)(x))
        least = jnp.min(jnp.where(prior > 1e-3, prior, jnp.inf))
        floor = 0.5 * jnp.where(jnp.isfinite(least), least, 1e-3)
        hessian = jnp.where(jnp.isfinite(hessian), -hessian, 0.0)
        values, vectors = jnp.linalg.eigh(0.5 * (hessian + hessian.T))
        values = jnp.maximum(jnp.abs(values), floor)
        direction = vectors @ ((vectors.T @ slope) / values)
        candidates = x + jnp.asarray(_FRACTIONS)[:, None] * direction
        heights = jax.vmap(log_density)(candidates)
        best = jnp.argmax(jnp.where(jnp.isfinite(heights), heights, -jnp.inf))
        return (candidates[best], x, vectors / jnp.sqrt(values)), None

    # The scale belongs to the last point but one, which is the mode itself once Newton has converged.
    (_, mode, scale), _ = jax.lax.scan(step, (start, start, jnp.eye(size)), None, length=steps + 1)
    return mode, scale
