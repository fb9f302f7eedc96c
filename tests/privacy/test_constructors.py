"""Bad input, one test per public function: errors name the argument, what was given and what is allowed."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest

from discreet import privacy
from discreet.privacy import (
    Budget,
    Guarantee,
    approximate,
    barker,
    barker_full_data,
    beta_bernoulli,
    bounded_range,
    calibrate,
    classical_epsilon,
    dirichlet_categorical,
    gaussian,
    gdp_central_limit,
    inexact,
    laplace,
    normals,
    nothing,
    poisson_gaussian,
    profile,
    pure,
    renyi,
    sampled_without_replacement,
    strongly_convex_posterior,
    zcdp,
)

NOT_REAL = [math.nan, math.inf, -math.inf, True, "1", None, [1.0], 1j]
NOT_WHOLE = [math.nan, 1.5, True, "3", None, [1]]
NOT_A_RELATION = ["both", "", None, 1, "Substitute"]


def refused(
    call: Callable[..., Any], argument: str, given: object, valid: dict[str, Any], word: str | None = None
) -> None:
    """Assert that `call` raises, naming the argument, what was given and what is allowed."""
    __tracebackhide__ = True
    with pytest.raises((ValueError, TypeError)) as caught:
        call(**{**valid, argument: given})
    message = str(caught.value)
    assert (word or argument) in message, f"{argument} is not named in: {message}"
    assert "must" in message, f"what is allowed is not said in: {message}"
    if isinstance(given, (int, float, str)):
        assert repr(given) in message, f"{given!r} is not shown in: {message}"


def check(
    call: Callable[..., Any],
    valid: dict[str, Any],
    reals: dict[str, list[float]],
    wholes: dict[str, list[int]] | None = None,
) -> None:
    """Every bad value of every numeric argument, and of `neighbours` where there is one."""
    __tracebackhide__ = True
    assert call(**valid) is not None
    for argument, beyond in reals.items():
        for given in (*NOT_REAL, *beyond):
            refused(call, argument, given, valid)
    for argument, beyond in (wholes or {}).items():
        for given in (*NOT_WHOLE, *beyond):
            refused(call, argument, given, valid)
    if "neighbours" in valid:
        for given in NOT_A_RELATION:
            refused(call, "neighbours", given, valid)
        without = {name: value for name, value in valid.items() if name != "neighbours"}
        with pytest.raises(TypeError, match="neighbours"):
            call(**without)


SUB: dict[str, Any] = {"neighbours": "substitute"}


def test_nothing() -> None:
    check(nothing, {**SUB}, {})


def test_pure() -> None:
    check(pure, {"epsilon": 1.0, **SUB}, {"epsilon": [-1e-9]})


def test_approximate() -> None:
    check(approximate, {"epsilon": 1.0, "delta": 1e-5, **SUB}, {"epsilon": [-1.0], "delta": [-1e-9, 1.0]})


def test_bounded_range() -> None:
    check(bounded_range, {"width": 1.0, **SUB}, {"width": [-1.0]})


def test_zcdp() -> None:
    check(zcdp, {"rho": 1.0, **SUB}, {"rho": [-1.0]})


def test_gaussian() -> None:
    check(gaussian, {"sigma": 1.0, "sensitivity": 1.0, **SUB}, {"sigma": [0.0, -1.0], "sensitivity": [-1.0]})


def test_laplace() -> None:
    check(laplace, {"scale": 1.0, "sensitivity": 1.0, **SUB}, {"scale": [0.0, -1.0], "sensitivity": [-1.0]})


def test_normals() -> None:
    check(
        normals,
        {"shift": 1.0, "sd_p": 1.0, "sd_q": 1.0, **SUB},
        {"shift": [-1.0], "sd_p": [0.0, -1.0], "sd_q": [0.0, -1.0]},
    )


def test_renyi() -> None:
    check(renyi, {"curve": {2.0: 0.1}, **SUB}, {})
    for given in (
        {},
        {2.0: math.nan},
        {2.0: -0.1},
        {2.0: math.inf},
        {2.0: "x"},
        {2.0: None},
        5.0,
        None,
        "x",
        [1.0],
    ):
        refused(renyi, "curve", given, SUB)
    for order in (1.0, 0.5, math.nan, math.inf, "2"):
        refused(renyi, "curve", {order: 0.1}, SUB, "order")
    refused(renyi, "curve", lambda _: math.nan, SUB)


def test_profile() -> None:
    valid = {"curve": lambda e: 0.1 * math.exp(-e), "largest": 3.0, **SUB}
    check(profile, valid, {})
    for given in (math.nan, math.inf, True, "1", 0.0, -1.0):
        refused(profile, "largest", given, valid)
    refused(profile, "largest", None, valid)
    for given in ({}, {0.0: 0.1}, {0.5: 0.1, 1.0: 0.0}, 5.0, "x", [0.1]):
        refused(profile, "curve", given, valid)
    for bad in (math.nan, -0.1, 1.1, "x", True, None):
        refused(profile, "curve", {0.0: bad, 1.0: 0.0}, valid, "delta")
    for bad in (math.nan, -0.1, "x"):
        refused(profile, "curve", {0.0: 0.1, bad: 0.0}, valid, "epsilon")


def test_inexact() -> None:
    check(inexact, {"distance": 0.1, **SUB}, {"distance": [-0.1, 1.0]})


def test_poisson_gaussian() -> None:
    check(
        poisson_gaussian,
        {"rate": 0.1, "sigma": 1.0, "steps": 3, **SUB},
        {"rate": [0.0, -0.1, 1.1], "sigma": [0.0, -1.0]},
        {"steps": [-1]},
    )


def test_sampled_without_replacement() -> None:
    base = pure(1.0, neighbours="substitute")
    valid = {"base": base, "rate": 0.1, "steps": 3}
    check(sampled_without_replacement, valid, {"rate": [0.0, -0.1, 1.1]}, {"steps": [-1]})
    wrong = (
        pure(1.0, neighbours="add_remove"),
        base.repeat(2),
        base + gaussian(1.0, neighbours="substitute"),
        base + inexact(0.1, neighbours="substitute"),
        nothing(neighbours="substitute"),
        1.0,
        None,
    )
    for given in wrong:
        refused(sampled_without_replacement, "base", given, valid)


def test_barker() -> None:
    valid = {"batch": 10, "size": 100, "steps": 3, "tempered_size": 50, "variance": 2.0, "clip": 1.0}
    check(
        barker,
        valid,
        {"variance": [0.0, -1.0, math.pi**2 / 3], "clip": [0.0, -1.0, 1.5]},
        {"batch": [1, 0, -5, 101], "size": [0, -1], "steps": [-1]},
    )
    for given in (math.nan, 1.5, True, "3", 0, 101):
        refused(barker, "tempered_size", given, valid)
    for given in ("Exact", "", None, 1):
        refused(barker, "bound", given, valid)
    with pytest.raises(ValueError, match="as_published is printed for variance 2 and clip 1"):
        barker(10, 100, 3, bound="as_published", clip=0.5)


def test_barker_full_data() -> None:
    check(
        barker_full_data,
        {"ratio_bound": 0.1, "steps": 3, "variance": 2.0},
        {"ratio_bound": [-1.0], "variance": [0.0, -1.0, 3.3]},
        {"steps": [-1]},
    )


def test_strongly_convex_posterior() -> None:
    check(
        strongly_convex_posterior,
        {"lipschitz": 1.0, "convexity": 1.0, **SUB},
        {"lipschitz": [-1.0], "convexity": [0.0, -1.0]},
    )


def test_beta_bernoulli() -> None:
    check(
        beta_bernoulli,
        {"successes": 6.0, "failures": 12.0, "size": 10, "weight": 1.0},
        {"successes": [0.0, -1.0], "failures": [0.0, -1.0], "weight": [0.0, -1.0, 1.1]},
        {"size": [0, -1]},
    )


def test_dirichlet_categorical() -> None:
    valid = {"concentration": [1.0, 2.0, 3.0], "weight": 1.0}
    check(dirichlet_categorical, valid, {"weight": [0.0, -1.0, 1.1]})
    for bad in (math.nan, math.inf, 0.0, -1.0, True, "1", None):
        refused(dirichlet_categorical, "concentration", [1.0, bad, 2.0], valid)
    for given in ([], [1.0], 1.0, None):
        refused(dirichlet_categorical, "concentration", given, valid)


def test_classical_epsilon() -> None:
    valid = {"guarantee": gaussian(1.0, neighbours="substitute"), "delta": 1e-5}
    check(classical_epsilon, valid, {"delta": [0.0, -1.0, 1.0]})
    # The rule knows neither a probability set aside nor an inexact sampler: fail closed, or answer infinity.
    for unknown in (approximate(0.1, 0.01, **SUB), pure(0.1, **SUB) + inexact(0.5, **SUB)):
        try:
            assert classical_epsilon(unknown, 1e-5) == math.inf
        except ValueError as error:
            assert "guarantee" in str(error)  # noqa: PT017


def test_gdp_central_limit() -> None:
    check(
        gdp_central_limit,
        {"rate": 0.1, "sigma": 1.0, "steps": 3},
        {"rate": [0.0, -0.1, 1.1], "sigma": [0.0, -1.0]},
        {"steps": [0, -1]},
    )
    for given in (math.nan, 0.0, 1.0, True, "1", None):
        refused(gdp_central_limit(0.1, 1.0, 3).epsilon, "delta", given, {})
    assert gdp_central_limit(0.01, 0.03, 10).epsilon(1e-5) >= 0


def test_budget() -> None:
    check(
        Budget,
        {"epsilon": 1.0, "delta": 0.1},
        {"epsilon": [0.0, -1.0], "delta": [-0.1, 1.0]},
    )
    for given in ("both", 1, ""):
        refused(Budget, "neighbours", given, {"epsilon": 1.0})


def test_calibrate() -> None:
    valid = {
        "build": lambda s: gaussian(s, neighbours="substitute"),
        "budget": Budget(1.0, 1e-5),
        "bracket": (0.1, 10.0),
    }
    calibrate(**valid)
    for given in (
        (0.0, 1.0),
        (-1.0, 1.0),
        (1.0, 1.0),
        (2.0, 1.0),
        (math.nan, 1.0),
        (1.0, math.inf),
        (True, 2.0),
        ("1", 2.0),
        (1.0,),
        (1.0, 2.0, 3.0),
        3.0,
        None,
    ):
        with pytest.raises((ValueError, TypeError), match="bracket must"):
            calibrate(**{**valid, "bracket": given})
    for given in (None, 1.0, "1"):
        refused(calibrate, "budget", given, valid)
    with pytest.raises((ValueError, TypeError), match="build must"):
        calibrate(**{**valid, "build": lambda s: s})


@pytest.mark.parametrize(
    "guarantee",
    [gaussian(1.0, **SUB), pure(1.0, **SUB).repeat(3), nothing(**SUB)],
    ids=["one", "many", "none"],
)
def test_questions(guarantee: Guarantee) -> None:
    check(guarantee.epsilon, {"delta": 0.1}, {"delta": [-0.1, 1.0, 1.5]})
    check(guarantee.delta, {"epsilon": 0.1}, {"epsilon": [-0.1]})
    check(guarantee.renyi, {"order": 2.0}, {"order": [1.0, 0.5, -2.0]})
    check(guarantee.repeat, {"times": 3}, {}, {"times": [-1]})
    check(guarantee.for_group, {"size": 3}, {}, {"size": [0, -1]})
    for times in (1.5, "3", None, -1):
        with pytest.raises((ValueError, TypeError)):
            _ = guarantee * times  # pyright: ignore[reportOperatorIssue]


def test_an_integer_too_large_for_a_float_is_refused_like_infinity() -> None:
    with pytest.raises((ValueError, TypeError), match="epsilon must"):
        pure(10**400, neighbours="substitute")


def test_every_public_function_has_its_test_here() -> None:
    everything = {name: getattr(privacy, name) for name in privacy.__all__}
    # Those of privacy/conjugate.py, attacker.py and observer.py are tested where their rules are.
    elsewhere = {"gamma_poisson", "normal_mean", "normal_inverse_gamma", "independent_pairs"}
    elsewhere |= {"attacker_success", "attacker_words", "percent"}
    functions = {name for name, made in everything.items() if inspect.isfunction(made)} - elsewhere
    here = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert functions <= here


def test_a_relation_may_be_given_by_name_or_member() -> None:
    assert pure(1.0, neighbours="substitute") == pure(1.0, neighbours=privacy.Neighbours.SUBSTITUTE)
    assert str(privacy.Neighbours.ADD_REMOVE) == "add_remove"
    assert all(member.explanation for member in privacy.Neighbours)
