"""Refusals and warnings hold no private value: no cell of the table and, under add_remove, not its length."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.models import LogisticRegression, SoftmaxRegression, TruncatedPoissonRegression
from discreet.models.base import Model
from discreet.models.losses import Gibbs
from discreet.samplers.exact import ExactRegression
from discreet.samplers.posterior import SamplingError
from discreet.samplers.randomness import Randomness
from discreet.sklearn import BoundedScaler, PrivateLogisticRegression, PrivateRegressor

SECRET = 31337.25
WORD = "Mallory31337"


@pytest.mark.parametrize(
    "fit",
    [
        lambda: PrivateLogisticRegression().fit([[WORD, 1.0], [2.0, 3.0]], [0, 1]),
        lambda: PrivateRegressor().fit([[1.0], [2.0]], [WORD, "3"]),
        lambda: PrivateRegressor().fit([[1.0], [complex(SECRET, 1)]], [2.0, 3.0]),
        lambda: PrivateRegressor().fit([[1.0], [2.0]], [complex(SECRET, 1), 3.0]),
        lambda: BoundedScaler().fit([[WORD]]),
        lambda: BoundedScaler().fit([[0.5]]).transform([[WORD]]),
    ],
    ids=["classifier X", "regressor y", "complex X", "complex y", "scaler", "transform"],
)
def test_scikit_learn_errors_quote_no_value(fit: Callable[[], object]) -> None:
    """scikit-learn's own message quotes the first cell that is no number, or the whole table if complex."""
    with pytest.raises((TypeError, ValueError)) as refused:
        fit()
    error: BaseException | None = refused.value
    while error is not None:  # a logger may print what an error was raised from
        assert "31337" not in str(error)
        error = error.__context__


@pytest.mark.parametrize(
    "model", [LogisticRegression(2), SoftmaxRegression(2, 3), TruncatedPoissonRegression(2, largest=3)]
)
def test_a_row_too_long_for_a_float_is_clipped_in_silence(model: Model) -> None:
    """A warning would tell that somebody has such a row."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.validate({"x": [[1e200, -1e200], [0.3, 0.4]], "y": [1, 0]})
        BoundedScaler(-5e307, 5e307).fit([[0.0]]).transform([[1.7e308]])
    assert np.linalg.norm(found["x"][0]) <= 1.0


def test_a_refusal_at_release_does_not_tell_how_many_records_there_are() -> None:
    """Under add_remove the number is private, and no plan can have checked it."""
    model = LogisticRegression(features=2, prior_precision=1e-3)
    told: set[str] = set()
    for size in (310_000, 400_000):
        records: Any = {"x": np.ones((size, 2)), "y": np.ones(size)}
        for sampler in (ExactRegression(), ExactRegression(constant_time=False)):
            with pytest.raises(SamplingError) as refused:
                sampler.sample(model, Gibbs(0.01), records, Randomness(1), 1)
            assert refused.value.__context__ is None
            told.add(str(refused.value))
    assert len(told) == 1
