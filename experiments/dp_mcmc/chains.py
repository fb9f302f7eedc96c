"""The private chains that the figures compare, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from target import N0

from discreet.mechanisms.barker_mcmc import BarkerMCMC
from discreet.mechanisms.langevin_dynamics import LangevinDynamics
from discreet.mechanisms.proposals import CorrelatedWalk, Proposal, RandomWalk
from discreet.mechanisms.release import by_chain
from discreet.models.gaussian_mixture import GaussianMixture
from discreet.neural import Flat
from discreet.privacy import barker

BATCH, STEPS, SCALE = 1_000, 5_000, 0.2
DELTA, EPSILON = 1e-6, 0.5
PILOT, FREED = 3_000, {"batch": 8_000, "steps": 16_000}
"""What exact accounting pays for: private pilots whose covariance shapes the proposal, then more steps, on
larger batches, which clip less."""
LANGEVIN = LangevinDynamics(
    GaussianMixture(),
    step_size=0.01,
    tempered_size=N0,
    burn_in=0.0,
    clipping=Flat(3.0),
    neighbours="substitute",
    start={"theta": np.array([0.5, 0.0])},
)
"""Steps as long as they are stable with some room: the posterior's precision is about N0 / 2."""


def private(
    x: np.ndarray,
    runs: int,
    *,
    steps: int,
    batch: int,
    key: int,
    proposal: Proposal | None = None,
    start: Any = (0.5, 0.0),
) -> Any:
    mechanism = BarkerMCMC(
        GaussianMixture(),
        proposal or RandomWalk(SCALE),
        tempered_size=N0,
        chains=runs,
        start={"theta": np.asarray(start)},
    )
    plan = mechanism.plan(n=len(x), steps=steps, batch=batch, clip=1.0, variance=2.0)
    release = plan.release({"x": x}, key=key)
    return by_chain(release.draws, runs)["theta"], release.diagnostics["clipped_share"].reveal().mean()


def piloted(x: np.ndarray, runs: int, *, steps: int, batch: int) -> tuple[np.ndarray, float]:
    """Pilots of the published kind, then chains along their covariance from their last states.

    The covariance is that of the pilots of all runs, so every run is billed for all of them.
    """
    pilot, _ = private(x, runs, steps=PILOT, batch=BATCH, key=9)
    covariance = np.mean([np.cov(run.T) for run in pilot], axis=0)
    walk = CorrelatedWalk((1.44 * covariance).tolist())
    return private(x, runs, steps=steps, batch=batch, key=2, proposal=walk, start=pilot[:, -1])


def langevin(x: np.ndarray, runs: int, times: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Langevin dynamics, run by run, and epsilon at the times."""
    steps = int(times[-1])
    plan = LANGEVIN.plan(n=len(x), batch=BATCH, steps=steps)
    draws = np.stack([plan.release({"x": x}, key=key).draws["theta"] for key in range(runs)])
    spent = [LANGEVIN.plan(n=len(x), batch=BATCH, steps=int(t)).guarantee.epsilon(DELTA) for t in times]
    return draws, spent


def published(n: int, steps: int, batch: int = BATCH) -> float:
    return barker(batch, n, steps, bound="as_published").epsilon(DELTA)


def exact(n: int, steps: int, batch: int = BATCH, pilots: int = 0) -> float:
    spent = barker(batch, n, steps)
    return (spent + barker(BATCH, n, pilots * PILOT) if pilots else spent).epsilon(DELTA)
