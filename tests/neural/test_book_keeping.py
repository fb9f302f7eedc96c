"""Book-keeping against naive per-example gradients, layer by layer and for random networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.models import NeuralNetwork
from discreet.neural import (
    Automatic,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flat,
    Flatten,
    Gelu,
    GroupNorm,
    Layer,
    LayerNorm,
    MaxPool,
    Network,
    Relu,
    Reshape,
    Tanh,
    VariationalDense,
    sites,
)
from discreet.neural.per_example import Watched, by_vmap, from_book
from discreet.neural.sources import Keyed

BATCH = 5
COUPLES = (jnp.array([0, 2]), jnp.array([1, 3]))
CLOSE = 1e-5
QUICK = {"xla_backend_optimization_level": 0}  # a second less to compile


@dataclass(frozen=True)
class Scale(Layer):
    """A layer of somebody else's, for which no site is registered."""

    def output_shape(self, inputs: tuple[int, ...]) -> tuple[int, ...]:
        return inputs

    def parameter_shapes(self, inputs: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        return {"log": inputs}

    def initial(self, generator: np.random.Generator, inputs: tuple[int, ...]) -> dict[str, np.ndarray]:
        return {"log": 0.1 * generator.standard_normal(inputs)}

    def apply(self, parameters: Any, x: Any, noise: Any = None) -> jax.Array:  # noqa: ARG002
        return x * jnp.exp(parameters["log"])


HIDDEN: list[tuple[Layer, ...]] = [
    (Dense(4),),
    (Dense(3, bias=False),),
    (VariationalDense(4),),
    (VariationalDense(3, bias=False, initial_sd=0.3),),
    (LayerNorm(),),
    (Relu(),),
    (Tanh(),),
    (Gelu(),),
    (Dropout(0.3),),
    (Scale(),),
]
IMAGE: list[tuple[Layer, ...]] = [
    (Conv(2, (3, 3), padding=1),),
    (Conv(4, (2, 3), stride=(1, 2), bias=False),),
    (Conv(2, (3, 3), stride=2, padding=1), GroupNorm(groups=2)),
    (Conv(2, (2, 2)), LayerNorm(), MaxPool((2, 2))),
    (AveragePool((2, 2), 1),),
    (Dense(3),),  # over channels: a weight that serves many positions
    (VariationalDense(2),),
    (GroupNorm(),),
]


def network_of(inputs: tuple[int, ...], layers: tuple[Layer, ...]) -> NeuralNetwork:
    return NeuralNetwork(inputs, (*layers, Dense(3)))


def case(model: NeuralNetwork, seed: int) -> tuple[Any, Any, Any, Any]:
    """Parameters, inputs, outcomes and the noise of the layers."""
    g = np.random.default_rng(seed)
    theta = {
        name: jnp.asarray(values + 0.1 * g.standard_normal(values.shape), jnp.float32)
        for name, values in model.network.initial(g).items()
    }
    x = jnp.asarray(g.standard_normal((BATCH, *model.network.inputs)), jnp.float32)
    y = jnp.asarray(g.integers(0, 3, BATCH), jnp.float32)
    return theta, x, y, model.network.noise(Keyed(jax.random.key(seed)), BATCH)


def naive(model: NeuralNetwork, theta: Any, x: Any, y: Any, noise: Any) -> Any:
    """Per-example gradients, one `grad` for each example of a network of one example."""

    def loss(at: Any, one: Any, outcome: Any, row: int) -> Any:
        for placed in model.network.placed:
            e = noise.get(placed.name)
            if e is not None and not placed.layer.shared_noise:
                e = e[row]
            one = placed.layer.apply(placed.mine(at), one, e)
        return -model.outcome.log_density(one, outcome)

    rows = jnp.arange(BATCH)
    return jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0, 0)), compiler_options=QUICK)(theta, x, y, rows)


