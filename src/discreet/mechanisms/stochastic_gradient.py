# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""DP-SGD, DP-Adam and DP-HeavyBall: descent along clipped, noisy sums (paper N, Algorithm 1).

Proof page: docs/proofs/private_gradients.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.mechanisms._private_steps import (
    BRACKET,
    PrivateSteps,
    check_fits,
    check_public,
    delta_of,
)
from discreet.mechanisms._private_sums import Numbers, Tree
from discreet.mechanisms._private_training import Kept, Numbered, Training
from discreet.mechanisms.base import Drawn, Plain, Plan
from discreet.mechanisms.optimisers import Optimiser, Sgd
from discreet.models.base import Model, Records
from discreet.privacy import Budget, calibrate, checks
from discreet.samplers.randomness import Randomness


@dataclass(frozen=True)
class StochasticGradient(PrivateSteps):
    """One setting of the parameters, by descent on (sum of losses - log prior) / n.

    The loss is minus the log-likelihood unless another is given. A step is the optimiser's, for the
    gradient (noisy clipped sum) / batch - grad log prior / n.

    Args:
        model: likelihood and prior; the prior is what regularises.
        optimiser: `Sgd`, `HeavyBall` or `Adam`, with its step size.
        average: the share of the last steps whose mean is returned; 0 returns the last.
        loss, clipping, neighbours, start, observers, chunk: see `PrivateSteps`.

    Guarantee:
        Every step is a Poisson-subsampled Gaussian mechanism; all steps are composed
        by their loss distributions (ERRATA 14 and 15). The divisor is the public
        expected batch size.

    References: Abadi et al. 2016; paper N, Algorithm 1; docs/proofs/private_gradients.md.

    Example:
        >>> from discreet.models import LogisticRegression
        >>> mechanism = StochasticGradient(LogisticRegression(5), neighbours="add_remove")
        >>> plan = mechanism.plan(n=60_000, batch=256, steps=3515, noise_multiplier=1.3)
        >>> f"{plan.guarantee.epsilon(1e-5):.3f}"
        '0.864'
    """

    optimiser: Optimiser = field(default_factory=lambda: Sgd(0.1), kw_only=True)
    average: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("average", self.average, at_least=0.0, at_most=1.0)

    def plan(
        self,
        *,
        n: int,
        batch: int,
        steps: int,
        budget: Budget | None = None,
        noise_multiplier: float | None = None,
    ) -> Plan:
        """Find the smallest noise that the budget allows.

        Args:
            n: number of records: the true one under `substitute`, a declared one under
                `add_remove`.
            batch: how many records a step has on average; public, and the divisor.
            steps: how many.
            budget: what may be spent.
            noise_multiplier: noise standard deviation over C; None is found from the budget.
        """
        check_public(n, batch, steps)
        reasons: tuple[str, ...] = ()
        if noise_multiplier is None:
            if budget is None:
                raise ValueError(
                    "either budget or noise_multiplier must be given, got neither; give a budget"
                )
            one = np.ones(steps)
            found = calibrate(lambda sigma: self.priced(batch / n, sigma * one), budget, BRACKET)
            noise_multiplier = found.value
            reasons = (f"noise multiplier {found.value:.4g} is the smallest that the budget allows",)
        checks.real("noise_multiplier", noise_multiplier, above=0.0)
        numbers = self.numbers(steps, noise_multiplier)
        plan = self.planned(
            n=n,
            batch=batch,
            numbers=numbers,
            delta=delta_of(budget),
            parameters={"sigma": noise_multiplier, "declared_n": n},
            reasons=reasons,
        )
        check_fits(plan.guarantee, budget, "noise_multiplier")
        return plan

    def numbers(self, steps: int, sigma: float) -> Numbered:
        """The public numbers of all steps."""
        bounds = self.clipping.norms.values(steps)
        return Numbered(bounds, sigma * bounds, self.optimiser.step_sizes.values(steps))

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        run = self.run_of(plan, records, randomness, progress=progress)

        def drawn() -> Drawn:
            return Drawn({name: np.asarray(values)[None] for name, values in run.mean.items()})

        return run.run(drawn)

    def run_of(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Training:
        """The run of a plan, before its first step."""
        p: Mapping[str, Any] = plan.parameters
        steps = int(p["steps"])
        kept = Kept(steps - int(self.average * steps), average=True)
        return self.training(
            plan,
            records,
            randomness,
            rule=Descent(self.optimiser, 1 / float(p["batch"]), 1 / float(p["declared_n"])),
            numbers=self.numbers(steps, float(p["sigma"])),
            kept=kept,
            progress=progress,
        )

    def settings(self) -> dict[str, Plain]:
        return {**super().settings(), "optimiser": repr(self.optimiser), "average": self.average}


@dataclass(frozen=True)
class Descent:
    """The optimiser's step for the gradient of (sum of losses - log prior) / n.

    Attributes:
        optimiser: the rule.
        per_batch: one over the expected batch size.
        per_record: one over the declared number of records.
    """

    optimiser: Optimiser
    per_batch: float
    per_record: float

    def init(self, theta: Tree) -> Any:
        return self.optimiser.direction().init(theta)

    def update(
        self, model: Model, theta: Tree, state: Any, noisy: Tree, numbers: Numbers
    ) -> tuple[Tree, Any]:
        import jax

        prior = jax.grad(model.log_prior)(theta)
        gradient = {name: noisy[name] * self.per_batch - prior[name] * self.per_record for name in theta}
        direction, state = self.optimiser.direction().update(gradient, state, theta)
        moved: Any = direction
        return {name: theta[name] - numbers.step_size * moved[name] for name in theta}, state
