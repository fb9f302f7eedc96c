"""Draws from the posterior of a generalised linear model: paper R's Algorithms 4 and 5.

Proof page: docs/proofs/glm_posteriors.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from discreet.mechanisms.base import Drawn, Plain
from discreet.models.base import Model, Records
from discreet.models.logistic import LogisticRegression
from discreet.models.losses import Gibbs
from discreet.privacy import Evidence, Guarantee, Neighbours, inexact, strongly_convex_posterior
from discreet.samplers.exact import ExactLogistic
from discreet.samplers.posterior import Sampler
from discreet.samplers.randomness import Randomness

PAGE = "docs/proofs/glm_posteriors.md"


@dataclass(frozen=True)
class LogisticPosterior:
    """The posterior of logistic regression with records of some weight and a prior of some strength.

    Args:
        model: the rows, their norm, and the prior.
        sampler: how draws are made; None is `ExactLogistic`.

    Guarantee:
        One draw is dominated by N(0, 1) against N(mu, 1) with
        mu = 2 c weight / sqrt(precision / concentration) (Gopi, Lee & Liu 2022), plus
        what the sampler is from the posterior in total variation.
    """

    model: LogisticRegression
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        refused = self.drawn_by.refusal(self.model, Gibbs(1.0))
        if refused is not None:
            raise ValueError(f"{type(self.drawn_by).__name__} cannot serve this posterior: {refused}")

    @property
    def drawn_by(self) -> Sampler:
        """The sampler."""
        return ExactLogistic() if self.sampler is None else self.sampler

    def exactly(self) -> Sampler:
        """A sampler for a target that no distance may blur; the given one, unless none was given."""
        if self.sampler is None:
            return ExactLogistic(gamma=0.0)
        if self.sampler.distance > 0:
            raise ValueError(
                f"a Renyi target must have a sampler of distance 0, got {self.sampler.distance:g}; "
                "take ExactLogistic(gamma=0), or a budget of epsilon and delta"
            )
        return self.sampler

    def guarantee(self, size: int, *, weight: float, concentration: float) -> Guarantee:  # noqa: ARG002
        """What one draw costs; the number of records does not matter."""
        bounds = self.model.bounds
        lipschitz = weight * bounds["lipschitz_difference"].value
        convexity = bounds["prior_convexity"].value / concentration
        exact = strongly_convex_posterior(lipschitz, convexity, neighbours=Neighbours.SUBSTITUTE)
        distance = self.drawn_by.distance
        return exact + inexact(distance, neighbours=Neighbours.SUBSTITUTE) if distance > 0 else exact

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What the guarantee rests on."""
        bounds = self.model.bounds
        return (
            bounds["lipschitz_difference"].evidence,
            bounds["prior_convexity"].evidence,
            Evidence.proved("neighbouring posteriors are no farther apart than shifted Gaussians", PAGE),
            *self.drawn_by.evidence,
        )

    def parameters(self, size: int, *, weight: float, concentration: float) -> dict[str, Plain]:
        """What else the plan fixes, or a refusal if the sampler cannot."""
        from discreet.samplers._public_bounds import Setting

        precision = self.model.prior_precision / concentration
        named: dict[str, Plain] = {"prior_precision": precision}
        if isinstance(self.drawn_by, ExactLogistic):
            setting = Setting(size, self.model.features, precision, weight, self.model.row_norm)
            schedule = self.drawn_by.schedule(setting)
            named["tries"] = schedule.tries
            if schedule.proximal is not None:
                named["proximal_steps"] = schedule.proximal.steps
        return named

    def draw(
        self, records: Records, randomness: Randomness, draws: int, *, weight: float, concentration: float
    ) -> Drawn:
        """Independent draws."""
        model = replace(self.model, prior_precision=self.model.prior_precision / concentration)
        sampled = self.drawn_by.sample(model, Gibbs(weight), records, randomness, draws)
        return Drawn(sampled.draws, sampled.evidence, sampled.diagnostics)


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
        "not log-concave (docs/proofs/glm_posteriors.md#bounded); take OnePosteriorSample with the "
        "beta-divergence loss"
    )
