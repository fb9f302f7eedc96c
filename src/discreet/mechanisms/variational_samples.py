# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Variational inference that shows samples and nothing else (Triastcyn & Faltings 2020, Section V-C).

Proof page: docs/proofs/variational_samples.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.base import Drawn, Mechanism, Plain, Plan
from discreet.models.base import Model, Records, Theta, count
from discreet.privacy import (
    Budget,
    Evidence,
    Guarantee,
    PeopleCosts,
    Sensitive,
    attacker_success,
    calibrate,
    checks,
    gaussian,
    percent,
    renyi,
)
from discreet.privacy.divergences import renyi_normals
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax

Array = NDArray[np.float64]

PAGE = "docs/proofs/variational_samples.md"
ORDERS: Array = np.array([0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
"""lambda at which the shadows are followed."""

_WEAK = 5.0


@dataclass(frozen=True)
class Step:
    """The public numbers of a run.

    Attributes:
        weight: omega, what a record counts.
        clip: C, the norm that a record's gradient is clipped to.
        rate: kappa, the share of the new in a moving average.
        high: the largest precision of q, and that of its steps.
        low: the smallest.
        prior: tau, the precision of the prior in the precision of q.
    """

    weight: float
    clip: float
    rate: float
    high: float
    low: float
    prior: float

    def curve(self, order: float, moved: int) -> float:
        """The Renyi divergence of one sample, for presence (moved = 1) or substitution (2)."""
        share = self.weight * self.clip**2 / self.low if self.high > self.low else 0.0
        left = 1 - (order - 1) * share
        if left <= 0:
            return math.inf
        mean = order * (moved * self.weight * self.clip) ** 2 / (2 * self.high * left)
        spread = float(renyi_normals(order, 0.0, math.sqrt(1 + share), 1.0))
        return (mean + moved * spread) * (1 + 1e-12)

    def guarantee(self, steps: int) -> Guarantee:
        """What `steps` samples cost, under substitution."""
        if self.high == self.low:
            sigma = math.sqrt(self.high) / (2 * self.weight * self.clip)
            return gaussian(sigma, neighbours="substitute").repeat(steps)
        return renyi(lambda order: self.curve(order, 2), neighbours="substitute").repeat(steps)


@dataclass(frozen=True)
class VariationalSamples(Mechanism):
    """Samples of a mean-field normal while it is fitted; the fit itself stays secret.

    Each sample is drawn from the current q and released; q then moves by a moving
    average of what the clipped gradients at that sample say. No noise is added: that
    of q is what hides a record.

    Args:
        model: likelihood and prior, differentiable.
        tempered_size: N0, what the likelihood counts for, in records; None lets the plan
            find the largest that the budget allows, at most n.
        clip: C, the norm to which a record's gradient is clipped; None takes the model's
            Lipschitz bound, which clips nothing.
        precision: the largest precision of q in each coordinate; None is the prior's plus
            N0 C^2 / (4 d), the curvature that logistic records of that norm can have.
        precision_range: the smallest precision of q is so many times smaller; 1 fixes it,
            which costs least.
        rate: kappa, in (0, 1].
        burn_in: the share of the samples that is not among the draws; it is billed as well.
        shadows: for how many people, picked at random, the run without them is
            followed, for their Bayesian privacy. As many as there are leaves nothing to
            estimate.

    Guarantee:
        Every sample is billed, under substitution, whether or not q has converged. It is
        weak where the posterior is sharp because of few records; the plan says how weak.

    References: Triastcyn & Faltings 2020, Section V-C (ERRATA 10); Khan et al. 2018;
        docs/proofs/variational_samples.md.

    Example:
        >>> from discreet.models import LogisticRegression
        >>> mechanism = VariationalSamples(LogisticRegression(features=8), shadows=256)
        >>> plan = mechanism.plan(n=30_000, budget=Budget(1.0, 1e-5), steps=50)
        >>> plan.guarantee.fits(Budget(1.0, 1e-5)), plan.parameters["tempered_size"] > 1000
        (True, True)
    """

    model: Model  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    tempered_size: int | None = None
    clip: float | None = None
    precision: float | None = None
    precision_range: float = 1.0
    rate: float = 0.2
    burn_in: float = 0.5
    shadows: int = 0

    def __post_init__(self) -> None:
        if self.tempered_size is not None:
            checks.integer("tempered_size", self.tempered_size, at_least=1)
        for name in ("clip", "precision"):
            if getattr(self, name) is not None:
                checks.real(name, getattr(self, name), above=0.0)
        checks.real("precision_range", self.precision_range, at_least=1.0)
        checks.real("rate", self.rate, above=0.0, at_most=1.0)
        checks.real("burn_in", self.burn_in, at_least=0.0, below=1.0)
        checks.integer("shadows", self.shadows, at_least=0)
        if self.clip is None and "lipschitz" not in self.model.bounds:
            raise ValueError(
                f"clip must be given for {type(self.model).__name__}, which proves no Lipschitz bound, "
                "got None; give the norm to clip gradients to"
            )

    def plan(self, *, n: int, budget: Budget | None = None, steps: int = 100) -> Plan:
        """Find how many records the likelihood may count for.

        Args:
            n: number of records, public.
            budget: what may be spent; without it N0 is `tempered_size`, or n.
            steps: how many samples are drawn.
        """
        checks.integer("n", n, at_least=2)
        checks.integer("steps", steps, at_least=1)
        size, reasons = float(self.tempered_size or n), ()
        if budget is not None and self.tempered_size is None:
            found = calibrate(
                lambda N0: self.step(n, N0).guarantee(steps), budget, (min(1e-3, n / 2), float(n))
            )
            size = found.value
            reasons = (f"the budget lets the likelihood count for {size:.4g} of {n} records",)
        step = self.step(n, size)
        guarantee = step.guarantee(steps)
        if budget is not None and not guarantee.fits(budget):
            raise ValueError(
                f"budget must allow {steps} samples at tempered_size {size:g}, which cost epsilon "
                f"{guarantee.epsilon(budget.delta):.4g}, got {budget.epsilon:g}; "
                "leave tempered_size to the plan"
            )
        delta = budget.delta if budget is not None else 1e-5
        whole = self.step(n, float(n)).guarantee(steps).epsilon(delta)
        reasons += (
            f"at the weight of all records {steps} samples cost epsilon {whole:.4g} at delta {delta:g}, "
            f"where a guess is right at most {percent(attacker_success(whole, delta))} of the time"
            + (", which is weak" if whole > _WEAK else ""),
        )
        clipped = Evidence.proved("gradients are clipped record by record", f"{PAGE}#guarantee")
        return Plan(
            mechanism=self,
            size=n,
            guarantee=guarantee,
            evidence=(
                clipped if self.clip is not None else self.model.bounds["lipschitz"].evidence,
                Evidence.proved("a sample depends on one record through bounded moving averages only", PAGE),
                Evidence.assumed("sums and noise in float64 are taken for real numbers", f"{PAGE}#guarantee"),
            ),
            parameters={
                "steps": steps,
                "tempered_size": size,
                "clip": step.clip,
                "rate": step.rate,
                "precision": step.high,
                "smallest_precision": step.low,
            },
            reasons=reasons,
        )

    def step(self, n: int, size: float) -> Step:
        """The public numbers of a run on n records whose likelihood counts for `size`."""
        bounds = self.model.bounds
        clip = self.clip if self.clip is not None else bounds["lipschitz"].value
        prior = bounds["prior_convexity"].value if "prior_convexity" in bounds else 0.0
        d = sum(math.prod(shape) for shape in self.model.parameter_shapes.values())
        high = self.precision or prior + size * clip**2 / (4 * d)
        return Step(size / n, clip, self.rate, high, high / self.precision_range, prior)

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        del progress  # seconds
        import jax

        p: Mapping[str, Any] = plan.parameters
        n, steps, g = count(records), int(p["steps"]), randomness.numpy()
        step = self.step(n, float(p["tempered_size"]))
        shapes = self.model.parameter_shapes
        d = sum(math.prod(shape) for shape in shapes.values())
        followed = min(self.shadows, n)
        people = g.choice(n, size=followed, replace=False)
        with jax.enable_x64(True):
            noise = jax.device_put(g.standard_normal((steps, d)))
            run = _compiled(self.model, step)
            samples, costs = jax.device_get(run(noise, jax.device_put(records), people))
        kept = np.asarray(samples)[int(self.burn_in * steps) :]
        diagnostics: dict[str, Sensitive[Any]] = {}
        if followed:
            largest = [steps * order * step.curve(order + 1, 1) for order in ORDERS.tolist()]
            found = PeopleCosts(ORDERS, np.asarray(costs), np.array(largest), followed == n, plan.guarantee)
            diagnostics["people"] = Sensitive(found, "costs of people")
        return Drawn(_unflat(kept, shapes), (), diagnostics)

    def draw_many(
        self, plan: Plan, records: Records, randomness: Randomness, runs: int
    ) -> dict[str, NDArray[np.float64]]:
        """The samples of many independent runs, leading axis = run; for an audit, which has no people."""
        import jax

        p: Mapping[str, Any] = plan.parameters
        steps, shapes = int(p["steps"]), self.model.parameter_shapes
        d = sum(math.prod(shape) for shape in shapes.values())
        with jax.enable_x64(True):
            noise = randomness.numpy().standard_normal((runs, steps, d))
            run = _compiled(self.model, self.step(count(records), float(p["tempered_size"])), many=True)
            samples, _ = jax.device_get(run(noise, jax.device_put(records), np.zeros(0, dtype=np.int64)))
        kept = np.asarray(samples)[:, int(self.burn_in * steps) :]
        named = _unflat(kept.reshape(-1, d), shapes)
        return {name: values.reshape(runs, -1, *values.shape[1:]) for name, values in named.items()}

    def settings(self) -> dict[str, Plain]:
        named = ("tempered_size", "clip", "precision", "precision_range", "rate", "burn_in", "shadows")
        return {**super().settings(), **{name: getattr(self, name) for name in named}}


# --- inside -------------------------------------------------------------------------


def _compiled(model: Model, step: Step, *, many: bool = False) -> Callable[..., Any]:
    """`_run`, compiled once per model and step; with `many`, for many runs, leading axis of the noise."""
    try:
        return _cached(model, step, many)
    except TypeError:  # a model that cannot be hashed
        return _cached.__wrapped__(model, step, many)


@lru_cache(maxsize=16)
def _cached(model: Model, step: Step, many: bool) -> Callable[..., Any]:
    import jax

    run = partial(_run, model, step)
    return jax.jit(jax.vmap(run, in_axes=(0, None, None)) if many else run)


def _run(model: Model, step: Step, noise: Any, records: Any, people: Any) -> tuple[jax.Array, jax.Array]:
    """All samples, and the log moments of the followed people summed over them."""
    import jax
    import jax.numpy as jnp

    d = noise.shape[1]
    gradient = gradients(model, step.clip)

    def one(carry: Any, e: Any) -> Any:
        mean, precision, moved, squared, costs = carry
        now = jnp.clip(precision, step.low, step.high)
        without = jnp.clip(precision - step.weight * squared, step.low, step.high)
        costs = costs + log_moments(step.weight / step.high * moved, now, without)
        w = mean + e / jnp.sqrt(now)
        prior, each = gradient(w, records)
        total, curvature = each.sum(axis=0), (each**2).sum(axis=0)
        k = step.rate
        mean = (1 - k) * mean + k * (w + (prior + step.weight * total) / step.high)
        precision = (1 - k) * precision + k * (step.prior + step.weight * curvature)
        moved = (1 - k) * moved + k * each[people]
        squared = (1 - k) * squared + k * each[people] ** 2
        return (mean, precision, moved, squared, costs), w

    shadows = jnp.zeros((len(people), d))
    first = (jnp.zeros(d), jnp.full(d, step.high), shadows, shadows, jnp.zeros((len(ORDERS), len(people))))
    last, samples = jax.lax.scan(one, first, noise)
    return samples, last[-1]


def log_moments(shift: Any, precision: Any, without: Any) -> Any:
    """Lambda D_{lambda + 1} of the two normals in the worse direction, at all orders (rows), rounded up."""
    import jax.numpy as jnp

    def there(p: Any, q: Any) -> Any:
        excess = q / p - 1  # sd_p^2 / sd_q^2 - 1, for precisions
        rows: list[Any] = []
        for order in ORDERS.tolist():
            left = 1 - order * excess
            logs = -(order * jnp.log1p(excess) + jnp.log1p(-order * jnp.minimum(excess, 0.999 / order))) / 2
            value = logs + order * (order + 1) * shift**2 * q / (2 * left)
            rows.append(jnp.where(left > 0.001, jnp.maximum(value, 0.0), jnp.inf).sum(axis=-1))
        return jnp.stack(rows)

    precision = jnp.broadcast_to(precision, without.shape)
    return jnp.maximum(there(precision, without), there(without, precision)) * (1 + 1e-9)


def gradients(model: Model, clip: float) -> Callable[[Any, Any], tuple[Any, Any]]:
    """The gradient of the log prior, and the clipped gradient of every record, at a flat parameter."""
    import jax
    import jax.numpy as jnp

    def bounded(w: Any, record: Any) -> Any:
        slope = jax.grad(lambda flat: model.log_density(_theta(flat, model), record))(w)
        norm = jnp.sqrt((slope**2).sum())
        # A thousand-millionth short, so that rounding does not bring it over.
        factor = jnp.minimum(1.0, clip * (1 - 1e-9) / jnp.maximum(norm, 1e-300))
        return jnp.where(jnp.isfinite(norm), slope * factor, 0.0)

    def both(w: Any, records: Any) -> tuple[Any, Any]:
        prior = jax.grad(lambda flat: model.log_prior(_theta(flat, model)))(w)
        return prior, jax.vmap(bounded, in_axes=(None, 0))(w, records)

    return both


def _theta(flat: Any, model: Model) -> Theta:
    return _unflat(flat[None], model.parameter_shapes, first=True)


def _unflat(rows: Any, shapes: Mapping[str, tuple[int, ...]], *, first: bool = False) -> dict[str, Any]:
    """Rows cut into named arrays; with `first`, those of the first row."""
    cut: dict[str, Any] = {}
    at = 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        part = rows[:, at : at + size].reshape(-1, *shape)
        cut[name] = part[0] if first else part
        at += size
    return cut
