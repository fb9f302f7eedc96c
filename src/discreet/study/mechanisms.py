"""The mechanisms that a study file can name: a table, one row each."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from discreet.data.columns import Number
from discreet.privacy import Budget, Neighbours
from discreet.study.errors import Named

if TYPE_CHECKING:
    from discreet.mechanisms import Plan
    from discreet.mechanisms.proposals import RandomWalk
    from discreet.models.base import Model

MECHANISMS: dict[str, type[MechanismRow]] = {}
"""Name in the study file -> its settings, and how they become a plan."""


class MechanismRow(Named):
    """The settings of one mechanism; a subclass with a name is in the table."""

    relations: ClassVar[tuple[Neighbours, ...]] = (Neighbours.SUBSTITUTE,)
    """The neighbours for which its guarantee is proved."""

    streams: ClassVar[bool] = False
    """Whether it can read records that lie on disk."""

    def __init_subclass__(cls, *, name: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if name is not None:
            cls.named, MECHANISMS[name] = name, cls

    @abstractmethod
    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        """Solve for what the budget leaves open; n is None where it is not public."""

    def given(self, *names: str) -> dict[str, Any]:
        """These settings, without what was left open."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def public(n: int | None) -> int:
    """A number that `Study` has made sure of."""
    assert n is not None  # noqa: S101  # asked for where neighbours are substitute
    return n


# --- posteriors of paper R -----------------------------------------------------------


class DirectRow(MechanismRow, name="DirectPosterior"):
    """Draws from the posterior itself, refused if they cost too much."""

    draws: int = 1

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import DirectPosterior

        return DirectPosterior(model, draws=self.draws).plan(public(n), budget=budget)


class DiffusedRow(MechanismRow, name="DiffusedPosterior"):
    """Draws from a posterior in which every record counts less."""

    draws: int = 1

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import DiffusedPosterior

        return DiffusedPosterior(model, draws=self.draws).plan(public(n), budget=budget)


class ConcentratedRow(MechanismRow, name="ConcentratedPosterior"):
    """Draws from a posterior with a stronger prior."""

    draws: int = 1

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import ConcentratedPosterior

        return ConcentratedPosterior(model, draws=self.draws).plan(public(n), budget=budget)


class PerturbedRow(MechanismRow, name="PerturbedStatistics"):
    """Noise on the sums once, then as many draws as wanted."""

    noise: Literal["gaussian", "laplace"] = "gaussian"
    posterior: Literal["noise_aware", "naive"] = "noise_aware"
    draws: int = 1000

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import PerturbedStatistics
        from discreet.mechanisms.perturbed_statistics import Noise, Reading

        noise, reading = Noise(self.noise), Reading(self.posterior)
        mechanism = PerturbedStatistics(model, noise, reading, self.draws)  # pyright: ignore[reportArgumentType]
        return mechanism.plan(public(n), budget=budget)


# --- regressions -------------------------------------------------------------------


class OneSampleRow(MechanismRow, name="OnePosteriorSample"):
    """Draws from a posterior with a bounded loss; what is left open, the plan chooses."""

    relations: ClassVar[tuple[Neighbours, ...]] = (Neighbours.SUBSTITUTE, Neighbours.ADD_REMOVE)

    loss: Literal["BetaDivergence", "Gibbs", "ClippedGibbs"] = "BetaDivergence"
    beta: Number | None = None
    weight: Number | None = None
    bound: Number | None = None
    draws: int = 1

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet import models
        from discreet.mechanisms import OnePosteriorSample

        takes = {
            "BetaDivergence": ("beta", "weight"),
            "Gibbs": ("weight",),
            "ClippedGibbs": ("bound", "weight"),
        }
        for name in self.given("beta", "weight", "bound"):
            if name not in takes[self.loss]:
                raise ValueError(
                    f"{name} must be left out, got it with loss {self.loss}, which takes "
                    f"{' and '.join(takes[self.loss])}; choose another loss, or remove it"
                )
        if self.loss == "ClippedGibbs" and self.bound is None:
            raise ValueError("bound must be given with loss ClippedGibbs; it is where a loss is clipped")
        loss = getattr(models, self.loss)(**self.given(*takes[self.loss]))
        return OnePosteriorSample(model, loss, draws=self.draws).plan(n, budget=budget)


class TruncatedRow(MechanismRow, name="TruncatedPosterior"):
    """Draws from a logistic posterior inside a ball; needs no delta."""

    draws: int = 1
    radius: Number | None = None

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import TruncatedPosterior

        mechanism = TruncatedPosterior(model, **self.given("draws", "radius"))  # pyright: ignore[reportArgumentType]
        return mechanism.plan(public(n), budget=budget)


class OutputRow(MechanismRow, name="OutputPerturbation"):
    """The best regularised logistic coefficients, plus noise; needs no delta."""

    regularisation: Number
    norm: Literal["euclidean", "coordinates"] = "euclidean"

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import OutputPerturbation
        from discreet.mechanisms.output_perturbation import Norm
        from discreet.models import LogisticRegression

        if not isinstance(model, LogisticRegression):
            raise TypeError(
                f"it needs LogisticRegression, got {type(model).__name__}; choose another mechanism"
            )
        return OutputPerturbation(model, self.regularisation, Norm(self.norm)).plan(public(n), budget=budget)


