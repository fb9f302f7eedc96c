# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""A release folder: `release.json` beside `posterior.nc`, the latter as ArviZ writes and reads it."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FORMAT = 2
"""1 had draws.npz in place of posterior.nc, and no hash."""


def write(target: Path, document: Mapping[str, Any], posterior: Mapping[str, Array], prior: Any) -> Path:
    """Write the folder beside its place, then move it there whole."""
    if target.exists():
        raise FileExistsError(f"{target} must be a new folder, and is there already; name another")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    data = inference_data(posterior, prior)
    whole = {"format": FORMAT, "groups": data.groups(), **document}
    text = json.dumps(whole, indent=2, sort_keys=True)
    (partial / "release.json").write_text(text + "\n", encoding="utf-8")
    for group in data.groups():
        data[group].attrs = {}  # a time of writing would tell how long the run took
    data.to_netcdf(str(partial / "posterior.nc"))
    return partial.rename(target)


def read(source: Path) -> tuple[dict[str, Any], dict[str, Array], dict[str, Array]]:
    """The document, the draws with one leading axis, and those of the prior."""
    document = json.loads((source / "release.json").read_text(encoding="utf-8"))
    given = document.get("format")
    if given == 1:
        with np.load(source / "draws.npz", allow_pickle=False) as stored:
            return document, {name: stored[name] for name in stored.files}, {}
    if given != FORMAT:
        raise ValueError(f"release.json has format {given!r}, allowed are 1 and {FORMAT}; upgrade discreet")
    path = source / "posterior.nc"
    posterior, prior = (
        _group(path, name) if name in document["groups"] else {} for name in ("posterior", "prior")
    )
    return document, posterior, prior


def inference_data(posterior: Mapping[str, Array], prior: Mapping[str, Array]) -> Any:
    """ArviZ's container, with groups `posterior` and, unless it is empty, `prior`."""
    import arviz

    groups = {"posterior": _named(posterior)}
    if prior:
        groups["prior"] = {name: values[None] for name, values in _named(prior).items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "More chains", UserWarning)  # they are known to be chains
        return cast("Any", arviz).from_dict(**groups)


def _group(path: Path, group: str) -> dict[str, Array]:
    import xarray

    found = cast("Any", xarray).load_dataset(path, group=group, engine="h5netcdf")
    return {
        unquote(name): np.asarray(values.values).reshape(-1, *values.shape[2:])
        for name, values in found.data_vars.items()
    }


def _named(values: Mapping[str, Array]) -> dict[str, Array]:
    """Names that netCDF and ArviZ can take: a slash, and what would clash with an axis, percent-encoded."""

    def encoded(found: re.Match[str]) -> str:
        return f"%{ord(found[0][0]):02X}{found[0][1:]}"

    clashing = re.compile(r"[/%]|^(?:chain|draw)$|_(?=dim_\d+$)")
    return {clashing.sub(encoded, name): array for name, array in values.items()}
