"""What the estimators share: a plan, a release; and for linear ones, coefficients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.mechanisms.base import Plan
from discreet.mechanisms.one_posterior_sample import OnePosteriorSample
from discreet.mechanisms.release import Release
from discreet.models.base import Model
from discreet.models.losses import BetaDivergence, Loss
from discreet.privacy import Budget
from discreet.samplers.posterior import Sampler

Array = NDArray[np.float64]


def checked(estimator: BaseEstimator, *given: Any, **options: Any) -> Any:
    """scikit-learn's checks of float64 columns, without the private values that two of its errors print."""
    try:
        found: Any = validate_data(estimator, *given, dtype=np.float64, **options)
        # scikit-learn turns a numeric y of objects into floats, but not one of strings.
        return (found[0], found[1].astype(np.float64)) if "y_numeric" in options else found
    except (TypeError, ValueError) as error:
        told = str(error)
        if not told.startswith(tuple(_TELLING)):
            raise
    # Outside of the handler, so that the error that tells is not carried along as context.
    raise ValueError(next(say for start, say in _TELLING.items() if told.startswith(start)))


_TELLING = {
    "Complex data not supported": "Complex data not supported: X and y must hold real numbers; split them",
    "could not convert": "X and y must hold numbers only, got values that are none; encode categories first",
}
"""How scikit-learn's errors that quote values begin, and what is said instead."""


class PrivateEstimator(BaseEstimator):
    """What every private estimator does in `fit`: plan, spend, release."""

    epsilon: float
    delta: float
    ledger: Any
    random_state: int | None

    @abstractmethod
    def _planned(self, rows: int, columns: int, budget: Budget) -> Plan:
        """The plan for a table of this size."""

    def _release(self, records: Mapping[str, Array]) -> Release:
        """Plan, spend, release; keep what may be published."""
        if self.random_state is not None and not isinstance(self.random_state, int | np.integer):
            raise ValueError(
                f"random_state must be None or a whole number, got {type(self.random_state).__name__}; "
                "a generator cannot be recorded"
            )
        rows, columns = records["x"].shape
        self.plan_ = self._planned(rows, columns, Budget(self.epsilon, self.delta))
        key = None if self.random_state is None else int(self.random_state)
        self.release_ = self.plan_.release(records, key=key, ledger=self.ledger)
        return self.release_

    def _rows(self, X: ArrayLike) -> Array:
        """New rows, checked against those of `fit`."""
        check_is_fitted(self)
        rows: Any = checked(self, X, reset=False)
        return rows


class PrivateLinear(PrivateEstimator):
    """A linear predictor from `OnePosteriorSample`; see its subclasses."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        prior_variance: float = 9.0,
        loss: Loss | None = None,
        draws: int = 1,
        fit_intercept: bool = True,
        sampler: Sampler | None = None,
        ledger: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.prior_variance = prior_variance
        self.loss = loss
        self.draws = draws
        self.fit_intercept = fit_intercept
        self.sampler = sampler
        self.ledger = ledger
        self.random_state = random_state

    @abstractmethod
    def _model(self, features: int) -> Model:
        """The model for this many columns, a constant one included."""

    def _planned(self, rows: int, columns: int, budget: Budget) -> Plan:
        mechanism = OnePosteriorSample(
            self._model(columns),
            loss=self.loss or BetaDivergence(),
            draws=self.draws,
            sampler=self.sampler,
        )
        return mechanism.plan(n=rows, budget=budget)

    def _fit(self, X: Array, y: Array) -> None:
        """Release, and keep the coefficients of every draw."""
        weights = self._release({"x": self._design(X), "y": y}).draws["w"]
        self.coefficients_ = weights[:, :-1] if self.fit_intercept else weights
        self.intercepts_ = weights[:, -1] if self.fit_intercept else np.zeros(len(weights))

    def _design(self, X: Array) -> Array:
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    def _predictors(self, X: ArrayLike) -> Array:
        """The linear predictor of every row under every draw."""
        return self._rows(X) @ self.coefficients_.T + self.intercepts_
