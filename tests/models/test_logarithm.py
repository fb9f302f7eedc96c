"""log(1 + e) as the models of chains compute it."""

import jax
import mpmath
import numpy as np

from discreet.models._logarithm import log_one_plus


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
