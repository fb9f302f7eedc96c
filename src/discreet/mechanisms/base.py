"""Plan, spend, release: the shape that every mechanism has.

A mechanism is a frozen dataclass of public settings. `plan(...)` solves for its
noise without data and returns a frozen `Plan`; only `plan.release(records)` sees
data, after the ledger has recorded the spend.
"""

from __future__ import annotations

import hashlib
import json
import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.data import StoredRecords
from discreet.mechanisms.interruption import run
from discreet.mechanisms.release import Release, Scale
from discreet.models.base import Model, Records, count
from discreet.privacy import Evidence, Guarantee, Neighbours
from discreet.privacy.sensitive import Sensitive
from discreet.samplers.randomness import Randomness

Plain = str | int | float | bool | None | list[Any] | dict[str, Any]


class Account(Protocol):
    """What a release needs of a ledger: a durable spend before any draw exists."""

    def spend(self, guarantee: Guarantee, purpose: str, *, plan: str) -> Any:
        """Record the spend of the plan with hash `plan`, or raise if it does not fit; returns a receipt."""
        ...

    def complete(self, receipt: Any, release: str, /) -> object:
        """Record that the spend of `receipt` led to the release with hash `release`."""
        ...


@dataclass(frozen=True)
class Drawn:
    """What a mechanism hands back from the data.

    Attributes:
        draws: named arrays, leading axis = draw.
        evidence: what the drawing itself adds to the plan's evidence.
        diagnostics: for the data holder's eyes; never saved.
    """

    draws: dict[str, NDArray[np.float64]]
    evidence: tuple[Evidence, ...] = ()
    diagnostics: dict[str, Sensitive[Any]] = field(default_factory=dict[str, Sensitive[Any]])


class Mechanism(ABC):
    """A published mechanism, configured and without data.

    Attributes:
        scale: on which its draws are.
    """

    scale: ClassVar[Scale] = Scale.UNCONSTRAINED

    if TYPE_CHECKING:  # at run time a subclass has it as a field of its dataclass, or as a property

        @property
        @abstractmethod
        def model(self) -> Model:
            """The model whose records it takes."""

    @abstractmethod
    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        """Run the mechanism as planned on checked records. Called by `Plan.release` only."""

    def check_stored(self, plan: Plan, records: StoredRecords) -> None:  # noqa: ARG002
        """Refuse records that lie on disk, unless the mechanism can read them piece by piece as planned."""
        raise ValueError(
            f"records must be in memory for {type(self).__name__}, got stored ones; read the table without "
            "stream, or choose BarkerMCMC, PenaltyMCMC or FastMH"
        )

    def settings(self) -> dict[str, Plain]:
        """The public settings, for provenance."""
        return {"mechanism": type(self).__name__, "model": self.model.to_dict()}


