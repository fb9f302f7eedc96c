"""`Study`: a study file, read and checked; its plan touches no data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data import DataError, Encoding, Records, Schema, SchemaError, StoredRecords
from discreet.data.errors import nearest
from discreet.data.schema import toml_key, toml_value
from discreet.privacy import Budget, Neighbours
from discreet.study.errors import StudyError, choose, parse, speaking_of
from discreet.study.files import read_toml
from discreet.study.mechanisms import MECHANISMS, MechanismRow
from discreet.study.models import MODELS, ModelRow
from discreet.study.sections import Data, LedgerPlace, Privacy, Report

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.mechanisms import Plan, Release
    from discreet.mechanisms.base import Account
    from discreet.models.base import Model

_DECLARED = ("columns", "separator", "missing_marks")
"""Settings of `[data]` that make up a schema, where no file has one."""

_SECTIONS = ("title", "data", "model", "mechanism", "privacy", "ledger", "report")


@dataclass(frozen=True)
class Study:
    """A question, a table, a mechanism and a price.

    Made by `load`.

    Attributes:
        title: for people.
        data: which table.
        schema: what is publicly known of it.
        model_row: the model's settings.
        mechanism_row: the mechanism's settings.
        privacy: the price.
        ledger_place: where it is recorded; None where the file does not say.
        report: what is written.
        folder: that of the study file, from which paths count.

    Example:
        >>> from discreet.study import Study
        >>> study = Study.of(
        ...     {
        ...         "data": {
        ...             "path": "survey.csv",
        ...             "target": "agrees",
        ...             "records": 100,
        ...             "columns": {"agrees": {"kind": "binary", "values": ["no", "yes"]}},
        ...         },
        ...         "model": {"name": "BetaBernoulli", "prior": [6, 12]},
        ...         "mechanism": {"name": "DiffusedPosterior"},
        ...         "privacy": {"epsilon": 1.0, "delta": 1e-6, "neighbours": "substitute"},
        ...     }
        ... )
        >>> f"{study.plan().parameters['weight']:.4f}"
        '0.4031'
    """

    title: str | None
    data: Data
    schema: Schema
    model_row: ModelRow
    mechanism_row: MechanismRow
    privacy: Privacy
    ledger_place: LedgerPlace | None
    report: Report
    folder: Path

    # --- reading ------------------------------------------------------------------

    @classmethod
    def of(cls, values: Mapping[str, Any], folder: Path = Path()) -> Study:
        """A study from plain values, as a file holds them."""
        for name in values:
            if name not in _SECTIONS:
                raise StudyError(f"there is no section {name!r:.60} here; {nearest(str(name), _SECTIONS)}")
        for name in ("data", "model", "mechanism", "privacy"):
            if name not in values:
                raise StudyError(f"{name}: it is missing; add a section [{name}]")
        title = values.get("title")
        if title is not None and not (
            isinstance(title, str) and title.isprintable() and title[:201] == title
        ):
            raise StudyError("title: it must be one line of text in quotes, up to 200 characters")
        data, schema = _data(values["data"], folder)
        study = cls(
            title=title,
            data=data,
            schema=schema,
            model_row=choose("model", MODELS, values["model"]),
            mechanism_row=choose("mechanism", MECHANISMS, values["mechanism"]),
            privacy=parse("privacy", Privacy, values["privacy"]),
            ledger_place=parse("ledger", LedgerPlace, values["ledger"]) if "ledger" in values else None,
            report=parse("report", Report, values.get("report", {})),
            folder=folder,
        )
        study.check()
        return study

    def check(self) -> None:
        """Refuse parts that contradict each other; touches no data."""
        _ = self.model
        relation, number = self.privacy.neighbours, self.data.records
        if relation == "substitute" and number is None:
            raise StudyError(
                "data.records: it is missing; give the number of rows, which is public where neighbours are "
                "substitute"
            )
        if relation == "add_remove" and number is not None:
            raise StudyError(
                "data.records: it must be left out where neighbours are add_remove, because the number of "
                "rows is not public there; remove it, or choose substitute"
            )
        if self.data.stream and not self.mechanism_row.streams:
            able = ", ".join(name for name, row in MECHANISMS.items() if row.streams)
            raise StudyError(
                f"data.stream: {self.mechanism_row.named} reads all records at once; remove stream, or "
                f"choose one of {able}"
            )
        if relation not in self.mechanism_row.relations:
            proved = " and ".join(self.mechanism_row.relations)
            raise StudyError(
                f"privacy.neighbours: {self.mechanism_row.named} is proved for {proved}, got {relation}; "
                "change one of them"
            )

    # --- what follows -------------------------------------------------------------

    @cached_property
    def encoding(self) -> Encoding:
        """How the table becomes records."""
        of_target = not self.model_row.reads_features
        if of_target and self.data.features is not None:
            raise StudyError(
                f"data.features: {self.model_row.named} is about the target alone and takes no features; "
                "remove them"
            )
        problem = None
        try:
            return self.schema.encoding(
                target=self.data.target,
                columns=() if of_target else self.data.features,
                scale=self.data.scale,
                intercept=self.data.intercept and not of_target,
                drop_first=self.data.drop_first,
                row_norm=self.data.row_norm,
            )
        except SchemaError as error:
            problem = str(error)
        raise StudyError(f"data: {problem}")

    @cached_property
    def model(self) -> Model:
        """The model."""
        encoding = self.encoding
        if self.model_row.reads_features and not encoding.features:
            raise StudyError("data.features: there are none; name a column, or set intercept = true")
        with speaking_of("model", self.model_row):
            return self.model_row.model(encoding)
        raise AssertionError  # for the type checker: the block returns or raises

    @property
    def budget(self) -> Budget:
        """What the release may cost."""
        return Budget(self.privacy.epsilon, self.privacy.delta, Neighbours(self.privacy.neighbours))

    @property
    def table(self) -> Path:
        """Where the data lie."""
        return self.folder / self.data.path

    @property
    def purpose(self) -> str:
        """What the ledger notes."""
        noted = self.ledger_place.purpose if self.ledger_place is not None else None
        return noted or self.title or f"{self.model_row.named} of {self.data.target}"

    def plan(self) -> Plan:
        """The plan: its noise solved for, its guarantee known. Touches no data."""
        return self._plan

    @cached_property
    def _plan(self) -> Plan:
        with speaking_of("mechanism", self.mechanism_row):
            return self.mechanism_row.plan(self.model, self.data.records, self.budget)
        raise AssertionError  # for the type checker: the block returns or raises

    def records(self, share: tuple[int, int] = (0, 1)) -> Records | StoredRecords:
        """Read the table. The first thing here that touches data.

        Args:
            share: (k, P) reads the k-th of P equal parts, where P processes make one release of a
                table that is streamed.
        """
        if self.data.stream:
            return self._stored(*share)
        if share != (0, 1):
            raise StudyError("data.stream: it must be true where several processes share a table; add it")
        records = self.model_row.records(self.encoding.records(self.table))
        if self.data.records is not None:
            self._counted(len(next(iter(records.values()))), self.data.records)
        return records

    def _stored(self, process: int, processes: int) -> StoredRecords:
        n = self.data.records
        assert n is not None  # noqa: S101  # `check` asks for it
        first, last = n * process // processes, n * (process + 1) // processes
        final = process + 1 == processes  # reads to the end, and finds rows that nobody expects
        pieces = self.encoding.batches(self.table, part=slice(first, None if final else last))
        scratch = None if self.data.scratch is None else self.folder / self.data.scratch
        if scratch is not None and not scratch.is_dir():
            raise StudyError(f"data.scratch: there is no folder {scratch}; make it first")
        stored = self.model.store(map(self.model_row.records, pieces), folder=scratch, total=n)
        self._counted(stored.rows, last - first)
        return stored

    def _counted(self, found: int, expected: int) -> None:
        if found != expected:
            raise DataError(
                f"{self.table.name} must have as many rows as the study says, {self.data.records}, got "
                "another number; correct data.records, which is public where neighbours are substitute"
            )

    def release(
        self,
        records: Records | StoredRecords,
        *,
        key: int | None = None,
        ledger: Account | None = None,
        progress: bool = False,
    ) -> Release:
        """Spend and draw, as `Plan.release`; what the release says of itself names the features.

        Args:
            records: what `records()` read.
            key: a seed, or None for the operating system's entropy.
            ledger: where the spend is recorded.
            progress: show a progress bar that tells nothing about the data.
        """
        drawn = self.plan().release(records, key=key, ledger=ledger, purpose=self.purpose, progress=progress)
        return self.described(drawn)

    def described(self, release: Release) -> Release:
        """A release that says of which study it is."""
        return replace(release, provenance={**release.provenance, "study": self.about()})

    def about(self) -> dict[str, Any]:
        """What a release says of the study it is of: public, without paths."""
        return {
            "title": self.title,
            "authors": self.report.authors,
            "target": self.data.target,
            "features": list(self.encoding.features),
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "schema": self.schema.hash(),
        }

    def ledger(self, who: str | None = None) -> Ledger:
        """The ledger that the study names; it must be there."""
        from discreet.ledger import Ledger

        named = self.ledger_place
        if named is None:
            raise StudyError("ledger: it is missing; add a section [ledger] with place = 'NAME.ledger'")
        return Ledger(self.ledger_file() or named.place, dataset=named.dataset, who=who)

    def ledger_file(self) -> Path | None:
        """The ledger's file; None where it lies in a database, whose address may hold a password."""
        named = self.ledger_place
        return None if named is None or "://" in named.place else self.folder / named.place

    def to_toml(self) -> str:
        """The study on its own, with its schema inside and without paths or the ledger's address."""
        named = {"title": self.title} if self.title is not None else {}
        data = self.data.model_dump(exclude_none=True, exclude={"stream", "scratch"})
        data |= {"path": self.table.name}
        schema = self.schema.to_dict()
        columns = schema.pop("columns")
        data |= {name: schema[name] for name in _DECLARED if name in schema}
        sections: dict[str, Mapping[str, Any]] = {
            "data": data,
            **{f"data.columns.{toml_key(name)}": column for name, column in columns.items()},
            "model": {"name": self.model_row.named, **self.model_row.model_dump(exclude_none=True)},
            "mechanism": {
                "name": self.mechanism_row.named,
                **self.mechanism_row.model_dump(exclude_none=True),
            },
            "privacy": self.privacy.model_dump(),
            "report": self.report.model_dump(exclude_none=True, exclude={"folder"}),
        }
        lines = [f"{name} = {toml_value(value)}" for name, value in named.items()]
        for section, settings in sections.items():
            lines += ["", f"[{section}]"]
            lines += [f"{toml_key(name)} = {toml_value(value)}" for name, value in settings.items()]
        return "\n".join(lines).lstrip("\n") + "\n"


