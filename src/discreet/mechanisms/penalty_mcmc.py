"""The penalty method: Metropolis-Hastings with noise in the log ratio, exact and private.

Proof page: docs/proofs/dp_mcmc.md#penalty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.mechanisms._chain import Array
from discreet.mechanisms._chain_mechanism import PROOF, MomentStep, ProposingMechanism
from discreet.mechanisms._ratios import Moments, ratio_limit
from discreet.mechanisms.barker_mcmc import sampling_factor
from discreet.mechanisms.base import Drawn, Plan
from discreet.models.base import Records
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

BEST_NOISE = 2.4
"""Maximises sigma^2 * 2 Phi(-sigma / 2): accepted moves per unit of privacy."""


@dataclass(frozen=True)
class PenaltyMCMC(ProposingMechanism):
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

        def price(T: int) -> Guarantee:
            count = T * self.chains
            return one.repeat(count) if b == n else sampled_without_replacement(one, b / n, count)

        exact = "the target is exact" if b == n else "the target is exact up to the normality of batch sums"
        return self.planned(
            n,
            price,
            budget,
            steps,
            evidence=(certified, Evidence.proved(f"{exact} where no ratio is clipped", f"{PROOF}#penalty")),
            parameters={
                "batch": b,
                "tempered_size": N0,
                "noise": sigma,
                "ratio_limit": c,
                "sensitivity": shift,
            },
            reasons=(reason,),
        )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        p: Mapping[str, Any] = plan.parameters
        n, b = plan.size or 0, int(p["batch"])
        return self.run(
            plan,
            records,
            randomness,
            progress=progress,
            step=_Step(self.model, self.proposal, self.loss),
            test_noise=test_noise,
            constants={
                "limit": float(p["ratio_limit"]),
                "clip": float(p["ratio_limit"]) * int(p["tempered_size"]) / math.sqrt(b),
                "noise": float(p["noise"]),
                "sampled": sampling_factor(b, n),
            },
            batch=None if b == n else b,
        )


def test_noise(generator: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Z and log U of each step."""
    return generator.standard_normal(shape), -generator.standard_exponential(shape)


test_noise.__test__ = False  # pyright: ignore[reportFunctionMemberAccess] - not a test of pytest's


def penalised_mean(
    seen: Moments, public: jax.Array | float, *, batch: int, clip: float, sampled: float
) -> jax.Array:
    """Delta* - s^2 / 2 of a batch: the mean of the normal that a step releases, and what replay watches.

    Args:
        seen: moments of the ratios over the limit, in [-1, 1].
        public: log prior ratio plus proposal ratio.
        batch: how many ratios.
        clip: kappa, the limit times N0 / sqrt(batch).
        sampled: what makes s^2 unbiased; 0 when all records are read.
    """
    return clip * math.sqrt(batch) * seen.mean - sampled * clip**2 * seen.spread / 2 + public


def penalty_test(mean: Any, sigma: Any, noise: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Whether log U < mean + sigma Z - sigma^2 / 2; never for a mean that is not a number, or -inf."""
    z, log_u = noise
    return log_u < mean + sigma * z - sigma**2 / 2


class _Step(MomentStep):
    """One step of the chain."""

    def judge(
        self, seen: Moments, number: int, public: Any, test: Any, constants: Mapping[str, float]
    ) -> jax.Array:
        mean = penalised_mean(
            seen, public, batch=number, clip=constants["clip"], sampled=constants["sampled"]
        )
        return penalty_test(mean, constants["noise"], test)
