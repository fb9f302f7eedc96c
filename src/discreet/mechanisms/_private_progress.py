"""A progress bar that says what the steps so far cost: a public number, at public moments."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

_TOLD = 20


@contextmanager
def spending_bar(
    shown: bool, done: int, steps: int, spent: Callable[[int], str]
) -> Generator[Callable[[int], None]]:
    """A bar on standard error whose text is `spent(steps so far)`, told about twenty times; or nothing.

    Args:
        shown: whether there is one.
        done: how many steps were.
        steps: how many there are.
        spent: what so many steps cost, in words.
    """
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    every, at = max(1, steps // _TOLD), done
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("steps", total=steps, completed=done)

        def advance(number: int) -> None:
            nonlocal at
            at += number
            if at % every == 0 or at == steps:
                progress.update(task, description=spent(at))
            progress.advance(task, number)

        yield advance