def load(path: str | Path) -> Study:
    """Read a study file; touches no data.

    Raises:
        StudyError: in one sentence that names the setting.
        SchemaError: about the schema that the study names.
    """
    place = Path(path)
    problem = None
    try:
        return Study.of(read_toml(place), place.parent)
    except (StudyError, SchemaError) as error:
        problem = str(error)
    raise StudyError(f"{place.name or place}: {problem}")


def _data(values: object, folder: Path) -> tuple[Data, Schema]:
    """`[data]`, and the schema inside it or in the file that it names."""
    if not isinstance(values, Mapping):
        raise StudyError(f"data: it must be a section [data], got {type(values).__name__}")
    settings = dict(values)
    inside = {name: settings.pop(name) for name in _DECLARED if name in settings}
    named = settings.pop("schema", None)
    for name in settings:
        if name not in Data.model_fields:
            raise StudyError(
                f"data: there is no setting {name!r:.60} here; "
                f"{nearest(name, [*Data.model_fields, 'schema', *_DECLARED])}"
            )
    data = parse("data", Data, settings)
    if named is None and "columns" not in inside:
        raise StudyError(
            "data: columns are missing; declare [data.columns.NAME], or name a file: schema = '...'"
        )
    if named is not None and inside:
        raise StudyError(
            f"data: schema and {', '.join(inside)} were both given; what a schema file says stands there only"
        )
    if named is not None:
        if not isinstance(named, str):
            raise StudyError(f"data.schema: it must be the name of a file, got {type(named).__name__}")
        read_toml(folder / named)
        return data, Schema.read(folder / named)
    problem = None
    try:
        return data, Schema.of(inside)
    except SchemaError as error:
        problem = f"data.{error}" if error.place else f"data: {error}"
    raise StudyError(problem)
