"""The penalty method: Metropolis-Hastings with noise in the log ratio, exact and private.

Proof page: docs/proofs/dp_mcmc.md#penalty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.mechanisms import _planner
from discreet.mechanisms._chain import Array, Chain, Moved, accept
from discreet.mechanisms._chain_mechanism import BLIND, ChainMechanism
from discreet.mechanisms._ratios import clipped_ratios, public_ratio, ratio_limit
from discreet.mechanisms.base import Drawn, Plain, Plan
from discreet.mechanisms.losses import Loss
from discreet.mechanisms.proposals import Noise, Proposal
from discreet.models.base import Model, Records, Theta
from discreet.privacy import (
    Budget,
    Evidence,
    Guarantee,
    checks,
    gaussian,
    sampled_without_replacement,
)
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax

_PROOF = "docs/proofs/dp_mcmc.md"
BEST_NOISE = 2.4
"""Maximises sigma^2 * 2 Phi(-sigma / 2): accepted moves per unit of privacy."""


@dataclass(frozen=True)
class PenaltyMCMC(ChainMechanism):
    """A private chain by the penalty method: noise of any variance in the log ratio, and minus half of it.

    A candidate is accepted when log U < Delta + sigma Z - sigma^2 / 2. On all records
    the target is exactly prior * exp(-N0/n * sum of losses), however large the noise.

    Args:
        model: likelihood and prior.
        proposal: where to go next.
        tempered_size: N0, what the data count for; None is the posterior itself.
        chains: how many run side by side; each is billed.
        start: first values of the parameters, public.
        loss: what is summed; one of certified range needs no clipping.

    Guarantee:
        Every step is a Gaussian mechanism, under substitution, amplified by the
        sampling of the batch, and is billed (docs/proofs/dp_mcmc.md#penalty).

    References: Ceperley & Dewing 1999; Yildirim & Ermis 2019, Algorithm 1; paper B,
        Proposition 3.

    Example:
        >>> from discreet.models import GaussianMixture
        >>> from discreet.mechanisms.proposals import RandomWalk
        >>> chain = PenaltyMCMC(GaussianMixture(), RandomWalk(0.1), tempered_size=100)
        >>> plan = chain.plan(n=10_000, steps=100)
        >>> plan.parameters["noise"]
        2.4
    """

    proposal: Proposal

    def plan(
        self,
        *,
        n: int,
        budget: Budget | None = None,
        steps: int | None = None,
        batch: int | None = None,
        limit: float | None = None,
        noise: float = BEST_NOISE,
    ) -> Plan:
        """Choose what was not given, without data.

        Args:
            n: number of records, public.
            budget: what may be spent; then `steps` are as many as it allows, at most
                100,000, unless given.
            steps: of each chain.
            batch: records per step; all by default, for which the target is exact.
            limit: where a record's log ratio is clipped; 3 / sqrt(N0) by default, or
                the loss's certified range where that is smaller, and nothing is clipped.
            noise: sigma, of the log ratio.
        """
        N0 = self.counted_size(n)
        b = n if batch is None else checks.integer("batch", batch, at_least=2, at_most=n)
        sigma = checks.real("noise", noise, above=0.0)
        c, reason, certified = ratio_limit(self.loss, self.model, limit, N0)
        kappa = c * N0 / math.sqrt(b)
        # On all records s^2 is known to be 0, and the mean alone moves.
        shift = 2 * kappa / math.sqrt(b) + (2 * kappa**2 * (b - 1) / b**2 if b < n else 0.0)
        one = gaussian(sigma, sensitivity=shift, neighbours="substitute")

        def guarantee(_: float, T: int) -> Guarantee:
            count = T * self.chains
            return one.repeat(count) if b == n else sampled_without_replacement(one, b / n, count)

        _, T, why = _planner.choose({sigma: 0.0}, guarantee, budget, steps)
        exact = "the target is exact" if b == n else "the target is exact up to the normality of batch sums"
        return Plan(
            mechanism=self,
            size=n,
            guarantee=guarantee(sigma, T),
            evidence=(
                Evidence.proved("every accepted or rejected step is billed", f"{_PROOF}#privacy"),
                certified,
                Evidence.proved(f"{exact} where no ratio is clipped", f"{_PROOF}#penalty"),
                BLIND,
            ),
            parameters={
                "steps": T,
                "chains": self.chains,
                "batch": b,
                "tempered_size": N0,
                "noise": sigma,
                "ratio_limit": c,
                "sensitivity": shift,
            },
            reasons=(reason, *why[1:]),
        )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        p: Mapping[str, Any] = plan.parameters
        n, b = plan.size or 0, int(p["batch"])
        return Chain(
            step=_Step(self.model, self.proposal, self.loss),
            test_noise=test_noise,
            constants={
                "limit": float(p["ratio_limit"]),
                "clip": float(p["ratio_limit"]) * int(p["tempered_size"]) / math.sqrt(b),
                "noise": float(p["noise"]),
                "sampled": min(1.0, b * (n - b) / (n * (b - 1))),
            },
            records=records,
            batch=None if b == n else b,
            steps=int(p["steps"]),
            start=self.starts(),
            randomness=randomness,
            progress=progress,
        ).run()

    def settings(self) -> dict[str, Plain]:
        return {**super().settings(), "proposal": repr(self.proposal)}


def test_noise(generator: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Z and log U of each step."""
    return generator.standard_normal(shape), -generator.standard_exponential(shape)


test_noise.__test__ = False  # pyright: ignore[reportFunctionMemberAccess] - not a test of pytest's


def penalised_mean(ratios: jax.Array, public: jax.Array | float, *, clip: float, sampled: float) -> jax.Array:
    """Delta* - s^2 / 2 of a batch: the mean of the normal that a step releases, and what replay watches.

    Args:
        ratios: of the records of the batch over the limit, in [-1, 1].
        public: log prior ratio plus proposal ratio.
        clip: kappa, the limit times N0 / sqrt(batch).
        sampled: what makes s^2 unbiased; 0 when all records are read.
    """
    mean = ratios.mean()
    variance = sampled * clip**2 * ((ratios - mean) ** 2).mean()
    return clip * math.sqrt(len(ratios)) * mean - variance / 2 + public


@dataclass(frozen=True)
class _Step:
    """One step of the chain."""

    model: Model
    proposal: Proposal
    loss: Loss

    def __call__(
        self,
        theta: Theta,
        noise: Noise,
        test: tuple[jax.Array, jax.Array],
        batch: Theta,
        constants: Mapping[str, Any],
    ) -> Moved:
        import jax.numpy as jnp

        candidate, proposal_ratio = self.proposal.propose(theta, noise)
        public = public_ratio(self.model, candidate, theta, proposal_ratio)
        ratios = clipped_ratios(
            self.loss, self.model, candidate=candidate, theta=theta, batch=batch, limit=constants["limit"]
        )
        mean = penalised_mean(ratios, public, clip=constants["clip"], sampled=constants["sampled"])
        z, log_u = test
        sigma = constants["noise"]
        accepted = log_u < mean + sigma * z - sigma**2 / 2  # never for NaN or -inf
        return Moved(accept(accepted, candidate, theta), accepted, (jnp.abs(ratios) >= 1).mean())
