"""Published numbers that are not guarantees: for comparison only.

An `Approximation` or a printed claim answers `epsilon(delta)` like a guarantee,
but is none: it does not compose with one, no budget accepts it, and its text says
what it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from discreet.privacy import checks
from discreet.privacy.basic import Gaussian
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.routes import SingleProfile


@dataclass(frozen=True)
class Approximation:
    """A number from the literature that no theorem makes an upper bound.

    Attributes:
        name: what it is called.
        reason: why it is not a guarantee.
    """

    name: str
    reason: str
    _epsilon: Callable[[float], float]

    def epsilon(self, delta: float) -> float:
        """The epsilon the publication would report at `delta`."""
        return self._epsilon(checks.real("delta", delta, above=0.0, below=1.0))

    def __str__(self) -> str:
        return f"{self.name} (approximation, not a guarantee: {self.reason})"

    __repr__ = __str__

    def __add__(self, other: object) -> Approximation:
        raise TypeError(
            f"{self.name} is an approximation and cannot be added to anything; compose guarantees instead"
        )

    __radd__ = __add__
    __mul__ = __rmul__ = __add__


def gdp_central_limit(rate: float, sigma: float, steps: int) -> Approximation:
    """The central-limit formula of Bu, Dong, Long & Su 2020 for Poisson-subsampled Gaussians.

    mu = rate sqrt(steps (e^(1/sigma^2) - 1)). Paper N takes it for a bound; it is
    below the exact value in paper N's own setting (ERRATA 14).
    """
    checks.real("rate", rate, above=0.0, at_most=1.0)
    checks.real("sigma", sigma, above=0.0)
    checks.integer("steps", steps, at_least=1)
    mu = rate * math.sqrt(steps * math.expm1(min(sigma**-2, 700.0)))
    limit = ((Gaussian(Neighbours.ADD_REMOVE, mu), 1),)
    return Approximation(
        "Gaussian central limit",
        "it may lie below the true privacy loss",
        lambda delta: SingleProfile().epsilon(limit, delta),
    )


def as_published(name: str, epsilon: Callable[[float], float]) -> Approximation:
    """A bound as a paper prints it: kept for comparison, never spent."""
    return Approximation(name, "kept as printed, for comparison with the sharper bound", epsilon)
