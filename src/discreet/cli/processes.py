"""Several processes for one release: process 0 spends and draws, the others sum over their rows."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from discreet.cli.errors import RequestError

JOIN = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Where process 0 waits for the others; private sums travel there in clear: keep it local.",
    ),
]
PROCESS = Annotated[
    str | None, typer.Option(metavar="K/N", help="Which of how many processes this is: 0/2, and 1/2.")
]

_PATIENCE = 120
"""Seconds for which processes wait for each other to start."""


@dataclass(frozen=True)
class Group:
    """The processes of one release.

    Attributes:
        process: which one this is, from 0.
        processes: how many there are.
    """

    process: int = 0
    processes: int = 1

    @property
    def share(self) -> tuple[int, int]:
        """Which part of how many this process reads."""
        return self.process, self.processes

    @contextmanager
    def agreeing(self, what: list[str]) -> Iterator[None]:
        """Go on after the block only if no process refused in it, and all put the same into `what`."""
        if self.processes == 1:
            yield
            return
        fine = False
        try:
            yield
            fine = True
        finally:
            same = self._same(fine, what)
        if not same:
            raise RequestError(
                "another process refused, or has another study; nothing was spent; see what it said"
            )

    def _same(self, fine: bool, what: list[str]) -> bool:
        import numpy as np
        from jax.experimental import multihost_utils

        digest = hashlib.sha256(repr(what if fine else None).encode()).digest()
        said = np.concatenate([np.frombuffer(digest, np.uint8), [fine]]).astype(np.int32)
        with _standard_output_as_errors():  # the first exchange says there that it is connected
            everyone = np.asarray(multihost_utils.process_allgather(said))
        return bool((everyone == everyone[0]).all() and everyone[0, -1])


@contextmanager
def joined(address: str | None, which: str | None) -> Iterator[Group]:
    """The group that the options name; this process alone without them."""
    if address is None and which is None:
        yield Group()
        return
    if address is None or which is None:
        raise RequestError("--join and --process go together: give both in every process, or neither")
    group = _group(which)
    if not re.fullmatch(r"[^\s:/]+:\d{1,5}", address):
        raise RequestError("--join must be HOST:PORT, such as 127.0.0.1:9911")
    import jax

    failed = False
    try:
        jax.distributed.initialize(
            address,
            group.processes,
            group.process,
            initialization_timeout=_PATIENCE,
            coordinator_bind_address=address if group.process == 0 else None,
        )
    except RuntimeError:
        failed = True
    if failed:
        raise RequestError(
            f"the processes did not meet at {address} within {_PATIENCE} s; start all of them, with one port"
        )
    try:
        yield group
    finally:
        jax.distributed.shutdown()


@contextmanager
def _standard_output_as_errors() -> Iterator[None]:
    """Keep what compiled libraries print out of what this command prints."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _group(which: str) -> Group:
    found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", which)
    process, processes = (int(found[1]), int(found[2])) if found else (0, 0)
    if not process < processes or processes < 2:
        raise RequestError("--process must be K/N with K from 0 to N - 1 and N from 2, such as 0/2")
    return Group(process, processes)
