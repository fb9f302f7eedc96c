"""Exact draws from posteriors of regressions by rejection, backed by a chain with a proved error.

Proof page: docs/proofs/exact_sampling.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.models.base import Model, Records, count
from discreet.models.bounded_response import BoundedRegression
from discreet.models.logistic import LogisticRegression
from discreet.models.losses import Gibbs, Loss
from discreet.privacy import Evidence, Sensitive, checks
from discreet.samplers._bounded import BoundedPotential
from discreet.samplers._logistic import LogisticPotential
from discreet.samplers._potential import RESIDUAL, Array, Potential
from discreet.samplers._proximal import ProximalChain, ProximalPlan, plan_proximal
from discreet.samplers._public_bounds import PublicShells, Setting, public_shells, tries_for
from discreet.samplers._shells import RowShells
from discreet.samplers.posterior import Sampled, SamplingError
from discreet.samplers.randomness import Randomness

PAGE = "docs/proofs/exact_sampling.md"
_LARGEST = 2000
_MOST_TRIES = 200_000
_AFFORDABLE = 3e8
"""Rows that the tries of one draw may look at where nobody chose: a few seconds."""
_NUMBERS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Schedule:
    """What a run may do, from public numbers only.

    Attributes:
        tries: of the row shells for one draw, or None for as many as it takes.
        proximal: the chain that follows if all fail; None if nothing follows.
        shells: what the row shells promise on every data set.
    """

    tries: int | None
    proximal: ProximalPlan | None
    shells: PublicShells


@singledispatch
def potential_of(model: Model, records: Records, weight: float) -> Potential:  # noqa: ARG001
    """The potential of a model's posterior; register a model type to extend the table."""
    raise TypeError(f"{type(model).__name__} has no proved envelope; use CoupledChains or NUTS")


@potential_of.register
def _(model: LogisticRegression, records: Records, weight: float) -> Potential:
    return LogisticPotential(records["x"] * (2 * records["y"] - 1)[:, None], model.prior_precision, weight)


@potential_of.register
def _(model: BoundedRegression, records: Records, weight: float) -> Potential:
    nodes, log_base = model.base_measure
    return BoundedPotential(
        records["x"] * model.largest,
        model.prior_precision,
        weight,
        outcomes=records["y"] / model.largest,
        nodes=nodes / model.largest,
        log_base=log_base,
    )


def setting_of(model: Model, size: int, weight: float) -> Setting:
    """The public numbers of a model's posterior."""
    assert isinstance(model, LogisticRegression | BoundedRegression)  # noqa: S101 (refused before)
    slope = model.bounds["lipschitz"].value
    even = isinstance(model, LogisticRegression)
    return Setting(size, model.features, model.prior_precision, weight, slope, even)


