"""Ctrl-C during a release: what was drawn is a release, billed in full, and may go on once.

The whole plan is billed before the first draw, so stopping early can only cost too
much, never too little. Going on runs the steps that are left, from the last state
of the chain, which is private output already, with fresh randomness.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.mechanisms.base import Drawn
    from discreet.mechanisms.release import Release


class Paused(Exception):  # noqa: N818 - not an error
    """What a mechanism raises when it is interrupted between two blocks of steps.

    Attributes:
        drawn: what is there so far.
        resume: draws the rest, and returns all of it.
    """

    def __init__(self, drawn: Drawn, resume: Callable[[], Drawn]) -> None:
        super().__init__("paused")
        self.drawn, self.resume = drawn, resume


class Interrupted(KeyboardInterrupt):
    """A release that was stopped by Ctrl-C.

    Attributes:
        release: the draws so far, at the price of the whole plan.
    """

    def __init__(self, release: Release, resume: Callable[[], Release]) -> None:
        super().__init__("the release was interrupted; its whole plan is billed, and resume() runs the rest")
        self.release = release
        self._resume: Callable[[], Release] | None = resume

    def resume(self) -> Release:
        """Run the rest of the plan at no further cost; once, because twice would cost twice."""
        resume, self._resume = self._resume, None
        if resume is None:
            raise RuntimeError(
                "this release was resumed already, allowed is once; a second continuation needs a new plan"
            )
        return resume()


def run(draw: Callable[[], Drawn], wrap: Callable[[Drawn], Release]) -> Release:
    """The release of what `draw` returns; an interruption turns into `Interrupted`."""
    try:
        return wrap(draw())
    except Paused as paused:
        rest = paused.resume
        raise Interrupted(wrap(paused.drawn), lambda: run(rest, wrap)) from None


class Asked:
    """Whether Ctrl-C came.

    Attributes:
        stop: whether it did.
    """

    stop: bool = False


@contextmanager
def between_steps() -> Generator[Asked]:
    """Ctrl-C inside only sets `stop`, so that a step is done whole or not at all.

    A step that was cut in half could be run, and its noise used, twice.
    """
    asked = Asked()

    def note(*_: Any) -> None:
        asked.stop = True

    if threading.current_thread() is not threading.main_thread():
        yield asked  # Python gives Ctrl-C to the main thread alone
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
