"""Before any spend: what it costs, what is left, and whether somebody wants it."""

from __future__ import annotations

import sys

import typer

from discreet.cli.errors import Exit, RequestError


def confirm(question: str, *, yes: bool) -> None:
    """Ask on the terminal; refuse where nobody is there to answer."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise RequestError(
            "a spend must be confirmed and nobody is there to ask; give --yes; nothing was spent",
            Exit.UNCONFIRMED,
        )
    if not typer.confirm(question, err=True):
        raise RequestError("not confirmed; nothing was spent", Exit.UNCONFIRMED)
