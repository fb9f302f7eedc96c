"""What a study file can have wrong, in one sentence that names the setting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, TypeVar

from discreet.data.errors import Declared, SchemaError, nearest
from discreet.privacy import BudgetError


class StudyError(ValueError):
    """A study that cannot be used."""


class Setting(Declared):
    """A part of a study file."""

    missing_advice: ClassVar[str] = "add it"


class Named(Setting):
    """A row of a table, which a study file chooses by its name."""

    named: ClassVar[str]
    """How the study file calls it."""


Part = TypeVar("Part", bound=Setting)
Row = TypeVar("Row", bound=Named)


def parse(place: str, part: type[Part], values: object) -> Part:
    """A part of the study from plain values; a mistake says where it is."""
    settings = _section(place, values)
    problem = None
    try:
        return part.of(settings)
    except SchemaError as error:
        problem = f"{place}.{error}" if error.place else f"{place}: {error}"
    raise StudyError(problem)


def choose(place: str, table: Mapping[str, type[Row]], values: object) -> Row:
    """The row of `table` that `values["name"]` calls, with its other settings."""
    settings = _section(place, values)
    name = settings.pop("name", None)
    if name is None:
        raise StudyError(f"{place}.name: it is missing; there is {', '.join(table)}")
    if not isinstance(name, str) or name not in table:
        spelt = {known.lower(): known for known in table}
        word = re.sub(r"[\W_]", "", str(name)).lower()
        near = f"did you mean {spelt[word]}?" if word in spelt else nearest(str(name), table)
        raise StudyError(f"{place}.name: there is no {place} {name!r:.60}; {near}")
    return parse(place, table[name], settings)


@contextmanager
def speaking_of(place: str, settings: Named) -> Iterator[None]:
    """Let what the library refuses name the part of the study file that it is about."""
    problem = None
    try:
        yield
    except (BudgetError, StudyError):
        raise  # the one is no mistake in the file, the other says where it is
    except (ValueError, TypeError) as error:
        said = str(error)
        first = re.match(r"[a-z_]+", said)
        known = first is not None and first[0] in type(settings).model_fields
        problem = f"{place}.{said}" if known else f"{place} {settings.named}: {said}"
    if problem is not None:
        raise StudyError(problem)


def _section(place: str, values: object) -> dict[str, object]:
    if not isinstance(values, Mapping):
        raise StudyError(f"{place}: it must be a section [{place}], got {type(values).__name__}")
    return {str(key): value for key, value in values.items()}
