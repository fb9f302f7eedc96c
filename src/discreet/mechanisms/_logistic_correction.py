# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
"""The law that a normal needs to become logistic, as nearly as any law can: a linear program.

Barker's test adds a standard logistic variable. DP-MCMC writes it as N(0, C) plus
a correction, and this module finds the correction with the smallest error of the
distribution function, and certifies that error on the whole line.

Proof page: docs/proofs/logistic_correction.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from discreet.privacy import Evidence, checks

Array = NDArray[np.float64]

LARGEST_VARIANCE = math.pi**2 / 3
"""The variance of the logistic law, which the normal part must stay below."""

_REACH, _SPACING, _POINTS = 18.0, 0.1, 250
_CELL, _ROUNDING = 2.5e-4, 1e-14


@dataclass(frozen=True)
class Correction:
    """A discrete symmetric law V with N(0, variance) + V nearly standard logistic.

    Attributes:
        variance: C, of the normal part.
        atoms: increasing, symmetric about 0.
        weights: positive, of sum 1.
        error: a bound on the largest difference of the distribution functions,
            and so of an acceptance probability of Barker's test.
    """

    variance: float
    atoms: tuple[float, ...]
    weights: tuple[float, ...]
    error: float

    @property
    def evidence(self) -> Evidence:
        """What a plan may say about it."""
        return Evidence.proved(
            f"the logistic correction at C = {self.variance:g} changes an acceptance probability by at most "
            f"{self.error:.2g}",
            "docs/proofs/logistic_correction.md#certificate",
        )


@lru_cache(maxsize=64)
def logistic_correction(variance: float) -> Correction:
    """The correction of smallest error on a fine grid.

    Args:
        variance: C, above 0 and below pi^2 / 3.

    Guarantee:
        `error` bounds sup |F - S| over the whole line, from the weights alone. No law
        has error 0, for any C.

    References: Seita et al. 2017; Heikkila et al. 2019, Supplement E; ERRATA S8;
        docs/proofs/logistic_correction.md.

    Example:
        >>> fitted = logistic_correction(2.0)
        >>> fitted.error < 6e-4, len(fitted.atoms) <= 10
        (True, True)
    """
    C = checks.real("variance", variance, above=0.0, below=LARGEST_VARIANCE)
    grid = np.linspace(0.0, _REACH, round(_REACH / _SPACING) + 1)
    half = _solve(C, grid, np.linspace(0.0, _REACH, _POINTS))
    kept = half > 1e-10  # smaller ones only add sampling work; the certificate is for what is kept
    grid, half = grid[kept], half[kept] / half[kept].sum()
    atoms = np.concatenate([-grid[::-1], grid])
    weights = np.concatenate([half[::-1], half]) / 2
    return Correction(C, tuple(atoms.tolist()), tuple(weights.tolist()), certified_error(C, atoms, weights))


def certified_error(variance: float, atoms: Array, weights: Array) -> float:
    """The supremum of |F - S| over the whole line for any symmetric weights, rounded up."""
    x = np.arange(0.0, 20.0 + _CELL, _CELL)
    F = distribution(variance, atoms, weights, x)
    curvature = math.exp(-0.5) / math.sqrt(2 * math.pi) / variance + 1 / (6 * math.sqrt(3))
    inside = float(np.abs(F - special.expit(x)).max()) + _CELL**2 / 8 * curvature
    return max(inside, 1 - float(F[-1]), float(special.expit(-x[-1]))) + _ROUNDING


def distribution(variance: float, atoms: Array, weights: Array, x: Array) -> Array:
    """P(N(0, variance) + V <= x) at each x."""
    s, total = math.sqrt(variance), np.zeros_like(x)
    for atom, weight in zip(atoms, weights, strict=True):
        total += weight * special.ndtr((x - atom) / s)
    return total


def _solve(C: float, grid: Array, x: Array) -> Array:
    """Weights of the pairs +-grid: minimise e subject to |F - S| <= e at x."""
    s, column = math.sqrt(C), np.ones((len(x), 1))
    pairs = 0.5 * (special.ndtr((x[:, None] - grid) / s) + special.ndtr((x[:, None] + grid) / s))
    target = special.expit(x)
    found = cast(
        "Any",
        optimize.linprog(
            np.append(np.zeros(len(grid)), 1.0),
            A_ub=np.block([[pairs, -column], [-pairs, -column]]),
            b_ub=np.concatenate([target, -target]),
            A_eq=np.append(np.ones(len(grid)), 0.0)[None, :],
            b_eq=np.ones(1),
            bounds=(0, None),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        ),
    )
    if found.x is None:
        raise ArithmeticError(
            f"the linear program of the logistic correction did not solve at variance {C!r}; "
            "choose a variance between 0.5 and 3"
        )
    return np.maximum(found.x[:-1], 0.0)
