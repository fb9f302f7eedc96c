"""The ledger in peace: budget, spends, receipts, what is refused."""

import json
import math
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.ledger import (
    Abandoned,
    Anchor,
    BudgetExceeded,
    Ledger,
    LedgerError,
    Opened,
    Receipt,
    Released,
    Spend,
)
from discreet.mechanisms.base import Account
from discreet.privacy import Budget, Guarantee, Neighbours, Sensitive, gaussian, nothing, pure, zcdp

SUBSTITUTE = Neighbours.SUBSTITUTE
BUDGET = Budget(1.0, neighbours=SUBSTITUTE)
HASH = "0123456789abcdef" * 4


def small(epsilon: float = 0.1) -> Guarantee:
    return pure(epsilon, neighbours=SUBSTITUTE)


def fresh(place: str, budget: Budget = BUDGET) -> Ledger:
    return Ledger.create(place, budget=budget, dataset="clinic", who="tester")


def test_the_owner_opens_it_once_and_others_find_it(place: str) -> None:
    with pytest.raises(LedgerError, match=r"no ledger of clinic at .*; give budget= to open one"):
        Ledger(place, dataset="clinic")
    first = Ledger(place, budget=BUDGET, dataset="clinic")
    assert (first.budget, first.remaining(), first.spent()) == (BUDGET, 1.0, 0.0)
    for again in (Ledger(place), Ledger(place, dataset="clinic"), Ledger(place, budget=BUDGET)):
        assert (again.dataset, again.entries()) == ("clinic", first.entries())
    with pytest.raises(LedgerError, match=r"has the budget epsilon 1 .*, got epsilon 2 "):
        Ledger(place, budget=Budget(2.0, neighbours=SUBSTITUTE))
    with pytest.raises(LedgerError, match=r"there is a ledger of clinic at .* already"):
        fresh(place)
    assert isinstance(first.entries()[0], Opened)


def test_looking_for_a_ledger_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(tmp_path / "clinic.ledger")
    assert list(tmp_path.iterdir()) == []


def test_a_renamed_file_is_still_the_ledger_of_its_data_set(tmp_path: Path) -> None:
    Ledger(tmp_path / "clinic.ledger", budget=BUDGET).spend(small(), "one")
    moved = (tmp_path / "clinic.ledger").rename(tmp_path / "old.ledger")
    ledger = Ledger(moved)
    assert ledger.dataset == "clinic"
    assert ledger.verify()


def test_one_database_keeps_ledgers_of_several_data_sets_apart(place: str) -> None:
    one = fresh(place)
    two = Ledger.create(place, budget=BUDGET, dataset="laboratory")
    one.spend(small(0.75), "report")
    assert (one.remaining(), two.remaining()) == (pytest.approx(0.25), 1.0)
    assert one.verify()
    assert two.verify()
    with pytest.raises(LedgerError, match="it keeps clinic, laboratory; give dataset="):
        Ledger(place, dataset="wards")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"budget": Budget(1.0)}, "must name its neighbours"),
        ({"budget": 1.0}, "must be a Budget, got float"),
        ({"budget": BUDGET, "dataset": "a\nb"}, "dataset must be one line"),
        ({"budget": BUDGET, "who": ""}, "who must be one line"),
    ],
)
def test_a_ledger_that_says_too_little_is_refused(tmp_path: Path, bad: dict, message: str) -> None:
    with pytest.raises((LedgerError, TypeError, ValueError), match=message):
        Ledger(tmp_path / "clinic.ledger", **bad)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["mysql://host/db", "not a url://", "sqlite://", "https://host/x"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(LedgerError, match="lies in a file or in PostgreSQL"):
        Ledger(url)


def test_a_password_is_never_shown() -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger("postgresql://user:hunter2@localhost:1/db", dataset="clinic")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.getrepr(style="long", chain=True).reprcrash)
    assert caught.value.__context__ is None


