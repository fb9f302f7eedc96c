"""The memory that holds the noise of a step is used again only when the step has read it.

Were it written before, two steps could have the same noise, and their difference would be gradient.
"""

from typing import Any

import numpy as np
import pytest

from discreet.mechanisms import BayesByBackprop, StochasticGradient
from discreet.mechanisms._private_inputs import Preparation, Prepared
from discreet.models import NeuralNetwork
from discreet.neural import Dense, Relu, batches

NETWORK = NeuralNetwork(200, (Dense(400), Relu(), Dense(3)))


@pytest.mark.parametrize("kind", [StochasticGradient, BayesByBackprop])
@pytest.mark.parametrize("buffer", [16, 64], ids=["overflowing", "one pass"])
def test_noise_is_not_overwritten_before_it_is_read(
    kind: Any, buffer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is written into the memory once it is handed back, the run is the same to the bit."""
    rng = np.random.default_rng(0)
    records = {"x": rng.standard_normal((60, 200)), "y": rng.integers(0, 3, 60).astype(float)}
    plan = kind(NETWORK, neighbours="substitute").plan(n=60, batch=50, steps=8, noise_multiplier=1.0)
    plan.parameters["buffer"] = buffer  # pyright: ignore[reportIndexIssue] - a choice about speed only
    assert batches.buffer_for(50, 50 / 60) >= 50
    undisturbed = plan.release(records, key=1).draws
    handed_back = Preparation.done

    def scribbled(self: Preparation, prepared: Prepared) -> None:
        prepared.slab.bits[:] = 85
        handed_back(self, prepared)

    monkeypatch.setattr(Preparation, "done", scribbled)
    disturbed = plan.release(records, key=1).draws
    for name, values in undisturbed.items():
        np.testing.assert_array_equal(values, disturbed[name])
