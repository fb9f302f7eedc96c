"""Clipping holds for records whose squared norms do not fit in single precision, small or large."""

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from discreet.mechanisms import StochasticGradient
from discreet.mechanisms.optimisers import Sgd
from discreet.models import NeuralNetwork
from discreet.models.network_outcomes import Number
from discreet.neural import Conv, Dense, Flat, Flatten, Layer, VariationalDense
from discreet.neural.per_example import from_book
from discreet.neural.sites import make

CLIP = 0.1
SIZES = [
    (5e18, 1e-19),
    (1e-19, 1e18),
    (1e18, 1e-20),
    (3e12, 1e-13),
    (1e30, 1e-30),
    (1e-30, 1e30),
    (1e38, 1e38),
]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (Dense(50), (4,)),
        (Dense(50, bias=False), (4,)),
        (Dense(50, bias=False), (3, 4)),
        (VariationalDense(50), (4,)),
        (Conv(5, (2,)), (6, 3)),
        (Conv(40, (2,), bias=False), (3, 30)),
    ],
    ids=str,
)
def test_no_contribution_exceeds_c_however_large_its_factors(
    layer: Layer, shape: tuple[int, ...], size: tuple[float, float]
) -> None:
    """a and d are finite, so is a d, but |a|^2 |d|^2 is 0 or infinite on the way."""
    rng = np.random.default_rng(1)
    parameters = {name: jnp.asarray(v, jnp.float32) for name, v in layer.initial(rng, shape).items()}
    a = jnp.full((1, *shape), size[0], jnp.float32)
    d = jnp.full((1, *layer.output_shape(shape)), size[1], jnp.float32)
    noise = None
    if isinstance(layer, VariationalDense):
        noise = {name: jnp.full(s, 0.7) for name, s in layer.mean.parameter_shapes(shape).items()}
    site: Any = make(layer, parameters, a, d, noise)
    total = from_book(site, jnp.array([True]), Flat(CLIP), jnp.float32(CLIP)).total
    norm = np.sqrt(sum(float((np.asarray(v, np.float64) ** 2).sum()) for v in total.values()))
    assert norm <= CLIP


def test_a_huge_record_moves_a_step_no_further_than_billed() -> None:
    """With weights at 0 the residual is the outcome, as small as anybody likes, and the gradient x y."""
    model = NeuralNetwork(1, (Flatten(), Dense(1)), Number(sd=1.0))
    start = {name: np.zeros(shape) for name, shape in model.parameter_shapes.items()}
    mechanism = StochasticGradient(
        model, optimiser=Sgd(1.0), clipping=Flat(CLIP), neighbours="substitute", start=start
    )
    plan = mechanism.plan(n=1, batch=1, steps=1, noise_multiplier=1e-3)
    sides: list[dict[str, Any]] = [{"x": [[1.5e19]], "y": [1e-19]}, {"x": [[1e300]], "y": [0.0]}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning would tell that somebody has such a record
        draws = [plan.release(side, key=5).draws for side in [*sides, {"x": [[0.0]], "y": [0.0]}]]
    for side in draws[:2]:
        moved = np.sqrt(sum(float(((side[n] - draws[2][n]) ** 2).sum()) for n in side))
        assert moved <= 2 * CLIP
