"""Bugs planted around the noise: randomness, control flow, what is saved, who pays when."""

from __future__ import annotations

import json
import random
import secrets
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import ArrayLike

from discreet.audit import Pair, Subject, sensitivity
from discreet.audit.subject import Outputs, Score, matrix
from discreet.mechanisms import OnePosteriorSample, OutputPerturbation, Plan, Release
from discreet.mechanisms.base import Account, Drawn
from discreet.models import LogisticRegression
from discreet.models.base import Records, count
from discreet.models.losses import Gibbs
from discreet.privacy import Budget, Evidence, Guarantee, Neighbours, gaussian, poisson_gaussian
from discreet.samplers.exact import ExactRegression
from discreet.samplers.posterior import Sampled
from discreet.samplers.randomness import Randomness

from .kit import Array, Attack, Verdict, attacked, column, planted
from .noisy_sums import NoisySums
from .outputs import either_way

# --- randomness ---------------------------------------------------------------------------


class SinglePrecision(OutputPerturbation):
    """Noise of 24 bits on a sum of 53: what is left of the noise says which sum it was added to."""

    def around(self, centre: Array, plan: Plan, randomness: Randomness, times: int) -> Array:
        noise = super().around(np.zeros_like(centre), plan, randomness, times)
        return centre + noise.astype(np.float32)


def grid(kind: type[OutputPerturbation]) -> Attack:
    """Is what was released one of the two centres plus a number of 24 bits?"""
    mechanism: Any = kind(LogisticRegression(1), regularisation=0.5)
    plan = mechanism.plan(100, budget=Budget(1.0))

    def score(pair: Pair) -> Score:
        first, second = (mechanism.centre(column(side)) for side in pair.sides)

        def fits(outputs: Outputs) -> Array:
            w = matrix(outputs)
            on = [(c + (w - c).astype(np.float32) == w).all(axis=1).astype(float) for c in (first, second)]
            return on[0] - on[1]

        return fits

    def runs(records: Records, number: int, randomness: Randomness) -> Outputs:
        return mechanism.around(mechanism.centre(records), plan, randomness, number)

    return Attack(Subject(plan.guarantee, runs, score, kind.__name__, plan), either_way())


planted(
    "noise of single precision", attacked, lambda: grid(SinglePrecision), lambda: grid(OutputPerturbation)
)


class SmallSeed(OutputPerturbation):
    """A generator with a seed of 31 bits: two thousand million guesses undo any noise."""

    def around(self, centre: Array, plan: Plan, randomness: Randomness, times: int) -> Array:
        del randomness
        return super().around(centre, plan, Randomness(secrets.randbits(31)), times)


def unguessable(plan: Plan) -> Verdict:
    """Whether a release without a key takes 256 bits from the operating system, and no other seed."""
    taken: list[int] = []
    token_bytes = secrets.token_bytes

    def counted(length: int | None = None) -> bytes:
        taken.append(8 * (length or 0))
        return token_bytes(length)

    def small(bits: int) -> int:
        taken.append(bits)
        return random.getrandbits(bits)

    with mock.patch.object(secrets, "token_bytes", counted), mock.patch.object(secrets, "randbits", small):
        plan.release(either_way().records)
    return Verdict(not taken or min(taken) < 256, f"bits taken from the operating system: {taken}")


planted(
    "seed of 31 bits",
    unguessable,
    lambda: SmallSeed(LogisticRegression(1), 0.5).plan(100, budget=Budget(1.0)),
    lambda: OutputPerturbation(LogisticRegression(1), 0.5).plan(100, budget=Budget(1.0)),
)


# --- control flow ---------------------------------------------------------------------------


class EarlyStop(NoisySums):
    """Steps end when the sum of gradients, which is private, is small."""

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        drawn = super().draw(plan, records, randomness, progress=progress)
        small = np.linalg.norm(self.clipped(records["x"]).sum(axis=0)) < 0.5
        return replace(drawn, draws={name: v[:2] if small else v for name, v in drawn.draws.items()})


