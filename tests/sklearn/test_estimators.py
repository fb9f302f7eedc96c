"""scikit-learn's own checks, pipelines, clones, and one real fit."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from discreet.models.base import Model, Records
from discreet.models.losses import Loss
from discreet.privacy import Evidence
from discreet.samplers import Randomness
from discreet.samplers.posterior import Sampled
from discreet.sklearn import BoundedScaler, PrivateLogisticRegression, PrivateRegressor


@dataclass(frozen=True)
class Stub:
    """A least-squares fit with a little noise: the checks are about manners, not posteriors."""

    distance: float = 0.0
    evidence: tuple[Evidence, ...] = ()

    def refusal(self, model: Model, loss: Loss) -> str | None:  # noqa: ARG002
        return None

    def sample(
        self,
        model: Model,
        loss: Loss,  # noqa: ARG002
        records: Records,
        randomness: Randomness,
        draws: int,
    ) -> Sampled:
        x, y = records["x"], records["y"]
        w = np.linalg.lstsq(np.vstack([x, 1e-3 * np.eye(x.shape[1])]), np.r_[y - 0.5, np.zeros(x.shape[1])])[
            0
        ]
        noisy = w + 1e-6 * randomness.numpy().standard_normal((draws, len(w)))
        rest = {k: np.zeros(draws) for k in model.parameter_shapes if k != "w"}
        return Sampled({"w": noisy, **rest})


NEEDS_CLASSES = "labels are declared with `classes`, never read off the data"
EXPECTED = dict.fromkeys(
    (
        "check_estimators_dtypes",
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_fit2d_1feature",
    ),
    NEEDS_CLASSES,
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (PrivateLogisticRegression(epsilon=5.0, sampler=Stub()), EXPECTED),
        (PrivateRegressor(epsilon=5.0, sampler=Stub()), {}),
        (BoundedScaler(), {}),
    ],
    ids=lambda v: type(v).__name__,
)
def test_check_estimator(estimator: Any, expected: dict[str, str]) -> None:
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None)
    failed = [f"{r['check_name']}: {r['exception']!r}" for r in results if r["status"] == "failed"]
    assert failed == []


def test_a_real_fit_in_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 100, (400, 2))
    y = np.where(x[:, 0] + rng.normal(0, 10, 400) > 50, "yes", "no")
    pipe: Any = make_pipeline(
        BoundedScaler(lower=0, upper=100),
        PrivateLogisticRegression(epsilon=10.0, classes=("no", "yes"), random_state=3),
    )
    copy: Any = clone(pipe)
    assert pipe.fit(x, y).score(x, y) > 0.8
    chances = pipe.predict_proba(x)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert set(pipe.predict(x)) <= {"no", "yes"}
    np.testing.assert_array_equal(copy.fit(x, y).predict_proba(x), chances)
    release = pipe[-1].release_
    assert release.guarantee.epsilon(0) <= 10.0
    assert math.isclose(release.guarantee.epsilon(0), 10.0, rel_tol=1e-9)


def test_undeclared_labels_are_refused_without_naming_them() -> None:
    with pytest.raises(ValueError, match="got others in 2 rows") as caught:
        PrivateLogisticRegression(sampler=Stub()).fit([[0.0], [1.0], [2.0]], [0, 7, 7])
    assert "7" not in str(caught.value)
