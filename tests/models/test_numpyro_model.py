"""Models written in NumPyro: same numbers as by hand, certificates read off, refusals that name the site."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.integrate import quad

from discreet.mechanisms import OnePosteriorSample
from discreet.models import Gibbs, LogisticRegression, Model, from_numpyro
from discreet.models.attack import refute, refute_concavity
from discreet.privacy import Budget, Standing


def logistic(x: jax.Array, y: jax.Array | None = None) -> None:
    w = numpyro.sample("w", dist.Normal(0, 3).expand([2]).to_event(1))
    with numpyro.plate("people", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def scaled(transform: Callable[[Any], Any], kind: Any = dist.Normal) -> Callable[..., None]:
    def model(y: jax.Array) -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        s = numpyro.sample("s", dist.Uniform(0.1, 5.0))
        with numpyro.plate("people", len(y)):
            numpyro.sample("y", kind(mu, transform(s)), obs=y)

    return model


def test_same_densities_as_the_hand_written_model() -> None:
    ours = from_numpyro(logistic, records="people", fields={"x": (2,)})
    hand = LogisticRegression(features=2, prior_precision=1 / 9, row_norm=100.0)
    assert ours.parameter_shapes == hand.parameter_shapes
    assert ours.record_shapes == hand.record_shapes
    with jax.enable_x64(True):
        rng = np.random.default_rng(1)
        priors = []
        for _ in range(3):
            theta = {"w": jnp.asarray(rng.standard_normal(2))}
            record = {"x": jnp.asarray(rng.standard_normal(2)), "y": jnp.asarray(1.0)}
            assert float(ours.log_density(theta, record)) == pytest.approx(
                float(hand.log_density(theta, record))
            )
            priors.append(float(ours.log_prior(theta) - hand.log_prior(theta)))
    assert np.ptp(priors) < 1e-9
    assert ours.bounds["density"].value == 1.0
    assert ours.bounds["integral_spread"].value == 0.0


def test_the_unconstrained_prior_has_its_jacobian() -> None:
    ours = from_numpyro(scaled(lambda s: s), records="people")
    with jax.enable_x64(True):
        log_prior = jax.jit(lambda u: ours.log_prior({"mu": jnp.asarray(0.0), "s": u}))
        mass = quad(lambda u: math.exp(float(log_prior(u))), -40, 40, points=[0.0], epsabs=1e-9)[0]
        inside = float(ours.constrain({"mu": jnp.asarray(0.0), "s": jnp.asarray(30.0)})["s"])
    assert mass == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-6)
    assert 0.1 < inside <= 5.0


@pytest.mark.parametrize(
    ("fn", "peak", "spread"),
    [
        (scaled(lambda s: s), 1 / (math.sqrt(2 * math.pi) * 0.1), 0.0),
        (scaled(lambda s: jnp.sqrt(s**2 + 1)), 1 / math.sqrt(2 * math.pi * 1.01), 0.0),
        (scaled(lambda s: jnp.exp(-s)), math.exp(5) / math.sqrt(2 * math.pi), 0.0),
        (scaled(lambda s: 2 * s, dist.Laplace), 1 / (2 * 0.2), 0.0),
        (
            scaled(lambda s: s, lambda mu, s: dist.StudentT(4.0, mu, s)),
            1 / (math.sqrt(2 * math.pi) * 0.1),
            0.0,
        ),
        (scaled(lambda s: s, lambda mu, s: dist.StudentT(s, mu, s)), 1 / (math.sqrt(2 * math.pi) * 0.1), 1.0),
    ],
)
def test_the_density_bound_is_read_off(fn: Callable[..., None], peak: float, spread: float) -> None:
    model = from_numpyro(fn, records="people")
    assert model.bounds["density"].value == pytest.approx(peak, rel=1e-9)
    assert model.bounds["density"].evidence.standing is Standing.PROVED
    assert model.bounds["integral_spread"].value == spread


def test_a_scale_that_reaches_0_has_no_bound() -> None:
    for transform in (lambda s: s - 0.1, lambda s: jnp.sin(s / 2)):
        assert "density" not in from_numpyro(scaled(transform), records="people").bounds


def inside(y: jax.Array) -> None:
    with numpyro.plate("people", len(y)):
        z = numpyro.sample("z", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)


def two_outcomes(y: jax.Array) -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    with numpyro.plate("people", len(y)):
        numpyro.sample("first", dist.Normal(mu, 1), obs=y)
        numpyro.sample("second", dist.Normal(mu, 1), obs=y)


def two_plates(y: jax.Array) -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    with numpyro.plate("people", len(y)):
        numpyro.sample("first", dist.Normal(mu, 1), obs=y)
    with numpyro.plate("others", len(y)):
        numpyro.sample("second", dist.Normal(mu, 1), obs=y)


def peeking(y: jax.Array) -> None:
    mu = numpyro.sample("mu", dist.Normal(y.mean(), 1))
    with numpyro.plate("people", len(y)):
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def discrete(y: jax.Array) -> None:
    k = numpyro.sample("k", dist.Bernoulli(0.5))
    with numpyro.plate("people", len(y)):
        numpyro.sample("y", dist.Normal(k, 1), obs=y)


def factored(y: jax.Array) -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    numpyro.factor("extra", -(mu**2))
    with numpyro.plate("people", len(y)):
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def fitted(y: jax.Array) -> None:
    mu = numpyro.param("mu", 0.0)
    with numpyro.plate("people", len(y)):
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)


@pytest.mark.parametrize(
    ("fn", "named"),
    [
        (inside, "'z' inside"),
        (two_outcomes, "'first', 'second'"),
        (two_plates, "'first', 'second'"),
        (peeking, "prior of 'mu'"),
        (discrete, "discrete site 'k'"),
        (factored, "'extra'"),
        (fitted, "param sites, got 'mu'"),
    ],
)
def test_refusals_name_the_site(fn: Callable[..., None], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        from_numpyro(fn, records="people")


def test_a_field_shape_is_asked_for() -> None:
    with pytest.raises(ValueError, match="fields="):
        from_numpyro(logistic, records="people")


def shifted(y: jax.Array) -> None:
    s = numpyro.sample("s", dist.LogNormal(0, 1))
    with numpyro.plate("people", len(y)):
        numpyro.sample("y", dist.Normal(0.0, 1.1 + jnp.cos(s)), obs=y)


def test_stated_certificates_are_assumed_and_attacked() -> None:
    def with_peak(peak: float) -> Model:
        return from_numpyro(shifted, records="people", certificates={"density": peak})

    # The truth is 3.989, at cos(s) = -1; interval arithmetic does not know cosines.
    fair = with_peak(4.0)
    assert fair.bounds["density"].evidence.standing is Standing.ASSUMED
    refute(fair)
    with pytest.raises(ValueError, match="random search on made-up records found"):
        refute(with_peak(3.0))


def location(y: jax.Array) -> None:
    """Prior convexity 1/4, smoothness 1 and concave; the slope is not bounded."""
    mu = numpyro.sample("mu", dist.Normal(0, 2))
    with numpyro.plate("people", len(y)):
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)


def heavy(y: jax.Array) -> None:
    """A slope of at most 1, and not concave."""
    mu = numpyro.sample("mu", dist.Normal(0, 2))
    with numpyro.plate("people", len(y)):
        numpyro.sample("y", dist.Cauchy(mu, 1.0), obs=y)


@pytest.mark.parametrize(
    ("fn", "name", "true", "false"),
    [
        (location, "prior_convexity", 0.25, 0.26),
        (location, "smoothness", 1.0, 0.9),
        (heavy, "lipschitz", 1.0, 0.99),
        (heavy, "lipschitz_difference", 2.0, 1.9),
    ],
)
def test_every_stated_certificate_is_attacked(
    fn: Callable[..., None], name: str, true: float, false: float
) -> None:
    refute(from_numpyro(fn, records="people", certificates={name: true}))
    with pytest.raises(ValueError, match=f"{name}.*random search on made-up records found"):
        refute(from_numpyro(fn, records="people", certificates={name: false}))


def test_a_gibbs_posterior_of_a_model_that_is_not_concave_is_refused() -> None:
    stated = {"lipschitz_difference": 2.0, "prior_convexity": 0.25}
    refute_concavity(from_numpyro(location, records="people"))
    with pytest.raises(ValueError, match="must be concave"):
        OnePosteriorSample(from_numpyro(heavy, records="people", certificates=stated), loss=Gibbs()).plan(
            n=10, budget=Budget(epsilon=1.0, delta=1e-6)
        )
