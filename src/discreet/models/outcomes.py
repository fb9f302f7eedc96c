"""What several models say of their outcomes and priors."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from discreet.models.base import Bound, Records
from discreet.privacy import Evidence

PAGE = "docs/proofs/beta_divergence.md"


def probability() -> dict[str, Bound]:
    """The certificates of a discrete outcome."""
    return {
        "density": Bound(1.0, Evidence.proved("a probability is at most 1", "discrete outcome")),
        "integral_spread": Bound(0.0, Evidence.proved("the outcome is discrete", f"{PAGE} Lemma 1")),
    }


def normal_outcome(lower_variance: float) -> dict[str, Bound]:
    """The certificates of a normal outcome whose variance is bounded below."""
    peak = 1 / math.sqrt(2 * math.pi * lower_variance)
    why = Evidence.proved(
        f"the density is at most {peak:.4g}", f"the variance is at least {lower_variance:g} by construction"
    )
    return {
        "density": Bound(peak, why),
        "integral_spread": Bound(0.0, Evidence.proved("the outcome is normal", f"{PAGE} Lemma 2")),
    }


def gaussian_prior(precision: float) -> dict[str, Bound]:
    """The certificate of a Gaussian prior on all parameters."""
    page = "docs/proofs/strongly_convex_posterior.md"
    why = Evidence.proved("the prior is Gaussian with this precision", page)
    return {"prior_convexity": Bound(precision, why)}


def gaussian_draws(
    shapes: Mapping[str, tuple[int, ...]], precision: float, generator: np.random.Generator, draws: int
) -> Records:
    """Draws from a Gaussian prior on all parameters."""
    return {
        name: generator.standard_normal((draws, *shape)) / math.sqrt(precision)
        for name, shape in shapes.items()
    }


def binary(records: Records) -> Records:
    """Refuse an outcome that is not 0 or 1."""
    return categories(records, 2)


def categories(records: Records, number: int) -> Records:
    """Refuse an outcome that is not one of 0, 1, ..., number - 1."""
    y = records["y"]
    odd = int(np.count_nonzero((y != np.floor(y)) | (y < 0) | (y >= number)))
    if odd:
        allowed = "0 or 1" if number == 2 else f"a whole number from 0 to {number - 1}"
        raise ValueError(f"field y must be {allowed}, got others in {odd} records; recode the outcome")
    return records


def counts(records: Records) -> Records:
    """Refuse an outcome that is not a count."""
    y = records["y"]
    odd = int(np.count_nonzero((y != np.floor(y)) | (y < 0)))
    if odd:
        raise ValueError(
            f"field y must be a whole number of at least 0, got others in {odd} records; recode it"
        )
    return records


def row_norms(x: np.ndarray) -> np.ndarray:
    """Euclidean norms of rows; a row too long for a float has norm infinity, and no warning tells of it."""
    with np.errstate(over="ignore"):
        return np.linalg.norm(x, axis=1)


def shorten(x: np.ndarray, row_norm: float) -> np.ndarray:
    """Rows scaled down to the bound where they are longer."""
    norms = row_norms(x)
    outside = norms > row_norm
    # The last factor keeps a rounded norm from exceeding the bound by an ulp.
    factor = np.where(outside, row_norm / np.maximum(norms, row_norm) * (1 - 1e-15), 1.0)
    return x * factor[:, None]
