"""`Ledger`: who spent what on one data set."""

from __future__ import annotations

import getpass
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.ledger.chain import Anchor, Chain, Quote, Receipt, Verification, within
from discreet.ledger.entries import FORMAT, Entry, Spend
from discreet.ledger.errors import BudgetExceeded, LedgerBroken, LedgerError, LedgerMissing
from discreet.ledger.store import Session, SqliteStore, open_store
from discreet.privacy import Budget, Guarantee, attacker_success, attacker_words, percent

_HASH = re.compile(r"[0-9a-f]{64}")


class Ledger:
    """The privacy budget of one data set, and everything spent from it.

    The owner sets the budget once. Every spend is appended, durably, before anything
    is drawn, and refused if the composition of all spends, at the budget's delta,
    would exceed the budget. Nothing is ever changed or removed: each entry's hash
    covers its content and the hash before it, so `verify()` finds an edit. A ledger
    holds guarantees, times, names, purposes and hashes; nothing in it depends on data.

    Args:
        place: a file, or `postgresql://user@host/database`.
        budget: what the owner allows, with its neighbour relation. Opens the ledger
            if there is none yet; must be the same if there is one.
        dataset: the public name of the data set; by default the file's name, or the
            only ledger in the database.
        who: the name that new entries carry; by default the user's login name.

    Guarantee:
        Whatever the processes that use one ledger do, and wherever they are killed:
        the composition of what they released is within the budget
        (docs/how-to/ledger.md lists what this rests on).

    Example:
        >>> import tempfile
        >>> from discreet.privacy import Budget, pure
        >>> place = tempfile.mkdtemp() + "/clinic.ledger"
        >>> ledger = Ledger(place, budget=Budget(1.0, 1e-6, neighbours="substitute"))
        >>> receipt = ledger.spend(pure(0.25, neighbours="substitute"), "annual report")
        >>> round(ledger.remaining(), 3), bool(ledger.verify())
        (0.75, True)
    """

    def __init__(
        self,
        place: str | Path,
        *,
        budget: Budget | None = None,
        dataset: str | None = None,
        who: str | None = None,
    ) -> None:
        self._begin(place, dataset, who)
        if not self._find(required=budget is None) and budget is not None:
            self._open(budget, exist_ok=True)
        found = self._synced().budget
        if budget is not None and budget != found:
            raise LedgerError(
                f"the ledger has the budget {_words(found)}, got {_words(budget)}; leave budget out to use it"
            )

    @classmethod
    def create(
        cls, place: str | Path, *, budget: Budget, dataset: str | None = None, who: str | None = None
    ) -> Ledger:
        """Open a new ledger; refuse if there is one already."""
        ledger = cls.__new__(cls)
        ledger._begin(place, dataset, who)  # noqa: SLF001  # its own
        ledger._open(budget, exist_ok=False)  # noqa: SLF001
        return ledger

    def _begin(self, place: str | Path, dataset: str | None, who: str | None) -> None:
        self._store = open_store(place)
        if dataset is None and isinstance(self._store, SqliteStore):
            dataset = self._store.path.stem
        self._dataset = None if dataset is None else _line("dataset", dataset, 200)
        self._who = _line("who", _login() if who is None else who, 200)
        self._lock = threading.RLock()
        self._chain: Chain | None = None

    # --- questions ----------------------------------------------------------------

    @property
    def dataset(self) -> str:
        """The public name of the data set."""
        if self._dataset is None:
            raise LedgerError(
                f"dataset must be named for a new ledger at {self._store.name}; give dataset='...'"
            )
        return self._dataset

    @property
    def budget(self) -> Budget:
        """What the owner allows in total."""
        return self._synced().budget

    def entries(self) -> tuple[Entry, ...]:
        """Everything in the ledger, in order."""
        return tuple(self._synced().entries)

    def total(self) -> Guarantee:
        """Everything spent, composed."""
        return self._synced().total

    def spent(self) -> float:
        """Epsilon of everything spent, composed, at the budget's delta."""
        return self._synced().spent

    def remaining(self) -> float:
        """The budget's epsilon less `spent()`.

        A spend whose own epsilon is larger may still fit, because guarantees compose
        to less than their sum; `quote` tells.
        """
        chain = self._synced()
        return chain.left

    def quote(self, guarantee: Guarantee) -> Quote:
        """What a spend would cost now; spends nothing."""
        chain = self._synced()
        guarantee.check_relation(chain.budget)
        return chain.quote(guarantee)

    def reconcile(self) -> tuple[Spend, ...]:
        """Spends of which nothing is known to have come: running, crashed, or never reported.

        They stay spent. Report what came of one with `complete` or `abandon`.
        """
        return tuple(self._synced().open.values())

    def anchor(self) -> Anchor:
        """Number and hash of the last entry, to be kept elsewhere for `verify`."""
        return self._synced().anchor

    def verify(self, anchors: Iterable[Anchor] = ()) -> Verification:
        """Read everything again and look for changes.

        Found without help: an edited, removed, inserted or reordered entry; a total
        above the budget; a removed tail, unless the head was moved as well; removed
        guards. Found with `anchors` (or receipts) kept elsewhere: a ledger that was
        rewritten, or cut off, as a whole.
        """
        chain = Chain(self.dataset)
        try:
            self._check_all(chain, anchors)
        except LedgerBroken as broken:
            return Verification(len(chain.entries), broken.position, broken.problem)
        except LedgerError as error:
            return Verification(len(chain.entries), chain.position + 1, str(error))
        return Verification(len(chain.entries))

    def _check_all(self, chain: Chain, anchors: Iterable[Anchor]) -> None:
        with self._store.reading() as session:
            if session is None or (head := session.head(self.dataset)) is None:
                raise LedgerBroken(0, "the ledger is gone")
            for row in session.rows(self.dataset):
                chain.follow(row)
            _check_head(chain, head)
            missing = self._store.missing(session.connection)
        for anchor in anchors:
            _check_anchor(chain, anchor)
        if not within(chain.spent, chain.budget):
            raise LedgerBroken(chain.position, "more was spent than the budget allows")
        if missing:
            raise LedgerBroken(chain.position, f"the guards {', '.join(missing)} were removed by then")

    def describe(self) -> str:
        """The ledger in words: budget, what is spent and left, spends without a release."""
        chain = self._synced()
        spends = sum(isinstance(entry, Spend) for entry in chain.entries)
        whole = attacker_success(chain.budget.epsilon, chain.budget.delta)
        lines = [
            f"ledger of {self.dataset}: budget {_words(chain.budget)}",
            f"spent {chain.spent:.4g} in {spends} spends, left {chain.left:.4g}",
            f"so far {attacker_words(chain.spent, chain.budget.delta)}",
            f"with all of the budget spent: {percent(whole)}",
        ]
        lines += [
            f"entry {one.position} ({one.who}, {one.when:%Y-%m-%d %H:%M} UTC) has no release: {one.purpose}"
            for one in chain.open.values()
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Ledger({self._store.name!r}, dataset={self._dataset!r})"

    # --- entries ------------------------------------------------------------------

    def spend(self, guarantee: Guarantee, purpose: str, *, plan: str | None = None) -> Receipt:
        """Record a spend; when this returns it is on disk, and only then may anything be drawn.

        Args:
            guarantee: the cost.
            purpose: why, in one line.
            plan: hash of the plan.

        Raises:
            BudgetExceeded: if it does not fit; nothing is recorded.
        """
        if not isinstance(guarantee, Guarantee):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"guarantee must be a Guarantee, got {type(guarantee).__name__}; take plan.guarantee"
            )
        _check_storable(guarantee)
        body = {
            "kind": "spend",
            "guarantee": guarantee.to_dict(),
            "purpose": _line("purpose", purpose, 500),
            "plan": None if plan is None else _hash("plan", plan),
        }
        self.quote(guarantee)  # long computations happen here, before others have to wait
        with self._lock:
            with self._store.writing() as session:
                chain = self._follow(session, lock=True)
                quote = chain.quote(guarantee)
                if not quote.fits:
                    raise BudgetExceeded(quote)
                row = chain.next(self._signed(body))
                session.append(self.dataset, row)
            chain.follow(row)
        left = max(0.0, quote.budget.epsilon - quote.after)
        return Receipt(self.dataset, row.position, row.hash, spent=quote.after, left=left)

    def complete(self, spend: Receipt | Spend, release: str) -> Anchor:
        """Note that what a spend paid for was released, by the release's hash."""
        return self._close(spend, {"kind": "released", "release": _hash("release", release)})

    def abandon(self, spend: Receipt | Spend, reason: str) -> Anchor:
        """Note that nothing came of a spend, in the word of whoever says so; it stays spent."""
        return self._close(spend, {"kind": "abandoned", "reason": _line("reason", reason, 500)})

    def _close(self, spend: Receipt | Spend, body: Mapping[str, Any]) -> Anchor:
        with self._lock:
            with self._store.writing() as session:
                chain = self._follow(session, lock=True)
                known = chain.open.get(spend.position)
                if known is None or known.hash != spend.hash:
                    raise LedgerError(
                        f"entry {spend.position} is not an open spend of this ledger; see reconcile()"
                    )
                row = chain.next(self._signed({**body, "spend": spend.position}))
                session.append(self.dataset, row)
            chain.follow(row)
            return chain.anchor

    # --- inside -------------------------------------------------------------------

    def _signed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {**body, "when": datetime.now(UTC).isoformat(timespec="milliseconds"), "who": self._who}

    def _find(self, *, required: bool) -> bool:
        with self._store.reading() as session:
            here = session.datasets() if session is not None else []
        if self._dataset is None and len(here) == 1:
            self._dataset = here[0]
        elif (
            isinstance(self._store, SqliteStore) and len(here) == 1 and self._dataset == self._store.path.stem
        ):
            self._dataset = here[0]  # the file was renamed
        if self._dataset in here:
            return True
        if required:
            kept = f"it keeps {', '.join(here)}; give dataset=" if here else "give budget= to open one"
            name = f" of {self._dataset}" if self._dataset else ""
            raise LedgerMissing(f"there is no ledger{name} at {self._store.name}; {kept}")
        return False

    def _open(self, budget: Budget, *, exist_ok: bool) -> None:
        if not isinstance(budget, Budget):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"budget must be a Budget, got {type(budget).__name__}; use dc.Budget(...)")
        if budget.neighbours is None:
            raise LedgerError(
                "the budget of a ledger must name its neighbours, got none; "
                "give Budget(..., neighbours='substitute') or 'add_remove'"
            )
        with self._lock, self._store.writing(create=True) as session:
            if session.head(self.dataset) is not None:
                if exist_ok:
                    return  # somebody else was faster
                raise LedgerError(
                    f"there is a ledger of {self.dataset} at {self._store.name} already; open it"
                )
            stored = {
                "epsilon": budget.epsilon,
                "delta": budget.delta,
                "neighbours": str(budget.neighbours),
            }
            body = {
                "kind": "opened",
                "format": FORMAT,
                "dataset": self.dataset,
                "budget": stored,
                "identity": secrets.token_hex(16),
            }
            session.append(self.dataset, Chain(self.dataset).next(self._signed(body)))

    def _synced(self) -> Chain:
        with self._lock, self._store.reading() as session:
            return self._follow(session)

    def _follow(self, session: Session | None, *, lock: bool = False) -> Chain:
        """Take in what others appended since the last look; the whole ledger at the first."""
        head = session.head(self.dataset, lock=lock) if session is not None else None
        if session is None or head is None:
            raise LedgerMissing(
                f"there is no ledger of {self.dataset} at {self._store.name}; give budget= to open one"
            )
        chain = self._chain or Chain(self.dataset)
        try:
            for row in session.rows(self.dataset, after=chain.position):
                chain.follow(row)
            _check_head(chain, head)
            self._chain = chain
        except LedgerBroken:
            self._chain = None
            raise
        return chain


