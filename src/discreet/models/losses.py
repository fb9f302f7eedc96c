"""What a record adds to the posterior: the log-likelihood, weighted or clipped, and the beta-divergence.

Proof page: docs/proofs/beta_divergence.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from discreet.models.base import Bound, Model, Theta
from discreet.models.integrals import log_power_integral, power_integral
from discreet.models.logistic import LogisticRegression
from discreet.privacy import Evidence, checks

if TYPE_CHECKING:
    import jax

PAGE = "docs/proofs/beta_divergence.md"
_ROUNDING = 1 + 1e-9


@runtime_checkable
class HasObservation(Protocol):
    """A model that tells the distribution of a record's outcome."""

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        """The NumPyro distribution of the outcome of `record`."""
        ...


@singledispatch
def observation(model: Model, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
    """The NumPyro distribution of a record's outcome; register a model that has no such method."""
    if isinstance(model, HasObservation):
        return model.observation(theta, record)
    raise NotImplementedError(
        f"the beta-divergence needs the distribution of an outcome, which {type(model).__name__} does not "
        "tell; give it an `observation` method, or use another loss"
    )


@observation.register(LogisticRegression)
def _(model: LogisticRegression, theta: Theta, record: Mapping[str, Any]) -> Any:  # noqa: ARG001
    import numpyro.distributions as dist

    return dist.BernoulliLogits(record["x"] @ theta["w"], validate_args=False)


def typical_density(model: Model) -> float:
    """exp(-entropy) of the outcome at a public reference parameter; 1/2 if the model does not say."""
    return float(getattr(model, "typical_density", 0.5))


def certificate(model: Model, name: str, purpose: str) -> Bound:
    """A bound of the model, or a refusal that says which is missing."""
    bound = model.bounds.get(name)
    if bound is None or not math.isfinite(bound.value):
        raise ValueError(
            f"{purpose} needs the certificate {name!r}, and {type(model).__name__} has "
            f"{', '.join(sorted(model.bounds)) or 'none'}; bound what it depends on, state it as "
            "an assumption where the model takes certificates, or use another loss"
        )
    return bound


@dataclass(frozen=True)
class Loss(ABC):
    """A loss per record, whose numbers may be left for the plan to choose (None)."""

    @abstractmethod
    def value(
        self, model: Model, numbers: Mapping[str, Any], theta: Theta, record: Mapping[str, jax.Array]
    ) -> jax.Array:
        """The loss of one record, with the loss's own numbers given from outside.

        They are arguments so that a compiled program serves every budget.
        """

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers that were chosen, by name.

        Raises:
            ValueError: if one is still to be chosen.
        """
        chosen = {f.name: getattr(self, f.name) for f in fields(self)}
        missing = [name for name, value in chosen.items() if value is None]
        if missing:
            raise ValueError(
                f"{type(self).__name__} must have its {' and '.join(missing)} chosen before use, got None; "
                "make a plan, or give the number"
            )
        return chosen

    def with_numbers(self, numbers: Mapping[str, Any]) -> Self:
        """The same loss with numbers filled in; others in `numbers` are ignored."""
        mine = {f.name for f in fields(self)}
        return replace(self, **{k: float(v) for k, v in numbers.items() if k in mine})

    def __call__(self, model: Model, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        """The loss of one record."""
        return self.value(model, self.numbers, theta, record)

    @abstractmethod
    def range(self, model: Model) -> Bound:
        """Delta: sup minus inf of the loss over all records and parameters."""

    def slope(self, model: Model) -> Bound:
        """The longest gradient of the loss in the parameters, or a refusal."""
        raise ValueError(
            f"a step without clipping needs a proved bound on gradients, and that of {type(self).__name__} "
            f"for {type(model).__name__} has none; use BetaDivergence, or clip, as with clipping=Flat(1.0)"
        )


@dataclass(frozen=True)
class BetaDivergence(Loss):
    """The beta-divergence loss with a weight, up to a constant.

    l = w (-f^b / b + (integral of f^(1+b)) / (1+b)) + w/b, with b = beta - 1.

    Args:
        beta: above 1, or None to let the plan choose by its documented rule.
        weight: positive, or None to let the plan choose.

    Guarantee:
        Its range is w M^b / b for probabilities and for location and scale
        families, w M^b (1/b + 1/beta) otherwise; M bounds the density.

    References: Basu et al. 1998; Jewson, Ghalebikesabi & Holmes 2023, Lemma 1;
        docs/proofs/beta_divergence.md; ERRATA 2 and 3.

    Example:
        >>> BetaDivergence(beta=1.5, weight=0.25).range(LogisticRegression(features=2)).value
        0.5000000005
    """

    beta: float | None = None
    weight: float | None = None

    def __post_init__(self) -> None:
        if self.beta is not None:
            checks.real("beta", self.beta, above=1.0)
        if self.weight is not None:
            checks.real("weight", self.weight, above=0.0)

    def value(
        self, model: Model, numbers: Mapping[str, Any], theta: Theta, record: Mapping[str, jax.Array]
    ) -> jax.Array:
        import jax.numpy as jnp

        b = numbers["beta"] - 1
        distribution = observation(model, theta, record)
        fused = power_integral(distribution).loss
        outcome = getattr(model, "outcome", "y")
        if fused is not None and outcome in model.record_shapes:
            return numbers["weight"] * fused(distribution, record[outcome], b)
        fit = -jnp.expm1(b * model.log_density(theta, record)) / b
        integral = jnp.exp(log_power_integral(distribution, b))
        return numbers["weight"] * (fit + jnp.sum(integral) / (1 + b))

    def range(self, model: Model) -> Bound:
        numbers = self.numbers
        return Bound(
            numbers["weight"] * beta_range(model, numbers["beta"] - 1),
            certificate(model, "density", "the beta-divergence").evidence,
        )

    def slope(self, model: Model) -> Bound:
        from discreet.models.slopes import beta_slope

        numbers = self.numbers
        found = beta_slope(model, numbers["beta"] - 1)
        return Bound(numbers["weight"] * found.value, found.evidence)


def beta_range(model: Model, b: float) -> float:
    """The range of the beta-loss at weight 1: M^b (1/b + spread/(1+b)), rounded up."""
    return math.exp(min(log_beta_range(model, b), 700.0))


def log_beta_range(model: Model, b: float) -> float:
    """Log of `beta_range`, which may be too large for a float."""
    peak = certificate(model, "density", "the beta-divergence").value
    return b * math.log(peak) + math.log(1 / b + integral_spread(model) / (1 + b)) + math.log(_ROUNDING)


@singledispatch
def integral_spread(model: Model) -> float:
    """0 if it is proved that the integral adds nothing to the range, otherwise 1."""
    bound = model.bounds.get("integral_spread")
    return bound.value if bound is not None else 1.0


@integral_spread.register(LogisticRegression)
def _(model: LogisticRegression) -> float:  # noqa: ARG001
    return 0.0


@dataclass(frozen=True)
class Gibbs(Loss):
    """Minus the log-likelihood times a weight; 1 is Bayes.

    Args:
        weight: positive, or None to let the plan choose.

    References: Wang, Fienberg & Smola 2015; Minami et al. 2016.
    """

    weight: float | None = None

    def __post_init__(self) -> None:
        if self.weight is not None:
            checks.real("weight", self.weight, above=0.0)

    def value(
        self, model: Model, numbers: Mapping[str, Any], theta: Theta, record: Mapping[str, jax.Array]
    ) -> jax.Array:
        return -numbers["weight"] * model.log_density(theta, record)

    def range(self, model: Model) -> Bound:
        bound = certificate(model, "log_density", "a bounded-range price of the log-likelihood")
        return Bound(self.numbers["weight"] * _log_range(model, bound.value), bound.evidence)


@dataclass(frozen=True)
class ClippedGibbs(Loss):
    """Minus the log-likelihood clipped to [-bound, bound], times a weight.

    Args:
        bound: B, positive.
        weight: positive, or None to let the plan choose.

    Guarantee:
        Its range is w (B + min(B, log M)), at most 2 w B.

    References: Wang, Fienberg & Smola 2015, Theorem 1.
    """

    bound: float
    weight: float | None = None

    def __post_init__(self) -> None:
        checks.real("bound", self.bound, above=0.0)
        if self.weight is not None:
            checks.real("weight", self.weight, above=0.0)

    def value(
        self, model: Model, numbers: Mapping[str, Any], theta: Theta, record: Mapping[str, jax.Array]
    ) -> jax.Array:
        import jax.numpy as jnp

        clipped = jnp.clip(model.log_density(theta, record), -numbers["bound"], numbers["bound"])
        return -numbers["weight"] * clipped

    def range(self, model: Model) -> Bound:
        evidence = Evidence.proved(f"log densities are clipped to [-{self.bound:g}, {self.bound:g}]", PAGE)
        return Bound(self.numbers["weight"] * _log_range(model, self.bound), evidence)


def _log_range(model: Model, bound: float) -> float:
    """Sup minus inf of a log density within +-bound, and below log M where M is known."""
    peak = model.bounds.get("density")
    top = bound if peak is None else min(bound, math.log(peak.value))
    return max(bound + top, 0.0)
