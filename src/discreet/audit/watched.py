# pyright: reportUnknownMemberType=false
"""The statistics whose sensitivity each mechanism declares, on both sides of a pair: entries of WATCHED."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.replay import DISCLOSED, WATCHED, Moved, largest_gap
from discreet.audit.scores import loss_gap
from discreet.audit.subject import Pair, number
from discreet.mechanisms._chain_batches import batches
from discreet.mechanisms._conjugate import ConjugateMechanism
from discreet.mechanisms._lattice_noise import LatticeNoise
from discreet.mechanisms._ratios import clipped_ratios, moments
from discreet.mechanisms.barker_mcmc import BarkerMCMC, released_normal, sampling_factor
from discreet.mechanisms.base import Plan
from discreet.mechanisms.fast_mh import FastMH, poisson_terms
from discreet.mechanisms.one_posterior_sample import OnePosteriorSample
from discreet.mechanisms.output_perturbation import OutputPerturbation
from discreet.mechanisms.penalty_hmc import PenaltyHMC, clipped_gradient_sum
from discreet.mechanisms.penalty_mcmc import PenaltyMCMC, penalised_mean
from discreet.mechanisms.perturbed_statistics import PerturbedStatistics
from discreet.mechanisms.truncated_posterior import TruncatedPosterior
from discreet.mechanisms.variational_samples import VariationalSamples, gradients
from discreet.mechanisms.variational_start import VariationalStart, clipped_sum
from discreet.models.base import Model, Records, count
from discreet.models.families import ConjugateFamily
from discreet.models.losses import Gibbs
from discreet.privacy import Neighbours
from discreet.samplers.exact import ExactRegression
from discreet.samplers.nuts import NUTS
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
_POINTS = 64


def points(model: Model, generator: np.random.Generator, number: int = _POINTS) -> Records:
    """Unconstrained parameters at several scales, where declared bounds must hold."""
    scale = 10.0 ** generator.uniform(-2, 1.3, number)
    shapes = model.parameter_shapes
    return {
        name: generator.standard_normal((number, *s)) * scale.reshape(-1, *[1] * len(s))
        for name, s in shapes.items()
    }


# --- what is known to read more or less randomness, by records ------------------------


@DISCLOSED.register(PerturbedStatistics)
def _(plan: Plan) -> str:  # noqa: ARG001
    return "what is read after the noise is a function of the noisy sums, which are public"


@DISCLOSED.register(ConjugateMechanism)
@DISCLOSED.register(TruncatedPosterior)
@DISCLOSED.register(OnePosteriorSample)
def _(plan: Plan) -> str:
    """Constant time is what the plan of a regression says; gamma variables never have it."""
    mechanism: Any = plan.mechanism
    if isinstance(mechanism, TruncatedPosterior):
        return "tries go on until one falls into the ball and is accepted"
    if isinstance(mechanism.model, ConjugateFamily):
        return "gamma variables are drawn by rejection, which takes nanoseconds more or less"
    if isinstance(mechanism.sampler, NUTS):
        return "the trajectories of NUTS are as long as the posterior makes them"
    if any("depends on the data" in reason or "until one is accepted" in reason for reason in plan.reasons):
        return "the plan says that its tries are not fixed"
    exact = mechanism.sampler
    if isinstance(exact, ExactRegression) and not exact.constant_time:
        return "the sampler's tries are not fixed"
    return ""


# --- statistics ---------------------------------------------------------------------


def _sides(pair: Pair) -> tuple[Records, Records]:
    first, second = ({k: np.asarray(v, np.float64) for k, v in side.items()} for side in pair.sides)
    return first, second


@WATCHED.register(OutputPerturbation)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:  # noqa: ARG001
    mechanism: Any = plan.mechanism
    centres = [[mechanism.centre(side) for side in _sides(pair)] for pair in pairs]
    order = 1 if mechanism.norm == "coordinates" else 2
    moved = max(float(np.linalg.norm(first - second, ord=order)) for first, second in centres)
    return [Moved("the minimiser, in the norm of the noise", moved, number(plan, "sensitivity"))]


@WATCHED.register(PerturbedStatistics)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    """The same noise twice: what is left is how far the lattice sums moved."""
    mechanism: Any = plan.mechanism
    model = mechanism.model
    noise = LatticeNoise(mechanism.noise, number(plan, "multiplier"), plan.size or 1, model.movable)
    low, high = model.measured_range
    seed = randomness.integer()
    noisy = [
        [noise.add(model.measured(side), low, high, Randomness(seed)).values for side in _sides(pair)]
        for pair in pairs
    ]
    moved = np.stack([np.abs(one - other) / (high - low) for one, other in noisy])
    declared = noise.loss * noise.multiplier
    return [
        Moved("a sum, in ranges of a record", float(moved.max()), declared),
        Moved("sums that move", float((moved > 0).sum(axis=1).max()), float(model.movable)),
    ]


@WATCHED.register(ConjugateMechanism)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    mechanism: Any = plan.mechanism
    model = mechanism.model
    if not isinstance(model, ConjugateFamily):
        return _slope(plan, Gibbs(number(plan, "weight")), pairs, randomness)
    sums = [[model.statistic(side).sum(axis=0) for side in _sides(pair)] for pair in pairs]
    return [Moved("the sum of S(x)", max(largest_gap(*both) for both in sums), model.delta)]


@WATCHED.register(OnePosteriorSample)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    """The range of one record's loss where it is declared, else its Lipschitz constant."""
    mechanism: Any = plan.mechanism
    loss = mechanism.loss.with_numbers(plan.parameters)
    if "range" not in plan.parameters:
        return _slope(plan, loss, pairs, randomness)
    sides = 2 if plan.guarantee.neighbours is Neighbours.SUBSTITUTE else 1
    return [_interval(mechanism.model, loss, pairs, randomness, declared=sides * number(plan, "range"))]


