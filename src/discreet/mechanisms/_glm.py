"""Draws from the posterior of a generalised linear model: paper R's Algorithms 4 and 5.

Proof page: docs/proofs/glm_posteriors.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from discreet.mechanisms.base import Drawn, Plain
from discreet.models.base import Model, Records, count
from discreet.models.bounded_response import BoundedRegression
from discreet.models.logistic import LogisticRegression
from discreet.models.losses import Gibbs
from discreet.privacy import Evidence, Guarantee, Neighbours, inexact, strongly_convex_posterior
from discreet.samplers.exact import ExactRegression, setting_of
from discreet.samplers.posterior import Sampler
from discreet.samplers.randomness import Randomness

PAGE = "docs/proofs/glm_posteriors.md"
_GAMMA = 1e-12


@dataclass(frozen=True)
class RegressionPosterior:
    """The posterior of a canonical regression with records of some weight and a prior of some strength.

    Args:
        model: the rows, their norm, the range of the response, and the prior.
        sampler: how draws are made; None is `ExactRegression`, in constant time where
            that takes a few seconds per draw.

    Guarantee:
        One draw is dominated by N(0, 1) against N(mu, 1) with mu = 2 c (b - a) weight /
        sqrt(precision / concentration), b - a the range of the response (Gopi, Lee &
        Liu 2022), plus what the sampler is from the posterior in total variation.
    """

    model: LogisticRegression | BoundedRegression
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        sampler = self.sampler or ExactRegression(_GAMMA)
        refused = sampler.refusal(self.model, Gibbs(1.0))
        if refused is not None:
            raise ValueError(f"{type(sampler).__name__} cannot serve this posterior: {refused}")

    def exactly(self) -> Sampler:
        """A sampler for a target that no distance may blur; the given one, unless none was given."""
        if self.sampler is None:
            return ExactRegression(gamma=0.0, constant_time=False)
        if self.sampler.distance > 0:
            raise ValueError(
                f"a Renyi target must have a sampler of distance 0, got {self.sampler.distance:g}; "
                "take ExactRegression(gamma=0, constant_time=False), or a budget of epsilon and delta"
            )
        return self.sampler

    def guarantee(self, size: int, *, weight: float, concentration: float) -> Guarantee:  # noqa: ARG002
        """What one draw costs; the number of records does not matter."""
        bounds = self.model.bounds
        lipschitz = weight * bounds["lipschitz_difference"].value
        convexity = bounds["prior_convexity"].value / concentration
        exact = strongly_convex_posterior(lipschitz, convexity, neighbours=Neighbours.SUBSTITUTE)
        distance = _GAMMA if self.sampler is None else self.sampler.distance
        return exact + inexact(distance, neighbours=Neighbours.SUBSTITUTE) if distance > 0 else exact

    def evidence(self, size: int, *, weight: float, concentration: float) -> tuple[Evidence, ...]:
        """What the guarantee rests on."""
        bounds = self.model.bounds
        return (
            bounds["lipschitz_difference"].evidence,
            bounds["prior_convexity"].evidence,
            Evidence.proved("neighbouring posteriors are no farther apart than shifted Gaussians", PAGE),
            *self._drawn_by(self._with(concentration), size, weight).evidence,
        )

    def parameters(self, size: int, *, weight: float, concentration: float) -> dict[str, Plain]:
        """What else the plan fixes, or a refusal if the sampler cannot."""
        model = self._with(concentration)
        named: dict[str, Plain] = {"prior_precision": model.prior_precision}
        sampler = self._drawn_by(model, size, weight)
        if isinstance(sampler, ExactRegression):
            schedule = sampler.schedule(setting_of(model, size, weight))
            named["tries"] = schedule.tries
            if schedule.proximal is not None:
                named["proximal_steps"] = schedule.proximal.steps
        return named

    def reasons(self, size: int, *, weight: float, concentration: float) -> tuple[str, ...]:
        """How draws are made."""
        sampler = self._drawn_by(self._with(concentration), size, weight)
        if not isinstance(sampler, ExactRegression):
            return ()
        if sampler.constant_time:
            return ("every draw makes the same number of tries, so that their number tells nothing",)
        if sampler.distance == 0:
            return ("the target leaves no room for running out of tries: they go on until one is accepted",)
        return ("a fixed number of tries would take long here: how many are made depends on the data",)

    def draw(
        self, records: Records, randomness: Randomness, draws: int, *, weight: float, concentration: float
    ) -> Drawn:
        """Independent draws."""
        model = self._with(concentration)
        sampler = self._drawn_by(model, count(records), weight)
        sampled = sampler.sample(model, Gibbs(weight), records, randomness, draws)
        return Drawn(sampled.draws, sampled.evidence, sampled.diagnostics)

    def _with(self, concentration: float) -> LogisticRegression | BoundedRegression:
        """The model with its prior divided."""
        return replace(self.model, prior_precision=self.model.prior_precision / concentration)

    def _drawn_by(self, model: LogisticRegression | BoundedRegression, size: int, weight: float) -> Sampler:
        return self.sampler or ExactRegression.affordable(setting_of(model, size, weight), _GAMMA)


def refuse_probit(model: Model, sampler: Sampler | None = None) -> NoReturn:  # noqa: ARG001
    """ERRATA 6."""
    raise ValueError(
        f"{type(model).__name__} must have a bounded score for a draw of paper R, and has none: one "
        "record can change the posterior without bound (ERRATA 6; the same holds for complementary log-log); "
        "take OnePosteriorSample with the beta-divergence loss, whose probabilities are at most 1"
    )


def refuse_poisson(model: Model, sampler: Sampler | None = None) -> NoReturn:  # noqa: ARG001
    """No constant is proved for it."""
    raise ValueError(
        f"{type(model).__name__} must have a bounded response and mean and a log-concave likelihood for a "
        "draw of paper R; its score grows with the count and with exp(x . w), and a clipped log rate is "
        "not log-concave (docs/proofs/glm_posteriors.md#bounded); take TruncatedPoissonRegression, or "
        "OnePosteriorSample with the beta-divergence loss"
    )
