"""MNIST, prepared record by record: nothing is read off the other images."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Digits:
    """Images and labels.

    Attributes:
        x: (n, 28, 28, 1), each image of Euclidean length 10.
        y: (n,) from 0 to 9.
    """

    x: Array
    y: NDArray[np.float64]

    @property
    def flat(self) -> Array:
        return self.x.reshape(len(self.x), -1)


def read(*, test: bool, rows: int | None = None) -> Digits:
    """The training or the test digits; the first `rows` of them."""
    part = "t10k" if test else "train"
    images, labels = (_idx(f"{part}-{kind}-ubyte.gz")[:rows] for kind in ("images-idx3", "labels-idx1"))
    x = images.astype(np.float32)[..., None] / 255
    # An image's own length is that person's own business; the data set's mean would not be (ERRATA 16).
    x *= 10 / np.sqrt((x**2).sum(axis=(1, 2, 3), keepdims=True))
    return Digits(x, labels.astype(np.float64))


def _idx(name: str) -> NDArray[np.uint8]:
    folder = Path(os.environ.get("DISCREET_DATA", "data")) / "mnist"
    raw = gzip.decompress((folder / name).read_bytes())
    shape = np.frombuffer(raw, ">u4", raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)
