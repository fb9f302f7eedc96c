"""What draws of parameters say of a new record: its mean, and two kinds of doubt about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, singledispatch
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
from discreet.models.numpyro_model import NumPyroModel

if TYPE_CHECKING:
    import jax

Array = NDArray[np.float64]


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
    with jax.enable_x64(True):
        run = jax.jit(partial(_over_draws, model))
        found = run({name: np.asarray(values[name]) for name in model.parameter_shapes}, records)
    mean, between, within = (np.asarray(part, dtype=np.float64) for part in found)
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


def _over_draws(model: Model, values: Theta, records: Theta) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean over draws of what each predicts; variance over draws of that; mean doubt within a draw.

    One draw after the other, so that memory does not grow with their number.
    """
    import jax
    import jax.numpy as jnp

    def step(carry: Any, theta: Theta) -> tuple[Any, None]:
        seen, mean, squares, within = carry
        centre, doubt = jax.vmap(lambda record: _moments(outcome(model, theta, record)))(records)
        off = centre - mean
        mean = mean + off / (seen + 1)
        return (seen + 1, mean, squares + off * (centre - mean), within + doubt), None

    first = {name: value[0] for name, value in values.items()}
    shapes = jax.eval_shape(lambda t: jax.vmap(lambda r: _moments(outcome(model, t, r)))(records), first)
    zero, none = (jnp.zeros(shape.shape) for shape in shapes)
    (seen, mean, squares, within), _ = jax.lax.scan(step, (0.0, zero, zero, none), values)
    between = squares / jnp.maximum(seen - 1, 1) if mean.ndim == within.ndim else jnp.zeros(within.shape)
    return mean, between, within / seen


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
