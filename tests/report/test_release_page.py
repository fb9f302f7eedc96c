"""The page of a release: what it says of plan, price, evidence and parameters."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.privacy import Sensitive
from discreet.report import _cost, _parameters, release, write
from discreet.report._about import about
from discreet.report._forecast import forecast

STUDY = {
    "title": "Is <b>smoking</b> bad?",
    "authors": ["A. & B."],
    "features": ["age", "smoker=yes"],
    "delta": 1e-7,
}


@pytest.fixture(scope="module")
def logistic() -> dc.Release:
    g = np.random.default_rng(0)
    x = g.standard_normal((400, 2))
    mechanism = dc.mechanisms.DiffusedPosterior(dc.models.LogisticRegression(2), draws=30)
    plan = mechanism.plan(400, budget=dc.Budget(3.0, 1e-6))
    return plan.release({"x": x, "y": (x[:, 0] > 0).astype(float)}, key=1)


def words(page: str) -> str:
    """What is read on a page."""
    body = re.sub(r"<(style|svg).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_a_page_says_what_a_reader_must_know(logistic: dc.Release, tmp_path: Path) -> None:
    secret = {"acceptance_rate": Sensitive(0.73125, "acceptance rate")}
    studied = dataclasses.replace(
        logistic, provenance={**logistic.provenance, "study": STUDY}, diagnostics=secret
    )
    folder = studied.save(tmp_path / "a")
    (folder / "receipt.json").write_text(json.dumps({"position": 7, "dataset": "clinic"}))
    page = write(folder).read_text()
    assert page == write(folder).read_text()
    told = words(page)
    assert "<h1>Is &lt;b&gt;smoking&lt;/b&gt; bad?</h1>" in page
    assert "By A. &amp; B." in told
    epsilon = logistic.guarantee.epsilon(1e-7)
    assert (
        f"<b>{math.ceil(epsilon * 1000) / 1000:.3f}</b><span>epsilon, at most, at delta 1e-7</span>" in page
    )
    for claim in logistic.evidence:
        assert re.sub(r"\s+", " ", claim.claim.replace("'", "&#x27;")) in told
    assert "w[age]" in told
    assert "w[smoker=yes]" in told
    assert "whoever knows it can undo the noise" in told  # it was seeded
    assert "entry 7 of the ledger of clinic" in told
    assert logistic.provenance["plan_hash"] in told
    assert "Geumlek, Song &amp; Chaudhuri 2017" in told
    assert page.count("<svg") == 3  # two parameters and the curve
    assert "acceptance" not in page.lower()
    assert "0.73125" not in page


def test_every_mechanism_has_words_and_references() -> None:
    names = [name for name in dc.mechanisms.__all__ if hasattr(getattr(dc.mechanisms, name), "plan")]
    assert len(names) >= 10
    for name in names:
        found = about(name)
        assert found is not None
        assert found.sentence.endswith(".")
        assert "\n" not in found.sentence + found.definition
        assert found.references, name
        assert not any(re.search(r"docs/|ERRATA|>>>", reference) for reference in found.references)
    assert about("Plan") is None or about("Nothing") is None


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "inexact", "nothing"])
def test_any_guarantee_has_a_page(mechanism: str, logistic: dc.Release) -> None:
    p = dc.privacy
    guarantee = {
        "gaussian": p.gaussian(1.0, neighbours="substitute"),
        "laplace": p.laplace(1.0, neighbours="substitute"),
        "inexact": p.pure(1.0, neighbours="substitute") + p.inexact(1e-4, neighbours="substitute"),
        "nothing": p.nothing(neighbours="substitute"),
    }[mechanism]
    page = release.render(dataclasses.replace(logistic, guarantee=guarantee))
    assert "nan" not in words(page).split()
    assert "inf" not in words(page).split()


def test_the_stated_delta_is_the_study_s_or_zero_or_small_for_n() -> None:
    p = dc.privacy
    gaussian, laplace = (p.gaussian(1.0, neighbours="substitute"), p.laplace(1.0, neighbours="substitute"))
    assert _cost.headline_delta(gaussian, 100, 1e-3) == 1e-3
    assert _cost.headline_delta(laplace, 100, None) == 0
    assert _cost.headline_delta(gaussian, 100, None) == 1e-5
    assert _cost.headline_delta(gaussian, 20_000, None) == 1e-6
    assert _cost.headline_delta(gaussian, None, None) == 1e-6
    assert _cost.headline_delta(gaussian, 100, 0.0) == 1e-5  # there is no epsilon at the delta asked for


@pytest.mark.parametrize("number", [0, 1, 50])
def test_parameters_are_shown_whatever_their_number_of_draws(number: int, logistic: dc.Release) -> None:
    draws = {"w": np.random.default_rng(1).standard_normal((number, 2)), "flat": np.ones(number)}
    shown = dataclasses.replace(logistic, draws=draws, model=None)
    found = list(_parameters.parameters(shown, ["age", "dose"]))
    assert [p.name for p in found] == ["w[age]", "w[dose]", "flat"]
    page = "".join(_parameters.released(found))
    assert page.count("<svg") == (3 if number else 0)
    assert ("No draw was released" in page) is (number == 0)
    assert ("95 %" in page) is (number == 50)


def test_of_many_parameters_the_first_are_shown(logistic: dc.Release) -> None:
    many = dataclasses.replace(logistic, draws={"w": np.zeros((300, 15, 20))}, model=None)
    found = list(_parameters.parameters(many, []))
    assert found[21].name == "w[1, 1]"
    page = "".join(_parameters.released(found))
    assert page.count("<svg") == 24
    assert "100 more parameters are in posterior.nc" in page


def test_a_chain_is_shown_on_the_scale_people_read() -> None:
    model = dc.models.LinearRegression(1)
    chain = dc.mechanisms.BarkerMCMC(model, dc.mechanisms.RandomWalk(0.1))
    plan = chain.plan(n=50, steps=30, batch=50)
    drawn = plan.release({"x": np.ones((50, 1)), "y": np.linspace(-1, 1, 50)}, key=2)
    assert set(drawn.draws) == {"w", "log_excess_variance"}
    found = {p.name: p for p in _parameters.parameters(drawn, [])}
    assert set(found) == {"w[0]", "variance"}
    np.testing.assert_allclose(found["variance"].draws, 0.01 + np.exp(drawn.draws["log_excess_variance"]))
    prior = found["variance"].prior
    assert prior is not None
    assert prior.min() > 0.01


# --- forecasts ------------------------------------------------------------------------------------


def forecast_of(plan: Any) -> Any:
    return forecast(json.loads(plan.to_json()), plan.mechanism.model)


def saved(mechanism: str, size: int, **parameters: Any) -> dict[str, Any]:
    """A plan as it is saved, in what a forecast reads."""
    settings = {"mechanism": mechanism, "loss": {"loss": parameters.pop("loss", None)}}
    return {"settings": settings, "size": size, "parameters": parameters}


def test_the_width_of_a_conjugate_posterior_is_forecast() -> None:
    model, n = dc.models.BetaBernoulli((2, 2)), 1000
    for weight, concentration in ((0.1, 1.0), (1.0, 0.005), (0.05, 1.0)):
        etas = [
            model.posterior_eta(np.array([n / 2]), n, weight=w, concentration=m)
            for w, m in ((weight, concentration), (1.0, 1.0))
        ]
        private, public = (
            math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1))) for a, b in ((e[0], e[1] - e[0]) for e in etas)
        )
        plan = saved("DiffusedPosterior", n, weight=weight, concentration=concentration)
        found = forecast(plan, model)
        assert found is not None
        assert found.width == pytest.approx(private / public, rel=0.02)
        assert found.records == pytest.approx(n / (private / public) ** 2, rel=0.03)


def test_the_width_of_a_logistic_posterior_is_forecast() -> None:
    """Against the curvature of the losses at w = 0, where every outcome has probability one half."""
    g, n, d = np.random.default_rng(1), 4000, 3
    x = g.standard_normal((n, d))
    x *= 2.0 / np.linalg.norm(x, axis=1)[:, None]
    model = dc.models.LogisticRegression(d, row_norm=2.0, prior_precision=1 / 9)

    def width(weight: float, beta: float) -> float:
        # The second derivative of the mean loss: sum over outcomes of p^beta times the squared score.
        curvature = weight * 2 * 0.5**beta * 0.25 * x.T @ x + np.eye(d) / 9
        return float(np.sqrt(np.trace(np.linalg.inv(curvature)) / d))

    for loss, weight, beta in (("BetaDivergence", 0.02, 2.5), ("Gibbs", 0.004, 1.0)):
        found = forecast(saved("OnePosteriorSample", n, weight=weight, beta=beta, loss=loss), model)
        assert found is not None
        assert found.width == pytest.approx(width(weight, beta) / width(1.0, 1.0), rel=0.02)


def test_the_width_under_noise_is_forecast() -> None:
    model, n = dc.models.BetaBernoulli((1, 1)), 400
    plan = dc.mechanisms.PerturbedStatistics(model, draws=4000).plan(n, budget=dc.Budget(0.5, 1e-6))
    drawn = plan.release({"x": [0, 1] * (n // 2)}, key=5)
    own = math.sqrt(0.25 / (n + 3))
    # The noise-aware posterior's spread varies with the noise that was drawn; 4,000 draws tell it to 3 %.
    assert forecast_of(plan).width == pytest.approx(drawn.draws["probability"].std() / own, rel=0.1)
    logistic = dc.models.LogisticRegression(5)
    for norm in ("euclidean", "coordinates"):
        output = dc.mechanisms.OutputPerturbation(logistic, 0.1, norm=norm).plan(n, budget=dc.Budget(1.0))  # pyright: ignore[reportArgumentType]
        own = 1 / math.sqrt(n * (0.1 + 1 / 20))
        g = np.random.default_rng(3)
        from discreet.mechanisms import output_perturbation

        noise = output_perturbation._NOISE[output_perturbation.Norm(norm)]
        spread = noise(g, (20_000, 5), float(output.parameters["scale"])).std()  # pyright: ignore[reportArgumentType]
        assert forecast_of(output).width == pytest.approx(math.hypot(own, spread) / own, rel=0.03)


def test_a_tempered_chain_is_as_wide_as_its_records_make_it() -> None:
    chain = dc.mechanisms.BarkerMCMC(
        dc.models.GaussianMixture(), dc.mechanisms.RandomWalk(0.1), tempered_size=100
    )
    found = forecast_of(chain.plan(n=10_000, steps=10))
    assert (found.width, found.records) == (10.0, 100)


def test_nothing_is_forecast_where_nothing_is_known() -> None:
    sample = dc.mechanisms.OnePosteriorSample(dc.models.LogisticRegression(2))
    assert forecast_of(sample.plan(budget=dc.Budget(1.0))) is None  # n is private
    plan = json.loads(sample.plan(10, budget=dc.Budget(1.0)).to_json())
    assert forecast(plan, None) is None
