"""Noise on a lattice, so that no bit of a floating-point number tells of the data.

Statistics are rounded record by record to multiples of a power of two and summed as
integers; OpenDP adds discrete Gaussian or Laplace noise to the integers. Proof page:
docs/proofs/perturbed_statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet import privacy
from discreet.privacy import Evidence, Guarantee
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    from opendp.mod import Measurement

Array = NDArray[np.float64]
Sampler = Callable[[int], int]

PAGE = "docs/proofs/perturbed_statistics.md"
FINEST, _WORD = 30, 60


class Noise(StrEnum):
    """The law of the noise."""

    GAUSSIAN = "gaussian"
    """Normal; needs a delta above 0."""

    LAPLACE = "laplace"
    """Double exponential; allows delta = 0."""


@dataclass(frozen=True)
class NoisySum:
    """What was measured, with the law of its noise; all public from here on.

    Attributes:
        kind: the law of the noise.
        size: the public number of records.
        values: the noisy sums.
        scales: of the noise in each coordinate: standard deviation, or Laplace's b.
    """

    kind: Noise
    size: int
    values: Array
    scales: Array

    def log_likelihood(self, coordinate: int, truth: Array) -> Array:
        """Log density of the noisy sum of one coordinate, given true sums; up to a constant."""
        z = (self.values[coordinate] - truth) / self.scales[coordinate]
        return -0.5 * z**2 if self.kind is Noise.GAUSSIAN else -np.abs(z)


@dataclass(frozen=True)
class LatticeNoise:
    """Independent noise on each coordinate of a sum of bounded records.

    Attributes:
        kind: the law of the noise.
        multiplier: scale of the noise (standard deviation, or Laplace's b) over the
            width of the coordinate's range.
        size: the public number of records.
        movable: how many coordinates one record can change.
    """

    kind: Noise
    multiplier: float
    size: int
    movable: int

    @property
    def bits(self) -> int:
        """The lattice is at least 2^bits times finer than the noise."""
        return min(FINEST, _WORD - max(0, math.ceil(math.log2(self.size / self.multiplier))))

    @property
    def loss(self) -> float:
        """One record's change of one coordinate over the scale, four lattice steps counted in (Lemma 1)."""
        return 1 / self.multiplier + 4 * 2.0**-self.bits

    def guarantee(self) -> Guarantee:
        """What the noisy sums cost, under substitution."""
        return _PRICE[self.kind](self.loss, self.movable)

    def add(self, values: Array, low: Array, high: Array, randomness: Randomness) -> NoisySum:
        """The noisy sum of records that lie within [low, high]; counted from `low`, it is on the lattice."""
        scales = self.multiplier * (high - low)
        steps = 2.0 ** (np.floor(np.log2(scales)) - self.bits)
        sums = np.rint((np.clip(values, low, high) - low) / steps).astype(np.int64).sum(axis=0)
        noisy = [
            self._sampler(float(scale), int(width), randomness)(int(total))
            for total, scale, width in zip(sums, scales / steps, np.rint((high - low) / steps), strict=True)
        ]
        values = np.array(noisy, dtype=np.float64) * steps + self.size * low
        return NoisySum(self.kind, self.size, values, scales)

    def evidence(self, randomness: Randomness) -> Evidence:
        """How the noise was drawn."""
        if seeded(randomness):
            return Evidence.assumed(
                "noise from a seeded float64 generator, rounded to the lattice, is as good as exact noise",
                "a seed was given; OpenDP takes none",
            )
        return Evidence.proved(
            f"the noise is exactly discrete {self.kind} on the integers, without floating-point arithmetic",
            "OpenDP, proofs of make_gaussian and make_laplace",
        )

    def _sampler(self, scale: float, width: int, randomness: Randomness) -> Sampler:
        if seeded(randomness):
            generator = randomness.numpy()
            noise = generator.normal if self.kind is Noise.GAUSSIAN else generator.laplace
            return lambda total: total + round(noise(0.0, scale))
        with _opendp() as dp:
            space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
            make = dp.m.make_gaussian if self.kind is Noise.GAUSSIAN else dp.m.make_laplace
            measurement: Measurement = make(*space, scale=scale)
            bound = self.loss**2 / 2 if self.kind is Noise.GAUSSIAN else self.loss
            if not float(cast("float", measurement.map(width))) <= bound:  # pyright: ignore[reportUnknownMemberType]
                raise RuntimeError(
                    f"OpenDP's privacy map exceeds the plan's {bound:.6g}, which must not happen; "
                    "report this with the plan, nothing was released"
                )
            return lambda total: int(measurement(total))


def seeded(randomness: Randomness) -> bool:
    """Whether the run is reproducible."""
    return randomness.evidence.source == "a seed was given"


def _gaussian(loss: float, movable: int) -> Guarantee:
    return privacy.gaussian(1.0, sensitivity=loss * math.sqrt(movable), neighbours="substitute")


def _laplace(loss: float, movable: int) -> Guarantee:
    return movable * privacy.laplace(1.0, sensitivity=loss, neighbours="substitute")


_PRICE: dict[Noise, Callable[[float, int], Guarantee]] = {Noise.GAUSSIAN: _gaussian, Noise.LAPLACE: _laplace}


@contextmanager
def _opendp() -> Generator[Any]:
    """OpenDP with its gate `contrib` open, and closed again if it was closed before."""
    try:
        import opendp.prelude as dp
        from opendp.mod import assert_features, disable_features, enable_features
    except ImportError:
        raise ImportError(
            "PerturbedStatistics needs the package opendp for its noise, got none; pip install opendp, "
            "or give a key, which takes NumPy's noise for a test run"
        ) from None
    try:
        assert_features("contrib")
        was_open = True
    except Exception:  # noqa: BLE001 (OpenDP raises its own kind, which differs between versions)
        was_open = False
    enable_features("contrib")
    try:
        yield dp
    finally:
        if not was_open:
            disable_features("contrib")