def _check_head(chain: Chain, head: tuple[int, str]) -> None:
    position, hash_ = head
    if position > chain.position:
        raise LedgerBroken(
            chain.position + 1, f"it is missing, the head says that entry {position} is the last"
        )
    if (position, hash_) != (chain.position, chain.hash):
        raise LedgerBroken(chain.position, f"the head says that the last entry is {position} and another one")


def _check_anchor(chain: Chain, anchor: Anchor) -> None:
    if anchor.dataset != chain.dataset:
        raise LedgerBroken(0, f"an anchor is of another data set, {anchor.dataset}")
    if anchor.position > chain.position:
        raise LedgerBroken(
            chain.position + 1, f"it is missing, an anchor says that there was an entry {anchor.position}"
        )
    if chain.entries[anchor.position].hash != anchor.hash:
        raise LedgerBroken(anchor.position, "an anchor says that it was different")


def _check_storable(guarantee: Guarantee) -> None:
    """Refuse what would not come back from the ledger as it went in: nobody could read the ledger then."""
    try:
        same = Guarantee.from_json(guarantee.to_json()) == guarantee
    except Exception:  # noqa: BLE001  # a piece that is not a plain value, in whatever way
        same = False
    if not same:
        raise LedgerError(
            "the guarantee does not come back from JSON as it went in, so it cannot be stored; "
            "build it from the pieces of discreet.privacy"
        )


def _line(name: str, value: str, longest: int) -> str:
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{name} must be text, got {type(value).__name__}")
    if not value.strip() or len(value) > longest or not value.isprintable():
        raise ValueError(
            f"{name} must be one line of 1 to {longest} characters, got {len(value)}; shorten it"
        )
    return value.strip()


def _hash(name: str, value: str) -> str:
    if not isinstance(value, str) or not _HASH.fullmatch(value):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(
            f"{name} must be a SHA-256 hash of 64 hexadecimal digits, got something else; hash it"
        )
    return value


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _words(budget: Budget) -> str:
    return f"epsilon {budget.epsilon:g} at delta {budget.delta:g} for {budget.neighbours} neighbours"
