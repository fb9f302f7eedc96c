"""The logistic correction: its error is certified, small, never zero (docs/proofs/logistic_correction.md)."""

import math
import time

import numpy as np
import pytest
from scipy import special

from discreet.mechanisms._logistic_correction import (
    Correction,
    certified_error,
    distribution,
    logistic_correction,
)

LARGEST = {0.5: 1e-7, 1.0: 1e-7, 1.5: 3e-5, 2.0: 6e-4, 2.25: 1.7e-3, 2.5: 3.6e-3, 3.0: 1.4e-2}
"""ERRATA S8 says 1.5e-7 at C = 1; this grid does better."""


def worst(fitted: Correction, x: np.ndarray) -> float:
    F = distribution(fitted.variance, np.array(fitted.atoms), np.array(fitted.weights), x)
    return float(np.abs(F - special.expit(x)).max())


@pytest.mark.parametrize("C", LARGEST)
def test_error_is_small_and_certified_on_the_whole_line(C: float) -> None:
    fitted = logistic_correction(C)
    assert fitted.error <= LARGEST[C]
    x = np.sort(np.random.default_rng(1).uniform(-60, 60, 400_000))
    found = worst(fitted, x)
    assert found <= fitted.error <= 1.2 * found + 1e-8
    assert sum(fitted.weights) == pytest.approx(1, abs=1e-14)
    assert min(fitted.weights) > 0
    np.testing.assert_allclose(fitted.atoms, -np.array(fitted.atoms[::-1]))


def test_a_few_atoms_in_milliseconds_and_always_the_same() -> None:
    once = logistic_correction(2.0)
    logistic_correction.cache_clear()
    begin = time.process_time()
    again = logistic_correction(2.0)
    assert time.process_time() - begin < 1.0
    assert again == once
    assert len(once.atoms) <= 10


def test_better_than_the_published_mixture_and_than_a_moment_match() -> None:
    assert logistic_correction(2.0).error < 2.5e-3 / 4  # the authors' mixture
    spread = math.sqrt(math.pi**2 / 3 - 2)
    two_points = certified_error(2.0, np.array([-spread, spread]), np.array([0.5, 0.5]))
    assert two_points > 10 * logistic_correction(2.0).error


def test_the_certificate_sees_a_moved_atom() -> None:
    fitted = logistic_correction(1.0)
    atoms = np.array(fitted.atoms)
    atoms[[3, -4]] *= 1.01
    assert certified_error(1.0, atoms, np.array(fitted.weights)) > 2 * fitted.error


@pytest.mark.parametrize("C", [0.01, 0.5, 1.0, 2.0, 3.2])
def test_no_law_is_exact(C: float) -> None:
    """The quotient of characteristic functions leaves the unit disc, as Theorem 1 says."""
    t = 2 * math.pi / C + 5
    quotient = math.log(math.pi * t) - math.pi * t + math.log(2) + C * t**2 / 2
    assert quotient > 0


@pytest.mark.parametrize("C", [0.0, -1.0, 3.3, math.nan])
def test_variance_out_of_range(C: float) -> None:
    with pytest.raises(ValueError, match="variance must be a finite number above 0 and below"):
        logistic_correction(C)
