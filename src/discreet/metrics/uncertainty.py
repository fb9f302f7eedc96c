"""What doubt about a prediction is made of, from the predictions of many draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.metrics._arrays import Array, numbers


@dataclass(frozen=True)
class Uncertainty:
    """Two kinds of doubt per row.

    Attributes:
        epistemic: doubt about the parameters (paper N: posterior uncertainty).
        aleatoric: doubt that stays when they are known (paper N: data uncertainty).
    """

    epistemic: Array
    aleatoric: Array

    @property
    def total(self) -> Array:
        """Both parts."""
        return self.epistemic + self.aleatoric


def decompose_variance(means: ArrayLike, variances: ArrayLike) -> Uncertainty:
    """The law of total variance over draws, for an outcome that is a number.

    Epistemic is the variance over draws of the mean, with one less than the number
    of draws as the divisor; aleatoric the mean over draws of the variance.

    Args:
        means: (draws, rows) the outcome's mean under each draw.
        variances: (draws, rows) its variance.

    References: paper N, Appendix C.2; Depeweg et al. 2018.

    Example:
        >>> found = decompose_variance([[0.0], [2.0]], [[1.0], [3.0]])
        >>> float(found.epistemic[0]), float(found.aleatoric[0])
        (2.0, 2.0)
    """
    means, variances = numbers(means=means, variances=variances)
    if means.ndim < 2:
        raise ValueError(f"means must have leading axes draw and row, got shape {means.shape}; stack draws")
    if (variances < 0).any():
        raise ValueError(
            f"variances must be at least 0, got less in {np.count_nonzero(variances < 0)} places; "
            "pass variances"
        )
    between = means.var(axis=0, ddof=1) if len(means) > 1 else np.zeros(means.shape[1:])
    return Uncertainty(between, variances.mean(axis=0))


def decompose_entropy(probabilities: ArrayLike) -> Uncertainty:
    """Entropy of the mean prediction, in nats, split over draws; for an outcome with listed values.

    Aleatoric is the mean over draws of the entropy; epistemic the rest, the mutual
    information of outcome and parameters.

    Args:
        probabilities: (draws, rows, labels).

    References: Depeweg et al. 2018.

    Example:
        >>> sure_but_divided = decompose_entropy([[[1.0, 0.0]], [[0.0, 1.0]]])
        >>> round(float(sure_but_divided.epistemic[0]), 4), float(sure_but_divided.aleatoric[0])
        (0.6931, 0.0)
    """
    (p,) = numbers(probabilities=probabilities)
    if p.ndim != 3 or (p < 0).any():
        raise ValueError(
            f"probabilities must be at least 0 with axes draw, row and label, got shape {p.shape} or "
            "something negative; stack the predictions of draws"
        )
    within = _entropy(p).mean(axis=0)
    # Rounding can leave a negative mutual information of 1e-17.
    return Uncertainty(np.maximum(_entropy(p.mean(axis=0)) - within, 0.0), within)


def _entropy(p: Array) -> Array:
    return -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0), axis=-1)
