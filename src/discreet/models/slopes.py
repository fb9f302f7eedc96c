"""How long a gradient of the beta-loss can be: what a step without clipping rests on.

Proof page: docs/proofs/private_gradients.md#certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.models.base import Bound, Model
from discreet.models.logistic import LogisticRegression
from discreet.models.losses import observation
from discreet.models.softmax import SoftmaxRegression
from discreet.privacy import Evidence

Array = NDArray[np.float64]
Tail = Callable[[Array, Array, float], Array]
"""(a bound on f, a bound on 1 - f, b) to the second term; increasing in each of the two."""

PAGE = "docs/proofs/private_gradients.md#certified"
_ROUNDING = 1 + 1e-9


def lipschitz(model: Model) -> Bound:
    """What the gradient of a record's log density is at most, or a refusal."""
    bound = model.bounds.get("lipschitz")
    if bound is None or not math.isfinite(bound.value):
        raise ValueError(
            "a step without clipping needs a proved bound on gradients, and "
            f"{type(model).__name__} has no certificate 'lipschitz'; clip, as with clipping=Flat(1.0)"
        )
    return bound


@singledispatch
def beta_slope(model: Model, b: float) -> Bound:
    """What the gradient of a record's beta-loss is at most, at weight 1; register a model that knows better.

    For any model with finitely many outcomes and a Lipschitz bound L it is L times the
    maximum of (1-f) (f^b + (1-f)^b).
    """
    known = lipschitz(model)
    if not _finitely_many_outcomes(model):
        raise ValueError(
            f"a step without clipping needs finitely many outcomes, and {type(model).__name__} has others, "
            "for whose gradients the bound of the records does not speak; clip, as with clipping=Flat(1.0)"
        )
    return Bound(known.value * _largest(b, 1, _any_outcome), known.evidence)


@beta_slope.register(LogisticRegression)
def _(model: LogisticRegression, b: float) -> Bound:
    return Bound(model.row_norm * _largest(b, 2, _two_outcomes), _enforced(model.row_norm))


@beta_slope.register(SoftmaxRegression)
def _(model: SoftmaxRegression, b: float) -> Bound:
    value = math.sqrt(2) * model.row_norm * _largest(b, 2, _categories)
    return Bound(value, _enforced(model.row_norm))


def _enforced(norm: float) -> Evidence:
    return Evidence.proved(f"row norms are at most {norm:g}, which is enforced before use", PAGE)


def _finitely_many_outcomes(model: Model) -> bool:
    import jax.numpy as jnp

    theta: dict[str, Any] = {name: jnp.zeros(shape) for name, shape in model.parameter_shapes.items()}
    record: dict[str, Any] = {name: jnp.zeros(shape) for name, shape in model.record_shapes.items()}
    return bool(observation(model, theta, record).has_enumerate_support)


def _two_outcomes(f: Array, q: Array, b: float) -> Array:
    return f * q ** (1 + b)


def _any_outcome(f: Array, q: Array, b: float) -> Array:  # noqa: ARG001
    return q ** (1 + b)


def _categories(f: Array, q: Array, b: float) -> Array:  # noqa: ARG001
    t = np.minimum(q, b / (1 + b))
    return q * t**b * (1 - t)


@cache
def _largest(b: float, power: int, tail: Tail) -> float:
    """An upper bound on f^b (1-f)^power + tail over all probabilities f, less than 1 percent above it.

    On an interval, f is at most its upper end and 1 - f at most what it is at the lower
    end; both terms increase in each. Logits are the grid, as no power of f or 1 - f
    moves by more than a small factor between two of them.
    """
    logits = np.concatenate([np.linspace(-700.0, -40.0, 2**14), np.linspace(-40.0, 40.0, 2**17)])
    f = 1 / (1 + np.exp(-logits))
    q = 1 / (1 + np.exp(logits))
    top, rest = np.append(f, 1.0), np.insert(q, 0, 1.0)
    return float((top**b * rest**power + tail(top, rest, b)).max()) * _ROUNDING
