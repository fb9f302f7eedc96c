"""Regularised logistic regression with noise on the coefficients.

Proof page: docs/proofs/output_perturbation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.base import Drawn, Mechanism, Plain, Plan
from discreet.models.base import Records
from discreet.models.logistic import LogisticRegression
from discreet.privacy import Budget, Evidence, Neighbours, checks, pure
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
PAGE = "docs/proofs/output_perturbation.md"
_INEXACT = 1e-9
_BITS = 20
"""The lattice of what is released is at least 2^20 times finer than the noise."""


class Norm(StrEnum):
    """In which norm the noise is shaped."""

    EUCLIDEAN = "euclidean"
    """Density proportional to exp(-|z|_2 / scale): Chaudhuri, Monteleoni & Sarwate."""

    COORDINATES = "coordinates"
    """An independent Laplace variable in each coordinate: paper B's form, with the corrected scale."""


@dataclass(frozen=True)
class OutputPerturbation(Mechanism):
    """The minimiser of mean log-loss + regularisation |w|^2 / 2, plus noise (Chaudhuri et al. 2011).

    The model's own prior plays no part; `regularisation` takes its place, and does
    not fade with n.

    Args:
        model: logistic regression, whose row norms are bounded.
        regularisation: lambda of the average loss.
        norm: shape of the noise.

    Guarantee:
        Pure epsilon under substitution: the minimiser moves by 2 c / (n lambda) at
        most in Euclidean norm, and sqrt(p) times that in the sum of coordinates.

    References: Chaudhuri, Monteleoni & Sarwate 2011, Theorem 6; paper B, Theorem 4,
        corrected (ERRATA 1); docs/proofs/output_perturbation.md.

    Example:
        >>> model = LogisticRegression(features=10, row_norm=10**0.5)
        >>> mechanism = OutputPerturbation(model, 1 / 9, norm=Norm.COORDINATES)
        >>> plan = mechanism.plan(n=100, budget=Budget(epsilon=1.0))
        >>> f"{plan.parameters['scale']:.4f} {as_published_scale(100, 1 / 9, 1.0):.4f}"
        '1.8000 0.1800'
    """

    model: LogisticRegression  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    regularisation: float
    norm: Norm = Norm.EUCLIDEAN

    def __post_init__(self) -> None:
        if not isinstance(self.model, LogisticRegression):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"model must be LogisticRegression, got {type(self.model).__name__}, whose outcomes the "
                "sensitivity is not proved for; take OnePosteriorSample"
            )
        checks.real("regularisation", self.regularisation, above=0.0)
        object.__setattr__(self, "norm", Norm(self.norm))

    def plan(self, n: int, *, budget: Budget) -> Plan:
        """The scale of the noise.

        Args:
            n: the public number of records.
            budget: its delta is not needed.
        """
        checks.integer("n", n, at_least=1)
        bound = self.model.bounds["lipschitz_difference"]
        moved = bound.value / (n * self.regularisation) * (1 + 2 * _INEXACT)
        root = math.sqrt(self.model.features)
        sensitivity = moved * (root if self.norm is Norm.COORDINATES else 1.0)
        # Rounding the two minimisers moves each coordinate by a step at most.
        rounding = 2.0**-_BITS * (self.model.features if self.norm is Norm.COORDINATES else root)
        if rounding >= budget.epsilon / 2:
            raise ValueError(
                f"budget must have an epsilon above {2 * rounding:.3g}, what rounding to a lattice would "
                f"cost, got {budget.epsilon:g}; raise it"
            )
        guarantee = pure(budget.epsilon, neighbours=Neighbours.SUBSTITUTE)
        guarantee.check_relation(budget)
        claim = f"the minimiser moves by at most {sensitivity:.6g} in the norm of the noise"
        floating = Evidence.assumed(
            "noise from a float64 generator, rounded to the lattice, is as good as exact noise",
            f"{PAGE}#lattice",
        )
        return Plan(
            mechanism=self,
            size=n,
            guarantee=guarantee,
            evidence=(bound.evidence, Evidence.proved(claim, PAGE), floating),
            parameters={"scale": sensitivity / (budget.epsilon - rounding), "sensitivity": sensitivity},
            reasons=("the noise is the least that the sensitivity allows",),
        )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:  # noqa: ARG002
        return Drawn({"w": self.around(self.centre(records), plan, randomness, 1)})

    def centre(self, records: Records) -> Array:
        """The minimiser: private, and what noise is added to."""
        slope = self.model.bounds["lipschitz_difference"].value
        return minimise(
            records["x"], records["y"], self.regularisation, tolerance=_INEXACT * slope / len(records["y"])
        )

    def around(self, centre: Array, plan: Plan, randomness: Randomness, times: int) -> Array:
        """The minimiser with fresh noise, so many times; a release has one, an audit many."""
        scale = float(plan.parameters["scale"])  # pyright: ignore[reportArgumentType]
        step = 2.0 ** (math.floor(math.log2(scale)) - _BITS)
        # Whole numbers of steps have an exact sum: the law of the noise does not know the minimiser.
        noise = _NOISE[self.norm](randomness.numpy(), (times, self.model.features), scale)
        return (np.rint(centre / step) + np.rint(noise / step)) * step

    def settings(self) -> dict[str, Plain]:
        return {**super().settings(), "regularisation": self.regularisation, "norm": str(self.norm)}


