"""What the estimators share: a plan, a release, coefficients."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.mechanisms.one_posterior_sample import OnePosteriorSample
from discreet.models.base import Model
from discreet.models.losses import BetaDivergence, Loss
from discreet.privacy import Budget
from discreet.samplers.posterior import Sampler

Array = NDArray[np.float64]


class PrivateLinear(BaseEstimator):
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

    def _release(self, X: Array, y: Array) -> Self:
        """Plan, spend, release; keep what may be published."""
        if self.random_state is not None and not isinstance(self.random_state, int | np.integer):
            raise ValueError(
                f"random_state must be None or a whole number, got {type(self.random_state).__name__}; "
                "a generator cannot be recorded"
            )
        design = self._design(X)
        mechanism = OnePosteriorSample(
            self._model(design.shape[1]),
            loss=self.loss or BetaDivergence(),
            draws=self.draws,
            sampler=self.sampler,
        )
        self.plan_ = mechanism.plan(n=len(y), budget=Budget(self.epsilon, self.delta))
        key = None if self.random_state is None else int(self.random_state)
        self.release_ = self.plan_.release({"x": design, "y": y}, key=key, ledger=self.ledger)
        weights = self.release_.draws["w"]
        self.coefficients_ = weights[:, :-1] if self.fit_intercept else weights
        self.intercepts_ = weights[:, -1] if self.fit_intercept else np.zeros(len(weights))
        return self

    def _design(self, X: Array) -> Array:
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    def _predictors(self, X: ArrayLike) -> Array:
        """The linear predictor of every row under every draw."""
        check_is_fitted(self)
        rows: Any = validate_data(self, cast("Any", X), dtype=np.float64, reset=False)
        return rows @ self.coefficients_.T + self.intercepts_
