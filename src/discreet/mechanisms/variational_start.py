# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""DP variational inference with a small budget: where a private chain may start.

Proof page: docs/proofs/dp_mcmc.md#variational-start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.base import Drawn, Mechanism, Plain, Plan
from discreet.models.base import Model, Records, Theta
from discreet.privacy import Budget, Evidence, Sensitive, calibrate, checks, poisson_gaussian
from discreet.samplers.randomness import Randomness

_PROOF = "docs/proofs/dp_mcmc.md#variational-start"


@dataclass(frozen=True)
class VariationalStart(Mechanism):
    """A mean-field normal fitted by private stochastic gradients; its mean starts a chain.

    Args:
        model: likelihood and prior, differentiable.
        tempered_size: N0, as in the chain that will start there; None is n.
        gradient_limit: the norm to which a record's gradient is clipped.
        learning_rate: of Adam.

    Guarantee:
        Poisson-subsampled Gaussian steps under substitution, independent of
        convergence. Add it to the guarantee of the chain: both saw the data.

    References: Jalko, Dikmen & Honkela 2017; Kingma & Ba 2015.

    Example:
        >>> from discreet.models import GaussianMixture
        >>> from discreet.privacy import Budget
        >>> first = VariationalStart(GaussianMixture(), tempered_size=100)
        >>> first.plan(n=100_000, budget=Budget(0.21, 1e-6)).guarantee.fits(Budget(0.21, 1e-6))
        True
    """

    model: Model  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    tempered_size: int | None = None
    gradient_limit: float = 1.0
    learning_rate: float = 0.05

    def __post_init__(self) -> None:
        if self.tempered_size is not None:
            checks.integer("tempered_size", self.tempered_size, at_least=1)
        checks.real("gradient_limit", self.gradient_limit, above=0.0)
        checks.real("learning_rate", self.learning_rate, above=0.0)

    def plan(self, *, n: int, budget: Budget, steps: int = 200, rate: float | None = None) -> Plan:
        """Find the noise that the budget asks for.

        Args:
            n: number of records, public.
            budget: what may be spent.
            steps: of the optimiser.
            rate: the probability that a record enters a step; 200 / n by default.
        """
        checks.integer("n", n, at_least=2)
        checks.integer("steps", steps, at_least=1)
        q = checks.real("rate", min(1.0, 200 / n) if rate is None else rate, above=0.0, at_most=1.0)
        found = calibrate(
            lambda sigma: poisson_gaussian(q, sigma, steps, neighbours="substitute"), budget, (0.3, 1e4)
        )
        return Plan(
            mechanism=self,
            size=n,
            guarantee=found.guarantee,
            evidence=(Evidence.proved("gradients are clipped record by record", _PROOF),),
            parameters={"steps": steps, "rate": q, "noise_multiplier": found.value},
            reasons=(f"noise multiplier {found.value:.4g} is the smallest that the budget allows",),
        )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        del progress  # seconds
        inputs = self._inputs(plan, randomness)
        last = self._fitted(plan, records, inputs)
        draws = {name: np.asarray(value[0])[None] for name, value in last.items()}
        draws |= {f"{name}_sd": np.exp(np.asarray(value[1]))[None] for name, value in last.items()}
        return Drawn(draws, (), {"batch_sizes": Sensitive(inputs.sizes, "realised batch sizes")})

    def draw_many(
        self, plan: Plan, records: Records, randomness: Randomness, runs: int
    ) -> dict[str, NDArray[np.float64]]:
        """The fits of many independent runs, leading axis = run; for an audit."""
        inputs = [self._inputs(plan, randomness) for _ in range(runs)]
        room = max(one.rows.shape[1] for one in inputs)
        padded = [
            one._replace(rows=np.pad(one.rows, ((0, 0), (0, room - one.rows.shape[1])))) for one in inputs
        ]
        last = self._fitted(plan, records, _Inputs.stack(padded), many=True)
        draws = {name: np.asarray(value[:, 0])[:, None] for name, value in last.items()}
        return draws | {f"{name}_sd": np.exp(np.asarray(v[:, 1]))[:, None] for name, v in last.items()}

    def _inputs(self, plan: Plan, randomness: Randomness) -> _Inputs:
        """All that is random in a run; nothing of it depends on the records."""
        p: Mapping[str, Any] = plan.parameters
        n, steps, q = plan.size or 0, int(p["steps"]), float(p["rate"])
        g, shapes = randomness.numpy(), self.model.parameter_shapes
        sizes = g.binomial(n, q, size=steps)  # before the run, so that no batch is cut
        room = max(1, int(sizes.max()))
        rows = np.zeros((steps, room), dtype=np.int64)
        for t, size in enumerate(sizes.tolist()):
            rows[t, :size] = g.choice(n, size=size, replace=False, shuffle=False)
        draw = {name: g.standard_normal((steps, *s)) for name, s in shapes.items()}
        hide = {name: g.standard_normal((steps, 2, *s)) for name, s in shapes.items()}
        return _Inputs(rows, sizes, draw, hide)

    def _fitted(self, plan: Plan, records: Records, inputs: _Inputs, *, many: bool = False) -> dict[str, Any]:
        """Means and log sds of q after all steps."""
        import jax

        p: Mapping[str, Any] = plan.parameters
        tau = (self.tempered_size or plan.size or 0) / (plan.size or 1)
        numbers = (tau / float(p["rate"]), float(p["noise_multiplier"]) * self.gradient_limit)
        with jax.enable_x64(True):
            run = _compiled(self.model, self.gradient_limit, self.learning_rate, many)
            return jax.device_get(run(jax.device_put(records), jax.device_put(inputs), numbers))

    def settings(self) -> dict[str, Plain]:
        return {
            **super().settings(),
            "tempered_size": self.tempered_size,
            "gradient_limit": self.gradient_limit,
            "learning_rate": self.learning_rate,
        }