def as_published_scale(n: int, regularisation: float, epsilon: float) -> float:
    """Paper B's Laplace scale for features in [-1, 1], 2 / (n lambda epsilon); not private for p > 1.

    For comparison only (ERRATA 1): the true epsilon is up to p times what is
    claimed. No plan uses it.
    """
    return 2 / (n * regularisation * epsilon)


def minimise(x: Array, y: Array, regularisation: float, *, tolerance: float) -> Array:
    """The minimiser of mean log-loss + regularisation |w|^2 / 2, by damped Newton steps.

    Raises:
        RuntimeError: if the gradient did not come below `tolerance`.
    """
    n, p = x.shape
    w = cast("Array", np.zeros(p))

    def objective(w: Array) -> float:
        margins = (2 * y - 1) * (x @ w)
        return float(np.logaddexp(0.0, -margins).mean() + 0.5 * regularisation * (w @ w))

    def slope(w: Array) -> tuple[Array, Array]:
        chance: Array = 0.5 * (1 + np.tanh(0.5 * (x @ w)))
        return x.T @ (chance - y) / n + regularisation * w, chance

    for _ in range(100):
        gradient, chance = slope(w)
        if np.linalg.norm(gradient) <= tolerance:
            return w
        hessian: Array = (x.T * (chance * (1 - chance))) @ x / n + regularisation * np.eye(p)
        step = cast("Array", np.linalg.solve(hessian, gradient))
        size, here = 1.0, objective(w)
        while (
            objective(w - size * step) > here - 1e-4 * size * float(gradient @ step) + 1e-14 and size > 1e-6
        ):
            size /= 2
        w = w - size * step
    gradient, _ = slope(w)
    if np.linalg.norm(gradient) <= tolerance:
        return w
    raise RuntimeError(
        "the minimiser must reach the accuracy that its sensitivity is proved for, got less, and nothing was "
        "released; rescale the features with public bounds"
    )


def _euclidean(source: np.random.Generator, shape: tuple[int, int], scale: float) -> Array:
    """Density proportional to exp(-|z|_2 / scale): a gamma radius in a uniform direction."""
    direction = source.standard_normal(shape)
    unit = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    return unit * source.gamma(shape[1], scale, size=(shape[0], 1))


def _coordinates(source: np.random.Generator, shape: tuple[int, int], scale: float) -> Array:
    return source.laplace(scale=scale, size=shape)


_NOISE: dict[Norm, Callable[[np.random.Generator, tuple[int, int], float], Array]] = {
    Norm.EUCLIDEAN: _euclidean,
    Norm.COORDINATES: _coordinates,
}
