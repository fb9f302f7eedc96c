# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""DP Bayes by backprop: a normal for every weight, fitted by private gradient steps (paper N, Algorithm 3).

Proof page: docs/proofs/private_gradients.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from discreet.mechanisms.base import Drawn, Plain, Plan
from discreet.mechanisms.monte_carlo_dropout import seeds
from discreet.mechanisms.optimisers import Adam, Optimiser
from discreet.mechanisms.stochastic_gradient import StochasticGradient
from discreet.models import NeuralNetwork
from discreet.models.base import Records
from discreet.models.neural_network import SEED
from discreet.privacy import checks
from discreet.samplers.randomness import Randomness


@dataclass(frozen=True)
class BayesByBackprop(StochasticGradient):
    """Independent normals for all weights: mean and standard deviation of each, by private descent.

    Descends on KL(q || prior)/n - mean of E_q log p(y | x, w), with one draw of w for
    each step, shared by the batch; the paper's N draws in a step are N steps.

    Args:
        model: a network whose dense layers become variational.
        optimiser: `Adam` unless given.
        draws: how many draws of the weights the release holds. A draw is the means, the
            rhos and the `seed` of its normals: the large arrays are held once.
        initial_sd: where the standard deviations start.
        average, clipping, neighbours, start, observers, chunk: see `StochasticGradient`.

    Guarantee:
        That of `StochasticGradient` on means and rhos; a record's gradient in both
        together is clipped, by book-keeping, which paper N holds to be impossible
        (ERRATA S5). The divergence from the prior is public, and not clipped.

    References: Blundell et al. 2015; paper N, Algorithm 3 and Theorem 2;
        docs/proofs/private_gradients.md#book-keeping.

    Example:
        >>> from discreet.neural import Dense, Relu
        >>> from discreet.privacy import Budget
        >>> network = NeuralNetwork(4, (Dense(8), Relu(), Dense(3)))
        >>> mechanism = BayesByBackprop(network, neighbours="substitute", draws=10)
        >>> plan = mechanism.plan(n=500, batch=50, steps=20, budget=Budget(2.0, 1e-5))
        >>> "variational_dense_0_weight_rho" in mechanism.model.parameter_shapes
        True
    """

    optimiser: Optimiser = field(default_factory=lambda: Adam(1e-3), kw_only=True)
    draws: int = field(default=50, kw_only=True)
    initial_sd: float = field(default=0.05, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.model, NeuralNetwork):
            raise TypeError(
                f"model must be a NeuralNetwork, got {type(self.model).__name__}; for other models use "
                "LangevinDynamics"
            )
        checks.integer("draws", self.draws, at_least=1)
        varied = replace(self.model.variational(self.initial_sd), seeded=True)
        object.__setattr__(self, "model", varied)
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
        return {**super().settings(), "draws": self.draws, "initial_sd": self.initial_sd}
