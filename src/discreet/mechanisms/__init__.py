"""One file per published mechanism, named as the literature names it.

A mechanism loads on first use, so that naming one does not load what the others need.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.mechanisms.base import Drawn, Mechanism, Plan
from discreet.mechanisms.release import Release

if TYPE_CHECKING:
    from discreet.mechanisms.concentrated_posterior import ConcentratedPosterior
    from discreet.mechanisms.diffused_posterior import DiffusedPosterior
    from discreet.mechanisms.direct_posterior import DirectPosterior
    from discreet.mechanisms.one_posterior_sample import OnePosteriorSample
    from discreet.mechanisms.output_perturbation import OutputPerturbation
    from discreet.mechanisms.perturbed_statistics import PerturbedStatistics

__all__ = [
    "ConcentratedPosterior",
    "DiffusedPosterior",
    "DirectPosterior",
    "Drawn",
    "Mechanism",
    "OnePosteriorSample",
    "OutputPerturbation",
    "PerturbedStatistics",
    "Plan",
    "Release",
]

# Public name -> the file it lives in.
_HOME = {
    "ConcentratedPosterior": "concentrated_posterior",
    "DiffusedPosterior": "diffused_posterior",
    "DirectPosterior": "direct_posterior",
    "OnePosteriorSample": "one_posterior_sample",
    "OutputPerturbation": "output_perturbation",
    "PerturbedStatistics": "perturbed_statistics",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}.")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
