"""Chains on records that lie on disk: the same draws, an exact sum, and refusals before anything is spent."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from discreet.data import StoredRecords
from discreet.mechanisms import (
    BarkerMCMC,
    FastMH,
    OnePosteriorSample,
    PenaltyHMC,
    PenaltyMCMC,
    RandomWalk,
    _chain_streamed,
)
from discreet.mechanisms._chain_streamed import States, StreamedChain, bits
from discreet.mechanisms.barker_mcmc import _Step
from discreet.mechanisms.losses import LogLikelihood
from discreet.models import Gibbs, LogisticRegression
from discreet.privacy import Budget

N = 3000
MODEL = LogisticRegression(3, row_norm=2.0)
G = np.random.default_rng(20_261_119)
X = np.c_[G.uniform(-1, 1, (N, 2)), np.ones(N)]
RECORDS = {"x": X, "y": (G.random(N) < 1 / (1 + np.exp(-X @ [2.0, -1.0, 0.3]))).astype(float)}
WALK = RandomWalk(0.1)


def stored(records: dict[str, Any] = RECORDS, size: int = 700, **settings: Any) -> StoredRecords:
    return MODEL.store(
        ({name: values[i : i + size] for name, values in records.items()} for i in range(0, N, size)),
        **settings,
    )


@pytest.mark.parametrize(
    ("make", "batch"),
    [
        (lambda: BarkerMCMC(MODEL, WALK, tempered_size=300), N),
        (lambda: BarkerMCMC(MODEL, WALK, tempered_size=300), 100),
        (lambda: PenaltyMCMC(MODEL, WALK, tempered_size=300, chains=2), N),
        (lambda: FastMH(MODEL, WALK, tempered_size=30), 100),
    ],
    ids=["Barker on all", "Barker on minibatches", "two penalty chains on all", "FastMH"],
)
def test_draws_are_those_of_records_in_memory(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any], batch: int
) -> None:
    monkeypatch.setattr(_chain_streamed, "_PIECE", 1 << 15)  # three pieces and a bit
    plan = make().plan(n=N, steps=60, batch=batch)
    there, here = plan.release(stored(), key=5), plan.release(RECORDS, key=5)
    # A sum in integers and one in float64 differ by 1e-12 of a test's noise: no decision turns on it.
    assert np.array_equal(there.draws["w"], here.draws["w"])
    assert 0 < there.diagnostics["acceptance_rate"].reveal()[0] < 1
    said = [str(claim) for claim in there.evidence]
    assert any("summed piece by piece" in claim for claim in said) == (batch == N)


def sums(records: StoredRecords, limit: float = 0.05) -> np.ndarray:
    """S of one step, and how many ratios were clipped."""
    chain = StreamedChain(
        step=_Step(MODEL, WALK, LogLikelihood()),
        test_noise=lambda g, shape: (g.standard_normal(shape),),
        constants={"limit": limit},
        records=records,
        batch=None,
        steps=1,
        start={"w": np.zeros((1, 3))},
        randomness=None,  # pyright: ignore[reportArgumentType] - a sum needs none
        progress=False,
    )
    with jax.enable_x64(True):
        return chain._sums(States(np.zeros((1, 3)), np.array([[0.4, -0.2, 0.1]])))[0]


def test_the_sum_does_not_depend_on_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for piece in (1 << 12, 1 << 14, 1 << 23):
        monkeypatch.setattr(_chain_streamed, "_PIECE", piece)
        found.append(sums(stored()).tolist())
    assert found[0] == found[1] == found[2]
    t = np.clip(np.asarray(_log_ratios(RECORDS)) / 0.05, -1, 1)
    assert abs(found[0][0] / 2.0 ** bits(N) - t.sum()) < 1e-9
    assert found[0][1] == np.count_nonzero(np.abs(t) == 1)


def _log_ratios(records: dict[str, Any]) -> np.ndarray:
    """log p(candidate) - log p(theta) of each record, by hand."""
    score = (2 * records["y"] - 1) * (records["x"] @ np.array([0.4, -0.2, 0.1]))
    return np.log(2.0) - np.logaddexp(0.0, -score)


@pytest.mark.parametrize("place", [0, 1499, N - 1])
def test_a_substituted_record_moves_the_sum_by_what_theorem_6_says(place: int) -> None:
    # The worst pair: one ratio clipped above against one clipped below; attained, so the bound is no slack.
    low, high = ({name: values.copy() for name, values in RECORDS.items()} for _ in range(2))
    for records, y in ((low, 0.0), (high, 1.0)):
        records["x"][place], records["y"][place] = [1.0, -1.0, 1.0], y
    moved = int(sums(stored(high), limit=0.01)[0] - sums(stored(low), limit=0.01)[0])
    assert moved == 2 * 2 ** bits(N)


@pytest.mark.parametrize("n", [2, 3, 4, 1023, 1024, 10**8, 10**12])
def test_no_sum_of_n_ratios_overflows(n: int) -> None:
    assert n * 2 ** bits(n) < 2**62
    assert bits(n) == 52 or n * 2 ** (bits(n) + 2) >= 2**62


class Purse:
    """An account that must not be asked."""

    def spend(self, *_: object, **__: object) -> None:
        raise AssertionError("a spend was made")

    def complete(self, *_: object) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (
            lambda: OnePosteriorSample(MODEL, Gibbs()).plan(N, budget=Budget(1.0, 1e-6)),
            "records must be in memory for OnePosteriorSample",
        ),
        (
            lambda: PenaltyHMC(MODEL, 2, 0.05, tempered_size=30).plan(n=N, steps=2),
            "records must be in memory for PenaltyHMC",
        ),
    ],
)
def test_a_mechanism_that_needs_all_records_at_once_refuses_before_the_spend(plan: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        plan().release(stored(), ledger=Purse())


def test_minibatches_are_refused_where_processes_share_a_table_and_another_number_too() -> None:
    plan = BarkerMCMC(MODEL, WALK, tempered_size=30).plan(n=2 * N, steps=5, batch=100)
    with pytest.raises(ValueError, match="batch must be all 6000 records"):
        plan.release(stored(total=2 * N), ledger=Purse())
    with pytest.raises(ValueError, match="as many as the plan says"):
        plan.release(stored(), ledger=Purse())


def test_a_key_that_is_none_is_refused_before_it_is_paid_for() -> None:
    plan = PenaltyMCMC(MODEL, WALK, tempered_size=30).plan(n=N, steps=5)
    with pytest.raises(ValueError, match="key must be a whole number"):
        plan.release(RECORDS, key=-1, ledger=Purse())
