"""The integrals of f^(1+b): quadrature, sums, limits."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.integrate import quad
from scipy.special import gammaln

from discreet.models.integrals import (
    PowerIntegral,
    log_power_integral,
    power_integral,
    register_power_integral,
)

LINE = (-math.inf, math.inf)
HALF = (0.0, math.inf)
CONTINUOUS = [
    (dist.Normal(0.3, 0.2), (-3, 3)),
    (dist.Laplace(0.3, 0.7), LINE),
    (dist.Exponential(3.0), HALF),
    (dist.Gamma(2.5, 1.5), HALF),
    (dist.Gamma(1.0, 0.5), HALF),
    (dist.StudentT(3.0, 0.1, 0.4), LINE),
    (dist.StudentT(40.0, 0.0, 2.0), LINE),
]


@pytest.mark.parametrize("b", [1e-6, 0.3, 2.0])
@pytest.mark.parametrize(("distribution", "ends"), CONTINUOUS, ids=lambda v: type(v).__name__)
def test_quadrature(distribution: dist.Distribution, ends: tuple[float, float], b: float) -> None:
    with jax.enable_x64(True):
        ours = float(log_power_integral(distribution, b))

        def density(y: float) -> float:
            return math.exp((1 + b) * float(jnp.asarray(distribution.log_prob(y))))

        cut = [-60.0, 60.0] if ends == LINE else [0.0, 60.0] if ends == HALF else list(ends)
        whole = quad(density, cut[0], cut[1], limit=60, epsabs=1e-9, points=[0.3])[0]
    # Student-t with 3 degrees has 1e-5 of its mass beyond 60 scales.
    assert ours == pytest.approx(
        math.log(whole), abs=1e-5 if isinstance(distribution, dist.StudentT) else 1e-6
    )


@pytest.mark.parametrize("b", [1e-6, 0.5, 3.0, 20.0])
def test_poisson_against_the_whole_sum(b: float) -> None:
    rates = np.array([1e-6, 0.1, 1.0, 7.3, 36.0, 37.0, 400.0, 1e4])
    k = np.arange(20_000.0)
    with jax.enable_x64(True):
        ours = np.asarray(log_power_integral(dist.Poisson(jnp.asarray(rates)), b))
    logs = (1 + b) * (k * np.log(rates)[:, None] - gammaln(k + 1) - rates[:, None])
    whole = np.logaddexp.reduce(logs, axis=1)
    np.testing.assert_allclose(ours, whole, atol=1e-9 * (1 + b))


def test_discrete_and_multivariate() -> None:
    b = 0.7
    with jax.enable_x64(True):
        p = jnp.array([0.2, 0.5, 0.3])
        assert float(log_power_integral(dist.Categorical(p), b)) == pytest.approx(math.log((p**1.7).sum()))
        assert float(log_power_integral(dist.Bernoulli(0.2), b)) == pytest.approx(
            math.log(0.2**1.7 + 0.8**1.7)
        )
        k = np.arange(6.0)
        binomial = dist.Binomial(5, 0.3)
        whole = math.log((np.exp(np.asarray(binomial.log_prob(k))) ** 1.7).sum())
        assert float(log_power_integral(binomial, b)) == pytest.approx(whole)
        tril = jnp.array([[1.0, 0.0], [0.5, 2.0]])
        joint = float(log_power_integral(dist.MultivariateNormal(jnp.zeros(2), scale_tril=tril), b))
        apart = dist.Normal(jnp.zeros(2), jnp.array([1.0, 2.0])).to_event(1)
        assert joint == pytest.approx(float(log_power_integral(apart, b)))


def test_far_logits_do_not_overflow() -> None:
    values = log_power_integral(dist.Bernoulli(logits=jnp.array([-800.0, 0.0, 800.0])), 1.3)
    assert np.isfinite(np.asarray(values)).all()


def test_anyone_can_register() -> None:
    class Ramp(dist.Distribution):
        support: Any = dist.constraints.unit_interval  # pyright: ignore[reportIncompatibleMethodOverride]

    with pytest.raises(NotImplementedError, match="Ramp"):
        power_integral(Ramp())
    register_power_integral(
        Ramp,
        PowerIntegral(lambda d, b: b * math.log(2.0) - jnp.log1p(1 + b) + math.log(2.0)),  # noqa: ARG005
    )
    assert power_integral(Ramp()).spread == 1.0
