# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""What the mechanisms that take noisy gradient steps have in common.

Proof page: docs/proofs/private_gradients.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.mechanisms._private_storage import Checkpoint, Draws, InMemory, Saved, fingerprint
from discreet.mechanisms._private_sums import Engine, Rule, single_precision, trained_shapes
from discreet.mechanisms._private_training import Kept, Numbered, Training
from discreet.mechanisms.base import Mechanism, Plain, Plan
from discreet.mechanisms.losses import LogLikelihood
from discreet.models import FlaxNetwork, NeuralNetwork
from discreet.models.base import Model, Records
from discreet.models.losses import Loss
from discreet.neural.batches import PoissonBatches, buffer_for
from discreet.neural.clipping import Clipping, Flat, Unclipped
from discreet.neural.keystream import Ratchet
from discreet.neural.per_example import Watched
from discreet.privacy import (
    Budget,
    Evidence,
    Guarantee,
    Neighbours,
    ObservedRun,
    Observer,
    checks,
    gdp_central_limit,
    poisson_gaussian,
)
from discreet.privacy.neighbours import as_neighbours
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]

PAGE = "docs/proofs/private_gradients.md"
BRACKET = (0.05, 1e4)
"""The noise multipliers among which a budget is met."""


@dataclass(frozen=True)
class PrivateSteps(Mechanism):
    """A mechanism whose every step is a clipped sum over a Poisson batch, plus Gaussian noise.

    Args:
        model: likelihood and prior.
        loss: of a record: minus the log-likelihood, or for models other than networks one
            of `discreet.models`, such as `BetaDivergence` with its numbers given.
        clipping: how a record's gradient is bounded; `Unclipped()` where a bound is proved.
        neighbours: who is protected. Under `substitute` the number of records is public;
            under `add_remove` the plan's n is a declared public number, and nothing
            depends on the true one.
        start: first parameters (public), by name; drawn without data unless given.
        observers: who watches the run, such as a `BayesianAccountant`.
        chunk: for models without book-keeping, how many gradients are in memory at a
            time; a choice about speed only.
        checkpoint: a file that is kept up to date, from which `resume` goes on, to the
            bit; as secret as the records.
    """

    model: Model  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    loss: LogLikelihood | Loss = field(default_factory=LogLikelihood, kw_only=True)
    clipping: Clipping = field(default_factory=Flat, kw_only=True)
    neighbours: Neighbours | str = field(kw_only=True)
    start: Mapping[str, ArrayLike] | None = field(default=None, kw_only=True, compare=False)
    observers: Sequence[Observer] = field(default=(), kw_only=True, compare=False)
    chunk: int = field(default=64, kw_only=True)
    checkpoint: Checkpoint | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", as_neighbours(self.neighbours))
        object.__setattr__(self, "observers", tuple(self.observers))
        checks.integer("chunk", self.chunk, at_least=1)
        _check_loss(self.model, self.loss)
        settled = self.clipping.settled(lambda: self.loss.slope(self.model).value)
        object.__setattr__(self, "clipping", settled)
        if self.start is not None:
            _check_shapes(self.start, trained_shapes(self.model))

    # --- without data ----------------------------------------------------------------

    def priced(self, rate: float, sigmas: Array) -> Guarantee:
        """What steps with these noise multipliers cost: those with equal noise are priced together."""
        levels, counts = np.unique(np.asarray(sigmas, dtype=np.float64), return_counts=True)
        total: Guarantee | None = None
        for sigma, steps in zip(levels.tolist(), counts.tolist(), strict=True):
            part = poisson_gaussian(rate, sigma, steps, neighbours=self.neighbours)
            total = part if total is None else total + part
        return cast("Guarantee", total)

    def planned(
        self,
        *,
        n: int,
        batch: int,
        numbers: Numbered,
        delta: float,
        parameters: Mapping[str, Plain],
        reasons: tuple[str, ...] = (),
    ) -> Plan:
        """The plan of steps whose noise is settled."""
        rate = batch / n
        sigmas = numbers.sigmas
        guarantee = self.priced(rate, sigmas)
        public = self.neighbours is Neighbours.SUBSTITUTE
        moved = "2 C" if public else "C"
        return Plan(
            mechanism=self,
            size=n if public else None,
            guarantee=guarantee,
            evidence=(
                Evidence.proved(
                    f"one record moves the sum of a step by at most {moved}", f"{PAGE}#sensitivity"
                ),
                Evidence.proved(
                    "every step is billed, an empty or overflowing one as well", f"{PAGE}#batches"
                ),
                Evidence.proved(
                    "all that is kept follows from noisy sums and public numbers", f"{PAGE}#privacy"
                ),
                Evidence.assumed(
                    "sums and noise in floating point are taken for real numbers", f"{PAGE}#noise"
                ),
                Evidence.assumed(
                    "nobody times single steps, which would tell how many records a batch has",
                    f"{PAGE}#batches",
                ),
                Evidence.assumed(
                    "the first parameters do not depend on the data", "drawn or given without it"
                ),
            ),
            parameters={
                "steps": len(sigmas),
                "batch": batch,
                "rate": rate,
                "buffer": min(buffer_for(batch, rate), max(n, 1)),
                "clip": _range(numbers.bounds),
                "noise_multiplier": _range(sigmas),
                "compared_at": delta,
                **parameters,
            },
            reasons=(*reasons, *self._unclipped(), side_by_side(guarantee, rate, sigmas, delta)),
        )

    def _unclipped(self) -> tuple[str, ...]:
        """Why no gradient is shortened, if none is."""
        if not isinstance(self.clipping, Unclipped):
            return ()
        evidence = self.loss.slope(self.model).evidence
        why = f"C = {self.clipping.norm:.4g} bounds all, because {evidence.claim} ({evidence.standing})"
        return (f"no gradient is clipped: {why}; one that were longer would count 0",)

    def settings(self) -> dict[str, Plain]:
        return {
            **super().settings(),
            "loss": repr(self.loss),
            "clipping": repr(self.clipping),
            "neighbours": str(self.neighbours),
            "start": "drawn without data" if self.start is None else "given",
        }

    # --- with data ----------------------------------------------------------------------

    def training(
        self,
        plan: Plan,
        records: Records,
        randomness: Randomness,
        *,
        rule: Rule,
        numbers: Numbered,
        kept: Kept,
        progress: bool,
        model: Model | None = None,
    ) -> Training:
        """The run of a plan, before its first step; observers are told."""
        p: Mapping[str, Any] = plan.parameters
        both = self.neighbours is Neighbours.SUBSTITUTE
        watched = Watched(max((o.pairs for o in self.observers), default=0), both)
        buffer = max(int(p["buffer"]), watched.rows)
        self._begin(plan, numbers)
        used = model if model is not None else self.model
        saved = randomness.saved if isinstance(randomness, Resumed) else None
        training = Training(
            engine=Engine(used, self.clipping, rule, watched, self.chunk, self.loss),
            batches=PoissonBatches(float(p["rate"]), buffer),
            numbers=numbers,
            records=records,
            theta=self._first(used, randomness),
            ratchet=Ratchet(randomness.secret()),
            kept=kept,
            observers=self.observers,
            unit=float(numbers.sigmas.min()) / numbers.sds if self.observers else None,
            progress=progress,
            draws=self._draws(plan, saved),
            checkpoint=self.checkpoint,
            about={} if self.checkpoint is None else about(plan, records, randomness),
        )
        rate, delta = float(p["rate"]), float(p["compared_at"])

        def spent(steps: int) -> str:
            epsilon = self.priced(rate, numbers.sigmas[:steps]).epsilon(delta)
            return f"epsilon {epsilon:.3g} at delta {delta:g} spent, all of it billed"

        training.spent = spent
        if saved is not None:
            training.restore(saved)
        return training

    def _draws(self, plan: Plan, saved: Saved | None) -> Draws:
        """Where kept draws go: into memory, unless the mechanism has a place on disk."""
        del plan
        return InMemory(None if saved is None else saved.draws)

    def _begin(self, plan: Plan, numbers: Numbered) -> None:
        """Tell the observers what is public; distances will be in units of the largest step's C."""
        if not self.observers:
            return
        both = self.neighbours is Neighbours.SUBSTITUTE
        run = ObservedRun(
            rate=float(cast("float", plan.parameters["rate"])),
            sigma=float(numbers.sigmas.min()),
            largest=2.0 if both else 1.0,
            steps=len(numbers.sds),
            guarantee=plan.guarantee,
            neighbours=self.neighbours,
        )
        for observer in self.observers:
            observer.begin(run)

    def _first(self, model: Model, randomness: Randomness) -> dict[str, Array]:
        shapes = trained_shapes(model)
        if self.start is not None:
            return {name: np.asarray(self.start[name], dtype=np.float64) for name in shapes}
        if isinstance(model, NeuralNetwork):
            return model.network.initial(randomness.numpy())
        if isinstance(model, FlaxNetwork):
            return model.initial(randomness.numpy())
        return {name: np.zeros(shape) for name, shape in shapes.items()}


