"""Files in TOML: read as plain values, refused without quoting them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from discreet.data.errors import nearest
from discreet.study.errors import StudyError

LARGEST = 1 << 22
"""Bytes of a file that is still taken for a study or a schema."""


def read_toml(place: Path) -> dict[str, Any]:
    """The values of a TOML file; whatever is wrong with it, nothing of it is quoted."""
    if place.suffix.lower() != ".toml":
        raise StudyError(
            f"{place.name or place} must be a TOML file, got {place.suffix or 'no ending'}; is it a table?"
        )
    problem = None
    try:
        if not place.is_file():
            siblings = [one.name for one in place.parent.glob("*.toml")] if place.parent.is_dir() else []
            problem = (
                f"there is no file {place}; {nearest(place.name, siblings) if siblings else 'check the path'}"
            )
        elif place.stat().st_size > LARGEST:
            problem = f"{place.name} has more than {LARGEST >> 20} MiB; is it a table?"
        else:
            return tomllib.loads(place.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        problem = "it must be text in UTF-8; save it again"
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problem = f"it is not TOML{_where(str(error))}; correct it there"
    except (OSError, ValueError):
        problem = "it cannot be read; is it a file one may read, without a number of thousands of digits?"
    raise StudyError(problem)


def _where(said: str) -> str:
    said = " ".join(said.split())
    found = re.fullmatch(r"(.*?) \(at (.*)\)", said)
    return f" at {found[2]}: {found[1][:1].lower()}{found[1][1:]}" if found else f": {said}"
