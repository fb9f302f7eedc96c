"""The losses: their ranges, their limits, and what paper B leaves out."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from discreet.models import (
    BetaDivergence,
    ClippedGibbs,
    Gibbs,
    LinearRegression,
    LogisticRegression,
    Model,
    NeuralRegression,
    PoissonRegression,
    ProbitRegression,
    SoftmaxRegression,
)
from discreet.models.integrals import log_power_integral
from discreet.models.losses import beta_range

MODELS: list[tuple[Model, str]] = [
    (LogisticRegression(features=2, row_norm=1e6), "binary"),
    (ProbitRegression(features=2), "binary"),
    (SoftmaxRegression(features=2, classes=3, row_norm=1e6), "class"),
    (PoissonRegression(features=2), "count"),
    (LinearRegression(features=2), "number"),
    (NeuralRegression(features=2, hidden=3), "number"),
]


def made_up(model: Model, outcome: str, count: int) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.uniform(-2, 2, count)
    theta = {
        k: jnp.asarray(rng.standard_normal((count, *s)) * scale.reshape(-1, *[1] * len(s)))
        for k, s in model.parameter_shapes.items()
    }
    y = {
        "binary": rng.integers(0, 2, count),
        "class": rng.integers(0, 3, count),
        "count": np.floor(10.0 ** rng.uniform(-1, 3, count)),
        "number": rng.standard_normal(count) * scale,
    }[outcome]
    return theta, {"x": jnp.asarray(rng.standard_normal((count, 2)) * 10), "y": jnp.asarray(y, dtype=float)}


@pytest.mark.parametrize(("model", "outcome"), MODELS, ids=[type(m).__name__ for m, _ in MODELS])
@pytest.mark.parametrize("beta", [1.2, 2.4])
def test_no_record_leaves_the_range(model: Model, outcome: str, beta: float) -> None:
    with jax.enable_x64(True):
        theta, record = made_up(model, outcome, 4000)
        loss = BetaDivergence(beta=beta, weight=0.7)
        values = np.asarray(jax.jit(jax.vmap(lambda t, r: loss(model, t, r)))(theta, record))
    assert np.isfinite(values).all()
    bound = loss.range(model).value
    assert np.ptp(values) <= bound
    if outcome != "number":
        assert np.ptp(values) >= 0.9 * bound, "for probabilities the range is attained"


@pytest.mark.parametrize("b", [1e-9, 1e-3, 0.4, 2.0])
def test_the_fused_loss_is_the_definition(b: float) -> None:
    model, loss = LogisticRegression(features=1, row_norm=1e6), BetaDivergence(1 + b, 1.0)

    def plain(w: jax.Array, y: float) -> jax.Array:
        logs = jax.nn.log_sigmoid((2 * y - 1) * w)
        whole = jnp.exp(log_power_integral(dist.Bernoulli(logits=w), b))
        return -jnp.expm1(b * logs) / b + whole / (1 + b)

    def ours(w: jax.Array, y: float) -> jax.Array:
        return loss(model, {"w": w[None]}, {"x": jnp.ones(1), "y": jnp.asarray(y)})

    with jax.enable_x64(True):
        grid = jnp.array([-30.0, -3.0, -0.2, 1e-9, 0.4, 5.0, 40.0])
        for y in (0.0, 1.0):
            for order in (lambda f: f, jax.grad, lambda f: jax.grad(jax.grad(f))):
                want = np.asarray(jax.vmap(order(lambda w, y=y: plain(w, y)))(grid))
                have = np.asarray(jax.vmap(order(lambda w, y=y: ours(w, y)))(grid))
                np.testing.assert_allclose(have, want, rtol=2e-6, atol=2e-7)
            curved = float(jax.grad(jax.grad(lambda w, y=y: ours(w, y)))(jnp.asarray(0.0)))
            near = float(jax.grad(jax.grad(lambda w, y=y: ours(w, y)))(jnp.asarray(1e-7)))
            assert curved == pytest.approx(near, abs=1e-5), "the seam at 0 is smooth"


def test_beta_near_1_is_the_log_likelihood() -> None:
    model = LinearRegression(features=1)
    with jax.enable_x64(True):
        theta = {"w": jnp.array([0.3]), "log_excess_variance": jnp.asarray(0.2)}
        apart = []
        for y in (0.0, 4.0):
            record = {"x": jnp.ones(1), "y": jnp.asarray(y)}
            apart.append(
                float(BetaDivergence(1 + 1e-9, 1.0)(model, theta, record) - Gibbs(1.0)(model, theta, record))
            )
    assert apart[0] == pytest.approx(apart[1], abs=1e-6), "they differ by a constant"


def test_f_near_0_gives_no_nan() -> None:
    model = LinearRegression(features=1)
    with jax.enable_x64(True):
        theta = {"w": jnp.array([1e3]), "log_excess_variance": jnp.asarray(-50.0)}
        record = {"x": jnp.array([1e3]), "y": jnp.asarray(0.0)}
        value, slope = jax.value_and_grad(lambda t: BetaDivergence(1.5, 1.0)(model, t, record))(theta)
    assert np.isfinite(float(value))
    assert all(np.isfinite(np.asarray(s)).all() for s in jax.tree.leaves(slope))


def test_paper_b_lemma_1_without_its_integral_is_not_private() -> None:
    """ERRATA 3: one record, two parameters, densities piecewise constant and at most M = 1, b = 1."""
    b, narrow = 1.0, 1e-3
    # f is 1 on an interval of length 1 (integral of f^2: 1), or 1 on a length of 0.001 and thin elsewhere.
    flat = 1.0
    spiky = narrow + (1 - narrow) ** 2 / 1e6
    high = 0.0 + flat / (1 + b)  # outcome outside the interval
    low = -1.0 / b + spiky / (1 + b)  # outcome on the spike
    # Record z: `high` at theta = 1, `low` at theta = 0; record z' the other way round, through its own x.
    z, other = np.array([low, high]), np.array([high, low])
    prior = np.array([1 - 1e-6, 1e-6])

    def posterior(losses: np.ndarray) -> np.ndarray:
        weights = prior * np.exp(-losses)
        return weights / weights.sum()

    true = np.abs(np.log(posterior(z) / posterior(other))).max()
    assert true > 2 / b + 0.9, "the printed epsilon is 2 M^b / b = 2"
    assert true <= 2 * (1 / b + 1 / (1 + b)), "ours"


def test_ranges_of_clipped_and_bounded_log_likelihoods() -> None:
    model = LogisticRegression(features=1)
    assert ClippedGibbs(bound=2.0, weight=0.5).range(model).value == pytest.approx(1.0)
    assert ClippedGibbs(bound=2.0, weight=0.5).range(LinearRegression(features=1)).value == pytest.approx(
        0.5 * (2 + math.log(LinearRegression(features=1).bounds["density"].value))
    )
    with pytest.raises(ValueError, match="log_density"):
        Gibbs(1.0).range(model)


def test_unset_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="beta and weight chosen"):
        _ = BetaDivergence().numbers
    with pytest.raises(ValueError, match="beta must be"):
        BetaDivergence(beta=1.0)


def test_general_densities_pay_for_the_integral() -> None:
    class Strange(LinearRegression):
        @property
        def bounds(self):
            return {"density": super().bounds["density"]}

    b, peak = 0.5, LinearRegression(features=1).bounds["density"].value
    assert beta_range(Strange(features=1), b) == pytest.approx(peak**b * (1 / b + 1 / (1 + b)))
    assert beta_range(LinearRegression(features=1), b) == pytest.approx(peak**b / b)
