"""DP-MCMC: a Markov chain whose every accept-or-reject decision is private (Heikkila et al. 2019).

Proof page: docs/proofs/dp_mcmc.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.data import StoredRecords
from discreet.mechanisms import _planner
from discreet.mechanisms._chain import Array
from discreet.mechanisms._chain_mechanism import PROOF, ProposingMechanism
from discreet.mechanisms._chain_watched import WatchedPairs, WatchedStep
from discreet.mechanisms._logistic_correction import LARGEST_VARIANCE, logistic_correction
from discreet.mechanisms._ratios import CLIPPED, Moments
from discreet.mechanisms.base import Drawn, Plan
from discreet.models.base import Records
from discreet.privacy import Budget, Evidence, Guarantee, Observer, barker, barker_full_data, checks
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax

_VARIANCES = (1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5)


@dataclass(frozen=True)
class BarkerMCMC(ProposingMechanism):
    """A private chain for any model: Barker's acceptance test on a minibatch, or on all records.

    A step proposes a candidate, sums the clipped log-likelihood ratios of a batch drawn
    without replacement, and accepts when the sum plus logistic noise is positive. The
    logistic noise is N(0, C - s^2) plus a correction, so that the normal part hides
    each record and the sampling error s^2 is already part of it. The target is
    prior(theta) prod_i p(x_i | theta)^(N0 / n).

    Args:
        model: likelihood and prior.
        proposal: where to go next; see `discreet.mechanisms.proposals`.
        tempered_size: N0, what the likelihood counts for, in records. None is the
            posterior itself, N0 = n.
        chains: how many run side by side; each is billed.
        start: first values of the parameters (public), for all chains or one by one.
        loss: what is summed over records; the log-likelihood by default.
        observers: who watches the run, such as a `BayesianAccountant`; for tests on all
            records only, where a step is a noisy sum.

    Guarantee:
        Every accepted or rejected step is billed, under substitution, whether or not
        the chain has converged: `discreet.privacy.barker` for batches,
        `barker_full_data` for all records.

    References: Heikkila, Jalko, Dikmen & Honkela 2019, Theorems 1 and 2 (ERRATA 11, 12,
        S1, S8); Seita, Pan, Chen & Canny 2017; Barker 1965.

    Example:
        >>> from discreet.models import GaussianMixture
        >>> from discreet.mechanisms.proposals import RandomWalk
        >>> chain = BarkerMCMC(GaussianMixture(), RandomWalk(0.1), tempered_size=100)
        >>> plan = chain.plan(n=1_000_000, steps=5000, batch=1000)
        >>> plan.guarantee.epsilon(1e-6) < 0.02
        True
    """

    observers: tuple[Observer, ...] = field(default=(), kw_only=True, compare=False)

    def plan(
        self,
        *,
        n: int,
        budget: Budget | None = None,
        steps: int | None = None,
        batch: int | None = None,
        clip: float | None = None,
        variance: float | None = None,
        temper: bool = False,
    ) -> Plan:
        """Choose what was not given, without data.

        The rule, which `plan.reasons` repeats with its numbers:

        - tempered_size, only if `temper`: the largest N0 (within a hundredth) with which
          the budget allows the steps (5,000 unless given) by the rest of the rule. More
          data is the best use of a budget; what the rest costs hardly depends on it.
        - batch: 9 N0 records, and all of them when that is half of the data or more.
        - clip: kappa such that a ratio is clipped at 3 / sqrt(N0), three times the size
          that it has at a step of one posterior standard deviation; at most 1 for batches.
        - variance: C with the smallest certified error of the acceptance test, among
          those with which the budget allows the steps (5,000 unless given).
        - steps: as many as the budget allows, at most 100,000.

        Args:
            n: number of records, public.
            budget: what may be spent; without it, `steps` must be given.
            steps: of each chain.
            batch: records per step; n is Theorem 1's test on all records.
            clip: kappa; ratios are clipped at kappa sqrt(batch) / N0.
            variance: C, of the normal part of the noise, below pi^2 / 3.
            temper: choose N0 too; the mechanism must not name one.
        """
        if temper:
            return self._tempered(n=n, budget=budget, steps=steps, batch=batch, clip=clip, variance=variance)
        N0 = self.counted_size(n)
        reasons: list[str] = []
        if batch is None:
            batch = n if n <= 18 * N0 else max(9 * N0, 2)
            what = "all records are read" if batch == n else f"batch {batch} is 9 N0"
            reasons.append(f"{what}: then a clipping factor of 1 clips at 3 / sqrt(N0)")
        batch = checks.integer("batch", batch, at_least=2, at_most=n)
        if clip is None:
            clip = 3 * math.sqrt(N0 / batch) if batch == n else min(1.0, 3 * math.sqrt(N0 / batch))
            reasons.append(
                f"clip {clip:.4g} clips ratios at {clip * math.sqrt(batch) / N0:.4g}, "
                f"{clip * math.sqrt(batch / N0):.3g} / sqrt(N0)"
            )
        if self.observers and batch < n:
            raise ValueError(
                f"batch must be all {n} records where observers watch, got {batch}: a batch moves "
                "the test's variance too, which an accountant of noisy sums does not cover; plan batch = n"
            )
        kappa = checks.real("clip", clip, above=0.0)

        def guarantee(C: float, T: int) -> Guarantee:
            if batch == n:
                return barker_full_data(kappa / math.sqrt(n), T * self.chains, variance=C)
            return barker(batch, n, T * self.chains, self.tempered_size, variance=C, clip=kappa)

        if variance is not None:
            options = [checks.real("variance", variance, above=0.0, below=LARGEST_VARIANCE)]
        else:
            options = [C for C in _VARIANCES if batch == n or 1.2 * kappa**2 <= C]
        if not options or (batch < n and kappa**2 >= min(options)):
            raise ValueError(
                f"clip must have a square below the variance of the normal part, got {kappa:g}; "
                "clip harder or draw larger batches"
            )
        errors = {C: test_error(batch, n, kappa, C) for C in options}
        C, why = _planner.choose(errors, guarantee, budget, steps)
        return self.planned(
            n,
            lambda T: guarantee(C, T),
            budget,
            steps,
            evidence=(
                CLIPPED,
                logistic_correction(C).evidence,
                Evidence.proved(
                    f"an acceptance probability differs from Barker's test on all clipped ratios by at most "
                    f"{errors[C]:.2g}",
                    f"{PROOF}#test-error",
                ),
            ),
            parameters={
                "batch": batch,
                "tempered_size": N0,
                "variance": C,
                "clip": kappa,
                "ratio_limit": kappa * math.sqrt(batch) / N0,
                "test_error": errors[C],
            },
            reasons=(*reasons, why),
        )

    def _tempered(self, *, n: int, budget: Budget | None, steps: int | None, **given: Any) -> Plan:
        """The plan with the largest N0 that the budget allows."""
        if self.tempered_size is not None or budget is None:
            raise ValueError(
                f"temper needs a budget and a mechanism without tempered_size, got tempered_size "
                f"{self.tempered_size} and budget {budget}; leave tempered_size out, or plan without temper"
            )
        wanted = _planner.WANTED_STEPS if steps is None else steps
        cheapest: dict[str, Any] = {"variance": max(_VARIANCES)}
        cheapest |= {name: value for name, value in given.items() if value is not None}

        def price(N0: int) -> Guarantee:
            return replace(self, tempered_size=N0).plan(n=n, steps=wanted, **cheapest).guarantee

        N0 = max(1, _planner.most(price, budget, n, within=0.01))
        plan = replace(self, tempered_size=N0).plan(n=n, budget=budget, steps=steps, **given)
        why = f"tempered_size {N0} of {n} is the largest with which the budget allows {wanted} steps"
        return replace(plan, reasons=(why, *plan.reasons))

    def check_stored(self, plan: Plan, records: StoredRecords) -> None:
        super().check_stored(plan, records)
        if self.observers:
            raise ValueError(
                "observers need records in memory, got stored ones; read the table without stream"
            )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        p: Mapping[str, Any] = plan.parameters
        n, batch, C = plan.size or 0, int(p["batch"]), float(p["variance"])
        correction = logistic_correction(C)
        atoms, weights = np.asarray(correction.atoms), np.asarray(correction.weights)

        watching = WatchedPairs(plan, self.observers)

        def test_noise(g: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, ...]:
            return g.standard_normal(shape), g.choice(atoms, size=shape, p=weights), *watching.draw(g, shape)

        watching.begin()
        return self.run(
            plan,
            records,
            randomness,
            progress=progress,
            step=_Step(self.model, self.proposal, self.loss),
            test_noise=test_noise,
            watch=watching.observe if self.observers else None,
            width=watching.pairs,
            constants={
                "limit": float(p["ratio_limit"]),
                "clip": float(p["clip"]),
                "variance": C,
                "sampled": sampling_factor(batch, n),
            },
            batch=None if batch == n else batch,
        )


class ReleasedNormal(NamedTuple):
    """What the analysis lets an attacker see of a step; the chain shows its sign only."""

    mean: jax.Array
    variance: jax.Array


def released_normal(
    seen: Moments, public: jax.Array | float, *, batch: int, clip: float, variance: float, sampled: float
) -> ReleasedNormal:
    """N(Delta*, C - s^2) of a batch, from the moments of its ratios over the clipping limit.

    s^2 is `sampled` times clip^2 times the variance of the ratios with divisor batch,
    the one that the sensitivity proof is about.

    Args:
        seen: of ratios in [-1, 1].
        public: log prior ratio plus proposal ratio.
        batch: how many ratios.
        clip: kappa.
        variance: C.
        sampled: see `sampling_factor`.
    """
    from jax import lax

    return ReleasedNormal(
        lax.add(lax.mul(seen.mean, clip * math.sqrt(batch)), public),
        lax.sub(variance, lax.mul(seen.spread, sampled * clip**2)),
    )


def sampling_factor(batch: int, size: int) -> float:
    """What makes s^2 unbiased for a sample without replacement; 1 at most, 0 when all records are read."""
    return min(1.0, batch * (size - batch) / (size * (batch - 1)))


def test_error(batch: int, size: int, clip: float, variance: float) -> float:
    """How far an acceptance probability can be from Barker's, for any data.

    The error of the logistic correction, and for a batch the errors of the normal
    approximation and of the estimated variance. Errors of clipping are not counted:
    they change the target, not the test. Proof: docs/proofs/dp_mcmc.md#test-error.
    """
    error = logistic_correction(variance).error
    if batch < size:
        v, root = variance - clip**2, math.sqrt(batch)
        density, slope = 1 / math.sqrt(2 * math.pi), math.exp(-0.5) / math.sqrt(2 * math.pi)
        error += slope * clip**2 / v * (0.75 / root + 1.5 / batch + 1 / size)
        error += density * clip**3 / (3 * root * v**1.5)
    return error


test_error.__test__ = False  # pyright: ignore[reportFunctionMemberAccess] - not a test of pytest's


class _Step(WatchedStep):
    """One step of the chain."""

    def judge(
        self, seen: Moments, number: int, public: Any, test: Any, constants: Mapping[str, float]
    ) -> jax.Array:
        from jax import lax

        normal = released_normal(
            seen,
            public,
            batch=number,
            clip=constants["clip"],
            variance=constants["variance"],
            sampled=constants["sampled"],
        )
        z, correction, *_ = test
        total = lax.add(lax.add(normal.mean, lax.mul(lax.sqrt(normal.variance), z)), correction)
        return lax.gt(total, 0.0)  # never for NaN or -inf
