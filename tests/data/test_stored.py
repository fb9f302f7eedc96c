"""Records on disk: the same numbers as in memory, in a file that nobody else sees and that does not stay."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from discreet.data import StoredRecords, stored
from discreet.models import BetaBernoulli, LogisticRegression

MODEL = LogisticRegression(3, row_norm=2.0)
G = np.random.default_rng(20_261_119)
X, Y = G.uniform(-2, 2, (1000, 3)), G.integers(0, 2, 1000).astype(float)  # some rows are too long: clipped
WHOLE = MODEL.validate({"x": X, "y": Y})


def kept(size: int = 300, folder: Path | None = None) -> StoredRecords:
    return MODEL.store(
        ({"x": X[i : i + size], "y": Y[i : i + size]} for i in range(0, len(X), size)), folder=folder
    )


@pytest.mark.parametrize("window", [1 << 26, 1 << 14, 8])
def test_rows_come_back_in_any_order_as_the_model_checked_them(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(stored, "_WINDOW", window)
    records = kept()
    rows = G.integers(0, 1000, (4, 50)).astype(np.int32)
    found = records.take(rows)
    for name, values in WHOLE.items():
        assert np.array_equal(found[name], values[rows])
    assert records.rows == records.total == 1000


@pytest.mark.parametrize(("size", "number"), [(1000, 1), (333, 4), (100, 12)])
def test_pieces_hold_every_record_once(size: int, number: int) -> None:
    pieces = list(kept().pieces(size, number))
    assert [there for _, there in pieces] == [max(0, min(size, 1000 - k * size)) for k in range(number)]
    for name, values in WHOLE.items():
        assert all(piece[name].shape == (size, *values.shape[1:]) for piece, _ in pieces)
        assert np.array_equal(np.concatenate([piece[name][:there] for piece, there in pieces]), values)


def test_the_file_has_no_name_and_nobody_elses_access(tmp_path: Path) -> None:
    records = kept(folder=tmp_path)
    assert not list(tmp_path.iterdir())
    handle = records._file.fileno()
    assert os.fstat(handle).st_mode & 0o077 == 0
    assert os.fstat(handle).st_size == 1000 * 4 * 8
    records.close()
    with pytest.raises(OSError):  # noqa: PT011 - the file is gone
        os.fstat(handle)


def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import os, sys, pathlib; from discreet.models import BetaBernoulli\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "kept = BetaBernoulli((1, 1)).store([{'x': [1.0] * 9999}], folder=folder)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == -9
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_in_a_piece_is_refused_without_a_value() -> None:
    bad = X.copy()
    bad[700, 1] = np.nan
    with pytest.raises(ValueError, match="got NaN or infinity in 1 records"):
        MODEL.store({"x": bad[i : i + 300], "y": Y[i : i + 300]} for i in range(0, 1000, 300))


def test_stored_records_show_and_give_away_nothing() -> None:
    records = kept()
    assert repr(records) == "<stored records x, y: sensitive>"
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(records)
    with pytest.raises(TypeError, match="lies on disk and is not loaded"):
        _ = records["x"]


def test_records_of_another_model_are_refused() -> None:
    with pytest.raises(ValueError, match="must be those of this model"):
        LogisticRegression(3, row_norm=1.0).validate(kept())
    assert MODEL.validate(records := kept()) is records


def test_an_empty_piece_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        BetaBernoulli((1, 1)).store([{"x": np.zeros(0)}])
