"""Scaling by declared bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet.sklearn.base import checked


class BoundedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Clip to declared bounds and map them to [0, 1]; nothing is read off the data.

    `MinMaxScaler` takes the bounds from the data, and with them the most extreme
    person of the table (ERRATA 16).

    Args:
        lower: the least value, one number or one per feature.
        upper: the greatest value, one number or one per feature.

    Example:
        >>> BoundedScaler(lower=0, upper=100).fit_transform([[50.0], [250.0]]).ravel().tolist()
        [0.5, 1.0]
    """

    def __init__(self, lower: ArrayLike = 0.0, upper: ArrayLike = 1.0) -> None:
        self.lower = lower
        self.upper = upper

    def fit(self, X: ArrayLike, y: object = None) -> BoundedScaler:  # noqa: ARG002
        """Check the shape; the values play no part."""
        rows: Any = checked(self, X)
        lower, upper = (
            np.broadcast_to(np.asarray(v, dtype=float), rows.shape[1:]) for v in (self.lower, self.upper)
        )
        if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
            raise ValueError(
                "lower must be finite and below upper in every feature, got otherwise; declare both"
            )
        self.lower_, self.width_ = np.array(lower), np.array(upper - lower)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """The scaled, clipped features."""
        check_is_fitted(self)
        rows: Any = checked(self, X, reset=False)
        return np.clip(
            (np.clip(rows, self.lower_, self.lower_ + self.width_) - self.lower_) / self.width_, 0.0, 1.0
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
