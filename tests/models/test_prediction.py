"""Predictions in blocks of rows and draws, and what they are for networks."""

import tracemalloc
from typing import Any

import jax
import numpy as np
import pytest

from discreet import metrics, models
from discreet.models import prediction
from discreet.models.network_outcomes import NumberAndSpread
from discreet.neural import Dense, Dropout, Tanh


def test_blocks_of_rows_and_draws_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = models.LinearRegression(2)
    rng = np.random.default_rng(0)
    drawn = {"w": rng.normal(size=(11, 2)), "log_excess_variance": rng.normal(size=11)}
    x = rng.normal(size=(10, 2))
    whole = prediction.predict(model, drawn, {"x": x})
    monkeypatch.setattr(prediction, "_ROWS", 4)
    monkeypatch.setattr(prediction, "_NUMBERS", 15)  # blocks of 5 draws, and one of 1
    parts = prediction.predict(model, drawn, {"x": x})
    for name in ("mean", "epistemic", "aleatoric"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12)
    stacked = x @ drawn["w"].T
    np.testing.assert_allclose(whole.epistemic, stacked.var(axis=1, ddof=1))


def test_a_network_predicts_the_parts_of_appendix_c() -> None:
    model = models.NeuralNetwork(1, (Dense(5), Tanh(), Dense(2)), outcome=NumberAndSpread(0.1))
    drawn = model.draw_prior(np.random.default_rng(1), 6)
    assert drawn is not None
    x = np.linspace(-1, 1, 7)[:, None]
    found = prediction.predict(model, drawn, {"x": x})
    hidden = np.tanh(x[None] @ drawn["dense_0_weight"] + drawn["dense_0_bias"][:, None])
    output = hidden @ drawn["dense_2_weight"] + drawn["dense_2_bias"][:, None]
    parts = metrics.decompose_variance(output[..., 0], 0.1**2 + np.exp(output[..., 1]))
    np.testing.assert_allclose(found.mean, output[..., 0].mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.epistemic, parts.epistemic, rtol=1e-4)
    np.testing.assert_allclose(found.aleatoric, parts.aleatoric, rtol=1e-4)


def test_draws_of_a_network_with_dropout_differ_and_repeat() -> None:
    model = models.NeuralNetwork(3, (Dense(20), Tanh(), Dropout(0.5), Dense(4)), seeded=True)
    first = model.network.initial(np.random.default_rng(2))
    drawn: dict[str, Any] = {k: np.broadcast_to(v, (30, *v.shape)) for k, v in first.items()}
    drawn["seed"] = np.random.default_rng(3).integers(1, 2**16, (30, 4)).astype(float)
    x = np.random.default_rng(4).normal(size=(5, 3))
    found = prediction.predict(model, drawn, {"x": x})
    assert (found.epistemic > 1e-4).all()
    np.testing.assert_array_equal(prediction.predict(model, drawn, {"x": x}).mean, found.mean)
    np.testing.assert_allclose(found.mean.sum(axis=1), 1, atol=1e-6)
    off = {**drawn, "seed": np.zeros((30, 4))}
    assert (prediction.predict(model, off, {"x": x}).epistemic < 1e-6).all()  # one function, thirty times
    assert jax.numpy.zeros(1).dtype == np.float32  # no flag was left behind


def test_memory_does_not_grow_with_the_number_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws that are views of one array are never copied as a whole: 200 times 1 MB."""
    monkeypatch.setattr(prediction, "_NUMBERS", 2**21)
    model = models.NeuralNetwork(400, (Dense(600), Tanh(), Dense(2)))
    first = model.network.initial(np.random.default_rng(5))
    x = np.random.default_rng(6).normal(size=(2, 400))
    prediction.predict(model, {k: np.broadcast_to(v, (1, *v.shape)) for k, v in first.items()}, {"x": x})
    size = sum(v.size for v in first.values())
    drawn = {k: np.broadcast_to(v, (200, *v.shape)) for k, v in first.items()}
    tracemalloc.start()
    prediction.predict(model, drawn, {"x": x})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * 200 * size * 4
