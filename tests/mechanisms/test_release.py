"""A release on disk, in ArviZ, and as a prediction."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import discreet as dc
from discreet.models import base, prediction
from discreet.models.logistic import OutOfRange
from discreet.models.saved import rebuild
from discreet.privacy import Sensitive

CATALOGUE = [
    dc.models.LogisticRegression(2, prior_precision=0.5),
    dc.models.ProbitRegression(2),
    dc.models.PoissonRegression(2, prior_precision=4.0),
    dc.models.SoftmaxRegression(2, 3),
    dc.models.LinearRegression(2, variance_shape=3.0),
    dc.models.NeuralClassification(2, hidden=2),
    dc.models.NeuralRegression(2, hidden=2, variance_shape=3.0),
    dc.models.GaussianMixture(),
    dc.models.BetaBernoulli((6, 12)),
    dc.models.DirichletCategorical((1.0, 2.0, 3.0)),
    dc.models.GammaPoisson((3, 2), largest=5),
    dc.models.NormalKnownVariance((0.0, 1.0), 2.0, limits=(1.0, 2.0), out_of_range=OutOfRange.REFUSE),
    dc.models.NormalInverseGamma((0.0, 1.0, 3.0, 3.0), limits=(-1, 1)),
]
REGRESSION = dc.models.LinearRegression(2)


@pytest.fixture(scope="module")
def release() -> dc.Release:
    """Four draws of a linear regression, on the natural scale."""
    g = np.random.default_rng(3)
    plan = dc.mechanisms.OnePosteriorSample(REGRESSION, draws=4).plan(50, budget=dc.Budget(8.0))
    drawn = plan.release({"x": g.standard_normal((50, 2)), "y": g.standard_normal(50)}, key=1)
    return dataclasses.replace(drawn, diagnostics={"secret": Sensitive(0.731, "acceptance_of_the_secret")})


# --- on disk ------------------------------------------------------------------------------


def test_what_is_loaded_equals_what_was_saved(release: dc.Release, tmp_path: Path) -> None:
    back = dc.Release.load(release.save(tmp_path / "a"))
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["posterior.nc", "release.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    for name, values in release.draws.items():
        assert back.draws[name].dtype == np.float64
        np.testing.assert_array_equal(back.draws[name], values)
        np.testing.assert_array_equal(back.prior[name], release.prior[name])
    assert back.hash() == release.hash()
    assert (back.guarantee, back.evidence, back.model) == (release.guarantee, release.evidence, REGRESSION)
    assert back.provenance == json.loads(json.dumps(release.provenance))
    assert not back.diagnostics


def test_no_diagnostics_and_no_time_of_writing_are_saved(release: dc.Release, tmp_path: Path) -> None:
    first, second = release.save(tmp_path / "a"), release.save(tmp_path / "b")
    for name in ("release.json", "posterior.nc"):
        content = (first / name).read_bytes()
        assert b"acceptance" not in content
        assert b"0.731" not in content
        assert content == (second / name).read_bytes()


def test_arviz_reads_the_folder_with_chains_apart(tmp_path: Path) -> None:
    import arviz

    chain = dc.mechanisms.BarkerMCMC(
        dc.models.GaussianMixture(), dc.mechanisms.RandomWalk(0.1), tempered_size=20, chains=3
    )
    drawn = chain.plan(n=400, steps=5, batch=100).release({"x": np.linspace(-1, 1, 400)}, key=1)
    stored: Any = arviz.from_netcdf(str(drawn.save(tmp_path / "a") / "posterior.nc"))
    assert dict(stored.posterior.sizes) == {"chain": 3, "draw": 5, "theta_dim_0": 2}
    np.testing.assert_array_equal(stored.posterior["theta"].values.reshape(15, 2), drawn.draws["theta"])
    assert stored.prior["theta"].shape == (1, 2000, 2)
    stored.close()


def test_every_name_of_a_parameter_comes_back(release: dc.Release, tmp_path: Path) -> None:
    names = ["a/b", "chain", "draw", "x", "x_dim_0", "%41", "é λ", "a"]
    odd = dataclasses.replace(
        release, draws={name: np.full((4, 2), float(k)) for k, name in enumerate(names)}
    )
    back = dc.Release.load(odd.save(tmp_path / "a"))
    assert sorted(back.draws) == sorted(names)
    assert back.hash() == odd.hash()


def test_an_interrupted_chain_without_a_draw_is_saved(release: dc.Release, tmp_path: Path) -> None:
    none = dataclasses.replace(release, draws={"w": np.empty((0, 2)), "variance": np.empty(0)})
    back = dc.Release.load(none.save(tmp_path / "a"))
    assert {name: values.shape for name, values in back.draws.items()} == {"w": (0, 2), "variance": (0,)}


def test_a_folder_that_is_there_is_left_alone(release: dc.Release, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / ".b.partial").mkdir()  # of a run that was killed
    (tmp_path / ".b.partial" / "rubbish").touch()
    with pytest.raises(FileExistsError, match="must be a new folder"):
        release.save(tmp_path / "a")
    assert list((tmp_path / "a").iterdir()) == []
    assert not (release.save(tmp_path / "b") / "rubbish").exists()


def test_format_1_is_read_and_a_later_one_refused(release: dc.Release, tmp_path: Path) -> None:
    folder = release.save(tmp_path / "a")
    document = json.loads((folder / "release.json").read_text())
    (folder / "release.json").write_text(json.dumps({**document, "format": 3}))
    with pytest.raises(ValueError, match=r"format 3, allowed are 1 and 2; upgrade"):
        dc.Release.load(folder)
    (folder / "posterior.nc").unlink()
    np.savez(folder / "draws.npz", allow_pickle=False, **release.draws)
    first = {name: document[name] for name in ("guarantee", "evidence", "provenance")}
    (folder / "release.json").write_text(json.dumps({**first, "format": 1}))
    old = dc.Release.load(folder)
    assert old.hash() == release.hash()
    assert old.prior == {}


def test_draws_that_were_changed_are_refused(release: dc.Release, tmp_path: Path) -> None:
    folder = release.save(tmp_path / "a")
    moved = {name: values + 1e-12 for name, values in release.draws.items()}
    other = dataclasses.replace(release, draws=moved).save(tmp_path / "b")
    (other / "posterior.nc").rename(folder / "posterior.nc")
    with pytest.raises(ValueError, match=r"must be those that release\.json names"):
        dc.Release.load(folder)


# --- models -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", CATALOGUE, ids=lambda m: type(m).__name__)
def test_a_catalogue_model_comes_back_and_maps_its_scales_to_each_other(model: base.Model) -> None:
    assert rebuild(json.loads(json.dumps(model.to_dict()))) == model
    drawn: Any = model.draw_prior(np.random.default_rng(0), 50)
    assert drawn is not None
    assert {name: values.shape[1:] for name, values in drawn.items()} == model.parameter_shapes
    with jax.enable_x64(True):
        both = {**drawn, **jax.vmap(model.constrain)(drawn)}
        if not isinstance(model, dc.models.ConjugateFamily):  # their releases hold both scales
            both = jax.vmap(model.constrain)(drawn)
        back = jax.vmap(model.unconstrain)(both)
    for name, values in drawn.items():
        np.testing.assert_allclose(back[name], values, rtol=1e-6, atol=1e-9)


def test_what_is_not_of_the_catalogue_is_not_rebuilt() -> None:
    saved = dc.models.BetaBernoulli((6, 12)).to_dict()
    assert rebuild({**saved, "model": "Evidence"}) is None
    assert rebuild({**saved, "model": "from_numpyro"}) is None
    assert rebuild({**saved, "prior": [6, -1]}) is None
    assert rebuild({**saved, "later": 1}) is None


def stein(model: base.Model, drawn: dict[str, Any]) -> float:
    """The largest of several statistics that are standard normal if `drawn` follows the prior.

    E[g] = 0 and E[theta g] = -1 for g the derivative of the log prior in one coordinate.
    """
    with jax.enable_x64(True):
        slopes = jax.vmap(jax.grad(model.log_prior))(drawn)
    found = []
    for name, values in drawn.items():
        g = np.asarray(slopes[name])
        zeros = np.concatenate([part.reshape(len(g), -1) for part in (g, values * g + 1)], axis=1)
        found.append(np.abs(zeros.mean(axis=0) / zeros.std(axis=0)).max() * math.sqrt(len(g)))
    return float(max(found))


@pytest.mark.parametrize("model", CATALOGUE, ids=lambda m: type(m).__name__)
def test_draws_from_the_prior_follow_it(model: base.Model) -> None:
    # 61 statistics in all, each beyond 5 with probability 6e-7: fails wrongly once in 30,000 seeds.
    drawn = model.draw_prior(np.random.default_rng(5), 20_000)
    assert drawn is not None
    assert stein(model, drawn) < 5
    wrong = {name: 1.1 * values + 0.1 for name, values in drawn.items()}
    assert stein(model, wrong) > 5


# --- prediction ---------------------------------------------------------------------------------


def test_a_number_is_predicted_by_the_law_of_total_variance(release: dc.Release) -> None:
    x = np.array([[1.0, 2.0], [0.0, -1.0], [0.5, 0.5]])
    found = release.predict(x)
    means = x @ release.draws["w"].T
    np.testing.assert_allclose(found.mean, means.mean(axis=1))
    variances = np.broadcast_to(release.draws["variance"], means.shape)
    parts = dc.metrics.decompose_variance(means.T, variances.T)  # paper N, Appendix C.2
    np.testing.assert_allclose(found.epistemic, parts.epistemic)
    np.testing.assert_allclose(found.aleatoric, parts.aleatoric)
    np.testing.assert_allclose(found.total, found.epistemic + found.aleatoric)


def test_a_category_is_predicted_by_entropies() -> None:
    model = dc.models.SoftmaxRegression(2, 3)
    drawn = model.draw_prior(np.random.default_rng(1), 7)
    x = np.array([[0.6, 0.2], [0.0, 0.0]])
    found = prediction.predict(model, drawn, {"x": x})
    logits = np.einsum("rf,dfk->drk", x, drawn["w"])
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    mean, within = p.mean(axis=0), -(p * np.log(p)).sum(axis=2).mean(axis=0)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.aleatoric, within)
    np.testing.assert_allclose(found.epistemic, -(mean * np.log(mean)).sum(axis=1) - within, atol=1e-12)
    assert found.epistemic[1] == pytest.approx(0, abs=1e-12)  # all draws say 1/3 there
    assert found.aleatoric[1] == pytest.approx(math.log(3))
    alone = prediction.predict(model, {"w": drawn["w"][:1]}, {"x": x})
    np.testing.assert_allclose(alone.epistemic, 0, atol=1e-12)


def test_a_certain_outcome_has_no_doubt() -> None:
    sure = prediction.predict(dc.models.LogisticRegression(1), {"w": np.full((3, 1), 2000.0)}, {"x": [[1.0]]})
    np.testing.assert_allclose(sure.mean, [[0, 1]])
    assert sure.total == [0.0]


def test_rows_are_shortened_as_records_were() -> None:
    model = dc.models.LogisticRegression(2, row_norm=1.0)
    long, short = (
        prediction.predict(model, {"w": np.array([[3.0, 1.0]])}, {"x": [x]}) for x in ([30, 40], [0.6, 0.8])
    )
    np.testing.assert_allclose(long.mean, short.mean)


@pytest.mark.parametrize(
    ("model", "mean", "variance"),
    [
        # Beta(6, 12), Gamma(3, 2) counts, NormalInverseGamma: the textbook's prior predictive.
        (CATALOGUE[8], [2 / 3, 1 / 3], None),
        (CATALOGUE[10], 1.5, 1.5 + 0.75),
        (CATALOGUE[12], 0.0, 1.5 + 1.5),
        (CATALOGUE[11], 0.0, 1.0 + 2.0),
        (CATALOGUE[7], 0.0, 2.0 + 10 + 0.25 + 0.25),
    ],
)  # fmt: skip
def test_a_record_is_predicted_from_the_prior(model: base.Model, mean: Any, variance: float | None) -> None:
    drawn = model.draw_prior(np.random.default_rng(2), 40_000)
    assert drawn is not None
    found = prediction.predict(model, drawn, {})
    np.testing.assert_allclose(found.mean[0], mean, atol=0.06)
    if variance is not None:
        np.testing.assert_allclose(found.total[0], variance, rtol=0.06)


def numpyro_line(dose: Any, age: Any, reply: Any = None) -> None:  # noqa: ARG001
    """A line in the dose, by age group or not: `age` is declared and not used."""
    import numpyro
    import numpyro.distributions as dist

    slope = numpyro.sample("slope", dist.Gamma(2.0, 1.0))
    with numpyro.plate("people", len(dose)):
        numpyro.sample("outcome", dist.Normal(slope * dose, 0.5), obs=reply)


def test_a_numpyro_model_is_predicted_from_the_fields_it_reads(release: dc.Release) -> None:
    model = dc.models.from_numpyro(numpyro_line, records="people")
    assert prediction.predictors(model) == ("dose",)
    slopes = np.array([1.5, 0.5, 2.5])
    release = dataclasses.replace(release, model=model, draws={"slope": slopes})
    assert release.provenance["scale"] == "natural"
    found = release.predict([2.0, 4.0])
    np.testing.assert_allclose(found.mean, [2 * slopes.mean(), 4 * slopes.mean()], rtol=1e-6)
    np.testing.assert_allclose(found.epistemic, [4 * slopes.var(ddof=1), 16 * slopes.var(ddof=1)], rtol=1e-5)
    np.testing.assert_allclose(found.aleatoric, 0.25)
    assert release.prior["slope"].mean() == pytest.approx(2.0, abs=0.15)  # Gamma(2, 1), natural scale
    with pytest.raises(ValueError, match="rows must have the fields dose, got dose, age"):
        release.predict({"dose": [1.0], "age": [1.0]})
    without = dataclasses.replace(release, model=None)
    with pytest.raises(ValueError, match="a prediction needs the model"):
        without.predict([2.0])
