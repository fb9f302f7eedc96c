"""Truncated Poisson and gamma regressions: densities against mpmath, bounds, and what they refuse."""

import jax
import mpmath as mp
import numpy as np
import pytest

from discreet.models import TruncatedGammaRegression, TruncatedPoissonRegression
from discreet.models.bounded_response import BoundedRegression

POISSON = TruncatedPoissonRegression(features=2, largest=6, row_norm=2.0, prior_precision=3.0)
GAMMA = TruncatedGammaRegression(features=2, largest=5.0, row_norm=2.0, prior_precision=3.0, shape=0.7)
SLOPES = (-60.0, -2.0, -0.1, 0.0, 0.3, 4.0, 60.0)


def partition(model: BoundedRegression, t: float) -> float:
    nodes, log_masses = model.base_measure
    return float(np.logaddexp.reduce(log_masses + nodes * t))


@pytest.mark.parametrize("t", SLOPES)
def test_the_partition_function_is_the_integral(t: float) -> None:
    poisson = mp.log(mp.fsum(mp.exp(y * t) / mp.factorial(y) for y in range(7)))
    assert partition(POISSON, t) == pytest.approx(float(poisson), rel=1e-12)
    for shape in (0.7, 1.0, 40.0):
        model = TruncatedGammaRegression(features=1, largest=5.0, shape=shape)
        exact = mp.log(mp.hyp1f1(shape, shape + 1, 5 * mp.mpf(t)) * mp.mpf(5) ** shape / shape)
        assert partition(model, t) == pytest.approx(float(exact), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("model", [POISSON, GAMMA], ids=lambda model: type(model).__name__)
def test_densities_and_their_gradients(model: BoundedRegression) -> None:
    """Normalised; the gradient's norm stays below the certificate, and comes near it."""
    with jax.enable_x64(True):
        w, x = jax.numpy.array([1.2, -0.4]), jax.numpy.array([1.2, 1.6])
        log_density = jax.jit(lambda w, y: model.log_density({"w": w}, {"x": x, "y": y}))
        if isinstance(model, TruncatedPoissonRegression):
            total = sum(float(jax.numpy.exp(log_density(w, float(y)))) for y in range(7))
        else:
            u = (np.arange(20_000) + 0.5) / 20_000  # y = 5 u^(1/0.7) takes the singularity away
            y = 5 * u ** (1 / 0.7)
            weights = 5**0.7 / 0.7 / 20_000 * y**0.3
            total = float(
                (jax.numpy.exp(jax.vmap(log_density, (None, 0))(w, jax.numpy.asarray(y))) * weights).sum()
            )
        assert total == pytest.approx(1.0, abs=1e-6)
        slope = jax.jit(jax.grad(log_density))
        norms = [
            float(jax.numpy.linalg.norm(slope(scale * w, y)))
            for scale in (-40.0, -1.0, 0.0, 1.0, 40.0)
            for y in (1e-3, float(model.largest))
        ]
    assert max(norms) <= model.bounds["lipschitz"].value * (1 + 1e-9)
    assert max(norms) > 0.97 * model.bounds["lipschitz"].value


def test_records_are_clipped_or_refused() -> None:
    records = {"x": [[3.0, 4.0], [0.3, 0.4]], "y": [9.0, 1.0]}
    for model in (POISSON, GAMMA):
        admitted = model.validate(records)
        assert admitted["y"].tolist() == [model.largest, 1.0]
        assert np.linalg.norm(admitted["x"], axis=1).max() <= 2.0
    strict = TruncatedPoissonRegression(features=2, largest=6, out_of_range="refuse")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="field y must lie between 0 and 6, got others in 1 records"):
        strict.validate(records)
    with pytest.raises(ValueError, match="row norms of at most 1, got longer rows in 1 records"):
        strict.validate({**records, "y": [5.0, 1.0]})
    for wrong in (0.5, -1.0):
        with pytest.raises(ValueError, match=r"whole number.*in 1 records"):
            POISSON.validate({**records, "y": [wrong, 1.0]})
    with pytest.raises(ValueError, match="largest"):
        TruncatedPoissonRegression(features=2, largest=0)
    with pytest.raises(ValueError, match="shape"):
        TruncatedGammaRegression(features=2, largest=1.0, shape=0.0)
