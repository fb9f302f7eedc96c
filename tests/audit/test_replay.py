"""Replay: declared sensitivities hold, and a run that lets a record steer it is caught."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from catalogue import ENTRIES, Entry

import discreet as dc
from discreet.audit import Pair, sensitivity
from discreet.mechanisms import Drawn, Plan
from discreet.models.base import Records
from discreet.samplers.randomness import Randomness

CHEAP = ("DirectPosterior: beta", "PerturbedStatistics: gaussian", "OutputPerturbation: euclidean")
CHAINS = ("BarkerMCMC: batch", "PenaltyMCMC: all records", "FastMH: mixture")


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.name in CHEAP + CHAINS], ids=lambda e: e.name)
def test_nothing_moves_more_than_declared(entry: Entry) -> None:
    """Every mechanism is replayed by `make audit`; here those that are quick, and three chains."""
    found = sensitivity(entry.make(), key=5, runs=1)
    assert found.passes, found.describe()
    assert found.moved
    assert max(m.measured / m.declared for m in found.moved) > 0.3  # not blind: the pairs are hard


def test_known_timing_is_disclosed_and_no_more() -> None:
    """NumPy's gamma variables are drawn by rejection; a release of a thousand shows it, and says so."""
    model = dc.models.BetaBernoulli((2, 2))
    plan = dc.mechanisms.DirectPosterior(model, draws=1000).plan(n=10)
    found = sensitivity(plan, [Pair({"x": [0] * 10}, {"x": [1] + [0] * 9})], key=1)
    assert found.passes
    assert [what for what in found.disclosed if "gamma" in what]
    assert "as is known" in found.describe()


@dataclass(frozen=True)
class Leaky(dc.mechanisms.PerturbedStatistics):
    """Lets a record decide how many draws are published, how much is read, and what is said of it."""

    leak: str = "draws"

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        drawn = super().draw(plan, records, randomness, progress=progress)
        many = int(records["x"].sum()) + 1
        if self.leak == "draws":
            return Drawn({name: values[:many] for name, values in drawn.draws.items()})
        if self.leak == "randomness":
            randomness.numpy().random(8 * many)
        if self.leak == "streams":
            for _ in range(many):
                randomness.integer()
        if self.leak == "evidence":
            return replace(drawn, evidence=(dc.privacy.Evidence.proved(f"{many} seen", "here"),))
        if self.leak == "error" and many > 1:
            raise RuntimeError("there is a success")
        return drawn


@pytest.mark.parametrize(
    ("leak", "words"),
    [
        ("draws", "shapes"),
        ("randomness", "how long it runs"),
        ("streams", "streams"),
        ("evidence", "evidence"),
        ("error", "error"),
    ],
)
def test_a_record_that_steers_the_run_is_caught(leak: str, words: str) -> None:
    model = dc.models.BetaBernoulli((2, 2))
    plan = Leaky(model, draws=5, leak=leak).plan(n=3, budget=dc.Budget(1.0, 1e-6))
    found = sensitivity(plan, [Pair({"x": [0, 0, 0]}, {"x": [1, 0, 0]})], key=1)
    assert not found.passes
    assert any(words in what for what in found.flow), found.flow


def test_a_sensitivity_that_is_too_small_is_caught() -> None:
    model = dc.models.LogisticRegression(3)
    plan = dc.mechanisms.OutputPerturbation(model, 0.05).plan(20, budget=dc.Budget(1.0))
    small = {**plan.parameters, "sensitivity": 0.3 * plan.parameters["sensitivity"]}  # pyright: ignore[reportOperatorIssue]
    assert sensitivity(plan, key=1).passes
    found = sensitivity(replace(plan, parameters=small), key=1)
    assert not found.passes
    assert not found.flow
    assert "NOT AS DECLARED" in found.describe()


def test_pairs_must_be_neighbours_of_the_plan() -> None:
    plan = dc.mechanisms.DirectPosterior(dc.models.BetaBernoulli((2, 2))).plan(n=3)
    with pytest.raises(ValueError, match="neighbours"):
        sensitivity(plan, [Pair({"x": [0, 0, 0]}, {"x": [1, 1, 0]})])
    with pytest.raises(ValueError, match="as many records as the plan"):
        sensitivity(plan, [Pair({"x": [0, 0]}, {"x": [1, 0]})])
    both = Pair({"x": [0.0, 1.0, 1.0]}, {"x": [1.0, 1.0, 1.0]}).differing()
    assert [side["x"].tolist() for side in both] == [[0.0], [1.0]]
    assert np.shape(both[0]["x"]) == (1,)