class Resumed(Randomness):
    """The randomness of a run that goes on from a checkpoint: all of it comes from the saved secret.

    Args:
        saved: where the run stood.
    """

    def __init__(self, saved: Saved) -> None:
        super().__init__()
        self.saved = saved

    @property
    def evidence(self) -> Evidence:
        return Evidence.from_dict(self.saved.evidence)


def about(plan: Plan, records: Records, randomness: Randomness) -> dict[str, Any]:
    """What a checkpoint says of a run."""
    return {
        "plan": plan.hash(),
        "records": fingerprint(records),
        "evidence": randomness.evidence.to_dict(),
    }


def side_by_side(guarantee: Guarantee, rate: float, sigmas: Array, delta: float) -> str:
    """The epsilons of three accountants at delta; the exact one is the guarantee."""
    routes = guarantee.by_route(delta)
    reach = 2 if guarantee.neighbours is Neighbours.SUBSTITUTE else 1
    # The constant multiplier with the same sum of e^(1/sigma^2) - 1: the central limit sees no more.
    mean = float(np.mean(np.expm1(np.minimum((reach / np.asarray(sigmas)) ** 2, 700.0))))
    limit = gdp_central_limit(rate, 1 / math.sqrt(math.log1p(mean)), len(sigmas))
    renyi = next((value for name, value in routes.items() if "enyi" in name), math.inf)
    return (
        f"epsilon at delta {delta:g}: exact loss distributions (PLD) {guarantee.epsilon(delta):.4g}, the "
        f"guarantee; Renyi {renyi:.4g}; Gaussian central limit {limit.epsilon(delta):.4g}, "
        "an approximation and no bound"
    )


