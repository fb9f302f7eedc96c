# pyright: reportUnknownMemberType=false
"""DP-fast MH: exact Metropolis-Hastings on Poisson minibatches, with penalised noise.

Proof page: docs/proofs/dp_mcmc.md#fast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from discreet.mechanisms._chain import Array
from discreet.mechanisms._chain_batches import with_replacement
from discreet.mechanisms._chain_mechanism import PROOF, ProposingMechanism, RatioStep
from discreet.mechanisms._ratios import ratio_limit
from discreet.mechanisms.base import Drawn, Plan
from discreet.mechanisms.penalty_mcmc import BEST_NOISE, penalty_test, test_noise
from discreet.models.base import Records
from discreet.privacy import Budget, Evidence, Guarantee, checks, profile
from discreet.privacy.divergences import hockey_stick_normals
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class FastMH(ProposingMechanism):
    """A private chain whose minibatches leave the target exact, where nothing is clipped.

    Records enter a step by Poisson counts that depend on their own ratio, so that the
    randomness of the batch is part of an extended target (TunaMH); the noise is
    paid for by the penalty method.

    Args:
        model: likelihood and prior.
        proposal: where to go next.
        tempered_size: N0, what the data count for; None is the posterior itself.
        chains: how many run side by side; each is billed.
        start: first values of the parameters, public.
        loss: what is summed; one of certified range needs no clipping.

    Guarantee:
        Every step is billed, under substitution, by the profile of a Gaussian hit by a
        record a Poisson number of times (docs/proofs/dp_mcmc.md#fast).

    References: Zhang & Zhang 2023, Algorithm 2; Zhang, Cooper & De Sa 2020; paper B,
        Proposition 3.

    Example:
        >>> from discreet.models import GaussianMixture
        >>> from discreet.mechanisms.proposals import RandomWalk
        >>> chain = FastMH(GaussianMixture(), RandomWalk(0.1), tempered_size=100)
        >>> plan = chain.plan(n=1_000_000, steps=100)
        >>> plan.parameters["batch"]
        930
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
            budget: what may be spent; then `steps` are as many as it allows.
            steps: of each chain.
            batch: expected records per step, above Lambda = N0 * limit; by default
                Lambda + Lambda^2, at which minibatches slow the chain by a constant.
            limit: where a record's log ratio is clipped; 3 / sqrt(N0) by default.
            noise: sigma, of the log ratio.
        """
        N0 = self.counted_size(n)
        c, reason, certified = ratio_limit(self.loss, self.model, limit, N0)
        sigma, total = checks.real("noise", noise, above=0.0), c * N0
        rule = round(total + total**2) if batch is None else batch
        b = checks.integer("batch", rule, at_least=math.floor(total) + 1)
        reach = math.log1p(total / (b - total))
        one = poisson_hits(b / n, 2 * reach / sigma)

        return self.planned(
            n,
            lambda T: one.repeat(T * self.chains),
            budget,
            steps,
            evidence=(
                certified,
                Evidence.proved("the target is exact where no ratio is clipped", f"{PROOF}#fast"),
            ),
            parameters={
                "batch": b,
                "tempered_size": N0,
                "noise": sigma,
                "ratio_limit": c,
                "sensitivity": 2 * reach,
            },
            reasons=(reason,),
        )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        p: Mapping[str, Any] = plan.parameters
        n, b, total = plan.size or 0, int(p["batch"]), float(p["ratio_limit"]) * int(p["tempered_size"])
        room = math.ceil(b + 10 * math.sqrt(b) + 30)  # one draw in 1e20 is larger, and rejects

        def noises(g: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, ...]:
            drawn = g.poisson(b, shape).astype(np.float64)
            return *test_noise(g, shape), drawn, g.random((*shape, room))

        return self.run(
            plan,
            records,
            randomness,
            progress=progress,
            step=_Step(self.model, self.proposal, self.loss),
            test_noise=noises,
            constants={
                "limit": float(p["ratio_limit"]),
                "most": total / n,
                "floor": (b - total) / n,
                "noise": float(p["noise"]),
            },
            batch=room,
            draw_batches=with_replacement,
        )


@lru_cache(maxsize=32)
def poisson_hits(rate: float, shift: float) -> Guarantee:
    """A unit normal that one record moves by at most `shift`, a Poisson(`rate`) number of times.

    Tabulated; chords in e^epsilon between the points are upper bounds.
    """
    checks.real("rate", rate, above=0.0)
    checks.real("shift", shift, above=0.0)
    hit = -math.expm1(-rate)
    most = math.ceil(rate + 12 * math.sqrt(rate) + 30)
    counts = np.arange(1, most + 1)
    weights = stats.poisson.pmf(counts, rate)
    missed = float(stats.poisson.sf(most, rate))
    far = shift * most
    epsilons = np.concatenate([[0.0], np.geomspace(1e-7, far * (far / 2 + 9) + 1e-6, 1_200)])
    inner = np.log1p(np.expm1(np.minimum(epsilons, 700.0)) / hit)
    deltas = np.full(len(epsilons), missed)
    for count, weight in zip(counts.tolist(), weights.tolist(), strict=True):
        deltas += weight * hockey_stick_normals(inner, shift * count, 1.0, 1.0)
    deltas = np.minimum.accumulate(np.minimum(deltas * (1 + 1e-12), 1.0))
    return profile(dict(zip(epsilons.tolist(), deltas.tolist(), strict=True)), neighbours="substitute")


class _Step(RatioStep):
    """One step of the chain."""

    def decide(
        self, ratios: jax.Array, public: Any, test: Any, constants: Mapping[str, float]
    ) -> tuple[jax.Array, jax.Array]:
        import jax.numpy as jnp

        *noise, drawn, u = test
        terms = poisson_terms(ratios, u, most=constants["most"], floor=constants["floor"])
        total = jnp.where(jnp.arange(len(ratios)) < drawn, terms, 0.0).sum()
        accepted = penalty_test(public + total, constants["noise"], (noise[0], noise[1]))
        return accepted & (drawn <= len(ratios)), (jnp.abs(ratios) >= 1).mean()


def poisson_terms(ratios: jax.Array, u: jax.Array, *, most: Any, floor: Any) -> jax.Array:
    """What each drawn record adds to the log ratio: 0 if thinned away, and what replay watches.

    Args:
        ratios: over the limit, in [-1, 1].
        u: uniforms that thin the draws.
        most: m, the limit times N0 / n.
        floor: lambda / n.
    """
    import jax.numpy as jnp

    low, high = floor + most * (1 - ratios) / 2, floor + most * (1 + ratios) / 2
    return jnp.where(u * (floor + most) < low, jnp.log(high / low), 0.0)
