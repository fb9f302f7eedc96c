# pyright: reportUnknownMemberType=false
"""The best attack on an output, where its density is known up to a constant: entries of the table SCORES.

A constant in a log ratio moves the threshold and nothing else, so that ratios of
normalisers need no estimate to attack; `normaliser_ratio` estimates one where the
attacker's probability itself is wanted (paper B, Appendix A.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from discreet.audit.subject import SCORES, Outputs, Pair, Score, matrix, number
from discreet.mechanisms._conjugate import ConjugateMechanism
from discreet.mechanisms._lattice_noise import LatticeNoise, Noise
from discreet.mechanisms.base import Plan
from discreet.mechanisms.one_posterior_sample import OnePosteriorSample
from discreet.mechanisms.output_perturbation import Norm, OutputPerturbation
from discreet.mechanisms.perturbed_statistics import PerturbedStatistics
from discreet.mechanisms.truncated_posterior import TruncatedPosterior
from discreet.models.base import Model, Records, count
from discreet.models.families import ConjugateFamily
from discreet.models.losses import Gibbs

Array = NDArray[np.float64]
Loss = Callable[[Model, Any, Mapping[str, Any]], Any]


def loss_gap(model: Model, loss: Loss) -> Callable[[Any, Records, Records], Any]:
    """From one draw on the scale people read, and the records that only one side has.

    To the neighbour's summed losses minus the records'.
    """
    import jax
    import jax.numpy as jnp

    def total(theta: Any, records: Records) -> Any:
        if count(records) == 0:
            return jnp.zeros(())
        return jax.vmap(lambda record: loss(model, theta, record))(records).sum()

    def gap(natural: Any, here: Records, there: Records) -> Any:
        theta = model.unconstrain(natural)
        return total(theta, there) - total(theta, here)

    return gap


def _summed(model: Model, loss: Loss, pair: Pair) -> Score:
    """The log ratio of independent draws from exp(-sum of losses) prior: one term per record that differs."""
    import jax

    sides = pair.differing()
    gap = jax.jit(jax.vmap(jax.vmap(loss_gap(model, loss), in_axes=(0, None, None)), in_axes=(0, None, None)))

    def score(outputs: Outputs) -> Array:
        assert isinstance(outputs, Mapping)  # noqa: S101
        with jax.enable_x64(True):
            each = jax.device_get(gap(jax.device_put(dict(outputs)), *jax.device_put(sides)))
        return np.asarray(each, np.float64).sum(axis=1)

    return score


@SCORES.register(OnePosteriorSample)
def _(plan: Plan, pair: Pair) -> Score:
    mechanism: Any = plan.mechanism
    return _summed(mechanism.model, mechanism.loss.with_numbers(plan.parameters), pair)


@SCORES.register(TruncatedPosterior)
def _(plan: Plan, pair: Pair) -> Score:
    return _summed(plan.mechanism.model, Gibbs(number(plan, "weight")), pair)


@SCORES.register(ConjugateMechanism)
def _(plan: Plan, pair: Pair) -> Score:
    """T(theta) times the difference of the natural parameters; for regressions, the log-likelihoods."""
    mechanism: Any = plan.mechanism
    model, weight = mechanism.model, number(plan, "weight")
    if not isinstance(model, ConjugateFamily):
        return _summed(model, Gibbs(weight), pair)
    m = number(plan, "concentration")
    sides: Any = pair.sides
    etas = [
        model.posterior_eta(model.statistic(side).sum(axis=0), count(side), weight=weight, concentration=m)
        for side in sides
    ]

    def score(outputs: Outputs) -> Array:
        assert isinstance(outputs, Mapping)  # noqa: S101
        runs = len(next(iter(outputs.values())))
        flat = {name: v.reshape(-1, *v.shape[2:]) for name, v in outputs.items()}
        each = model.sufficient(flat) @ (etas[0] - etas[1])
        return each.reshape(runs, -1).sum(axis=1)

    return score


@SCORES.register(OutputPerturbation)
def _(plan: Plan, pair: Pair) -> Score:
    """The density of the noise around either minimiser."""
    mechanism: Any = plan.mechanism
    scale = number(plan, "scale")
    first, second = (mechanism.centre(side) for side in pair.sides)
    order = 2 if mechanism.norm is Norm.EUCLIDEAN else 1

    def score(outputs: Outputs) -> Array:
        w = matrix(outputs)
        away = [np.linalg.norm(w - centre, ord=order, axis=1) for centre in (first, second)]
        return (away[1] - away[0]) / scale

    return score


@SCORES.register(PerturbedStatistics)
def _(plan: Plan, pair: Pair) -> Score:
    """The density of the noise around either sum."""
    mechanism: Any = plan.mechanism
    low, high = mechanism.model.measured_range
    multiplier = number(plan, "multiplier")
    scales = LatticeNoise(mechanism.noise, multiplier, plan.size or 1, mechanism.model.movable).multiplier * (
        high - low
    )
    first, second = (np.clip(mechanism.model.measured(side), low, high).sum(axis=0) for side in pair.sides)

    def score(outputs: Outputs) -> Array:
        noisy = matrix(outputs)
        one, other = ((noisy - centre) / scales for centre in (first, second))
        if mechanism.noise is Noise.GAUSSIAN:
            return (0.5 * (other**2 - one**2)).sum(axis=1)
        return (np.abs(other) - np.abs(one)).sum(axis=1)

    return score


def normaliser_ratio(first: Array, second: Array) -> float:
    """The constant missing from a log ratio of two unnormalised densities, from held-out scores of both.

    Bennett's estimate: the constant c at which the attacker who guesses by
    1 / (1 + exp(-(score + c))) is right about the records as often as about their
    neighbour. Paper B's estimate averages exp(-score) over one side; this one uses both.

    Args:
        first: scores of outputs under the records.
        second: scores of as many outputs under the neighbour.
    """

    def excess(c: float) -> float:
        return float(special.expit(second + c).mean() - special.expit(-(first + c)).mean())

    reach = float(np.max(np.abs(np.concatenate([first, second])))) + 50.0
    return float(optimize.brentq(excess, -reach, reach))
