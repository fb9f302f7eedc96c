"""Draws from a posterior given noisy sums of the records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from discreet.mechanisms._conjugate import largest
from discreet.mechanisms._lattice_noise import PAGE, LatticeNoise, Noise
from discreet.mechanisms._noise_aware import NOISE_AWARE, naive
from discreet.mechanisms.base import Drawn, Mechanism, Plain, Plan
from discreet.models.base import Records
from discreet.models.families import ConjugateFamily
from discreet.privacy import Budget, BudgetError, Evidence, Guarantee, calibrate, checks
from discreet.samplers.randomness import Randomness

_BRACKET = 1e-3, 1e7


class Reading(StrEnum):
    """How the noisy statistic is read."""

    NOISE_AWARE = "noise_aware"
    """The noise is a part of the model; intervals cover as they say."""

    NAIVE = "naive"
    """The noisy statistic, projected, is taken for the truth; for comparison."""


@dataclass(frozen=True)
class PerturbedStatistics(Mechanism):
    """Adds noise to the sum of the sufficient statistics once, then draws from a posterior of it.

    The draws are post-processing: any number of them costs the same. The noise-aware
    posterior (Bernstein & Sheldon 2018) knows the law of the noise; the naive one
    (paper R's baseline) does not, and is too sure of itself.

    Args:
        model: the records, the likelihood and the prior.
        noise: "gaussian" or "laplace".
        posterior: "noise_aware" or "naive".
        draws: how many draws to release.

    Guarantee:
        Gaussian noise: exactly Gaussian differential privacy. Laplace noise: one
        Laplace mechanism per coordinate that a record can change. Under substitution,
        with the number of records public; noise on an integer lattice by OpenDP
        (docs/proofs/perturbed_statistics.md).

    References: Foulds et al. 2016; Bernstein & Sheldon 2018; Geumlek, Song &
        Chaudhuri 2017, Section 5.1.

    Example:
        >>> from discreet.models import BetaBernoulli
        >>> mechanism = PerturbedStatistics(BetaBernoulli(prior=(6, 12)))
        >>> plan = mechanism.plan(n=100, budget=Budget(epsilon=1.0, delta=1e-6))
        >>> f"{plan.parameters['multiplier']:.3f}"
        '4.225'
        >>> plan.release({"x": [0, 1] * 50}).draws["probability"].shape
        (1000,)
    """

    model: ConjugateFamily  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    noise: Noise = Noise.GAUSSIAN
    posterior: Reading = Reading.NOISE_AWARE
    draws: int = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", Noise(self.noise))
        object.__setattr__(self, "posterior", Reading(self.posterior))
        checks.integer("draws", self.draws, at_least=1)
        if not isinstance(self.model, ConjugateFamily):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"model must be a conjugate family of discreet.models, got {type(self.model).__name__}; "
                "other models have no sum of statistics to perturb; take OnePosteriorSample"
            )
        if self.posterior is Reading.NOISE_AWARE and type(self.model) not in NOISE_AWARE:
            known = ", ".join(family.__name__ for family in NOISE_AWARE)
            raise ValueError(
                f"posterior 'noise_aware' is known for {known}, got {type(self.model).__name__}; "
                "choose posterior='naive', whose intervals are too short, or DiffusedPosterior"
            )

    def settings(self) -> dict[str, Plain]:
        chosen: dict[str, Plain] = {
            "noise": str(self.noise),
            "posterior": str(self.posterior),
            "draws": self.draws,
        }
        return {**super().settings(), **chosen}

    def plan(self, n: int, *, budget: Budget | None = None, renyi: tuple[float, float] | None = None) -> Plan:
        """Solve for the noise.

        Args:
            n: the public number of records.
            budget: what the noisy statistic may cost, or
            renyi: (order, epsilon): a Renyi divergence of at most epsilon at this order.

        Raises:
            BudgetError: if no noise fits, with the smallest epsilon reachable.
        """
        checks.integer("n", n, at_least=1, at_most=10**12)
        if self.posterior is Reading.NOISE_AWARE and n > (
            most := NOISE_AWARE[type(self.model)].largest_size(self.model)
        ):
            raise ValueError(
                f"n must be at most {most:g} for this noise-aware posterior, which enumerates sums, got {n}; "
                "choose posterior='naive' or DiffusedPosterior"
            )
        multiplier = self._solve(n, budget, renyi)
        noise = LatticeNoise(self.noise, multiplier, n, self.model.movable)
        return Plan(
            mechanism=self,
            size=n,
            guarantee=noise.guarantee(),
            evidence=(
                Evidence.proved(
                    "records outside the declared domain are clipped or refused", "enforced before use"
                ),
                Evidence.proved(
                    f"one record changes at most {noise.movable} of the sums, each by at most its range",
                    f"{PAGE}#sensitivity",
                ),
                Evidence.proved(
                    "lattice noise costs no more than the continuous noise accounted", f"{PAGE}#lattice"
                ),
                Evidence.proved("draws given the noisy sums are post-processing", f"{PAGE}#post-processing"),
            ),
            parameters={"multiplier": multiplier, "draws": self.draws},
            reasons=(
                f"{self.noise} noise of {multiplier:.6g} times the range of a record is the least that fits",
                f"the lattice is 2^{noise.bits} times finer than the noise",
            ),
        )

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:  # noqa: ARG002
        multiplier = plan.parameters["multiplier"]
        assert isinstance(multiplier, float)  # noqa: S101 (for the type checker)
        noise = LatticeNoise(self.noise, multiplier, len(next(iter(records.values()))), self.model.movable)
        low, high = self.model.measured_range
        noisy = noise.add(self.model.measured(records), low, high, randomness)
        read = NOISE_AWARE[type(self.model)].draw if self.posterior is Reading.NOISE_AWARE else naive
        draws = read(self.model, noisy, randomness.numpy(), self.draws)
        return Drawn(draws, evidence=(noise.evidence(randomness),))

    def _price(self, n: int, multiplier: float) -> Guarantee:
        return LatticeNoise(self.noise, multiplier, n, self.model.movable).guarantee()

    def _solve(self, n: int, budget: Budget | None, renyi: tuple[float, float] | None) -> float:
        if (budget is None) == (renyi is None):
            given = "neither" if budget is None else "both"
            raise ValueError(
                f"a plan needs either a budget or a renyi target (order, epsilon), got {given}; "
                "pass budget=dc.Budget(...) or renyi=(2.0, 0.1)"
            )
        if budget is not None:
            if budget.delta == 0 and self.noise is Noise.GAUSSIAN:
                raise BudgetError(
                    "gaussian noise needs a delta above 0, got 0: its smallest epsilon there is infinite; "
                    "choose noise='laplace' or a delta",
                    float("inf"),
                    _BRACKET[1],
                )
            return calibrate(lambda multiplier: self._price(n, multiplier), budget, _BRACKET).value
        assert renyi is not None  # noqa: S101 (for the type checker)
        order, epsilon = renyi
        checks.real("order", order, above=1.0)
        checks.real("epsilon", epsilon, above=0.0)
        least = _BRACKET[0]
        share = largest(lambda x: self._price(n, least / x).renyi(order) <= epsilon)
        if share is None:
            raise BudgetError(
                f"a Renyi divergence of {epsilon:g} at order {order:g} cannot be met; raise the target",
                self._price(n, _BRACKET[1]).renyi(order),
                _BRACKET[1],
            )
        return least / share
