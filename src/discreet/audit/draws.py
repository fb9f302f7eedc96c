"""How each mechanism is run many times at once, by its own code: entries of the table DRAWS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.subject import DRAWS, grouped, number
from discreet.mechanisms._chain_mechanism import ChainMechanism
from discreet.mechanisms._conjugate import ConjugateMechanism
from discreet.mechanisms._lattice_noise import LatticeNoise
from discreet.mechanisms.barker_mcmc import BarkerMCMC
from discreet.mechanisms.base import Plan
from discreet.mechanisms.fast_mh import FastMH
from discreet.mechanisms.one_posterior_sample import OnePosteriorSample
from discreet.mechanisms.output_perturbation import OutputPerturbation
from discreet.mechanisms.penalty_hmc import PenaltyHMC
from discreet.mechanisms.penalty_mcmc import PenaltyMCMC
from discreet.mechanisms.perturbed_statistics import PerturbedStatistics
from discreet.mechanisms.truncated_posterior import TruncatedPosterior
from discreet.mechanisms.variational_samples import VariationalSamples
from discreet.mechanisms.variational_start import VariationalStart
from discreet.models.base import Records, count
from discreet.samplers.posterior import SamplingError
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
_CHAINS, _FITS, _DRAWS, _REFUSALS = 2_000, 4_000, 50_000, 10


def _blocks(runs: int, most: int) -> Iterator[int]:
    """Equal blocks, so that one compilation serves all; the last may be smaller."""
    while runs > 0:
        yield min(runs, most)
        runs -= most


def _joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@DRAWS.register(ConjugateMechanism)
@DRAWS.register(OnePosteriorSample)
@DRAWS.register(TruncatedPosterior)
def _independent(plan: Plan, records: Records, runs: int, randomness: Randomness) -> dict[str, Array]:
    """Draws are independent given the records: those of many releases are one release of many."""
    mechanism: Any = plan.mechanism
    parts: list[dict[str, Array]] = []
    for block in _blocks(runs, max(1, _DRAWS // mechanism.draws)):
        many = replace(mechanism, draws=block * mechanism.draws)
        parts.append(grouped(_released(many, plan, records, randomness), block))
    return _joined(parts)


def _released(mechanism: Any, plan: Plan, records: Records, randomness: Randomness) -> Any:
    """Draws of a sampler that may refuse to release: those of the first time that it does."""
    for _ in range(_REFUSALS - 1):
        try:
            return mechanism.draw(plan, records, randomness, progress=False).draws
        except SamplingError:
            continue
    return mechanism.draw(plan, records, randomness, progress=False).draws


@DRAWS.register(OutputPerturbation)
def _(plan: Plan, records: Records, runs: int, randomness: Randomness) -> dict[str, Array]:
    """The minimiser is the same in every release; the noise is not."""
    mechanism: Any = plan.mechanism
    return {"w": mechanism.around(mechanism.centre(records), plan, randomness, runs)[:, None]}


@DRAWS.register(PerturbedStatistics)
def _(plan: Plan, records: Records, runs: int, randomness: Randomness) -> dict[str, Array]:
    """The noisy sums themselves: the release is a function of them, and its guarantee is theirs."""
    mechanism: Any = plan.mechanism
    noise = LatticeNoise(
        mechanism.noise,
        number(plan, "multiplier"),
        count(records),
        mechanism.model.movable,
    )
    low, high = mechanism.model.measured_range
    measured = mechanism.model.measured(records)
    return {"noisy": np.stack([noise.add(measured, low, high, randomness).values for _ in range(runs)])}


@DRAWS.register(BarkerMCMC)
@DRAWS.register(PenaltyMCMC)
@DRAWS.register(PenaltyHMC)
@DRAWS.register(FastMH)
def _chains(plan: Plan, records: Records, runs: int, randomness: Randomness) -> dict[str, Array]:
    """Chains side by side are independent: those of many releases are one release of many chains."""
    mechanism = plan.mechanism
    assert isinstance(mechanism, ChainMechanism)  # noqa: S101
    starts = mechanism.starts()
    parts: list[dict[str, Array]] = []
    for block in _blocks(runs, max(1, _CHAINS // mechanism.chains)):
        start = {name: np.tile(v, (block, *[1] * (v.ndim - 1))) for name, v in starts.items()}
        many = replace(mechanism, chains=block * mechanism.chains, start=start)
        parts.append(grouped(many.draw(plan, records, randomness, progress=False).draws, block))
    return _joined(parts)


@DRAWS.register(VariationalSamples)
@DRAWS.register(VariationalStart)
def _fits(plan: Plan, records: Records, runs: int, randomness: Randomness) -> dict[str, Array]:
    """Fits side by side."""
    mechanism: Any = plan.mechanism
    return _joined([mechanism.draw_many(plan, records, randomness, block) for block in _blocks(runs, _FITS)])
