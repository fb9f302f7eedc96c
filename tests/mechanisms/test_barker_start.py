"""VariationalStart: price, clipping, and a start that is near (docs/proofs/dp_mcmc.md#variational-start)."""

import jax
import jax.numpy as jnp
import numpy as np

from discreet.mechanisms.barker_mcmc import BarkerMCMC
from discreet.mechanisms.proposals import RandomWalk
from discreet.mechanisms.variational_start import VariationalStart, clipped_sum
from discreet.models.gaussian_mixture import GaussianMixture
from discreet.privacy import Budget, poisson_gaussian

MODEL = GaussianMixture()


def test_the_start_is_near_and_the_budget_is_kept() -> None:
    n, budget = 20_000, Budget(1.0, 1e-6)
    x = np.random.default_rng(0).normal(size=n) + 3.0
    plan = VariationalStart(MODEL, tempered_size=200).plan(n=n, budget=budget)
    noise = plan.parameters["noise_multiplier"]
    assert plan.guarantee == poisson_gaussian(200 / n, noise, 200, neighbours="substitute")  # pyright: ignore[reportArgumentType]
    assert plan.guarantee.fits(budget)
    release = plan.release({"x": x}, key=1)
    first = release.draws["theta"][0]
    assert abs(first[0] + first[1] / 2 - 3.0) < 0.75
    chain = BarkerMCMC(MODEL, RandomWalk(0.1), tempered_size=200, start={"theta": first})
    assert chain.starts()["theta"].tolist() == [first.tolist()]


def test_neighbours_move_the_sum_by_no_more_than_twice_the_limit() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 8)) * 4
    other = x.copy()
    other[:, -1] = rng.choice([1e9, -1e9, np.nan, 0.0], size=300)

    def total(rows: jax.Array, q: jax.Array, e: jax.Array) -> jax.Array:
        return clipped_sum(MODEL, {"theta": q}, {"theta": e}, {"x": rows}, 0.5, rows_kept=8)["theta"]

    with jax.enable_x64(True):
        q, e = jnp.asarray(rng.normal(size=(300, 2, 2))), jnp.asarray(rng.normal(size=(300, 2)))
        one, two = (np.asarray(jax.vmap(total)(jnp.asarray(rows), q, e)) for rows in (x, other))
    moved = np.sqrt(((one - two) ** 2).sum(axis=(1, 2)))
    assert moved.max() <= 1.0 * (1 + 1e-12)
    assert moved.max() > 0.6
    assert np.all(np.isfinite(two))
