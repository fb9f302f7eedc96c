"""Yes or no with a beta prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy import special

from discreet import privacy
from discreet.models.base import Records, Theta
from discreet.models.families.base import Array, ConjugateFamily, FamilyDraws, log_gamma_draws
from discreet.privacy import Guarantee, checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class BetaBernoulli(ConjugateFamily):
    """P(x = 1) = probability, with probability ~ Beta(successes, failures).

    Records are {"x": 0 or 1}. Natural parameters: eta = (successes, successes +
    failures), theta the log odds, A = log(1 + e^theta).

    Args:
        prior: (successes, failures), both positive.

    Guarantee:
        The supremum over all neighbours is exact: docs/proofs/conjugate_posteriors.md.

    References: Geumlek, Song & Chaudhuri 2017, Section 3 and Corollaries 1, 2.

    Example:
        >>> model = BetaBernoulli(prior=(6, 12))
        >>> f"{model.guarantee(100).renyi(2.0):.4f}"
        '0.1913'
    """

    prior: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        a, b = self.prior
        checked = checks.real("successes", a, above=0.0), checks.real("failures", b, above=0.0)
        object.__setattr__(self, "prior", checked)

    # --- densities ---------------------------------------------------------------

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"log_odds": ()}

    def log_prior(self, theta: Theta) -> jax.Array:
        import jax

        (a, b), t = self.prior, theta["log_odds"]
        return a * jax.nn.log_sigmoid(t) + b * jax.nn.log_sigmoid(-t)

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        import jax

        return jax.nn.log_sigmoid((2 * record["x"] - 1) * theta["log_odds"])

    def constrain(self, theta: Theta) -> Theta:
        import jax

        return {"probability": jax.nn.sigmoid(theta["log_odds"])}

    def admit(self, records: Records) -> Records:
        odd = int(np.count_nonzero((records["x"] != 0) & (records["x"] != 1)))
        if odd:
            raise ValueError(f"field x must be 0 or 1, got others in {odd} records; recode it")
        return records

    # --- the family --------------------------------------------------------------

    @property
    def prior_eta(self) -> Array:
        a, b = self.prior
        return np.array([a, a + b])

    def with_prior(self, eta: Array) -> Self:
        return type(self)(prior=(float(eta[0]), float(eta[1] - eta[0])))

    def statistic(self, records: Records) -> Array:
        return records["x"][:, None]

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        return np.array([0.0]), np.array([1.0])

    @property
    def difference_vertices(self) -> Array:
        return np.array([[-1.0], [1.0]])

    def contains(self, eta: Array) -> bool:
        return bool(0 < eta[0] < eta[1])

    def log_normaliser(self, eta: Array) -> float:
        return float(special.betaln(eta[0], eta[1] - eta[0])) if self.contains(eta) else np.inf

    def gradient(self, eta: Array) -> Array:
        a, b = eta[0], eta[1] - eta[0]
        return np.array(
            [special.digamma(a) - special.digamma(b), special.digamma(b) - special.digamma(a + b)]
        )

    def hessian(self, eta: Array) -> Array:
        a, b, both = special.polygamma(1, [eta[0], eta[1] - eta[0], eta[1]])
        return np.array([[a + b, -b], [-b, b - both]])

    def sufficient(self, draws: FamilyDraws) -> Array:
        t = draws["log_odds"]
        return np.stack([t, -np.logaddexp(0, t)], axis=1)

    def draw(self, eta: Array, generator: np.random.Generator, draws: int) -> FamilyDraws:
        log_a, log_b = (log_gamma_draws(s, generator, draws) for s in (eta[0], eta[1] - eta[0]))
        return {"probability": special.expit(log_a - log_b), "log_odds": log_a - log_b}

    def mean_statistic(self, draws: FamilyDraws) -> Array:
        return draws["probability"][:, None]

    def guarantee(self, size: int, *, weight: float = 1.0, concentration: float = 1.0) -> Guarantee:
        a, b = (value / concentration for value in self.prior)
        return privacy.beta_bernoulli(a, b, size, weight=weight)
