"""Clipped log-likelihood ratios of a batch: the only thing a chain reads off the data.

Proof page: docs/proofs/dp_mcmc.md#clipping.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.mechanisms.losses import Loss
from discreet.models.base import Model, Theta
from discreet.privacy import Evidence, checks

if TYPE_CHECKING:
    import jax


CLIPPED = Evidence.proved(
    "ratios are clipped before anything is summed, and a ratio that is not a number counts as one clipped "
    "vote to reject",
    "docs/proofs/dp_mcmc.md#clipping",
)


def clipped_ratios(
    loss: Loss, model: Model, *, candidate: Theta, theta: Theta, batch: Theta, limit: jax.Array | float
) -> jax.Array:
    """loss(theta) - loss(candidate) of each record, over `limit`, clipped to [-1, 1].

    A record whose ratio is not a number votes for rejection as strongly as one record
    may, -1. It must not do more: a record that could force a rejection would be seen.
    """
    import jax
    from jax import lax

    change = getattr(loss, "change", partial(_change, loss))
    changes = jax.vmap(partial(change, model, theta, candidate))(batch)
    ratios = lax.mul(changes, 1 / limit)
    voting = lax.gt(ratios, -1.0)  # what is not a number is not above -1
    return lax.select(voting, lax.min(ratios, 1.0), lax.full_like(ratios, -1.0))


def _change(loss: Loss, model: Model, theta: Theta, candidate: Theta, record: Theta) -> jax.Array:
    return loss(model, theta, record) - loss(model, candidate, record)


class Moments(NamedTuple):
    """What a test reads of a batch's ratios.

    Attributes:
        mean: their mean.
        spread: their variance, with divisor batch, between 0 and 1.
        clipped: the share of those that were clipped.
    """

    mean: jax.Array
    spread: jax.Array
    clipped: jax.Array


def moments(ratios: jax.Array) -> Moments:
    """Mean, variance and clipped share of ratios in [-1, 1], in one pass over them."""
    from jax import lax

    zero, square = np.zeros((), ratios.dtype), lax.square(ratios)
    terms = (ratios, square, lax.convert_element_type(lax.ge(square, 1.0), ratios.dtype))
    sums = lax.reduce(terms, (zero, zero, zero), lambda a, b: tuple(map(lax.add, a, b)), (0,))
    mean, second, clipped = (total * (1 / len(ratios)) for total in sums)
    return Moments(mean, lax.clamp(0.0, second - mean * mean, 1.0), clipped)


def public_ratio(
    model: Model, candidate: Theta, theta: Theta, proposal_ratio: jax.Array | float
) -> jax.Array:
    """Log prior ratio plus proposal ratio; not finite means that the candidate is rejected."""
    return model.log_prior(candidate) - model.log_prior(theta) + proposal_ratio


def ratio_limit(
    loss: Loss, model: Model, limit: float | None, tempered_size: int
) -> tuple[float, str, Evidence]:
    """Where ratios are clipped, why, and what makes it hold: a certified range, or clipping."""
    try:
        span = loss.range(model)
    except ValueError:
        span = None
    chosen = 3 / math.sqrt(tempered_size) if limit is None else checks.real("limit", limit, above=0.0)
    if span is not None and span.value <= chosen:
        return span.value, f"the loss has range {span.value:.4g}, so that nothing is clipped", span.evidence
    rule = "given" if limit is not None else "3 / sqrt(N0)"
    return (
        chosen,
        f"ratios are clipped at {chosen:.4g}, {rule}",
        CLIPPED,
    )
