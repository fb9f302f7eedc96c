"""The data sets of the papers, by name: found on disk, checked, each with its public schema."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.columns import Category, Integer
from discreet.data.encoding import Records
from discreet.data.errors import DataError, nearest
from discreet.data.schema import Schema

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Dataset:
    """A table with its schema.

    Attributes:
        name: what it is called here.
        frame: the table.
        schema: its public declaration.
        target: what is usually predicted.
    """

    name: str
    frame: pl.DataFrame = field(repr=False)
    schema: Schema = field(repr=False)
    target: str

    def encode(self, **options: Any) -> Records:
        """Records with the usual target, unless another is given; see `Schema.encoding`."""
        return self.schema.encode(self.frame, **{"target": self.target, **options})


def load(name: str) -> Dataset:
    """One of the papers' data sets.

    Its files are looked for in the folder that the environment variable DISCREET_DATA
    names, then in `discreet` in the user's cache folder. Nothing is downloaded; the
    refusal says which file to put where. Every file must have the known SHA-256.

    Args:
        name: abalone, adult_train, adult_test, banknote, boston, kin8nm, mnist,
            mnist_test or wine_red.
    """
    if name not in _KNOWN:
        raise DataError(f"there is no data set {name!r}; {nearest(name, _KNOWN)}")
    known = _KNOWN[name]
    contents = [_find(file, digest, known.origin) for file, digest in known.files.items()]
    return Dataset(name, known.parse(contents), known.schema(), known.target)


def names() -> tuple[str, ...]:
    """What `load` knows."""
    return tuple(_KNOWN)


def folders() -> tuple[Path, ...]:
    """Where `load` looks, in order."""
    named = os.environ.get("DISCREET_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "discreet"
    return (Path(named), cache) if named else (cache,)


def _find(file: str, digest: str, origin: str) -> bytes:
    for folder in folders():
        if (path := folder / file).is_file():
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != digest:
                raise DataError(f"{path} is not the known file, whose SHA-256 is {digest}; replace it")
            return content
    places = " or ".join(str(folder) for folder in folders())
    raise DataError(
        f"the file {file} is not in {places}; put it there (origin: {origin}; SHA-256 {digest}), "
        "or name its folder in DISCREET_DATA"
    )


def _csv(contents: list[bytes]) -> pl.DataFrame:
    import polars as pl

    return pl.read_csv(gzip.decompress(contents[0]), infer_schema_length=None)


def _digits(contents: list[bytes]) -> pl.DataFrame:
    import polars as pl

    images, labels = (np.frombuffer(gzip.decompress(content), np.uint8) for content in contents)
    labels, pixels = labels[8:], images[16:].reshape(-1, 784)  # behind the headers of the idx format
    columns = {f"pixel{i}": np.ascontiguousarray(pixels[:, i]) for i in range(784)}
    return pl.DataFrame({**columns, "digit": labels})


def _digits_schema() -> Schema:
    pixels = {f"pixel{i}": Integer(lower=0, upper=255) for i in range(784)}
    digit = Category(values=tuple(range(10)))
    return Schema(
        title="MNIST", about="Handwritten digits; a pixel is a byte.", columns={**pixels, "digit": digit}
    )


def _declared(name: str) -> Callable[[], Schema]:
    return lambda: Schema.read(Path(__file__).parent / "declared" / f"{name}.toml")


@dataclass(frozen=True)
class _Known:
    files: dict[str, str]
    target: str
    schema: Callable[[], Schema]
    origin: str
    parse: Callable[[list[bytes]], pl.DataFrame] = _csv


def _idx(part: str, *, images: str, labels: str) -> dict[str, str]:
    return {f"mnist/{part}-images-idx3-ubyte.gz": images, f"mnist/{part}-labels-idx1-ubyte.gz": labels}


_MNIST = "MNIST of LeCun, Cortes and Burges, original idx files"

_KNOWN = {
    "abalone": _Known(
        {"abalone.csv.gz": "7b21ed0fe41518f4ec3c135404b0c8bac0a29490ccec9ffa29bc4a5a83d02363"},
        "rings >= 10",
        _declared("abalone"),
        "UCI Abalone, abalone.data with a header",
    ),
    "adult_train": _Known(
        {"adult_train.csv.gz": "a833df349bf96e939cb2de65a084d3a21cd64c4781a95551430453ac6892bb3b"},
        "income",
        _declared("adult"),
        "UCI Adult, adult.data with a header",
    ),
    "adult_test": _Known(
        {"adult_test.csv.gz": "8b1e351af7a41f3745edeff5bf1aaf280319e11af13ee030b230d8ad83115396"},
        "income",
        _declared("adult"),
        "UCI Adult, adult.test with a header",
    ),
    "banknote": _Known(
        {"banknote.csv.gz": "56629d6a70cbad8b1ac47bb78d4175c62bbe8fc34fb0eb372a2f2f7939319220"},
        "class",
        _declared("banknote"),
        "UCI Banknote Authentication with a header",
    ),
    "boston": _Known(
        {"boston.csv.gz": "24171ac8b325c45808c990e0c264f91b3dbbde6f54a7ab3e01d9f81fc8bd8ff0"},
        "medv",
        _declared("boston"),
        "UCI Housing, housing.data as CSV with a header",
    ),
    "kin8nm": _Known(
        {"kin8nm.csv.gz": "bbb075f0a1089f3720e11551ffa0c60984ee097560d1d8b47b401793ed387a12"},
        "y",
        _declared("kin8nm"),
        "OpenML 189, kin8nm",
    ),
    "mnist": _Known(
        _idx(
            "train",
            images="440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            labels="3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        "digit",
        _digits_schema,
        _MNIST,
        _digits,
    ),
    "mnist_test": _Known(
        _idx(
            "t10k",
            images="8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            labels="f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        "digit",
        _digits_schema,
        _MNIST,
        _digits,
    ),
    "wine_red": _Known(
        {"wine_red.csv.gz": "c603e26615cbf5eb8283df3d6575421a46d8a7f5bfcefc528f77a89c0880d715"},
        "quality",
        _declared("wine_red"),
        "UCI Wine Quality, winequality-red.csv with commas",
    ),
}
