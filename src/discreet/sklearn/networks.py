"""Private neural networks with scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from discreet.mechanisms.base import Mechanism, Plan
from discreet.mechanisms.langevin_dynamics import LangevinDynamics
from discreet.models import NeuralNetwork
from discreet.models.network_outcomes import Categories, NumberAndSpread, Outcome
from discreet.models.prediction import Prediction
from discreet.models.priors import GaussianPrior
from discreet.neural import Dense, Flat, Layer, Relu
from discreet.privacy import Budget
from discreet.sklearn.base import PrivateEstimator, checked
from discreet.sklearn.labels import DeclaredLabels

Array = NDArray[np.float64]


class PrivateMLP(PrivateEstimator):
    """A network of dense layers from noisy gradient steps; see its subclasses."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        hidden_layer_sizes: Sequence[int] = (100,),
        prior_sd: float = 0.3,
        batch: int = 1024,
        steps: int = 300,
        norm: float = 1.0,
        mechanism: Callable[[NeuralNetwork], Mechanism] | None = None,
        ledger: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior_sd = prior_sd
        self.batch = batch
        self.steps = steps
        self.norm = norm
        self.mechanism = mechanism
        self.ledger = ledger
        self.random_state = random_state

    def _network(self, columns: int, outputs: int, outcome: Outcome) -> NeuralNetwork:
        hidden: list[Layer] = []
        for units in self.hidden_layer_sizes:
            hidden += [Dense(units), Relu()]
        layers = (*hidden, Dense(outputs))
        return NeuralNetwork(columns, layers, outcome=outcome, prior=GaussianPrior(self.prior_sd))

    def _trained(self, network: NeuralNetwork, rows: int, budget: Budget) -> Plan:
        make = self.mechanism or self._langevin
        # Whatever takes private steps is planned alike; `Mechanism` itself has no common plan.
        mechanism: Any = make(network)
        return mechanism.plan(n=rows, batch=min(self.batch, rows), steps=self.steps, budget=budget)

    def _prediction(self, X: ArrayLike) -> Prediction:
        rows = self._rows(X)  # first: an estimator that was not fitted has no release
        return self.release_.predict(rows)

    def _langevin(self, network: NeuralNetwork) -> LangevinDynamics:
        return LangevinDynamics(
            network,
            clipping=Flat(self.norm),
            neighbours="substitute",
            temperature=0.5,
            thin=max(1, self.steps // 100),
        )


class PrivateMLPClassifier(DeclaredLabels, PrivateMLP):
    """A network for labels, by DP-SGLD (paper N), under substitution of one row.

    Predictions average over draws of the weights. Features should be about as large
    as 1: scale them by declared bounds (`BoundedScaler`). Every call of `fit` spends
    the budget anew; pass a ledger to keep count.

    Args:
        epsilon: what a fit may cost.
        delta: of the budget; above 0.
        classes: the labels. They are declared, because reading them off the table would
            tell that somebody has them.
        hidden_layer_sizes: units of each hidden layer, with the ReLU after it.
        prior_sd: of every weight.
        batch: how many rows a step has on average; all of them for a table of fewer.
        steps: how many. More steps need more noise in each.
        norm: what a row's gradient is clipped to.
        mechanism: what trains: a function of the network, such as
            `functools.partial(BayesByBackprop, neighbours="substitute")`; None for
            `LangevinDynamics`.
        ledger: a discreet.Ledger.
        random_state: a whole number makes a fit reproducible, and whoever knows it
            can undo the noise.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
        >>> mlp = PrivateMLPClassifier(epsilon=4.0, hidden_layer_sizes=(16,), steps=50, random_state=1)
        >>> fitted = mlp.fit(X, X[:, 0] * X[:, 1] > 0)
        >>> fitted.predict_proba(X).shape, fitted.release_.guarantee.epsilon(1e-6) <= 4.0
        ((1000, 2), True)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        classes: Sequence[Any] = (0, 1),
        hidden_layer_sizes: Sequence[int] = (100,),
        prior_sd: float = 0.3,
        batch: int = 1024,
        steps: int = 300,
        norm: float = 1.0,
        mechanism: Callable[[NeuralNetwork], Mechanism] | None = None,
        ledger: Any = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            hidden_layer_sizes=hidden_layer_sizes,
            prior_sd=prior_sd,
            batch=batch,
            steps=steps,
            norm=norm,
            mechanism=mechanism,
            ledger=ledger,
            random_state=random_state,
        )
        self.classes = classes

    def _planned(self, rows: int, columns: int, budget: Budget) -> Plan:
        network = self._network(columns, len(self.classes), Categories())
        return self._trained(network, rows, budget)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Spend the budget and keep private draws of the weights."""
        rows: Any
        rows, y = checked(self, X, y)
        self._release({"x": rows, "y": self._codes(y)})
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the declared classes, averaged over draws."""
        return self._prediction(X).mean

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class."""
        chances = self.predict_proba(X)  # first: an estimator that was not fitted has no classes
        return self.classes_[chances.argmax(axis=1)]


class PrivateMLPRegressor(RegressorMixin, PrivateMLP):
    """A network for a number and its spread, by DP-SGLD (paper N), under substitution of one row.

    The outcome is normal, with a mean and a variance that depend on the row.

    Args:
        epsilon: what a fit may cost.
        delta: of the budget; above 0.
        centre: about where outcomes lie; declared, never read off the table.
        scale: about how far they lie from there; declared as well.
        hidden_layer_sizes: units of each hidden layer, with the ReLU after it.
        prior_sd: of every weight.
        batch: how many rows a step has on average; all of them for a table of fewer.
        steps: how many. More steps need more noise in each.
        norm: what a row's gradient is clipped to.
        mechanism: what trains: a function of the network; None for `LangevinDynamics`.
        ledger: a discreet.Ledger.
        random_state: a whole number makes a fit reproducible, and whoever knows it
            can undo the noise.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
        hidden_layer_sizes: Sequence[int] = (100,),
        prior_sd: float = 0.3,
        batch: int = 1024,
        steps: int = 300,
        norm: float = 30.0,
        mechanism: Callable[[NeuralNetwork], Mechanism] | None = None,
        ledger: Any = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            hidden_layer_sizes=hidden_layer_sizes,
            prior_sd=prior_sd,
            batch=batch,
            steps=steps,
            norm=norm,
            mechanism=mechanism,
            ledger=ledger,
            random_state=random_state,
        )
        self.centre = centre
        self.scale = scale

    def _planned(self, rows: int, columns: int, budget: Budget) -> Plan:
        return self._trained(self._network(columns, 2, NumberAndSpread()), rows, budget)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Spend the budget and keep private draws of the weights."""
        rows: Any
        rows, outcomes = checked(self, X, y, y_numeric=True)
        self._release({"x": rows, "y": (outcomes - self.centre) / self.scale})
        return self

    def predict(self, X: ArrayLike, *, return_std: bool = False) -> Array | tuple[Array, Array]:
        """The mean outcome; with `return_std` also its standard deviation, of all doubt."""
        found = self._prediction(X)
        mean = self.centre + self.scale * found.mean
        return (mean, self.scale * np.sqrt(found.total)) if return_std else mean

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
