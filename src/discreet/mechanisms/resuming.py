"""Go on with a run from its checkpoint, after a crash or on another day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Protocol

from numpy.typing import ArrayLike

from discreet.mechanisms._private_steps import PrivateSteps, Resumed
from discreet.mechanisms._private_storage import fingerprint
from discreet.mechanisms.base import Drawn, Plan
from discreet.mechanisms.interruption import run
from discreet.mechanisms.release import Release


class OpenAccount(Protocol):
    """What resuming needs of a ledger: the spends that no release has closed yet."""

    def reconcile(self) -> Iterable[Any]:
        """The open spends; each has the hash of its plan as `plan`."""
        ...

    def complete(self, spend: Any, release: str, /) -> object:
        """Record that a spend led to the release with this hash."""
        ...


def resume(
    plan: Plan,
    records: Mapping[str, ArrayLike],
    *,
    ledger: OpenAccount | None = None,
    progress: bool = False,
) -> Release:
    """The release of a plan that was begun, from its checkpoint on, to the bit; it costs nothing more.

    The steps before and after the checkpoint are those that the plan's spend paid for.
    Noise is what it would have been; so the same plan must meet the same records, or the
    same noise would hide two tables, and both are compared with what the checkpoint says.

    Args:
        plan: as it was; its mechanism has the `checkpoint`.
        records: as they were.
        ledger: the one that the release was begun with; it must hold the spend, still open.
        progress: show a progress bar.
    """
    mechanism = plan.mechanism
    if not isinstance(mechanism, PrivateSteps) or mechanism.checkpoint is None:
        raise TypeError(
            f"resuming needs a mechanism with a checkpoint, got {type(mechanism).__name__} without; "
            "plan with the checkpoint that the run was begun with"
        )
    plan.check(records)
    saved = mechanism.checkpoint.read()
    checked = mechanism.model.validate(records)
    if saved.plan != plan.hash():
        raise ValueError("the checkpoint must be of this plan, got that of another; make the same plan again")
    if saved.records != fingerprint(checked):
        raise ValueError(
            "records must be those that the run was begun with, got others; noise that has hidden one table "
            "must not hide another: release a new plan"
        )
    spends = [] if ledger is None else [s for s in ledger.reconcile() if s.plan == plan.hash()]
    if ledger is not None and not spends:
        raise ValueError(
            "the ledger must hold the spend of this plan, still open, got none; give the ledger that the "
            "release was begun with"
        )
    randomness = Resumed(saved)

    def released(drawn: Drawn) -> Release:
        release = plan.released(drawn, randomness.evidence)
        if ledger is not None and spends:
            ledger.complete(spends.pop(), release.hash())
        return release

    return run(partial(mechanism.draw, plan, checked, randomness, progress=progress), released)
