"""One of several categories with a Dirichlet prior."""

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
class DirichletCategorical(ConjugateFamily):
    """P(x = k) = probabilities[k], with probabilities ~ Dirichlet(prior).

    Records are {"x": 0, .., K - 1}. Natural parameters: eta = (prior[0], ..,
    prior[K - 2], sum of prior), theta the log ratios to the last category.

    Args:
        prior: one positive concentration per category, two at least.

    Guarantee:
        The supremum over all neighbours is exact: docs/proofs/conjugate_posteriors.md.

    References: Geumlek, Song & Chaudhuri 2017, Corollary 2.

    Example:
        >>> model = DirichletCategorical(prior=(6, 12, 12))
        >>> model.guarantee(100).epsilon(1e-6) == model.guarantee(10_000).epsilon(1e-6)
        True
    """

    prior: tuple[float, ...] = (1.0, 1.0)

    def __post_init__(self) -> None:
        if len(self.prior) < 2:
            raise ValueError(
                f"prior must have 2 categories at least, got {len(self.prior)}; add the missing ones"
            )
        checked = tuple(checks.real("prior", value, above=0.0) for value in self.prior)
        object.__setattr__(self, "prior", checked)

    # --- densities ---------------------------------------------------------------

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"log_ratios": (len(self.prior) - 1,)}

    def log_prior(self, theta: Theta) -> jax.Array:
        return (_log_probabilities(theta["log_ratios"]) * np.array(self.prior)).sum()

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return _log_probabilities(theta["log_ratios"])[record["x"].astype("int32")]

    def constrain(self, theta: Theta) -> Theta:
        import jax.numpy as jnp

        return {"probabilities": jnp.exp(_log_probabilities(theta["log_ratios"]))}

    def admit(self, records: Records) -> Records:
        x, k = records["x"], len(self.prior)
        odd = int(np.count_nonzero((x != np.floor(x)) | (x < 0) | (x >= k)))
        if odd:
            raise ValueError(
                f"field x must be a whole number from 0 to {k - 1}, got others in {odd} records; "
                "recode it, or declare more categories"
            )
        return records

    # --- the family --------------------------------------------------------------

    @property
    def prior_eta(self) -> Array:
        return np.array([*self.prior[:-1], sum(self.prior)])

    def with_prior(self, eta: Array) -> Self:
        return type(self)(prior=tuple(_concentrations(eta).tolist()))

    def statistic(self, records: Records) -> Array:
        return (records["x"][:, None] == np.arange(len(self.prior) - 1)).astype(np.float64)

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        return np.zeros(len(self.prior) - 1), np.ones(len(self.prior) - 1)

    def measured(self, records: Records) -> Array:
        return (records["x"][:, None] == np.arange(len(self.prior))).astype(np.float64)

    @property
    def measured_range(self) -> tuple[Array, Array]:
        return np.zeros(len(self.prior)), np.ones(len(self.prior))

    @property
    def movable(self) -> int:
        return 2

    def project(self, measured: Array, size: int) -> Array:
        # The nearest counts that are non-negative and add up to size (Duchi et al. 2008).
        falling = -np.sort(-measured)
        excess = (np.cumsum(falling) - size) / np.arange(1, len(measured) + 1)
        return np.maximum(measured - excess[falling > excess][-1], 0.0)[:-1]

    @property
    def difference_vertices(self) -> Array:
        k = len(self.prior)
        unit = np.eye(k)[:, :-1]
        return np.array([unit[i] - unit[j] for i in range(k) for j in range(k) if i != j])

    def contains(self, eta: Array) -> bool:
        return bool(np.all(_concentrations(eta) > 0))

    def log_normaliser(self, eta: Array) -> float:
        if not self.contains(eta):
            return np.inf
        return float(special.gammaln(_concentrations(eta)).sum() - special.gammaln(eta[-1]))

    def gradient(self, eta: Array) -> Array:
        a = special.digamma(_concentrations(eta))
        return np.array([*(a[:-1] - a[-1]), a[-1] - special.digamma(eta[-1])])

    def hessian(self, eta: Array) -> Array:
        a, total = special.polygamma(1, _concentrations(eta)), special.polygamma(1, eta[-1])
        result = np.diag([*a[:-1], -total])
        # The last concentration is eta[-1] minus the others.
        direction = np.array([*(-np.ones(len(a) - 1)), 1.0])
        return result + a[-1] * np.outer(direction, direction)

    def sufficient(self, draws: FamilyDraws) -> Array:
        ratios = draws["log_ratios"]
        padded = np.concatenate([ratios, np.zeros((len(ratios), 1))], axis=1)
        return np.concatenate([ratios, -special.logsumexp(padded, axis=1, keepdims=True)], axis=1)

    def draw(self, eta: Array, generator: np.random.Generator, draws: int) -> FamilyDraws:
        concentrations = _concentrations(eta)
        logs = log_gamma_draws(concentrations.T, generator, (draws, len(concentrations)))
        return {
            "probabilities": special.softmax(logs, axis=1),
            "log_ratios": logs[:, :-1] - logs[:, -1:],
        }

    def mean_statistic(self, draws: FamilyDraws) -> Array:
        return draws["probabilities"][:, :-1]

    def guarantee(self, size: int, *, weight: float = 1.0, concentration: float = 1.0) -> Guarantee:
        prior = [value / concentration for value in self.prior]
        if len(prior) == 2:
            return privacy.beta_bernoulli(prior[0], prior[1], size, weight=weight)
        return privacy.dirichlet_categorical(prior, weight=weight)


def _concentrations(eta: Array) -> Array:
    return np.array([*eta[:-1], eta[-1] - eta[:-1].sum(axis=0)])


def _log_probabilities(ratios: jax.Array) -> jax.Array:
    import jax
    import jax.numpy as jnp

    return jax.nn.log_softmax(jnp.append(ratios, 0.0))
