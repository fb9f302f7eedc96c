"""One run of one setting: train, predict the test digits, measure, keep."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import digits
import numpy as np
from numpy.typing import NDArray
from scattering import scatter
from settings import BUDGET, Setting

import discreet as dc
from discreet.metrics import Reliability

Array = NDArray[np.float64]

EXAMPLES = {"hard": 18, "easy": 1}
"""Test digits whose draws are shown: a 3 that is hard to read, and a 2."""

BINS = 20
"""As in the paper, by what its MCE can be (docs/decisions/0025)."""


@dataclasses.dataclass
class Bench:
    """Where runs are done and kept.

    Attributes:
        out: folder of the results.
        rows: how many training digits; None for all.
        steps: how many steps; None for the settings'.
    """

    out: Path
    rows: int | None = None
    steps: int | None = None
    _inputs: dict[str, Any] = dataclasses.field(default_factory=dict)

    def inputs(self, network: str, *, test: bool) -> tuple[Any, Any]:
        """Inputs and labels for a network."""
        key = f"{network}{test}"
        if key not in self._inputs:
            read = digits.read(test=test, rows=2000 if test and self.rows else (None if test else self.rows))
            x = {
                "mlp": lambda: read.flat,
                "cnn": lambda: read.x,
                "scattering": lambda: self._features(read, test=test),
            }
            self._inputs[key] = (x[network](), read.y)
        return self._inputs[key]

    def _features(self, read: digits.Digits, *, test: bool) -> Any:
        kept = self.out / "cache" / f"scattering-{len(read.y)}-{'test' if test else 'train'}.npy"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.save(kept, scatter(read.x).astype(np.float16))
        return np.load(kept).astype(np.float32)

    def run(self, setting: Setting, seed: int) -> dict[str, Any]:
        """The measured numbers of a run; taken from the folder if it is there."""
        kept = self.out / "runs" / f"{setting.name}-{seed}.json"
        if kept.exists():
            return json.loads(kept.read_text())
        x, y = self.inputs(setting.network, test=False)
        began = time.perf_counter()
        plan = setting.plan(len(y), self.steps)
        planned = time.perf_counter()
        release = plan.release({"x": x, "y": y}, key=seed)
        trained = time.perf_counter()
        xt, yt = self.inputs(setting.network, test=True)
        prediction = release.predict(xt)
        found = {
            "setting": setting.name,
            "seed": seed,
            **measured(yt, prediction),
            **costs(plan),
            "steps": plan.parameters["steps"],
            "batch": plan.parameters["batch"],
            "noise_multiplier": plan.parameters["noise_multiplier"],
            "seconds_train": round(trained - planned, 1),
            "draws": len(next(iter(release.draws.values()))),
        }
        print(
            found["setting"],
            seed,
            f"accuracy {found['accuracy']:.4f}, ECE {found['ece']:.4f};",
            plan.reasons[-1],
            f"({time.perf_counter() - began:.0f} s)",
            flush=True,
        )
        shown = {name: by_draw(release, xt[at : at + 1]) for name, at in EXAMPLES.items()}
        self._keep(kept, found, {"mean": prediction.mean.astype(np.float32), **shown})
        return found

    def _keep(self, kept: Path, found: dict[str, Any], arrays: dict[str, Any]) -> None:
        cache = self.out / "cache" / f"{kept.stem}.npz"
        for folder in (kept.parent, cache.parent):
            folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(cache, **arrays)
        kept.write_text(json.dumps(found, indent=1) + "\n")


def measured(y: Array, prediction: Any) -> dict[str, float]:
    """Every metric of a classification."""
    found = Reliability.of(y, prediction.mean, bins=BINS)
    return {
        "accuracy": dc.metrics.accuracy(y, prediction.mean),
        "log_score": dc.metrics.log_score(y, prediction.mean),
        "brier": dc.metrics.brier(y, prediction.mean),
        "ece": found.expected_error,
        "mce": found.maximum_error(),
        "mce_20": found.maximum_error(at_least=20),
        "epistemic": float(prediction.epistemic.mean()),
        "aleatoric": float(prediction.aleatoric.mean()),
    }


def costs(plan: dc.Plan) -> dict[str, Any]:
    """Epsilon by three accountants; PLD is the guarantee, the central limit is no bound."""
    return {"epsilon_pld": plan.guarantee.epsilon(BUDGET.delta), "accounts": plan.reasons[-1]}


def by_draw(release: dc.Release, x: Any) -> Array:
    """(draws, labels) what every draw says of one digit."""
    number = len(next(iter(release.draws.values())))
    one = [
        dataclasses.replace(
            release, draws={name: values[i : i + 1] for name, values in release.draws.items()}
        )
        for i in range(number)
    ]
    return np.concatenate([each.predict(x).mean for each in one])
