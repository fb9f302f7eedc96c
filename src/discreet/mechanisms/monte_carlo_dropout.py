# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""DP Monte Carlo dropout: a network trained and read with dropout (paper N, Algorithm 4).

Proof page: docs/proofs/private_gradients.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.base import Drawn, Plain, Plan
from discreet.mechanisms.stochastic_gradient import StochasticGradient
from discreet.models import NeuralNetwork
from discreet.models.base import Records
from discreet.models.neural_network import SEED
from discreet.neural import Dropout
from discreet.neural.keystream import Keystream, Ratchet
from discreet.privacy import checks
from discreet.samplers.randomness import Randomness


@dataclass(frozen=True)
class MonteCarloDropout(StochasticGradient):
    """Weights by private descent under dropout; every draw of the release drops other units.

    Args:
        model: a network with `Dropout` layers.
        draws: how many draws the release holds. A draw is the weights and the `seed` of
            what is dropped: the large arrays are held once.
        optimiser, average, clipping, neighbours, start, observers, chunk: see
            `StochasticGradient`.

    Guarantee:
        That of `StochasticGradient`: what is dropped is public randomness, and so are the
        seeds of the draws.

    References: Gal & Ghahramani 2016; paper N, Algorithm 4 and Theorem 2;
        docs/proofs/private_gradients.md.

    Example:
        >>> from discreet.neural import Dense, Relu
        >>> from discreet.privacy import Budget
        >>> network = NeuralNetwork(4, (Dense(8), Relu(), Dropout(0.5), Dense(3)))
        >>> mechanism = MonteCarloDropout(network, neighbours="substitute", draws=10)
        >>> plan = mechanism.plan(n=500, batch=50, steps=20, budget=Budget(2.0, 1e-5))
        >>> plan.guarantee.fits(Budget(2.0, 1e-5))
        True
    """

    draws: int = field(default=50, kw_only=True)

    def __post_init__(self) -> None:
        model = self.model
        if not (
            isinstance(model, NeuralNetwork) and any(isinstance(layer, Dropout) for layer in model.layers)
        ):
            raise TypeError(
                f"model must be a NeuralNetwork with Dropout layers, got {type(model).__name__} without any; "
                "add them, or use StochasticGradient"
            )
        checks.integer("draws", self.draws, at_least=1)
        object.__setattr__(self, "model", replace(model, seeded=True))
        super().__post_init__()

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        run = self.run_of(plan, records, randomness, progress=progress)

        def drawn() -> Drawn:
            seed = seeds(run.ratchet, self.draws)
            held = {
                name: np.broadcast_to(values, (self.draws, *values.shape))
                for name, values in run.mean.items()
            }
            return Drawn({**held, SEED: seed})

        return run.run(drawn)

    def settings(self) -> dict[str, Plain]:
        return {**super().settings(), "draws": self.draws}


def seeds(ratchet: Ratchet, draws: int) -> NDArray[np.float64]:
    """Four numbers below 2^16 for each draw, not all 0: what `NeuralNetwork` reads as a seed.

    They are published: a hash of the ratchet's secret is their key, not one of a step.
    """
    words = Keystream(ratchet.tag(b"seeds of draws")).words(4 * draws, np.uint16).reshape(draws, 4)
    words[:, 0] |= (words == 0).all(axis=1)
    return words.astype(np.float64)