class _Inputs(NamedTuple):
    """The randomness of a run: batches, their sizes, draws of q, and noise on the gradients."""

    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    draw: dict[str, Any]
    hide: dict[str, Any]

    @staticmethod
    def stack(runs: Sequence[_Inputs]) -> _Inputs:
        """Those of many runs, leading axis = run."""
        import jax

        return jax.tree.map(lambda *parts: np.stack(parts), *runs)


def _compiled(model: Model, limit: float, rate: float, many: bool) -> Callable[..., Any]:
    """The fit, compiled once per model and settings."""
    try:
        return _cached(model, limit, rate, many)
    except TypeError:  # a model that cannot be hashed
        return _cached.__wrapped__(model, limit, rate, many)


@lru_cache(maxsize=16)
def _cached(model: Model, limit: float, rate: float, many: bool) -> Callable[..., Any]:
    import jax

    run = partial(_fit, model, limit, rate)
    return jax.jit(jax.vmap(run, in_axes=(None, 0, None)) if many else run)


def _fit(  # noqa: PLR0917 - bound by position
    model: Model, limit: float, rate: float, data: Any, inputs: _Inputs, numbers: Any
) -> Any:
    """All steps of Adam; `numbers` are tempering over sampling rate, and the scale of the noise."""
    import jax
    from jax.example_libraries import optimizers

    scale, loud = numbers
    start, update, read = optimizers.adam(rate)

    def step(t: Any, state: Any) -> Any:
        now = read(state)
        e = {name: value[t] for name, value in inputs.draw.items()}
        batch = {name: value[inputs.rows[t]] for name, value in data.items()}
        summed = clipped_sum(model, now, e, batch, limit, rows_kept=inputs.sizes[t])
        public = jax.grad(lambda w: model.log_prior(position(w, e)) + entropy(w))(now)
        total = {name: -public[name] - scale * (summed[name] + loud * inputs.hide[name][t]) for name in now}
        return update(t, total, state)

    shapes = model.parameter_shapes
    first = {name: np.stack([np.zeros(s), np.full(s, -2.0)]) for name, s in shapes.items()}
    return read(jax.lax.fori_loop(0, len(inputs.sizes), step, start(first)))


def position(q: Theta, e: Theta) -> Theta:
    """Mean + sd * e; q holds mean and log sd of every parameter."""
    import jax.numpy as jnp

    return {name: value[0] + jnp.exp(value[1]) * e[name] for name, value in q.items()}


def entropy(q: Theta) -> Any:
    """The entropy of the normal, up to a constant."""
    return sum(value[1].sum() for value in q.values())


def clipped_sum(model: Model, q: Theta, e: Theta, batch: Theta, limit: float, *, rows_kept: Any) -> Theta:
    """The sum over the first `rows_kept` records of log-likelihood gradients, each clipped to norm `limit`.

    A gradient that is not finite counts as 0, which is inside the ball.
    """
    import jax
    import jax.numpy as jnp

    def one(record: Theta, kept: Any) -> Theta:
        slope = jax.grad(lambda w: model.log_density(position(w, e), record))(q)
        square: Any = sum((value**2).sum() for value in slope.values())
        factor = jnp.minimum(1.0, limit / jnp.sqrt(jnp.maximum(square, limit**2)))
        use = kept & jnp.isfinite(square)
        return {name: jnp.where(use, value * factor, 0.0) for name, value in slope.items()}

    count = len(next(iter(batch.values())))
    each = jax.vmap(one)(batch, jnp.arange(count) < rows_kept)
    return {name: value.sum(axis=0) for name, value in each.items()}
