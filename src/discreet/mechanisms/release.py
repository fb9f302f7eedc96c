"""`Release`: private draws with what they cost and what that rests on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet.models.base import Model
from discreet.privacy import Evidence, Guarantee, checks
from discreet.privacy.sensitive import Sensitive

_FORMAT = 1


@dataclass(frozen=True)
class Release:
    """What may be published.

    Attributes:
        draws: named arrays, leading axis = draw.
        guarantee: what the draws cost.
        evidence: what the guarantee rests on.
        provenance: the plan, its hash, and the versions that ran.
        diagnostics: for the data holder's eyes; `save` leaves them out.
        model: the model, for prediction; absent after `load`.
    """

    draws: dict[str, NDArray[np.float64]]
    guarantee: Guarantee
    evidence: tuple[Evidence, ...]
    provenance: Mapping[str, Any]
    diagnostics: Mapping[str, Sensitive[Any]] = field(default_factory=dict[str, Sensitive[Any]], repr=False)
    model: Model | None = None

    def save(self, folder: str | Path) -> Path:
        """Write `release.json` and `draws.npz`; no diagnostics, nothing unbilled."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=False)
        np.savez(target / "draws.npz", allow_pickle=False, **self.draws)
        document = {
            "format": _FORMAT,
            "guarantee": self.guarantee.to_dict(),
            "evidence": [claim.to_dict() for claim in self.evidence],
            "provenance": self.provenance,
        }
        (target / "release.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
        return target

    @staticmethod
    def load(folder: str | Path) -> Release:
        """Read back what `save` wrote."""
        source = Path(folder)
        document = json.loads((source / "release.json").read_text())
        if document.get("format") != _FORMAT:
            given = document.get("format")
            raise ValueError(f"release.json has format {given!r}, allowed is {_FORMAT}; upgrade discreet")
        with np.load(source / "draws.npz", allow_pickle=False) as stored:
            draws = {name: stored[name] for name in stored.files}
        return Release(
            draws=draws,
            guarantee=Guarantee.from_dict(document["guarantee"]),
            evidence=tuple(Evidence.from_dict(claim) for claim in document["evidence"]),
            provenance=document["provenance"],
        )

    @property
    def chains(self) -> int:
        """How many chains the draws are of, one after the other; 1 for mechanisms that run none."""
        return int(self.provenance["plan"]["parameters"].get("chains", 1))

    @property
    def posterior(self) -> Any:
        """The draws as ArviZ holds them: an `InferenceData` whose axes are chain and draw.

        Its diagnostics, such as `arviz.summary`, are functions of the draws, and so
        as public as these.
        """
        import arviz

        return cast("Any", arviz).from_dict(posterior=by_chain(self.draws, self.chains))

    def hash(self) -> str:
        """SHA-256 of the draws and of the plan they came from: what the ledger refers to."""
        digest = hashlib.sha256(str(self.provenance.get("plan_hash")).encode())
        for name, array in sorted(self.draws.items()):
            digest.update(name.encode() + str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def describe(self, delta: float | None = None) -> str:
        """The release in words; with `delta`, its epsilon there as well."""
        shapes = ", ".join(f"{name} {array.shape}" for name, array in self.draws.items())
        lines = [f"draws: {shapes}", *self.guarantee.describe(delta).splitlines()]
        return "\n".join([*lines, "rests on", *(f"  {claim}" for claim in self.evidence)])


def by_chain(draws: Mapping[str, NDArray[np.float64]], chains: int) -> dict[str, NDArray[np.float64]]:
    """Draws with leading axes chain and draw, as ArviZ wants them."""
    checks.integer("chains", chains, at_least=1)
    return {name: values.reshape(chains, -1, *values.shape[1:]) for name, values in draws.items()}
