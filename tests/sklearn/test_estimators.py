"""scikit-learn's own checks, pipelines, clones, and one real fit."""

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from discreet import privacy
from discreet.mechanisms.base import Drawn, Mechanism, Plan
from discreet.models.base import Model, Records
from discreet.models.losses import Loss
from discreet.models.network_outcomes import Categories
from discreet.models.prediction import Prediction
from discreet.privacy import Budget, Evidence
from discreet.samplers import Randomness
from discreet.samplers.posterior import Sampled
from discreet.sklearn import (
    BoundedScaler,
    PrivateLogisticRegression,
    PrivateMLPClassifier,
    PrivateMLPRegressor,
    PrivateRegressor,
)


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


@dataclass(frozen=True)
class StubSteps(Mechanism):
    """Least squares with a little noise, as a network of one dense layer."""

    model: Any

    def plan(self, *, n: int, batch: int, steps: int, budget: Budget) -> Plan:
        assert batch <= n
        cost = privacy.gaussian(50.0, neighbours="substitute")
        assert cost.fits(budget)
        return Plan(self, n, cost, (), {"steps": steps})

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:  # noqa: ARG002
        x, y = records["x"], records["y"]
        shape = self.model.parameter_shapes["dense_0_weight"]
        wide = np.column_stack([x, np.ones(len(x)), 1e-3 * np.ones(len(x))])
        two = isinstance(self.model.outcome, Categories)
        target = 4 * (y[:, None] == np.arange(shape[1])) if two else np.column_stack([y, np.zeros_like(y)])
        w = np.linalg.lstsq(wide, target, rcond=1e-9)[0] + 1e-6 * randomness.numpy().standard_normal(shape[1])
        return Drawn({"dense_0_weight": w[None, :-2], "dense_0_bias": w[None, -2] + 1e-3 * w[None, -1]})


class _Quick:
    """Predictions of the stub without compiling one for each of the checks' hundred tables."""

    def _prediction(self, X: Any) -> Prediction:
        rows = self._rows(X)  # pyright: ignore[reportAttributeAccessIssue]
        draws = self.release_.draws  # pyright: ignore[reportAttributeAccessIssue]
        output = rows @ draws["dense_0_weight"][0] + draws["dense_0_bias"][0]
        if isinstance(self, PrivateMLPRegressor):
            return Prediction(output[:, 0], np.zeros(len(rows)), np.ones(len(rows)))
        return Prediction(softmax(output, axis=1), np.zeros(len(rows)), np.zeros(len(rows)))


class QuickClassifier(_Quick, PrivateMLPClassifier):
    """With the stub's predictions."""


class QuickRegressor(_Quick, PrivateMLPRegressor):
    """With the stub's predictions."""


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
        (QuickClassifier(epsilon=5.0, hidden_layer_sizes=(), mechanism=StubSteps), EXPECTED),
        (QuickRegressor(epsilon=5.0, hidden_layer_sizes=(), mechanism=StubSteps), {}),
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


def test_a_network_learns_what_no_line_can() -> None:
    """Exclusive or of two features, three labels declared, one of them absent."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 100, (4000, 2))
    y = np.where((x[:, 0] > 50) ^ (x[:, 1] > 50), "odd", "even")
    pipe: Any = make_pipeline(
        BoundedScaler(lower=0, upper=100),
        FunctionTransformer(lambda scaled: 4 * scaled - 2),
        PrivateMLPClassifier(
            epsilon=8.0,
            classes=("even", "none", "odd"),
            hidden_layer_sizes=(32,),
            prior_sd=1.0,
            steps=150,
            random_state=3,
        ),
    )
    copy: Any = clone(pipe)
    assert pipe.fit(x, y).score(x, y) > 0.85  # a line is right about half of the time
    chances = pipe.predict_proba(x)
    assert chances.shape == (4000, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-5)
    assert chances[:, 1].mean() < 0.1
    np.testing.assert_array_equal(copy.fit(x, y).predict_proba(x), chances)
    assert pipe[-1].release_.guarantee.epsilon(1e-6) <= 8.0
    assert pipe[-1].plan_.size == 4000


def test_a_network_of_numbers_tells_its_spread() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (3000, 1))
    y = 50 + 20 * np.abs(x[:, 0]) + np.where(x[:, 0] > 0, 8.0, 1.0) * rng.standard_normal(3000)
    fitted = PrivateMLPRegressor(
        epsilon=8.0,
        centre=50.0,
        scale=20.0,
        hidden_layer_sizes=(32,),
        prior_sd=1.0,
        steps=200,
        random_state=4,
    ).fit(x, y)
    assert fitted.score(x, y) > 0.3
    mean, sd = cast("tuple[Any, Any]", fitted.predict(np.array([[-0.8], [0.8]]), return_std=True))
    np.testing.assert_allclose(mean, [66, 66], atol=6)
    assert sd[1] > 1.5 * sd[0]


def test_what_networks_refuse() -> None:
    with pytest.raises(ValueError, match="classes must be two or more different labels"):
        PrivateMLPClassifier(classes=(1, 1)).fit([[0.0], [1.0]], [1, 1])
    with pytest.raises(
        ValueError, match=r"y must hold the declared classes \[0, 1, 2\], got others in 1 rows"
    ):
        PrivateMLPClassifier(classes=(0, 1, 2)).fit([[0.0], [1.0]], [1, 7])
