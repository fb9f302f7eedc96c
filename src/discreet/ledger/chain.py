"""The chain: what follows from the entries of one ledger, and whether they are as they were written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from discreet.ledger.entries import Entry, Opened, Spend
from discreet.ledger.errors import LedgerBroken
from discreet.privacy import Budget, Guarantee
from discreet.privacy.neighbours import as_neighbours

START = "0" * 64
"""What stands before the first entry."""

ROUNDING = 1e-9
"""Bounds are rounded upward; a total above the budget by less than this part of it still fits."""


def within(epsilon: float, budget: Budget) -> bool:
    """Whether a total, at the budget's delta, is allowed."""
    return epsilon <= budget.epsilon * (1 + ROUNDING)


class Row(NamedTuple):
    """An entry as it is stored."""

    position: int
    body: str
    previous: str
    hash: str


def seal(dataset: str, position: int, body: str, previous: str) -> str:
    """The hash of an entry: of the data set's name, its number, its content and the hash before it."""
    return hashlib.sha256(json.dumps([dataset, position, body, previous]).encode()).hexdigest()


@dataclass(frozen=True)
class Anchor:
    """One entry's number and hash: kept elsewhere, it shows later that nothing up to there was changed.

    Attributes:
        dataset: the ledger's data set.
        position: the number of an entry.
        hash: its hash.
    """

    dataset: str
    position: int
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """The anchor as plain values."""
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Anchor:
        """Rebuild an anchor from `to_dict`, or from what a receipt saved."""
        return Anchor(data["dataset"], data["position"], data["hash"])


@dataclass(frozen=True)
class Receipt(Anchor):
    """A spend is on disk.

    Attributes:
        spent: epsilon of everything spent so far, this included, at the budget's delta.
        left: what is left of the budget.
    """

    spent: float
    left: float


@dataclass(frozen=True)
class Quote:
    """What a spend would cost, by composition with all before it, at the budget's delta.

    Attributes:
        budget: the ledger's budget.
        asked: epsilon of the new guarantee alone.
        spent: epsilon of all spends so far.
        after: epsilon of all of them together; at most `spent + asked`, often less.
    """

    budget: Budget
    asked: float
    spent: float
    after: float

    @property
    def left(self) -> float:
        """What is left of the budget before the spend."""
        return max(0.0, self.budget.epsilon - self.spent)

    @property
    def fits(self) -> bool:
        """Whether the budget allows it."""
        return within(self.after, self.budget)


@dataclass(frozen=True)
class Verification:
    """What checking every entry found; true if nothing is wrong.

    Attributes:
        entries: how many entries were read and found to be in order.
        position: the entry at which the first problem lies, if any.
        problem: what is wrong there.
    """

    entries: int
    position: int | None = None
    problem: str | None = None

    def __bool__(self) -> bool:
        return self.problem is None

    def __str__(self) -> str:
        if self.problem is None:
            return f"{self.entries} entries, every one as it was written"
        return f"entry {self.position}: {self.problem}"


class Chain:
    """The entries of one ledger, followed one by one from the first."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.hash = START
        self.entries: list[Entry] = []
        self.open: dict[int, Spend] = {}
        self._counts: dict[Guarantee, int] = {}
        self._total: Guarantee | None = None

    @property
    def position(self) -> int:
        """The number of the last entry, -1 before the first."""
        return len(self.entries) - 1

    @property
    def opened(self) -> Opened:
        """The first entry."""
        first = self.entries[0] if self.entries else None
        if not isinstance(first, Opened):
            raise LedgerBroken(0, "it does not say that the ledger was opened")
        return first

    @property
    def budget(self) -> Budget:
        """What the owner allows."""
        return self.opened.budget

    @property
    def anchor(self) -> Anchor:
        """The last entry's number and hash."""
        return Anchor(self.dataset, self.position, self.hash)

    # --- following --------------------------------------------------------------

    def next(self, body: Mapping[str, Any]) -> Row:
        """The row that `body` would be as the next entry; nothing changes yet."""
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        position = self.position + 1
        return Row(position, text, self.hash, seal(self.dataset, position, text, self.hash))

    def follow(self, row: Row) -> Entry:
        """Check the next stored row against all before it, and take it in."""
        here = self.position + 1
        if row.position != here:
            raise LedgerBroken(here, f"it is missing, entry {row.position} comes instead")
        if row.previous != self.hash:
            raise LedgerBroken(here, "it does not continue the entry before it")
        if row.hash != seal(self.dataset, here, row.body, row.previous):
            raise LedgerBroken(here, "its content is not what was hashed")
        try:
            entry = Entry.read(here, row.hash, row.body)
        except Exception:  # noqa: BLE001  # whatever is wrong with it, it is no entry
            entry = None
        if entry is None:
            raise LedgerBroken(here, "it cannot be read as an entry of this version of discreet")
        self._admit(entry)
        self.entries.append(entry)
        self.hash = row.hash
        return entry

    def _admit(self, entry: Entry) -> None:
        here = entry.position
        if isinstance(entry, Opened) != (here == 0):
            raise LedgerBroken(here, "a ledger is opened by its first entry and by no other")
        if isinstance(entry, Opened):
            if entry.dataset != self.dataset:
                raise LedgerBroken(here, "it belongs to another data set")
        elif isinstance(entry, Spend):
            if entry.guarantee.neighbours != self.budget.neighbours:
                raise LedgerBroken(here, "its guarantee is about other neighbours than the budget")
            self.open[here] = entry
            self._counts[entry.guarantee] = self._counts.get(entry.guarantee, 0) + 1
            self._total = None
        elif self.open.pop(getattr(entry, "spend", -1), None) is None:
            raise LedgerBroken(here, "it closes a spend that is not open")

    # --- cost -------------------------------------------------------------------

    @property
    def total(self) -> Guarantee:
        """Everything spent, composed."""
        if self._total is None:
            terms = [count * guarantee for guarantee, count in self._counts.items()]
            while len(terms) > 1:  # in pairs, so that many different spends stay cheap
                odd = terms[len(terms) & ~1 :]
                terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + odd
            neighbours = self.budget.neighbours
            assert neighbours is not None  # noqa: S101  # `Ledger` refuses a budget without
            self._total = terms[0] if terms else Guarantee((), as_neighbours(neighbours))
        return self._total

    @property
    def spent(self) -> float:
        """Epsilon of everything spent, at the budget's delta."""
        return _epsilon(self.total, self.budget.delta)

    @property
    def left(self) -> float:
        """What the budget still has."""
        return max(0.0, self.budget.epsilon - self.spent)

    def quote(self, guarantee: Guarantee) -> Quote:
        """What `guarantee` would cost as the next spend."""
        delta = self.budget.delta
        after = _epsilon(self.total + guarantee, delta)
        return Quote(self.budget, asked=_epsilon(guarantee, delta), spent=self.spent, after=after)


@lru_cache(maxsize=256)
def _epsilon(guarantee: Guarantee, delta: float) -> float:
    return guarantee.epsilon(delta)
