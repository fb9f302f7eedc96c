"""A release folder, as the commands that look at one read it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.errors import RequestError

if TYPE_CHECKING:
    from discreet.mechanisms import Release


def read(folder: Path) -> Release:
    """The release in a folder, or a sentence about what is wrong with it."""
    from discreet.mechanisms import Release

    if not folder.is_dir():
        raise RequestError(f"there is no folder {folder}; give one that discreet release wrote")
    if not (folder / "release.json").is_file():
        raise RequestError(f"{folder} holds no release.json; give a folder that discreet release wrote")
    problem = None
    try:
        return Release.load(folder)
    except ValueError as error:
        problem = str(error).splitlines()[0] if "format" in str(error) else "a part of it is damaged"
    except Exception as error:  # noqa: BLE001  # readers of several formats, each with its own errors
        problem = f"a part of it is damaged or missing ({type(error).__name__})"
    raise RequestError(f"{folder} is no release that can be read: {problem}")