def check(model: NeuralNetwork, seed: int) -> None:
    theta, x, y, noise = case(model, seed)
    gradients = naive(model, theta, x, y, noise)
    mask = jnp.arange(BATCH) < BATCH - 1

    def everything(theta: Any, bound: Any) -> Any:
        book = model.network.book(theta, x, lambda outputs: model.losses(outputs, y), noise)
        found = [
            from_book(book, mask, clipping, bound, Watched(2, both), couples=COUPLES)
            for clipping in (Flat(1.0), Automatic(1.0))
            for both in (False, True)
        ]
        return book.squares(), found

    run = jax.jit(everything, compiler_options=QUICK)
    flat = np.concatenate([np.asarray(v, np.float64).reshape(BATCH, -1) for v in gradients.values()], axis=1)
    norms = np.linalg.norm(flat, axis=1)
    bound = float(np.median(norms))
    squares, every = run(theta, bound)
    np.testing.assert_allclose(np.sqrt(squares), norms, rtol=CLOSE)
    every = iter(every)
    for clipping in (Flat(1.0), Automatic(1.0)):
        weights = np.asarray(clipping.weights(jnp.asarray(norms**2, jnp.float32), bound)) * np.asarray(mask)
        assert (weights * norms <= bound).all()
        for both in (False, True):
            found = next(every)
            for name, values in gradients.items():
                expected = np.tensordot(weights, np.asarray(values, np.float64), 1)
                scale = np.linalg.norm(weights @ flat)
                assert np.linalg.norm(found.total[name] - expected) <= CLOSE * scale, name
            clipped = weights[:, None] * flat
            expected = (
                np.linalg.norm(clipped[[0, 2]] - clipped[[1, 3]], axis=1)
                if both
                else np.linalg.norm(clipped[:2], axis=1)
            )
            np.testing.assert_allclose(found.distances, expected, rtol=1e-3, atol=1e-3 * bound)


@pytest.mark.parametrize("layers", HIDDEN, ids=str)
def test_every_layer_alone(layers: tuple[Layer, ...]) -> None:
    check(network_of((4,), (Dense(4), *layers)), 1)


@pytest.mark.parametrize("layers", IMAGE, ids=str)
def test_every_image_layer_alone(layers: tuple[Layer, ...]) -> None:
    check(network_of((6, 6, 2), (Scale(), *layers, Flatten())), 2)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    image=st.lists(st.sampled_from(IMAGE[:6]), max_size=1),
    hidden=st.lists(st.sampled_from(HIDDEN), min_size=1, max_size=3),
    seed=st.integers(0, 3),
)
def test_book_keeping_equals_naive_gradients(
    image: list[tuple[Layer, ...]], hidden: list[tuple[Layer, ...]], seed: int
) -> None:
    front: tuple[Layer, ...] = (Reshape((4, 4, 1)), *image[0]) if image else ()
    layers = (*front, Flatten(), *(layer for group in hidden for layer in group))
    check(network_of((16,), layers), seed)


def test_both_ways_of_norms_of_positions_agree() -> None:
    g = np.random.default_rng(0)
    a, d = (jnp.asarray(g.standard_normal((3, 7, k)), jnp.float32) for k in (5, 4))
    products = sites.Positions(a, d, bias=True)
    stored = sites.Stored({"weight": jnp.einsum("bti,bto->bio", a, d), "bias": d.sum(axis=1)})
    np.testing.assert_allclose(products.squares(), stored.squares(), rtol=CLOSE)
    weights = jnp.array([0.5, 0.0, 1.0])
    for name, values in stored.total(weights).items():
        np.testing.assert_allclose(products.total(weights)[name], values, rtol=1e-4, atol=1e-5)
    # Whichever is cheaper: many positions of few numbers are stored, few positions of many are not.
    assert isinstance(
        sites.positions(jnp.zeros((1, 100, 3)), jnp.zeros((1, 100, 2)), bias=False), sites.Stored
    )
    assert isinstance(
        sites.positions(jnp.zeros((1, 2, 90)), jnp.zeros((1, 2, 80)), bias=False), sites.Positions
    )


