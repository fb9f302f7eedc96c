"""Regressions whose response is bounded: canonical links, where one record's score is bounded too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.families.base import Array, clip_or_refuse
from discreet.models.logistic import OutOfRange
from discreet.models.outcomes import gaussian_prior, row_norms, shorten
from discreet.privacy import Evidence, checks

if TYPE_CHECKING:
    import jax

PAGE = "docs/proofs/glm_posteriors.md#bounded"
_NODES = 100


@dataclass(frozen=True)
class BoundedRegression(Model):
    """p(y | x) = h(y) exp(y t - A(t)) with t = x . w, y in [0, largest], and w ~ N(0, I / prior_precision).

    Records are {"x": features, "y": the response}. Add a constant feature for an
    intercept; it counts towards the norm.

    Args:
        features: length of x.
        largest: public bound on the response, a part of the model.
        row_norm: public bound c on the Euclidean norm of a row, enforced.
        prior_precision: of each coefficient.
        out_of_range: "clip" scales a longer row down and moves a response to the
            nearest bound; "refuse" stops.

    Guarantee:
        A' is a mean of y, so that the gradient of one record's log density has norm at
        most c * largest, two records' gradients differ by at most twice that, and the
        log density is concave (docs/proofs/glm_posteriors.md#bounded).
    """

    features: int
    largest: float
    row_norm: float = 1.0
    prior_precision: float = 1.0
    out_of_range: OutOfRange = OutOfRange.CLIP

    def __post_init__(self) -> None:
        checks.integer("features", self.features, at_least=1)
        checks.real("largest", self.largest, above=0.0)
        checks.real("row_norm", self.row_norm, above=0.0)
        checks.real("prior_precision", self.prior_precision, above=0.0)
        object.__setattr__(self, "out_of_range", OutOfRange(self.out_of_range))

    @property
    @abstractmethod
    def base_measure(self) -> tuple[Array, Array]:
        """Responses in [0, largest], and the logarithms of their masses, which define A."""

    @abstractmethod
    def log_base(self, y: jax.Array) -> jax.Array:
        """Log h(y), up to a constant."""

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": (self.features,), "y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"w": (self.features,)}

    def log_prior(self, theta: Theta) -> jax.Array:
        return -0.5 * self.prior_precision * (theta["w"] ** 2).sum()

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        import jax

        t = record["x"] @ theta["w"]
        nodes, log_masses = self.base_measure
        partition = jax.nn.logsumexp(jax.numpy.asarray(log_masses) + jax.numpy.asarray(nodes) * t)
        return record["y"] * t - partition + self.log_base(record["y"])

    @property
    def bounds(self) -> dict[str, Bound]:
        slope = self.row_norm * self.largest
        norm = Evidence.proved(
            f"row norms are at most {self.row_norm:g}, responses between 0 and {self.largest:g}",
            "enforced before use",
        )
        return {
            "lipschitz": Bound(slope, norm),
            "lipschitz_difference": Bound(2 * slope, norm),
            "smoothness": Bound(slope**2 / 4, norm),
            **gaussian_prior(self.prior_precision),
        }

    def admit(self, records: Records) -> Records:
        clip = self.out_of_range is OutOfRange.CLIP
        y = clip_or_refuse("y", records["y"], 0.0, self.largest, clip=clip)
        x = shorten(records["x"], self.row_norm)
        longer = int(np.count_nonzero(row_norms(records["x"]) > self.row_norm))
        if longer and not clip:
            raise ValueError(
                f"field x must have row norms of at most {self.row_norm:g}, got longer rows in {longer} "
                "records; rescale with public bounds, or choose out_of_range='clip'"
            )
        return {"x": x, "y": y}


@dataclass(frozen=True)
class TruncatedPoissonRegression(BoundedRegression):
    """Counts up to `largest`: P(y) proportional to exp(y x . w) / y!, the Poisson law cut off on the right.

    Where the rate exp(x . w) is far below `largest` this is Poisson regression; above,
    its mean approaches `largest` instead of growing without bound.

    Example:
        >>> from discreet.mechanisms import DiffusedPosterior
        >>> from discreet.privacy import Budget
        >>> model = TruncatedPoissonRegression(features=2, largest=5, prior_precision=10)
        >>> plan = DiffusedPosterior(model).plan(n=1000, budget=Budget(1.0, 1e-6))
        >>> f"{plan.parameters['weight']:.4f}"
        '0.0749'
    """

    @property
    def base_measure(self) -> tuple[Array, Array]:
        y = np.arange(self.largest + 1)
        return y, -special.gammaln(y + 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("largest", self.largest, at_least=1, at_most=10_000)  # pyright: ignore[reportArgumentType] - it refuses floats

    def log_base(self, y: jax.Array) -> jax.Array:
        import jax

        return -jax.scipy.special.gammaln(y + 1)

    def admit(self, records: Records) -> Records:
        odd = int(np.count_nonzero((records["y"] != np.floor(records["y"])) | (records["y"] < 0)))
        if odd:
            raise ValueError(
                f"field y must be a whole number of at least 0, got others in {odd} records; recode it"
            )
        return super().admit(records)


@dataclass(frozen=True)
class TruncatedGammaRegression(BoundedRegression):
    """Positive numbers up to `largest`: density proportional to y^(shape - 1) exp(y x . w).

    The gamma law with canonical link, cut off on the right: for x . w well below 0 it is
    Gamma(shape) with mean shape / (-x . w); for others the cut keeps it normalisable.
    A is computed with 100 nodes of Gauss-Jacobi quadrature, whose measure lives on
    [0, largest] too, so that the guarantee does not rest on their accuracy, which is
    1e-11 while |x . w| is at most 300 / largest.

    Args:
        shape: of the gamma law; 1 is the exponential.
    """

    shape: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("shape", self.shape, above=0.0)

    @property
    def base_measure(self) -> tuple[Array, Array]:
        nodes, masses = special.roots_jacobi(_NODES, 0.0, self.shape - 1)
        scale = self.largest / 2
        return scale * (1 + nodes), np.log(masses) + self.shape * np.log(scale)

    def log_base(self, y: jax.Array) -> jax.Array:
        import jax.numpy as jnp

        return (self.shape - 1) * jnp.log(jnp.maximum(y, jnp.finfo(y.dtype).tiny))
