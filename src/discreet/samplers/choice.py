"""Which sampler serves a posterior by default: the first of a table that does not refuse.

The order is by what can be said of a draw, then by time to one draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet.models.base import Model
from discreet.models.losses import Gibbs, Loss
from discreet.models.neural_regression import NeuralClassification, NeuralRegression
from discreet.samplers.coupled import CoupledChains
from discreet.samplers.exact import ExactRegression, setting_of
from discreet.samplers.nuts import NUTS
from discreet.samplers.posterior import Sampler

Choice = Callable[[Model, Loss, float, int], Sampler | None]
_EXACT = 1e-12
_TRUSTED = 1e-6
_HANDFUL = 10


def exact(model: Model, loss: Loss, gamma: float, size: int) -> Sampler | None:
    """Rejection, for the log-likelihood of bounded canonical models, where double precision bears it."""
    if ExactRegression().refusal(model, loss):
        return None
    # Weights are at most 1 where the plan chooses them, and the heaviest is the hardest.
    weight = (loss.weight if isinstance(loss, Gibbs) else None) or 1.0
    setting = setting_of(model, size, weight)
    if not setting.resolvable:
        return None
    if gamma == 0:
        return ExactRegression(gamma=0.0, constant_time=False)
    return ExactRegression.affordable(setting, min(gamma, _EXACT))


def coupled(model: Model, loss: Loss, gamma: float, size: int) -> Sampler | None:
    """Coupled chains, for posteriors with one mode in sight."""
    del size
    if isinstance(model, NeuralClassification | NeuralRegression):
        return None
    parameters = sum(math.prod(shape) for shape in model.parameter_shapes.values())
    # Steps by which at most one pair in 30 was late, on one-hot columns with rare levels (coupled_chains.md).
    meet = 40 if parameters <= _HANDFUL else max(80, round(0.9 * parameters))
    bill = gamma > 0
    sampler = CoupledChains(gamma=gamma if bill else _TRUSTED, meet=meet, bill=bill)
    return None if sampler.refusal(model, loss) else sampler


def nuts(model: Model, loss: Loss, gamma: float, size: int) -> Sampler | None:  # noqa: ARG001
    """NUTS, for everything else."""
    return NUTS()


CHOICES: list[Choice] = [exact, coupled, nuts]
"""Tried in this order; put a better one in front."""


def default_sampler(model: Model, loss: Loss, gamma: float, size: int) -> Sampler:
    """The first choice that serves.

    Args:
        model: likelihood and prior.
        loss: the loss.
        gamma: total variation per draw for which delta has room; 0 for none.
        size: the number of records, or a generous guess where it is private.
    """
    return next(sampler for choice in CHOICES if (sampler := choice(model, loss, gamma, size)) is not None)