@dataclass(frozen=True)
class Plan:
    """A mechanism with its noise solved for: everything public, nothing drawn yet.

    Attributes:
        mechanism: what will run.
        size: the public number of records (None when the number is private).
        guarantee: what the release will cost, known now.
        evidence: what the guarantee rests on so far.
        parameters: what was solved for, by name.
        reasons: which route or rule chose them, in words.
    """

    mechanism: Mechanism
    size: int | None
    guarantee: Guarantee
    evidence: tuple[Evidence, ...]
    parameters: Mapping[str, Plain]
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.size is None) != (self.guarantee.neighbours is Neighbours.ADD_REMOVE):
            raise ValueError(
                f"size must be given under substitution and withheld under add_remove, got size {self.size} "
                f"for {self.guarantee.neighbours} neighbours; the number is public under substitution only"
            )

    def release(
        self,
        records: Mapping[str, ArrayLike],
        *,
        key: int | None = None,
        ledger: Account | None = None,
        purpose: str = "release",
        progress: bool = False,
    ) -> Release:
        """Check the records, record the spend, then draw.

        Args:
            records: named arrays as the model's `record_shapes` says.
            key: a seed for a reproducible run, or None for the operating system's
                entropy.
            ledger: where the spend is recorded, durably, before any draw exists.
            purpose: what the ledger notes.
            progress: show a progress bar that tells nothing about the data.

        Raises:
            Interrupted: on Ctrl-C, for mechanisms that run in steps; it holds what was
                drawn so far, and resumes.
        """
        checked = self._checked(records)
        randomness = Randomness(key)  # refuses a key before it is paid for
        # A release that was interrupted and resumed closes its spend once.
        unclosed = [] if ledger is None else [ledger.spend(self.guarantee, purpose, plan=self.hash())]

        def released(drawn: Drawn) -> Release:
            release = self.released(drawn, randomness.evidence)
            if ledger is not None and unclosed:
                ledger.complete(unclosed.pop(), release.hash())
            return release

        return run(partial(self.mechanism.draw, self, checked, randomness, progress=progress), released)

    def released(self, drawn: Drawn, randomness: Evidence) -> Release:
        """What the mechanism drew as a release; `randomness` says what its noise rests on."""
        return Release(
            draws=drawn.draws,
            guarantee=self.guarantee,
            evidence=(*self.evidence, *drawn.evidence, randomness),
            provenance={
                "plan": self.to_dict(),
                "plan_hash": self.hash(),
                "scale": str(self.mechanism.scale),
                "versions": versions(),
            },
            diagnostics=drawn.diagnostics,
            model=self.mechanism.model,
        )

    def assist(self, records: StoredRecords) -> None:
        """Sum over the records of this process, for the release that process 0 of `jax.distributed` makes.

        Spends nothing and draws nothing; process 0 calls `release` with its own part.
        """
        import jax

        checked = self._checked(records)
        if jax.process_index() == 0:  # pyright: ignore[reportUnknownMemberType]
            raise ValueError("process 0 must call release, got assist; call assist in the others")
        self.mechanism.draw(self, checked, Randomness(), progress=False)

    def describe(self, delta: float | None = None) -> str:
        """The plan in words: what runs, what it costs (at `delta`, if given), for whom, resting on what."""
        lines = [f"{type(self.mechanism).__name__} on {type(self.mechanism.model).__name__}"]
        lines += [f"  {name}: {_short(value)}" for name, value in self.parameters.items()]
        lines += [f"  because {reason}" for reason in self.reasons]
        lines += ["costs", *(f"  {line}" for line in self.guarantee.describe(delta).splitlines())]
        lines += ["rests on", *(f"  {claim}" for claim in self.evidence)]
        return "\n".join(lines)

    def check(self, records: Mapping[str, ArrayLike]) -> None:
        """Refuse what `release` would refuse; spends nothing."""
        self._checked(records)

    def _checked(self, records: Mapping[str, ArrayLike]) -> Records:
        """Records as the mechanism takes them, as many as planned."""
        checked = self.mechanism.model.validate(records)
        if self.size is not None and count(checked) != self.size:
            raise ValueError(
                f"records must be as many as the plan says, {self.size}, got another number; "
                "make a plan for the true size, which is public under substitution"
            )
        if isinstance(checked, StoredRecords):
            self.mechanism.check_stored(self, checked)
        return checked

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {
            "settings": self.mechanism.settings(),
            "size": self.size,
            "parameters": dict(self.parameters),
            "reasons": list(self.reasons),
            "guarantee": self.guarantee.to_dict(),
            "evidence": [claim.to_dict() for claim in self.evidence],
        }

    def to_json(self) -> str:
        """The plan as JSON, with sorted keys."""
        return json.dumps(self.to_dict(), sort_keys=True, default=_jsonable)

    def hash(self) -> str:
        """SHA-256 of the plan's JSON: what the ledger and the release refer to."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def _jsonable(value: object) -> Any:
    if isinstance(value, np.generic):
        return cast("Any", value.item())
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"a plan holds plain values only, got {type(value).__name__}; convert it before planning")


def _short(value: Plain) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_NAMES = ("discreet", "dp-accounting", "jax", "numpy", "numpyro", "polars", "scipy", "sqlalchemy")

# Read once: looking them up takes as long as a thousand steps of a chain.
_VERSIONS = {"python": platform.python_version(), **{name: version(name) for name in _NAMES}}


def versions() -> dict[str, str]:
    """What runs, for provenance."""
    return dict(_VERSIONS)
