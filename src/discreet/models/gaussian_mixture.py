"""The two-component Gaussian mixture on which private and minibatch MCMC are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.models.base import Bound, Model, Records, Theta
from discreet.privacy import Evidence, checks

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class GaussianMixture(Model):
    """x ~ N(t1, v)/2 + N(t1 + t2, v)/2 with t1 ~ N(0, prior_variances[0]), t2 ~ N(0, prior_variances[1]).

    Records are {"x": number}, parameters {"theta": (t1, t2)}. The posterior has two
    modes, (a, b) and (a + b, -b).

    Args:
        variance: v, of each component.
        prior_variances: of t1 and t2.

    Guarantee:
        The density of a record is at most 1 / sqrt(2 pi v). Nothing bounds the log
        density of a far record, so mechanisms that need such a bound clip.

    References: Welling & Teh 2011; Seita et al. 2017; Heikkila et al. 2019, Section 4.
    """

    variance: float = 2.0
    prior_variances: tuple[float, float] = (10.0, 1.0)

    def __post_init__(self) -> None:
        checks.real("variance", self.variance, above=0.0)
        if len(self.prior_variances) != 2:
            raise ValueError(
                f"prior_variances must be two positive numbers, got {len(self.prior_variances)} numbers; "
                "give one for t1 and one for t2"
            )
        first, second = (checks.real("prior_variances", v, above=0.0) for v in self.prior_variances)
        object.__setattr__(self, "prior_variances", (first, second))

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"theta": (2,)}

    def log_prior(self, theta: Theta) -> jax.Array:
        first, second = self.prior_variances
        t = theta["theta"]
        return -0.5 * (t[0] ** 2 / first + t[1] ** 2 / second)

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        return {"theta": generator.standard_normal((draws, 2)) * np.sqrt(self.prior_variances)}

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        import jax.numpy as jnp

        t, x, v = theta["theta"], record["x"], self.variance
        near, far = -0.5 * (x - t[0]) ** 2 / v, -0.5 * (x - t[0] - t[1]) ** 2 / v
        # The logarithm's argument is between 1 and 2, where log(1 + e) is as good as log1p(e), and faster.
        both = jnp.maximum(near, far) + jnp.log(1 + jnp.exp(-jnp.abs(near - far)))
        return both - 0.5 * math.log(8 * math.pi * v)

    @property
    def bounds(self) -> dict[str, Bound]:
        highest = 1 / math.sqrt(2 * math.pi * self.variance)
        return {
            "density": Bound(
                highest, Evidence.proved(f"the density is at most {highest:.4g}", "its components' are")
            )
        }
