"""Properties of composing unlike pieces, of routes, of relations, of inexact samplers."""

import math
from typing import Any

import numpy as np
import oracles
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import special

from discreet.privacy import (
    Guarantee,
    approximate,
    bounded_range,
    gaussian,
    gdp_central_limit,
    inexact,
    laplace,
    nothing,
    poisson_gaussian,
    profile,
    pure,
    zcdp,
)

SUB = "substitute"
steady = settings(
    deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)


# --- a naive composition of unlike pieces --------------------------------------------

WIDTH, HALF = 2e-3, 2**13


def losses(kind: str, parameter: float) -> Any:
    """P(loss > l) of the worst pair of one piece."""
    if kind == "pure":
        p = 1 / (1 + math.exp(-parameter))
        return lambda level: np.where(level < -parameter, 1.0, np.where(level < parameter, p, 0.0))
    if kind == "gaussian":
        mu = parameter
        return lambda level: special.ndtr(mu / 2 - level / mu)
    assert kind == "laplace"

    def above(level: np.ndarray) -> np.ndarray:
        # Loss of x ~ Laplace(r, 1) is |x| - |x - r|: -r below 0, 2x - r between, r above.
        x = (level + parameter) / 2
        inside = np.where(x < parameter, 1 - np.exp(np.minimum(x - parameter, 0)) / 2, 0.5)
        return np.where(level < -parameter, 1.0, np.where(level < parameter, inside, 0.0))

    return above


MAKE = {
    "pure": lambda x: pure(x, neighbours=SUB),
    "gaussian": lambda x: gaussian(1 / x, neighbours=SUB),
    "laplace": lambda x: laplace(1 / x, neighbours=SUB),
}


def naive_lower_delta(parts: list[tuple[str, float]], eps: float) -> float:
    """Losses rounded down, direct convolution: a lower bound of the true delta of the composition."""
    grid = np.arange(-HALF, HALF + 1) * WIDTH
    total, first = np.array([1.0]), 0
    for kind, parameter in parts:
        survival = losses(kind, parameter)(grid)
        masses = np.maximum(survival[:-1] - survival[1:], 0)
        kept = np.nonzero(masses > 1e-13)[0]
        masses = np.where(masses > 1e-13, masses, 0)[kept[0] : kept[-1] + 1]
        total, first = np.convolve(total, masses), first + int(kept[0]) - HALF
    levels = (first + np.arange(len(total))) * WIDTH
    return float(total @ np.where(levels > eps, -np.expm1(np.minimum(eps - levels, 0)), 0))


parts = st.lists(st.tuples(st.sampled_from(sorted(MAKE)), st.floats(0.02, 0.8)), min_size=2, max_size=4)


def compose(chosen: list[tuple[str, float]]) -> Guarantee:
    whole = nothing(neighbours=SUB)
    for kind, parameter in chosen:
        whole = whole + MAKE[kind](parameter)
    return whole


@steady
@given(parts, st.sampled_from([1e-7, 1e-4, 1e-2]))
def test_the_best_route_is_the_least_and_every_route_is_an_upper_bound(
    chosen: list[tuple[str, float]], delta: float
) -> None:
    whole = compose(chosen)
    routes = whole.by_route(delta)
    assert whole.epsilon(delta) == min(routes.values())
    for name, epsilon in routes.items():
        assert naive_lower_delta(chosen, epsilon) <= delta * (1 + 1e-9) + 1e-12, name


def test_the_naive_composition_catches_a_route_that_is_too_low() -> None:
    """Power: three percent less epsilon, and the lower bound of delta is above delta."""
    chosen = [("gaussian", 0.5), ("laplace", 0.3), ("pure", 0.2)]
    epsilon = compose(chosen).epsilon(1e-4)
    assert naive_lower_delta(chosen, epsilon) <= 1e-4 < naive_lower_delta(chosen, 0.97 * epsilon)


@steady
@given(parts, st.floats(0.0, 0.5))
def test_composing_never_lowers(chosen: list[tuple[str, float]], more: float) -> None:
    less, whole = compose(chosen[:-1]), compose(chosen) + pure(more, neighbours=SUB)
    for delta in (0.0, 1e-6, 1e-2):
        assert whole.epsilon(delta) >= less.epsilon(delta) * (1 - 1e-9)


def test_adding_something_tiny_never_lowers() -> None:
    """The grid follows the pieces, and a finer grid must not make a larger composition cheaper."""
    large = laplace(10.0, neighbours=SUB).repeat(300)
    for tiny in (
        pure(1e-6, neighbours=SUB),
        pure(1e-7, neighbours=SUB).repeat(1000),
        laplace(1e4, neighbours=SUB).repeat(300),
    ):
        assert (large + tiny).epsilon(1e-5) >= large.epsilon(1e-5)


