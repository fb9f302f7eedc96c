"""What goes wrong is one line on stderr and an exit code: what was wrong, given, allowed, what to do.

No traceback, which could quote the data: set DISCREET_TRACEBACK=1 where nobody else reads along.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

_NEEDED = {
    "--neighbours": "is missing: give substitute (one record replaced, their number public) or add-remove "
    "(one record added or removed); an epsilon means nothing without it, so there is no default",
}


class Exit(IntEnum):
    """Exit codes, the same for every command."""

    OK = 0
    """Done."""

    FAULT = 1
    """discreet or the machine failed; a spend that was made stays."""

    INPUT = 2
    """Something given cannot be used; nothing was spent."""

    BUDGET = 3
    """The budget does not allow it; nothing was spent."""

    VERIFICATION = 4
    """A ledger, a release or an audit is not what it claims to be."""

    UNCONFIRMED = 5
    """Nobody confirmed the spend; nothing was spent."""

    INTERRUPTED = 130
    """Stopped from the keyboard; a spend that was made stays."""


class RequestError(Exception):
    """A request that cannot be met, for a reason the user can act on.

    Attributes:
        code: the exit code.
    """

    def __init__(self, message: str, code: Exit = Exit.INPUT) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def refusals(where: str) -> Iterator[None]:
    """Let what the library refuses be one line that begins with the command."""
    from discreet.data import DataError, SchemaError
    from discreet.ledger import BudgetExceeded, LedgerBroken, LedgerError
    from discreet.privacy import BudgetError
    from discreet.study import StudyError

    codes: tuple[tuple[tuple[type[Exception], ...], Exit], ...] = (
        ((BudgetExceeded, BudgetError), Exit.BUDGET),
        ((LedgerBroken,), Exit.VERIFICATION),
        ((StudyError, SchemaError, DataError, LedgerError), Exit.INPUT),
    )
    refused: RequestError | None = None
    try:
        yield
    except RequestError as error:
        said = str(error)
        refused = RequestError(said if said.startswith(where) else f"{where}: {said}", error.code)
    except (ValueError, LedgerError) as error:
        code = next((code for kinds, code in codes if isinstance(error, kinds)), None)
        if code is None:
            raise
        refused = RequestError(f"{where}: {error}", code)
    if refused is not None:
        raise refused


@contextmanager
def plainly() -> Iterator[None]:
    """Around a call whose refusals are sentences for users, without a value of the data."""
    said = None
    try:
        yield
    except (ValueError, TypeError) as error:
        said = str(error)
    if said is not None:
        raise RequestError(said)


class OneLineErrors(TyperGroup):
    """A group of commands that says what was wrong in one line, and the nearest command for a typo."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except (TyperException, RequestError) as error:
            typer.echo(" ".join(_sentence(error).split()), err=True)
            code = int(getattr(error, "code", Exit.INPUT))
        except (KeyboardInterrupt, typer.Abort):
            typer.echo("discreet: interrupted; a spend that was made stays, see discreet ledger", err=True)
            code = int(Exit.INTERRUPTED)
        except Exception as error:  # whatever it is, its message may quote the data
            if os.environ.get("DISCREET_TRACEBACK"):
                raise
            typer.echo(_unexpected(error), err=True)
            code = int(Exit.FAULT)
        sys.exit(code if isinstance(code, int) else 0)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            near = difflib.get_close_matches(args[0].lower().replace("_", "-"), self.commands, 1, 0.5)
            known = ", ".join(self.commands)
            advice = f"did you mean {near[0]}?" if near else f"the commands are {known}"
            raise RequestError(f"{ctx.command_path}: no command {args[0]!r}; {advice}")
        return super().resolve_command(ctx, args)


def _unexpected(error: Exception) -> str:
    """What may be said of an exception nobody thought of: its type and place, never its message."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = f" at {os.path.basename(last.tb_frame.f_code.co_filename)}:{last.tb_lineno}" if last else ""  # noqa: PTH119
    return (
        f"discreet: an unforeseen {type(error).__name__}{place}; its message may quote the data and is not "
        "shown; set DISCREET_TRACEBACK=1 to see it, and report it without the data"
    )


def _sentence(error: Exception) -> str:
    if not isinstance(error, TyperException):
        return str(error)
    context = getattr(error, "ctx", None)
    where = context.command_path if context else "discreet"
    advice = f"; see {where} --help"
    option = getattr(error, "option_name", None)
    if isinstance(error, typer.BadParameter):
        name = _name(error)
        said = error.message.removeprefix("Value error, ").rstrip(".")
        if not said:
            return f"{where}: {name} {_NEEDED.get(name, 'is missing: give it' + advice)}"
        return f"{where}: {name} {said}{'' if ';' in said else advice}"
    if option == "--neighbours" and "No such" in error.message:
        return f"{where}: --neighbours is not a choice here, one relation is proved; leave it out"
    if option and "No such" in error.message:
        near: Sequence[str] = getattr(error, "possibilities", None) or ()
        meant = f"; did you mean {' or '.join(sorted(near))}?" if near else advice
        return f"{where}: no option {option}{meant}"
    if option and "requires an argument" in error.message:
        return f"{where}: {option} needs a value after it, got none{advice}"
    return f"{where}: {_lower(error.message.rstrip('.'))}{advice}"


def _name(error: typer.BadParameter) -> str:
    """The option or argument as the user types it."""
    parameter = error.param
    options = [name for name in getattr(parameter, "opts", ()) if name.startswith("--")]
    if options:
        return options[0]
    return getattr(parameter, "metavar", None) or str(getattr(parameter, "name", "argument")).upper()


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def named_as_typed(message: str, names: dict[str, str]) -> str:
    """A message of the library, with its argument named as the command line names it."""
    first = re.match(r"\w+", message)
    typed = names.get(first[0]) if first else None
    return typed + message[len(first[0]) :] if first and typed else message
