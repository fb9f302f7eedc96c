"""A mistake of a user is one line on stderr and exit code 2: what was wrong, given, allowed, what to do."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

_NEEDED = {
    "--neighbours": "is missing: give substitute (one record replaced, their number public) or add-remove "
    "(one record added or removed); an epsilon means nothing without it, so there is no default",
}


class RequestError(Exception):
    """A request that cannot be met, for a reason the user can act on."""


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
            code = 2
        sys.exit(code if isinstance(code, int) else 0)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            near = difflib.get_close_matches(args[0].lower().replace("_", "-"), self.commands, 1, 0.5)
            known = ", ".join(self.commands)
            advice = f"did you mean {near[0]}?" if near else f"the commands are {known}"
            raise RequestError(f"{ctx.command_path}: no command {args[0]!r}; {advice}")
        return super().resolve_command(ctx, args)


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
