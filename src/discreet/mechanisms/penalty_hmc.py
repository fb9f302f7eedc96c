# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""DP-HMC: Hamiltonian proposals from noisy clipped gradients, tested by the penalty method.

Proof page: docs/proofs/dp_mcmc.md#hmc.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.mechanisms._chain import Moved, accept
from discreet.mechanisms._chain_mechanism import PROOF, ChainMechanism
from discreet.mechanisms._ratios import clipped_ratios, moments, public_ratio, ratio_limit
from discreet.mechanisms.base import Drawn, Plain, Plan
from discreet.mechanisms.losses import Loss
from discreet.mechanisms.penalty_mcmc import BEST_NOISE, penalty_test, test_noise
from discreet.mechanisms.proposals import Noise
from discreet.models.base import Model, Records, Theta
from discreet.privacy import Budget, Evidence, checks, gaussian
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class PenaltyHMC(ChainMechanism):
    """A private Hamiltonian chain on all records, exact for its target where nothing is clipped.

    A step draws a momentum, takes leapfrog steps along gradients whose records are
    clipped and to which noise is added, and accepts by the penalty test.

    Args:
        model: likelihood and prior, differentiable.
        leapfrog_steps: L; each costs a gradient, and the first another.
        step_size: of the leapfrog.
        tempered_size: N0, what the data count for; None is the posterior itself.
        chains: how many run side by side; each is billed.
        start: first values of the parameters, public.
        loss: what is summed over records.

    Guarantee:
        L + 1 Gaussian mechanisms for the gradients and one for the test per step, under
        substitution (docs/proofs/dp_mcmc.md#hmc).

    References: Raisa, Koskela & Honkela 2021, Algorithm 1; Neal 2011.

    Example:
        >>> from discreet.models import LogisticRegression
        >>> chain = PenaltyHMC(LogisticRegression(features=2), leapfrog_steps=5, step_size=0.05)
        >>> plan = chain.plan(n=10_000, steps=50)
        >>> plan.guarantee.epsilon(1e-6) < 6
        True
    """

    leapfrog_steps: int
    step_size: float

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("leapfrog_steps", self.leapfrog_steps, at_least=1)
        checks.real("step_size", self.step_size, above=0.0)

    def plan(
        self,
        *,
        n: int,
        budget: Budget | None = None,
        steps: int | None = None,
        limit: float | None = None,
        noise: float = BEST_NOISE,
        gradient_limit: float | None = None,
        gradient_noise: float | None = None,
    ) -> Plan:
        """Choose what was not given, without data.

        Args:
            n: number of records, public.
            budget: what may be spent; then `steps` are as many as it allows.
            steps: of each chain.
            limit: where a record's log ratio is clipped; 3 / sqrt(N0) by default.
            noise: sigma, of the log ratio.
            gradient_limit: the norm to which a record's gradient is clipped; the
                certified Lipschitz constant of the log density, or 1, by default.
            gradient_noise: standard deviation of the noise on the tempered gradient
                sum; by default 3 sqrt(N0), about the slope that one step crosses.
        """
        N0 = self.counted_size(n)
        c, reason, certified = ratio_limit(self.loss, self.model, limit, N0)
        sigma = checks.real("noise", noise, above=0.0)
        known = self.model.bounds.get("lipschitz")
        default = 1.0 if known is None else known.value
        c_g = checks.real("gradient_limit", default if gradient_limit is None else gradient_limit, above=0.0)
        loud = 3 * math.sqrt(N0) if gradient_noise is None else gradient_noise
        sigma_g = checks.real("gradient_noise", loud, above=0.0)
        test = gaussian(sigma, sensitivity=2 * c * N0 / n, neighbours="substitute")
        slope = gaussian(sigma_g, sensitivity=2 * c_g * N0 / n, neighbours="substitute")
        step = test + slope.repeat(self.leapfrog_steps + 1)

        return self.planned(
            n,
            lambda T: step.repeat(T * self.chains),
            budget,
            steps,
            evidence=(
                certified,
                Evidence.proved("gradients are clipped record by record, and billed", f"{PROOF}#hmc"),
                Evidence.proved("the target is exact where no ratio is clipped", f"{PROOF}#hmc"),
            ),
            parameters={
                "tempered_size": N0,
                "noise": sigma,
                "ratio_limit": c,
                "gradient_noise": sigma_g,
                "gradient_limit": c_g,
            },
            reasons=(reason, f"gradients are clipped at {c_g:g}"),
        )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        p: Mapping[str, Any] = plan.parameters
        n, N0, L = plan.size or 0, int(p["tempered_size"]), self.leapfrog_steps
        shapes = self.model.parameter_shapes

        def noises(g: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
            slopes = {name: g.standard_normal((*shape, L + 1, *s)) for name, s in shapes.items()}
            return *test_noise(g, shape), slopes

        return self.run(
            plan,
            records,
            randomness,
            progress=progress,
            step=_Step(self.model, self.loss, L, self.step_size),
            test_noise=noises,
            constants={
                "limit": float(p["ratio_limit"]),
                "total": float(p["ratio_limit"]) * N0,
                "tau": N0 / n,
                "noise": float(p["noise"]),
                "gradient_noise": float(p["gradient_noise"]),
                "gradient_limit": float(p["gradient_limit"]),
            },
        )

    def settings(self) -> dict[str, Plain]:
        return {**super().settings(), "leapfrog_steps": self.leapfrog_steps, "step_size": self.step_size}


def clipped_gradient_sum(
    loss: Loss, model: Model, theta: Theta, batch: Theta, limit: jax.Array | float
) -> Theta:
    """The sum over records of minus the loss's gradient, each clipped to norm `limit` over all parameters.

    A gradient that is not finite counts as 0.
    """
    import jax
    import jax.numpy as jnp

    def one(record: Theta) -> Theta:
        slope = jax.grad(lambda t: -loss(model, t, record))(theta)
        square = sum(((value**2).sum() for value in slope.values()), jnp.zeros(()))
        factor = jnp.minimum(1.0, limit / jnp.sqrt(jnp.maximum(square, limit**2)))
        return {name: jnp.where(jnp.isfinite(square), value * factor, 0.0) for name, value in slope.items()}

    return {name: value.sum(axis=0) for name, value in jax.vmap(one)(batch).items()}


@dataclass(frozen=True)
class _Step:
    """One Hamiltonian step and its test."""

    model: Model
    loss: Loss
    leapfrog_steps: int
    step_size: float

    def __call__(
        self, theta: Theta, noise: Noise, test: tuple[Any, ...], batch: Theta, constants: Mapping[str, float]
    ) -> Moved:
        import jax

        *test_pair, slopes = test
        h = self.step_size

        def kick(position: Theta, momentum: Theta, size: float, j: Any) -> Theta:
            data = clipped_gradient_sum(self.loss, self.model, position, batch, constants["gradient_limit"])
            prior = jax.grad(self.model.log_prior)(position)
            return {
                name: value
                + size
                * (
                    prior[name]
                    + constants["tau"] * data[name]
                    + constants["gradient_noise"] * slopes[name][j]
                )
                for name, value in momentum.items()
            }

        def drift(position: Theta, momentum: Theta) -> Theta:
            return {name: value + h * momentum[name] for name, value in position.items()}

        def leap(j: Any, at: tuple[Theta, Theta]) -> tuple[Theta, Theta]:
            position = drift(*at)
            return position, kick(position, at[1], h, j)

        first = kick(theta, noise.normal, h / 2, 0)
        position, momentum = jax.lax.fori_loop(1, self.leapfrog_steps, leap, (theta, first))
        candidate = drift(position, momentum)
        momentum = kick(candidate, momentum, h / 2, self.leapfrog_steps)
        ratios = clipped_ratios(
            self.loss, self.model, candidate=candidate, theta=theta, batch=batch, limit=constants["limit"]
        )
        energy = sum(0.5 * (noise.normal[name] ** 2 - momentum[name] ** 2).sum() for name in theta)
        seen = moments(ratios)
        mean = constants["total"] * seen.mean + public_ratio(self.model, candidate, theta, energy)
        accepted = penalty_test(mean, constants["noise"], (test_pair[0], test_pair[1]))
        return Moved(accept(accepted, candidate, theta), accepted, seen.clipped)
