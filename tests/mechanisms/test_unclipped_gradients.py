"""Gradient steps on the beta-loss without clipping: the proved bound, what a step computes, refusals."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from discreet.mechanisms import LangevinDynamics, Sgd, StochasticGradient
from discreet.mechanisms._private_sums import Batch, Engine, Inputs, Numbers
from discreet.models import (
    BetaDivergence,
    Gibbs,
    LogisticRegression,
    NeuralNetwork,
    PoissonRegression,
    ProbitRegression,
    SoftmaxRegression,
    from_numpyro,
)
from discreet.neural import Dense, Flat, Unclipped, sources
from discreet.neural.keystream import Keystream
from discreet.neural.normals import draw, tree
from discreet.privacy import Neighbours
from discreet.samplers.randomness import Randomness

SAMPLES = 20_000
ROW = 1.5
WEIGHT = 0.7


def lengths(model: Any, loss: Any, classes: int, seed: int = 0) -> np.ndarray:
    """Norms of gradients at random records, half of them as long as allowed, and random parameters."""
    g = np.random.default_rng(seed)
    x = g.standard_normal((SAMPLES, 3))
    size = np.where(g.random(SAMPLES) < 0.5, 1.0, g.random(SAMPLES))
    x *= (ROW * size / np.linalg.norm(x, axis=1))[:, None]
    records = model.validate({"x": x, "y": g.integers(0, classes, SAMPLES).astype(float)})
    shape = (SAMPLES, *model.parameter_shapes["w"])
    scale = 10 ** g.uniform(-2, 3, SAMPLES)
    w = g.standard_normal(shape) * scale.reshape(-1, *[1] * (len(shape) - 1))
    with jax.enable_x64(True):
        each = jax.jit(jax.vmap(jax.grad(lambda t, r: loss(model, t, r))))
        found = np.asarray(each({"w": jnp.asarray(w)}, {k: jnp.asarray(v) for k, v in records.items()})["w"])
    assert np.isfinite(found).all()
    return np.sqrt((found.reshape(SAMPLES, -1) ** 2).sum(axis=1))


@pytest.mark.parametrize("beta", [1.1, 1.5, 2.0, 4.0])
def test_logistic_bound_is_attained_and_never_exceeded(beta: float) -> None:
    loss, model = BetaDivergence(beta, WEIGHT), LogisticRegression(3, row_norm=ROW)
    bound, found = loss.slope(model).value, lengths(model, loss, 2)
    assert found.max() <= bound
    assert found.max() >= 0.95 * bound
    rule, small = (Unclipped().settled(lambda c=c: c * bound) for c in (1.0, 0.9))
    with jax.enable_x64(True):
        assert (np.asarray(rule.weights(found**2, rule.norm)) == 1).all()
        assert (
            np.asarray(small.weights(found**2, small.norm)) == 0
        ).any()  # a bound that is too small is caught


def test_maxima_are_bounded_closely() -> None:
    """Against values at other points than those of the grid, over all betas that anyone uses."""
    logits = np.random.default_rng(0).uniform(-30, 30, 200_000)
    f, q = 1 / (1 + np.exp(-logits)), 1 / (1 + np.exp(logits))
    model = LogisticRegression(1)
    for b in (1e-3, 0.03, 0.3, 1.0, 3.0, 30.0, 300.0):
        reached = (f**b * q**2 + f * q ** (1 + b)).max()
        assert reached <= BetaDivergence(1 + b, 1.0).slope(model).value <= 1.01 * reached


def test_the_printed_step_of_proposition_3_is_no_bound() -> None:
    """Max{G, G M} with the smallest G, sup f^b (1-f) = 1/4 at beta = 2, is exceeded: 8/27 is reached."""
    loss, model = BetaDivergence(2.0, 1.0), LogisticRegression(3, row_norm=ROW)
    assert lengths(model, loss, 2).max() > 1.1 * ROW / 4
    assert ROW * 8 / 27 <= loss.slope(model).value <= 1.001 * ROW * 8 / 27


@pytest.mark.parametrize("classes", [2, 4])
def test_softmax_bound_is_never_exceeded(classes: int) -> None:
    """It is within 15 percent; twice the Lipschitz bound would be 7 times too large."""
    loss, model = BetaDivergence(2.0, WEIGHT), SoftmaxRegression(3, classes, row_norm=ROW)
    bound, found = loss.slope(model).value, lengths(model, loss, classes)
    assert 0.85 * bound <= found.max() <= bound


def coin(x: Any = None, y: Any = None) -> None:
    assert x is not None
    w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
    with numpyro.plate("people", len(x)):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def line(x: Any = None, y: Any = None) -> None:
    assert x is not None
    w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
    with numpyro.plate("people", len(x)):
        numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)


def written(fn: Any, lipschitz: float) -> Any:
    fields = {"x": (3,), "y": ()}
    return from_numpyro(fn, records="people", fields=fields, certificates={"lipschitz": lipschitz})


def test_any_model_with_a_lipschitz_bound() -> None:
    loss, model = BetaDivergence(1.5, WEIGHT), written(coin, ROW)
    bound = loss.slope(model)
    assert 0.3 * bound.value <= lengths(model, loss, 2).max() <= bound.value
    assert str(bound.evidence.standing) == "assumed"


class Recorded:
    """A rule that leaves the parameters and keeps the noisy sum."""

    def init(self, theta: Any) -> Any:
        return theta

    def update(self, model: Any, theta: Any, state: Any, noisy: Any, numbers: Any) -> Any:  # noqa: ARG002
        return theta, noisy


@pytest.mark.parametrize("relation", list(Neighbours))
def test_replay_on_neighbours(relation: Neighbours) -> None:
    """A whole compiled step: one record moves it by C or 2 C at most, be it longer than declared or NaN."""
    model, loss = LogisticRegression(3, row_norm=ROW), BetaDivergence(2.0, WEIGHT)
    mechanism = StochasticGradient(model, loss=loss, clipping=Unclipped(), neighbours=relation)
    clip = float(mechanism.clipping.norm)  # pyright: ignore[reportArgumentType]
    assert loss.slope(model).value <= clip * (1 - 2**-10) <= 1.001 * loss.slope(model).value
    assert replayed(Engine(model, mechanism.clipping, Recorded(), loss=loss), clip, relation) >= 0.9
    # The control: the same steps with a rule that believes in a C of twice the declared one.
    twice = Engine(model, mechanism.clipping, Recorded(), loss=BetaDivergence(2.0, 2 * WEIGHT))
    assert replayed(twice, 2 * clip, relation, declared=clip) > 1.5


def replayed(engine: Engine, clip: float, relation: Neighbours, declared: float | None = None) -> float:
    """How far a record moves a step, in units of what is declared; asserts that it is at most `clip`."""
    rows, g = 12, np.random.default_rng(1)
    x = g.standard_normal((rows, 3))
    x *= ROW / np.linalg.norm(x, axis=1)[:, None]
    base = {"x": x, "y": g.integers(0, 2, rows).astype(float)}
    stream = Keystream(bytes(32))
    bits, layers = draw(stream, 3, double=True), sources.draw(stream, sources.Wanted(0, 0))
    both = relation is Neighbours.SUBSTITUTE
    limit = 2 * clip if both else clip
    with jax.enable_x64(True):
        theta = {"w": jnp.asarray([3.2, -2.4, 1.6])}
        numbers = Numbers(np.float64(clip), np.float64(0.5), np.float64(1.0))
        run = jax.jit(lambda batch: engine.step(theta, theta, Inputs(batch, bits, layers, numbers)))

        def noisy(row: np.ndarray, y: float, valid: int) -> np.ndarray:
            fields = {"x": base["x"].copy(), "y": base["y"].copy()}
            fields["x"][-1], fields["y"][-1] = row, y
            return np.asarray(run(Batch(fields, np.arange(rows) < valid))[1]["w"])

        unit = np.asarray(theta["w"]) / np.linalg.norm(theta["w"])
        # The longest gradient has a logit of log 2 against the label; longer rows turn up too, and NaN.
        direction = unit * np.log(2) / np.linalg.norm(theta["w"])
        across = np.array([0.3, 0.4, 0.0]) / 0.5
        longest = direction + across * np.sqrt(ROW**2 - direction @ direction)
        candidates = [longest, *(s * x[0] for s in (0.5, 1.0, 30.0, 1e9, np.inf, np.nan))]
        moved: list[float] = []
        for row in candidates:
            one = noisy(row, 0.0, rows)
            other = noisy(direction * 2 - row, 0.0, rows) if both else noisy(row, 0.0, rows - 1)
            moved.append(float(np.linalg.norm(one - other)))
    assert not np.isnan(moved).any()
    assert max(moved) <= limit
    return max(moved) / (2 if both else 1) / (declared or clip)


def test_a_false_certificate_costs_records_and_not_privacy() -> None:
    """A stated Lipschitz bound of a tenth of the true one: what is longer counts 0."""
    rule = Unclipped().settled(lambda: 0.15)
    squares = jnp.asarray([0.1, 0.15, 0.16, 1.5, np.inf, np.nan]) ** 2
    weights = np.asarray(rule.weights(squares, rule.norm))
    assert weights.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_a_run_weighs_every_gradient_by_one() -> None:
    """Three steps by hand: the sums are those of the gradients themselves, and C is the proved bound."""
    n, batch = 60, 20
    model, loss = LogisticRegression(2), BetaDivergence(1.5, WEIGHT)
    g = np.random.default_rng(0)
    x = g.uniform(-0.7, 0.7, (n, 2))
    records = model.validate({"x": x, "y": (x[:, 0] > 0).astype(float)})
    mechanism = StochasticGradient(
        model, loss=loss, optimiser=Sgd(0.5), clipping=Unclipped(), neighbours="substitute"
    )
    plan = mechanism.plan(n=n, batch=batch, steps=3, noise_multiplier=1.5)
    clip = loss.slope(model).value * (1 + 1e-9) / (1 - 2**-10)
    flat = StochasticGradient(model, clipping=Flat(clip), neighbours="substitute")
    same = flat.plan(n=n, batch=batch, steps=3, noise_multiplier=1.5)
    assert plan.guarantee.epsilon(1e-5) == same.guarantee.epsilon(1e-5)
    assert "no gradient is clipped: C = " in plan.describe()
    run = mechanism.run_of(plan, records, Randomness(7), progress=False)
    ratchet = type(run.ratchet)(run.ratchet.leave())
    theta = run.theta["w"]
    for _ in range(3):
        stream = ratchet.next()
        rows = np.concatenate([p.rows[: p.valid] for p in run.batches.draw(stream, n)])
        with jax.enable_x64(True):
            z = np.asarray(tree(draw(stream, 2, double=True), {"w": (2,)})["w"])
        signs = 2 * records["y"][rows] - 1
        f = 1 / (1 + np.exp(-signs * (x[rows] @ theta)))
        slopes = -WEIGHT * (f**0.5 * (1 - f) ** 2 + f * (1 - f) ** 1.5) * signs
        total = (slopes[:, None] * x[rows]).sum(axis=0)
        theta = theta - 0.5 * ((total + 1.5 * clip * z) / batch + theta * model.prior_precision / n)
    release = plan.release(records, key=7)
    np.testing.assert_allclose(release.draws["w"][0], theta, rtol=1e-9)


def test_langevin_draws_follow_the_beta_posterior() -> None:
    """Labels wrong where x is large, which the beta-loss half ignores and the log-likelihood does not."""
    model, weight = LogisticRegression(2), 4.0
    g = np.random.default_rng(2)
    x = g.uniform(-0.7, 0.7, (2000, 2))
    y = (g.random(2000) < 1 / (1 + np.exp(-x @ [6.0, -4.0]))).astype(float)
    y[x[:, 0] > 0.55] = 0.0
    mechanism = LangevinDynamics(
        model,
        loss=BetaDivergence(2.0, weight),
        step_size=1e-3,
        clipping=Unclipped(),
        neighbours="add_remove",
        burn_in=0.25,
    )
    plan = mechanism.plan(n=2000, batch=1000, steps=2000)
    draws = plan.release({"x": x, "y": y}, key=1).draws["w"]

    def mode(slope: Any) -> np.ndarray:
        """By descent, with the derivative in the logit of the recorded label by hand."""
        w, signs = np.zeros(2), 2 * y - 1
        for _ in range(2000):
            f = 1 / (1 + np.exp(-signs * (x @ w)))
            w -= 1e-3 * (x.T @ (-slope(f) * signs) + w)
        return w

    distances = [
        np.abs(draws.mean(axis=0) - mode(slope)) / draws.std(axis=0)
        for slope in (lambda f: weight * 2 * f * (1 - f) ** 2, lambda f: weight * (1 - f))
    ]
    assert (distances[0] < 0.5).all()
    assert (distances[1] > 2).all()  # the control: the mode under the log-likelihood


def test_what_is_refused() -> None:
    loss = BetaDivergence(1.5, 1.0)
    model = LogisticRegression(3)

    def made(model: Any, loss: Any, clipping: Any) -> StochasticGradient:
        return StochasticGradient(model, loss=loss, clipping=clipping, neighbours="substitute")

    network = NeuralNetwork(3, (Dense(8), Dense(3)))
    with pytest.raises(TypeError, match="BetaDivergence for a NeuralNetwork; leave it out"):
        made(network, loss, Flat(1.0))
    with pytest.raises(ValueError, match="NeuralNetwork has no certificate 'lipschitz'; clip"):
        StochasticGradient(network, clipping=Unclipped(), neighbours="substitute")
    for other in (ProbitRegression(3), PoissonRegression(3)):
        with pytest.raises(ValueError, match=f"{type(other).__name__} has no certificate 'lipschitz'; clip"):
            made(other, loss, Unclipped())
    with pytest.raises(ValueError, match="needs finitely many outcomes, and NumPyroModel"):
        made(written(line, 1.0), loss, Unclipped())
    with pytest.raises(ValueError, match="that of Gibbs for LogisticRegression has none"):
        made(model, Gibbs(0.5), Unclipped())
    with pytest.raises(ValueError, match="beta and weight chosen"):
        made(model, BetaDivergence(), Flat(1.0))
    with pytest.raises(ValueError, match=r"norm must be left out, as C is the proved bound 0\.4"):
        made(model, loss, Unclipped(0.1))
    again = made(model, loss, made(model, loss, Unclipped()).clipping)
    assert again == made(model, loss, Unclipped())
