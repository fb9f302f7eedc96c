"""What draws of parameters say of a new record: its mean, and two kinds of doubt about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial, singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.models.base import Model, Theta
from discreet.models.families import (
    BetaBernoulli,
    ConjugateFamily,
    DirichletCategorical,
    GammaPoisson,
    NormalInverseGamma,
    NormalKnownVariance,
)
from discreet.models.gaussian_mixture import GaussianMixture
from discreet.models.intervals import used_inputs
from discreet.models.losses import observation
from discreet.models.neural_network import NeuralNetwork
from discreet.models.numpyro_model import NumPyroModel

if TYPE_CHECKING:
    import jax

Array = NDArray[np.float64]

_ROWS, _NUMBERS = 2048, 2**24
"""How many rows, and how many numbers of draws, are on the device at a time."""


@dataclass(frozen=True)
class Prediction:
    """A predictive distribution per row, and what its doubt is made of.

    For an outcome with listed values (a yes, a category), `mean` holds their
    probabilities and doubt is entropy in nats: `aleatoric` is the mean over draws of
    the entropy, `epistemic` what the entropy of the mean exceeds it by, the mutual
    information of outcome and parameters. For numbers, doubt is variance, by the law
    of total variance: `aleatoric` is the mean over draws of the outcome's variance,
    `epistemic` the variance over draws of its mean, with one less than their number as
    the divisor (`discreet.metrics.decompose_variance` is the same, on stacked draws).

    Attributes:
        mean: (rows, values) probabilities, or (rows,) means.
        epistemic: doubt about the parameters, which more data would lessen; 0 for a
            release of one draw, which cannot tell.
        aleatoric: doubt that stays when the parameters are known.

    References: Depeweg et al. 2018; paper N, Appendix C.
    """

    mean: Array
    epistemic: Array
    aleatoric: Array

    @property
    def total(self) -> Array:
        """Both parts: the entropy, or the variance, of the prediction."""
        return self.epistemic + self.aleatoric


def predict(model: Model, values: Mapping[str, Array], rows: Mapping[str, ArrayLike]) -> Prediction:
    """What draws of unconstrained parameters say of new records.

    Args:
        model: the model of the draws.
        values: the parameters by name, leading axis = draw; others are left aside.
        rows: fields of the new records, all but the outcome; none for a model that has
            nothing but an outcome, which predicts one record.
    """
    import jax

    needed = predictors(model)
    if set(rows) != set(needed):
        raise ValueError(
            f"rows must have the fields {', '.join(needed) or '(none)'}, got {', '.join(rows) or 'none'}; "
            "leave the outcome out"
        )
    number = len(np.asarray(next(iter(rows.values())))) if rows else 1
    blank = {
        name: np.zeros((number, *shape)) for name, shape in model.record_shapes.items() if name not in rows
    }
    records = model.validate({**blank, **rows}) if rows else blank
    kind = np.float64 if double(model) else np.float32
    drawn = {name: values[name] for name in model.parameter_shapes}
    block = max(1, min(number, _ROWS))
    parts: list[tuple[Array, ...]] = []
    with jax.enable_x64(double(model)):
        for start in range(0, number, block):
            # The last block reaches back into the one before: one shape, one compilation.
            first = min(start, number - block)
            piece = {name: field[first : first + block].astype(kind) for name, field in records.items()}
            found = _over_blocks(model, drawn, piece, kind)
            parts.append(tuple(np.asarray(part, dtype=np.float64)[start - first :] for part in found))
    mean, between, within = (np.concatenate(part) for part in zip(*parts, strict=True))
    if mean.ndim > between.ndim:  # probabilities
        total = -np.sum(mean * np.log(np.maximum(mean, np.finfo(float).tiny)), axis=-1)
        between = np.maximum(total - within, 0.0)
    return Prediction(mean, between, within)


def predictors(model: Model) -> tuple[str, ...]:
    """The fields of a record that its outcome is predicted from."""
    if isinstance(model, NumPyroModel):
        return tuple(name for name, _ in model.fields if _reads(model, name))
    outcome = {"y"} if "y" in model.record_shapes else set(model.record_shapes)
    return tuple(name for name in model.record_shapes if name not in outcome)


@singledispatch
def outcome(model: Model, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
    """The NumPyro distribution of the outcome of a record; register a model that has no `observation`."""
    return observation(model, theta, record)


@outcome.register(GaussianMixture)
def _(model: GaussianMixture, theta: Theta, record: Mapping[str, Any]) -> Any:  # noqa: ARG001
    import jax.numpy as jnp
    import numpyro.distributions as dist

    t = theta["theta"]
    parts = dist.Normal(jnp.stack([t[0], t[0] + t[1]]), math.sqrt(model.variance), validate_args=False)
    return dist.MixtureSameFamily(dist.Categorical(jnp.full(2, 0.5), validate_args=False), parts)


@outcome.register(ConjugateFamily)
def _(model: ConjugateFamily, theta: Theta, record: Mapping[str, Any]) -> Any:  # noqa: ARG001
    import jax.numpy as jnp
    import numpyro.distributions as dist

    natural = model.constrain(theta)
    match model:
        case BetaBernoulli():
            return dist.BernoulliLogits(theta["log_odds"], validate_args=False)
        case DirichletCategorical():
            return dist.CategoricalProbs(natural["probabilities"], validate_args=False)
        case GammaPoisson():
            return dist.Poisson(natural["rate"], validate_args=False)
        case NormalInverseGamma():
            return dist.Normal(natural["mean"], jnp.sqrt(natural["variance"]), validate_args=False)
        case NormalKnownVariance():
            return dist.Normal(natural["mean"], math.sqrt(model.variance), validate_args=False)
        case _:
            raise NotImplementedError(f"{type(model).__name__} does not tell the distribution of an outcome")


@singledispatch
def double(model: Model) -> bool:  # noqa: ARG001
    """Whether predictions are computed in double precision; networks are not, as they were not trained so."""
    return True


@double.register(NeuralNetwork)
def _(model: NeuralNetwork) -> bool:  # noqa: ARG001
    return False


def _over_blocks(
    model: Model, values: Mapping[str, Array], records: Mapping[str, Any], kind: type[np.floating[Any]]
) -> tuple[Any, Any, Any]:
    """Mean over draws of what each predicts; variance over draws of that; mean doubt within a draw.

    A block of draws after the other, so that memory does not grow with their number:
    they may be views, or lie on a disk.
    """
    import jax.numpy as jnp

    draws = next(iter(values.values())).shape[0]  # an array on disk has no length
    size = sum(math.prod(shape) for shape in model.parameter_shapes.values())
    block = max(1, min(draws, _NUMBERS // max(size, 1)))
    carry, run = None, _runner(model)
    for start in range(0, draws, block):
        piece = {name: np.asarray(array[start : start + block], kind) for name, array in values.items()}
        carry = run(carry, piece, records)
    assert carry is not None  # noqa: S101 - a release has draws
    seen, mean, squares, within = carry
    numbers = mean.ndim == within.ndim
    between = squares / jnp.maximum(seen - 1, 1) if numbers else jnp.zeros(within.shape)
    return mean, between, within / seen


def _runner(model: Model) -> Any:
    """The compiled update of a block of draws; kept for the models that can be told apart."""
    try:
        return _compiled(model)
    except TypeError:  # a model that holds an array has no hash
        return _compiled.__wrapped__(model)


@lru_cache(maxsize=8)
def _compiled(model: Model) -> Any:
    import jax

    return jax.jit(partial(_over_draws, model))


def _over_draws(model: Model, carry: Any, values: Theta, records: Theta) -> Any:
    """Number, mean, squared deviations and summed doubt after these draws as well, one after the other."""
    import jax
    import jax.numpy as jnp

    def step(carry: Any, theta: Theta) -> tuple[Any, None]:
        seen, mean, squares, within = carry
        centre, doubt = jax.vmap(lambda record: _moments(outcome(model, theta, record)))(records)
        off = centre - mean
        mean = mean + off / (seen + 1)
        return (seen + 1, mean, squares + off * (centre - mean), within + doubt), None

    if carry is None:
        first = {name: value[0] for name, value in values.items()}
        shapes = jax.eval_shape(lambda t: jax.vmap(lambda r: _moments(outcome(model, t, r)))(records), first)
        centre, doubt = (jnp.zeros(shape.shape) for shape in shapes)
        carry = (jnp.zeros(()), centre, centre, doubt)
    return jax.lax.scan(step, carry, values)[0]


def _moments(law: Any) -> tuple[jax.Array, jax.Array]:
    """Probabilities and entropy of an outcome with listed values; mean and variance of a number."""
    import jax.numpy as jnp
    from jax.scipy.special import entr

    if law.has_enumerate_support and not law.event_shape:
        every = law.enumerate_support(expand=True)
        probabilities = jnp.exp(law.log_prob(every)).reshape(len(every))
        return probabilities, entr(probabilities).sum()
    return law.mean.reshape(law.event_shape), law.variance.reshape(law.event_shape)


def _reads(model: NumPyroModel, field: str) -> bool:
    """Whether the distribution of the outcome depends on this field of a record."""
    import jax
    import jax.numpy as jnp

    def law(part: jax.Array, rest: Theta, theta: Theta) -> list[jax.Array]:
        found = model.observation(theta, {**rest, field: part})
        return [leaf for leaf in jax.tree.leaves(found) if hasattr(leaf, "dtype")]

    blank = {name: jnp.zeros(shape) for name, shape in model.fields}
    part = blank.pop(field)
    theta = {name: jnp.zeros(shape) for name, shape in model.parameter_shapes.items()}
    return used_inputs(law, (part, blank, theta), 0)
