# pyright: reportUnknownMemberType=false
"""A likelihood ratio learned from runs, for outputs whose density nobody knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from discreet.audit.subject import Outputs, Score, matrix

Array = NDArray[np.float64]
_ROWS, _COLUMNS = 30_000, 64


def learned(first: Outputs, second: Outputs, key: int) -> list[tuple[str, Score]]:
    """Scores that tell outputs of the first from those of the second: one smooth, one of trees.

    Args:
        first: outputs under the records.
        second: outputs under the neighbour.
        key: seed of the trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    ready = _preparation(np.concatenate([matrix(first), matrix(second)]), key)
    x = np.concatenate([ready(first)[:_ROWS], ready(second)[:_ROWS]])
    y = np.repeat([1, 0], [min(len(matrix(first)), _ROWS), min(len(matrix(second)), _ROWS)])
    degree = 2 if x.shape[1] <= 12 else 1
    smooth = make_pipeline(
        PolynomialFeatures(degree, include_bias=False),
        StandardScaler(),
        LogisticRegression(C=10.0, max_iter=1000, tol=1e-3),
    )
    trees = HistGradientBoostingClassifier(
        max_iter=60, min_samples_leaf=100, learning_rate=0.1, random_state=key % 2**32
    )
    with threadpool_limits(1):  # threads that wait for each other take many times as long on a busy machine
        models = [("learned, quadratic", smooth.fit(x, y)), ("learned, trees", trees.fit(x, y))]
    return [(name, _score(model, ready)) for name, model in models]


def _score(model: object, ready: Callable[[Outputs], Array]) -> Score:
    def score(outputs: Outputs) -> Array:
        with threadpool_limits(1):
            return np.asarray(model.decision_function(ready(outputs)), dtype=np.float64)  # pyright: ignore[reportAttributeAccessIssue]

    return score


def _preparation(x: Array, key: int) -> Callable[[Outputs], Array]:
    """Finite, centred and scaled, and no more columns than trees can take."""
    finite = np.where(np.isfinite(x), x, np.nan)
    with np.errstate(all="ignore"):
        middle = np.nan_to_num(np.nanmedian(finite, axis=0)) if finite.size else np.zeros(x.shape[1])
        spread = np.nan_to_num(np.nanstd(np.clip(finite - middle, -1e150, 1e150), axis=0))
    spread = np.where(spread > 0, spread, 1.0)
    mixing = None
    if x.shape[1] > _COLUMNS:
        mixing = np.random.default_rng(key).standard_normal((x.shape[1], _COLUMNS)) / np.sqrt(x.shape[1])

    def ready(outputs: Outputs) -> Array:
        rows = (matrix(outputs) - middle) / spread
        rows = np.clip(np.nan_to_num(rows, nan=40.0, posinf=50.0, neginf=-50.0), -50.0, 50.0)
        return rows if mixing is None else np.concatenate([rows @ mixing, rows[:, :8], rows[:, -8:]], axis=1)

    return ready
