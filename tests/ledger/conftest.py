"""Places for ledgers: a file, and a database where PostgreSQL is installed."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_spec = importlib.util.spec_from_file_location("ledger_cluster", Path(__file__).with_name("cluster.py"))
assert _spec is not None
assert _spec.loader is not None
cluster: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cluster)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A running cluster, or a skip that says why not."""
    if reason := cluster.absent():
        pytest.skip(reason)
    with cluster.cluster() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger may be made: nothing is there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "clinic.ledger")
    return request.getfixturevalue("postgres").database()
