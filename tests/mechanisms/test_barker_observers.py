"""BarkerMCMC tells observers the distances of random pairs (docs/proofs/dp_mcmc.md#observers)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from discreet.mechanisms import _chain
from discreet.mechanisms.barker_mcmc import BarkerMCMC
from discreet.mechanisms.interruption import Interrupted
from discreet.mechanisms.proposals import RandomWalk
from discreet.models.base import Model, Theta
from discreet.models.gaussian_mixture import GaussianMixture
from discreet.privacy import BayesianAccountant, ObservedRun

N, STEPS, PAIRS = 400, 300, 16


@dataclass(frozen=True)
class Votes(Model):
    """log f = x times a number that grows with every move: ratios of records 1 and -1 are clipped apart."""

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"t": ()}

    def log_prior(self, theta: Theta) -> jax.Array:
        return 0.0 * theta["t"]

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return 1e6 * record["x"] * theta["t"]


@dataclass
class Notes:
    """Writes down what it is told."""

    pairs: int = PAIRS
    runs: list[ObservedRun] = field(default_factory=list)
    seen: list[np.ndarray] = field(default_factory=list)

    def begin(self, run: ObservedRun) -> None:
        self.runs.append(run)

    def observe(self, distances: ArrayLike) -> None:
        self.seen.append(np.asarray(distances))


def chain(*observers: object, chains: int = 1) -> BarkerMCMC:
    return BarkerMCMC(Votes(), RandomWalk(1.0), chains=chains, observers=tuple(observers))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("chains", [1, 2])
def test_observers_see_the_distances_of_uniform_pairs(chains: int) -> None:
    """A pair is far, 2 kappa / sqrt(n), or equal; a chi-square test at 1e-3 of how many are far in a step."""
    notes, few = Notes(), Notes(pairs=3)
    x = np.where(np.arange(N) < 120, 1.0, -1.0)
    plan = chain(notes, few, chains=chains).plan(n=N, steps=STEPS)
    plan.release({"x": x}, key=1)
    (run,) = notes.runs
    largest = 2 * plan.parameters["clip"] / math.sqrt(N)  # pyright: ignore[reportOperatorIssue]
    assert run.largest == pytest.approx(largest)
    assert run.sigma == pytest.approx(math.sqrt(plan.parameters["variance"]))  # pyright: ignore[reportArgumentType]
    assert (run.rate, run.steps, run.neighbours) == (1.0, STEPS * chains, plan.guarantee.neighbours)
    seen = np.stack(notes.seen)
    assert seen.shape == (STEPS * chains, PAIRS)
    assert np.stack(few.seen).shape == (STEPS * chains, 3)
    far = np.isclose(seen, largest)
    assert np.all(far | (seen == 0.0))
    p = 2 * 120 * 280 / (N * (N - 1))  # of two different records
    edges = [0, 4, 5, 6, 7, 8, 9, 10, PAIRS + 1]
    cells = np.histogram(far.sum(axis=1), bins=edges)[0]
    expected = len(seen) * np.diff(stats.binom(PAIRS, p).cdf(np.array(edges) - 1))
    assert stats.chisquare(cells, expected * cells.sum() / expected.sum()).pvalue > 1e-3
    wrong = len(seen) * np.diff(stats.binom(PAIRS, 0.3).cdf(np.array(edges) - 1))
    assert stats.chisquare(cells, wrong * cells.sum() / wrong.sum()).pvalue < 1e-10  # negative control


def test_a_typical_person_risks_less_than_the_guarantee_says() -> None:
    """Equal records move nothing, opposite ones as much as a record can: 3.75, 5.71, and 5.41 guaranteed."""
    delta, found = 1e-4, []
    for x in (np.full(N, 0.5), np.where(np.arange(N) < N // 2, 1.0, -1.0)):
        accountant = BayesianAccountant(pairs=64)
        chain(accountant).plan(n=N, steps=2_000, clip=0.3).release({"x": x}, key=2)
        found.append(accountant.epsilon(delta).reveal())
    guarantee = chain().plan(n=N, steps=2_000, clip=0.3).guarantee
    assert found[0] < 0.75 * guarantee.epsilon(delta)
    assert found[1] > 1.4 * found[0]


def test_an_interruption_keeps_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    notes, x = Notes(), {"x": np.linspace(-1, 1, N)}
    plan = chain(notes).plan(n=N, steps=600)

    def impatient(count: int) -> None:
        del count
        raise KeyboardInterrupt

    quiet = _chain._nothing
    monkeypatch.setattr(_chain, "_nothing", impatient)
    with pytest.raises(Interrupted) as stopped:
        plan.release(x, key=3)
    monkeypatch.setattr(_chain, "_nothing", quiet)
    assert stopped.value.release.draws["t"].shape == (256,)
    assert stopped.value.resume().draws["t"].shape == (600,)
    assert len(notes.seen) == 600
    assert len(notes.runs) == 1


def test_a_batch_is_refused() -> None:
    mechanism = BarkerMCMC(GaussianMixture(), RandomWalk(0.1), tempered_size=20, observers=(Notes(),))
    with pytest.raises(ValueError, match="batch must be all 5000 records where observers watch, got 180"):
        mechanism.plan(n=5_000, steps=10)
    assert mechanism.plan(n=5_000, steps=10, batch=5_000).parameters["batch"] == 5_000
