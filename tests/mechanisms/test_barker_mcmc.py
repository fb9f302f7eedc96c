"""BarkerMCMC: plans, sensitivity, batches, faults (docs/proofs/dp_mcmc.md)."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from discreet.mechanisms import _chain, barker_mcmc
from discreet.mechanisms._chain_batches import batches, distinct
from discreet.mechanisms._logistic_correction import logistic_correction
from discreet.mechanisms._ratios import clipped_ratios, moments
from discreet.mechanisms.barker_mcmc import BarkerMCMC, released_normal, sampling_factor
from discreet.mechanisms.interruption import Interrupted
from discreet.mechanisms.losses import LogLikelihood
from discreet.mechanisms.proposals import CorrelatedWalk, Langevin, Noise, RandomWalk
from discreet.mechanisms.release import by_chain
from discreet.models.base import Model, Theta
from discreet.models.gaussian_mixture import GaussianMixture
from discreet.privacy import Budget, BudgetError, barker, barker_full_data

MIXTURE = GaussianMixture()
N = 5_000
X = np.random.default_rng(0).normal(size=N) * math.sqrt(2) + (np.random.default_rng(1).random(N) < 0.5)


def chain(**settings: Any) -> BarkerMCMC:
    return BarkerMCMC(MIXTURE, RandomWalk(0.3), **{"tempered_size": 50, **settings})


# --- plans --------------------------------------------------------------------


def test_steps_say_the_budget() -> None:
    plan = chain(tempered_size=100, chains=3).plan(n=10**6, steps=5000, batch=1000, clip=1.0, variance=2.0)
    assert plan.guarantee == barker(1000, 10**6, 15_000, 100)
    assert plan.parameters["ratio_limit"] == pytest.approx(math.sqrt(1000) / 100)
    assert plan.parameters["steps"] == 5000


def test_budget_says_the_steps() -> None:
    budget = Budget(0.01, 1e-6)
    plan = chain(tempered_size=100).plan(n=10**6, budget=budget)
    steps = plan.parameters["steps"]
    assert isinstance(steps, int)
    assert plan.guarantee.fits(budget)
    again = plan.parameters
    more = barker(
        again["batch"],  # pyright: ignore[reportArgumentType]
        10**6,
        steps + 1,
        variance=again["variance"],  # pyright: ignore[reportArgumentType]
        clip=again["clip"],  # pyright: ignore[reportArgumentType]
    )
    assert not more.fits(budget)
    assert any("what the budget allows" in reason for reason in plan.reasons)


def test_the_variance_with_the_smallest_error_is_chosen_and_explained() -> None:
    plan = chain(tempered_size=100).plan(n=10**6, budget=Budget(0.5, 1e-6), steps=5000, batch=1000, clip=1.0)
    chosen = plan.parameters["variance"]
    errors = {C: barker_mcmc.test_error(1000, 10**6, 1.0, C) for C in (1.25, 1.5, 1.75, 2.0, 2.25, 2.5)}
    assert chosen == min(errors, key=errors.__getitem__)
    assert any("smallest test error" in reason for reason in plan.reasons)
    assert any("would use the rest" in reason for reason in plan.reasons)


def test_tempering_is_chosen_as_large_as_the_budget_allows() -> None:
    budget, n = Budget(1.0, 1e-6), 100_000
    plan = chain(tempered_size=None).plan(n=n, budget=budget, temper=True)
    N0 = plan.parameters["tempered_size"]
    assert isinstance(N0, int)
    assert 50 < N0 < n
    assert plan.guarantee.fits(budget)
    assert plan.mechanism.settings()["tempered_size"] == N0
    assert plan.reasons[0] == (
        f"tempered_size {N0} of {n} is the largest with which the budget allows 5000 steps"
    )
    with pytest.raises(BudgetError):
        chain(tempered_size=round(1.03 * N0)).plan(n=n, budget=budget, steps=5000)
    with pytest.raises(ValueError, match="temper needs a budget and a mechanism without tempered_size, got"):
        chain().plan(n=n, budget=budget, temper=True)


def test_untempered_reads_all_records() -> None:
    plan = chain(tempered_size=None).plan(n=1000, steps=10)
    assert plan.parameters["batch"] == 1000
    assert plan.parameters["ratio_limit"] == pytest.approx(3 / math.sqrt(1000))
    assert plan.guarantee == barker_full_data(3 / math.sqrt(1000), 10, variance=1.0)
    assert plan.parameters["test_error"] == logistic_correction(1.0).error


def test_a_plan_is_made_without_data_and_is_stable() -> None:
    one, two = (chain().plan(n=N, steps=10) for _ in range(2))
    assert one.hash() == two.hash()
    assert "every accepted or rejected step is billed" in one.describe()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 10, "batch": N + 1}, "batch must be a whole number at least 2 and at most 5000, got 5001"),
        ({"steps": 10, "batch": 1}, "batch must be a whole number at least 2"),
        ({"steps": 0}, "steps must be a whole number at least 1"),
        ({}, "plan must be given a budget, a number of steps, or both"),
        ({"steps": 10, "variance": 3.3}, "variance must be a finite number above 0 and below 3.28"),
        ({"steps": 10, "variance": 0.0}, "variance must be a finite number above 0"),
        ({"steps": 10, "batch": 100, "clip": 1.5, "variance": 2.0}, "clip must have a square below"),
        ({"steps": 10, "clip": math.nan}, "clip must be a finite number above 0"),
        ({"steps": 10, "n": 20}, "tempered_size must be a whole number at least 1 and at most 20, got 50"),
    ],
)
def test_bad_plans_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chain().plan(**{"n": N, **arguments})


def test_a_budget_too_small_says_by_how_much() -> None:
    with pytest.raises(BudgetError, match=r"does not allow 5000 steps: they cost .* at least") as refused:
        chain().plan(n=N, budget=Budget(1e-3, 1e-6), steps=5000)
    assert refused.value.smallest_epsilon > 1e-3
    with pytest.raises(BudgetError, match="does not allow one step"):
        chain(tempered_size=None).plan(n=100, budget=Budget(1e-3, 1e-9))


def test_bad_mechanisms_are_refused() -> None:
    with pytest.raises(ValueError, match="start must name the parameters theta, got phi"):
        chain(start={"phi": [0.0]})
    with pytest.raises(ValueError, match=r"start of theta must have shape \(2,\) or \(1, 2\), got \(3,\)"):
        chain(start={"theta": [0.0, 0.0, 1.0]})
    with pytest.raises(ValueError, match="start must lie in the support of the prior"):
        chain(start={"theta": [0.0, math.inf]})
    with pytest.raises(ValueError, match="scale must be a finite number above 0"):
        RandomWalk(0.0)


# --- sensitivity replay --------------------------------------------------------


@jax.jit
def _normal(pair: jax.Array, x: jax.Array, limit: Any, clip: Any, C: Any) -> Any:
    ratios = clipped_ratios(
        LogLikelihood(),
        MIXTURE,
        candidate={"theta": pair[1]},
        theta={"theta": pair[0]},
        batch={"x": x},
        limit=limit,
    )
    return released_normal(moments(ratios), 0.25, batch=len(x), clip=clip, variance=C, sampled=1.0)


def test_neighbours_move_the_released_normal_by_no_more_than_the_theorem_says() -> None:
    """2,000 random pairs, half of them extreme records, and NaN among them."""
    rng, b, C, pairs = np.random.default_rng(2), 40, 2.0, 2_000
    x = rng.normal(size=(pairs, b)) * rng.choice([1, 10, 1e4], size=(pairs, 1))
    other = x.copy()
    other[:, -1] = rng.choice([0.0, 1e3, -1e3, 1e200, -1e200, math.inf, math.nan, 2.5], size=pairs)
    states = rng.normal(size=(pairs, 2, 2)) * rng.choice([0.1, 1, 30], size=(pairs, 1, 1))
    clip = rng.uniform(0.1, 1.2, size=pairs)
    limit = clip * math.sqrt(b) / 50
    run = jax.vmap(_normal, in_axes=(0, 0, 0, 0, None))
    with jax.enable_x64(True):
        one, two = (jax.device_get(run(states, rows, limit, clip, C)) for rows in (x, other))
    shift, spread = np.abs(one.mean - two.mean), np.abs(one.variance - two.variance)
    assert np.all(shift <= 2 * clip / math.sqrt(b) * (1 + 1e-12))
    assert np.all(spread <= 4 * clip**2 * (b - 1) / b**2 * (1 + 1e-12))
    for normal in (one, two):
        assert np.all(normal.variance >= C - clip**2 - 1e-12)
        assert np.all(normal.variance <= C + 1e-12)
    assert shift.max() > 1.9 * 1.1 / math.sqrt(b)  # the bound is nearly reached


def normal_of(ratios: np.ndarray, clip: float) -> barker_mcmc.ReleasedNormal:
    seen = moments(jnp.asarray(ratios))
    return released_normal(seen, 0.0, batch=len(ratios), clip=clip, variance=2.0, sampled=1.0)


def test_the_extremes_reach_the_bound_and_no_clipping_exceeds_it() -> None:
    b, clip = 40, 1.0
    t = np.ones(b)
    with jax.enable_x64(True):
        ratios = np.stack([t, np.append(t[:-1], -1.0)])
        normals = [normal_of(r, clip) for r in ratios]
    assert float(normals[0].mean - normals[1].mean) == pytest.approx(2 * clip / math.sqrt(b))
    assert float(normals[0].variance - normals[1].variance) == pytest.approx(4 * clip**2 * (b - 1) / b**2)
    # Negative control: unclipped ratios break the theorem.
    with jax.enable_x64(True):
        loose = normal_of(np.append(t[:-1], -3.0), clip)
    assert float(normals[0].mean - loose.mean) > 2 * clip / math.sqrt(b) * 1.5


# --- batches ----------------------------------------------------------------------


def subset_statistic(drawn: np.ndarray, size: int, batch: int) -> float:
    """p-value of the chi-square test that all subsets are equally likely."""
    every = {subset: i for i, subset in enumerate(itertools.combinations(range(size), batch))}
    counts = np.bincount([every[tuple(sorted(row))] for row in drawn.tolist()], minlength=len(every))
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize("route", [batches, distinct])
@pytest.mark.parametrize(("size", "batch"), [(6, 3), (7, 2), (6, 4), (5, 5)])
def test_batches_are_uniform_subsets(route: Any, size: int, batch: int) -> None:
    """Fails one time in 10^4 when true."""
    drawn = route(np.random.default_rng(3), size, batch, (2, 10_000)).reshape(-1, batch)
    if size == batch:
        np.testing.assert_array_equal(np.sort(drawn), np.tile(np.arange(size), (20_000, 1)))
        return
    assert subset_statistic(drawn, size, batch) > 1e-4
    # Negative control: a contiguous window with a random start, uniform in each record.
    starts = np.random.default_rng(4).integers(size, size=(20_000, 1))
    assert subset_statistic((starts + np.arange(batch)) % size, size, batch) < 1e-10


def test_forgetting_to_replace_what_was_drawn_twice_is_caught() -> None:
    """Negative control: the second draw replaced by the next free number, as a hash table would do it."""
    drawn = np.random.default_rng(3).integers(6, size=(20_000, 2))
    twice = drawn[:, 0] == drawn[:, 1]
    drawn[twice, 1] = (drawn[twice, 1] + 1) % 6
    assert all(len(set(row)) == 2 for row in drawn.tolist())
    assert subset_statistic(drawn, 6, 2) < 1e-10


@pytest.mark.parametrize("size", [10**5, 3 * 10**9])
def test_large_populations_are_drawn_at_once_and_stay_uniform(size: int) -> None:
    """Cells of a large population: the route of small batches, with 64-bit rows in one case."""
    drawn = batches(np.random.default_rng(5), size, 100, (3_000,))
    assert drawn.dtype == (np.int32 if size < 2**31 else np.int64)
    assert np.all(np.diff(drawn) > 0)
    assert drawn.min() >= 0
    assert drawn.max() < size
    counts = np.bincount((drawn // (size // 100)).ravel(), minlength=100)
    assert stats.chisquare(counts).pvalue > 1e-4
    low = (drawn < size // 2).sum(axis=1)
    expected = stats.hypergeom(100_000, 50_000, 100)
    edges = [0, 43, 46, 48, 50, 52, 54, 57, 101]
    cells = np.histogram(low, bins=edges)[0]
    probabilities = np.diff(expected.cdf(np.array(edges) - 1))
    assert stats.chisquare(cells, 3_000 * probabilities / probabilities.sum()).pvalue > 1e-4


# --- the error of the test ----------------------------------------------------------


@cache
def rows_of(size: int, batch: int) -> np.ndarray:
    return batches(np.random.default_rng(6), size, batch, (6_000,))


def acceptance(t: np.ndarray, rho: float, *, batch: int, clip: float, C: float) -> tuple[float, float]:
    """Acceptance probability of the batch test over random batches, and its standard error."""
    r, correction = t[rows_of(len(t), batch)], logistic_correction(C)
    mean = rho + clip * math.sqrt(batch) * r.mean(axis=1)
    sd = np.sqrt(C - sampling_factor(batch, len(t)) * clip**2 * r.var(axis=1))
    p = sum(
        w * special.ndtr((mean + a) / sd) for a, w in zip(correction.atoms, correction.weights, strict=True)
    )
    assert isinstance(p, np.ndarray)
    return float(p.mean()), float(p.std() / math.sqrt(len(p)))


@pytest.mark.parametrize("shape", ["symmetric", "rare", "skewed", "three points", "narrow"])
@pytest.mark.parametrize(("batch", "C", "clip"), [(50, 2.0, 1.0), (200, 2.25, 0.9), (1000, 2.0, 1.0)])
def test_the_error_of_the_batch_test_is_below_the_reported_sum(
    shape: str, batch: int, C: float, clip: float
) -> None:
    """Four standard errors of allowance: fails less than one time in 10^3 when true."""
    rng, n = np.random.default_rng(7), 2_000
    t = {
        "symmetric": rng.choice([-1.0, 1.0], size=n),
        "rare": np.where(rng.random(n) < 0.03, 1.0, -0.1),
        "skewed": np.where(rng.random(n) < 0.1, 1.0, -1.0),
        "three points": rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=n),
        "narrow": rng.normal(size=n) * 0.1,
    }[shape]
    bound = barker_mcmc.test_error(batch, n, clip, C)
    centre = clip * math.sqrt(batch) * t.mean()
    for wanted in (-2.0, 0.0, 1.0):
        p, error = acceptance(t, wanted - centre, batch=batch, clip=clip, C=C)
        assert abs(p - special.expit(wanted)) <= bound + 4 * error
    assert bound < 0.1  # not vacuous


def test_a_forgotten_correction_exceeds_the_reported_error() -> None:
    """Negative control: N(0, C) in place of the logistic law."""
    t = np.zeros(2_000)
    p = special.ndtr(1.0 / math.sqrt(2.0))
    assert abs(p - special.expit(1.0)) > barker_mcmc.test_error(1000, 2_000, 1.0, 2.0) + 0.005
    exact, _ = acceptance(t, 1.0, batch=1000, clip=1.0, C=2.0)
    assert abs(exact - special.expit(1.0)) < logistic_correction(2.0).error


# --- faults ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Half(Model):
    """x ~ N(t, 1), t uniform on (0, 1); the density of a negative record is not a number."""

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"t": ()}

    def log_prior(self, theta: Theta) -> jax.Array:
        return jnp.where((theta["t"] > 0) & (theta["t"] < 1), 0.0, -jnp.inf)

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return -0.5 * (jnp.sqrt(record["x"]) - theta["t"]) ** 2


def half(**settings: Any) -> BarkerMCMC:
    return BarkerMCMC(Half(), RandomWalk(2.0), start={"t": 0.5}, **{"tempered_size": 50, **settings})


def test_proposals_that_leave_the_support_are_billed_rejections() -> None:
    plan = half().plan(n=1000, steps=300)
    release = plan.release({"x": np.random.default_rng(8).random(1000)}, key=1)
    t = release.draws["t"]
    assert np.all((t > 0) & (t < 1))
    assert len(t) == 300
    assert len(np.unique(t)) > 10  # it does move
    assert release.guarantee == plan.guarantee


def test_a_ratio_that_is_not_a_number_is_one_vote_to_reject() -> None:
    plan = half().plan(n=1000, steps=1000, batch=200)
    all_bad = plan.release({"x": np.full(1000, -1.0)}, key=1)
    assert np.unique(all_bad.draws["t"]).size == 1  # sum of votes: -clip sqrt(batch) = -12.7
    assert all_bad.guarantee == plan.guarantee
    x = np.random.default_rng(8).random(1000)
    one_bad = plan.release({"x": np.append(x[:-1], -1.0)}, key=1)
    assert np.unique(one_bad.draws["t"]).size > 20
    assert np.all(np.isfinite(one_bad.draws["t"]))


@dataclass(frozen=True)
class Lost:
    """A proposal that is not a number."""

    def propose(self, theta: Theta, noise: Noise) -> tuple[Theta, float]:
        del noise
        return {name: value * jnp.nan for name, value in theta.items()}, 0.0


def test_a_candidate_that_is_not_a_number_is_rejected() -> None:
    release = BarkerMCMC(MIXTURE, Lost(), tempered_size=50).plan(n=N, steps=20).release({"x": X})
    assert np.all(release.draws["theta"] == 0)


def test_another_number_of_records_is_refused_before_anything_is_spent() -> None:
    class Ledger:
        def __init__(self) -> None:
            self.spent: list[str] = []

        def spend(self, guarantee: object, purpose: str, *, plan: str) -> None:
            del guarantee, purpose
            self.spent.append(plan)

        def complete(self, receipt: object, release: str) -> None:
            del receipt, release

    ledger, plan = Ledger(), chain().plan(n=N, steps=10)
    for wrong in (X[:-1], np.append(X, 0.0)):
        with pytest.raises(ValueError, match=f"records must be as many as the plan says, {N}, got another"):
            plan.release({"x": wrong}, ledger=ledger)
    assert ledger.spent == []
    plan.release({"x": X}, ledger=ledger)
    assert ledger.spent == [plan.hash()]


# --- the loop ---------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_chain_and_another_seed_another() -> None:
    plan = chain().plan(n=N, steps=300)
    one, two, other = (plan.release({"x": X}, key=key).draws["theta"] for key in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_chains_are_different_and_stored_one_after_the_other() -> None:
    start = {"theta": np.array([[0.0, 0.0], [5.0, 5.0]])}
    plan = chain(chains=2, start=start).plan(n=N, steps=300)
    release = plan.release({"x": X}, key=1)
    draws = by_chain(release.draws, 2)["theta"]
    assert draws.shape == (2, 300, 2)
    assert np.abs(draws[0, 0]).max() < 2.0
    assert np.abs(draws[1, 0] - 5).max() < 2.0
    posterior = release.posterior.posterior["theta"]
    assert posterior.dims[:2] == ("chain", "draw")
    np.testing.assert_array_equal(posterior.values, draws)


def test_interruption_keeps_the_bill_and_resumes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after the first of three blocks; the rest is the rest of an undisturbed run."""
    plan = chain().plan(n=N, steps=600)
    whole = plan.release({"x": X}, key=5).draws["theta"]

    def impatient(count: int) -> None:
        del count
        raise KeyboardInterrupt

    quiet = _chain._nothing
    monkeypatch.setattr(_chain, "_nothing", impatient)
    with pytest.raises(Interrupted) as stopped:
        plan.release({"x": X}, key=5)
    monkeypatch.setattr(_chain, "_nothing", quiet)
    partial = stopped.value.release
    assert partial.guarantee == plan.guarantee
    assert any(
        "interrupted after 256 of 600 steps, all of which are billed" in e.claim for e in partial.evidence
    )
    np.testing.assert_array_equal(partial.draws["theta"], whole[:256])
    rest = stopped.value.resume()
    assert rest.draws["theta"].shape == (600, 2)
    np.testing.assert_array_equal(rest.draws["theta"][:256], whole[:256])
    assert np.abs(rest.draws["theta"][256] - whole[255]).max() < 2.0
    with pytest.raises(RuntimeError, match="resumed already"):
        stopped.value.resume()


