"""Exact draws from logistic posteriors by rejection, backed by a chain with a proved error.

Proof page: docs/proofs/exact_sampling.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.models.base import Model, Records, count
from discreet.models.logistic import LogisticRegression
from discreet.models.losses import Gibbs, Loss
from discreet.privacy import Evidence, Sensitive, checks
from discreet.samplers._logistic import RESIDUAL, Array, LogisticPotential
from discreet.samplers._proximal import ProximalChain, ProximalPlan, plan_proximal
from discreet.samplers._public_bounds import PublicShells, Setting, public_shells, tries_for
from discreet.samplers._shells import RowShells
from discreet.samplers.posterior import Sampled, SamplingError
from discreet.samplers.randomness import Randomness

PAGE = "docs/proofs/exact_sampling.md"
_LARGEST = 2000
_MOST_TRIES = 200_000
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


@dataclass(frozen=True)
class ExactLogistic:
    """Draws from exp(-weight * sum_i log(1 + exp(-z_i . w)) - precision/2 |w|^2) by rejection.

    By default a draw makes up to `tries` tries of the row shells, each of which is
    exact if accepted, and then a proximal chain of a fixed length. So it is within
    gamma of the posterior for every data set, however few tries are accepted.

    Args:
        gamma: the total variation distance that is promised, and billed, per draw.
            0 tries without end: the law is the posterior itself, as pure and Renyi
            guarantees need, and how long that takes is unknown.
        tries: of the row shells before the chain. A matter of speed only.
        constant_time: make all of K tries for every draw, with K such that all fail
            with probability gamma at most, whatever the data; no chain follows.
            Planned only where K is at most 200,000.
        radius: keep only draws in this ball, as if the prior were truncated to it;
            needs gamma = 0.

    Guarantee:
        None by itself. The distance is proved (docs/proofs/exact_sampling.md). How
        many tries were needed depends on the data, is not billed, and is seen by
        whoever can time the run, unless `constant_time`.

    References: docs/proofs/exact_sampling.md; ERRATA S4.

    Example:
        >>> model = LogisticRegression(features=2, prior_precision=4.0)
        >>> records = model.validate({"x": [[0.6, 0.8], [0.0, 1.0]] * 50, "y": [0, 1] * 50})
        >>> sampled = ExactLogistic().sample(model, Gibbs(weight=0.5), records, Randomness(), draws=3)
        >>> sampled.draws["w"].shape
        (3, 2)
    """

    gamma: float = 1e-12
    tries: int = 1000
    constant_time: bool = False
    radius: float | None = None

    def __post_init__(self) -> None:
        checks.real("gamma", self.gamma, at_least=0.0, below=1.0)
        checks.integer("tries", self.tries, at_least=1)
        if self.constant_time and self.gamma == 0:
            raise ValueError(
                "constant_time must have a gamma above 0, got 0; some probability of running out is its price"
            )
        if self.radius is not None:
            checks.real("radius", self.radius, above=0.0)
            if self.gamma > 0:
                raise ValueError(
                    f"a radius must come with gamma 0, got {self.gamma:g}; no number of tries is enough for "
                    "every data set"
                )

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
        if not isinstance(model, LogisticRegression) or not isinstance(loss, Gibbs):
            return (
                "its envelope is proved for the logistic log-likelihood, weighted or not; got "
                f"{type(loss).__name__} of {type(model).__name__}; use CoupledChains or NUTS"
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
                "strengthen the prior, lower the weight, or leave constant_time out"
            )
        return Schedule(int(needed), None, shells)

    def sample(
        self, model: Model, loss: Loss, records: Records, randomness: Randomness, draws: int
    ) -> Sampled:
        refused = self.refusal(model, loss)
        if refused is not None or not isinstance(model, LogisticRegression):
            raise ValueError(f"ExactLogistic cannot serve this posterior: {refused}")
        weight = loss.numbers["weight"]
        setting = Setting(count(records), model.features, model.prior_precision, weight, model.row_norm)
        schedule = self.schedule(setting)
        rows = records["x"] * (2 * records["y"] - 1)[:, None]
        potential = LogisticPotential(rows, model.prior_precision, weight)
        if float(np.linalg.norm(potential.mode[1])) > RESIDUAL * math.sqrt(model.prior_precision):
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
        flat = np.stack([np.zeros(model.features) if draw is None else draw for draw in found])
        diagnostics: dict[str, Sensitive[Any]] = {
            "tries": Sensitive(run.used, "tries of the row shells"),
            "acceptance": Sensitive(run.hits / max(run.used, 1), "acceptance rate"),
            "certificate": Sensitive(math.exp(shells.log_certificate), "certified acceptance"),
            "fallbacks": Sensitive(fallen, "draws that needed more than the row shells"),
        }
        return Sampled({"w": flat}, (), diagnostics)


class _Run:
    """Tries, in batches that fit in memory."""

    def __init__(self, sampler: ExactLogistic, shells: RowShells, generator: np.random.Generator) -> None:
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
