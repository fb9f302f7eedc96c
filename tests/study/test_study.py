"""Study files: what each row of the tables becomes, what is refused, and that a plan touches no data."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.study import MECHANISMS, MODELS, Study, StudyError, load
from discreet.study.sections import Data, LedgerPlace, Privacy, Report

COLUMNS = {
    "age": {"kind": "integer", "lower": 18, "upper": 98},
    "falls": {"kind": "integer", "lower": 0, "upper": 5},
    "weight": {"kind": "real", "lower": 40, "upper": 160},
    "sex": {"kind": "category", "values": ["female", "male"]},
    "pain": {"kind": "ordinal", "values": ["none", "some", "much"]},
    "ill": {"kind": "binary", "values": ["no", "yes"]},
}
STUDY: dict[str, Any] = {
    "title": "Falls",
    "data": {"path": "ward.csv", "target": "ill", "records": 1000, "columns": COLUMNS},
    "model": {"name": "LogisticRegression"},
    "mechanism": {"name": "OnePosteriorSample", "loss": "Gibbs"},
    "privacy": {"epsilon": 1.0, "delta": 1e-6, "neighbours": "substitute"},
}
TARGETS = {
    "LinearRegression": ("weight", {}),
    "SoftmaxRegression": ("pain", {}),
    "PoissonRegression": ("falls", {}),
    "DirichletCategorical": ("pain", {"prior": [6, 12, 12]}),
    "BetaBernoulli": ("ill", {"prior": [6, 12]}),
    "GammaPoisson": ("falls", {"prior": [20, 4]}),
    "NormalKnownVariance": ("weight", {"prior": [80, 400], "variance": 400}),
    "NormalInverseGamma": ("weight", {"prior": [100, 1, 50, 50000]}),
}
NEEDED = {
    "OutputPerturbation": {"regularisation": 0.1},
    "BarkerMCMC": {"scale": 0.1, "tempered_size": 10, "batch": 100, "steps": 20},
    "PenaltyMCMC": {"scale": 0.1, "tempered_size": 10, "steps": 2},
    "FastMH": {"scale": 0.1, "tempered_size": 10, "steps": 2},
    "PenaltyHMC": {"leapfrog_steps": 2, "step_size": 0.05, "tempered_size": 10, "steps": 1},
    "PerturbedStatistics": {"draws": 7},
    "VariationalSamples": {"steps": 5},
    "StochasticGradient": {"batch": 100, "steps": 5},
    "LangevinDynamics": {"batch": 100, "steps": 5},
}
FAMILIES = ("DirectPosterior", "DiffusedPosterior", "ConcentratedPosterior", "PerturbedStatistics")


def changed(**sections: Any) -> dict[str, Any]:
    """The sound study with settings changed; None removes one."""
    values = deepcopy(STUDY)
    for section, settings in sections.items():
        if not isinstance(settings, dict):
            values[section] = settings
            continue
        part = values.setdefault(section, {})
        if "name" in settings:
            part.clear()
        for name, value in settings.items():
            if value is None:
                part.pop(name, None)
            else:
                part[name] = value
    return values


def study_of(model: str, mechanism: str, epsilon: float) -> Study:
    target, settings = TARGETS.get(model, ("ill", {}))
    return Study.of(
        changed(
            data={"target": target},
            model={"name": model, **settings},
            mechanism={"name": mechanism, **NEEDED.get(mechanism, {})},
            privacy={"epsilon": epsilon},
        )
    )


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_model_of_the_table_plans(model: str) -> None:
    family = not MODELS[model].reads_features
    study = study_of(model, "DiffusedPosterior" if family else "OnePosteriorSample", 1.0)
    plan = study.plan()
    assert type(plan.mechanism.model).__name__ == model
    assert plan.guarantee.epsilon(1e-6) <= 1.0 + 1e-9
    assert study.encoding.features == (() if family else study.encoding.features)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_every_mechanism_of_the_table_plans_within_the_budget(mechanism: str) -> None:
    model = "BetaBernoulli" if mechanism in FAMILIES else "LogisticRegression"
    plan = study_of(model, mechanism, 8.0).plan()
    assert type(plan.mechanism).__name__ == mechanism
    assert plan.size == 1000
    assert plan.guarantee.fits(dc.Budget(8.0 * (1 + 1e-9), 1e-6, "substitute"))


def test_a_plan_needs_no_table_and_is_the_one_of_the_library() -> None:
    study = study_of("BetaBernoulli", "DiffusedPosterior", 1.0)
    assert not study.table.exists()
    by_hand = dc.mechanisms.DiffusedPosterior(dc.models.BetaBernoulli((6, 12))).plan(
        1000, budget=dc.Budget(1.0, 1e-6)
    )
    assert study.plan().hash() == by_hand.hash()
    assert study.plan() is study.plan()


def test_records_are_those_of_the_schema_and_as_many_as_said(tmp_path: Path) -> None:
    rows = "age,falls,weight,sex,pain,ill\n58,1,100,male,some,yes\n18,0,40,female,none,no\n"
    (tmp_path / "ward.csv").write_text(rows)
    study = Study.of(changed(data={"records": 2}), tmp_path)
    records = study.records()
    assert records["x"][0].tolist() == [0.5, 0.2, 0.5, 0.0, 1.0, 0.5, 1.0]
    assert records["y"].tolist() == [1.0, 0.0]
    family = Study.of(changed(data={"records": 2}, model={"name": "BetaBernoulli"}), tmp_path)
    assert {name: values.tolist() for name, values in family.records().items()} == {"x": [1.0, 0.0]}
    with pytest.raises(dc.data.DataError, match="as many rows as the study says, 1000, got another number"):
        Study.of(STUDY, tmp_path).records()


def test_a_streamed_table_is_the_same_records_on_disk_and_each_process_reads_its_part(tmp_path: Path) -> None:
    rows = [f"{18 + k},0,{40 + k},female,none,{'yes' if k % 3 else 'no'}" for k in range(7)]
    (tmp_path / "ward.csv").write_text("\n".join(["age,falls,weight,sex,pain,ill", *rows]))
    chain = {"name": "PenaltyMCMC", **NEEDED["PenaltyMCMC"], "tempered_size": 1}
    whole = Study.of(changed(data={"records": 7}, mechanism=chain), tmp_path).records()
    study = Study.of(changed(data={"records": 7, "stream": True}, mechanism=chain), tmp_path)
    kept = study.records()
    assert isinstance(kept, dc.data.StoredRecords)
    assert np.array_equal(kept.take(np.arange(7))["x"], whole["x"])
    parts = [study.records((k, 2)) for k in (0, 1)]
    assert isinstance(parts[0], dc.data.StoredRecords)
    assert isinstance(parts[1], dc.data.StoredRecords)
    assert (parts[0].rows, parts[1].rows, parts[0].total, parts[1].total) == (3, 4, 7, 7)
    assert np.array_equal(parts[1].take(np.arange(4))["y"], whole["y"][3:])
    for number in (6, 8):
        wrong = Study.of(changed(data={"records": number, "stream": True}, mechanism=chain), tmp_path)
        with pytest.raises(dc.data.DataError, match=f"as the study says, {number}, got another number"):
            wrong.records()


def test_what_cannot_be_streamed_is_refused_before_data_is_read() -> None:
    with pytest.raises(
        StudyError, match=r"data\.stream: OnePosteriorSample reads all records at once; .* Barker"
    ):
        Study.of(changed(data={"stream": True}))
    chain = {"name": "BarkerMCMC", **NEEDED["BarkerMCMC"]}
    kept = Study.of(changed(data={"stream": True, "scratch": "/home/anna"}, mechanism=chain))
    assert "anna" not in kept.to_toml()
    with pytest.raises(StudyError, match=r"data\.scratch: there is no folder /home/anna; make it"):
        kept.records()


@pytest.mark.parametrize("model", ["LogisticRegression", "DirichletCategorical"])
def test_the_study_on_its_own_gives_the_same_plan_and_tells_no_place(model: str, tmp_path: Path) -> None:
    mechanism = "DiffusedPosterior"
    target, settings = TARGETS.get(model, ("ill", {}))
    (tmp_path / "ward.toml").write_text(dc.data.Schema.of({"columns": COLUMNS}).to_toml())
    study = Study.of(
        changed(
            data={"columns": None, "schema": "ward.toml", "path": "/home/anna/ward.csv", "target": target},
            model={"name": model, **settings},
            mechanism={"name": mechanism},
            ledger={"place": "postgresql://anna:geheim@db/privacy"},
            report={"folder": "/home/anna/out", "authors": ["Anna"]},
        ),
        tmp_path,
    )
    alone = tmp_path / "alone.toml"
    alone.write_text(study.to_toml())
    assert "/home" not in alone.read_text()
    assert "geheim" not in alone.read_text()
    again = load(alone)
    assert again.plan().hash() == study.plan().hash()
    assert again.schema == study.schema
    assert again.to_toml() == study.to_toml()


def test_neighbours_decide_whether_the_number_is_given() -> None:
    hidden = changed(data={"records": None}, privacy={"neighbours": "add_remove"})
    plan = Study.of(hidden).plan()
    assert plan.size is None
    assert plan.guarantee.neighbours == "add_remove"


MISTAKES = [
    ({"modle": {}}, "there is no section 'modle' here; did you mean model?"),
    ({"model": 3}, r"model: it must be a section \[model\], got int"),
    ({"model": {"name": "LogisticRegresion"}}, "model.name: .* did you mean LogisticRegression?"),
    ({"model": {"name": "logistic_regression"}}, "did you mean LogisticRegression?"),
    ({"model": {"name": "LogisticRegression", "prior": 1}}, "model: there is no setting 'prior' here"),
    ({"model": {"prior_precision": -1}}, "model.prior_precision must be a finite number above 0, got -1"),
    ({"model": {"prior_precision": "x"}}, "model.prior_precision: it must be a number, got str"),
    ({"model": {"prior_precision": float("nan")}}, "model.prior_precision: it must be a finite number"),
    ({"model": {"name": "BetaBernoulli", "prior": [1]}}, "model.prior: it must be longer"),
    ({"model": {"name": "LinearRegression"}}, "data.target: the model needs a target of numbers, got ill"),
    ({"model": {"name": "BetaBernoulli"}, "data": {"target": "pain"}}, "two values, got 3"),
    ({"model": {"name": "BetaBernoulli"}, "data": {"features": ["age"]}}, "takes no features"),
    ({"mechanism": {"name": "Diffused"}}, "did you mean DiffusedPosterior?"),
    ({"mechanism": {"name": "DiffusedPosterior", "draw": 2}}, "did you mean draws?"),
    ({"mechanism": {"name": "DiffusedPosterior", "draws": 0}}, "mechanism.draws must be a whole number"),
    ({"mechanism": {"name": "DiffusedPosterior", "draws": 1.5}}, "mechanism.draws: it must be a whole"),
    ({"mechanism": {"name": "OnePosteriorSample", "bound": 3}}, "mechanism.bound must be left out"),
    ({"mechanism": {"name": "OnePosteriorSample", "loss": "Gibs"}}, "must be BetaDivergence, Gibbs or"),
    ({"mechanism": {"name": "OutputPerturbation"}}, "mechanism.regularisation: it is missing; add it"),
    ({"mechanism": {"name": "DiffusedPosterior"}, "model": {"name": "ProbitRegression"}}, "mechanism Diff"),
    ({"privacy": {"epsilon": 0}}, "privacy.epsilon: it must be above 0"),
    ({"privacy": {"delta": 1}}, "privacy.delta: it must be below 1"),
    ({"privacy": {"neighbours": None}}, "privacy.neighbours: it is missing"),
    ({"privacy": {"neighbours": "both"}}, "privacy.neighbours: it must be substitute or add_remove"),
    ({"privacy": {"neighbors": "substitute"}}, "no setting 'neighbors' here; did you mean neighbours?"),
    ({"privacy": {"neighbours": "add_remove"}}, "data.records: it must be left out"),
    ({"data": {"records": None}}, "data.records: it is missing; give the number of rows"),
    ({"data": {"records": 0}}, "data.records: it must be at least 1, got 0"),
    ({"data": {"records": 10**30}}, "data.records"),
    ({"data": {"target": "il"}}, "data: the schema has no column il for the target; did you mean ill?"),
    ({"data": {"targt": "ill"}}, "data: there is no setting 'targt' here; did you mean target?"),
    ({"data": {"features": ["aeg"]}}, "data: the schema has no column aeg; did you mean age?"),
    ({"data": {"features": [], "intercept": False}}, "data.features: there are none"),
    ({"data": {"columns": None}}, "data: columns are missing"),
    ({"data": {"schema": "w.toml"}}, "data: schema and columns were both given"),
    ({"data": {"schema": "w.toml", "columns": None}}, "there is no file w.toml"),
    ({"data": {"schema": "w.csv", "columns": None}}, "w.csv must be a TOML file, got .csv"),
    ({"data": {"columns": {"ill": {"kind": "binry"}}}}, "data.columns.ill: there is no kind 'binry'"),
    ({"data": {"columns": {"ill": {"kind": "real", "lower": 2, "upper": 1}}}}, "are they reversed?"),
    ({"data": {"columns": {"ill": {"kind": "real", "lower": "TODO", "upper": 1}}}}, "still to be filled in"),
    ({"ledger": {"place": ""}}, "ledger.place"),
    ({"ledger": {"file": "x"}}, "ledger: there is no setting 'file' here"),
    ({"report": {"authors": "Anna"}}, "report.authors"),
    ({"title": "two\nlines"}, "title: it must be one line of text"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), MISTAKES, ids=[said[:40] for _, said in MISTAKES])
def test_a_mistake_is_one_sentence_that_names_the_setting(change: dict[str, Any], said: str) -> None:
    with pytest.raises((StudyError, dc.data.SchemaError), match=said) as caught:
        Study.of(changed(**change)).plan()
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(str(caught.value)) < 400


FILES = {
    "empty.toml": (b"", "data: it is missing; add a section"),
    "marked.toml": (b"\xef\xbb\xbftitle = 1\n", "data: it is missing"),
    "latin.toml": ("title = 'caf\u00e9'".encode("latin-1"), "text in UTF-8"),
    "broken.toml": (b"[data\npath = 3", "it is not TOML at line 1"),
    "twice.toml": (b"a = 1\na = 2\n", "it is not TOML at line 2"),
    "deep.toml": (b"a = " + b"[" * 100_000, "it is not TOML"),
    "table.csv": (b"age,ill\n58,yes\n", "must be a TOML file, got .csv; is it a table?"),
    "large.toml": (b"#" * ((1 << 22) + 1), "more than 4 MiB"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_study(name: str, tmp_path: Path) -> None:
    content, said = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StudyError, match=said) as caught:
        load(tmp_path / name)
    assert "58" not in str(caught.value)


def test_a_missing_file_names_a_neighbour(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("")
    with pytest.raises(StudyError, match=r"there is no file .*sudy\.toml; did you mean study\.toml\?"):
        load(tmp_path / "sudy.toml")
    with pytest.raises(StudyError, match="must be a TOML file"):
        load(tmp_path)


def test_the_page_on_study_files_names_every_row_and_setting() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "study.md").read_text()
    parts = dict(zip(("data", "model", "mechanism", "rest"), page.split("\n## ")[1:], strict=True))
    for table, section in ((MODELS, parts["model"]), (MECHANISMS, parts["mechanism"])):
        for name, row in table.items():
            (line,) = [line for line in section.splitlines() if f"`{name}`" in line and line.startswith("|")]
            assert all(f"`{field}" in line for field in row.model_fields), (name, line)
    for field in (*Data.model_fields, "schema"):
        assert f"| `{field}` |" in parts["data"]
    for section, part in (("privacy", Privacy), ("ledger", LedgerPlace), ("report", Report)):
        assert all(f"`{section}.{field}`" in parts["rest"] for field in part.model_fields)
