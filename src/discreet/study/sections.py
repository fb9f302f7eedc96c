"""The sections of a study file, as settings that are checked one by one."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field

from discreet.data.columns import Number
from discreet.study.errors import Setting


def _line(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("it must be one line of text; write it without line breaks, and not empty")
    return value.strip()


Line = Annotated[str, AfterValidator(_line)]


class Data(Setting):
    """`[data]`: which table, and how it becomes records.

    Attributes:
        path: of the table, from the folder of the study file.
        target: the column to explain, or a threshold on it such as "age >= 65".
        records: how many rows the table has, where that number is public.
        features: the columns to explain it by; all but the target unless given.
        intercept: whether there is a constant feature.
        scale: the interval that declared bounds are mapped to.
        drop_first: whether a category's first value has no feature.
        row_norm: a public limit to which longer rows of features are shortened.
        stream: whether records are kept on disk, for a table larger than memory.
        scratch: the folder for them, from the folder of the study file; by default that of the system.
    """

    path: str = Field(min_length=1)
    target: str = Field(min_length=1)
    records: int | None = Field(default=None, ge=1, le=10**12)
    features: list[str] | None = None
    intercept: bool = True
    scale: Literal["unit", "centred"] = "unit"
    drop_first: bool = False
    row_norm: Number | None = None
    stream: bool = False
    scratch: str | None = Field(default=None, min_length=1)

    def at(self, path: str) -> Self:
        """The same about a table elsewhere."""
        return self.model_copy(update={"path": path})


class Privacy(Setting):
    """`[privacy]`: what the release may cost, and what an epsilon is about."""

    epsilon: Number = Field(gt=0)
    delta: Number = Field(default=0.0, ge=0, lt=1)
    neighbours: Literal["substitute", "add_remove"]


class LedgerPlace(Setting):
    """`[ledger]`: where the spend is recorded.

    Attributes:
        place: a file, from the folder of the study file, or postgresql://user@host/database.
        dataset: the public name of the data set; by default the ledger's own.
        purpose: what the ledger notes.
    """

    place: str = Field(min_length=1)
    dataset: Line | None = Field(default=None, max_length=200)
    purpose: Line | None = Field(default=None, max_length=500)


class Report(Setting):
    """`[report]`: what is written beside the draws.

    Attributes:
        folder: where the release goes, from the folder of the study file, unless --out says otherwise.
        page: whether report.html is written.
        authors: who may be cited for it.
    """

    folder: str | None = Field(default=None, min_length=1)
    page: bool = True
    authors: list[str] = Field(default_factory=list)