@steady
@given(st.lists(st.tuples(st.sampled_from(sorted(MAKE)), st.floats(0.02, 0.8)), min_size=1, max_size=3))
def test_the_order_of_adding_does_not_matter(chosen: list[tuple[str, float]]) -> None:
    assert compose(chosen) == compose(chosen[::-1])
    assert compose(chosen).to_json() == compose(chosen[::-1]).to_json()


@steady
@given(parts, st.floats(1e-9, 0.5))
def test_delta_undoes_epsilon(chosen: list[tuple[str, float]], delta: float) -> None:
    whole = compose(chosen)
    assert whole.delta(whole.epsilon(delta)) <= delta * (1 + 1e-9)


# --- a thousand releases ----------------------------------------------------------------


def test_a_thousand_pure_releases_cost_what_dp_accounting_convolves() -> None:
    """dp-accounting once charged 1.0035 for this, having forgotten to multiply by the count."""
    ours = pure(1.0, neighbours=SUB).repeat(1000)
    heads = 1 / (1 + math.exp(-1))
    theirs = privacy_loss_distribution.from_randomized_response(
        2 * (1 - heads), 2, value_discretization_interval=1e-3
    ).self_compose(1000)
    for delta in (1e-6, 1e-3):
        # Losses of +-1 lie on every grid that divides 1: dp-accounting is exact but for the FFT.
        reference = theirs.get_epsilon_for_delta(delta)
        assert ours.epsilon(delta) >= reference * (1 - 1e-6)
        assert ours.epsilon(delta) <= reference * 1.01
        assert ours.epsilon(delta) > 300
    assert ours.epsilon(0.0) == pytest.approx(1000)


def test_a_thousand_pure_releases_against_the_binomial() -> None:
    p = 1 / (1 + math.exp(-1))
    k = np.arange(1001)
    log_chance = (
        special.gammaln(1001)
        - special.gammaln(k + 1)
        - special.gammaln(1001 - k)
        + k * np.log(p)
        + (1000 - k) * np.log1p(-p)
    )
    for epsilon in (400.0, 560.0, 620.0):
        gain = np.maximum(-np.expm1(np.minimum(epsilon - (2 * k - 1000), 0)), 0)
        truth = float(np.exp(log_chance) @ gain)
        assert truth <= pure(1.0, neighbours=SUB).repeat(1000).delta(epsilon) <= 1.2 * truth + 2e-11


# --- relations and approximations ---------------------------------------------------------


def test_relations_do_not_mix() -> None:
    one, other = pure(1.0, neighbours=SUB), pure(1.0, neighbours="add_remove")
    for first, second in (
        (one, other),
        (other, one),
        (one, nothing(neighbours="add_remove")),
        (one, inexact(0.1, neighbours="add_remove")),
    ):
        with pytest.raises(ValueError, match=r"substitute.*add_remove|add_remove.*substitute"):
            _ = first + second
    assert one != other


def test_an_approximation_does_not_compose() -> None:
    limit, real = gdp_central_limit(0.01, 1.0, 100), pure(1.0, neighbours=SUB)
    for sum_of in (
        lambda: limit + real,
        lambda: real + limit,
        lambda: limit + limit,
        lambda: 2 * limit,
        lambda: limit * 2,
        lambda: sum([limit, limit]),
    ):
        with pytest.raises(TypeError):
            sum_of()
    assert not isinstance(limit, Guarantee)
    assert "approximation, not a guarantee" in str(limit)
    assert "approximation, not a guarantee" in repr(limit)


@pytest.mark.parametrize("other", [1, 1.0, None, "pure", 0])
def test_only_guarantees_add(other: Any) -> None:
    with pytest.raises(TypeError):
        _ = pure(1.0, neighbours=SUB) + other
    with pytest.raises(TypeError):
        _ = other + pure(1.0, neighbours=SUB)


@pytest.mark.parametrize(
    "free",
    [
        pure(0.0, neighbours=SUB),
        laplace(1.0, sensitivity=0.0, neighbours=SUB),
        gaussian(1.0, sensitivity=0.0, neighbours=SUB),
        bounded_range(0.0, neighbours=SUB),
        zcdp(0.0, neighbours=SUB),
        approximate(0.0, 0.0, neighbours=SUB),
        profile({0.0: 0.0, 1.0: 0.0}, neighbours=SUB),
    ],
    ids=lambda g: g.describe().splitlines()[-1],
)
def test_whatever_costs_nothing_changes_nothing(free: Guarantee) -> None:
    base = pure(1.0, neighbours=SUB) + laplace(2.0, neighbours=SUB)
    for delta in (0.0, 1e-6, 0.1):
        assert (base + free).epsilon(delta) == base.epsilon(delta)
    assert (base + free).delta(0.5) == base.delta(0.5)
    assert (base + free).renyi(2.0) == base.renyi(2.0)
    assert free.epsilon(0.0) == 0.0


