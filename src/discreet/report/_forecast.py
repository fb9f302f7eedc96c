"""What privacy costs in width, as far as it is known before any data: formulas in docs/forecast.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.models.base import Model
from discreet.models.families import ConjugateFamily
from discreet.models.linear import LinearRegression
from discreet.models.logistic import LogisticRegression
from discreet.models.neural_regression import NeuralRegression
from discreet.report._page import Html, headline, paragraph
from discreet.report.numbers import nearest

Parameters = Mapping[str, Any]

_FEW = 100


@dataclass(frozen=True)
class Forecast:
    """How much wider a private posterior is, expected from public numbers alone.

    Attributes:
        width: its standard deviation over that of the same posterior without privacy.
        records: how many records without privacy give the same width; None if it is
            noise that widens, rather than records that count less.
        because: the formula in words, and what it takes for granted.
    """

    width: float
    records: float | None
    because: str


def forecast(plan: Mapping[str, Any], model: Model | None) -> Forecast | None:
    """The forecast for a saved plan; None where there is no formula, or where n is private."""
    formula = _FORMULAS.get(plan["settings"]["mechanism"])
    if formula is None or model is None or plan["size"] is None:
        return None
    return formula(model, plan["size"], plan["parameters"], plan["settings"])


def expected(found: Forecast | None, draws: int) -> list[Html]:
    """The forecast in words."""
    if found is None:
        return [
            paragraph(
                "For this mechanism, or with a private number of records, nothing is known of the width "
                "without looking at data, and looking would have to be paid for. "
                "Run the same plan on synthetic data."
            )
        ]
    cards = [(f"{nearest(found.width)} ×", "as wide as the same posterior without privacy")]
    if found.records is not None:
        cards.append((f"{found.records:,.0f}", "records that would be as informative without privacy"))
    if draws <= _FEW:
        of = "the one draw" if draws == 1 else f"the mean of the {draws} draws"
        cards.append((f"{nearest(math.sqrt(1 + 1 / draws))} ×", f"on top, for {of} as an estimate"))
    return [
        headline(*cards),
        paragraph(
            f"A forecast from public numbers, made without data: {found.because}. "
            "The formulas and how far they can be trusted: docs/forecast.md."
        ),
    ]


def _family(model: Model, n: int, p: Parameters, _: Parameters) -> Forecast | None:
    """Draws of paper R: a record counts r, the prior 1/m."""
    weight, share = float(p["weight"]), float(p.get("concentration", 1.0))
    if isinstance(model, ConjugateFamily):
        worth = float(model.prior_eta[len(model.statistic_range[0])])
        public = worth + n
        private = worth / share + weight * n
        because = (
            f"the prior is worth {nearest(worth)} records, a record counts {nearest(weight)} and the prior "
            f"is divided by {nearest(share)}; the variance of the mean goes as one over the sum"
        )
    elif isinstance(model, LogisticRegression):
        information, why = _logistic_information(model)
        public = model.prior_precision + n * information
        private = model.prior_precision / share + weight * n * information
        because = f"{why}; a record counts {nearest(weight)}, the prior is divided by {nearest(share)}"
    else:
        return None
    return Forecast(math.sqrt(public / private), n * private / public, because)


def _one_sample(model: Model, n: int, p: Parameters, settings: Parameters) -> Forecast:
    """A weighted loss; the beta-divergence also counts a typical record by its density."""
    weight = float(p["weight"])
    told = f"a record counts {nearest(weight)}"
    if settings["loss"]["loss"] == "BetaDivergence":
        b = float(p["beta"]) - 1
        typical = float(getattr(model, "typical_density", 0.5))
        if isinstance(model, LinearRegression | NeuralRegression):
            share = (typical * math.sqrt(math.e)) ** b * (1 + b) ** -1.5
        else:
            share = typical**b
        told += f", times {nearest(share)} for beta {nearest(1 + b)} at a typical density"
        weight *= share
    elif settings["loss"]["loss"] == "ClippedGibbs":
        told += ", and nothing if it is clipped"
    if isinstance(model, LogisticRegression):
        information, why = _logistic_information(model)
        public = model.prior_precision + n * information
        private = model.prior_precision + weight * n * information
        return Forecast(math.sqrt(public / private), n * private / public, f"{why}; {told}")
    return Forecast(1 / math.sqrt(weight), weight * n, f"{told}; what the prior adds is left out")


def _chain(_: Model, n: int, p: Parameters, __: Parameters) -> Forecast:
    """DP-MCMC: the likelihood counts for N0 records."""
    counted = int(p["tempered_size"])
    return Forecast(
        math.sqrt(n / counted),
        counted,
        f"the likelihood counts for {counted:,} of {n:,} records; the prior, clipping, and how far the chain "
        "has come are left out",
    )


def _output(model: Model, n: int, p: Parameters, settings: Parameters) -> Forecast | None:
    """Noise on the minimiser."""
    if not isinstance(model, LogisticRegression):
        return None
    scale = float(p["scale"])
    euclidean = settings["norm"] == "euclidean"
    noise = scale * math.sqrt(model.features + 1 if euclidean else 2)
    information, why = _logistic_information(model)
    own = 1 / math.sqrt(n * (float(settings["regularisation"]) + information))
    told = f"noise of SD {nearest(noise)} a coefficient is added to an estimate of SD {nearest(own)}"
    return Forecast(math.hypot(own, noise) / own, None, f"{told}; {why}")


def _statistics(_: Model, n: int, p: Parameters, settings: Parameters) -> Forecast:
    """Noise on the sum of bounded records."""
    multiplier = float(p["multiplier"])
    variance = multiplier**2 * (1 if settings["noise"] == "gaussian" else 2)
    return Forecast(
        math.sqrt(1 + 4 * variance / n),
        None,
        f"noise of SD {nearest(math.sqrt(variance))} times the range of a record is added to sums of {n:,} "
        "records, taken to lie half at either end of it; records closer together lose more",
    )


def _logistic_information(model: LogisticRegression) -> tuple[float, str]:
    """What a record tells of one direction at most: c^2 / 4, spread over all of them."""
    information = model.row_norm**2 / (4 * model.features)
    return information, (
        f"rows as long as they may be, {nearest(model.row_norm)}, spread evenly over {model.features} "
        "directions, and outcomes near one half"
    )


_FORMULAS: dict[str, Callable[[Model, int, Parameters, Parameters], Forecast | None]] = {
    "DirectPosterior": _family,
    "DiffusedPosterior": _family,
    "ConcentratedPosterior": _family,
    "TruncatedPosterior": _family,
    "OnePosteriorSample": _one_sample,
    "BarkerMCMC": _chain,
    "PenaltyMCMC": _chain,
    "PenaltyHMC": _chain,
    "FastMH": _chain,
    "OutputPerturbation": _output,
    "PerturbedStatistics": _statistics,
}
"""A table by the name that a plan saves; a mechanism without a row has no forecast."""
