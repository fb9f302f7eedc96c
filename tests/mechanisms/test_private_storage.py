"""Checkpoints that resume to the bit and are known to the ledger; draws that go to disk as they come."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.mechanisms import Adam, Checkpoint, LangevinDynamics, StochasticGradient, resume
from discreet.mechanisms._private_storage import fingerprint
from discreet.models import LogisticRegression
from discreet.neural import Flat

N, STEPS = 400, 24


def records(seed: int = 3) -> dict[str, np.ndarray]:
    g = np.random.default_rng(seed)
    x = g.uniform(-0.7, 0.7, (N, 2))
    return {"x": x, "y": (g.random(N) < 1 / (1 + np.exp(-x @ [2.0, -1.0]))).astype(float)}


class Crash:
    """An observer that stops the process, so to say, after some steps."""

    def __init__(self, at: int) -> None:
        self.pairs, self.at, self.steps = 2, at, 0

    def begin(self, run: Any) -> None:  # noqa: ARG002
        self.steps = 0

    def observe(self, distances: Any) -> None:
        del distances
        self.steps += 1
        if self.steps == self.at:
            raise MemoryError("as if the machine had died")


def mechanisms(place: Path) -> dict[str, Any]:
    return {
        "descent": StochasticGradient(
            LogisticRegression(2),
            optimiser=Adam(0.05),
            average=0.9,
            clipping=Flat(1.0),
            neighbours="substitute",
            checkpoint=Checkpoint(place, every=5),
        ),
        "langevin": LangevinDynamics(
            LogisticRegression(2),
            step_size=1e-3,
            burn_in=0.0,
            thin=3,
            neighbours="substitute",
            checkpoint=Checkpoint(place, every=5),
        ),
    }


@pytest.mark.parametrize("kind", ["descent", "langevin"])
def test_a_crashed_run_resumes_to_the_bit(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "run.npz"
    mechanism = mechanisms(place)[kind]
    settings: dict[str, Any] = {"n": N, "batch": 40, "steps": STEPS}
    settings |= {"noise_multiplier": 1.0} if kind == "descent" else {}
    # An observer shuffles the batch: the run that is not disturbed has one as well.
    calm = replace(mechanism, observers=(Crash(10**9),), checkpoint=None)
    whole = calm.plan(**settings).release(records(), key=9)
    dying = replace(mechanism, observers=(Crash(STEPS - 1),))
    plan = dying.plan(**settings)
    budget = dc.Budget(100.0, 1e-5, neighbours="substitute")
    ledger = dc.Ledger(tmp_path / "clinic.ledger", budget=budget)
    with pytest.raises(MemoryError):
        plan.release(records(), key=9, ledger=ledger)
    spent, (still_open,) = ledger.spent(), ledger.reconcile()
    assert still_open.plan == plan.hash()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    again = replace(mechanism, observers=(Crash(10**9),)).plan(**settings)
    with pytest.raises(ValueError, match="records must be those that the run was begun with"):
        resume(again, records(seed=4), ledger=ledger)
    with pytest.raises(ValueError, match="must be of this plan"):
        resume(again.mechanism.plan(**{**settings, "batch": 41}), records())
    other = dc.Ledger(tmp_path / "other.ledger", budget=budget)
    with pytest.raises(ValueError, match="must hold the spend of this plan"):
        resume(again, records(), ledger=other)
    release = resume(again, records(), ledger=ledger)
    assert (release.draws["w"] == whole.draws["w"]).all()
    assert release.evidence[-1] == whole.evidence[-1]
    assert ledger.spent() == spent
    assert not ledger.reconcile()
    assert not place.exists()
    with pytest.raises(FileNotFoundError, match="a finished run removes its own"):
        resume(again, records())


def test_draws_on_disk_are_those_in_memory(tmp_path: Path) -> None:
    mechanism = LangevinDynamics(
        LogisticRegression(2), step_size=1e-3, burn_in=0.25, thin=2, neighbours="substitute"
    )
    stored = replace(mechanism, store=tmp_path / "draws")
    first, second = (m.plan(n=N, batch=40, steps=40).release(records(), key=1) for m in (mechanism, stored))
    assert not isinstance(second.draws["w"], np.ndarray)  # nothing is loaded before it is asked for
    assert (np.asarray(second.draws["w"]) == first.draws["w"]).all()
    assert second.draws["w"].shape == (15, 2)
    assert first.hash() == second.hash()
    x = records()["x"][:5]
    np.testing.assert_array_equal(first.predict(x).mean, second.predict(x).mean)
    second.save(tmp_path / "release")
    assert (dc.Release.load(tmp_path / "release").draws["w"] == first.draws["w"]).all()


def test_fingerprints_tell_tables_apart() -> None:
    table = records()
    assert fingerprint(table) == fingerprint(dict(reversed(table.items())))
    changed = {**table, "y": 1 - table["y"]}
    assert fingerprint(table) != fingerprint(changed)


def test_the_bar_says_what_is_spent(capsys: pytest.CaptureFixture[str]) -> None:
    mechanism = StochasticGradient(LogisticRegression(2), neighbours="substitute")
    plan = mechanism.plan(n=N, batch=40, steps=STEPS, noise_multiplier=2.0)
    plan.release(records(), key=1, progress=True)
    shown = capsys.readouterr().err
    assert f"epsilon {plan.guarantee.epsilon(1e-5):.3g} at delta 1e-05" in " ".join(shown.split())
