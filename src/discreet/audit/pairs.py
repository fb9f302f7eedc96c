# pyright: reportUnknownMemberType=false
"""The neighbouring data sets that an attack tells apart best, by optimisation over admissible records.

All but one record are copies of one and the same, which is chosen too; what varies is
that record and the one that is substituted, added or removed. A table by mechanism type
says how far apart the outputs of every such pair are; the best pairs are then refined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.records import near, pool, stacked
from discreet.audit.subject import Pair, Table, draw_many, matrix, number
from discreet.mechanisms._conjugate import ConjugateMechanism
from discreet.mechanisms.barker_mcmc import BarkerMCMC
from discreet.mechanisms.base import Plan
from discreet.mechanisms.fast_mh import FastMH
from discreet.mechanisms.one_posterior_sample import OnePosteriorSample
from discreet.mechanisms.output_perturbation import OutputPerturbation
from discreet.mechanisms.penalty_hmc import PenaltyHMC
from discreet.mechanisms.penalty_mcmc import PenaltyMCMC
from discreet.mechanisms.perturbed_statistics import PerturbedStatistics
from discreet.mechanisms.proposals import Noise
from discreet.mechanisms.truncated_posterior import TruncatedPosterior
from discreet.mechanisms.variational_samples import VariationalSamples
from discreet.mechanisms.variational_start import VariationalStart
from discreet.models.base import Model, Records, count
from discreet.models.families import ConjugateFamily
from discreet.models.losses import Gibbs
from discreet.privacy import Neighbours, checks
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
_POINTS, _BASES, _NEAR = 512, 24, 96

GAPS = Table()
"""(plan, records, bases, size, generator) -> (bases, records + 1, records + 1): how far apart outputs are.

