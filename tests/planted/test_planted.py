"""The audit catches every planted bug, and lets the mechanism beside it pass the same check.

An attack has confidence 0.999: with fresh seeds a right mechanism would be accused once in a thousand
checks, at the most. `power.py` measures how often a broken one is caught. All seeds here are fixed.
"""

from __future__ import annotations

import pytest

from . import chains, gradient_steps, noisy_sums, outputs, posteriors, releases, sums
from .kit import PLANTED

_FILLED = chains, gradient_steps, noisy_sums, outputs, posteriors, releases, sums


def test_there_are_at_least_twenty() -> None:
    assert len(PLANTED) >= 20


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_planted_bug_is_caught(name: str) -> None:
    verdict = PLANTED[name].check(PLANTED[name].broken())
    assert verdict.caught, verdict.why


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_right_mechanism_passes_the_same_check(name: str) -> None:
    verdict = PLANTED[name].check(PLANTED[name].right())
    assert not verdict.caught, verdict.why
