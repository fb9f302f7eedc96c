"""What is trained: networks, priors and the numbers of every method, at one privacy budget.

README.md says how step sizes and clipping norms were chosen. The price of choosing them is not part of any
epsilon, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import discreet as dc
from discreet.mechanisms import (
    BayesByBackprop,
    LangevinDynamics,
    MonteCarloDropout,
    Sgd,
    StochasticGradient,
)
from discreet.models import NeuralNetwork
from discreet.models.priors import GaussianPrior, LaplacePrior, Prior
from discreet.neural import Conv, Cosine, Dense, Dropout, Flat, Flatten, Layer, MaxPool, Relu

BUDGET = dc.Budget(epsilon=0.894, delta=1e-5)
"""The true privacy of the paper's own runs (ERRATA 14), under addition and removal of one digit."""

BATCH = 2048
BATCHES = {"mlp": BATCH, "cnn": 1024, "scattering": BATCH}
PRIORS: dict[str, dict[str, Prior]] = {
    # The paper's N(0, 0.1^2) and L(0, 0.1) are too tight for a network of 128 units on images of length 10.
    "gaussian": {"mlp": GaussianPrior(0.18), "cnn": GaussianPrior(0.3), "scattering": GaussianPrior(0.3)},
    "laplace": {"mlp": LaplacePrior(0.13), "cnn": LaplacePrior(0.2), "scattering": LaplacePrior(0.2)},
    "none": dict.fromkeys(("mlp", "cnn", "scattering"), GaussianPrior(1e3)),
}
INPUTS: dict[str, Any] = {"mlp": 784, "cnn": (28, 28, 1), "scattering": 3969}
STEPS = {"mlp": 300, "cnn": 600, "scattering": 200}
# A clipping norm for sampling sets the step as well: both follow from the noise (Theorem 1).
LANGEVIN_NORM = {"mlp": 1.0, "cnn": 3.0, "scattering": 1.0}
BURN_IN = {"mlp": 0.5, "cnn": 0.4, "scattering": 0.5}
STEP = {"mlp": 10.0, "cnn": 0.5, "scattering": 8.0}
DRAWS = 40


@dataclass(frozen=True)
class Setting:
    """One cell of a table.

    Attributes:
        method: sgld, bbp, mcd or sgd.
        network: mlp, cnn or scattering.
        prior: gaussian, laplace or none.
        private: whether within the budget; otherwise clipping is wide and noise small.
    """

    method: str
    network: str
    prior: str = "gaussian"
    private: bool = True

    @property
    def name(self) -> str:
        return "-".join((self.method, self.network, self.prior, "private" if self.private else "open"))

    def plan(self, n: int, steps: int | None = None) -> dc.Plan:
        """The plan for n declared digits."""
        mechanism = MAKERS[self.method](self)
        steps, batch = steps or STEPS[self.network], BATCHES[self.network]
        if self.private:
            return mechanism.plan(n=n, batch=batch, steps=steps, budget=BUDGET)
        if isinstance(mechanism, LangevinDynamics):
            return mechanism.plan(n=n, batch=batch, steps=steps)
        return mechanism.plan(n=n, batch=batch, steps=steps, noise_multiplier=0.1)


def layers(network: str, dropout: float | None = None) -> tuple[Layer, ...]:
    """One hidden layer of 128; the CNN of Opacus and TensorFlow Privacy; or a linear layer."""
    if network == "scattering":
        return (Dense(10),)
    drop = () if dropout is None else (Dropout(dropout),)
    if network == "mlp":
        return (Dense(128), Relu(), *drop, Dense(10))
    return (
        Conv(16, (8, 8), 2, 3),
        Relu(),
        MaxPool((2, 2), 1),
        Conv(32, (4, 4), 2),
        Relu(),
        MaxPool((2, 2), 1),
        Flatten(),
        Dense(32),
        Relu(),
        *drop,
        Dense(10),
    )


def _model(setting: Setting, dropout: float | None = None) -> NeuralNetwork:
    network = setting.network
    return NeuralNetwork(INPUTS[network], layers(network, dropout), prior=PRIORS[setting.prior][network])


def _common(setting: Setting, norm: float) -> dict[str, Any]:
    return {"clipping": Flat(norm if setting.private else 20.0), "neighbours": "add_remove"}


def _sgld(setting: Setting) -> LangevinDynamics:
    steps, burn_in = STEPS[setting.network], BURN_IN[setting.network]
    return LangevinDynamics(
        _model(setting),
        temperature=0.5,  # the paper's update
        burn_in=burn_in,
        thin=max(1, int((1 - burn_in) * steps) // DRAWS),
        step_size=None if setting.private else STEP[setting.network] / 60_000 / 2,
        **_common(setting, LANGEVIN_NORM[setting.network]),
    )


def _descent(setting: Setting) -> dict[str, Any]:
    first = STEP[setting.network] * (1.0 if setting.private else 0.2)
    return {"optimiser": Sgd(Cosine(first, first / 50)), **_common(setting, 1.0)}


def _sgd(setting: Setting) -> StochasticGradient:
    return StochasticGradient(_model(setting), **_descent(setting))


def _bbp(setting: Setting) -> BayesByBackprop:
    return BayesByBackprop(_model(setting), draws=DRAWS, initial_sd=0.04, **_descent(setting))


def _mcd(setting: Setting) -> MonteCarloDropout:
    return MonteCarloDropout(_model(setting, 0.3), draws=DRAWS, **_descent(setting))


MAKERS: dict[str, Any] = {"sgld": _sgld, "bbp": _bbp, "mcd": _mcd, "sgd": _sgd}
