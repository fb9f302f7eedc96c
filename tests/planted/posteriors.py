"""Bugs planted in mechanisms that release draws from a posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from discreet.audit import Pair, Subject
from discreet.audit.subject import Outputs, Score, draw_many, matrix
from discreet.mechanisms import DiffusedPosterior, OnePosteriorSample, Plan
from discreet.mechanisms.base import Drawn
from discreet.models import (
    BetaBernoulli,
    LinearRegression,
    LogisticRegression,
    NormalKnownVariance,
    ProbitRegression,
)
from discreet.models.base import Model, Records, count
from discreet.models.losses import BetaDivergence, Gibbs, Loss, beta_range
from discreet.privacy import Budget, Evidence, Guarantee, bounded_range, strongly_convex_posterior
from discreet.samplers.exact import ExactRegression
from discreet.samplers.posterior import Sampled
from discreet.samplers.randomness import Randomness

from .kit import Attack, as_before, attacked, planted

QUICK = ExactRegression(gamma=0.0, constant_time=False)
"""Exact, and as quick as it can be: an audit does not look at the clock."""

# --- conjugate posteriors -----------------------------------------------------------------


@as_before
class Unweighted(DiffusedPosterior):
    """The plan solves for r, and the draw counts every record once."""

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        whole = replace(plan, parameters={**plan.parameters, "weight": 1.0})
        return super().draw(whole, records, randomness, progress=progress)


class BilledOnce(DiffusedPosterior):
    """Ten draws at the price of one."""

    def price(self, size: int, *, weight: float = 1.0, concentration: float = 1.0) -> Guarantee:
        one = replace(self, draws=1)
        return super(BilledOnce, one).price(size, weight=weight, concentration=concentration)


@as_before
class PriorOffTheTable(DiffusedPosterior):
    """Empirical Bayes: the prior is centred at the mean of the records."""

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        assert isinstance(self.model, NormalKnownVariance)
        fitted = replace(self.model, prior=(float(records["x"].mean()), self.model.prior[1]))
        return DiffusedPosterior(fitted, self.draws).draw(plan, records, randomness, progress=progress)


COINS = Pair({"x": [1.0, 0.0, 0.0, 0.0]}, {"x": [0.0, 0.0, 0.0, 0.0]}, why="at the boundary")
HEIGHTS = Pair({"x": [1.0, 0.0]}, {"x": [-1.0, 0.0]}, why="at the limits")


def weighted(kind: type[DiffusedPosterior]) -> Attack:
    return Attack(kind(BetaBernoulli((1.0, 1.0))).plan(4, budget=Budget(0.5, 1e-5)), COINS, delta=1e-5)


def ten_draws(kind: type[DiffusedPosterior]) -> Attack:
    return Attack(
        kind(BetaBernoulli((4.0, 4.0)), draws=10).plan(4, budget=Budget(2.0, 1e-3)), COINS, delta=1e-3
    )


def centred(kind: type[DiffusedPosterior]) -> Attack:
    model = NormalKnownVariance(prior=(0.0, 0.01), variance=1.0, limits=(-1.0, 1.0))
    return Attack(kind(model).plan(2, budget=Budget(1.0, 1e-5)), HEIGHTS, delta=1e-5)


planted("weight not used", attacked, lambda: weighted(Unweighted), lambda: weighted(DiffusedPosterior))
planted(
    "ten draws billed as one", attacked, lambda: ten_draws(BilledOnce), lambda: ten_draws(DiffusedPosterior)
)
planted(
    "prior fitted to the table",
    attacked,
    lambda: centred(PriorOffTheTable),
    lambda: centred(DiffusedPosterior),
)


# --- the private number of records, under add_remove -------------------------------------


@as_before
class PrecisionByCount(OnePosteriorSample):
    """Paper R's prior N(0, 1 / (n beta)), with the private number of records for n."""

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        assert isinstance(self.model, LogisticRegression)
        model = replace(self.model, prior_precision=self.model.prior_precision * count(records))
        return super(PrecisionByCount, replace(self, model=model)).draw(
            plan, records, randomness, progress=progress
        )


def unknown_count(kind: type[OnePosteriorSample]) -> Attack:
    plan = kind(LogisticRegression(4), loss=Gibbs(), sampler=QUICK).plan(budget=Budget(0.5, 1e-5))
    pair = Pair(
        {"x": np.zeros((1, 4)), "y": [1.0]}, {"x": np.zeros((2, 4)), "y": [1.0, 1.0]}, why="empty rows"
    )

    def length(pair: Pair) -> Score:  # noqa: ARG001
        return lambda outputs: (matrix(outputs) ** 2).sum(axis=1)

    def runs(records: Records, number: int, randomness: Randomness) -> Outputs:
        return draw_many(plan, records, number, randomness)

    return Attack(Subject(plan.guarantee, runs, length, kind.__name__, plan), pair, trials=4_000, delta=1e-5)


planted(
    "divided by the private number of records",
    attacked,
    lambda: unknown_count(PrecisionByCount),
    lambda: unknown_count(OnePosteriorSample),
)


# --- paper B's calibration (ERRATA 2) ------------------------------------------------------


