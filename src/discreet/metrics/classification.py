"""Scores of predicted probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from discreet.metrics._arrays import classified


def accuracy(y: ArrayLike, probabilities: ArrayLike) -> float:
    """How often the most probable label is the true one; of equals, the first.

    Example:
        >>> accuracy([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
        0.6666666666666666
    """
    labels, p = classified(y, probabilities)
    return float(np.mean(p.argmax(axis=1) == labels))


def log_score(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean log probability of the true label, in nats; higher is better, 0 is best.

    A proper score: nobody does better in expectation than by saying what they
    believe. Minus infinity if a label came true that had probability 0.

    References: Gneiting & Raftery 2007.
    """
    labels, p = classified(y, probabilities)
    with np.errstate(divide="ignore"):
        return float(np.mean(np.log(p[np.arange(len(p)), labels])))


def negative_log_likelihood(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Minus the log score: the loss that networks are trained by."""
    return -log_score(y, probabilities)


def brier(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean squared distance of the probabilities from the label's indicator; between 0 (best) and 2.

    Summed over labels, as Brier has it: for a yes or no this is twice the score
    that looks at one column.

    Example:
        >>> brier([1], [[0.5, 0.5]])
        0.5

    References: Brier 1950; Gneiting & Raftery 2007.
    """
    labels, p = classified(y, probabilities)
    return float(np.mean((p**2).sum(axis=1) - 2 * p[np.arange(len(p)), labels] + 1))
