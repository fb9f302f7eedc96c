"""Private logistic regression with scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logsumexp

from discreet.models.base import Model
from discreet.models.logistic import LogisticRegression
from discreet.models.losses import Loss
from discreet.samplers.posterior import Sampler
from discreet.sklearn.base import PrivateLinear, checked
from discreet.sklearn.labels import DeclaredLabels


class PrivateLogisticRegression(DeclaredLabels, PrivateLinear):
    """Logistic regression, one posterior sample (paper B), under substitution of one row.

    With the default loss, the beta-divergence, features need no bound. Every call
    of `fit` spends the budget anew; pass a ledger to keep count.

    Args:
        epsilon: what a fit may cost.
        delta: of the budget; 0 is pure.
        classes: the two labels, the positive one last. They are declared, because
            reading them off the table would tell that somebody with that label is
            in it.
        prior_variance: of each coefficient, the intercept's included.
        row_norm: rows (with the constant 1 of the intercept) are scaled down to this
            Euclidean norm. `Gibbs` is priced by it; the beta-divergence is not.
        loss: of discreet.models; None for the beta-divergence.
        draws: posterior draws to release; predictions average over them.
        fit_intercept: whether to add a constant feature.
        sampler: of discreet.samplers; None chooses.
        ledger: a discreet.Ledger.
        random_state: a whole number makes a fit reproducible, and whoever knows it
            can undo the noise.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).standard_normal((200, 2))
        >>> fitted = PrivateLogisticRegression(epsilon=5.0).fit(X, X[:, 0] > 0)
        >>> fitted.predict_proba(X).shape, fitted.release_.guarantee.epsilon(0) <= 5.0
        ((200, 2), True)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        classes: Sequence[Any] = (0, 1),
        prior_variance: float = 9.0,
        row_norm: float = 1e6,
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
        self.classes = classes
        self.row_norm = row_norm

    def _model(self, features: int) -> Model:
        return LogisticRegression(features, self.row_norm, 1 / self.prior_variance)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Spend the budget and keep private coefficients."""
        rows: Any
        rows, y = checked(self, X, y)
        self._fit(rows, self._codes(y, at_most=2))
        self.coef_ = self.coefficients_.mean(axis=0, keepdims=True)
        self.intercept_ = self.intercepts_.mean(keepdims=True)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log odds of the mean probability of the positive class."""
        z = self._predictors(X)
        return logsumexp(log_expit(z), axis=1) - logsumexp(log_expit(-z), axis=1)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the two classes, averaged over draws."""
        p = expit(self._predictors(X)).mean(axis=1)
        return np.column_stack([1 - p, p])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The more probable class."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]
