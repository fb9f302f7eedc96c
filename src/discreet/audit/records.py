"""Made-up records that a model admits: corners of its domain, random ones, and ones close to these."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from discreet.models.base import Model, Records, count

Array = NDArray[np.float64]
_SCALARS = (0.0, 1.0, -1.0, 2.0, 0.5, 10.0, 1e3, -10.0, -1e3)


def pool(model: Model, generator: np.random.Generator, size: int = 96) -> Records:
    """Up to `size` different admissible records, corners first."""
    made: list[Records] = []
    known = 0
    for option in _options(model, generator, size):
        admitted = _admitted(model, option)
        if admitted is not None:
            made.append(admitted)
            known = count(_distinct(made))
        if known >= size:
            break
    if not made:
        raise ValueError(
            f"no made-up record is admissible for {type(model).__name__}, of those tried; "
            "give the audit a Pair of two neighbouring data sets"
        )
    found = _distinct(made)
    return {name: values[:size] for name, values in found.items()}


def near(model: Model, records: Records, generator: np.random.Generator, size: int, step: float) -> Records:
    """These records, and admissible ones close to them."""
    made = [records]
    rows = generator.integers(count(records), size=size)
    for k in rows.tolist():
        moved = {name: values[k : k + 1].copy() for name, values in records.items()}
        for name, value in moved.items():
            if generator.random() < 0.7:
                width = step * max(1.0, float(np.abs(value).max()))
                moved[name] = value + width * generator.standard_normal(value.shape)
        admitted = _admitted(model, moved)
        if admitted is not None:
            made.append(admitted)
    return _distinct(made)


def stacked(base: Records, k: int, times: int, *others: tuple[Records, int]) -> Records:
    """`times` copies of record k of `base`, after single records of others."""
    parts = [{name: v[j : j + 1] for name, v in records.items()} for records, j in others]
    parts.append({name: np.repeat(v[k : k + 1], times, axis=0) for name, v in base.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in base}


def _options(model: Model, generator: np.random.Generator, size: int) -> list[dict[str, Array]]:
    """Records one at a time, for the model to clip or refuse."""
    shapes = model.record_shapes
    reach = float(getattr(model, "row_norm", 1.0))
    limits = _limits(model)
    ends: dict[str, list[Array]] = {}
    for name, shape in shapes.items():
        if shape == ():
            scalars = (*limits, *_SCALARS)
            ends[name] = [np.array(value) for value in dict.fromkeys(scalars)]
        else:
            ends[name] = _directions(shape, reach)
    corners = list(itertools.islice(itertools.product(*ends.values()), 40 * size))
    generator.shuffle(corners)  # pyright: ignore[reportArgumentType]
    first = [dict(zip(shapes, corner, strict=True)) for corner in corners]
    drawn: list[dict[str, Array]] = []
    for _ in range(4 * size):
        scale = reach * 10.0 ** generator.uniform(-1, 1)
        one = {name: generator.standard_normal(shape) * scale for name, shape in shapes.items()}
        for name, shape in shapes.items():
            if shape == () and generator.random() < 0.8:
                one[name] = ends[name][generator.integers(len(ends[name]))]
        drawn.append(one)
    return first[: 3 * size] + drawn


def _limits(model: Model) -> list[float]:
    """Public numbers of the model that may be ends of a domain: a pair of limits, or a largest value."""
    found: list[float] = []
    limits = getattr(model, "limits", None)
    if isinstance(limits, tuple) and len(limits) == 2:
        found += [float(limits[0]), float(limits[1])]
    for name in ("largest", "classes", "categories"):
        value = getattr(model, name, None)
        if isinstance(value, int | float):
            found += [float(value), float(value) - 1]
    prior = getattr(model, "prior", None)
    if isinstance(prior, tuple):
        found.append(float(len(prior) - 1))
    return found


def _directions(shape: tuple[int, ...], reach: float) -> list[Array]:
    """Zero, the axes and the diagonals, both ways, as long as rows may be; and corners of the cube."""
    size = int(np.prod(shape))
    axes = np.eye(size)[: min(size, 8)]
    whole = np.ones((1, size))
    halves = np.where(np.arange(size) % 2 == 0, 1.0, -1.0)[None]
    units = np.concatenate([axes, whole / np.sqrt(size), halves / np.sqrt(size)]) * reach
    rows = [np.zeros(size), *units, *(-units), *whole, *(-whole)]
    return [row.reshape(shape) for row in rows]


def _admitted(model: Model, option: Mapping[str, Array]) -> Records | None:
    """One record as the model takes it, or None; scalar fields that must be whole are tried as such."""
    one = {n: np.asarray(v, np.float64).reshape(1, *model.record_shapes[n]) for n, v in option.items()}
    for change in (lambda v: v, np.rint, lambda v: (v > 0).astype(float)):
        try:
            return model.validate({n: change(v) if v.ndim == 1 else v for n, v in one.items()})
        except (ValueError, TypeError):
            continue
    return None


def _distinct(made: list[Records]) -> Records:
    joined = {name: np.concatenate([one[name] for one in made]) for name in made[0]}
    rows = np.concatenate([v.reshape(len(v), -1) for _, v in sorted(joined.items())], axis=1)
    _, kept = np.unique(rows, axis=0, return_index=True)
    return {name: values[np.sort(kept)] for name, values in joined.items()}
