"""How far an FFT convolution can fall below the truth, and what discretising costs."""

import math

import numpy as np
import oracles
import pytest
from scipy import special, stats

from discreet.privacy import gaussian, laplace, poisson_gaussian, pure, routes
from discreet.privacy.basic import Gaussian, Pure
from discreet.privacy.discretise import dominating_distribution, lower_envelope
from discreet.privacy.neighbours import Neighbours

SUB = Neighbours.SUBSTITUTE


def gaussian_delta(mu: float, eps: np.ndarray) -> np.ndarray:
    return special.ndtr(mu / 2 - eps / mu) - np.exp(eps + special.log_ndtr(-mu / 2 - eps / mu))


@pytest.mark.parametrize("mu", [0.3, 2.0])
@pytest.mark.parametrize("times", [10, 1000, 100_000])
def test_convolved_gaussians_are_never_below_the_closed_form(times: int, mu: float) -> None:
    """T Gaussians of mu / sqrt(T) are one of mu. The allowance must cover every downward error."""
    piece = Gaussian(SUB, mu / math.sqrt(times))
    own = routes.grid_width(((piece, times),))
    eps = mu * np.linspace(0, 7, 40)
    for width in (own, own / 3):
        whole = piece.loss_distribution(width).self_compose(times)
        found = np.array([whole.get_delta_for_epsilon(float(e)) for e in eps])
        below = float((gaussian_delta(mu, eps) - found).max())
        assert below <= routes.CONVOLUTION_ALLOWANCE
    # And it is sharp where it matters.
    whole = piece.loss_distribution(own).self_compose(times)
    sharp = gaussian_delta(mu, eps) > 1e-7
    found = np.array([whole.get_delta_for_epsilon(float(e)) for e in eps[sharp]])
    np.testing.assert_allclose(found, gaussian_delta(mu, eps[sharp]), rtol=0.02)


@pytest.mark.parametrize("times", [10, 1000, 100_000])
def test_the_error_of_the_fft_alone(times: int) -> None:
    """Randomised response lies on the grid, so what is left is the error of the FFT."""
    epsilon = 1 / math.sqrt(times)
    whole = Pure(SUB, epsilon).loss_distribution(epsilon).self_compose(times)
    heads = 1 / (1 + math.exp(-epsilon))
    k = np.arange(times + 1)
    chance = stats.binom.pmf(k, times, heads)
    levels = (2 * k - times) * epsilon
    worst = 0.0
    for eps in np.linspace(0, 8, 50):
        truth = math.fsum(chance * np.where(levels > eps, -np.expm1(np.minimum(eps - levels, 0)), 0))
        worst = max(worst, truth - whole.get_delta_for_epsilon(float(eps)))
    assert worst <= routes.CONVOLUTION_ALLOWANCE
    # The allowance is not absurdly large either.
    assert routes.CONVOLUTION_ALLOWANCE <= 1e-10


def test_many_unlike_pieces_stay_within_the_allowance() -> None:
    """Thirty different Gaussians convolved one by one: each pays an FFT."""
    mus = np.linspace(0.05, 0.3, 30)
    whole = None
    for mu in mus:
        part = Gaussian(SUB, float(mu)).loss_distribution(1e-4)
        whole = part if whole is None else whole.compose(part)
    assert whole is not None
    total = float(np.sqrt((mus**2).sum()))
    eps = total * np.linspace(0, 7, 40)
    found = np.array([whole.get_delta_for_epsilon(float(e)) for e in eps])
    assert (gaussian_delta(total, eps) - found).max() <= routes.CONVOLUTION_ALLOWANCE


def test_a_grid_of_any_width_is_sound() -> None:
    piece, truth = Gaussian(SUB, 0.5), gaussian_delta(0.5, np.linspace(0, 3, 31))
    for width in (1e-4, 1e-2, 0.3, 1.0):
        one = piece.loss_distribution(width)
        found = np.array([one.get_delta_for_epsilon(float(e)) for e in np.linspace(0, 3, 31)])
        assert np.all(found >= truth * (1 - 1e-12))


def test_gaussians_are_folded_into_one() -> None:
    many = gaussian(2.0, neighbours=SUB).repeat(3) + gaussian(4.0, neighbours=SUB)
    mu = math.sqrt(3 / 4 + 1 / 16)
    assert many.epsilon(1e-6) == pytest.approx(gaussian(1 / mu, neighbours=SUB).epsilon(1e-6), rel=1e-9)
    assert float(oracles.hockey_stick_normals(many.epsilon(1e-6), mu, 1, 1)) <= 1e-6


def test_the_lower_envelope_is_convex_and_below() -> None:
    eps = np.linspace(0, 4, 400)
    bent = gaussian_delta(1.0, eps) * (1 + 0.3 * np.sin(20 * eps) ** 2)
    found = lower_envelope(eps, bent)
    assert np.all(found <= np.minimum.accumulate(bent) * (1 + 1e-12))
    assert np.all(found >= gaussian_delta(1.0, eps) * (1 - 1e-9))
    slopes = np.diff(found) / np.diff(np.exp(eps))
    assert np.all(np.diff(slopes) >= -1e-9)


def test_what_lies_past_the_grid_counts_as_infinite() -> None:
    whole = dominating_distribution(lambda e: gaussian_delta(1.0, np.asarray(e)), 1.0, 0.01)
    assert whole.get_delta_for_epsilon(50.0) == pytest.approx(
        float(gaussian_delta(1.0, np.array([1.0]))[0]), rel=1e-6
    )


@pytest.mark.parametrize(
    "guarantee",
    [
        laplace(3.0, neighbours=SUB).repeat(40),
        pure(0.2, neighbours=SUB).repeat(100),
        poisson_gaussian(0.05, 1.0, 200, neighbours="add_remove"),
    ],
)
def test_every_route_by_name(guarantee) -> None:
    found = guarantee.by_route(1e-5)
    assert guarantee.epsilon(1e-5) == min(found.values())
    assert "convolution of privacy losses" in found
    assert set(found) <= {route.name for route in routes.ROUTES}
