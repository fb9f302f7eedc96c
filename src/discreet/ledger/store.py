"""Where entries lie: two tables, in SQLite or PostgreSQL, that can only grow.

A writer holds the ledger from its first look to its commit (SQLite: `BEGIN IMMEDIATE`;
PostgreSQL: a row lock on the head), so no two spends can both see the same remainder.
A commit returns when the entry is on disk.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    inspect,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from discreet.ledger.chain import Row
from discreet.ledger.errors import LedgerError

WAIT = 60
"""Seconds to wait for another writer."""

_TABLES = MetaData()
_ENTRIES = Table(
    "discreet_entries",
    _TABLES,
    Column("dataset", String(200), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)
_HEADS = Table(
    "discreet_heads",
    _TABLES,
    Column("dataset", String(200), primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
)

_NEXT = "(SELECT coalesce(max(position), -1) + 1 FROM discreet_entries WHERE dataset = NEW.dataset)"
_JUMPS = "NEW.dataset {0} OLD.dataset OR NEW.position {0} OLD.position + 1"


@dataclass(frozen=True)
class Session:
    """One transaction on one store."""

    connection: Connection

    def datasets(self) -> list[str]:
        """The ledgers kept here."""
        found = self.connection.execute(_HEADS.select().order_by(_HEADS.c.dataset))
        return [str(row.dataset) for row in found]

    def head(self, dataset: str, *, lock: bool = False) -> tuple[int, str] | None:
        """Number and hash of the last entry, as the head says."""
        query = _HEADS.select().where(_HEADS.c.dataset == dataset)
        row = self.connection.execute(query.with_for_update() if lock else query).one_or_none()
        return None if row is None else (int(row.position), str(row.hash))

    def rows(self, dataset: str, after: int = -1) -> Iterator[Row]:
        """The stored rows beyond a position, in order."""
        query = _ENTRIES.select().where(_ENTRIES.c.dataset == dataset, _ENTRIES.c.position > after)
        for row in self.connection.execute(query.order_by(_ENTRIES.c.position)):
            yield Row(int(row.position), str(row.body), str(row.previous), str(row.hash))

    def append(self, dataset: str, row: Row) -> None:
        """Add an entry and move the head to it."""
        self.connection.execute(_ENTRIES.insert().values(dataset=dataset, **row._asdict()))
        head = {"position": row.position, "hash": row.hash}
        if row.position == 0:
            self.connection.execute(_HEADS.insert().values(dataset=dataset, **head))
            return
        moved = self.connection.execute(
            _HEADS.update()
            .where(_HEADS.c.dataset == dataset, _HEADS.c.position == row.position - 1)
            .where(_HEADS.c.hash == row.previous)
            .values(head)
        )
        if moved.rowcount != 1:
            raise LedgerError("the ledger changed while it was held; nothing was spent, try again")


class Store(ABC):
    """A database in which ledgers lie."""

    guards: Sequence[str]
    """Names of the triggers that refuse every change but an append."""

    def __init__(self, name: str) -> None:
        self.name = name
        """What messages call it; never a password."""
        self._engines: dict[bool, Engine] = {}

    @abstractmethod
    def engine(self, *, create: bool) -> Engine:
        """A way to connect, unpooled, so that a fork shares nothing."""

    @abstractmethod
    def look(self, connection: Connection) -> None:
        """Begin a read in which nothing changes."""

    @abstractmethod
    def hold(self, connection: Connection) -> None:
        """Begin a durable write."""

    @abstractmethod
    def lay(self, connection: Connection) -> None:
        """Make the tables and their guards, if they are not there."""

    @abstractmethod
    def standing(self, connection: Connection) -> set[str]:
        """Names of the guards in force."""

    @contextmanager
    def reading(self) -> Generator[Session | None]:
        """Look at one moment of the store; None if it holds no ledger."""
        with self._connect(create=False) as connection:
            if connection is None:
                yield None
            else:
                self.look(connection)
                yield Session(connection) if inspect(connection).has_table(_HEADS.name) else None

    @contextmanager
    def writing(self, *, create: bool = False) -> Generator[Session]:
        """Hold the store until the end of the block, then commit to disk; an exception undoes everything."""
        with self._connect(create=create) as connection:
            if connection is None:
                raise LedgerError(f"there is no ledger at {self.name}; it was there before, find it")
            self.hold(connection)
            if create:
                self.lay(connection)
            yield Session(connection)
            connection.commit()

    @contextmanager
    def _connect(self, *, create: bool) -> Generator[Connection | None]:
        problem: str | None = None
        try:
            if not create and not self.present():
                yield None
                return
            if create not in self._engines:
                self._engines[create] = self.engine(create=create)
            with self._engines[create].connect() as connection:
                yield connection
        except DBAPIError as error:
            problem = " ".join(str(error.orig).split())
        except SQLAlchemyError as error:
            problem = type(error).__name__
        if problem is not None:
            busy = "locked" in problem or "lock timeout" in problem
            advice = (
                f"others wrote for {WAIT} s; try again, nothing was written"
                if busy
                else "is it the right place?"
            )
            raise LedgerError(f"the ledger at {self.name} could not be used: {problem}; {advice}")

    def present(self) -> bool:
        """Whether connecting makes sense without creating anything."""
        return True

    def missing(self, connection: Connection) -> list[str]:
        """Guards that somebody removed."""
        return sorted(set(self.guards) - self.standing(connection))


class SqliteStore(Store):
    """A file."""

    guards = (
        "discreet_no_update",
        "discreet_no_delete",
        "discreet_in_order",
        "discreet_head_kept",
        "discreet_head_grows",
    )

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path.absolute()

    def present(self) -> bool:
        return self.path.is_file() and self.path.stat().st_size > 0

    def engine(self, *, create: bool) -> Engine:
        address = f"file:{quote(str(self.path))}?mode={'rwc' if create else 'rw'}"

        def connect() -> sqlite3.Connection:
            return sqlite3.connect(address, uri=True, timeout=WAIT, isolation_level=None)

        engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

        @event.listens_for(engine, "connect")
        def prepare(connection: sqlite3.Connection, _: object) -> None:  # pyright: ignore[reportUnusedFunction]
            # EXTRA also syncs the folder once the journal is gone: a committed spend survives a power cut.
            for pragma in ("synchronous = EXTRA", "fullfsync = ON", "recursive_triggers = ON"):
                connection.execute(f"PRAGMA {pragma}")

        return engine

    def look(self, connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    def hold(self, connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def lay(self, connection: Connection) -> None:
        _TABLES.create_all(connection)
        refuse = "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
        for guard, rule in zip(
            self.guards,
            (
                "UPDATE ON discreet_entries",
                "DELETE ON discreet_entries",
                f"INSERT ON discreet_entries WHEN NEW.position IS NOT {_NEXT}",
                "DELETE ON discreet_heads",
                f"UPDATE ON discreet_heads WHEN {_JUMPS.format('IS NOT')}",
            ),
            strict=True,
        ):
            connection.exec_driver_sql(f"CREATE TRIGGER IF NOT EXISTS {guard} BEFORE {rule} {refuse}")

    def standing(self, connection: Connection) -> set[str]:
        found = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        return {str(row[0]) for row in found}


class PostgresStore(Store):
    """A database on a server."""

    guards = (
        "discreet_entries_only_grow",
        "discreet_entries_not_truncated",
        "discreet_entries_in_order",
        "discreet_heads_kept",
        "discreet_heads_not_truncated",
        "discreet_heads_grow",
    )

    def __init__(self, url: URL) -> None:
        super().__init__(url.render_as_string(hide_password=True))
        self.url = url.set(drivername="postgresql+psycopg")

    def engine(self, *, create: bool) -> Engine:  # noqa: ARG002  # a database is there or not
        return create_engine(self.url, poolclass=NullPool, connect_args={"connect_timeout": 10})

    def look(self, connection: Connection) -> None:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def hold(self, connection: Connection) -> None:
        run = connection.exec_driver_sql
        if run("SHOW fsync").scalar_one() != "on":
            raise LedgerError(
                f"the server of {self.name} has fsync off, so a spend could be lost; turn it on"
            )
        run(f"SET LOCAL lock_timeout = '{WAIT}s'")
        if run("SHOW synchronous_commit").scalar_one() in {"off", "local"}:
            run("SET LOCAL synchronous_commit = on")

    def lay(self, connection: Connection) -> None:
        # Two owners at once: the second waits here and then finds everything there.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('discreet ledger'))")
        _TABLES.create_all(connection)
        run = connection.exec_driver_sql
        run(
            "CREATE OR REPLACE FUNCTION discreet_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'a ledger is append-only'; END $$"
        )
        run(
            "CREATE OR REPLACE FUNCTION discreet_order() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF NEW.position IS DISTINCT FROM {_NEXT} THEN "
            "RAISE EXCEPTION 'a ledger is append-only'; END IF; RETURN NEW; END $$"
        )
        differs = "IS DISTINCT FROM"
        refuse, order = "EXECUTE FUNCTION discreet_refuse()", "EXECUTE FUNCTION discreet_order()"
        for guard, rule in zip(
            self.guards,
            (
                f"BEFORE UPDATE OR DELETE ON discreet_entries FOR EACH ROW {refuse}",
                f"BEFORE TRUNCATE ON discreet_entries FOR EACH STATEMENT {refuse}",
                f"BEFORE INSERT ON discreet_entries FOR EACH ROW {order}",
                f"BEFORE DELETE ON discreet_heads FOR EACH ROW {refuse}",
                f"BEFORE TRUNCATE ON discreet_heads FOR EACH STATEMENT {refuse}",
                f"BEFORE UPDATE ON discreet_heads FOR EACH ROW WHEN ({_JUMPS.format(differs)}) {refuse}",
            ),
            strict=True,
        ):
            run(f"CREATE OR REPLACE TRIGGER {guard} {rule}")

    def standing(self, connection: Connection) -> set[str]:
        found = connection.exec_driver_sql(
            "SELECT tgname FROM pg_trigger WHERE tgenabled IN ('O', 'A') AND tgrelid IN "
            "(to_regclass('discreet_entries'), to_regclass('discreet_heads'))"
        )
        return {str(row[0]) for row in found}


def open_store(place: str | Path) -> Store:
    """The store at a path or URL."""
    if isinstance(place, Path) or "://" not in place:
        return SqliteStore(Path(place))
    try:
        url = make_url(place)
    except ArgumentError:
        url = None
    if url is not None and url.get_backend_name() == "sqlite" and url.database:
        return SqliteStore(Path(url.database))
    if url is not None and url.get_backend_name() in {"postgresql", "postgres"}:
        return PostgresStore(url)
    raise LedgerError(
        "a ledger lies in a file or in PostgreSQL, got a URL that is neither; "
        "give a path or postgresql://user@host/database"
    )
