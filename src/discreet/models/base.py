"""What a model says about itself: records, prior, density of one record, and what is proved of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.data.stored import StoredRecords
from discreet.privacy.evidence import Evidence

if TYPE_CHECKING:
    import jax

Records = dict[str, NDArray[np.float64]]
"""Checked records: named arrays, leading axis = record."""

Theta = dict[str, "jax.Array"]
"""Unconstrained parameters by name."""


@dataclass(frozen=True)
class Bound:
    """A number that holds for every admissible record and parameter, and why.

    Attributes:
        value: the bound.
        evidence: how it is known.
    """

    value: float
    evidence: Evidence


class Model(ABC):
    """A likelihood for one record and a prior, with certified bounds.

    A model is a frozen dataclass of public settings. All densities take
    unconstrained parameters, so that any sampler can move freely; `constrain` maps
    them to the scale people read.
    """

    @property
    @abstractmethod
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each field of one record; () for a number."""

    @property
    @abstractmethod
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each unconstrained parameter."""

    @abstractmethod
    def log_prior(self, theta: Theta) -> jax.Array:
        """Log prior density on the unconstrained scale, up to a constant."""

    @abstractmethod
    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        """Log f(record; theta) of one record; `vmap` makes the batch."""

    def log_ratio(self, candidate: Theta, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        """Log f(record; candidate) - log f(record; theta); a model may know a shorter way."""
        return self.log_density(candidate, record) - self.log_density(theta, record)

    def constrain(self, theta: Theta) -> Theta:
        """Parameters on the scale people read."""
        return theta

    def unconstrain(self, values: Mapping[str, jax.Array]) -> Theta:
        """Unconstrained parameters from those on the scale people read, or from themselves."""
        missing = sorted(set(self.parameter_shapes) - set(values))
        if missing:
            raise ValueError(
                f"the parameters of {type(self).__name__} must be there by name, got none for "
                f"{', '.join(missing)}; take the draws of a release of this model"
            )
        return {name: values[name] for name in self.parameter_shapes}

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records | None:  # noqa: ARG002
        """Unconstrained parameters drawn from the prior, leading axis = draw; None if nobody wrote how."""
        return None

    @property
    def bounds(self) -> dict[str, Bound]:
        """Certified numbers, by name; a missing name means that nothing is certified.

        Names in use: "density" (sup f), "lipschitz" (of the log density of one
        record in the parameters), "lipschitz_difference" (of the difference of two
        records' log densities), "smoothness", "prior_convexity" (strong convexity
        of minus the log prior), "log_density" (sup |log f|).
        """
        return {}

    def validate(self, records: Mapping[str, ArrayLike]) -> Records:
        """Checked records, inside the declared domain, float64.

        A refusal names the field and how many records were at fault, never a value.
        """
        if isinstance(records, StoredRecords):
            if records.owner != self:
                raise ValueError(
                    "stored records must be those of this model, got those of another; store them again"
                )
            return records
        shapes = self.record_shapes
        unknown = sorted(set(records) ^ set(shapes))
        if unknown:
            raise ValueError(
                f"records must have the fields {', '.join(sorted(shapes))}, "
                f"got {', '.join(sorted(records))}; rename or add columns"
            )
        checked: Records = {}
        sizes: set[int] = set()
        for name, shape in shapes.items():
            try:
                array = np.asarray(records[name], dtype=np.float64)
            except (TypeError, ValueError):
                raise TypeError(
                    f"field {name} must hold numbers only; encode categories before use"
                ) from None
            if array.ndim != 1 + len(shape) or array.shape[1:] != shape:
                want = ("records", *(str(s) for s in shape))
                raise ValueError(
                    f"field {name} must have shape ({', '.join(want)}), got {array.ndim} axes "
                    f"of which the trailing are {array.shape[1:]}; check how the table was built"
                )
            bad = int(np.count_nonzero(~np.isfinite(array).all(axis=tuple(range(1, array.ndim)))))
            if bad:
                raise ValueError(
                    f"field {name} must be finite, got NaN or infinity in {bad} records; "
                    "impute a declared constant or drop the field"
                )
            sizes.add(len(array))
            checked[name] = array
        if len(sizes) != 1:
            raise ValueError("all fields must have the same number of records; check how the table was built")
        if sizes == {0}:
            raise ValueError("records must not be empty; there is nothing to infer from")
        return self.admit(checked)

    def store(
        self,
        pieces: Iterable[Mapping[str, ArrayLike]],
        *,
        folder: Path | None = None,
        total: int | None = None,
    ) -> StoredRecords:
        """Check records piece by piece and keep them on disk, for tables larger than memory.

        Args:
            pieces: as `validate` takes them; a refusal counts the records of one piece.
            folder: where the file without a name is made; by default that of the system.
            total: the number of records in all processes, where each holds a part.

        Example:
            >>> from discreet.models import BetaBernoulli
            >>> stored = BetaBernoulli((1, 1)).store({"x": [0.0, 1.0, 1.0]} for _ in range(4))
            >>> stored.rows
            12
        """
        checked = (self.validate(piece) for piece in pieces)
        return StoredRecords(self.record_shapes, self, checked, folder=folder, total=total)

    def admit(self, records: Records) -> Records:
        """Clip or refuse what lies outside the declared domain."""
        return records

    def to_dict(self) -> dict[str, Any]:
        """The public settings, for provenance."""
        from dataclasses import asdict, is_dataclass

        settings = asdict(self) if is_dataclass(self) else {}
        return {"model": type(self).__name__, **settings}


def count(records: Records) -> int:
    """The number of records."""
    if isinstance(records, StoredRecords):
        return records.total
    return len(next(iter(records.values())))


def fields_per_record(records: Records) -> int:
    """How many numbers a record has."""
    if isinstance(records, StoredRecords):
        return records.width
    return sum(values[0].size for values in records.values())


def take(records: Records, rows: NDArray[np.integer]) -> Records:
    """The records with these numbers, wherever they lie."""
    if isinstance(records, StoredRecords):
        return records.take(rows)
    return {name: values[rows] for name, values in records.items()}