def test_progress_prints_counts_of_steps_only(capsys: pytest.CaptureFixture[str]) -> None:
    plan = chain().plan(n=N, steps=600)
    shown = []
    for x in (X, -X):
        plan.release({"x": x}, key=5, progress=True)
        out = capsys.readouterr()
        assert out.out == ""
        shown.append(out.err.split("0:")[0])
    assert shown[0] == shown[1]


def test_diagnostics_are_sensitive_and_not_saved(tmp_path: Any) -> None:
    release = chain().plan(n=N, steps=50).release({"x": X}, key=1)
    assert 0 < release.diagnostics["acceptance_rate"].reveal()[0] < 1
    assert "sensitive" in str(release.diagnostics["clipped_share"])
    saved = (release.save(tmp_path / "r") / "release.json").read_text()
    assert "acceptance_rate" not in saved


def test_langevin_and_user_proposals_run() -> None:
    for proposal in (Langevin(0.2, MIXTURE.log_prior), RandomWalk({"theta": 0.2})):
        release = replace(chain(), proposal=proposal).plan(n=N, steps=100).release({"x": X}, key=1)
        assert np.unique(release.draws["theta"]).size > 10


def test_a_correlated_walk_has_its_covariance_and_refuses_others() -> None:
    wanted = [[1.0, -0.9], [-0.9, 1.0]]
    z = np.random.default_rng(9).normal(size=(20_000, 2))
    with jax.enable_x64(True):

        def moved(row: jax.Array) -> jax.Array:
            noise = Noise({"a": row[:1], "b": row[1]}, {}, jnp.zeros(2, jnp.uint32))
            to, ratio = CorrelatedWalk(wanted).propose({"a": jnp.zeros(1), "b": jnp.zeros(())}, noise)
            assert ratio == 0.0
            return jnp.stack([to["a"][0], to["b"]])

        moves = np.asarray(jax.vmap(moved)(jnp.asarray(z)))
    np.testing.assert_allclose(np.cov(moves.T), wanted, atol=0.05)
    with pytest.raises(ValueError, match="covariance must be a symmetric matrix"):
        CorrelatedWalk([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match="covariance must be positive definite"):
        CorrelatedWalk([[1.0, 2.0], [2.0, 1.0]])