# --- inexact samplers -----------------------------------------------------------------------


def solve_inexact(exact: Guarantee, gamma: float, delta: float) -> float:
    """The least epsilon with delta_exact(epsilon) + (1 + e^epsilon) gamma <= delta, by a fine scan."""
    grid = np.linspace(0, 12, 601)
    fits = [exact.delta(float(e)) + (1 + math.exp(e)) * gamma <= delta for e in grid]
    return float(grid[fits.index(True)]) if any(fits) else math.inf


@pytest.mark.parametrize(
    "exact", [gaussian(1.5, neighbours=SUB), pure(1.0, neighbours=SUB), laplace(0.7, neighbours=SUB)]
)
@pytest.mark.parametrize(
    ("gamma", "delta"), [(1e-8, 1e-5), (1e-7, 1e-6), (1e-3, 0.1), (1e-4, 3e-4), (1e-3, 1e-3)]
)
def test_inexactness_is_solved_exactly(exact: Guarantee, gamma: float, delta: float) -> None:
    whole = exact + inexact(gamma, neighbours=SUB)
    truth, step = solve_inexact(exact, gamma, delta), 12 / 600
    ours = whole.epsilon(delta)
    if truth == math.inf:
        assert ours == math.inf
        return
    # Never below, and no more than one step of the scan away.
    assert exact.delta(ours) + (1 + math.exp(ours)) * gamma <= delta * (1 + 1e-7)
    assert truth - step <= ours <= truth * (1 + 1e-6) + 1e-9
    assert whole.delta(ours) <= delta * (1 + 1e-7)


def test_inexactness_close_to_the_last_delta_that_can_be_met() -> None:
    """Where the fixed point is nearly tangent, the iteration is slow but must arrive."""
    exact, gamma = gaussian(1.0, neighbours=SUB), 1e-4
    grid = np.linspace(0, 6, 3001)
    needed = min(exact.delta(float(e)) + (1 + math.exp(e)) * gamma for e in grid)
    for slack in (1e-2, 1e-4, 1e-6):
        assert math.isfinite((exact + inexact(gamma, neighbours=SUB)).epsilon(needed * (1 + slack)))
    assert (exact + inexact(gamma, neighbours=SUB)).epsilon(needed * 0.99) == math.inf


def test_delta_of_an_inexact_guarantee_is_the_best_along_the_way() -> None:
    exact, gamma = laplace(1.0, neighbours=SUB), 1e-6
    whole = exact + inexact(gamma, neighbours=SUB)
    for epsilon in (0.0, 0.5, 2.0, 10.0, 100.0, 1000.0, 1e6):
        grid = np.linspace(0, min(epsilon, 30.0), 301)
        truth = min(1.0, *(exact.delta(float(e)) + (1 + math.exp(e)) * gamma for e in grid))
        assert truth * 0.98 <= whole.delta(epsilon) <= truth * 1.1 + 1e-15


def test_inexactness_adds() -> None:
    one = inexact(0.1, neighbours=SUB)
    assert one.repeat(3) == one + one + one
    assert one.repeat(10) == sum([one] * 9, one)
    assert one.repeat(10).delta(0.0) >= 2 * 10 * 0.1 * (1 - 1e-12) or one.repeat(10).delta(0.0) == 1.0


def test_routes_by_name_respect_inexactness_and_check_delta() -> None:
    whole = gaussian(1.0, neighbours=SUB) + inexact(1e-7, neighbours=SUB)
    assert all(epsilon >= whole.epsilon(1e-5) * (1 - 1e-9) for epsilon in whole.by_route(1e-5).values())
    for bad in (math.nan, -1.0, 1.0, "x", None):
        with pytest.raises((ValueError, TypeError), match="delta"):
            whole.by_route(bad)  # pyright: ignore[reportArgumentType]


def test_dp_accounting_is_asked_for_the_named_relation() -> None:
    """One subsampled step, discretised: it must agree with our own closed form for each relation."""
    for neighbours in ("add_remove", "substitute"):
        step = poisson_gaussian(0.1, 1.0, 1, neighbours=neighbours)
        (piece, _) = step.pieces[0]
        discretised = piece.loss_distribution(1e-4)
        for epsilon in (0.0, 0.2, 1.0):
            found = discretised.get_delta_for_epsilon(epsilon)
            assert step.delta(epsilon) * (1 - 1e-9) <= found <= step.delta(epsilon) * (1 + 1e-3)


def test_the_oracle_agrees_with_itself() -> None:
    assert naive_lower_delta([("gaussian", 0.3), ("gaussian", 0.4)], 0.2) == pytest.approx(
        float(oracles.hockey_stick_normals(0.2, 0.5, 1, 1)), rel=0.02
    )
