"""Poisson batches, the keystream, and normals from bits."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from discreet.neural import PoissonBatches
from discreet.neural.batches import buffer_for, sample
from discreet.neural.keystream import Keystream, Ratchet
from discreet.neural.normals import Bits, draw, normals, numpy_normals

KEY = bytes(range(32))


def stream(number: int = 0) -> Keystream:
    return Keystream(number.to_bytes(32, "big"))


def test_keystream_is_aes_ctr() -> None:
    expected = Cipher(algorithms.AES(KEY), modes.CTR(bytes(16))).encryptor().update(bytes(500_000))
    bits = Keystream(KEY)
    found = b"".join(bits.words(n, np.uint8).tobytes() for n in (3, 200_001, 0, 299_996))
    assert found == expected
    # FIPS-197's example: AES-256 of the counter block 0 under the key 00 01 .. 1f.
    assert found[:16].hex() == "f29000b62a499fd0a9f39a6add2e7780"


def test_a_ratchet_moves_on() -> None:
    ratchet = Ratchet(KEY)
    first, between = ratchet.next().words(4), ratchet.leave()
    second = ratchet.next().words(4)
    assert (first != second).all()
    assert (Ratchet(between).next().words(4) == second).all()
    assert KEY.hex() not in repr(ratchet)
    with pytest.raises(TypeError, match="cannot be pickled"):
        ratchet.__reduce__()


def test_poisson_batches_are_independent_coins() -> None:
    """Failure rate: 1e-6 for each of 3 statistics; a rate of 0.053 in place of 0.05 is told apart."""
    size, rate, draws = 400, 0.05, 4000
    hits = np.zeros((draws, size), bool)
    for k in range(draws):
        hits[k, sample(stream(k), size, rate)] = True
    z = stats.norm.isf(5e-7)
    total = hits.sum()

    def far(true: float) -> float:
        return abs(total - draws * size * true) / np.sqrt(draws * size * true * (1 - true))

    assert far(rate) < z < far(0.053)
    counts = hits.sum(axis=1)
    # The number of records is binomial, and two records enter independently.
    assert abs(counts.var() / (size * rate * (1 - rate)) - 1) < z * np.sqrt(2 / draws)
    left, right = hits[:, ::2], hits[:, 1::2]
    both = (left & right).sum()
    assert abs(both - draws * size / 2 * rate**2) < z * np.sqrt(draws * size / 2 * rate**2)


@pytest.mark.parametrize("rate", [1.0, 0.5, 2.0**-16, 1e-9])
def test_rates_at_the_ends(rate: float) -> None:
    found = sample(stream(1), 70_000, rate)
    expected = 70_000 * rate
    assert abs(len(found) - expected) <= 6 * np.sqrt(expected * (1 - rate)) + (rate < 1e-3) * 10
    assert (np.diff(found) > 0).all()


def test_overflowing_and_empty_batches() -> None:
    for shuffle in (False, True):
        passes = PoissonBatches(0.5, 16).draw(stream(2), 100, shuffle=shuffle)
        rows = np.concatenate([p.rows[: p.valid] for p in passes])
        assert len(passes) == -(-len(rows) // 16)
        assert all(len(p.rows) == 16 for p in passes)
        assert sorted(rows) == sorted(sample(stream(2), 100, 0.5))
    (empty,) = PoissonBatches(1e-12, 16).draw(stream(3), 100)
    assert empty.valid == 0
    assert len(empty.rows) == 16
    assert buffer_for(256, 256 / 60_000) == 288


@pytest.mark.parametrize("double", [False, True])
def test_normals_are_normal(double: bool) -> None:
    """Kolmogorov-Smirnov at 1e-6, variance and tails at 6 sigma; a scale of 1.02 is rejected."""
    with jax.enable_x64(double):
        z = np.asarray(normals(draw(stream(4), 200_000, double=double)))
    assert z.dtype == (np.float64 if double else np.float32)
    assert stats.kstest(z, "norm").pvalue > 1e-6
    z = z.astype(float)
    spread = 6 * np.sqrt(2 / len(z))
    assert abs(z.var() - 1) < spread < abs((1.02 * z).var() - 1)
    assert abs((np.abs(z) > 3).mean() - 0.0027) < 6 * np.sqrt(0.0027 / len(z))


def test_normals_invert_the_distribution_far_into_the_tail() -> None:
    words = np.array([0, 1, 2, 3, 2**16, 2**31, 2**32 - 2, 2**32 - 1], np.uint32)
    tails = np.array([0, 0, 255, 7, 9, 128, 255, 255], np.uint8)
    z = np.asarray(normals(Bits(words, tails)))
    half = ((words >> 1).astype(float) + (tails + 0.5) / 256) * 2.0**-32
    expected = np.where(words & 1, 1, -1) * -stats.norm.ppf(half)
    np.testing.assert_allclose(z, expected, rtol=3e-6, atol=3e-7)
    assert 6.9 < -z[0] < 7.2
    with jax.enable_x64(True):
        found = np.asarray(normals(Bits(stream(5).words(1000, np.uint64), np.zeros(0, np.uint8))))
    np.testing.assert_allclose(found, numpy_normals(stream(5), 1000), rtol=1e-11)