class PriorVarianceForBound(OnePosteriorSample):
    """beta is solved for with the density at the prior variance 9, not at the lower bound 0.01."""

    def plan(self, n: int | None = None, *, budget: Budget) -> Plan:
        assert isinstance(self.model, LinearRegression)
        wide = replace(self.model, lower_variance=9.0)
        b = 1.0
        for _ in range(200):  # 2 M^b / b = epsilon, by fixed point
            b = 2 * beta_range(wide, b) * b / budget.epsilon
        loss = BetaDivergence(beta=1 + b, weight=1.0)
        honest = replace(self, loss=loss)
        plan = super(PriorVarianceForBound, honest).plan(n, budget=Budget(50.0))
        return replace(plan, guarantee=bounded_range(budget.epsilon, neighbours="substitute"))


@dataclass(frozen=True)
class OnAGrid:
    """Exact draws from the posterior of the intercept and the variance, their prior on a public grid.

    The bound on one draw holds for every prior, so also for one on a grid.
    """

    distance: float = 0.0
    evidence: tuple[Evidence, ...] = ()

    def refusal(self, model: Model, loss: Loss) -> str | None:  # noqa: ARG002
        return None

    def sample(
        self, model: Model, loss: Loss, records: Records, randomness: Randomness, draws: int
    ) -> Sampled:
        import jax
        import jax.numpy as jnp

        assert isinstance(model, LinearRegression)
        excess = np.log(np.geomspace(1e-3, 3.0, 12))
        w, u = (g.ravel() for g in np.meshgrid([0.0, 100.0], excess))
        with jax.enable_x64(True):
            theta = {"w": jnp.asarray(w)[:, None], "log_excess_variance": jnp.asarray(u)}
            each = jax.vmap(lambda t: jax.vmap(lambda r: loss(model, t, r))(dict(records)).sum(), in_axes=0)
            logs = -np.asarray(each(theta))
        chances = special.softmax(logs)
        chosen = randomness.numpy().choice(len(w), draws, p=chances)
        return Sampled({"w": w[chosen][:, None], "log_excess_variance": u[chosen]})


def two_groups(kind: type[OnePosteriorSample]) -> Attack:
    """Whichever of two groups far apart has one record more holds the posterior."""
    plan = kind(LinearRegression(1), sampler=OnAGrid()).plan(41, budget=Budget(1.0))
    x, y = np.ones((41, 1)), np.repeat([0.0, 100.0], [21, 20])
    pair = Pair({"x": x, "y": y}, {"x": x, "y": np.r_[100.0, y[1:]]}, why="two groups")
    return Attack(plan, pair, trials=5_000)


planted(
    "published calibration of beta",
    attacked,
    lambda: two_groups(PriorVarianceForBound),
    lambda: two_groups(OnePosteriorSample),
)


# --- paper R's Algorithm 4 on probit regression (ERRATA 6) ----------------------------------


@as_before
class LogisticDiffused(DiffusedPosterior):
    """Algorithm 4 with one feature, drawn from exactly by rejection from the prior."""

    log_cdf: Any = staticmethod(special.log_expit)

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:  # noqa: ARG002
        model: Any = self.model
        generator, weight = randomness.numpy(), float(plan.parameters["weight"])  # pyright: ignore[reportArgumentType]
        signed, found = (2 * records["y"] - 1) * records["x"][:, 0], np.empty(0)
        while len(found) < self.draws:
            w = generator.standard_normal(2 * self.draws) / math.sqrt(model.prior_precision)
            log_likelihood = weight * self.log_cdf(signed * w[:, None]).sum(axis=1)
            found = np.r_[found, w[-generator.standard_exponential(len(w)) < log_likelihood]]
        return Drawn({"w": found[: self.draws, None]})


@as_before
class ProbitDiffused(LogisticDiffused):
    """The same for probit regression, at the price that B = 1 gives."""

    log_cdf: Any = staticmethod(special.log_ndtr)

    def __post_init__(self) -> None:
        """The library refuses the model here."""

    def price(self, size: int, *, weight: float = 1.0, concentration: float = 1.0) -> Guarantee:  # noqa: ARG002
        model: Any = self.model
        lipschitz, precision = 2 * weight, model.prior_precision / concentration
        return self.draws * strongly_convex_posterior(lipschitz, precision, neighbours="substitute")

    def planned(
        self, n: int, *, weight: float = 1.0, concentration: float = 1.0, reasons: tuple[str, ...]
    ) -> Plan:
        price = self.price(n, weight=weight, concentration=concentration)
        return Plan(self, n, price, (), {"weight": weight, "concentration": concentration}, reasons)


def one_response(kind: type[DiffusedPosterior], model: Model) -> Attack:
    plan = kind(model).plan(1, budget=Budget(2.0, 0.01))
    return Attack(
        plan, Pair({"x": [[1.0]], "y": [1.0]}, {"x": [[1.0]], "y": [0.0]}, why="ERRATA 6"), delta=0.01
    )


WIDE = 0.02
planted(
    "unbounded score",
    attacked,
    lambda: one_response(ProbitDiffused, ProbitRegression(1, prior_precision=WIDE)),
    lambda: one_response(LogisticDiffused, LogisticRegression(1, prior_precision=WIDE)),
)