@WATCHED.register(TruncatedPosterior)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    """The log ratio spans an interval no longer than 2 w c R on the ball."""
    mechanism: Any = plan.mechanism
    weight, radius = number(plan, "weight"), number(plan, "radius")
    declared = 2 * weight * mechanism.model.row_norm * radius
    return [_interval(mechanism.model, Gibbs(weight), pairs, randomness, declared=declared, radius=radius)]


def _interval(
    model: Model,
    loss: Any,
    pairs: list[Pair],
    randomness: Randomness,
    *,
    declared: float,
    radius: float = math.inf,
) -> Moved:
    """The length of the interval in which the log ratio of two posteriors lies, over made-up parameters."""
    import jax

    theta = points(model, randomness.numpy(), 2048)
    if math.isfinite(radius):
        rows = np.concatenate([v.reshape(len(v), -1) for v in theta.values()], axis=1)
        shrunk = np.minimum(1.0, radius / np.linalg.norm(rows, axis=1))
        theta = {name: v * shrunk.reshape(-1, *[1] * (v.ndim - 1)) for name, v in theta.items()}
    with jax.enable_x64(True):
        natural = jax.vmap(model.constrain)({k: jax.numpy.asarray(v) for k, v in theta.items()})
        gap = jax.jit(jax.vmap(loss_gap(model, loss), in_axes=(0, None, None)))
        rows = np.stack([np.asarray(gap(natural, *pair.differing())) for pair in pairs])
    rows = np.where(np.isfinite(rows), rows, 0.0)
    # The normalisers shift the interval, so that it covers 0; they do not change its length.
    length = float((rows.max(axis=1) - rows.min(axis=1)).max())
    return Moved("the log ratio of the posteriors, as an interval around 0", length, declared)