def test_spends_compose_and_do_not_just_add_up(place: str) -> None:
    ledger = fresh(place, Budget(1.0, 1e-6, neighbours=SUBSTITUTE))
    costs = [gaussian(20.0, neighbours=SUBSTITUTE), zcdp(1e-4, neighbours=SUBSTITUTE), small(0.05)]
    receipts = [ledger.spend(cost, f"release {i}") for i, cost in enumerate(costs)]
    together = sum(costs, nothing(neighbours=SUBSTITUTE))
    assert ledger.total() == together
    assert ledger.spent() == together.epsilon(1e-6) == receipts[-1].spent
    assert ledger.spent() < 0.9 * sum(cost.epsilon(1e-6) for cost in costs)
    assert ledger.remaining() == receipts[-1].left == 1.0 - ledger.spent()
    assert Ledger(place).spent() == ledger.spent()


def test_an_overspend_is_refused_with_what_was_asked_spent_and_left(place: str) -> None:
    ledger = fresh(place)
    ledger.spend(small(0.7), "first")
    before = ledger.entries()
    with pytest.raises(BudgetExceeded, match=r"asked 0\.5, spent 0\.7, left 0\.3, together 1\.2 ") as caught:
        ledger.spend(small(0.5), "second")
    quote = caught.value.quote
    assert (quote.asked, round(quote.left, 6), quote.fits) == (0.5, 0.3, False)
    assert ledger.entries() == before == Ledger(place).entries()
    assert ledger.quote(small(0.3)).fits
    ledger.spend(small(0.3), "what is left")
    assert ledger.verify()
    assert pickle.loads(pickle.dumps(caught.value)).quote == quote


def test_a_budget_can_be_used_up_to_the_last_tenth(place: str) -> None:
    ledger = fresh(place)
    for _ in range(10):
        ledger.spend(small(0.1), "a tenth")
    assert ledger.remaining() == 0.0
    with pytest.raises(BudgetExceeded):
        ledger.spend(small(1e-6), "more")
    assert ledger.verify()


def test_what_has_no_epsilon_at_the_delta_is_refused(place: str) -> None:
    ledger = fresh(place)
    with pytest.raises(BudgetExceeded, match="asked inf"):
        ledger.spend(gaussian(20.0, neighbours=SUBSTITUTE), "needs a delta")


def test_bad_spends_are_refused(place: str) -> None:
    ledger = fresh(place)
    with pytest.raises(ValueError, match="substitute neighbours and the guarantee about add_remove"):
        ledger.spend(pure(0.1, neighbours="add_remove"), "other relation")
    with pytest.raises(TypeError, match="must be a Guarantee, got float"):
        ledger.spend(0.1, "a number")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="plan must be a SHA-256 hash"):
        ledger.spend(small(), "a plan", plan="my plan")
    for purpose in ("", "two\nlines", "x" * 501):
        with pytest.raises(ValueError, match="purpose must be one line of 1 to 500 characters"):
            ledger.spend(small(), purpose)
    with pytest.raises(TypeError, match="purpose must be text, got Sensitive"):
        ledger.spend(small(), Sensitive("secret"))  # pyright: ignore[reportArgumentType]
    assert len(ledger.entries()) == 1


def test_a_guarantee_that_would_come_back_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = fresh(str(tmp_path / "clinic.ledger"))
    with monkeypatch.context() as patch:
        patch.setattr(Guarantee, "from_json", staticmethod(lambda _: small(0.01)))
        with pytest.raises(LedgerError, match="does not come back from JSON"):
            ledger.spend(small(0.1), "odd")
    assert ledger.verify().entries == 1


def test_an_open_spend_is_listed_until_somebody_says_what_came_of_it(place: str) -> None:
    ledger = fresh(place)
    one, two, three = (ledger.spend(small(), f"purpose {i}", plan=HASH) for i in range(3))
    assert [spend.position for spend in ledger.reconcile()] == [1, 2, 3]
    ledger.complete(one, HASH)
    ledger.abandon(ledger.reconcile()[0], "killed by the night shift")
    assert [spend.purpose for spend in Ledger(place).reconcile()] == ["purpose 2"]
    assert ledger.spent() == pytest.approx(0.3)
    for closed in (one, two):
        with pytest.raises(LedgerError, match="is not an open spend"):
            ledger.complete(closed, HASH)
    with pytest.raises(LedgerError, match="is not an open spend"):
        ledger.complete(Receipt("clinic", three.position, HASH, 0.1, 0.9), HASH)
    kinds = [type(entry) for entry in ledger.entries()]
    assert kinds == [Opened, Spend, Spend, Spend, Released, Abandoned]
    assert {entry.who for entry in ledger.entries()} == {"tester"}
    assert ledger.verify()
    assert "entry 3 (tester, " in ledger.describe()


