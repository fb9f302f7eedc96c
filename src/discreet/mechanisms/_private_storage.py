# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Checkpoints that resume to the bit, and draws that go to disk as they come.

A checkpoint holds the secret from which all noise to come is made: whoever reads it
can undo the noise of the steps that are left, not of those before it (the ratchet moves one
way). It is written with permissions for its owner alone, and removed at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.privacy import checks

Array = NDArray[np.float64]
Values = Mapping[str, Array]


@dataclass(frozen=True)
class Saved:
    """Where a run stood.

    Attributes:
        plan: the hash of its plan.
        records: a hash of the records, which are as secret as they.
        done: how many steps were.
        theta: the parameters.
        state: of the rule, leaf by leaf.
        total: the running sum of the kept parameters, or nothing.
        draws: the kept draws that are not on disk.
        secret: of the ratchet.
        evidence: of the randomness, as plain values.
    """

    plan: str
    records: str
    done: int
    theta: dict[str, Array]
    state: list[Array]
    total: dict[str, Array]
    draws: dict[str, Array]
    secret: bytes
    evidence: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """A file that a run keeps up to date.

    Args:
        path: of the file.
        every: how many steps lie between two writings.
    """

    path: str | Path
    every: int = 1000

    def __post_init__(self) -> None:
        checks.integer("every", self.every, at_least=1)

    def write(self, saved: Saved) -> None:
        """Replace the file; a crash leaves the old one or the new one."""
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {
            **{name: getattr(saved, name) for name in ("plan", "records", "done", "evidence")},
            "secret": saved.secret.hex(),
            "leaves": len(saved.state),
        }
        arrays = {f"theta/{name}": values for name, values in saved.theta.items()}
        arrays |= {f"total/{name}": values for name, values in saved.total.items()}
        arrays |= {f"draws/{name}": values for name, values in saved.draws.items()}
        arrays |= {f"state/{place}": values for place, values in enumerate(saved.state)}
        partial = path.with_name(f".{path.name}.partial")
        opened = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "wb") as file:
            np.savez(file, about=np.array(json.dumps(about)), **arrays)  # pyright: ignore[reportArgumentType]
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    def read(self) -> Saved:
        """What the file holds."""
        path = Path(self.path)
        if not path.exists():
            raise FileNotFoundError(
                f"a checkpoint must be at {path}, got none; a finished run removes its own: call release anew"
            )
        with np.load(path, allow_pickle=False) as stored:
            about: dict[str, Any] = json.loads(str(stored["about"]))
            parts: dict[str, dict[str, Array]] = {"theta": {}, "total": {}, "draws": {}, "state": {}}
            for name in stored.files:
                if name != "about":
                    kind, _, rest = name.partition("/")
                    parts[kind][rest] = stored[name]
        return Saved(
            plan=about["plan"],
            records=about["records"],
            done=int(about["done"]),
            theta=parts["theta"],
            state=[parts["state"][str(place)] for place in range(int(about["leaves"]))],
            total=parts["total"],
            draws=parts["draws"],
            secret=bytes.fromhex(about["secret"]),
            evidence=about["evidence"],
        )

    def remove(self) -> None:
        """The run is over."""
        Path(self.path).unlink(missing_ok=True)


def fingerprint(records: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of all records."""
    digest = hashlib.sha256()
    for name, values in sorted(records.items()):
        digest.update(f"{name} {values.shape} {values.dtype}".encode())
        digest.update(np.ascontiguousarray(values).view(np.uint8).data)
    return digest.hexdigest()


class Draws(Protocol):
    """Where kept draws go."""

    def append(self, theta: Values, place: int) -> None:
        """Keep a draw, the `place`-th from 0."""
        ...

    def stacked(self, number: int) -> dict[str, Any]:
        """The first so many, leading axis = draw."""
        ...


class InMemory:
    """Draws in a list.

    Args:
        before: those of the part of the run before a checkpoint.
    """

    def __init__(self, before: Values | None = None) -> None:
        rows = before or {}
        number = len(next(iter(rows.values()))) if rows else 0
        self._kept = [{name: values[k] for name, values in rows.items()} for k in range(number)]

    def append(self, theta: Values, place: int) -> None:
        del self._kept[place:]
        self._kept.append(dict(theta))

    def stacked(self, number: int) -> dict[str, Any]:
        kept: Sequence[Mapping[str, Array]] = self._kept[:number]
        return {name: np.stack([draw[name] for draw in kept]) for name in kept[0]} if kept else {}


class OnDisk:
    """Draws in a Zarr group, one chunk for each draw of each parameter, written as they come.

    Args:
        folder: where; made, unless a run that is resumed made it.
        number: how many there will be.
        resumed: whether the folder must be there already.
    """

    def __init__(self, folder: str | Path, number: int, *, resumed: bool) -> None:
        import zarr

        self._group: Any = zarr.open_group(str(folder), mode="r+" if resumed else "w-")
        self._number = number

    def append(self, theta: Values, place: int) -> None:
        for name, values in theta.items():
            if name not in self._group:
                self._group.create_array(
                    name,
                    shape=(self._number, *values.shape),
                    chunks=(1, *values.shape),
                    dtype=values.dtype,
                    compressors=None,
                )
            self._group[name][place] = values

    def stacked(self, number: int) -> dict[str, Any]:
        if number == self._number:
            return dict(self._group.arrays())
        return {name: array[:number] for name, array in self._group.arrays()} if number else {}
