"""How good a prediction is: whether it is right, how sure, and whether it is right as often as it is sure.

NumPy only. Labels are whole numbers 0, 1, ..., probabilities have one row per
record and one column per label, as `Prediction.mean` has them.

A number computed here is a function of the records it was computed from. The
guarantee of a release covers predictions, not what they score on private
records: publish a score of records that are public, or that were put aside and
may be published.
"""

from discreet.metrics.calibration import Reliability, expected_calibration_error, maximum_calibration_error
from discreet.metrics.classification import accuracy, brier, log_score, negative_log_likelihood
from discreet.metrics.regression import (
    coverage,
    interval_score,
    mean_absolute_error,
    mean_squared_error,
    normal_interval,
    normal_log_score,
    rmse,
    width,
)
from discreet.metrics.uncertainty import Uncertainty, decompose_entropy, decompose_variance

__all__ = [
    "Reliability",
    "Uncertainty",
    "accuracy",
    "brier",
    "coverage",
    "decompose_entropy",
    "decompose_variance",
    "expected_calibration_error",
    "interval_score",
    "log_score",
    "maximum_calibration_error",
    "mean_absolute_error",
    "mean_squared_error",
    "negative_log_likelihood",
    "normal_interval",
    "normal_log_score",
    "rmse",
    "width",
]
