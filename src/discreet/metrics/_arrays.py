"""Arrays as the metrics want them, or an error that says what was wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

_SUM = 1e-4
"""How far from 1 probabilities of a record may add up to: single precision over a thousand labels."""


def classified(y: ArrayLike, probabilities: ArrayLike) -> tuple[Labels, Array]:
    """Labels and probabilities that belong together."""
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or p.shape[0] == 0 or p.shape[1] < 2:
        raise ValueError(
            f"probabilities must have one row per record and one column per label, got shape {p.shape}; "
            "for a yes or no pass both columns"
        )
    wrong = ~(np.isfinite(p).all(axis=1) & (p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= _SUM))
    if wrong.any():
        raise ValueError(
            "probabilities must be at least 0 and add up to 1 in every row, got otherwise in "
            f"{np.count_nonzero(wrong)} rows; pass probabilities, not logits"
        )
    given = np.asarray(y)
    if given.shape != p.shape[:1]:
        raise ValueError(
            f"y must have one label for each of the {len(p)} rows, got shape {given.shape}; pass one column"
        )
    labels = given.astype(np.int64)
    unknown = (labels != given) | (labels < 0) | (labels >= p.shape[1])
    if unknown.any():
        raise ValueError(
            f"y must hold whole numbers from 0 to {p.shape[1] - 1}, got others in "
            f"{np.count_nonzero(unknown)} rows; encode the labels by their column"
        )
    return labels, p


def numbers(**arrays: ArrayLike) -> tuple[Array, ...]:
    """Finite numbers of one common shape, the first array's."""
    found = {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}
    first = next(iter(found))
    shape = found[first].shape
    if not shape or shape[0] == 0:
        raise ValueError(f"{first} must have at least one row, got shape {shape}; pass an array")
    out: list[Array] = []
    for name, values in found.items():
        if values.shape not in ((), shape):
            raise ValueError(f"{name} must have the shape {shape} of {first}, got {values.shape}; align them")
        if not np.isfinite(values).all():
            bad = np.count_nonzero(~np.isfinite(values))
            raise ValueError(f"{name} must be finite, got {bad} values that are not; remove or repair them")
        out.append(np.broadcast_to(values, shape))
    return tuple(out)
