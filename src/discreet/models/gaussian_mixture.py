"""The two-component Gaussian mixture on which private and minibatch MCMC are compared.

Written with `jax.lax`: a chain compiles its model anew in every process, and tracing
`jax.numpy` takes twice as long.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.models._logarithm import log_one_plus, two_artanh
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
        from jax import lax

        first, second = self.prior_variances
        a, b = _parts(theta["theta"])
        return lax.add(lax.mul(lax.square(a), -0.5 / first), lax.mul(lax.square(b), -0.5 / second))

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        return {"theta": generator.standard_normal((draws, 2)) * np.sqrt(self.prior_variances)}

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        larger, quotient = self._larger(theta, record)
        return larger + log_one_plus(quotient) - 0.5 * math.log(8 * math.pi * self.variance)

    def log_ratio(self, candidate: Theta, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        from jax import lax

        (high, e), (low, f) = (self._larger(at, record) for at in (candidate, theta))
        # log(1 + e) - log(1 + f) = 2 artanh((e - f) / (2 + e + f)): one division and one series for both.
        z = lax.div(lax.sub(e, f), lax.add(lax.add(e, f), 2.0))
        return lax.add(lax.sub(high, low), two_artanh(z))

    def _larger(self, theta: Theta, record: Mapping[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """The larger component's log density, up to a constant, and the other's density over it."""
        from jax import lax

        first, second = _parts(theta["theta"])
        left = lax.sub(record["x"], first)
        near, far = (
            lax.mul(lax.square(away), -0.5 / self.variance) for away in (left, lax.sub(left, second))
        )
        return lax.max(near, far), lax.exp(lax.neg(lax.abs(lax.sub(near, far))))

    @property
    def bounds(self) -> dict[str, Bound]:
        highest = 1 / math.sqrt(2 * math.pi * self.variance)
        return {
            "density": Bound(
                highest, Evidence.proved(f"the density is at most {highest:.4g}", "its components' are")
            )
        }


def _parts(theta: jax.Array) -> tuple[jax.Array, jax.Array]:
    """t1 and t2."""
    from jax import lax

    first, second = lax.split(theta, (1, 1))
    return lax.squeeze(first, (0,)), lax.squeeze(second, (0,))
