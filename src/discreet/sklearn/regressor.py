"""Private linear regression with scikit-learn's manners."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from discreet.models.base import Model
from discreet.models.linear import LinearRegression
from discreet.models.losses import Loss
from discreet.samplers.posterior import Sampler
from discreet.sklearn.base import PrivateLinear, checked


class PrivateRegressor(RegressorMixin, PrivateLinear):
    """Linear regression, one posterior sample (paper B), under substitution of one row.

    With the beta-divergence neither features nor outcome need bounds; the residual
    variance needs a lower one.

    Args:
        epsilon: what a fit may cost.
        delta: of the budget; 0 is pure.
        lower_variance: public lower bound on the residual variance, in the outcome's
            unit squared.
        prior_variance: of each coefficient, in units of the residual variance.
        loss: of discreet.models; None for the beta-divergence.
        draws: posterior draws to release; predictions average over them.
        fit_intercept: whether to add a constant feature.
        sampler: of discreet.samplers; None chooses.
        ledger: a discreet.Ledger.
        random_state: a whole number makes a fit reproducible, and whoever knows it
            can undo the noise.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        lower_variance: float = 0.01,
        prior_variance: float = 9.0,
        loss: Loss | None = None,
        draws: int = 1,
        fit_intercept: bool = True,
        sampler: Sampler | None = None,
        ledger: Any = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            prior_variance=prior_variance,
            loss=loss,
            draws=draws,
            fit_intercept=fit_intercept,
            sampler=sampler,
            ledger=ledger,
            random_state=random_state,
        )
        self.lower_variance = lower_variance

    def _model(self, features: int) -> Model:
        return LinearRegression(features, self.prior_variance, self.lower_variance)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Spend the budget and keep private coefficients."""
        rows: Any
        rows, outcomes = checked(self, X, y, y_numeric=True)
        self._fit(rows, outcomes)
        self.coef_ = self.coefficients_.mean(axis=0)
        self.intercept_ = float(self.intercepts_.mean())
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The mean outcome, averaged over draws."""
        return self._predictors(X).mean(axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
