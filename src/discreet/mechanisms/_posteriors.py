"""Which models the posteriors of paper R can be drawn from, and how each is priced: a table by model type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol

from discreet.mechanisms._glm import RegressionPosterior, refuse_poisson, refuse_probit
from discreet.mechanisms.base import Drawn, Plain
from discreet.models.base import Model, Records, count
from discreet.models.bounded_response import BoundedRegression
from discreet.models.families.base import ConjugateFamily
from discreet.models.logistic import LogisticRegression
from discreet.models.poisson import PoissonRegression
from discreet.models.probit import ProbitRegression
from discreet.privacy import Evidence, Guarantee
from discreet.samplers.posterior import Sampler
from discreet.samplers.randomness import Randomness

PAGE = "docs/proofs/conjugate_families.md"


class Posterior(Protocol):
    """A posterior whose records count `weight` (r), with its prior divided by `concentration` (m)."""

    def evidence(self, size: int, *, weight: float, concentration: float) -> tuple[Evidence, ...]:
        """What the guarantee rests on."""
        ...

    def exactly(self) -> Sampler | None:
        """The sampler to use where no distance may blur the target."""
        ...

    def guarantee(self, size: int, *, weight: float, concentration: float) -> Guarantee:
        """What one draw costs."""
        ...

    def parameters(self, size: int, *, weight: float, concentration: float) -> dict[str, Plain]:
        """What else the plan fixes."""
        ...

    def reasons(self, size: int, *, weight: float, concentration: float) -> tuple[str, ...]:
        """How draws are made, where there is a choice."""
        ...

    def draw(
        self, records: Records, randomness: Randomness, draws: int, *, weight: float, concentration: float
    ) -> Drawn:
        """Independent draws."""
        ...


@singledispatch
def posterior(model: Model, sampler: Sampler | None = None) -> Posterior:  # noqa: ARG001
    """The posterior of a model; register a model type to extend the table."""
    raise TypeError(
        f"model must be a conjugate family, LogisticRegression or a bounded-response regression, got "
        f"{type(model).__name__}; for other models take OnePosteriorSample"
    )


@posterior.register(ConjugateFamily)
@dataclass(frozen=True)
class ConjugatePosterior:
    """The posterior of a conjugate family, drawn from as ratios of gamma and normal variables."""

    model: ConjugateFamily
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        if self.sampler is not None:
            raise ValueError(
                f"sampler must be None for a conjugate family, got {type(self.sampler).__name__}; "
                "its posterior is drawn from directly"
            )

    def evidence(self, size: int, *, weight: float, concentration: float) -> tuple[Evidence, ...]:  # noqa: ARG002
        """What the guarantee rests on."""
        name = type(self.model).__name__
        return (
            Evidence.proved(
                f"no neighbouring pair of {name} posteriors is farther apart than accounted", PAGE
            ),
            Evidence.proved(
                "records outside the declared domain are clipped or refused", "enforced before use"
            ),
            Evidence.proved(
                "draws follow the posterior exactly, as ratios of gamma and normal variables", PAGE
            ),
            Evidence.assumed("the rounding of a draw to float64 reveals nothing", "not analysed"),
        )

    def exactly(self) -> Sampler | None:
        """None is needed."""
        return None

    def guarantee(self, size: int, *, weight: float, concentration: float) -> Guarantee:
        """What one draw costs."""
        return self.model.guarantee(size, weight=weight, concentration=concentration)

    def parameters(self, size: int, *, weight: float, concentration: float) -> dict[str, Plain]:  # noqa: ARG002
        """Nothing."""
        return {}

    def reasons(self, size: int, *, weight: float, concentration: float) -> tuple[str, ...]:  # noqa: ARG002
        """None: there is one way."""
        return ()

    def draw(
        self, records: Records, randomness: Randomness, draws: int, *, weight: float, concentration: float
    ) -> Drawn:
        """Independent draws."""
        total = self.model.statistic(records).sum(axis=0)
        eta = self.model.posterior_eta(total, count(records), weight=weight, concentration=concentration)
        return Drawn(self.model.draw(eta, randomness.numpy(), draws))


posterior.register(LogisticRegression, RegressionPosterior)
posterior.register(BoundedRegression, RegressionPosterior)
posterior.register(ProbitRegression, refuse_probit)
posterior.register(PoissonRegression, refuse_poisson)
