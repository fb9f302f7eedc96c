"""Other bounds for the same run, to stand beside the one that discreet uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import discreet as dc

if TYPE_CHECKING:
    from discreet.privacy import Guarantee

RENYI = "sum of Renyi divergences"
GUARANTEE = "guarantee"
PRINTED = "as printed"
APPROXIMATION = "approximation, not a guarantee"
OTHER = "guarantee, other neighbours"


@lru_cache(maxsize=64)
def by_route(guarantee: Guarantee, delta: float) -> dict[str, float]:
    """Epsilon by each route, worked out once: a group or a long composition takes a while."""
    return guarantee.by_route(delta)


def epsilon_at(guarantee: Guarantee, delta: float) -> float:
    """Epsilon of the best route."""
    if guarantee.inexactness > 0 or not guarantee.pieces:
        return guarantee.epsilon(delta)
    return min(by_route(guarantee, delta).values(), default=math.inf)


@dataclass(frozen=True)
class Row:
    """One line of a comparison: what bound, of what kind, and its epsilon (infinite: none)."""

    bound: str
    kind: str
    epsilon: float


@dataclass(frozen=True)
class Run:
    """What is accounted for, and the delta at which bounds are compared.

    Attributes:
        whole: the guarantee with repetitions and group.
        repeat: how often the mechanism runs.
        group: how many people together.
        delta: where to compare.
    """

    whole: Guarantee
    repeat: int
    group: int
    delta: float

    def again(self, once: Guarantee) -> Guarantee:
        """Another guarantee of one run, with the same repetitions and group."""
        return once.repeat(self.repeat).for_group(self.group)

    def row(self, bound: str, kind: str, epsilon: Callable[[], float]) -> Row:
        """One line; a bound that does not exist here is infinite."""
        try:
            value = epsilon()
        except (ValueError, ArithmeticError):
            value = math.inf
        return Row(bound, kind, math.inf if math.isnan(value) else value)

    def single(self) -> bool:
        """Whether printed bounds, which know of no groups, apply."""
        return self.group == 1

    # --- lines that many mechanisms share ---------------------------------------

    def best(self, bound: str = "exact") -> Row:
        """What discreet uses."""
        return self.row(bound, GUARANTEE, lambda: epsilon_at(self.whole, self.delta))

    def renyi(self, source: str = "") -> list[Row]:
        """The Renyi curve with the classical and with the improved conversion."""
        return self.renyi_of(self.whole, source or "Renyi")

    def renyi_of(self, guarantee: Guarantee, name: str) -> list[Row]:
        """The same for another guarantee of the same run."""
        curve = self.row("", GUARANTEE, lambda: guarantee.renyi(1.0001))
        if not math.isfinite(curve.epsilon):
            return []  # no curve here, or probability set aside: then the curve alone is no bound
        improved = self.row(
            f"{name}, improved conversion",
            GUARANTEE,
            lambda: by_route(guarantee, self.delta).get(RENYI, math.inf),
        )
        classical = self.row(
            f"{name}, classical conversion",
            GUARANTEE,
            lambda: dc.privacy.classical_epsilon(guarantee, self.delta),
        )
        return [classical, improved] if math.isfinite(improved.epsilon) else []


Comparison = Callable[[Run], list[Row]]


def routes(run: Run) -> list[Row]:
    """Every route of composition; the best of them is the answer."""
    if run.whole.inexactness > 0:  # a route alone does not price the inexactness
        return [run.best("best route, with the inexactness of the sampler")]
    found = by_route(run.whole, run.delta)
    rows = [Row(name, GUARANTEE, value) for name, value in found.items() if name != RENYI]
    rows = run.renyi(RENYI) + rows
    return sorted(rows, key=lambda row: -row.epsilon) or [run.best("best route")]


def exact_curve(source: str = "Renyi curve") -> Comparison:
    """For a mechanism whose privacy profile is known: Renyi by both conversions, then exact."""
    return lambda run: [*run.renyi(source), run.best()]


def bounded_range(width: float) -> Comparison:
    """As k pure mechanisms, added or composed; as zCDP; as what it is."""

    def rows(run: Run) -> list[Row]:
        relation = run.whole.neighbours
        pure = run.again(dc.privacy.pure(width, neighbours=relation))
        zcdp = run.again(dc.privacy.zcdp(width**2 / 8, neighbours=relation))
        return [
            run.row("as pure DP, epsilons added (paper B)", GUARANTEE, lambda: pure.epsilon(0.0)),
            run.row("as pure DP, composed exactly", GUARANTEE, lambda: pure.epsilon(run.delta)),
            run.row("as zCDP, rho = width^2 / 8", GUARANTEE, lambda: zcdp.epsilon(run.delta)),
            run.best("as bounded range, best route"),
        ]

    return rows


def poisson_gaussian(rate: float, sigma: float, steps: int, neighbours: str) -> Comparison:
    """The central limit formula, Renyi, the loss distribution, and the other relation."""

    def rows(run: Run) -> list[Row]:
        other = "add_remove" if neighbours == "substitute" else "substitute"
        twin = run.again(dc.privacy.poisson_gaussian(rate, sigma, steps, neighbours=other))
        limit = [
            run.row(
                "Gaussian central limit (paper N)",
                APPROXIMATION,
                lambda: dc.privacy.gdp_central_limit(rate, sigma, steps * run.repeat).epsilon(run.delta),
            )
        ]
        return [
            *(limit if run.single() and neighbours == "add_remove" else []),
            *run.renyi("Renyi sum"),
            run.best("exact (privacy loss distribution)"),
            run.row(f"exact, neighbours {other.replace('_', '-')}", OTHER, lambda: twin.epsilon(run.delta)),
        ]

    return rows


def barker(batch: int, size: int, steps: int, *, variance: float, clip: float) -> Comparison:
    """Paper M's own bound, the sharper Renyi bound with both conversions, the exact one."""

    def rows(run: Run) -> list[Row]:
        b = dc.privacy.barker
        tight = run.again(b(batch, size, steps, bound="tight", variance=variance, clip=clip))
        printed = run.row(
            "as published (paper M, Theorem 2)",
            PRINTED,
            lambda: b(batch, size, steps * run.repeat, bound="as_published").epsilon(run.delta),
        )
        is_printed = run.single() and (variance, clip) == (2.0, 1.0)
        return [*([printed] if is_printed else []), *run.renyi_of(tight, "tight Renyi"), run.best()]

    return rows


def strongly_convex(lipschitz: float, convexity: float) -> Comparison:
    """Minami's weight solved for epsilon, paper R's Renyi curve, the Gaussian profile.

    Paper B prints w = eps / (2 L) sqrt(m / (1 + 2 log(1/delta))) under substitution,
    where neighbouring potentials differ by a function with Lipschitz constant
    G = 2 L w; so eps = G sqrt((1 + 2 log(1/delta)) / m), for one draw. The formula
    is no bound for a large epsilon: with delta 1e-5 it falls below the exact value
    from epsilon 9 on.
    """

    def rows(run: Run) -> list[Row]:
        printed = lipschitz * math.sqrt((1 + 2 * math.log(1 / run.delta)) / convexity)
        below = printed < epsilon_at(run.whole, run.delta)
        alone = run.single() and run.repeat == 1
        kind = f"{PRINTED}, too low here" if below else PRINTED
        return [
            *([Row("Minami et al. 2016 (paper B)", kind, printed)] if alone else []),
            *run.renyi("Renyi curve (paper R, Theorem 16)"),
            run.best("exact (Gaussian)"),
        ]

    return rows
