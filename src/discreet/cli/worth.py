"""`discreet compare`: what one budget buys from each mechanism, accounted exactly and as the papers do."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

import discreet as dc
from discreet.cli import numbers, show
from discreet.cli.errors import RequestError

if TYPE_CHECKING:
    from discreet.privacy import Budget, Guarantee


def _classical(build: Callable[[float], Guarantee]) -> Callable[[float, float], float]:
    """How most papers account: Renyi divergences summed, classical conversion."""
    return lambda value, delta: dc.privacy.classical_epsilon(build(value), delta)


@dataclass(frozen=True)
class Plan:
    """One mechanism with one parameter left open.

    Attributes:
        name: the mechanism and its public setting.
        command: the subcommand of `discreet account` that prices it.
        parameter: what is solved for.
        build: the guarantee of a parameter.
        bracket: where to search.
        published: the source and the epsilon, at a parameter and delta, of its own accounting.
        counted: whether the parameter is a whole number.
        noisy: whether more of it is more private, so that less is better.
        pure: whether delta is 0.
    """

    name: str
    command: str
    parameter: str
    build: Callable[[float], Guarantee]
    bracket: tuple[float, float]
    published: tuple[str, Callable[[float, float], float]]
    counted: bool = False
    noisy: bool = False
    pure: bool = False

    def tidy(self, value: float, fits: Callable[[float], bool]) -> float:
        """A parameter with four digits that fits: the nearest, or the one on the private side."""
        if self.counted:
            return float(int(value))
        near = float(numbers.nearest(value, 4))
        return near if near <= self.bracket[1] and fits(near) else float(self.text(value))

    def text(self, value: float) -> str:
        """A parameter, rounded to the side that is private."""
        if math.isnan(value):
            return "none"
        if self.counted:
            return f"{int(value):,}{' or more' if value == self.bracket[1] else ''}"
        return (numbers.upward if self.noisy else numbers.downward)(value)


def plans() -> list[Plan]:
    """A plan for each mechanism that the accountant knows."""
    p = dc.privacy

    def sgd(neighbours: str) -> Callable[[float], Guarantee]:
        return lambda sigma: p.poisson_gaussian(0.01, sigma, 10_000, neighbours=neighbours)

    def gaussian(sigma: float) -> Guarantee:
        return p.gaussian(sigma, neighbours="substitute")

    def sampled(sigma: float) -> Guarantee:
        return p.sampled_without_replacement(p.gaussian(sigma, neighbours="substitute"), 0.01, 100)

    def laplace(scale: float) -> Guarantee:
        return p.laplace(scale, neighbours="substitute")

    def chain(steps: float) -> Guarantee:
        return p.barker(1_000, 100_000, int(steps))

    def full_chain(steps: float) -> Guarantee:
        return p.barker_full_data(0.001, int(steps))

    def glm(precision: float) -> Guarantee:
        return p.strongly_convex_posterior(2.0, precision, neighbours="substitute")

    def beta(weight: float) -> Guarantee:
        return p.beta_bernoulli(6, 12, 100, weight=weight)

    def dirichlet(weight: float) -> Guarantee:
        return p.dirichlet_categorical((6, 12, 20), weight=weight)

    def draws(count: float) -> Guarantee:
        return p.bounded_range(0.1, neighbours="substitute").repeat(int(count))

    def printed_chain(steps: float, delta: float) -> float:
        return p.barker(1_000, 100_000, int(steps), bound="as_published").epsilon(delta)

    def minami(precision: float, delta: float) -> float:
        return 2.0 * math.sqrt((1 + 2 * math.log(1 / delta)) / precision)

    def added(count: float, _: float) -> float:
        return p.pure(0.1 * int(count), neighbours="substitute").epsilon(0.0)

    renyi = "Renyi"
    sgd_name, sgd_command = "DP-SGD, rate 0.01, 10,000 steps", "poisson-gaussian"
    both = [
        Plan(sgd_name, sgd_command, "noise sigma", run, (0.3, 100), (renyi, _classical(run)), noisy=True)
        for run in (sgd("add_remove"), sgd("substitute"))
    ]
    return [
        Plan("Gaussian, sensitivity 1", "gaussian", "noise sigma", gaussian, (0.01, 1e4),
             (renyi, _classical(gaussian)), noisy=True),
        Plan("Laplace, sensitivity 1, delta 0", "laplace", "noise scale", laplace, (1e-3, 1e4),
             ("textbook", lambda scale, _: laplace(scale).epsilon(0.0)), noisy=True, pure=True),
        *both,
        Plan("Gaussian, samples of 1 %, 100 x", "without-replacement", "noise sigma", sampled,
             (0.3, 100), (renyi, _classical(sampled)), noisy=True),
        Plan("Barker MCMC, batch 1,000 of 1e5", "barker", "steps", chain, (1, 1e6),
             ("paper M", printed_chain), counted=True),
        Plan("Barker MCMC, ratios to 0.001", "barker-full-data", "steps", full_chain, (1, 1e6),
             ("paper M", _classical(full_chain)), counted=True),
        Plan("Logistic posterior, norms to 1", "strongly-convex-posterior", "precision", glm,
             (1e-2, 1e6), ("paper B", minami), noisy=True),
        Plan("Beta(6, 12) posterior, n 100", "beta-bernoulli", "record weight", beta, (1e-3, 1.0),
             ("paper R", _classical(beta))),
        Plan("Dirichlet(6, 12, 20) posterior", "dirichlet-categorical", "record weight", dirichlet,
             (1e-3, 1.0), ("paper R", _classical(dirichlet))),
        Plan("Posterior draws of range 0.1", "bounded-range", "draws", draws, (1, 1e5),
             ("paper B", added), counted=True),
    ]  # fmt: skip


def largest(plan: Plan, budget: Budget) -> float:
    """The parameter that the published accounting allows, on the side that fits; NaN if none."""
    low, high = plan.bracket

    def fits(value: float) -> bool:
        return plan.published[1](value, budget.delta) <= budget.epsilon

    private, costly = (high, low) if plan.noisy else (low, high)
    if not fits(private):
        return math.nan
    if fits(costly):
        return costly
    while abs(math.log(private / costly)) > 1e-6:
        middle = math.sqrt(private * costly)
        private, costly = (middle, costly) if fits(middle) else (private, middle)
    return plan.tidy(private, fits)


@dataclass(frozen=True)
class Solved:
    """A plan with its parameter, exactly accounted and as printed."""

    plan: Plan
    guarantee: Guarantee | None
    exact: float
    printed: float

    @property
    def gain(self) -> float:
        """How many times better the exact accounting is."""
        if self.plan.counted:
            return int(self.exact) / int(self.printed) if self.printed >= 1 else math.nan
        return self.printed / self.exact if self.plan.noisy else self.exact / self.printed


def solve(plan: Plan, budget: Budget) -> Solved:
    """Solve a plan for a budget."""
    budget = dc.privacy.Budget(budget.epsilon) if plan.pure else budget
    printed = largest(plan, budget)
    try:
        found = dc.privacy.calibrate(plan.build, budget, plan.bracket)
    except dc.privacy.BudgetError:
        return Solved(plan, None, math.nan, printed)
    value = plan.tidy(found.value, lambda near: plan.build(near).fits(budget))
    return Solved(plan, plan.build(value), value, printed)


def compare(
    epsilon: Annotated[float, typer.Option(parser=numbers.real, metavar="EPSILON", help="The budget.")] = 1.0,
    delta: Annotated[float, typer.Option(parser=numbers.real, metavar="DELTA", help="Its delta.")] = 1e-6,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what one budget buys from each mechanism, and what the papers' own accounting allows."""
    if not epsilon > 0:
        raise RequestError(f"discreet compare: --epsilon must be above 0, got {epsilon:g}; 1 is usual")
    if not 0 < delta < 1:
        raise RequestError(
            f"discreet compare: --delta must be above 0 and below 1, got {delta:g}; 1e-6 is usual"
        )
    import numpy as np
    from rich.console import Console

    started = time.perf_counter()
    budget = dc.privacy.Budget(epsilon, delta)
    errors = Console(file=sys.stderr)
    with (
        errors.status("solving") if errors.is_terminal else nullcontext() as status,
        np.errstate(all="ignore"),
    ):
        solved: list[Solved] = []
        for plan in plans():
            if status is not None:
                status.update(f"solving: {plan.name}")
            solved.append(solve(plan, budget))
    if json:
        guess = dc.privacy.attacker_success(epsilon, delta)
        show.show_json(
            {"epsilon": epsilon, "delta": delta, "guess": guess, "plans": [_plain(line) for line in solved]}
        )
    else:
        _show(solved, budget, time.perf_counter() - started)


