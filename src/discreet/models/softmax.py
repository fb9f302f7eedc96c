"""Softmax (multinomial logistic) regression with a Gaussian prior."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.outcomes import categories, gaussian_draws, gaussian_prior, probability, shorten
from discreet.privacy import Evidence, checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class SoftmaxRegression(Model):
    """P(y = k | x) proportional to exp(x . w_k), with entries of w ~ N(0, 1 / prior_precision).

    Records are {"x": features, "y": 0, 1, ..., classes - 1}.

    Args:
        features: length of x.
        classes: number of categories, at least 2.
        row_norm: public bound c on the Euclidean norm of a row; longer rows are
            scaled down to it.
        prior_precision: of each coefficient.

    Guarantee:
        The gradient of a log density is (e_y - p) x, no longer than sqrt(2) c, and
        two of them differ by at most 2 sqrt(2) c. The log density is concave.
    """

    features: int
    classes: int
    row_norm: float = 1.0
    prior_precision: float = 1.0

    def __post_init__(self) -> None:
        checks.integer("features", self.features, at_least=1)
        checks.integer("classes", self.classes, at_least=2)
        checks.real("row_norm", self.row_norm, above=0.0)
        checks.real("prior_precision", self.prior_precision, above=0.0)

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": (self.features,), "y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"w": (self.features, self.classes)}

    @property
    def typical_density(self) -> float:
        """The probability of one category when all are alike."""
        return 1 / self.classes

    def log_prior(self, theta: Theta) -> jax.Array:
        return -0.5 * self.prior_precision * (theta["w"] ** 2).sum()

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        return gaussian_draws(self.parameter_shapes, self.prior_precision, generator, draws)

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        import jax
        import jax.numpy as jnp

        logs = jax.nn.log_softmax(record["x"] @ theta["w"])
        return jnp.sum(jnp.where(jnp.arange(self.classes) == record["y"], logs, 0.0))

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        import numpyro.distributions as dist

        return dist.CategoricalLogits(record["x"] @ theta["w"], validate_args=False)

    @property
    def bounds(self) -> dict[str, Bound]:
        slope = math.sqrt(2) * self.row_norm
        norm = Evidence.proved(f"row norms are at most {self.row_norm:g}", "enforced before use")
        return {
            **probability(),
            **gaussian_prior(self.prior_precision),
            "lipschitz": Bound(slope, norm),
            "lipschitz_difference": Bound(2 * slope, norm),
            "smoothness": Bound(self.row_norm**2 / 2, norm),
        }

    def admit(self, records: Records) -> Records:
        records = categories(records, self.classes)
        return {"x": shorten(records["x"], self.row_norm), "y": records["y"]}