def test_a_norm_of_positions_is_never_rounded_below_the_true_one() -> None:
    # Equal inputs and gradients that nearly cancel: the worst for a sum of terms of either sign.
    g = np.random.default_rng(3)
    a = np.repeat(g.normal(size=(400, 1, 6)), 16, axis=1) + 1e-3 * g.normal(size=(400, 16, 6))
    d = g.normal(size=(400, 16, 5))
    d = d - d.mean(axis=1, keepdims=True) + 1e-4 * g.normal(size=d.shape)
    a, d = 30 * a.astype(np.float32), d.astype(np.float32)
    exact = np.einsum("bti,bto->bio", a.astype(np.float64), d.astype(np.float64))
    true = (exact**2).sum(axis=(1, 2)) + (d.astype(np.float64).sum(axis=1) ** 2).sum(axis=1)
    book = sites.Positions(jnp.asarray(a), jnp.asarray(d), bias=True)
    assert (np.asarray(book.squares(), dtype=np.float64) >= true).all()
    bare = np.asarray(book.inner(jnp.arange(400), jnp.arange(400)), dtype=np.float64)
    assert (bare < true * (1 - 2.0**-10) ** 2).any()  # more than `clipping.ROUNDING` makes up for


def test_vmap_in_chunks_equals_book_keeping() -> None:
    model = network_of((4,), (Dense(4), Tanh()))
    theta, x, y, _ = case(model, 3)
    batch = {"x": x, "y": y}
    mask = jnp.array([True, True, False, True, True])

    def gradient(at: Any, record: Any) -> Any:
        return jax.grad(lambda t: -model.log_density(t, record))(at)

    book = model.network.book(theta, x, lambda outputs: model.losses(outputs, y))
    watched = Watched(2, both=True)
    expected = from_book(book, mask, Flat(), 0.5, watched, couples=COUPLES)
    for chunk in (1, 2, 5, 64):
        found = by_vmap(gradient, theta, batch, mask, Flat(), 0.5, watched, couples=COUPLES, chunk=chunk)
        for name, values in expected.total.items():
            np.testing.assert_allclose(found.total[name], values, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
def test_a_bad_record_contributes_nothing(bad: float) -> None:
    model = network_of((4,), (VariationalDense(4), LayerNorm(), Tanh()))
    theta, x, y, noise = case(model, 4)
    broken = x.at[2, 1].set(bad)
    everyone = jnp.ones(BATCH, bool)

    def total(inputs: Any, mask: Any) -> Any:
        book = model.network.book(theta, inputs, lambda outputs: model.losses(outputs, y), noise)
        return from_book(book, mask, Flat(), 0.5, Watched(2, both=True), couples=COUPLES)

    found, without = total(broken, everyone), total(x, everyone.at[2].set(False))
    for name, values in without.total.items():
        np.testing.assert_allclose(found.total[name], values, rtol=1e-5, atol=1e-7)
    assert np.isfinite(found.distances).all()


def test_batch_normalisation_is_refused() -> None:
    with pytest.raises(TypeError, match="every record of a batch changes the gradients of the others"):
        BatchNorm()
    with pytest.raises(TypeError, match=r"layers must be layers of .*, got str"):
        Network((4,), ("batch norm",))  # pyright: ignore[reportArgumentType]


def test_layers_that_do_not_fit_are_refused() -> None:
    for inputs, layers, message in [
        ((4,), (Conv(2, (3, 3)),), "2 spatial axes and channels, got shape"),
        ((4, 4, 2), (Conv(2, (5, 5)),), "windows must fit"),
        ((4,), (GroupNorm(groups=3),), "groups must divide"),
        ((4,), (Reshape((3,)),), "shape must hold the 4 numbers"),
        ((4, 4, 1), (MaxPool((2,)),), "pooling over windows"),
    ]:
        with pytest.raises(ValueError, match=message):
            Network(inputs, layers)
    with pytest.raises(ValueError, match="the last layer must have an output of one axis"):
        NeuralNetwork((4, 4, 1), (Conv(2, (3, 3)),))