def _plain(line: Solved) -> dict[str, object]:
    return {
        "plan": line.plan.name,
        "command": line.plan.command,
        "parameter": line.plan.parameter,
        "neighbours": _relation(line).replace("-", "_") or None,
        "exact": line.exact,
        "published": line.printed,
        "published_by": line.plan.published[0],
        "gain": line.gain,
    }


def _relation(line: Solved) -> str:
    return str(line.plan.build(line.plan.bracket[1]).neighbours).replace("_", "-")


_SOURCES = (
    "the bound as its source prints it. Renyi: divergences summed, converted as in Mironov 2017; "
    "paper M: Heikkila et al. 2019; B: the weight of Minami et al. 2016, or epsilons added; "
    "R: Geumlek et al. 2017."
)


def _show(solved: list[Solved], budget: Budget, seconds: float) -> None:
    columns = (
        show.Column("mechanism"),
        show.Column("neighbours"),
        show.Column("solved for"),
        show.Column("discreet", number=True),
        show.Column("published", number=True),
        show.Column("gain", number=True),
        show.Column("source"),
    )
    rows = [
        (
            line.plan.name,
            _relation(line),
            line.plan.parameter,
            line.plan.text(line.exact),
            line.plan.text(line.printed),
            f"{numbers.nearest(line.gain)} x" if math.isfinite(line.gain) else "",
            line.plan.published[0],
        )
        for line in solved
    ]
    sure = dc.privacy.attacker_words(budget.epsilon, budget.delta)
    relations = {line.guarantee.neighbours for line in solved if line.guarantee}
    explained = "; ".join(
        f"{str(r).replace('_', '-')}: {r.explanation}" for r in sorted(relations, reverse=True)
    )
    amount = f"epsilon {numbers.plain(budget.epsilon)}, delta {numbers.plain(budget.delta)}"
    show.show(
        show.Page(
            f"What a budget of {amount} buys, mechanism by mechanism",
            [show.Table("", columns, rows)],
            [
                (
                    "Gain",
                    "how much less noise or prior precision, or more weight, steps or draws.",
                ),
                ("Neighbours", f"{explained}. Rows under different relations are not comparable."),
                ("An attacker", f"at that budget {sure}."),
                ("Data", f"none was read; all follows from public parameters, in {seconds:.0f} s."),
                (
                    "Published",
                    _SOURCES,
                ),
                (
                    "Next",
                    "discreet account --help lists the mechanisms, discreet account barker --help shows one.",
                ),
            ],
        )
    )
