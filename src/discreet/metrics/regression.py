"""Scores of predicted numbers and of intervals for them."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from discreet.metrics._arrays import Array, numbers
from discreet.privacy import checks


def mean_squared_error(y: ArrayLike, mean: ArrayLike) -> float:
    """Mean squared distance of the predicted means from the outcomes."""
    y, mean = numbers(y=y, mean=mean)
    return float(np.mean((y - mean) ** 2))


def rmse(y: ArrayLike, mean: ArrayLike) -> float:
    """Square root of the mean squared error, in the outcome's unit."""
    return math.sqrt(mean_squared_error(y, mean))


def mean_absolute_error(y: ArrayLike, mean: ArrayLike) -> float:
    """Mean distance of the predicted means from the outcomes."""
    y, mean = numbers(y=y, mean=mean)
    return float(np.mean(np.abs(y - mean)))


def normal_interval(mean: ArrayLike, variance: ArrayLike, *, level: float = 0.9) -> tuple[Array, Array]:
    """Lower and upper ends of central intervals of normals.

    With `Prediction.total` as the variance these are predictive intervals; with
    `Prediction.epistemic`, intervals for the mean.

    Example:
        >>> lower, upper = normal_interval([0.0], [1.0], level=0.95)
        >>> print(round(upper[0], 2))
        1.96
    """
    checks.real("level", level, above=0.0, below=1.0)
    mean, variance = numbers(mean=mean, variance=variance)
    _positive(variance, "at least 0", strict=False)
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variance)
    return mean - half, mean + half


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """How many outcomes lie in their interval, ends included, relative; compare it with the level."""
    y, lower, upper = _interval(y, lower, upper)
    return float(np.mean((lower <= y) & (y <= upper)))


def width(lower: ArrayLike, upper: ArrayLike) -> float:
    """Mean width of intervals: of two that cover alike, the narrower is better."""
    _, lower, upper = _interval(lower, lower, upper)
    return float(np.mean(upper - lower))


def interval_score(y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, level: float = 0.9) -> float:
    """Mean width plus 2 / (1 - level) for every unit by which an outcome lies outside; lower is better.

    A proper score of central intervals: it weighs coverage against width.

    References: Gneiting & Raftery 2007, equation 43.
    """
    checks.real("level", level, above=0.0, below=1.0)
    y, lower, upper = _interval(y, lower, upper)
    outside = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return float(np.mean(upper - lower + 2 / (1 - level) * outside))


def normal_log_score(y: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Mean log density of the outcomes under normals; higher is better."""
    y, mean, variance = numbers(y=y, mean=mean, variance=variance)
    _positive(variance, "above 0", strict=True)
    return float(np.mean(-0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)))


def _interval(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array, Array]:
    y, lower, upper = numbers(y=y, lower=lower, upper=upper)
    crossed = np.count_nonzero(lower > upper)
    if crossed:
        raise ValueError(f"lower must be at most upper, got more in {crossed} rows; exchange them")
    return y, lower, upper


def _positive(variance: Array, allowed: str, *, strict: bool) -> None:
    bad = np.count_nonzero(variance <= 0 if strict else variance < 0)
    if bad:
        raise ValueError(f"variance must be {allowed}, got less in {bad} rows; pass variances")