def _slope(plan: Plan, loss: Any, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    """The gradient of the difference of the two potentials."""
    import jax
    from jax.flatten_util import ravel_pytree

    model = plan.mechanism.model
    name = "lipschitz_difference" if plan.guarantee.neighbours is Neighbours.SUBSTITUTE else "lipschitz"
    declared = number(plan, "weight") * model.bounds[name].value
    theta = points(model, randomness.numpy(), 512)
    gap = loss_gap(model, loss)

    def steepness(at: Any, here: Records, there: Records) -> Any:
        return jax.numpy.linalg.norm(ravel_pytree(jax.grad(gap)(at, here, there))[0])

    with jax.enable_x64(True):
        slope = jax.jit(jax.vmap(steepness, in_axes=(0, None, None)))
        steepest = max(float(np.nanmax(np.asarray(slope(theta, *pair.differing())))) for pair in pairs)
    return [Moved("the slope of the log ratio of the posteriors", steepest, declared)]


# --- chains -------------------------------------------------------------------------


def _batches(plan: Plan, pair: Pair, generator: np.random.Generator) -> list[tuple[Records, Records]]:
    """Batches of both sides by the same randomness, one of them with the record that differs."""
    first, second = _sides(pair)
    n, b = count(first), int(number(plan, "batch")) if "batch" in plan.parameters else count(first)
    if b >= n:
        return [(first, second)]
    rows = list(batches(generator, n, b, (8,)))
    different = [k for k in range(n) if any(not np.array_equal(first[f][k], second[f][k]) for f in first)]
    if different:
        rows.append(np.unique(np.concatenate([different[:1], rows[0]]))[:b])
    return [({f: first[f][r] for f in first}, {f: second[f][r] for f in second}) for r in rows]


def _ratios(plan: Plan, theta: Any, candidate: Any, side: Any) -> Any:
    mechanism: Any = plan.mechanism
    limit = number(plan, "ratio_limit")
    return clipped_ratios(
        mechanism.loss,
        mechanism.model,
        candidate=candidate,
        theta=theta,
        batch=side,
        limit=limit,
    )


def _over_states(
    plan: Plan, pairs: list[Pair], randomness: Randomness, statistic: Any
) -> list[tuple[Any, Any]]:
    """A statistic of (theta, candidate, batch) at many states, for both sides of every batch."""
    import jax

    generator = randomness.numpy()
    theta, candidate = (points(plan.mechanism.model, generator) for _ in range(2))
    found: list[tuple[Any, Any]] = []
    with jax.enable_x64(True):
        every = jax.jit(jax.vmap(statistic, in_axes=(0, 0, None)))
        for one, other in (both for pair in pairs for both in _batches(plan, pair, generator)):
            found.append(tuple(jax.device_get(every(theta, candidate, side)) for side in (one, other)))
    return found


def _most(found: list[tuple[Any, Any]], part: Any = lambda v: v) -> float:
    return max(float(np.nanmax(np.abs(np.asarray(part(one)) - np.asarray(part(two))))) for one, two in found)


@WATCHED.register(BarkerMCMC)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    b, n, clip, variance = (
        int(number(plan, "batch")),
        plan.size or 0,
        number(plan, "clip"),
        number(plan, "variance"),
    )
    full = b == n

    def released(theta: Any, candidate: Any, side: Any) -> Any:
        seen = moments(_ratios(plan, theta, candidate, side))
        return released_normal(
            seen, 0.0, batch=b, clip=clip, variance=variance, sampled=0.0 if full else sampling_factor(b, n)
        )

    found = _over_states(plan, pairs, randomness, released)
    return [
        Moved("the mean of the test", _most(found, lambda v: v.mean), 2 * clip / math.sqrt(b)),
        Moved(
            "the variance of the test",
            _most(found, lambda v: v.variance),
            0.0 if full else 4 * clip**2 * (b - 1) / b**2,
        ),
    ]


@WATCHED.register(PenaltyMCMC)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    b, n = int(number(plan, "batch")), plan.size or 0
    clip = number(plan, "ratio_limit") * number(plan, "tempered_size") / math.sqrt(b)
    sampled = 0.0 if b == n else sampling_factor(b, n)

    def mean(theta: Any, candidate: Any, side: Any) -> Any:
        seen = moments(_ratios(plan, theta, candidate, side))
        return penalised_mean(seen, 0.0, batch=b, clip=clip, sampled=sampled)

    found = _over_states(plan, pairs, randomness, mean)
    return [Moved("the penalised mean of the test", _most(found), number(plan, "sensitivity"))]


@WATCHED.register(PenaltyHMC)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    mechanism: Any = plan.mechanism
    n, N0 = plan.size or 0, number(plan, "tempered_size")
    c, c_g = number(plan, "ratio_limit"), number(plan, "gradient_limit")

    def both(theta: Any, candidate: Any, side: Any) -> Any:
        slope = clipped_gradient_sum(mechanism.loss, mechanism.model, theta, side, c_g)
        return c * N0 * moments(_ratios(plan, theta, candidate, side)).mean, slope

    found = _over_states(plan, pairs, randomness, both)
    slopes = max(
        float(
            np.sqrt(
                sum(((one[1][k] - two[1][k]) ** 2).reshape(_POINTS, -1).sum(axis=1) for k in one[1])
            ).max()
        )
        for one, two in found
    )
    return [
        Moved("the log ratio", _most(found, lambda v: v[0]), 2 * c * N0 / n),
        Moved("the gradient sum", slopes * N0 / n, 2 * c_g * N0 / n),
    ]


@WATCHED.register(FastMH)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    """One drawn record's term, kept or thinned away."""
    generator = randomness.numpy()
    n, b, c, N0 = (
        number(plan, k) if k != "n" else plan.size or 0
        for k in ("n", "batch", "ratio_limit", "tempered_size")
    )
    total = c * N0
    u: Any = generator.random(_POINTS)
    different = [both for both in (pair.differing() for pair in pairs) if count(both[0])]

    def term(theta: Any, candidate: Any, side: Any) -> Any:
        ratios = _ratios(plan, theta, candidate, side)
        return poisson_terms(ratios[:, None], u[None], most=total / n, floor=(b - total) / n)

    import jax

    theta, candidate = (points(plan.mechanism.model, generator) for _ in range(2))
    with jax.enable_x64(True):
        every = jax.jit(jax.vmap(term, in_axes=(0, 0, None)))
        terms = [[np.asarray(every(theta, candidate, side)) for side in both] for both in different]
    return [
        Moved(
            "one record's term in the test",
            max(float(np.abs(one - other).max()) for one, other in terms),
            number(plan, "sensitivity"),
        )
    ]


# --- variational --------------------------------------------------------------------


@WATCHED.register(VariationalSamples)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    import jax

    mechanism: Any = plan.mechanism
    clip = number(plan, "clip")
    theta = points(mechanism.model, randomness.numpy())
    flat = np.concatenate([v.reshape(_POINTS, -1) for v in theta.values()], axis=1)
    gradient = gradients(mechanism.model, clip)
    with jax.enable_x64(True):
        every = jax.jit(jax.vmap(lambda w, side: gradient(w, side)[1].sum(axis=0), in_axes=(0, None)))
        sums = [[np.asarray(every(flat, side)) for side in _sides(pair)] for pair in pairs]
    moved = max(float(np.linalg.norm(one - other, axis=1).max()) for one, other in sums)
    return [Moved("the sum of clipped gradients", moved, 2 * clip)]


@WATCHED.register(VariationalStart)
def _(plan: Plan, pairs: list[Pair], randomness: Randomness) -> list[Moved]:
    import jax

    mechanism: Any = plan.mechanism
    model, limit = mechanism.model, mechanism.gradient_limit
    generator = randomness.numpy()
    mean, noise = points(model, generator), points(model, generator)
    q: Mapping[str, Any] = {name: np.stack([v, 0 * v - 1], axis=1) for name, v in mean.items()}

    def summed(at: Any, e: Any, side: Any) -> Any:
        return clipped_sum(model, at, e, side, limit, rows_kept=count(side))

    with jax.enable_x64(True):
        every = jax.jit(jax.vmap(summed, in_axes=(0, 0, None)))
        sums = [[jax.device_get(every(q, noise, side)) for side in _sides(pair)] for pair in pairs]
    moved = [
        largest_gap({k: one[k][j] for k in one}, {k: other[k][j] for k in other})
        for one, other in sums
        for j in range(_POINTS)
    ]
    return [Moved("the sum of clipped gradients", max(moved), 2 * limit)]
