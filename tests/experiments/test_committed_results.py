"""What committed results must show, of experiments (`make experiment`) and benchmarks (`make draws`)."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def beta() -> Iterator[Any]:
    """experiments/beta_divergence/logistic.py."""
    yield from imported("beta_divergence", "logistic")


@pytest.fixture
def renyi() -> Iterator[Any]:
    """experiments/renyi_posteriors/claims.py."""
    yield from imported("renyi_posteriors", "claims")


@pytest.fixture
def networks() -> Iterator[Any]:
    """experiments/bayesian_networks/run.py."""
    pytest.importorskip("matplotlib")
    yield from imported("bayesian_networks", "run")


def imported(folder: str, name: str) -> Iterator[Any]:
    before = set(sys.modules)
    sys.path.insert(0, str(ROOT / "experiments" / folder))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.pop(0)
        for added in set(sys.modules) - before:
            if getattr(sys.modules[added], "__file__", None) and folder in str(sys.modules[added].__file__):
                del sys.modules[added]


def test_paper_b_every_claim_and_every_number(beta: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Lower log RMSE than both baselines at n = 1000, d = 2; ROC-AUC at least theirs on three tables.

    One of the 20 comparisons is known to fail, by a tenth of a standard error: adult at epsilon 5, where all
    posteriors are as good as without privacy.
    """
    beta.check()
    assert capsys.readouterr().out.strip() == ""


def test_paper_b_claims_can_fail(beta: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = beta.load("simulated")
    worse = [{**r, "mean": r["mean"] + 9} if r["method"] == beta.KEPT[0] else r for r in rows]
    monkeypatch.setattr(beta, "load", lambda part: worse if part == "simulated" else [])
    assert len([line for line in beta.claims() if "not the best" in line]) == len(beta.EPSILONS)


def test_paper_b_printed_scale_costs_more_than_is_written(beta: Any) -> None:
    assert beta.true_epsilon(100, 10, 1.0) == pytest.approx(4.09, abs=0.005)


def test_paper_r_every_number_and_the_order_of_the_algorithms(renyi: Any) -> None:
    """Algorithm 5 <= 4 <= OPS at 80 of 81 points; the one exception is known, and real (ERRATA 19)."""
    folder = ROOT / "experiments" / "renyi_posteriors"
    results, expected = (json.loads((folder / f"{n}.json").read_text()) for n in ("results", "expected"))
    assert renyi.unexpected(results, expected) == []
    assert set(results["tasks"]) == {"abalone", "adult", "mnist 3 v 8"}
    assert min(task["runs"] for task in results["tasks"].values()) >= 50
    assert sum(map(len, results["violations"].values())) == 1
    assert renyi.unexpected(results, {**expected, "known violations": []}) != []


PAPER_N = ROOT / "experiments" / "bayesian_networks"
KNOWN_MISSES = {"bbp-paper-private", "mcd-paper-private"}
"""Targets of paper N that committed runs do not meet; README.md there says by how much."""


def test_paper_n_committed_medians_are_those_of_the_runs(networks: Any) -> None:
    results, errors = (
        json.loads((PAPER_N / f"{name}.json").read_text()) for name in ("results", "regression")
    )
    assert networks.summary(PAPER_N, errors) == results
    assert {len(one["mse"]) for one in errors.values()} == {20}
    for one in errors.values():
        assert one["median_mse"] == pytest.approx(float(np.median(one["mse"])))


def test_paper_n_meets_its_targets_except_the_known_ones(networks: Any) -> None:
    results, expected = (
        json.loads((PAPER_N / f"{name}.json").read_text()) for name in ("results", "expected")
    )
    assert {line.split()[0] for line in networks.unexpected(results, expected)} == KNOWN_MISSES
    for name in expected["digits"]:
        assert results["digits"][name]["seeds"] >= 3
    results["digits"]["bbp-mlp-gaussian-private"]["ece"] = 0.021
    told = {line.split()[0] for line in networks.unexpected(results, expected)}
    assert told == {*KNOWN_MISSES, "bbp-mlp-gaussian-private"}


@pytest.mark.parametrize(("name", "least"), [("abalone", 5.0), ("adult", 5.0)])
def test_one_posterior_sample_is_faster_than_nuts(name: str, least: float) -> None:
    found = json.loads((ROOT / "benchmarks/results/one_posterior_sample.json").read_text())[name]
    seconds = found["processor seconds"]
    assert seconds["NUTS 1000 + 1000"] / seconds["ours"] >= least
    assert found["total variation measured by coupled chains, at most"] <= 1e-6
    assert found["same law"]["p-value (Bonferroni)"] > 1e-3


def test_an_exact_draw_is_faster_than_nuts() -> None:
    found = json.loads((ROOT / "benchmarks/results/exact_sampler.json").read_text())
    assert found["ratio NUTS to exact"] >= 20
