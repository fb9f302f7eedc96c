"""What a schema or a table can have wrong, in one sentence that shows no value of the data."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError


class SchemaError(ValueError):
    """A declaration that cannot be used.

    Attributes:
        place: the settings that lead to the mistake, outermost first.
    """

    def __init__(self, message: str, place: Sequence[str] = ()) -> None:
        super().__init__(f"{'.'.join(place)}: {message}" if place else message)
        self.message, self.place = message, tuple(place)

    def __reduce__(self) -> tuple[type[SchemaError], tuple[str, tuple[str, ...]]]:
        return SchemaError, (self.message, self.place)


class DataError(ValueError):
    """A table that is not as declared: names the column and how many rows, never a value."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that points at the closest known name, or lists them if they are few."""
    known = list(known)
    if near := difflib.get_close_matches(name, known[:5000], 1, 0.6):
        return f"did you mean {near[0]}?"
    shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    return f"there is {shown}" if known else "there is none"


def rows(count: int) -> str:
    """'1 row', '2 rows'."""
    return f"{count} row{'' if count == 1 else 's'}"


class Declared(BaseModel):
    """A frozen declaration whose every mistake is one sentence."""

    missing_advice: ClassVar[str] = "declare it from public knowledge"
    """What to do about a setting without a default that is not there."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def __init__(self, **values: Any) -> None:
        found = None
        try:
            super().__init__(**values)
        except ValidationError as error:
            # An unknown setting is named before a missing one: it is probably that one, misspelt.
            found = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        if found is not None:
            raise _as_schema_error(found, type(self))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From plain values, as a file holds them."""
        return cls(**values)


def _as_schema_error(error: Mapping[str, Any], model: type[Declared]) -> SchemaError:
    place = [str(part) for part in error["loc"]]
    if len(place) > 2 and place[0] == "columns":
        del place[2]  # the kind, by which Pydantic chose among the columns
    kind, given = error["type"], error["input"]
    if kind == "extra_forbidden":
        return SchemaError(
            f"there is no setting {place[-1]!r:.60} here; {nearest(place[-1], _settings(model))}", place[:-1]
        )
    if kind == "missing":
        return SchemaError(f"it is missing; {model.missing_advice}", place)
    if kind == "value_error":
        cause = error["ctx"]["error"]
        if isinstance(cause, SchemaError):
            return SchemaError(cause.message, [*place, *cause.place])
        return SchemaError(str(cause), place)
    if kind == "literal_error":
        allowed = str(error["ctx"]["expected"]).replace("'", "")
        return SchemaError(f"it must be {allowed}, got {given!r:.60}", place)
    if kind == "union_tag_not_found":
        return SchemaError(f"it is missing; it is one of {', '.join(_KINDS)}", [*place, "kind"])
    if kind == "union_tag_invalid":
        tag = str(error["ctx"]["tag"])
        return SchemaError(f"there is no kind {tag!r:.60}; {nearest(tag, _KINDS)}", place)
    if kind in _MUST:
        context: Mapping[str, Any] = error.get("ctx", {})
        must = _MUST[kind].format(**context).replace(" 1 items", " 1 item")
        shown = repr(given) if isinstance(given, str | int | float) else _shape(given)
        return SchemaError(f"it must be {must}, got {shown:.60}", place)
    message = str(error["msg"])
    return SchemaError(f"{message[:1].lower()}{message[1:]}, got {type(given).__name__}", place)


_MUST = {
    "string_type": "text in quotes",
    "string_too_short": "text of {min_length} characters at least",
    "string_too_long": "text of {max_length} characters at most",
    "int_type": "a whole number without quotes",
    "bool_type": "true or false, without quotes",
    "list_type": 'a list such as ["a", "b"]',
    "tuple_type": 'a list such as ["a", "b"]',
    "too_short": "longer, with at least {min_length} items",
    "too_long": "shorter, with at most {max_length} items",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
}
"""What Pydantic asks for, as the other messages say it."""


def _shape(given: object) -> str:
    """What stands there instead of a text or a number."""
    return "nothing" if given in ({}, [], ()) else type(given).__name__


def _settings(model: type[BaseModel]) -> list[str]:
    """The settings as a file names them."""
    return [field.alias or name for name, field in model.model_fields.items()]


_KINDS = ("real", "integer", "category", "ordinal", "binary")