def test_a_receipt_is_an_anchor_and_goes_through_json(place: str) -> None:
    ledger = fresh(place)
    receipt = ledger.spend(small(), "report")
    kept = Anchor.from_dict(json.loads(json.dumps(receipt.to_dict())))
    ledger.spend(small(), "another")
    assert ledger.verify([receipt, kept, ledger.anchor()])


def test_a_ledger_is_an_account_for_releases(place: str) -> None:
    account: Account = fresh(place)
    account.spend(small(), "release", plan=HASH)


def test_what_a_ledger_holds_is_what_was_declared(place: str) -> None:
    ledger = fresh(place)
    ledger.spend(small(), "annual report", plan=HASH)
    with ledger._store.reading() as session:
        assert session is not None
        rows = [json.loads(row.body) for row in session.rows("clinic")]
    opened, spend = rows
    assert set(opened) == {"kind", "format", "dataset", "budget", "identity", "when", "who"}
    assert set(spend) == {"kind", "guarantee", "purpose", "plan", "when", "who"}


def test_threads_and_ledger_objects_never_overspend_together(place: str) -> None:
    budget = Budget(0.5, 1e-6, neighbours=SUBSTITUTE)
    shared = fresh(place, budget)

    def spend(i: int) -> bool:
        try:
            (shared if i % 2 else Ledger(place)).spend(small(0.1), f"thread {i}")
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        accepted = sum(pool.map(spend, range(12)))
    most = max(k for k in range(13) if (k * small(0.1)).epsilon(1e-6) <= 0.5 * (1 + 1e-9))
    assert accepted == most
    assert shared.verify()


def test_two_owners_at_once_make_one_ledger(place: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        ledgers = list(pool.map(lambda _: Ledger(place, budget=BUDGET, dataset="clinic"), range(6)))
    assert len({ledger.anchor() for ledger in ledgers}) == 1


@settings(max_examples=15, deadline=None)
@given(costs=st.lists(st.sampled_from([0.001, 0.01, 0.03, 0.2]), max_size=12))
def test_the_total_is_what_was_accepted(tmp_path_factory: pytest.TempPathFactory, costs: list[float]) -> None:
    ledger = fresh(str(tmp_path_factory.mktemp("ledger") / "a.ledger"), Budget(0.5, neighbours=SUBSTITUTE))
    accepted = []
    for cost in costs:
        try:
            ledger.spend(small(cost), "random")
            accepted.append(cost)
        except BudgetExceeded:
            assert math.fsum([*accepted, cost]) > 0.5
    assert ledger.spent() == pytest.approx(math.fsum(accepted))
    assert ledger.spent() <= 0.5 * (1 + 1e-9)
    assert ledger.verify()


def test_a_thousand_spends_open_and_verify_quickly(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=Budget(10.0, neighbours=SUBSTITUTE))
    with ledger._store.writing() as session:  # one commit, for speed
        chain = ledger._follow(session)
        for i in range(1000):
            body = {"kind": "spend", "guarantee": small(0.001).to_dict(), "purpose": f"p{i}", "plan": None}
            row = chain.next(ledger._signed(body))
            session.append("a", row)
            chain.follow(row)
    assert Ledger(tmp_path / "a.ledger").spent() == pytest.approx(1.0)
    assert ledger.verify().entries == 1001


def test_a_ledger_needs_no_jax() -> None:
    code = "import discreet as dc, sys; dc.Ledger; print({'jax', 'numpyro', 'polars'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    assert dc.Ledger is Ledger