@dataclass(frozen=True)
class ExactRegression:
    """Draws from exp(-weight * sum of losses - precision/2 |w|^2) by rejection, for bounded canonical models.

    That is logistic regression and the truncated Poisson and gamma regressions. Each
    draw makes K tries, K fixed by public numbers such that all fail with probability
    gamma at most, whatever the data. Where that K is too large, `constant_time=False`
    stops at the first try that is accepted, and after `tries` of them runs a proximal
    chain of fixed length, which is within gamma of the posterior for every data set.

    Args:
        gamma: the total variation distance that is promised, and billed, per draw.
            0 tries without end: the law is the posterior itself, as pure and Renyi
            guarantees need, and how long that takes is unknown.
        constant_time: make all K tries, at most 200,000. If False, how long a run
            takes depends on the data; whoever can time it learns something that no
            epsilon counts.
        tries: before the chain, where time is not constant. A matter of speed only.
        radius: keep only draws in this ball, as if the prior were truncated to it;
            needs gamma = 0. A ball that holds little of the posterior takes long.

    Guarantee:
        None by itself. The distance is proved (docs/proofs/exact_sampling.md).

    References: docs/proofs/exact_sampling.md; ERRATA S4; decision 16.

    Example:
        >>> model = LogisticRegression(features=2, prior_precision=4.0)
        >>> records = model.validate({"x": [[0.6, 0.8], [0.0, 1.0]] * 50, "y": [0, 1] * 50})
        >>> sampled = ExactRegression().sample(model, Gibbs(weight=0.5), records, Randomness(), draws=3)
        >>> sampled.draws["w"].shape
        (3, 2)
    """

    gamma: float = 1e-12
    constant_time: bool = True
    tries: int = 1000
    radius: float | None = None

    def __post_init__(self) -> None:
        checks.real("gamma", self.gamma, at_least=0.0, below=1.0)
        checks.integer("tries", self.tries, at_least=1)
        if self.constant_time and self.gamma == 0:
            raise ValueError(
                "constant_time must have a gamma above 0, got 0; some probability of running out is its "
                "price, or pass constant_time=False"
            )
        if self.radius is not None:
            checks.real("radius", self.radius, above=0.0)
            if self.gamma > 0:
                raise ValueError(
                    f"a radius must come with gamma 0, got {self.gamma:g}; no number of tries is enough for "
                    "every data set"
                )

    @classmethod
    def affordable(cls, setting: Setting, gamma: float) -> Self:
        """In constant time if that takes a few seconds per draw, else not; by public numbers."""
        needed = tries_for(public_shells(setting).log_acceptance, gamma)
        return cls(gamma, constant_time=needed <= _MOST_TRIES and needed * setting.size <= _AFFORDABLE)

    @property
    def distance(self) -> float:
        return self.gamma

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        rounding = Evidence.assumed(
            "arithmetic in double precision stands for real numbers", f"{PAGE}#floating-point"
        )
        if self.gamma == 0:
            law = Evidence.proved("each draw follows the posterior exactly", f"{PAGE}#shells")
        else:
            law = Evidence.proved(
                f"each draw is within {self.gamma:g} of the posterior in total variation, for every data set",
                f"{PAGE}#{'public' if self.constant_time else 'cap'}",
            )
        if self.constant_time:
            seen = (
                "the number of tries is fixed; what else takes time in them and before them is not observed"
            )
        else:
            seen = "nobody times the run: it is not constant, and how long it takes depends on the data"
        return law, rounding, Evidence.assumed(seen, f"{PAGE}#time")

    def refusal(self, model: Model, loss: Loss) -> str | None:
        if not isinstance(model, LogisticRegression | BoundedRegression) or not isinstance(loss, Gibbs):
            return (
                "its envelope is proved for the log-likelihood of logistic and bounded-response "
                f"regressions, weighted or not; got {type(loss).__name__} of {type(model).__name__}; use "
                "CoupledChains or NUTS"
            )
        if model.features > _LARGEST:
            return (
                f"it factors a {model.features} x {model.features} matrix, and its limit is {_LARGEST} "
                "parameters; use NUTS"
            )
        return None

    def schedule(self, setting: Setting) -> Schedule:
        """What a run may do.

        Raises:
            ValueError: if the prior is too weak for double precision, or if constant
                time would take too many tries.
        """
        if not setting.resolvable:
            raise ValueError(
                f"precision must be large enough for double precision to find the mode, got "
                f"{setting.precision:g} with {setting.size} records of norm {setting.row_norm:g}; "
                "strengthen the prior"
            )
        shells = public_shells(setting)
        if self.gamma == 0:
            return Schedule(None, None, shells)
        if not self.constant_time:
            return Schedule(self.tries, plan_proximal(setting, self.gamma), shells)
        needed = tries_for(shells.log_acceptance, self.gamma)
        if needed > _MOST_TRIES:
            raise ValueError(
                f"constant_time must need at most {_MOST_TRIES} tries, got a need of {needed:.3g}; "
                "strengthen the prior, lower the weight, or pass constant_time=False, whose run time depends "
                "on the data"
            )
        return Schedule(int(needed), None, shells)

    def sample(
        self, model: Model, loss: Loss, records: Records, randomness: Randomness, draws: int
    ) -> Sampled:
        refused = self.refusal(model, loss)
        if refused is not None:
            raise ValueError(f"ExactRegression cannot serve this posterior: {refused}")
        weight = loss.numbers["weight"]
        setting = setting_of(model, count(records), weight)
        try:
            schedule = self.schedule(setting)
        except ValueError:
            schedule = None
        if schedule is None:  # why, in numbers, would tell how many records there are, which may be private
            raise SamplingError(
                f"precision must be strong enough for so many records, got {setting.precision:g}, and "
                "nothing was released; strengthen the prior or lower the weight"
            )
        potential = potential_of(model, records, weight)
        if float(np.linalg.norm(potential.mode[1])) > RESIDUAL * math.sqrt(setting.precision):
            raise SamplingError(
                "the mode must be found to the proof's precision, and was not; nothing was released"
            )
        shells = RowShells(potential)
        if shells.log_certificate < schedule.shells.log_acceptance:
            shells = RowShells(potential, schedule.shells.thresholds, plain=True)
        run = _Run(self, shells, randomness.numpy())
        if self.constant_time:
            found = [run.all_tries(schedule.tries or 1) for _ in range(draws)]
        else:
            found = run.tries_until(draws, schedule.tries)
        chain: ProximalChain | None = None
        fallen = 0
        for index, draw in enumerate(found):
            if draw is None:
                fallen += 1
                if schedule.proximal is not None:
                    chain = chain or ProximalChain(potential, setting, schedule.proximal)
                    found[index] = chain.draw(run.generator)
        # The centre of the prior stands for the draws that ran out: their probability is in gamma.
        flat = np.stack([np.zeros(setting.dimension) if draw is None else draw for draw in found])
        diagnostics: dict[str, Sensitive[Any]] = {
            "tries": Sensitive(run.used, "tries of the row shells"),
            "acceptance": Sensitive(run.hits / max(run.used, 1), "acceptance rate"),
            "certificate": Sensitive(math.exp(shells.log_certificate), "certified acceptance"),
            "fallbacks": Sensitive(fallen, "draws that needed more than the row shells"),
        }
        return Sampled({"w": flat}, (), diagnostics)


