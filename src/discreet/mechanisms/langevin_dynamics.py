# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""DP-SGLD: stochastic gradient Langevin dynamics whose own noise is the privacy noise (paper N, Algorithm 2).

Proof page: docs/proofs/langevin_dynamics.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from discreet.mechanisms._private_steps import BRACKET, PrivateSteps, check_fits, check_public, delta_of
from discreet.mechanisms._private_storage import Draws, OnDisk, Saved
from discreet.mechanisms._private_sums import Numbers, Tree
from discreet.mechanisms._private_training import Kept, Numbered
from discreet.mechanisms.base import Drawn, Plain, Plan
from discreet.models.base import Model, Records
from discreet.neural.schedules import Schedule, Steady
from discreet.privacy import Budget, Evidence, calibrate, checks
from discreet.samplers.randomness import Randomness

PROOF = "docs/proofs/langevin_dynamics.md"


@dataclass(frozen=True)
class LangevinDynamics(PrivateSteps):
    """Draws from the posterior by noisy gradient steps; no noise is added beyond what sampling needs.

    theta <- theta - eta (N0/batch * clipped sum - grad log prior) + N(0, 2 tau eta), tau the temperature.

    Args:
        model: likelihood and prior.
        step_size: eta of the first step; None lets the plan find the largest that the
            budget allows.
        decay: by what eta is multiplied in the course of the run.
        temperature: tau; 1 is the posterior, and the 0.5 of paper N's update the
            posterior squared.
        tempered_size: N0, what the likelihood counts for, in records; None is n.
        burn_in: the share of the steps that is not among the draws; it is billed as well.
        thin: every how many steps a draw is kept.
        store: a new folder for the draws, as a Zarr group, so that memory does not grow
            with their number; None keeps them in memory.
        loss, clipping, neighbours, start, observers, chunk: see `PrivateSteps`.

    Guarantee:
        A step is a Poisson-subsampled Gaussian mechanism with noise multiplier
        batch sqrt(2 tau / eta) / (N0 C) (paper N, Theorem 1, corrected: ERRATA 13). A
        changing step size changes it, and steps are composed one by one. That the draws
        have the posterior's law is an approximation, as for every Langevin sampler
        without a test; privacy does not rest on it.

    References: Welling & Teh 2011; paper N, Algorithm 2 and Theorems 1 and 3; ERRATA 13
        to 15; docs/proofs/langevin_dynamics.md.

    Example:
        >>> from discreet.models import LogisticRegression
        >>> from discreet.neural import Flat
        >>> mechanism = LangevinDynamics(
        ...     LogisticRegression(5),
        ...     step_size=5e-6,
        ...     temperature=0.5,
        ...     clipping=Flat(1.5),
        ...     neighbours="add_remove",
        ... )
        >>> plan = mechanism.plan(n=60_000, batch=256, steps=3515)
        >>> f"{plan.parameters['noise_multiplier']:.4f} {plan.guarantee.epsilon(1e-5):.3f}"
        '1.2721 0.894'
    """

    step_size: float | None = field(default=None, kw_only=True)
    decay: Schedule = field(default_factory=lambda: Steady(1.0), kw_only=True)
    temperature: float = field(default=1.0, kw_only=True)
    tempered_size: int | None = field(default=None, kw_only=True)
    burn_in: float = field(default=0.5, kw_only=True)
    thin: int = field(default=1, kw_only=True)
    store: str | Path | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_size is not None:
            checks.real("step_size", self.step_size, above=0.0)
        checks.real("temperature", self.temperature, above=0.0)
        if self.tempered_size is not None:
            checks.integer("tempered_size", self.tempered_size, at_least=1)
        checks.real("burn_in", self.burn_in, at_least=0.0, below=1.0)
        checks.integer("thin", self.thin, at_least=1)

    def plan(self, *, n: int, batch: int, steps: int, budget: Budget | None = None) -> Plan:
        """Find the largest step size that the budget allows.

        Args:
            n: number of records: the true one under `substitute`, a declared one under
                `add_remove`.
            batch: how many records a step has on average; public, and the divisor.
            steps: how many.
            budget: what may be spent.
        """
        check_public(n, batch, steps)
        step_size, reasons = self.step_size, ()
        if step_size is None:
            if budget is None:
                raise ValueError("either budget or step_size must be given, got neither; give a budget")
            # With step size 1 the multipliers are `unit`; with step size s they are unit / sqrt(s).
            unit = self.numbers(n, batch, steps, 1.0).sigmas
            smallest = float(unit.min())
            shape = unit / smallest
            found = calibrate(lambda sigma: self.priced(batch / n, sigma * shape), budget, BRACKET)
            step_size = (smallest / found.value) ** 2 * (1 - 1e-12)
            reasons = (f"step size {step_size:.4g} is the largest that the budget allows",)
        plan = self.planned(
            n=n,
            batch=batch,
            numbers=self.numbers(n, batch, steps, step_size),
            delta=delta_of(budget),
            parameters={
                "step_size": step_size,
                "declared_n": n,
                "tempered_size": self.counted(n),
                "temperature": self.temperature,
                "draws": max(1, (steps - int(self.burn_in * steps)) // self.thin),
            },
            reasons=reasons,
        )
        check_fits(plan.guarantee, budget, "step_size")
        return plan

    def counted(self, n: int) -> int:
        """N0, for n records."""
        return n if self.tempered_size is None else self.tempered_size

    def numbers(self, n: int, batch: int, steps: int, step_size: float) -> Numbered:
        """The public numbers of all steps: the noise on the sum is what the chain's noise amounts to."""
        etas = step_size * self.decay.values(steps)
        sds = batch * np.sqrt(2 * self.temperature / etas) / self.counted(n)
        return Numbered(self.clipping.norms.values(steps), sds, etas)

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        p: Mapping[str, Any] = plan.parameters
        n, batch, steps = int(p["declared_n"]), int(p["batch"]), int(p["steps"])
        run = self.training(
            plan,
            records,
            randomness,
            rule=Diffusion(self.counted(n) / batch),
            numbers=self.numbers(n, batch, steps, float(p["step_size"])),
            kept=self._kept(plan),
            progress=progress,
        )

        def drawn() -> Drawn:
            evidence = ()
            if run.done < run.steps:
                claim = f"interrupted after {run.done} of {run.steps} steps, all of which are billed"
                evidence = (Evidence.proved(claim, "the plan is billed before the first step"),)
            found = run.draws.stacked(run.number_kept)
            return Drawn(found or {name: values[None] for name, values in run.theta.items()}, evidence)

        return run.run(drawn)

    def _draws(self, plan: Plan, saved: Saved | None) -> Draws:
        if self.store is None:
            return super()._draws(plan, saved)
        number = Kept.number(self._kept(plan), int(cast("int", plan.parameters["steps"])))
        return OnDisk(self.store, number, resumed=saved is not None)

    def _kept(self, plan: Plan) -> Kept:
        """The last step is a draw, and every `thin`-th before it."""
        p: Mapping[str, Any] = plan.parameters
        steps = int(p["steps"])
        if steps < self.thin:
            return Kept(steps - 1)
        return Kept(max(steps - int(p["draws"]) * self.thin, 0), self.thin)

    def settings(self) -> dict[str, Plain]:
        named = ("step_size", "temperature", "tempered_size", "burn_in", "thin")
        return {
            **super().settings(),
            "decay": repr(self.decay),
            **{name: getattr(self, name) for name in named},
        }


def noise_multiplier(step_size: float, n: int, batch: int, clip: float, temperature: float = 1.0) -> float:
    """What DP-SGLD's own noise is worth as the noise multiplier of DP-SGD.

    At temperature 1/2, which paper N's update has, it is batch / (sqrt(eta) n C): Theorem
    1 corrected (ERRATA 13).

    Example:
        >>> f"{noise_multiplier(5e-6, 60_000, 256, 1.5, temperature=0.5):.4f}"
        '1.2721'
    """
    return batch * math.sqrt(2 * temperature / step_size) / (n * clip)


@dataclass(frozen=True)
class Diffusion:
    """One step along the noisy gradient of the log posterior; the noise is in the sum already.

    Attributes:
        weight: N0 over the expected batch size.
    """

    weight: float

    def init(self, theta: Tree) -> Any:
        del theta
        return ()

    def update(
        self, model: Model, theta: Tree, state: Any, noisy: Tree, numbers: Numbers
    ) -> tuple[Tree, Any]:
        import jax

        prior = jax.grad(model.log_prior)(theta)
        return {
            name: theta[name] + numbers.step_size * (prior[name] - self.weight * noisy[name])
            for name in theta
        }, state