def check_public(n: int, batch: int, steps: int) -> None:
    """Refuse sizes that no run has."""
    checks.integer("n", n, at_least=1)
    checks.integer("batch", batch, at_least=1, at_most=n)
    checks.integer("steps", steps, at_least=1)


def delta_of(budget: Budget | None) -> float:
    """Where epsilons are compared: the budget's delta, or 1e-5."""
    return budget.delta if budget is not None and budget.delta > 0 else 1e-5


def check_fits(guarantee: Guarantee, budget: Budget | None, what: str) -> None:
    """Refuse a plan that costs more than the budget."""
    if budget is not None and not guarantee.fits(budget):
        raise ValueError(
            f"budget must allow the plan, which costs epsilon {guarantee.epsilon(budget.delta):.4g} at delta "
            f"{budget.delta:g}, got {budget.epsilon:g}; leave {what} to the plan, or take fewer steps"
        )


def _range(values: Array) -> Plain:
    low, high = float(values.min()), float(values.max())
    return low if low == high else f"{low:.6g} to {high:.6g}"


def _check_loss(model: Model, loss: LogLikelihood | Loss) -> None:
    if isinstance(loss, Loss):
        _ = loss.numbers
    if single_precision(model) and not isinstance(loss, LogLikelihood):
        raise TypeError(
            "loss must be the log-likelihood for a network, as book-keeping takes gradients of no other, got "
            f"{type(loss).__name__} for a {type(model).__name__}; leave it out, or use another model"
        )


def _check_shapes(start: Mapping[str, ArrayLike], shapes: Mapping[str, tuple[int, ...]]) -> None:
    given = {name: np.shape(values) for name, values in start.items()}
    if given != dict(shapes):
        wanted = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"start must hold the parameters {wanted}, got {given}; give each its first value")
