"""One file per published mechanism, named as the literature names it.

A mechanism loads on first use, so that naming one does not load what the others need.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.mechanisms.base import Drawn, Mechanism, Plan
from discreet.mechanisms.release import Release, by_chain

if TYPE_CHECKING:
    from discreet.mechanisms._private_storage import Checkpoint
    from discreet.mechanisms.barker_mcmc import BarkerMCMC
    from discreet.mechanisms.bayes_by_backprop import BayesByBackprop
    from discreet.mechanisms.concentrated_posterior import ConcentratedPosterior
    from discreet.mechanisms.diffused_posterior import DiffusedPosterior
    from discreet.mechanisms.direct_posterior import DirectPosterior
    from discreet.mechanisms.fast_mh import FastMH
    from discreet.mechanisms.interruption import Interrupted
    from discreet.mechanisms.langevin_dynamics import LangevinDynamics
    from discreet.mechanisms.monte_carlo_dropout import MonteCarloDropout
    from discreet.mechanisms.one_posterior_sample import OnePosteriorSample
    from discreet.mechanisms.optimisers import Adam, HeavyBall, Sgd
    from discreet.mechanisms.output_perturbation import OutputPerturbation
    from discreet.mechanisms.penalty_hmc import PenaltyHMC
    from discreet.mechanisms.penalty_mcmc import PenaltyMCMC
    from discreet.mechanisms.perturbed_statistics import PerturbedStatistics
    from discreet.mechanisms.proposals import CorrelatedWalk, IntegerWalk, Langevin, RandomWalk
    from discreet.mechanisms.resuming import resume
    from discreet.mechanisms.stochastic_gradient import StochasticGradient
    from discreet.mechanisms.truncated_posterior import TruncatedPosterior
    from discreet.mechanisms.variational_samples import VariationalSamples
    from discreet.mechanisms.variational_start import VariationalStart

__all__ = [
    "Adam",
    "BarkerMCMC",
    "BayesByBackprop",
    "Checkpoint",
    "ConcentratedPosterior",
    "CorrelatedWalk",
    "DiffusedPosterior",
    "DirectPosterior",
    "Drawn",
    "FastMH",
    "HeavyBall",
    "IntegerWalk",
    "Interrupted",
    "Langevin",
    "LangevinDynamics",
    "Mechanism",
    "MonteCarloDropout",
    "OnePosteriorSample",
    "OutputPerturbation",
    "PenaltyHMC",
    "PenaltyMCMC",
    "PerturbedStatistics",
    "Plan",
    "RandomWalk",
    "Release",
    "Sgd",
    "StochasticGradient",
    "TruncatedPosterior",
    "VariationalSamples",
    "VariationalStart",
    "by_chain",
    "resume",
]

# Public name -> the file it lives in.
_HOME = {
    "Adam": "optimisers",
    "BarkerMCMC": "barker_mcmc",
    "BayesByBackprop": "bayes_by_backprop",
    "Checkpoint": "_private_storage",
    "ConcentratedPosterior": "concentrated_posterior",
    "CorrelatedWalk": "proposals",
    "DiffusedPosterior": "diffused_posterior",
    "DirectPosterior": "direct_posterior",
    "FastMH": "fast_mh",
    "HeavyBall": "optimisers",
    "IntegerWalk": "proposals",
    "Interrupted": "interruption",
    "Langevin": "proposals",
    "LangevinDynamics": "langevin_dynamics",
    "MonteCarloDropout": "monte_carlo_dropout",
    "OnePosteriorSample": "one_posterior_sample",
    "OutputPerturbation": "output_perturbation",
    "PenaltyHMC": "penalty_hmc",
    "PenaltyMCMC": "penalty_mcmc",
    "PerturbedStatistics": "perturbed_statistics",
    "RandomWalk": "proposals",
    "Sgd": "optimisers",
    "StochasticGradient": "stochastic_gradient",
    "TruncatedPosterior": "truncated_posterior",
    "VariationalSamples": "variational_samples",
    "VariationalStart": "variational_start",
    "resume": "resuming",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}.")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