# --- chains ------------------------------------------------------------------------


class ChainRow(MechanismRow):
    """A Markov chain whose proposals never look at the data."""

    streams: ClassVar[bool] = True

    scale: Number
    steps: int | None = None
    chains: int = 1
    tempered_size: int | None = None

    def walk(self) -> RandomWalk:
        """A random walk of this scale."""
        from discreet.mechanisms import RandomWalk

        return RandomWalk(self.scale)


class BarkerRow(ChainRow, name="BarkerMCMC"):
    """A chain by Barker's test on minibatches."""

    batch: int | None = None
    clip: Number | None = None
    variance: Number | None = None

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import BarkerMCMC

        chain = BarkerMCMC(model, self.walk(), **self.given("tempered_size", "chains"))
        return chain.plan(n=public(n), budget=budget, **self.given("steps", "batch", "clip", "variance"))


class PenaltyRow(ChainRow, name="PenaltyMCMC"):
    """A chain by the penalty method."""

    batch: int | None = None
    limit: Number | None = None
    noise: Number | None = None

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import PenaltyMCMC

        chain = PenaltyMCMC(model, self.walk(), **self.given("tempered_size", "chains"))
        return chain.plan(n=public(n), budget=budget, **self.given("steps", "batch", "limit", "noise"))


class FastRow(ChainRow, name="FastMH"):
    """A chain whose Poisson batches depend on the records' own ratios."""

    batch: int | None = None
    limit: Number | None = None
    noise: Number | None = None

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import FastMH

        chain = FastMH(model, self.walk(), **self.given("tempered_size", "chains"))
        return chain.plan(n=public(n), budget=budget, **self.given("steps", "batch", "limit", "noise"))


class PenaltyHMCRow(MechanismRow, name="PenaltyHMC"):
    """Hamiltonian steps along clipped, noisy gradients, by the penalty method."""

    leapfrog_steps: int
    step_size: Number
    steps: int | None = None
    chains: int = 1
    tempered_size: int | None = None
    limit: Number | None = None
    noise: Number | None = None
    gradient_limit: Number | None = None
    gradient_noise: Number | None = None

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import PenaltyHMC

        settled = self.given("tempered_size", "chains")
        chain = PenaltyHMC(model, self.leapfrog_steps, self.step_size, **settled)
        solved = self.given("steps", "limit", "noise", "gradient_limit", "gradient_noise")
        return chain.plan(n=public(n), budget=budget, **solved)


# --- samples of a fit --------------------------------------------------------------


class VariationalRow(MechanismRow, name="VariationalSamples"):
    """Samples of a mean-field normal while it is fitted."""

    steps: int = 100
    tempered_size: int | None = None
    clip: Number | None = None
    precision: Number | None = None
    rate: Number = 0.2
    burn_in: Number = 0.5

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import VariationalSamples

        settled = self.given("tempered_size", "clip", "precision", "rate", "burn_in")
        return VariationalSamples(model, **settled).plan(n=public(n), budget=budget, steps=self.steps)


# --- gradient steps ----------------------------------------------------------------


class GradientRow(MechanismRow):
    """Steps along clipped, noisy gradients of Poisson batches."""

    relations: ClassVar[tuple[Neighbours, ...]] = (Neighbours.SUBSTITUTE, Neighbours.ADD_REMOVE)

    batch: int
    steps: int
    clip: Number = 1.0
    declared_records: int | None = None

    def number(self, n: int | None) -> int:
        """The number of records: the public one, or under add_remove one that was declared."""
        if n is not None and self.declared_records is not None:
            raise ValueError("declared_records must be left out where data.records is given; remove one")
        number = self.declared_records if n is None else n
        if number is None:
            raise ValueError(
                "declared_records must be given where neighbours are add_remove: a public guess at the "
                "number of records"
            )
        return number


class StochasticGradientRow(GradientRow, name="StochasticGradient"):
    """One setting of the parameters, by noisy descent."""

    optimiser: Literal["Sgd", "HeavyBall", "Adam"] = "Sgd"
    step_size: Number = 0.1
    average: Number = 0.0

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet import mechanisms
        from discreet.neural import Flat

        fit = mechanisms.StochasticGradient(
            model,
            clipping=Flat(self.clip),
            neighbours=budget.neighbours or "substitute",
            optimiser=getattr(mechanisms, self.optimiser)(self.step_size),
            average=self.average,
        )
        return fit.plan(n=self.number(n), batch=self.batch, steps=self.steps, budget=budget)


class LangevinRow(GradientRow, name="LangevinDynamics"):
    """Draws by noisy gradient steps whose noise is the privacy noise."""

    step_size: Number | None = None
    temperature: Number = 1.0
    tempered_size: int | None = None
    burn_in: Number = 0.5
    thin: int = 1

    def plan(self, model: Model, n: int | None, budget: Budget) -> Plan:
        from discreet.mechanisms import LangevinDynamics
        from discreet.neural import Flat

        settled = self.given("step_size", "temperature", "tempered_size", "burn_in", "thin")
        chain = LangevinDynamics(
            model, clipping=Flat(self.clip), neighbours=budget.neighbours or "substitute", **settled
        )
        return chain.plan(n=self.number(n), batch=self.batch, steps=self.steps, budget=budget)
