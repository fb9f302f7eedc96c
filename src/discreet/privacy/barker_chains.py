"""The functions by which the guarantee of a chain with Barker's test is made."""

from __future__ import annotations

import math
from typing import Literal, overload

from discreet.privacy import basic, checks
from discreet.privacy.barker import BarkerBatch, BarkerBatchPublished, BarkerBatchRenyi
from discreet.privacy.comparison import Approximation, as_published
from discreet.privacy.constructors import classical_epsilon, counted
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.subsampled import WithoutReplacement

_BARKER = {"exact": BarkerBatch, "tight": BarkerBatchRenyi, "as_published": BarkerBatchPublished}


@overload
def barker(
    batch: int,
    size: int,
    steps: int,
    tempered_size: int | None = None,
    *,
    bound: Literal["exact", "tight"] = "exact",
    variance: float = 2.0,
    clip: float = 1.0,
) -> Guarantee: ...
@overload
def barker(
    batch: int,
    size: int,
    steps: int,
    tempered_size: int | None = None,
    *,
    bound: Literal["as_published"],
    variance: float = 2.0,
    clip: float = 1.0,
) -> Approximation: ...
def barker(
    batch: int,
    size: int,
    steps: int,
    tempered_size: int | None = None,
    *,
    bound: Literal["exact", "tight", "as_published"] = "exact",
    variance: float = 2.0,
    clip: float = 1.0,
) -> Guarantee | Approximation:
    """DP-MCMC with the subsampled Barker test, under substitution (paper M, Theorem 2).

    Log-likelihood ratios are clipped to clip * sqrt(batch) / size, or / tempered_size
    for a tempered posterior. The privacy cost does not depend on the tempering,
    which only changes what is clipped.

    Args:
        batch: records in a minibatch, drawn without replacement.
        size: records in all.
        steps: accepted or rejected moves; each is billed.
        tempered_size: N0 of the tempered posterior, at most `size`.
        bound: "exact" is the supremum of the privacy profile over the allowed set
            (ERRATA S1), "tight" the Renyi bound of ERRATA 11. "as_published" is
            printed for comparison and is not a guarantee.
        variance: C, the variance of the normal part of the test, below pi^2 / 3.
        clip: kappa, the clipping factor, with kappa^2 < C.

    References: Heikkila et al. 2019; docs/proofs/barker.md.

    Example:
        >>> f"{barker(1000, 100_000, 5000).epsilon(1e-5):.3f}"
        '0.150'
    """
    checks.integer("batch", batch, at_least=2, at_most=checks.integer("size", size, at_least=2))
    checks.integer("steps", steps, at_least=0)
    if tempered_size is not None:
        checks.integer("tempered_size", tempered_size, at_least=1, at_most=size)
    checks.real("variance", variance, above=0.0, below=math.pi**2 / 3)
    checks.real("clip", clip, above=0.0)
    if clip**2 >= variance:
        raise ValueError(
            f"clip must have a square below variance {variance:g}, got {clip!r}; "
            "clip harder or raise variance"
        )
    if bound not in _BARKER:
        raise ValueError(f"bound must be one of {', '.join(_BARKER)}, got {bound!r}; the default is exact")
    piece = _BARKER[bound](Neighbours.SUBSTITUTE, batch, variance, clip)
    result = counted(WithoutReplacement(Neighbours.SUBSTITUTE, piece, batch / size), steps)
    if bound == "as_published":
        if (variance, clip) != (2.0, 1.0):
            raise ValueError(
                f"as_published is printed for variance 2 and clip 1, got {variance:g} and {clip:g}; use exact"
            )
        return as_published("Barker test as published", lambda delta: classical_epsilon(result, delta))
    return result


def barker_full_data(ratio_bound: float, steps: int, *, variance: float = 2.0) -> Guarantee:
    """DP-MCMC with the Barker test on all records, under substitution (paper M, Theorem 1).

    Args:
        ratio_bound: B, the bound on |log p(x|theta') - log p(x|theta)| of one record.
        steps: accepted or rejected moves.
        variance: C, the variance of the normal part of the test, below pi^2 / 3.
    """
    checks.real("ratio_bound", ratio_bound, at_least=0.0)
    checks.integer("steps", steps, at_least=0)
    checks.real("variance", variance, above=0.0, below=math.pi**2 / 3)
    return counted(basic.Gaussian(Neighbours.SUBSTITUTE, 2 * ratio_bound / math.sqrt(variance)), steps)
