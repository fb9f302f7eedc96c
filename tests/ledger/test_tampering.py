"""Somebody with the database in hand changes it: `verify` says where."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from discreet.ledger import Ledger, LedgerBroken, LedgerError, Receipt
from discreet.ledger.chain import Chain
from discreet.ledger.store import PostgresStore, SqliteStore
from discreet.privacy import Budget, Neighbours, pure

SUBSTITUTE = Neighbours.SUBSTITUTE
BUDGET = Budget(1.0, neighbours=SUBSTITUTE)

Run = Callable[..., list]


def filled(place: str) -> tuple[Ledger, list[Receipt]]:
    ledger = Ledger.create(place, budget=BUDGET, dataset="clinic")
    cost = pure(0.125, neighbours=SUBSTITUTE)
    receipts = [ledger.spend(cost, f"purpose {i}") for i in range(4)]
    ledger.complete(receipts[0], "ab" * 32)
    return ledger, receipts


def direct(place: str) -> Run:
    """Statements past the ledger; `?` stands for an argument."""

    def run(statement: str, *arguments: object) -> list:
        if "://" in place:
            with psycopg.connect(place) as connection:
                done = connection.execute(statement.replace("?", "%s"), arguments)  # pyright: ignore[reportArgumentType]
                return done.fetchall() if done.description else []
        with closing(sqlite3.connect(place)) as connection, connection:
            return connection.execute(statement, arguments).fetchall()

    return run


def unguarded(place: str) -> Run:
    """The same after the guards were removed."""
    run = direct(place)
    if "://" in place:
        for table in ("discreet_entries", "discreet_heads"):
            run(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    else:
        for guard in SqliteStore.guards:
            run(f"DROP TRIGGER {guard}")
    return run


EDIT = "UPDATE discreet_entries SET body ="

CHANGES = [
    ("an edited purpose", 3, f"{EDIT} replace(body, 'purpose 2', 'other') WHERE position = 3"),
    ("a cheaper guarantee", 2, f"{EDIT} replace(body, '0.125', '0.025') WHERE position = 2"),
    ("a larger budget", 0, f"{EDIT} replace(body, '1.0', '9.0') WHERE position = 0"),
    ("a changed hash", 4, f"UPDATE discreet_entries SET hash = '{'0' * 64}' WHERE position = 4"),
    ("a changed link", 4, f"UPDATE discreet_entries SET previous = '{'0' * 64}' WHERE position = 4"),
    ("no JSON", 1, f"{EDIT} 'nothing' WHERE position = 1"),
    ("a removed entry", 2, "DELETE FROM discreet_entries WHERE position = 2"),
    ("a removed first entry", 0, "DELETE FROM discreet_entries WHERE position = 0"),
    ("a removed tail", 4, "DELETE FROM discreet_entries WHERE position >= 4"),
    ("a moved head", 5, "UPDATE discreet_heads SET position = 3"),
    ("a head of something else", 5, f"UPDATE discreet_heads SET hash = '{'0' * 64}'"),
    ("no head", 0, "DELETE FROM discreet_heads"),
    ("nothing left", 0, "DELETE FROM discreet_entries"),
    ("another data set's", 0, "UPDATE discreet_entries SET dataset = 'other'"),
]  # fmt: skip


@pytest.mark.parametrize(("position", "change"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_a_change_is_found_where_it_is(place: str, position: int, change: str) -> None:
    ledger, _ = filled(place)
    assert ledger.verify()
    unguarded(place)(change)
    found = ledger.verify()
    assert not found
    assert found.position == position
    assert str(found).startswith(f"entry {position}: ")
    with pytest.raises(LedgerError):  # whoever opens it now
        Ledger(place, dataset="clinic").spend(pure(0.01, neighbours=SUBSTITUTE), "more")


def test_exchanged_entries_are_found(place: str) -> None:
    ledger, _ = filled(place)
    run = unguarded(place)
    for old, new in ((2, 99), (3, 2), (99, 3)):
        run("UPDATE discreet_entries SET position = ? WHERE position = ?", new, old)
    assert ledger.verify().position == 2


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE discreet_entries SET body = 'x' WHERE position = 2",
        "DELETE FROM discreet_entries WHERE position = 2",
        "DELETE FROM discreet_heads",
        "UPDATE discreet_heads SET position = 2",
        "UPDATE discreet_heads SET dataset = 'other', position = position + 1",
        "INSERT INTO discreet_entries VALUES ('clinic', 2, 'x', 'x', 'x')",
        "INSERT INTO discreet_entries VALUES ('clinic', 99, 'x', 'x', 'x')",
        "INSERT OR REPLACE INTO discreet_entries VALUES ('clinic', 2, 'x', 'x', 'x')",
        "TRUNCATE discreet_entries",
        "TRUNCATE discreet_heads",
    ],
)
def test_the_database_itself_refuses_changes(place: str, change: str) -> None:
    ledger, _ = filled(place)
    with pytest.raises((sqlite3.Error, psycopg.Error)):
        direct(place)(change)
    assert ledger.verify()


def test_a_cut_with_its_head_moved_is_found_by_a_receipt_only(place: str) -> None:
    ledger, receipts = filled(place)
    run = unguarded(place)
    run("DELETE FROM discreet_entries WHERE position >= 4")
    ((hash_,),) = run("SELECT hash FROM discreet_entries WHERE position = 3")
    run("UPDATE discreet_heads SET position = 3, hash = ?", hash_)
    assert "guards" in str(ledger.verify())
    ledger._store.guards = ()  # pyright: ignore[reportAttributeAccessIssue]  # as if they had been put back
    assert ledger.verify()
    assert ledger.verify(receipts[:3])
    assert ledger.verify(receipts).position == 4
    with pytest.raises(LedgerError):  # it remembers the chain it has seen
        ledger.spend(pure(0.01, neighbours=SUBSTITUTE), "more")


def test_a_rewritten_ledger_is_found_by_a_receipt_only(place: str) -> None:
    ledger, receipts = filled(place)
    run = unguarded(place)
    chain = Chain("clinic")
    for position, text in run("SELECT position, body FROM discreet_entries ORDER BY position"):
        row = chain.next(json.loads(text.replace("purpose 1", "purpose 9")))
        chain.follow(row)
        run(
            "UPDATE discreet_entries SET body = ?, previous = ?, hash = ? WHERE position = ?",
            *(row.body, row.previous, row.hash, position),
        )
    run("UPDATE discreet_heads SET hash = ?", chain.hash)
    ledger._store.guards = ()  # pyright: ignore[reportAttributeAccessIssue]
    assert ledger.verify()
    assert ledger.verify(receipts).position == 2
    with pytest.raises(LedgerBroken):
        ledger.spend(pure(0.01, neighbours=SUBSTITUTE), "more")


def test_a_well_formed_overspend_is_found(place: str) -> None:
    ledger, _ = filled(place)
    with ledger._store.writing() as session:
        chain = ledger._follow(session)
        body = {
            "kind": "spend",
            "guarantee": pure(0.75, neighbours=SUBSTITUTE).to_dict(),
            "purpose": "p",
            "plan": None,
        }
        session.append("clinic", chain.next(ledger._signed(body)))
    assert "more was spent than the budget allows" in str(ledger.verify())


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, but long enough to be one" * 50, b"SQLite format 3\0"]
)
def test_something_else_in_the_file_is_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "clinic.ledger"
    place.write_bytes(content)
    with pytest.raises(LedgerError) as caught:
        Ledger(place)
    assert "\n" not in str(caught.value)


def test_a_damaged_file_does_not_verify(tmp_path: Path) -> None:
    place = tmp_path / "clinic.ledger"
    ledger, _ = filled(str(place))
    content = bytearray(place.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    place.write_bytes(content)
    assert not ledger.verify()
    place.unlink()
    assert str(ledger.verify()) == "entry 0: the ledger is gone"
    with pytest.raises(LedgerError, match="there is no ledger"):
        ledger.spend(pure(0.01, neighbours=SUBSTITUTE), "more")
    assert not place.exists()


def test_a_server_that_may_forget_is_refused(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place = postgres.database()
    ledger, _ = filled(place)
    seen: list[str] = []
    hold = PostgresStore.hold

    def spy(self: PostgresStore, connection: Any) -> None:
        connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
        hold(self, connection)
        seen.append(connection.exec_driver_sql("SHOW synchronous_commit").scalar_one())

    monkeypatch.setattr(PostgresStore, "hold", spy)
    ledger.spend(pure(0.125, neighbours=SUBSTITUTE), "durable")
    assert seen == ["on"]
