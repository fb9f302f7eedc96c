"""The subcommands of `discreet account`, one for each constructor of `discreet.privacy`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import discreet as dc
from discreet.cli import compare, numbers, tables
from discreet.cli.account import Mechanism, app, mechanism
from discreet.cli.errors import RequestError

__all__ = ["app"]


def _option(help: str, parser: Callable[[str], Any] = numbers.real, metavar: str = "NUMBER") -> Any:  # noqa: A002
    return typer.Option(parser=parser, metavar=metavar, help=help)


def _argument(help: str, metavar: str) -> Any:  # noqa: A002
    return typer.Argument(parser=numbers.real, metavar=metavar, help=help)


Relation = Annotated[
    str,
    _option(
        "Who is protected: one record replaced, or added/removed. No default.",
        numbers.relation,
        "substitute|add-remove",
    ),
]
Sensitivity = Annotated[float, _option("How far one record moves the quantity.")]
Size = Annotated[int, _option("Records in all; public.", numbers.whole, "N")]
Steps = Annotated[int, _option("How many steps; each is billed.", numbers.whole, "T")]
Weight = Annotated[float, _option("What each record counts, at most 1.")]
Table = Annotated[Path, typer.Argument(metavar="FILE", help="CSV or JSON of two columns.")]

_DRAWN = "the draw is exact: a Markov chain that only comes near the posterior costs delta more"
_STATED = "the mechanism really has this property; it is taken from you, nothing here checks it."


# --- definitions ---------------------------------------------------------------


@mechanism(
    "pure",
    example="discreet account pure 0.1 --repeat 12 --neighbours substitute --delta 1e-6",
    epsilon="LOSS",
)
def pure(
    loss: Annotated[float, _argument("The largest privacy loss, its epsilon.", "LOSS")],
    *,
    neighbours: Relation,
) -> Mechanism:
    """Pure differential privacy."""
    return Mechanism(dc.privacy.pure(loss, neighbours=neighbours), _STATED, exact=False)


@mechanism(
    "approximate",
    example="discreet account approximate 0.5 1e-7 --neighbours substitute --delta 1e-6",
    epsilon="LOSS",
    delta="SLACK",
)
def approximate(
    loss: Annotated[float, _argument("Its epsilon.", "LOSS")],
    slack: Annotated[float, _argument("Its delta.", "SLACK")],
    *,
    neighbours: Relation,
) -> Mechanism:
    """Approximate differential privacy, known at one epsilon and delta and nowhere else."""
    return Mechanism(dc.privacy.approximate(loss, slack, neighbours=neighbours), _STATED, exact=False)


@mechanism(
    "bounded-range",
    example="discreet account bounded-range 0.5 --repeat 20 --neighbours substitute --delta 1e-6 --compare",
    width="WIDTH",
)
def bounded_range(
    width: Annotated[float, _argument("Length of the interval that holds the privacy loss.", "WIDTH")],
    *,
    neighbours: Relation,
) -> Mechanism:
    """A posterior draw or exponential mechanism whose log density has a bounded range."""
    return Mechanism(
        dc.privacy.bounded_range(width, neighbours=neighbours),
        f"the log density ratio of any two neighbours spans at most WIDTH; {_DRAWN}.",
        compare.bounded_range(width),
        exact=False,
    )


@mechanism("zcdp", example="discreet account zcdp 0.05 --neighbours substitute --delta 1e-6", rho="RHO")
def zcdp(rho: Annotated[float, _argument("Its rho.", "RHO")], *, neighbours: Relation) -> Mechanism:
    """Zero-concentrated differential privacy."""
    return Mechanism(dc.privacy.zcdp(rho, neighbours=neighbours), _STATED, exact=False)


@mechanism("renyi", example="discreet account renyi curve.csv --neighbours substitute --delta 1e-6")
def renyi(file: Table, *, neighbours: Relation) -> Mechanism:
    """A Renyi curve, from a table of order,divergence."""
    table = tables.read_table(file, ("order", "divergence"))
    return Mechanism(
        dc.privacy.renyi(table, neighbours=neighbours),
        "the table bounds the divergence in both directions of every pair; it is taken from you.",
        exact=False,
    )


@mechanism("profile", example="discreet account profile profile.csv --neighbours substitute --delta 1e-4")
def profile(file: Table, *, neighbours: Relation) -> Mechanism:
    """A privacy profile, from a table of epsilon,delta that starts at epsilon 0."""
    table = tables.read_table(file, ("epsilon", "delta"))
    return Mechanism(
        dc.privacy.profile(table, neighbours=neighbours),
        "the table bounds delta in both directions of every pair; it is taken from you.",
        exact=False,
    )


# --- noise -----------------------------------------------------------------------


@mechanism(
    "gaussian", example="discreet account gaussian --sigma 4 --neighbours substitute --delta 1e-6 --compare"
)
def gaussian(
    *,
    sigma: Annotated[float, _option("Standard deviation of the noise.")],
    sensitivity: Sensitivity = 1.0,
    neighbours: Relation,
) -> Mechanism:
    """Normal noise in every coordinate of a quantity with a known L2 sensitivity."""
    return Mechanism(
        dc.privacy.gaussian(sigma, sensitivity=sensitivity, neighbours=neighbours),
        "clipping enforces the L2 sensitivity under these neighbours; the noise is fresh in every run.",
        compare.exact_curve(),
    )


@mechanism("laplace", example="discreet account laplace --scale 2 --neighbours add-remove --epsilon 0.3")
def laplace(
    *,
    scale: Annotated[float, _option("Scale of the noise.")],
    sensitivity: Sensitivity = 1.0,
    neighbours: Relation,
) -> Mechanism:
    """Laplace noise on one number with a known sensitivity."""
    return Mechanism(
        dc.privacy.laplace(scale, sensitivity=sensitivity, neighbours=neighbours),
        "clipping enforces the sensitivity under these neighbours; the noise is fresh in every run.",
        compare.exact_curve(),
    )


@mechanism(
    "normals",
    example="discreet account normals --shift 0.1 --sd-p 1 --sd-q 1.02 --neighbours substitute --delta 1e-6",
)
def normals(
    *,
    shift: Annotated[float, _option("Distance of the means.")],
    sd_p: Annotated[float, _option("Standard deviation of one.")],
    sd_q: Annotated[float, _option("Standard deviation of the other.")],
    neighbours: Relation,
) -> Mechanism:
    """Two normals of any variances, where they are the worst pair."""
    return Mechanism(
        dc.privacy.normals(shift, sd_p, sd_q, neighbours=neighbours),
        "no pair of neighbours is told apart better than these two normals; it is taken from you.",
        compare.exact_curve(),
    )


# --- parts of the data --------------------------------------------------------------


@mechanism(
    "poisson-gaussian",
    example="discreet account poisson-gaussian --rate 256/60000 --sigma 1.3 --steps 3515 "
    "--neighbours add-remove --delta 1e-5 --compare",
)
def poisson_gaussian(
    *,
    rate: Annotated[float, _option("Probability that a record enters a step.")],
    sigma: Annotated[float, _option("Noise over clipping norm.")],
    steps: Steps = 1,
    neighbours: Relation,
) -> Mechanism:
    """DP-SGD and its kin: clipped sums over Poisson samples, with normal noise."""
    return Mechanism(
        dc.privacy.poisson_gaussian(rate, sigma, steps, neighbours=neighbours),
        "every step draws a fresh Poisson sample (shuffled or fixed-size batches are not it), "
        "clips every record's part, noises empty samples too, and divides by a public number.",
        compare.poisson_gaussian(rate, sigma, steps, neighbours),
    )


@mechanism(
    "without-replacement",
    example="discreet account without-replacement --gaussian 2 --rate 1/100 --steps 100 --delta 1e-6",
    sigma="--gaussian",
    scale="--laplace",
    epsilon="--pure",
)
def without_replacement(
    *,
    rate: Annotated[float, _option("Sample size over records.")],
    gaussian: Annotated[float | None, _option("The base: its sigma.", metavar="SIGMA")] = None,
    laplace: Annotated[float | None, _option("The base: its scale.", metavar="SCALE")] = None,
    pure: Annotated[float | None, _option("The base: its epsilon.", metavar="LOSS")] = None,
    steps: Steps = 1,
) -> Mechanism:
    """A mechanism on a fresh sample of fixed size; give one of --gaussian, --laplace, --pure."""
    bases = [
        (gaussian, dc.privacy.gaussian),
        (laplace, dc.privacy.laplace),
        (pure, dc.privacy.pure),
    ]
    chosen = [build(value, neighbours="substitute") for value, build in bases if value is not None]
    if len(chosen) != 1:
        raise RequestError(
            f"exactly one of --gaussian, --laplace and --pure must be given, got {len(chosen)}; name the base"
        )
    return Mechanism(
        dc.privacy.sampled_without_replacement(chosen[0], rate, steps),
        "every step draws a fresh sample of fixed size, uniform and without replacement; "
        "the base has sensitivity 1 when a record of the sample is replaced.",
        compare.routes,
        exact=False,
    )


@mechanism(
    "barker",
    example="discreet account barker --batch 1000 --size 1e5 --steps 5000 --delta 1e-5 --compare",
)
def barker(
    *,
    batch: Annotated[int, _option("Records in a minibatch.", numbers.whole, "B")],
    size: Size,
    steps: Steps,
    tempered_size: Annotated[
        int | None, _option("N0 of a tempered posterior, at most N.", numbers.whole, "N0")
    ] = None,
    variance: Annotated[float, _option("C, variance of the normal part of the test.")] = 2.0,
    clip: Annotated[float, _option("Clipping factor, its square below the variance.")] = 1.0,
) -> Mechanism:
    """DP-MCMC with the Barker test on minibatches; neighbours are substitute."""
    scale = "" if clip == 1 else f"{clip:g} "
    return Mechanism(
        dc.privacy.barker(batch, size, steps, tempered_size, variance=variance, clip=clip),
        f"every log-likelihood ratio is clipped to {scale}sqrt(b) / N (N0 if tempered); every batch "
        "is drawn uniformly without replacement; proposals do not look at the data.",
        compare.barker(batch, size, steps, variance=variance, clip=clip),
    )


@mechanism(
    "barker-full-data",
    example="discreet account barker-full-data --ratio-bound 0.001 --steps 1000 --delta 1e-6 --compare",
)
def barker_full_data(
    *,
    ratio_bound: Annotated[float, _option("Largest |log-likelihood ratio| of one record.")],
    steps: Steps,
    variance: Annotated[float, _option("C, variance of the normal part of the test.")] = 2.0,
) -> Mechanism:
    """DP-MCMC with the Barker test on all records; neighbours are substitute."""
    return Mechanism(
        dc.privacy.barker_full_data(ratio_bound, steps, variance=variance),
        "every log-likelihood ratio is clipped to the bound; proposals do not look at the data.",
        compare.exact_curve("Renyi (paper M, Theorem 1)"),
    )


# --- posterior draws ------------------------------------------------------------------


@mechanism(
    "strongly-convex-posterior",
    example="discreet account strongly-convex-posterior --lipschitz 2 --convexity 100 "
    "--neighbours substitute --delta 1e-5 --compare",
)
def strongly_convex_posterior(
    *,
    lipschitz: Annotated[float, _option("Of the difference of two neighbouring potentials.")],
    convexity: Annotated[float, _option("Of every potential; the prior precision.")],
    neighbours: Relation,
) -> Mechanism:
    """One posterior draw of a GLM with a Gaussian prior, or of any strongly convex potential."""
    return Mechanism(
        dc.privacy.strongly_convex_posterior(lipschitz, convexity, neighbours=neighbours),
        "row norms are clipped, so that the Lipschitz constant holds under these neighbours "
        f"(logistic, norms at most c, weight w: 2 c w under substitute, c w under add-remove); {_DRAWN}.",
        compare.strongly_convex(lipschitz, convexity),
    )


@mechanism(
    "beta-bernoulli",
    example="discreet account beta-bernoulli --successes 6 --failures 12 --size 100 --delta 1e-5 --compare",
)
def beta_bernoulli(
    *,
    successes: Annotated[float, _option("First parameter of the prior.")],
    failures: Annotated[float, _option("Second parameter of the prior.")],
    size: Size,
    weight: Weight = 1.0,
) -> Mechanism:
    """One draw from the Beta posterior of Bernoulli records; neighbours are substitute."""
    return Mechanism(
        dc.privacy.beta_bernoulli(successes, failures, size, weight=weight),
        "every record is 0 or 1 and counts once; one draw is published and nothing else.",
        compare.exact_curve("Renyi (paper R)"),
    )


@mechanism(
    "dirichlet-categorical",
    example="discreet account dirichlet-categorical --concentration 6,12,20 --delta 1e-5 --compare",
)
def dirichlet_categorical(
    *,
    concentration: Annotated[tuple, _option("The prior, one number per category.", numbers.several, "A,B,C")],
    weight: Weight = 1.0,
) -> Mechanism:
    """One draw from the Dirichlet posterior of categorical records; neighbours are substitute."""
    return Mechanism(
        dc.privacy.dirichlet_categorical(concentration, weight=weight),
        "every record is in one category and counts once; one draw is published and nothing else.",
        compare.exact_curve("Renyi (paper R)"),
    )


# --- all of them together ---------------------------------------------------------------


@mechanism("compose", example="discreet account compose first.json second.json --delta 1e-6 --compare")
def compose(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Guarantees saved with --save.")],
) -> Mechanism:
    """What saved guarantees cost together, on the same data."""
    guarantees = [tables.read_guarantee(path) for path in files]
    relations = {str(g.neighbours) for g in guarantees}
    if len(relations) > 1:
        said = ", ".join(f"{path} is about {g.neighbours}" for path, g in zip(files, guarantees, strict=True))
        raise RequestError(
            f"FILE... must share one neighbour relation, but {said}; account for them again under one"
        )
    whole = dc.privacy.nothing(neighbours=guarantees[0].neighbours)
    for guarantee in guarantees:
        whole += guarantee
    return Mechanism(
        whole,
        "what each part rested on; all parts ran on the same data, each may have seen the outputs before it.",
        exact=False,
    )