class MoreNoiseNeeded(NoisySums):
    """What is drawn depends on a record: a second try where the first looks odd."""

    def clipped(self, x: Array) -> Array:
        return super().clipped(x)

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        if (np.abs(records["x"]) > 0.5).any():
            randomness.numpy().random(100)
        return super().draw(plan, records, randomness, progress=progress)


class RefusesOutliers(NoisySums):
    """An assertion about the records, raised after the spend."""

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        if (np.abs(records["x"]) > 0.9).any():
            raise FloatingPointError("a gradient had to be clipped")
        return super().draw(plan, records, randomness, progress=progress)


class SaysHowMany(NoisySums):
    """The evidence names the number of records, which add_remove protects."""

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        drawn = super().draw(plan, records, randomness, progress=progress)
        said = Evidence.proved(f"{count(records)} gradients were clipped", "counted")
        return replace(drawn, evidence=(said,))


def flowing(kind: type[NoisySums]) -> Plan:
    return kind(steps=5, sigma=2.0).plan(2, budget=Budget(1.0, 1e-5))


def replayed(plan: Plan) -> Verdict:
    """Whether anything but the released numbers depends on a record."""
    pair = Pair({"x": [[1.0], [0.0]]}, {"x": [[0.3], [0.0]]}, why="one record shortened")
    found = sensitivity(plan, [pair], key=1)
    return Verdict(not found.passes, found.describe())


planted("steps end by a private loss", replayed, lambda: flowing(EarlyStop), lambda: flowing(NoisySums))
planted(
    "work that depends on a record", replayed, lambda: flowing(MoreNoiseNeeded), lambda: flowing(NoisySums)
)
planted(
    "an error that depends on a record",
    replayed,
    lambda: flowing(RefusesOutliers),
    lambda: flowing(NoisySums),
)


@dataclass(frozen=True)
class FirstSuccess(ExactRegression):
    """It says that the number of tries is fixed, and stops at the first success."""

    def sample(self, *given: Any, **named: Any) -> Sampled:
        hurried = ExactRegression(self.gamma, constant_time=False, tries=100_000)
        return hurried.sample(*given, **named)


def tries(sampler: ExactRegression) -> Verdict:
    """Whether the number of tries differs between neighbours, at the same randomness."""
    mechanism = OnePosteriorSample(
        LogisticRegression(2, prior_precision=0.2), loss=Gibbs(), draws=20, sampler=sampler
    )
    plan = mechanism.plan(60, budget=Budget(20.0, 1e-5))
    x = np.random.default_rng(5).standard_normal((60, 2))
    sides = ({"x": x, "y": y} for y in (np.zeros(60), np.r_[1.0, np.zeros(59)]))
    made = [plan.release(side, key=3).diagnostics["tries"].reveal() for side in sides]
    return Verdict(made[0] != made[1], f"tries: {made}")


planted("tries until the first success", tries, FirstSuccess, ExactRegression)


# --- what is saved ---------------------------------------------------------------------------


class Talkative(NoisySums):
    """A diagnostic is published with the release."""

    def draw(self, plan: Plan, records: Records, randomness: Randomness, *, progress: bool) -> Drawn:
        drawn = super().draw(plan, records, randomness, progress=progress)
        shortened = float((np.linalg.norm(records["x"], axis=1) > 0.9).mean())
        said = Evidence.checked(f"{shortened:.0%} of the gradients were clipped", "counted", confidence=0.999)
        return replace(drawn, evidence=(said,))


def saved(plans: tuple[Plan, Pair]) -> Verdict:
    """Whether what is saved beside the draws differs between neighbours, at the same randomness."""
    plan, pair = plans
    documents: list[dict[str, Any]] = []
    for side in pair.sides:
        with tempfile.TemporaryDirectory() as folder:
            plan.release(side, key=1).save(Path(folder) / "release")
            document = json.loads((Path(folder) / "release" / "release.json").read_text())
        documents.append({name: value for name, value in document.items() if name != "hash"})
    different = [name for name in documents[0] if documents[0][name] != documents[1][name]]
    return Verdict(bool(different), f"differ beside the draws: {different}")


