"""The auditor itself: bounds hold at their rate, are not blind, and contradict what is false."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import discreet as dc
from discreet.audit import Pair, Subject
from discreet.models.base import Records
from discreet.samplers.randomness import Randomness

ONE = Pair({"x": [0.0]}, {"x": [1.0]})


def noisy(scale: float, law: str) -> Subject:
    """The sum of records in [0, 1] with noise of the scale that the claim states."""

    def runs(records: Records, times: int, randomness: Randomness) -> NDArray[np.float64]:
        return records["x"].sum() + getattr(randomness.numpy(), law)(0.0, scale, (times, 1))

    price = {"laplace": dc.privacy.laplace, "normal": dc.privacy.gaussian}[law]
    return Subject(price(scale, sensitivity=1.0, neighbours="substitute"), runs, name=law)


def density(scale: float, law: str) -> Subject:
    """The same, with the best attack on it."""
    known = {"laplace": stats.laplace, "normal": stats.norm}[law]

    def score(pair: Pair):
        zero, one = (float(np.asarray(side["x"]).sum()) for side in pair.sides)
        return lambda out: (known.logpdf(out, zero, scale) - known.logpdf(out, one, scale))[:, 0]

    base = noisy(scale, law)
    return Subject(base.guarantee, base.draw_many, score, law)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("law", ["laplace", "normal"])
def test_the_audit_is_not_blind(law: str, epsilon: float) -> None:
    """Issue 8: at least 60% of the claim with 100,000 runs; here on each of the two data sets."""
    scale = 1 / epsilon
    if law == "normal":
        price = lambda sigma: dc.privacy.gaussian(sigma, sensitivity=1.0, neighbours="substitute")  # noqa: E731
        scale = dc.privacy.calibrate(price, dc.Budget(epsilon, 1e-5), (0.1, 100.0)).value
    found = dc.audit.membership(density(scale, law), ONE, trials=100_000, key=11)
    assert found.claim == pytest.approx(epsilon, rel=1e-6)
    assert found.passes
    assert 0.6 * epsilon <= found.epsilon <= epsilon
