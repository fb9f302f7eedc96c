"""Flax modules as models: the same clipped sums as book-keeping, and batch normalisation refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from discreet.mechanisms._private_sums import Batch, Engine, Inputs, Numbers
from discreet.mechanisms.langevin_dynamics import Diffusion
from discreet.models import FlaxNetwork, NeuralNetwork
from discreet.neural import Dense, Flat, Tanh
from discreet.neural.normals import Bits
from discreet.neural.sources import Drawn


class Small(linen.Module):
    """Two dense layers."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        hidden = jnp.tanh(linen.Dense(5)(x))
        return linen.Dense(3)(hidden)


class SmallNnx(nnx.Module):
    """The same with NNX."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.first, self.last = nnx.Linear(4, 5, rngs=rngs), nnx.Linear(5, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(jnp.tanh(self.first(x)))


class Normalised(linen.Module):
    """With what cannot be made private."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        return linen.Dense(3)(linen.BatchNorm(use_running_average=False)(x))


OURS = NeuralNetwork(4, (Dense(5), Tanh(), Dense(3)))


@pytest.mark.parametrize("module", [Small(), SmallNnx()], ids=["linen", "nnx"])
def test_clipped_sums_equal_those_of_our_own_layers(module: Any) -> None:
    theirs = FlaxNetwork(module, (4,))
    order = sorted(theirs.parameter_shapes, key=lambda name: ("1" in name or "last" in name, "bias" in name))
    start = theirs.initial(np.random.default_rng(0))
    ours = dict(zip(OURS.parameter_shapes, (start[name] for name in order), strict=True))
    g = np.random.default_rng(1)
    records = {"x": g.standard_normal((60, 4)), "y": g.integers(0, 3, 60).astype(float)}
    batch = Batch({name: jnp.asarray(v, jnp.float32) for name, v in records.items()}, np.arange(60) < 55)
    numbers, nothing = Numbers(0.3, 1.0, 1.0), Bits(np.zeros(0, np.uint32), np.zeros(0, np.uint8))
    inputs = Inputs(batch, nothing, Drawn(nothing, np.zeros(0, np.uint16)), numbers)
    found, expected = (
        Engine(model, Flat(0.3), Diffusion(1.0), chunk=7).sums(first, inputs).total
        for model, first in ((theirs, start), (OURS, ours))
    )
    for mine, name in zip(OURS.parameter_shapes, order, strict=True):
        np.testing.assert_allclose(found[name], expected[mine], rtol=1e-4, atol=1e-5)


def test_batch_normalisation_is_refused() -> None:
    with pytest.raises(TypeError, match="got batch_stats beside them"):
        FlaxNetwork(Normalised(), (4,))
    with pytest.raises(TypeError, match="got BatchStat beside them"):
        FlaxNetwork(
            nnx.Sequential(nnx.BatchNorm(4, rngs=nnx.Rngs(0)), nnx.Linear(4, 3, rngs=nnx.Rngs(0))), (4,)
        )
    assert jax.tree.leaves(FlaxNetwork(linen.Dense(3), (4,)).parameter_shapes)