Entry [b, i, j] is for record i against record j, beside size copies of bases[b]; the last
index stands for no record at all.
"""


def worst_pair(plan: Plan, *, size: int | None = None, tries: int = 3, seed: int = 0) -> Pair:
    """Neighbouring data sets that are as easy to tell apart as a search finds.

    Args:
        plan: what will run on them.
        size: how many records, for a plan under add/remove; 2 unless given.
        tries: rounds of refinement.
        seed: of the search, which reads no data.

    Example:
        >>> from discreet.mechanisms import DirectPosterior
        >>> from discreet.models import BetaBernoulli
        >>> pair = worst_pair(DirectPosterior(BetaBernoulli((6, 12))).plan(n=4))
        >>> [side["x"].tolist() for side in pair.sides]
        [[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    """
    generator = np.random.default_rng(seed)
    model = plan.mechanism.model
    substitute = plan.guarantee.neighbours is Neighbours.SUBSTITUTE
    rest = (plan.size or 0) - 1 if substitute else checks.integer("size", size or 2, at_least=1)
    gaps = GAPS.find(plan.mechanism) or _simulated
    cheap = gaps is not _simulated
    records = pool(model, generator, _NEAR if cheap else 4)
    bases = {name: values[: _BASES if cheap else 2] for name, values in records.items()}
    best: tuple[float, int, int, int] = (-1.0, 0, 0, 0)
    for step in (0.0, *(0.5 / 3**k for k in range(tries if cheap else 0))):
        if step > 0:
            _, b, i, j = best
            records = near(model, _some(records, [i, j]), generator, _NEAR, step)
            bases = near(model, _some(bases, [b]), generator, _BASES // 2, step)
        apart = np.nan_to_num(gaps(plan, records, bases, rest, generator), nan=0.0)
        last = count(records)
        allowed = apart[:, :last, :last] if substitute else apart[:, :last, last:]
        b, i, j = np.unravel_index(int(np.argmax(allowed)), allowed.shape)
        best = (float(allowed[b, i, j]), int(b), int(i), int(j) if substitute else last)
    _, b, i, j = best
    first = stacked(bases, b, rest, (records, i))
    second = stacked(bases, b, rest, (records, j)) if substitute else stacked(bases, b, rest)
    kind = "one record substituted" if substitute else "one record removed"
    return Pair(first, second, f"{rest} copies of one record, {kind}, by search over admissible records")


def _some(records: Records, rows: list[int]) -> Records:
    kept = [k for k in rows if k < count(records)]
    return {name: values[kept] for name, values in records.items()}


def _simulated(
    plan: Plan, records: Records, bases: Records, rest: int, generator: np.random.Generator
) -> Array:
    """From a few runs: the largest standardised difference of means of any output, or of its logarithm."""
    randomness = Randomness(int(generator.integers(2**62)))
    last = count(records)
    apart = np.zeros((count(bases), last + 1, last + 1))
    for b in range(count(bases)):
        runs: list[Array] = []
        for i in range(last):
            outputs = matrix(draw_many(plan, stacked(bases, b, rest, (records, i)), 25, randomness))
            runs.append(np.clip(np.nan_to_num(outputs, nan=0.0), -1e9, 1e9))
        for i in range(last):
            for j in range(i):
                spread = np.sqrt(runs[i].var(axis=0) + runs[j].var(axis=0)) + 1e-9
                apart[b, i, j] = float((np.abs(runs[i].mean(axis=0) - runs[j].mean(axis=0)) / spread).max())
    return apart


# --- entries ------------------------------------------------------------------------


def _spread(values: Array) -> Array:
    """Euclidean distances between all rows, and to nothing, a row of zeros."""
    rows = np.concatenate([values, np.zeros((1, values.shape[1]))])
    square = (rows**2).sum(axis=1)
    return np.sqrt(np.maximum(square[:, None] + square[None] - 2 * rows @ rows.T, 0.0))


@GAPS.register(PerturbedStatistics)
def _(plan: Plan, records: Records, bases: Records, rest: int, generator: np.random.Generator) -> Array:  # noqa: ARG001
    """How far the sums move, in ranges of a record."""
    model: Any = plan.mechanism.model
    low, high = model.measured_range
    return np.repeat(_spread((model.measured(records) - low) / (high - low))[None], count(bases), axis=0)


@GAPS.register(OutputPerturbation)
def _(plan: Plan, records: Records, bases: Records, rest: int, generator: np.random.Generator) -> Array:  # noqa: ARG001
    """How far the minimiser moves, in the norm of the noise: exact up to one Newton step."""
    mechanism: Any = plan.mechanism
    signed = records["x"] * (2 * records["y"] - 1)[:, None]
    order = 1 if mechanism.norm == "coordinates" else 2
    apart: list[Array] = []
    for b in range(count(bases)):
        base = stacked(bases, b, max(rest, 1))
        w = mechanism.centre(base)
        chance = 0.5 * (1 + np.tanh(0.5 * base["x"] @ w))
        hessian = (base["x"].T * (chance * (1 - chance))) @ base["x"] / (rest + 1)
        hessian += mechanism.regularisation * np.eye(len(w))
        slopes = -signed * (0.5 * (1 - np.tanh(0.5 * signed @ w)))[:, None]
        rows = np.concatenate([slopes @ np.linalg.inv(hessian), np.zeros((1, len(w)))])
        apart.append(np.linalg.norm(rows[:, None] - rows[None], ord=order, axis=2))
    return np.stack(apart)


@GAPS.register(ConjugateMechanism)
def _(plan: Plan, records: Records, bases: Records, rest: int, generator: np.random.Generator) -> Array:
    """Jeffreys' divergence of the posteriors, from the log-normaliser; for regressions, by weighting."""
    mechanism: Any = plan.mechanism
    model = mechanism.model
    weight, m = (number(plan, name) for name in ("weight", "concentration"))
    if not isinstance(model, ConjugateFamily):
        return _weighted(model, Gibbs(weight), records, bases, rest, generator=generator)
    each = np.concatenate([model.statistic(records), np.zeros((1, len(model.statistic_range[0])))])
    apart: list[Array] = []
    for total in rest * model.statistic(bases):
        etas = [
            model.posterior_eta(total + s, rest + (k < len(each) - 1), weight=weight, concentration=m)
            for k, s in enumerate(each)
        ]
        slopes = [model.gradient(eta) for eta in etas]
        eta, slope = np.stack(etas), np.stack(slopes)
        apart.append(np.einsum("ijk,ijk->ij", eta[:, None] - eta[None], slope[:, None] - slope[None]))
    return np.stack(apart)


@GAPS.register(OnePosteriorSample)
def _(plan: Plan, records: Records, bases: Records, rest: int, generator: np.random.Generator) -> Array:
    mechanism: Any = plan.mechanism
    loss = mechanism.loss.with_numbers(plan.parameters)
    return _weighted(mechanism.model, loss, records, bases, rest, generator=generator)


@GAPS.register(TruncatedPosterior)
def _(plan: Plan, records: Records, bases: Records, rest: int, generator: np.random.Generator) -> Array:
    loss = Gibbs(number(plan, "weight"))
    radius = number(plan, "radius")
    return _weighted(plan.mechanism.model, loss, records, bases, rest, generator=generator, radius=radius)


def _weighted(
    model: Model,
    loss: Callable[..., Any],
    records: Records,
    bases: Records,
    rest: int,
    *,
    generator: np.random.Generator,
    radius: float = np.inf,
) -> Array:
    """Total variation of the posteriors, by weighting draws from the prior with their losses."""
    theta = _prior_points(model, generator, 4 * _POINTS)
    inside = np.linalg.norm(np.concatenate([v.reshape(len(v), -1) for v in theta.values()], axis=1), axis=1)
    if (inside <= radius).sum() >= 50:
        theta = {name: values[inside <= radius] for name, values in theta.items()}
    each, base = (_losses(model, loss, theta, r) for r in (records, bases))
    each = np.concatenate([each, np.zeros((1, each.shape[1]))])
    apart = np.zeros((len(base), len(each), len(each)))
    for b, row in enumerate(base):
        logs = -(rest * row)[None] - each
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        # Where a few draws have all the weight, the estimate is worth nothing.
        trusted = 1 / (p**2).sum(axis=1).max() > 30
        if trusted:
            apart[b] = 0.5 * np.abs(p[:, None] - p[None]).sum(axis=2)
    return apart


def _prior_points(model: Model, generator: np.random.Generator, points: int) -> Records:
    """Unconstrained parameters from the prior, or normal ones at several scales."""
    drawn = model.draw_prior(generator, points)
    if drawn is not None:
        return drawn
    scale = 10.0 ** generator.uniform(-1.5, 0.7, points)
    shapes = model.parameter_shapes
    return {
        name: generator.standard_normal((points, *s)) * scale.reshape(-1, *[1] * len(s))
        for name, s in shapes.items()
    }


def _losses(model: Model, loss: Callable[..., Any], theta: Records, records: Records) -> Array:
    """One row per record, one column per parameter."""
    import jax

    with jax.enable_x64(True):
        over = jax.vmap(lambda t, r: loss(model, t, r), in_axes=(0, None))
        both = jax.jit(jax.vmap(over, in_axes=(None, 0)))
        return np.nan_to_num(np.asarray(both(theta, records)), nan=0.0, posinf=1e6, neginf=-1e6)


@GAPS.register(BarkerMCMC)
@GAPS.register(PenaltyMCMC)
@GAPS.register(PenaltyHMC)
@GAPS.register(FastMH)
def _(plan: Plan, records: Records, bases: Records, rest: int, generator: np.random.Generator) -> Array:
    """How far one record moves an acceptance test, where the test is not settled without it."""
    import jax

    mechanism: Any = plan.mechanism
    model, loss = mechanism.model, mechanism.loss
    start = {name: values[0] for name, values in mechanism.starts().items()}
    shapes = {name: (_POINTS, *values.shape) for name, values in start.items()}
    normal = {name: generator.standard_normal(shape) for name, shape in shapes.items()}
    uniform = {name: generator.random(shape) for name, shape in shapes.items()}
    words = generator.integers(0, 2**32, size=(_POINTS, 2), dtype=np.uint32)
    limit = number(plan, "ratio_limit")
    scale = number(plan, "tempered_size") / (plan.size or 1)
    with jax.enable_x64(True):
        if hasattr(mechanism, "proposal"):
            propose = jax.vmap(lambda *noise: mechanism.proposal.propose(start, Noise(*noise))[0])
            candidates = propose(normal, uniform, words)
        else:
            far = mechanism.step_size * mechanism.leapfrog_steps
            candidates = {name: value + far * normal[name] for name, value in start.items()}
        candidates = {name: np.asarray(values) for name, values in candidates.items()}
    here = {name: np.repeat(values[None], _POINTS, axis=0) for name, values in start.items()}

    def ratios(of: Records) -> Array:
        return np.clip(_losses(model, loss, here, of) - _losses(model, loss, candidates, of), -limit, limit)

    prior = _losses(model, lambda model, t, _: model.log_prior(t), candidates, {"": np.zeros(1)})[0]
    prior = prior - float(_losses(model, lambda m, t, _: m.log_prior(t), here, {"": np.zeros(1)})[0, 0])
    each, base = scale * ratios(records), scale * ratios(bases)
    each = np.concatenate([each, np.zeros((1, each.shape[1]))])
    apart = np.zeros((len(base), len(each), len(each)))
    for b, row in enumerate(base):
        open_ = 1 / np.cosh(np.clip(0.5 * (rest * row + prior), -300, 300)) ** 2
        apart[b] = (np.abs(each[:, None] - each[None]) * open_).mean(axis=2)
    return apart


@GAPS.register(VariationalSamples)
@GAPS.register(VariationalStart)
def _(plan: Plan, records: Records, bases: Records, rest: int, generator: np.random.Generator) -> Array:
    """How far apart clipped gradients are where the fit begins; the other records should leave it there."""
    import jax
    from jax.flatten_util import ravel_pytree

    mechanism: Any = plan.mechanism
    model = mechanism.model
    clip = number(plan, "clip") if "clip" in plan.parameters else float(mechanism.gradient_limit)
    points = {
        name: 0.1 * generator.standard_normal((16, *shape)) for name, shape in model.parameter_shapes.items()
    }
    with jax.enable_x64(True):

        def slope(theta: Any, record: Any) -> Any:
            flat = ravel_pytree(jax.grad(model.log_density)(theta, record))[0]
            norm = jax.numpy.linalg.norm(flat)
            return flat * jax.numpy.minimum(1.0, clip / jax.numpy.maximum(norm, 1e-300))

        every = jax.jit(jax.vmap(jax.vmap(slope, in_axes=(0, None)), in_axes=(None, 0)))
        each, base = (np.asarray(every(points, r)) for r in (records, bases))
    each = np.concatenate([each, np.zeros((1, *each.shape[1:]))])
    gap = np.linalg.norm(each[:, None] - each[None], axis=3).mean(axis=2)
    calm = 1 / (1 + np.linalg.norm(base, axis=2).mean(axis=1) * rest / max(clip, 1e-300))
    return calm[:, None, None] * gap[None]


def random_pairs(plan: Plan, number: int, *, size: int = 2, seed: int = 0) -> list[Pair]:
    """Neighbouring data sets of random admissible records, corners of the domain among them."""
    generator = np.random.default_rng(seed)
    records = pool(plan.mechanism.model, generator)
    substitute = plan.guarantee.neighbours is Neighbours.SUBSTITUTE
    n = (plan.size or 1) if substitute else size
    found: list[Pair] = []
    for _ in range(number):
        rows = generator.integers(count(records), size=n)
        first = {name: values[rows] for name, values in records.items()}
        rows[0] = generator.integers(count(records))
        other = {name: values[rows] for name, values in records.items()}
        second = other if substitute else {name: values[1:] for name, values in first.items()}
        found.append(Pair(first, second, "random admissible records"))
    return found
