"""The functions by which a `Guarantee` is made: checked arguments in, one counted piece out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import cast

import numpy as np

from discreet.privacy import basic, checks
from discreet.privacy.conversion import classical
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.neighbours import Neighbours, as_neighbours
from discreet.privacy.pieces import Piece
from discreet.privacy.posterior import BetaBernoulli, DirichletCategorical
from discreet.privacy.routes import RenyiSum
from discreet.privacy.subsampled import PoissonGaussian, WithoutReplacement

Relation = Neighbours | str


def counted(piece: Piece, times: int = 1) -> Guarantee:
    """`times` applications of a piece."""
    return Guarantee(((piece, times),) if times else (), piece.neighbours)


def _bound(name: str, value: object) -> float:
    """A value of a curve, which may be infinite."""
    if isinstance(value, bool) or not isinstance(value, (Real, np.generic)):
        raise TypeError(
            f"{name} must give real numbers, got {type(value).__name__} {value!r}; check what it holds"
        )
    return float(cast("float", value))


def _require_function(name: str, value: object) -> None:
    if not callable(value):
        raise TypeError(
            f"{name} must be a function or a table, got {type(value).__name__} {value!r}; give one"
        )


def nothing(*, neighbours: Relation) -> Guarantee:
    """The guarantee of not looking at the data: epsilon 0."""
    return Guarantee((), as_neighbours(neighbours))


def pure(epsilon: float, *, neighbours: Relation) -> Guarantee:
    """epsilon-differential privacy.

    Example:
        >>> pure(0.5, neighbours="substitute").epsilon(0)
        0.5
    """
    return counted(basic.Pure(as_neighbours(neighbours), checks.real("epsilon", epsilon, at_least=0.0)))


def approximate(epsilon: float, delta: float, *, neighbours: Relation) -> Guarantee:
    """(epsilon, delta)-differential privacy, known at this one point."""
    return counted(
        basic.Approximate(
            as_neighbours(neighbours),
            checks.real("epsilon", epsilon, at_least=0.0),
            checks.real("delta", delta, at_least=0.0, below=1.0),
        )
    )


def bounded_range(width: float, *, neighbours: Relation) -> Guarantee:
    """A privacy loss that spans an interval of length `width` around 0.

    One draw of an exponential mechanism, or of a posterior. Also width-pure, but k
    of them compose four times better than k pure ones.

    References: Durfee & Rogers 2019; Dong, Durfee & Rogers 2020; ERRATA 4 and S6.
    """
    return counted(basic.BoundedRange(as_neighbours(neighbours), checks.real("width", width, at_least=0.0)))


def zcdp(rho: float, *, neighbours: Relation) -> Guarantee:
    """rho-zero-concentrated differential privacy (Bun & Steinke 2016)."""
    return counted(basic.ZCDP(as_neighbours(neighbours), checks.real("rho", rho, at_least=0.0)))


def gaussian(sigma: float, *, sensitivity: float = 1.0, neighbours: Relation) -> Guarantee:
    """N(0, sigma^2) noise in every coordinate of a quantity with L2 sensitivity `sensitivity`."""
    sigma = checks.real("sigma", sigma, above=0.0)
    sensitivity = checks.real("sensitivity", sensitivity, at_least=0.0)
    # What no float holds has no epsilon at any delta, and neither has 1e300.
    return counted(basic.Gaussian(as_neighbours(neighbours), min(sensitivity / sigma, 1e300)))


def laplace(scale: float, *, sensitivity: float = 1.0, neighbours: Relation) -> Guarantee:
    """Laplace noise of `scale` on one number with sensitivity `sensitivity`."""
    scale = checks.real("scale", scale, above=0.0)
    sensitivity = checks.real("sensitivity", sensitivity, at_least=0.0, at_most=min(1e307 * scale, 1e307))
    return counted(basic.Laplace(as_neighbours(neighbours), sensitivity / scale))


def normals(shift: float, sd_p: float, sd_q: float, *, neighbours: Relation) -> Guarantee:
    """Two normals, `shift` apart, of standard deviations `sd_p` and `sd_q`, in both orders.

    For mechanisms whose worst pair is this one.
    """
    return counted(
        basic.Normals(
            as_neighbours(neighbours),
            checks.real("shift", shift, at_least=0.0),
            checks.real("sd_p", sd_p, above=0.0),
            checks.real("sd_q", sd_q, above=0.0),
        )
    )


def renyi(curve: Callable[[float], float] | Mapping[float, float], *, neighbours: Relation) -> Guarantee:
    """A Renyi curve: the divergence bound at each order above 1.

    Args:
        curve: a function of the order, tabulated here at about 240 orders, or a
            table {order: divergence}. It must hold for both orders of every pair,
            and may be infinite from some order on.
        neighbours: the relation it was derived for.
    """
    if isinstance(curve, Mapping):
        given = cast("Mapping[float, float]", curve)
        table = {checks.real("order of curve", o, above=1.0): _bound("curve", v) for o, v in given.items()}
    else:
        _require_function("curve", curve)
        known = [1 + x for x in np.geomspace(1e-3, 1e5, 240).tolist()]
        table = {order: _bound("curve", curve(order)) for order in known}
    for order, value in table.items():
        if math.isnan(value) or value < 0:
            raise ValueError(
                f"curve must be non-negative and not NaN, got {value!r} at order {order:g}; check its domain"
            )
    finite = sorted((order, value) for order, value in table.items() if math.isfinite(value))
    if not finite:
        raise ValueError(
            "curve must be finite at one order above 1 at least, got none; "
            "a mechanism without one has no Renyi guarantee"
        )
    orders, values = zip(*finite, strict=True)
    return counted(basic.RenyiCurve(as_neighbours(neighbours), orders, values))


def profile(
    curve: Callable[[float], float] | Mapping[float, float],
    *,
    largest: float | None = None,
    neighbours: Relation,
) -> Guarantee:
    """A privacy profile: delta at each epsilon, over both orders of every pair.

    Args:
        curve: a function of epsilon >= 0, tabulated here at 2,000 points, or a
            table {epsilon: delta} that starts at 0.
        largest: the last epsilon to tabulate; needed for a function only.
        neighbours: the relation it was derived for.
    """
    if isinstance(curve, Mapping):
        given = cast("Mapping[float, float]", curve)
        named = (
            (checks.real("epsilon of curve", e, at_least=0.0), _bound("delta of curve", d))
            for e, d in given.items()
        )
        table = sorted(named)
    else:
        _require_function("curve", curve)
        if largest is None:
            raise ValueError(
                "largest must be given with a function, got None; name the last epsilon to tabulate"
            )
        grid = np.linspace(0.0, checks.real("largest", largest, above=0.0), 2001).tolist()
        table = [(e, _bound("curve", curve(e))) for e in grid]
    if len(table) < 2 or table[0][0] != 0:
        raise ValueError(
            f"curve must give delta at epsilon 0 and at one more point, got {len(table)} points; add them"
        )
    for epsilon, delta in table:
        checks.real(f"delta of curve at epsilon {epsilon:g}", delta, at_least=0.0, at_most=1.0)
    epsilons, deltas = zip(*table, strict=True)
    deltas = tuple(np.minimum.accumulate(deltas).tolist())
    return counted(basic.Profile(as_neighbours(neighbours), epsilons, deltas))


def inexact(distance: float, *, neighbours: Relation) -> Guarantee:
    """What to add when a sampler is only within `distance` of the analysed law in total variation.

    delta becomes delta + (1 + e^epsilon) distance (paper B, Proposition 2).
    """
    return Guarantee(
        (), as_neighbours(neighbours), checks.real("distance", distance, at_least=0.0, below=1.0)
    )


def poisson_gaussian(rate: float, sigma: float, steps: int = 1, *, neighbours: Relation) -> Guarantee:
    """DP-SGD and its kin: clipped sums over Poisson samples, with Gaussian noise.

    Args:
        rate: the probability that a record enters a step.
        sigma: noise standard deviation over the clipping norm (the same number
            under both relations; substitution moves the sum by twice the norm).
        steps: how many steps.
        neighbours: the relation.

    References: Abadi et al. 2016; Zhu, Dong & Wang 2022; docs/proofs/poisson_gaussian.md.

    Example:
        >>> run = poisson_gaussian(256 / 60000, 1.3, 3515, neighbours="add_remove")
        >>> f"{run.epsilon(1e-5):.3f}"
        '0.864'
    """
    checks.real("rate", rate, above=0.0, at_most=1.0)
    checks.real("sigma", sigma, above=0.0)
    checks.integer("steps", steps, at_least=0)
    return counted(PoissonGaussian(as_neighbours(neighbours), rate, sigma), steps)


def sampled_without_replacement(base: Guarantee, rate: float, steps: int = 1) -> Guarantee:
    """`base` run on a uniform sample without replacement of a `rate` of the records, `steps` times.

    Args:
        base: the guarantee of the mechanism for its sample, one piece, under
            substitution (the relation for which the amplification is proved). The
            mechanism must not depend on the order of its sample.
        rate: sample size over number of records.
        steps: how many times, each with a fresh sample.

    References: Balle, Barthe & Gaboardi 2018 (profile); Wang, Balle &
        Kasiviswanathan 2019 (Renyi); docs/proofs/without_replacement.md.
    """
    checks.real("rate", rate, above=0.0, at_most=1.0)
    checks.integer("steps", steps, at_least=0)
    if not isinstance(base, Guarantee):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"base must be a Guarantee, got {base!r}; make one with gaussian, laplace or pure")
    if base.neighbours is not Neighbours.SUBSTITUTE:
        raise ValueError(
            f"base must be a guarantee under substitution, got {base.neighbours}; "
            "sampling a fixed number of records makes that number public"
        )
    if len(base.pieces) != 1 or base.pieces[0][1] != 1 or base.inexactness > 0:
        raise ValueError(
            f"base must be one exact piece applied once, got {base.describe()!r}; "
            "amplify each piece by itself and add"
        )
    return counted(WithoutReplacement(Neighbours.SUBSTITUTE, base.pieces[0][0], rate), steps)


def strongly_convex_posterior(lipschitz: float, convexity: float, *, neighbours: Relation) -> Guarantee:
    """One draw from exp(-U) where neighbours change U by a Lipschitz function.

    Args:
        lipschitz: G, the Lipschitz constant of the difference of two neighbouring
            potentials. For logistic regression with row norms at most c and
            likelihood weight w: 2 c w under substitution, c w under add/remove.
        convexity: m, the strong convexity of every potential; the prior precision.
        neighbours: the relation `lipschitz` was derived for.

    Guarantee:
        Dominated by N(0, 1) against N(G / sqrt(m), 1).

    References: Gopi, Lee & Liu 2022, Theorem 4; Minami et al. 2016; paper R,
        Theorem 16, is the Renyi image of it; ERRATA S2.
    """
    checks.real("lipschitz", lipschitz, at_least=0.0)
    checks.real("convexity", convexity, above=0.0)
    return counted(basic.Gaussian(as_neighbours(neighbours), lipschitz / math.sqrt(convexity)))


def beta_bernoulli(successes: float, failures: float, size: int, *, weight: float = 1.0) -> Guarantee:
    """One draw from the Beta posterior of Bernoulli records, under substitution.

    Args:
        successes: first parameter of the prior.
        failures: second parameter of the prior.
        size: number of records, public.
        weight: what each record counts (paper R's r; 1 is the posterior itself).

    References: Geumlek, Song & Chaudhuri 2017, Algorithms 1 to 3; ERRATA 7 and S3.

    Example:
        >>> f"{beta_bernoulli(6, 12, 100).epsilon(1e-5):.3f}"
        '2.236'
    """
    return counted(
        BetaBernoulli(
            Neighbours.SUBSTITUTE,
            checks.real("successes", successes, above=0.0),
            checks.real("failures", failures, above=0.0),
            checks.integer("size", size, at_least=1),
            checks.real("weight", weight, above=0.0, at_most=1.0),
        )
    )


def dirichlet_categorical(concentration: Sequence[float], *, weight: float = 1.0) -> Guarantee:
    """One draw from the Dirichlet posterior of any number of categorical records, under substitution.

    Args:
        concentration: the prior, one positive number per category, two at least (for
            just two, `beta_bernoulli` is sharper).
        weight: what each record counts (paper R's r).

    References: Geumlek, Song & Chaudhuri 2017, Corollary 2; docs/proofs/conjugate_posteriors.md.
    """
    if not isinstance(concentration, Sequence) or isinstance(concentration, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"concentration must be a sequence of positive numbers, got {concentration!r}; list them"
        )
    values = tuple(checks.real("concentration", c, above=0.0) for c in concentration)
    if len(values) < 2:
        raise ValueError(
            f"concentration must have 2 categories at least, got {len(values)}; add the missing ones"
        )
    return counted(
        DirichletCategorical(
            Neighbours.SUBSTITUTE, values, checks.real("weight", weight, above=0.0, at_most=1.0)
        )
    )


def classical_epsilon(guarantee: Guarantee, delta: float) -> float:
    """Epsilon by the Renyi sum and the classical conversion (Mironov 2017), for comparison."""
    checks.real("delta", delta, above=0.0, below=1.0)
    if guarantee.inexactness > 0:
        raise ValueError(
            f"guarantee must be exact for the classical conversion, got inexactness "
            f"{float(guarantee.inexactness):.3g}; compare the exact parts"
        )
    return RenyiSum(conversion=classical).epsilon(guarantee.pieces, delta)