def clinic(kind: type[NoisySums], *, secret_count: bool) -> tuple[Plan, Pair]:
    shorter = {"x": [[0.0]]} if secret_count else {"x": [[0.3], [0.0]]}
    plan = kind(sigma=2.0).plan(None if secret_count else 2, budget=Budget(1.0, 1e-5))
    return plan, Pair({"x": [[1.0], [0.0]]}, shorter)


planted(
    "diagnostics saved with the release",
    saved,
    lambda: clinic(Talkative, secret_count=False),
    lambda: clinic(NoisySums, secret_count=False),
)
planted(
    "the number of records told under add_remove",
    saved,
    lambda: clinic(SaysHowMany, secret_count=True),
    lambda: clinic(NoisySums, secret_count=True),
)


# --- who pays, and when ------------------------------------------------------------------------


class DrawsFirst(Plan):
    """The release is drawn, and then the ledger is asked."""

    def release(
        self, records: Mapping[str, ArrayLike], *, ledger: Account | None = None, **named: Any
    ) -> Release:
        found = super().release(records, **named)
        if ledger is not None:
            ledger.complete(ledger.spend(self.guarantee, "release", plan=self.hash()), found.hash())
        return found


class Empty:
    """A ledger whose budget is spent."""

    def spend(self, guarantee: Guarantee, purpose: str, *, plan: str) -> Any:  # noqa: ARG002
        raise PermissionError("nothing is left")

    def complete(self, receipt: Any, release: str, /) -> object:  # noqa: ARG002
        raise AssertionError


def refused(kind: type[Plan]) -> Verdict:
    """Whether anything is drawn although the ledger refuses."""
    drawn: list[bool] = []

    class Watched(NoisySums):
        def draw(self, *given: Any, **named: Any) -> Drawn:
            drawn.append(True)
            return super().draw(*given, **named)

    right = Watched(sigma=2.0).plan(2, budget=Budget(1.0, 1e-5))
    plan = kind(right.mechanism, right.size, right.guarantee, right.evidence, right.parameters)
    try:
        plan.release({"x": [[1.0], [0.0]]}, ledger=Empty())
    except PermissionError:
        return Verdict(bool(drawn), f"drawn before the ledger refused: {bool(drawn)}")
    return Verdict(True, "the ledger was not asked")


planted("drawn before it is paid", refused, lambda: DrawsFirst, lambda: Plan)


# --- an approximation for a bound (ERRATA 14) -----------------------------------------------------


def run_of_paper_n(price: Callable[[float, float, int], Guarantee]) -> Verdict:
    """Whether a claim about paper N's run is below what the run costs at least, by optimistic rounding."""
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution

    rate, sigma, steps = 256 / 60_000, 1.3, 3515
    optimistic = privacy_loss_distribution.from_gaussian_mechanism(
        sigma,
        pessimistic_estimate=False,
        sampling_prob=rate,
        value_discretization_interval=5e-6,
        use_connect_dots=False,
        neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    ).self_compose(steps)
    least, claim = optimistic.get_epsilon_for_delta(1e-5), price(rate, sigma, steps).epsilon(1e-5)
    return Verdict(claim < least, f"claimed {claim:.4f}, at least {least:.4f}")


def central_limit(rate: float, sigma: float, steps: int) -> Guarantee:
    """mu = q sqrt(T (e^(1 / sigma^2) - 1)), the limit of Dong, Roth & Su, which is no bound."""
    mu = rate * np.sqrt(steps * np.expm1(1 / sigma**2))
    return gaussian(1.0, sensitivity=float(mu), neighbours="add_remove")


def by_losses(rate: float, sigma: float, steps: int) -> Guarantee:
    """By composition of loss distributions, rounded up."""
    return poisson_gaussian(rate, sigma, steps, neighbours=Neighbours.ADD_REMOVE)


planted("a limit taken for a bound", run_of_paper_n, lambda: central_limit, lambda: by_losses)
