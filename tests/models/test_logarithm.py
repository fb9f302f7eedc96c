"""log(1 + e), and ratios of mixtures, as the models of chains compute them."""

import jax
import mpmath
import numpy as np

from discreet.models._logarithm import log_one_plus
from discreet.models.base import Model
from discreet.models.gaussian_mixture import GaussianMixture


def test_it_is_the_logarithm_to_the_last_digits_and_so_is_its_slope() -> None:
    rng = np.random.default_rng(0)
    e = np.concatenate(
        [[0.0, 1.0, 5e-324, 1e-300, 1e-17], np.exp(-rng.exponential(3, 3_000)), rng.random(3_000)]
    )
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(log_one_plus)(e))
        slope = np.asarray(jax.jit(jax.vmap(jax.grad(log_one_plus)))(e))
    with mpmath.workdps(40):
        exact = [mpmath.log1p(mpmath.mpf(float(v))) for v in e]
        error = np.array([float(abs(f - x)) for f, x in zip(found.tolist(), exact, strict=True)])
        plain = np.array([float(abs(f - x)) for f, x in zip(np.log(1 + e).tolist(), exact, strict=True)])
    allowed = 5e-16 * np.array([float(x) for x in exact]) + 1e-307
    assert np.all(error <= allowed)
    assert np.any(plain > allowed)  # what the test sees
    np.testing.assert_allclose(slope, 1 / (1 + e), rtol=2e-13)


def test_the_ratio_of_two_mixtures_is_the_difference_of_their_logarithms() -> None:
    rng, model = np.random.default_rng(1), GaussianMixture()
    here, there = rng.normal(size=(2, 4_000, 2)) * 3
    x = rng.normal(size=4_000) * 4

    def both(t: jax.Array, c: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        theta, candidate, record = {"theta": t}, {"theta": c}, {"x": x}
        return model.log_ratio(candidate, theta, record), Model.log_ratio(model, candidate, theta, record)

    with jax.enable_x64(True):
        short, plain = jax.jit(jax.vmap(both))(here, there, x)
    t, c = here.T, there.T
    logs = [np.logaddexp(-0.25 * (x - a) ** 2, -0.25 * (x - a - b) ** 2) for a, b in (t, c)]
    np.testing.assert_allclose(plain, logs[1] - logs[0], atol=1e-12)
    np.testing.assert_allclose(short, logs[1] - logs[0], atol=1e-12)
