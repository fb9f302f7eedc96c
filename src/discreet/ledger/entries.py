"""What a ledger says: it was opened, something was spent, released, or given up."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, ClassVar, cast

from discreet.privacy import Budget, Guarantee
from discreet.privacy.neighbours import as_neighbours

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Entry(ABC):
    """One line of a ledger.

    Attributes:
        position: its number, from 0.
        hash: SHA-256 over the entry and the hash before it.
        when: the clock of the machine that wrote it, UTC.
        who: the person or service, as the writer named itself.
    """

    position: int
    hash: str
    when: datetime
    who: str

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Entry]]] = {}

    def __init_subclass__(cls) -> None:
        Entry.kinds[cls.kind] = cls

    @classmethod
    @abstractmethod
    def details(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of this kind, from the stored body; raises on anything malformed."""

    @staticmethod
    def read(position: int, hash_: str, text: str) -> Entry:
        """Rebuild an entry from its stored body."""
        body = cast("dict[str, Any]", json.loads(text))
        kind = Entry.kinds[body["kind"]]
        when = datetime.fromisoformat(body["when"])
        return kind(position=position, hash=hash_, when=when, who=str(body["who"]), **kind.details(body))


@dataclass(frozen=True, kw_only=True)
class Opened(Entry):
    """The owner set the budget. Always entry 0.

    Attributes:
        dataset: the public name of the data set.
        budget: what may be spent, for which neighbours.
        identity: random, so that no two ledgers have the same chain.
    """

    kind: ClassVar[str] = "opened"
    dataset: str
    budget: Budget
    identity: str

    @classmethod
    def details(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        if body["format"] != FORMAT:
            raise ValueError(f"format {body['format']!r}")
        budget = body["budget"]
        return {
            "dataset": str(body["dataset"]),
            "budget": Budget(budget["epsilon"], budget["delta"], as_neighbours(budget["neighbours"])),
            "identity": str(body["identity"]),
        }


@dataclass(frozen=True, kw_only=True)
class Spend(Entry):
    """Privacy was spent, whether or not anything came of it.

    Attributes:
        guarantee: the cost.
        purpose: why.
        plan: hash of the plan, if there was one.
    """

    kind: ClassVar[str] = "spend"
    guarantee: Guarantee
    purpose: str
    plan: str | None

    @classmethod
    def details(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "guarantee": _guarantee(json.dumps(body["guarantee"], sort_keys=True)),
            "purpose": str(body["purpose"]),
            "plan": body["plan"],
        }


@dataclass(frozen=True, kw_only=True)
class Released(Entry):
    """What an earlier spend paid for exists.

    Attributes:
        spend: position of that spend.
        release: hash of what was released.
    """

    kind: ClassVar[str] = "released"
    spend: int
    release: str

    @classmethod
    def details(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"spend": int(body["spend"]), "release": str(body["release"])}


@dataclass(frozen=True, kw_only=True)
class Abandoned(Entry):
    """Nothing came of an earlier spend, somebody says; it stays spent.

    Attributes:
        spend: position of that spend.
        reason: what happened.
    """

    kind: ClassVar[str] = "abandoned"
    spend: int
    reason: str

    @classmethod
    def details(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"spend": int(body["spend"]), "reason": str(body["reason"])}


@lru_cache(maxsize=4096)
def _guarantee(text: str) -> Guarantee:
    return Guarantee.from_json(text)