class _Run:
    """Tries, in batches that fit in memory."""

    def __init__(self, sampler: ExactRegression, shells: RowShells, generator: np.random.Generator) -> None:
        self.generator = generator
        self.used = self.hits = 0
        self._shells, self._radius = shells, sampler.radius
        self._most = max(1, _NUMBERS_AT_ONCE // max(1, shells.size))

    def _batch(self, count: int) -> tuple[Array, NDArray[np.intp]]:
        """Points, and which of them are accepted."""
        points, log_accept = self._shells.propose(self.generator, count)
        accepted = -self.generator.standard_exponential(count) < log_accept
        if self._radius is not None:
            accepted &= np.linalg.norm(points, axis=1) <= self._radius
        self.used += count
        self.hits += int(accepted.sum())
        return points, np.flatnonzero(accepted)

    def all_tries(self, tries: int) -> Array | None:
        """The first that is accepted; the others are made nevertheless."""
        first: Array | None = None
        for start in range(0, tries, self._most):
            points, hits = self._batch(min(self._most, tries - start))
            if first is None and len(hits):
                first = points[hits[0]]
        return first

    def tries_until(self, draws: int, tries: int | None) -> list[Array | None]:
        """Draws, each None if all of its tries failed."""
        found: list[Array | None] = []
        spent = 0  # tries of the draw at hand
        while len(found) < draws:
            guess = 1.2 * (draws - len(found)) * math.exp(min(-self._shells.log_certificate, 20.0)) + 2
            count = min(self._most, math.ceil(guess))
            points, hits = self._batch(count)
            position, queue = 0, hits.tolist()
            while len(found) < draws:
                left = math.inf if tries is None else tries - spent
                if queue and queue[0] - position < left:
                    found.append(points[queue[0]])
                    position, spent = queue.pop(0) + 1, 0
                elif count - position >= left:
                    found.append(None)
                    position, spent = position + int(left), 0
                else:
                    spent += count - position
                    break
        return found
