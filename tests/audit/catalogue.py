"""Plans under audit: at least three of every mechanism, and how often each is run.

`make audit` runs all of them (benchmarks/audit.py); `make test` one of each, on fewer runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import discreet as dc
from discreet.mechanisms import Plan

m, M = dc.models, dc.mechanisms
ONE, SMALL = dc.Budget(1.0), dc.Budget(1.0, 1e-5)


@dataclass(frozen=True)
class Entry:
    """A plan under audit.

    Attributes:
        name: mechanism, and what is particular.
        make: the plan.
        trials: runs on each of two data sets, in `make audit`.
        fast: the same in `make test`; 0 leaves it out.
    """

    name: str
    make: Callable[[], Plan]
    trials: int
    fast: int = 0

    @property
    def mechanism(self) -> str:
        """Its name."""
        return self.name.partition(":")[0]


def beta() -> dc.models.BetaBernoulli:
    """A small prior, which costs most."""
    return m.BetaBernoulli((2, 2))


def logistic(features: int = 1, precision: float = 1.0) -> dc.models.LogisticRegression:
    """Rows of norm 1."""
    return m.LogisticRegression(features, prior_precision=precision)


def network(kind: str, neighbours: str, batch: int) -> Plan:
    """Two classes of one feature, two steps, one draw."""
    from discreet.neural import Dense, Dropout

    layers = (Dropout(0.5), Dense(2)) if kind == "MonteCarloDropout" else (Dense(2),)
    model = m.NeuralNetwork(1, layers)
    mechanism = getattr(M, kind)(model, neighbours=neighbours, draws=1)
    return mechanism.plan(n=4, batch=batch, steps=2, budget=dc.Budget(4.0, 1e-5))


MANY, SOME, FEW = 50_000, 4_000, 1_000

ENTRIES = [
    Entry("DirectPosterior: beta", lambda: M.DirectPosterior(beta()).plan(n=10), MANY, 10_000),
    Entry(
        "DirectPosterior: Dirichlet",
        lambda: M.DirectPosterior(m.DirichletCategorical((1.0, 2.0, 3.0))).plan(n=10),
        MANY,
    ),
    Entry(
        "DirectPosterior: gamma", lambda: M.DirectPosterior(m.GammaPoisson((20.0, 5.0), 3)).plan(n=10), MANY
    ),
    Entry(
        "DirectPosterior: normal",
        lambda: M.DirectPosterior(m.NormalKnownVariance((0.0, 1.0), 1.0, (0.0, 1.0))).plan(n=5),
        MANY,
    ),
    Entry(
        "DiffusedPosterior: beta", lambda: M.DiffusedPosterior(beta()).plan(n=10, budget=SMALL), MANY, 10_000
    ),
    Entry(
        "DiffusedPosterior: beta, 3 draws",
        lambda: M.DiffusedPosterior(beta(), draws=3).plan(n=10, budget=SMALL),
        MANY,
    ),
    Entry(
        "DiffusedPosterior: logistic",
        lambda: M.DiffusedPosterior(logistic(1, 2.0)).plan(n=3, budget=SMALL),
        FEW,
    ),
    Entry(
        "ConcentratedPosterior: beta",
        lambda: M.ConcentratedPosterior(beta()).plan(n=10, budget=SMALL),
        MANY,
        10_000,
    ),
    Entry(
        "ConcentratedPosterior: gamma",
        lambda: M.ConcentratedPosterior(m.GammaPoisson((4.0, 1.0), 3)).plan(n=10, budget=SMALL),
        MANY,
    ),
    Entry(
        "ConcentratedPosterior: renyi",
        lambda: M.ConcentratedPosterior(beta()).plan(n=10, renyi=(2.0, 0.1)),
        MANY,
    ),
    Entry(
        "PerturbedStatistics: gaussian",
        lambda: M.PerturbedStatistics(beta()).plan(n=10, budget=SMALL),
        40_000,
        4_000,
    ),
    Entry(
        "PerturbedStatistics: laplace",
        lambda: M.PerturbedStatistics(beta(), "laplace").plan(n=10, budget=ONE),
        40_000,
    ),  # pyright: ignore[reportArgumentType]
    Entry(
        "PerturbedStatistics: Dirichlet",
        lambda: M.PerturbedStatistics(m.DirichletCategorical((1.0, 1.0, 1.0)), posterior="naive").plan(
            n=10, budget=SMALL
        ),
        40_000,
    ),  # pyright: ignore[reportArgumentType]
    Entry(
        "OutputPerturbation: euclidean",
        lambda: M.OutputPerturbation(logistic(3), 0.05).plan(20, budget=ONE),
        MANY,
        10_000,
    ),
    Entry(
        "OutputPerturbation: coordinates",
        lambda: M.OutputPerturbation(logistic(2), 0.02, norm="coordinates").plan(10, budget=ONE),
        MANY,
    ),  # pyright: ignore[reportArgumentType]
    Entry(
        "OutputPerturbation: epsilon 4",
        lambda: M.OutputPerturbation(logistic(1), 0.5).plan(2, budget=dc.Budget(4.0)),
        MANY,
    ),
    Entry(
        "OnePosteriorSample: beta-divergence",
        lambda: M.OnePosteriorSample(logistic(1, 0.1)).plan(n=2, budget=ONE),
        2_000,
        300,
    ),
    Entry(
        "OnePosteriorSample: Gibbs",
        lambda: M.OnePosteriorSample(logistic(1), loss=m.Gibbs()).plan(n=2, budget=SMALL),
        FEW,
    ),
    Entry(
        "OnePosteriorSample: add/remove",
        lambda: M.OnePosteriorSample(logistic(1, 0.5)).plan(budget=ONE),
        2_000,
    ),
    Entry(
        "TruncatedPosterior: radius 3",
        lambda: M.TruncatedPosterior(logistic(1, 0.1), radius=3.0).plan(2, budget=ONE),
        SOME,
        1_000,
    ),
    Entry(
        "TruncatedPosterior: default",
        lambda: M.TruncatedPosterior(logistic(1)).plan(2, budget=ONE),
        SOME,
    ),
    Entry(
        "TruncatedPosterior: epsilon 3",
        lambda: M.TruncatedPosterior(logistic(2, 0.5), radius=4.0).plan(3, budget=dc.Budget(3.0)),
        SOME,
    ),
    Entry(
        "BarkerMCMC: batch",
        lambda: M.BarkerMCMC(m.GaussianMixture(), M.RandomWalk(1.0)).plan(n=20, steps=4, batch=4),
        SOME,
        1_000,
    ),
    Entry(
        "BarkerMCMC: all records",
        lambda: M.BarkerMCMC(m.GaussianMixture(), M.RandomWalk(1.0)).plan(n=6, steps=4),
        SOME,
    ),
    Entry(
        "BarkerMCMC: tempered",
        lambda: M.BarkerMCMC(logistic(1), M.RandomWalk(2.0), tempered_size=5).plan(n=20, steps=4),
        SOME,
    ),
    Entry(
        "PenaltyMCMC: all records",
        lambda: M.PenaltyMCMC(m.GaussianMixture(), M.RandomWalk(1.0)).plan(n=6, steps=4),
        SOME,
        1_000,
    ),
    Entry(
        "PenaltyMCMC: batch",
        lambda: M.PenaltyMCMC(m.GaussianMixture(), M.RandomWalk(1.0), tempered_size=4).plan(
            n=20, steps=4, batch=5
        ),
        SOME,
    ),
    Entry(
        "PenaltyMCMC: beta-divergence",
        lambda: M.PenaltyMCMC(logistic(1), M.RandomWalk(2.0), loss=m.BetaDivergence(1.5, 0.5)).plan(
            n=4, steps=4
        ),
        SOME,
    ),
    Entry(
        "PenaltyHMC: mixture",
        lambda: M.PenaltyHMC(m.GaussianMixture(), 2, 0.3).plan(n=6, steps=2),
        SOME,
        1_000,
    ),
    Entry("PenaltyHMC: logistic", lambda: M.PenaltyHMC(logistic(1), 1, 0.5).plan(n=4, steps=2), SOME),
    Entry(
        "PenaltyHMC: quiet gradients",
        lambda: M.PenaltyHMC(logistic(1), 1, 0.5).plan(n=4, steps=2, gradient_noise=1.0),
        SOME,
    ),
    Entry(
        "FastMH: mixture",
        lambda: M.FastMH(m.GaussianMixture(), M.RandomWalk(1.0), tempered_size=4).plan(n=10, steps=4),
        SOME,
        1_000,
    ),
    Entry(
        "FastMH: quiet",
        lambda: M.FastMH(m.GaussianMixture(), M.RandomWalk(1.0), tempered_size=4).plan(
            n=10, steps=4, noise=1.0
        ),
        SOME,
    ),
    Entry(
        "FastMH: logistic",
        lambda: M.FastMH(logistic(1), M.RandomWalk(2.0), tempered_size=3).plan(n=6, steps=4),
        SOME,
    ),
    Entry(
        "VariationalSamples: all samples",
        lambda: M.VariationalSamples(logistic(1), burn_in=0.0).plan(n=4, steps=5),
        20_000,
        3_000,
    ),
    Entry(
        "VariationalSamples: budget",
        lambda: M.VariationalSamples(logistic(2), burn_in=0.0).plan(n=10, steps=5, budget=SMALL),
        20_000,
    ),
    Entry(
        "VariationalSamples: precision range",
        lambda: M.VariationalSamples(logistic(1), burn_in=0.0, precision_range=2.0).plan(n=4, steps=3),
        20_000,
    ),
    Entry(
        "VariationalStart: half",
        lambda: M.VariationalStart(logistic(1)).plan(n=4, budget=dc.Budget(2.0, 1e-5), steps=3, rate=0.5),
        SOME,
        1_000,
    ),
    Entry(
        "VariationalStart: every record",
        lambda: M.VariationalStart(logistic(1)).plan(n=4, budget=dc.Budget(2.0, 1e-5), steps=3, rate=1.0),
        SOME,
    ),
    Entry(
        "VariationalStart: epsilon 5",
        lambda: M.VariationalStart(logistic(2), gradient_limit=0.5).plan(
            n=4, budget=dc.Budget(5.0, 1e-5), steps=5, rate=0.5
        ),
        SOME,
    ),
    Entry(
        "StochasticGradient: all records",
        lambda: M.StochasticGradient(logistic(1), neighbours="substitute").plan(
            n=4, batch=4, steps=2, noise_multiplier=2.0
        ),
        FEW,
        200,
    ),
    Entry(
        "StochasticGradient: Poisson",
        lambda: M.StochasticGradient(logistic(1), neighbours="substitute").plan(
            n=4, batch=2, steps=2, noise_multiplier=1.0
        ),
        FEW,
    ),
    Entry(
        "StochasticGradient: add/remove",
        lambda: M.StochasticGradient(logistic(1), neighbours="add_remove").plan(
            n=4, batch=2, steps=2, noise_multiplier=1.0
        ),
        FEW,
    ),
    Entry(
        "LangevinDynamics: all records",
        lambda: M.LangevinDynamics(logistic(1), step_size=0.2, burn_in=0.0, neighbours="substitute").plan(
            n=4, batch=4, steps=2
        ),
        FEW,
        200,
    ),
    Entry(
        "LangevinDynamics: Poisson",
        lambda: M.LangevinDynamics(logistic(1), step_size=0.2, burn_in=0.0, neighbours="substitute").plan(
            n=4, batch=2, steps=2
        ),
        FEW,
    ),
    Entry(
        "LangevinDynamics: add/remove",
        lambda: M.LangevinDynamics(logistic(1), step_size=0.2, burn_in=0.0, neighbours="add_remove").plan(
            n=4, batch=2, steps=2
        ),
        FEW,
    ),
    *(
        Entry(f"{kind}: {what}", partial(network, kind, relation, batch), 400)
        for kind in ("BayesByBackprop", "MonteCarloDropout")
        for what, relation, batch in (
            ("all records", "substitute", 4),
            ("Poisson", "substitute", 2),
            ("add/remove", "add_remove", 2),
        )
    ),
]
