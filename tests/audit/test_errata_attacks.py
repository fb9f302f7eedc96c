"""ERRATA 1, 2 and 6: the published claims, violated by attack; ours, under the same attack, are not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr

import discreet as dc
from discreet.audit import Found, Pair, Subject, membership
from discreet.mechanisms.one_posterior_sample import paper_epsilon
from discreet.mechanisms.output_perturbation import as_published_scale
from discreet.models.base import Records
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]


def grid_subject(claim: dc.privacy.Guarantee, posterior) -> Subject:
    """Exact draws of a posterior on a grid: cell numbers, by inversion, and the best attack on them."""
    laws: dict[bytes, Array] = {}

    def law(records: Records) -> Array:
        key = b"".join(np.asarray(v).tobytes() for v in records.values())
        if key not in laws:
            logs = posterior(records)
            p = np.exp(logs - logs.max())
            laws[key] = p / p.sum()
        return laws[key]

    def draw(records: Records, runs: int, randomness: Randomness) -> Array:
        cells = np.searchsorted(np.cumsum(law(records)), randomness.numpy().random(runs))
        return np.minimum(cells, len(law(records)) - 1)[:, None].astype(np.float64)

    def score(pair: Pair):
        ratio = np.log(law(dict(pair.records)) + 1e-300) - np.log(law(dict(pair.neighbour)) + 1e-300)  # pyright: ignore[reportArgumentType]
        return lambda cells: ratio[cells[:, 0].astype(int)]

    return Subject(claim, draw, score, "a posterior on a grid")


# --- 1 ------------------------------------------------------------------------------


def test_erratum_1_output_perturbation_as_published() -> None:
    """p = 10, n = 100, lambda = 1/9: a claimed epsilon of 1 is really 4.09."""
    model = dc.models.LogisticRegression(10, row_norm=math.sqrt(10))
    plan = dc.mechanisms.OutputPerturbation(model, 1 / 9, norm="coordinates").plan(100, budget=dc.Budget(1.0))  # pyright: ignore[reportArgumentType]
    x = np.zeros((100, 10))
    x[0] = 1.0
    one, other = np.zeros(100), np.zeros(100)
    one[0] = 1.0
    pair = Pair({"x": x, "y": one}, {"x": x, "y": other}, "ERRATA 1")
    published = replace(plan, parameters={**plan.parameters, "scale": as_published_scale(100, 1 / 9, 1.0)})
    found = membership(published, pair, trials=40_000, key=1)
    assert found.epsilon > 2
    assert not found.passes
    assert found.contradicted is not None
    assert membership(plan, pair, trials=40_000, key=1).passes


# --- 2 ------------------------------------------------------------------------------


def regression_on_a_grid(b: float, weight: float):
    """Paper B's regression, one coefficient and x = 1, loss weight * l_beta, on a grid of (w, sigma^2)."""
    w = np.linspace(-4, 4, 401)[:, None]
    u = np.linspace(-9, 4, 261)[None, :]
    variance = 0.01 + np.exp(u)
    prior = (
        -2 * np.log(variance) - 1 / variance + u - 0.5 * w**2 / (9 * variance) - 0.5 * np.log(9 * variance)
    )

    def posterior(records: Records) -> Array:
        total = prior - weight * len(records["y"]) * (2 * np.pi * variance) ** (-b / 2) * (1 + b) ** -1.5
        for y, times in zip(*np.unique(records["y"], return_counts=True), strict=True):
            density = np.exp(-((y - w) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
            total = total + weight * times * density**b / b
        return total.ravel()

    return posterior


def two_clusters(n: int) -> Pair:
    """As many records at 2 as at -2, but for one that moves: the posterior takes a side."""
    y = np.repeat([2.0, -2.0], [n // 2, n // 2])
    other = y.copy()
    other[0] = -2.0
    return Pair({"y": np.append(y, 2.0)}, {"y": np.append(other, 2.0)}, "two clusters")


def attacked(b: float, weight: float, claim: float) -> Found:
    pair = two_clusters(80)
    guarantee = dc.privacy.pure(claim, neighbours="substitute")
    return membership(grid_subject(guarantee, regression_on_a_grid(b, weight)), pair, trials=40_000, key=2)


def test_erratum_2_calibration_by_the_public_code() -> None:
    """b from 2 M^b / b = 1 with M at the prior variance 9: by its own theorem 7.65 at the bound 0.01."""
    wrong, right = (1 / math.sqrt(2 * math.pi * v) for v in (9.0, 0.01))
    b = brentq(lambda b: 2 * wrong**b / b - 1, 0.01, 5.0)
    assert round(paper_epsilon(1 + b, right), 2) == 7.65
    found = attacked(b, 1.0, 1.0)
    assert found.epsilon > 1.5
    assert not found.passes
    # The corrected form, w * l_beta with 2 w M^b / b = 1, on the same records.
    weight = b / (2 * right**b)
    assert attacked(b, weight, 1.0).passes


# --- 6 ------------------------------------------------------------------------------


def binary_on_a_grid(log_probability, precision: float):
    """One coefficient, prior N(0, 1 / precision), outcomes 0 and 1."""
    w = np.linspace(-5, 25, 60_001)

    def posterior(records: Records) -> Array:
        total = -0.5 * precision * w**2
        rows, times = np.unique(np.stack([records["x"], records["y"]]), axis=1, return_counts=True)
        for (x, y), count in zip(rows.T, times, strict=True):
            total = total + count * log_probability((2 * y - 1) * x * w)
        return total

    return posterior


def test_erratum_6_probit_by_theorem_16() -> None:
    """B = 1 for probit: records that pull w to where the score of one more is large break the claim."""
    n, precision = 4600, 11.0
    x, y = np.full(n, 0.1), np.ones(n)
    x[0] = 1.0
    other = y.copy()
    other[0] = 0.0
    pair = Pair({"x": x, "y": y}, {"x": x, "y": other}, "ERRATA 6")
    mu = 2 / math.sqrt(precision)
    claims = {
        "Theorem 16": dc.privacy.renyi(lambda order: order * mu**2 / 2, neighbours="substitute"),
        "its exact curve": dc.privacy.gaussian(1 / mu, neighbours="substitute"),
    }
    for claim in claims.values():
        thing = grid_subject(claim, binary_on_a_grid(log_ndtr, precision))
        found = membership(thing, pair, trials=40_000, key=3)
        assert not found.passes
        assert found.epsilon > found.claim
    logistic = grid_subject(
        claims["its exact curve"], binary_on_a_grid(lambda z: -np.logaddexp(0, -z), precision)
    )
    assert membership(logistic, pair, trials=40_000, key=3).passes
