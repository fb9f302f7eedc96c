"""Certificates taken on somebody's word, and a random search that tries to refute them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.base import Bound, Model
from discreet.privacy import Evidence, Standing, checks

if TYPE_CHECKING:
    import jax

NAMES = ("density", "lipschitz", "lipschitz_difference", "log_density", "prior_convexity", "smoothness")
_LOWER = frozenset({"prior_convexity"})
"""Certificates that are bounds from below."""
_SLACK = 1e-6


def assumed_bounds(certificates: Mapping[str, float]) -> dict[str, Bound]:
    """Bounds that a user states."""
    found: dict[str, Bound] = {}
    for name, value in certificates.items():
        if name not in NAMES:
            raise ValueError(f"certificates must be among {', '.join(NAMES)}, got {name!r}; rename it")
        checks.real(name, value, above=0.0)
        side = "least" if name in _LOWER else "most"
        found[name] = Bound(
            float(value), Evidence.assumed(f"{name} is at {side} {value:g}", "stated by the user")
        )
    return found


def refute(model: Model, *, points: int = 2048, seed: int = 0) -> None:
    """Look for a counterexample to every assumed certificate that the search understands.

    The search uses made-up records and parameters at several scales, then climbs
    from the worst of them, and no data. Not finding one proves nothing.

    Raises:
        ValueError: if a counterexample was found.
    """
    claims = {n: b for n, b in model.bounds.items() if b.evidence.standing is Standing.ASSUMED}
    measures = _measures(model)
    for name, bound in claims.items():
        if name not in measures:
            continue
        sign = -1.0 if name in _LOWER else 1.0
        worst = sign * _search(model, measures[name], points, seed)
        if sign * (worst - bound.value) > _SLACK * max(1.0, abs(bound.value)):
            raise ValueError(
                f"the certificate {name!r} must hold for all records and parameters, got {bound.value:g} "
                f"where a random search on made-up records found {worst:.6g}; state a "
                f"{'smaller' if sign < 0 else 'larger'} bound or restrict the model"
            )


def refute_concavity(model: Model, *, points: int = 2048, seed: int = 0) -> None:
    """Look for a record and parameters at which the log density curves upwards.

    Raises:
        ValueError: if some were found.
    """
    import jax.numpy as jnp

    def upward(theta: Any, one: Any, other: Any) -> jax.Array:
        return jnp.max(_curvatures(model, theta, one)) + 0 * model.log_density(theta, other)

    worst = _search(model, upward, points, seed)
    if worst > _SLACK:
        raise ValueError(
            "the log density must be concave in the unconstrained parameters for the price of a Gibbs "
            f"posterior, got {type(model).__name__}, where a random search on made-up records found a "
            f"curvature of {worst:.4g}; use BetaDivergence() or ClippedGibbs(bound=...)"
        )


def _curvatures(model: Model, theta: Any, record: Any) -> jax.Array:
    """Eigenvalues of the Hessian of the log density of one record."""
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    flat, unravel = ravel_pytree(theta)
    return jnp.linalg.eigvalsh(jax.hessian(lambda v: model.log_density(unravel(v), record))(flat))


def _measures(model: Model) -> dict[str, Callable[..., jax.Array]]:
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    def slope(theta: Any, record: Any) -> jax.Array:
        return ravel_pytree(jax.grad(model.log_density)(theta, record))[0]

    def least_curvature(theta: Any, one: Any, other: Any) -> jax.Array:
        flat, unravel = ravel_pytree(theta)
        hessian = jax.hessian(lambda v: model.log_prior(unravel(v)))(flat)
        return jnp.max(jnp.linalg.eigvalsh(hessian)) + 0 * (
            model.log_density(theta, one) + model.log_density(theta, other)
        )

    return {
        "density": lambda t, a, b: jnp.exp(model.log_density(t, a)) + 0 * model.log_density(t, b),
        "log_density": lambda t, a, b: jnp.abs(model.log_density(t, a)) + 0 * model.log_density(t, b),
        "lipschitz": lambda t, a, b: jnp.linalg.norm(slope(t, a)) + 0 * model.log_density(t, b),
        "lipschitz_difference": lambda t, a, b: jnp.linalg.norm(slope(t, a) - slope(t, b)),
        "smoothness": lambda t, a, b: (
            jnp.max(jnp.abs(_curvatures(model, t, a))) + 0 * model.log_density(t, b)
        ),
        # The search maximises: the greatest eigenvalue of the log prior's Hessian is minus its convexity.
        "prior_convexity": least_curvature,
    }


def _search(model: Model, measure: Callable[..., jax.Array], points: int, seed: int) -> float:
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-3, 2, size=points)

    def block(shape: tuple[int, ...]) -> np.ndarray:
        return rng.standard_normal((points, *shape)) * scale.reshape(-1, *[1] * len(shape))

    with jax.enable_x64(True):
        theta = {n: jnp.asarray(block(s)) for n, s in model.parameter_shapes.items()}
        first, second = (_records(model, block, rng, points) for _ in range(2))
        if not len(first["_kept"]):
            return -math.inf
        kept = min(len(first["_kept"]), len(second["_kept"]))
        records = [{n: jnp.asarray(v[:kept]) for n, v in r.items() if n != "_kept"} for r in (first, second)]
        theta = {n: v[:kept] for n, v in theta.items()}
        values = jax.jit(jax.vmap(measure))(theta, *records)
        values = jnp.where(jnp.isfinite(values), values, -jnp.inf)
        best = jnp.argsort(values)[-32:]
        start = {n: v[best] for n, v in theta.items()}
        pairs = [{n: v[best] for n, v in r.items()} for r in records]

        def climb(t: Any, a: Any, b: Any) -> jax.Array:
            """Normalised gradient ascent in the parameters, at shrinking steps."""

            def step(state: tuple[Any, jax.Array], rate: jax.Array) -> tuple[tuple[Any, jax.Array], None]:
                point, top = state
                # Only the direction counts; arcsinh keeps small values from underflow, and their sign.
                gradient = jax.grad(lambda p: jnp.arcsinh(1e100 * measure(p, a, b)))(point)
                size = jnp.sqrt(sum((g**2).sum() for g in jax.tree.leaves(gradient)) + 1e-300)
                length = 1 + jnp.sqrt(sum((p**2).sum() for p in jax.tree.leaves(point)))
                moved = jax.tree.map(lambda p, g: p + rate * length * g / size, point, gradient)
                value = measure(moved, a, b)
                better = value > top
                point = jax.tree.map(lambda new, old: jnp.where(better, new, old), moved, point)
                return (point, jnp.where(better, value, top)), None

            rates = jnp.tile(10.0 ** jnp.linspace(0, -4, 12), 8)
            return jax.lax.scan(step, (t, measure(t, a, b)), rates)[0][1]

        climbed = jax.jit(jax.vmap(climb))(start, *pairs)
        return float(jnp.nanmax(jnp.concatenate([values, climbed])))


def _records(
    model: Model, block: Callable[[tuple[int, ...]], np.ndarray], rng: np.random.Generator, points: int
) -> dict[str, Any]:
    """Made-up records that the model admits: normal ones, with whole numbers where it wants them."""
    for outcome in ("normal", "count", "binary"):
        made: dict[str, Any] = {}
        for name, shape in model.record_shapes.items():
            values = block(shape)
            if shape == () and outcome == "count":
                values = np.floor(np.abs(values))
            elif shape == () and outcome == "binary":
                values = rng.integers(0, 2, size=points).astype(float)
            made[name] = values
        try:
            admitted = model.validate(made)
        except ValueError:
            continue
        return {**admitted, "_kept": range(points)}
    return {"_kept": range(0)}
