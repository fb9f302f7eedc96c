"""The integral of f^(1+b), by NumPyro distribution: a table that anyone extends.

Proof page: docs/proofs/beta_divergence.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax

LogIntegral = Callable[[Any, "jax.Array"], "jax.Array"]
Interval = tuple[float, float]


@dataclass(frozen=True)
class PowerIntegral:
    """What is known of one family of distributions.

    Attributes:
        log_integral: (distribution, b) -> log of the integral of f^(1+b).
        spread: 0 if the integral adds nothing to the range of the beta-loss (a
            probability, or location and scale), 1 if nothing is known.
        peak: {parameter: interval} -> sup f, infinite if there is none.
        shapes: parameters that must not vary over records for `spread` to hold.
        loss: (distribution, outcome, b) -> the beta-loss at weight 1 in one go, where
            that is faster than log density and integral apart.
    """

    log_integral: LogIntegral
    spread: float = 1.0
    peak: Callable[[dict[str, Interval]], float] = lambda _: math.inf
    shapes: tuple[str, ...] = ()
    loss: Callable[[Any, jax.Array, jax.Array], jax.Array] | None = None


_TABLE: dict[type, PowerIntegral] = {}


def register_power_integral(distribution: type, entry: PowerIntegral) -> None:
    """Make a NumPyro distribution usable under the beta-divergence.

    Args:
        distribution: the class.
        entry: its integral, and what is proved of it.
    """
    _TABLE[distribution] = entry


def power_integral(distribution: object) -> PowerIntegral:
    """The entry for a distribution, its wrappers taken off.

    Raises:
        NotImplementedError: if nobody has registered it.
    """
    table = _table()
    for kind in type(distribution).__mro__:
        if kind in table:
            return table[kind]
    raise NotImplementedError(
        f"the beta-divergence needs the integral of f^(1+b) of {type(distribution).__name__}, which nobody "
        "has registered; call discreet.models.integrals.register_power_integral, or use another loss"
    )


def log_power_integral(distribution: object, b: jax.Array | float) -> jax.Array:
    """Log of the integral of f^(1+b), in the batch shape of the distribution."""
    import jax.numpy as jnp

    return power_integral(distribution).log_integral(distribution, jnp.asarray(b))


@cache
def _table() -> dict[type, PowerIntegral]:
    """The table, with the families that come with discreet."""
    import jax.numpy as jnp
    import numpyro.distributions as dist
    from jax.scipy.special import gammaln, logsumexp
    from numpyro.distributions.distribution import ExpandedDistribution, Independent

    def low(parameters: dict[str, Interval], name: str) -> float:
        return parameters.get(name, (0.0, math.inf))[0]

    def high(parameters: dict[str, Interval], name: str) -> float:
        return parameters.get(name, (0.0, math.inf))[1]

    def over(scale: float, parameters: dict[str, Interval]) -> float:
        bottom = low(parameters, "scale")
        return 1 / (scale * bottom) if bottom > 0 else math.inf

    def one(_: dict[str, Interval]) -> float:
        return 1.0

    def bernoulli(d: Any, b: jax.Array) -> jax.Array:
        # log f in both outcomes from the logit, so that neither is rounded to log 0 early.
        yes, no = -jnp.logaddexp(0.0, -d.logits), -jnp.logaddexp(0.0, d.logits)
        return jnp.logaddexp((1 + b) * yes, (1 + b) * no)

    def categorical(d: Any, b: jax.Array) -> jax.Array:
        logs = d.logits - logsumexp(d.logits, axis=-1, keepdims=True)
        return logsumexp((1 + b) * logs, axis=-1)

    def finite(d: Any, b: jax.Array) -> jax.Array:
        support = d.enumerate_support(expand=True)
        return logsumexp((1 + b) * d.log_prob(support), axis=0)

    def poisson(d: Any, b: jax.Array) -> jax.Array:
        """129 terms around the mean, further apart than 1 where the rate is large.

        The terms left out weigh less than 1e-15 of the rest (Chernoff: they are
        10.6 standard deviations away, or 64 above a rate of at most 36), and the
        trapezoid rule with 6 points per standard deviation is exact to 1e-15
        (Poisson summation).
        """
        rate = jnp.asarray(d.rate)
        step = jnp.maximum(1.0, jnp.sqrt(rate) / 6 / jnp.sqrt(1 + b))
        centre = jnp.where(step > 1, rate, jnp.floor(rate))
        k = centre[..., None] + step[..., None] * jnp.arange(-64.0, 65.0)
        inside = k >= 0
        k = jnp.where(inside, k, 0.0)
        logs = k * jnp.log(rate)[..., None] - gammaln(k + 1) - rate[..., None]
        return logsumexp(jnp.where(inside, (1 + b) * logs, -jnp.inf), axis=-1) + jnp.log(step)

    def normal(d: Any, b: jax.Array) -> jax.Array:
        return -b * (0.5 * math.log(2 * math.pi) + jnp.log(d.scale)) - 0.5 * jnp.log1p(b)

    def laplace(d: Any, b: jax.Array) -> jax.Array:
        return -b * (math.log(2.0) + jnp.log(d.scale)) - jnp.log1p(b)

    def exponential(d: Any, b: jax.Array) -> jax.Array:
        return b * jnp.log(d.rate) - jnp.log1p(b)

    def gamma(d: Any, b: jax.Array) -> jax.Array:
        a, r = d.concentration, d.rate
        power = (a - 1) * (1 + b) + 1
        value = b * jnp.log(r) + gammaln(power) - (1 + b) * gammaln(a) - power * jnp.log1p(b)
        return jnp.where(power > 0, value, jnp.inf)

    def student(d: Any, b: jax.Array) -> jax.Array:
        v = d.df
        constant = gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * jnp.log(v * math.pi)
        tail = ((v + 1) * (1 + b) - 1) / 2
        beta = math.lgamma(0.5) + gammaln(tail) - gammaln(tail + 0.5)
        return (1 + b) * constant - b * jnp.log(d.scale) + 0.5 * jnp.log(v) + beta

    def multivariate(d: Any, b: jax.Array) -> jax.Array:
        k = d.event_shape[-1]
        log_det = jnp.log(jnp.diagonal(d.scale_tril, axis1=-2, axis2=-1)).sum(-1)
        return -b * (0.5 * k * math.log(2 * math.pi) + log_det) - 0.5 * k * jnp.log1p(b)

    def expanded(d: Any, b: jax.Array) -> jax.Array:
        return jnp.broadcast_to(log_power_integral(d.base_dist, b), d.batch_shape)

    def independent(d: Any, b: jax.Array) -> jax.Array:
        inner = log_power_integral(d.base_dist, b)
        axes = tuple(range(-d.reinterpreted_batch_ndims, 0))
        return jnp.broadcast_to(inner, d.base_dist.batch_shape).sum(axes) if axes else inner

    root = math.sqrt(2 * math.pi)
    mine = {
        dist.BernoulliLogits: PowerIntegral(
            bernoulli, 0.0, one, loss=lambda d, y, b: _bernoulli_loss()(d.logits, 2 * y - 1, b)
        ),
        dist.BernoulliProbs: PowerIntegral(bernoulli, 0.0, one),
        dist.CategoricalLogits: PowerIntegral(categorical, 0.0, one),
        dist.CategoricalProbs: PowerIntegral(categorical, 0.0, one),
        dist.BinomialLogits: PowerIntegral(finite, 0.0, one),
        dist.BinomialProbs: PowerIntegral(finite, 0.0, one),
        dist.Poisson: PowerIntegral(poisson, 0.0, one),
        dist.Normal: PowerIntegral(normal, 0.0, lambda p: over(root, p)),
        dist.Laplace: PowerIntegral(laplace, 0.0, lambda p: over(2.0, p)),
        # The Student-t constant grows with df towards the normal's.
        dist.StudentT: PowerIntegral(student, 0.0, lambda p: over(root, p), ("df",)),
        dist.Exponential: PowerIntegral(exponential, 0.0, lambda p: high(p, "rate")),
        # At its mode the gamma density is rate times a number that falls from 1 as the shape grows from 1.
        dist.Gamma: PowerIntegral(
            gamma,
            0.0,
            lambda p: high(p, "rate") if low(p, "concentration") >= 1 else math.inf,
            ("concentration",),
        ),
        dist.MultivariateNormal: PowerIntegral(multivariate, 0.0),
        ExpandedDistribution: PowerIntegral(expanded),
        Independent: PowerIntegral(independent),
    }
    for kind, entry in mine.items():
        _TABLE.setdefault(kind, entry)
    return _TABLE


@cache
def _bernoulli_loss() -> Callable[[jax.Array, jax.Array, jax.Array], jax.Array]:
    """The beta-loss of a binary outcome from its logit and sign, with its derivative written out.

    With p the larger probability and q the other, four transcendental functions
    serve loss and derivative; automatic differentiation needs three times as many.
    """
    import jax
    import jax.numpy as jnp

    def parts(z: jax.Array, b: jax.Array) -> tuple[jax.Array, ...]:
        side = jnp.where(z >= 0, 1.0, -1.0)
        a = side * z
        e = jnp.exp(-a)
        log_p = -jnp.log1p(e)
        p = 1 / (1 + e)
        return side, log_p, log_p - a, p, e * p, jnp.exp(b * log_p), jnp.exp(b * (log_p - a))

    @jax.custom_jvp
    def loss(z: jax.Array, sign: jax.Array, b: jax.Array) -> jax.Array:
        side, log_p, log_q, p, q, p_b, q_b = parts(z, b)
        likely = sign * side > 0
        x = b * jnp.where(likely, log_p, log_q)
        # (1 - e^x) / b, by its series where the difference would cancel.
        exact = 1 - jnp.where(likely, p_b, q_b)
        fit = jnp.where(x > -1e-5, -x * (1 + x / 2 * (1 + x / 3)), exact) / b
        return fit + (p_b * p + q_b * q) / (1 + b)

    @loss.defjvp
    def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
        z, sign, b = primals
        side, _, _, p, q, p_b, q_b = parts(z, b)
        pull = jnp.where(sign * side > 0, p_b * q, q_b * p)
        return loss(z, sign, b), (p * q * (p_b - q_b) * side - sign * pull) * tangents[0]

    return loss
