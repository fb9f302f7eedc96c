"""Self-contained pages: what a release was, what it cost, what that rests on.

Light to import: the command line takes its way of printing numbers from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write"]


def write(folder: str | Path) -> Path:
    """Write `report.html` into a release folder, from what is saved there; it returns the page's path.

    The page is one file without scripts that asks for nothing on any network. It is
    a function of the saved release, so it costs no privacy.

    Example:
        >>> import tempfile
        >>> import discreet as dc
        >>> mechanism = dc.mechanisms.DiffusedPosterior(dc.models.BetaBernoulli((6, 12)))
        >>> release = mechanism.plan(100, budget=dc.Budget(1.0, 1e-6)).release({"x": [1] * 38 + [0] * 62})
        >>> folder = release.save(tempfile.mkdtemp() + "/release")
        >>> write(folder).name
        'report.html'
    """
    from discreet.report import release

    return release.write(folder)
