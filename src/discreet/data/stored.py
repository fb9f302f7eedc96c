"""`StoredRecords`: checked records that lie on disk, for tables larger than memory."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from discreet.data.columns import Array

_WINDOW = 1 << 26
"""Bytes of the file that are mapped at once; pages that are mapped count as resident."""


class StoredRecords(dict[str, Array]):
    """Records of one model in a file that has no name, read by row numbers or from end to end.

    The file holds exactly the numbers that a model checked, as float64. It is
    readable by this process alone and is gone when the process ends, however it ends.
    Its blocks are freed, not overwritten; where that matters, put it on an encrypted disk.

    Made by `Model.store`. It holds no arrays: a mechanism that needs them all in
    memory refuses it before anything is spent.

    Args:
        shapes: of the fields of one record.
        owner: the model that checked them.
        pieces: checked records, piece by piece.
        folder: where the file is; None is the system's folder for temporary files.
        total: how many records all processes hold together, where there are several.
    """

    def __init__(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        owner: object,
        pieces: Iterable[Mapping[str, Array]],
        *,
        folder: Path | None = None,
        total: int | None = None,
    ) -> None:
        super().__init__()
        self.shapes, self.owner = dict(shapes), owner
        self.width = sum(math.prod(shape) for shape in self.shapes.values())
        self.rows = 0
        self._file = cast("BinaryIO", tempfile.TemporaryFile(buffering=0, dir=folder))  # noqa: SIM115
        for piece in pieces:
            self._append(piece)
        self.total = self.rows if total is None else total

    def take(self, rows: NDArray[np.integer]) -> dict[str, Array]:
        """The records with these numbers, in this order and with these leading axes."""
        flat = rows.reshape(-1)
        order = np.argsort(flat, kind="stable")
        sorted_rows, found = flat[order], np.empty((flat.size, self.width))
        per_window = max(1, _WINDOW // self._bytes)
        at = 0
        while at < flat.size:
            first = int(sorted_rows[at])
            to = int(np.searchsorted(sorted_rows, first + per_window))
            found[order[at:to]] = self._window(first, sorted_rows[at:to])
            at = to
        return self._fields(found.reshape(*rows.shape, self.width))

    def pieces(self, size: int, number: int) -> Iterator[tuple[dict[str, Array], int]]:
        """`number` pieces of `size` records from end to end, each with how many of its rows are records."""
        for place in range(number):
            start = min(place * size, self.rows)
            there = min(size, self.rows - start)
            block = np.zeros((size, self.width))
            self._read(_raw(block)[: there * self._bytes], start * self._bytes)
            yield self._fields(block), there

    def close(self) -> None:
        """Free the file."""
        self._file.close()

    def __missing__(self, name: str) -> Array:
        raise TypeError(
            f"field {name} lies on disk and is not loaded; read the table without stream for this mechanism"
        )

    def __repr__(self) -> str:
        return f"<stored records {', '.join(self.shapes)}: sensitive>"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("stored records cannot be copied or pickled; read the table again")

    # --- inside -------------------------------------------------------------------

    @property
    def _bytes(self) -> int:
        return 8 * self.width

    def _append(self, piece: Mapping[str, Array]) -> None:
        rows = len(next(iter(piece.values())))
        block = np.concatenate(
            [np.asarray(piece[name], np.float64).reshape(rows, -1) for name in self.shapes], axis=1
        )
        view = _raw(block)
        while view:
            view = view[self._file.write(view) :]
        self.rows += rows

    def _read(self, view: memoryview, at: int) -> None:
        while view:
            got = os.preadv(self._file.fileno(), [view], at)
            if not got:
                raise OSError("the stored records end too early")
            view, at = view[got:], at + got

    def _window(self, first: int, rows: NDArray[np.integer]) -> Array:
        """Rows of one window, through a map that does not outlive the call."""
        start = first * self._bytes
        offset = start - start % mmap.ALLOCATIONGRANULARITY
        length = (int(rows[-1]) + 1) * self._bytes - offset
        with mmap.mmap(self._file.fileno(), length, access=mmap.ACCESS_READ, offset=offset) as view:
            seen = np.frombuffer(view, np.float64, offset=start - offset).reshape(-1, self.width)
            found = seen[rows - first]
            del seen
        return found

    def _fields(self, block: Array) -> dict[str, Array]:
        fields: dict[str, Array] = {}
        at = 0
        for name, shape in self.shapes.items():
            to = at + math.prod(shape)
            fields[name] = block[..., at:to].reshape(*block.shape[:-1], *shape)
            at = to
        return fields


def _raw(block: Array) -> memoryview:
    """The bytes of a block that is contiguous."""
    return memoryview(cast("Any", block.reshape(-1))).cast("B")
