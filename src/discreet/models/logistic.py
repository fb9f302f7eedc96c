"""Logistic regression with a Gaussian prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.outcomes import gaussian_draws, row_norms
from discreet.privacy import Evidence, checks

if TYPE_CHECKING:
    import jax


class OutOfRange(StrEnum):
    """What happens to a record outside the declared domain."""

    CLIP = "clip"
    """It is moved to the nearest admissible record."""

    REFUSE = "refuse"
    """The table is refused, with the number of such records and no value."""


@dataclass(frozen=True)
class LogisticRegression(Model):
    """P(y = 1 | x) = 1 / (1 + exp(-x . w)) with w ~ N(0, I / prior_precision).

    Records are {"x": features, "y": 0 or 1}. There is no separate intercept: add a
    constant feature, which counts towards the norm.

    Args:
        features: length of x.
        row_norm: public bound c on the Euclidean norm of a row, enforced.
        prior_precision: of each coefficient.
        out_of_range: "clip" scales a longer row down to the bound; "refuse" stops.

    Guarantee:
        The log density of one record is c-Lipschitz in w, the difference of two
        records' is 2c-Lipschitz, and minus the log prior is prior_precision-strongly
        convex (docs/proofs/strongly_convex_posterior.md).
    """

    features: int
    row_norm: float = 1.0
    prior_precision: float = 1.0
    out_of_range: OutOfRange = OutOfRange.CLIP

    def __post_init__(self) -> None:
        checks.integer("features", self.features, at_least=1)
        checks.real("row_norm", self.row_norm, above=0.0)
        checks.real("prior_precision", self.prior_precision, above=0.0)
        object.__setattr__(self, "out_of_range", OutOfRange(self.out_of_range))

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": (self.features,), "y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"w": (self.features,)}

    def log_prior(self, theta: Theta) -> jax.Array:
        return -0.5 * self.prior_precision * (theta["w"] ** 2).sum()

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        return gaussian_draws(self.parameter_shapes, self.prior_precision, generator, draws)

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        import jax

        signed = (2 * record["y"] - 1) * (record["x"] @ theta["w"])
        return jax.nn.log_sigmoid(signed)

    @property
    def bounds(self) -> dict[str, Bound]:
        c, page = self.row_norm, "docs/proofs/strongly_convex_posterior.md"
        norm = Evidence.proved(f"row norms are at most {c:g}", "enforced before use")
        return {
            "density": Bound(1.0, Evidence.proved("a probability is at most 1", "discrete outcome")),
            "lipschitz": Bound(c, norm),
            "lipschitz_difference": Bound(2 * c, norm),
            "smoothness": Bound(c**2 / 4, norm),
            "prior_convexity": Bound(
                self.prior_precision, Evidence.proved("the prior is Gaussian with this precision", page)
            ),
        }

    def admit(self, records: Records) -> Records:
        x, y = records["x"], records["y"]
        odd = int(np.count_nonzero((y != 0) & (y != 1)))
        if odd:
            raise ValueError(f"field y must be 0 or 1, got others in {odd} records; recode the outcome")
        norms = row_norms(x)
        outside = norms > self.row_norm
        if self.out_of_range is OutOfRange.REFUSE and outside.any():
            raise ValueError(
                f"field x must have row norms of at most {self.row_norm:g}, got longer rows in "
                f"{int(outside.sum())} records; rescale with public bounds, or choose out_of_range='clip'"
            )
        # The last factor keeps a rounded norm from exceeding the bound by an ulp.
        factor = np.where(outside, self.row_norm / np.maximum(norms, self.row_norm) * (1 - 1e-15), 1.0)
        return {"x": x * factor[:, None], "y": y}
