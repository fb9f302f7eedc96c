"""What every conjugate family must obey; a new family inherits this class and names its numbers.

Statistical tests use fixed seeds. A Kolmogorov-Smirnov test asks for p > 1e-6, so that over seeds it
fails once in a million runs; means of 40,000 draws must lie within 6 standard errors (2e-9 per
coordinate). Negative control: draws with one natural parameter 20 % off must fail.
"""

from typing import Any, ClassVar

import jax
import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.models import ConjugateFamily
from discreet.privacy.divergences import renyi_exponential_family

Array = NDArray[np.float64]
DRAWS = 40_000


class FamilyContract:
    """Subclasses set the family, some natural parameters, neighbouring pairs, extremes, and the oracle."""

    family: ClassVar[ConjugateFamily]
    etas: ClassVar[list[list[float]]]
    pairs: ClassVar[list[tuple[list[float], list[float]]]]
    extremes: ClassVar[list[list[float]]]
    outside: ClassVar[list[list[float]]]
    records: ClassVar[dict[str, list[float]]]
    bad_records: ClassVar[dict[str, list[float]]]

    def kernel(self, eta: Any) -> Any:
        """log of the integral of exp(T . eta) by quadrature with mpmath."""
        raise NotImplementedError

    def marginals(self, eta: Array) -> dict[str, tuple[Any, Any]]:
        """By name: one-dimensional draws are taken with [0], and have SciPy's law [1]."""
        raise NotImplementedError

    def base(self, draws: dict[str, Array]) -> Array:
        """The log of the base measure, on the unconstrained scale."""
        return np.zeros(len(next(iter(draws.values()))))

    # --- C and its derivatives ---------------------------------------------------

    def test_log_normaliser_is_the_integral(self) -> None:
        for eta in self.etas:
            assert self.family.log_normaliser(np.array(eta)) == pytest.approx(
                float(self.kernel(eta)), abs=1e-9
            )

    def test_gradient_and_hessian_are_derivatives(self) -> None:
        for values in self.etas:
            eta = np.array(values)
            steps = np.eye(len(eta)) * 1e-5 * eta.max()
            first = [self.family.log_normaliser(eta + s) - self.family.log_normaliser(eta - s) for s in steps]
            second = [self.family.gradient(eta + s) - self.family.gradient(eta - s) for s in steps]
            width = 2 * steps.max()
            gradient, hessian = self.family.gradient(eta), self.family.hessian(eta)
            np.testing.assert_allclose(np.array(first) / width, gradient, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(np.array(second) / width, hessian, rtol=1e-6, atol=1e-7)
            assert np.linalg.eigvalsh(hessian).min() > -1e-12

    def test_renyi_divergence_agrees_with_quadrature(self) -> None:
        for eta_p, eta_q in self.pairs:
            p, q = mp.matrix(eta_p), mp.matrix(eta_q)
            at_p, at_q = self.kernel(list(p)), self.kernel(list(q))
            for order in (1.5, 3.0):
                ours = renyi_exponential_family([order], self.family.log_normaliser, eta_p, eta_q)[0]
                mixed = list(order * p + (1 - order) * q)
                if self.family.contains(np.array([float(m) for m in mixed])):
                    true = (self.kernel(mixed) - order * at_p) / (order - 1) + at_q
                    assert ours == pytest.approx(float(true), abs=1e-8)
                else:
                    assert ours == np.inf

    def test_outside_its_domain_the_normaliser_is_infinite(self) -> None:
        for eta in self.outside:
            assert not self.family.contains(np.array(eta))
            assert self.family.log_normaliser(np.array(eta)) == np.inf

    # --- draws -------------------------------------------------------------------

    def test_draws_have_the_law(self) -> None:
        for eta in map(np.array, self.etas):
            draws = self.family.draw(eta, np.random.default_rng(11), DRAWS)
            for take, law in self.marginals(eta).values():
                assert stats.kstest(take(draws), law.cdf).pvalue > 1e-6

    def test_a_wrong_law_is_noticed(self) -> None:
        eta = np.array(self.etas[0])
        wrong = eta * np.where(np.arange(len(eta)) == 0, 1.2, 1.0)
        draws = self.family.draw(wrong, np.random.default_rng(11), DRAWS)
        assert min(stats.kstest(t(draws), law.cdf).pvalue for t, law in self.marginals(eta).values()) < 1e-6

    def test_moments_of_draws_are_the_gradient(self) -> None:
        for eta in map(np.array, self.etas):
            t = self.family.sufficient(self.family.draw(eta, np.random.default_rng(12), DRAWS))
            error = np.sqrt(np.diag(self.family.hessian(eta)) / DRAWS)
            assert np.all(np.abs(t.mean(axis=0) - self.family.gradient(eta)) < 6 * error)

    def test_extreme_parameters_neither_round_to_a_boundary_nor_overflow(self) -> None:
        for eta in map(np.array, self.extremes):
            draws = self.family.draw(eta, np.random.default_rng(13), 1000)
            for name in self.family.parameter_shapes:
                assert np.all(np.isfinite(draws[name])), (name, eta)
            assert not any(np.isnan(values).any() for values in draws.values())

    # --- densities and records -------------------------------------------------------

    def test_densities_are_those_of_the_family(self) -> None:
        family = self.family
        draws = family.draw(np.array(self.etas[0]), np.random.default_rng(14), 5)
        thetas = [{k: jax.numpy.asarray(draws[k][i]) for k in family.parameter_shapes} for i in range(5)]
        prior = np.array([float(family.log_prior(theta)) for theta in thetas])
        t = family.sufficient(draws)
        np.testing.assert_allclose(
            np.diff(prior), np.diff(t @ family.prior_eta + self.base(draws)), rtol=1e-3, atol=1e-3
        )
        records = family.validate(self.records)
        for i, statistic in enumerate(family.statistic(records)):
            record = {k: jax.numpy.asarray(v[i]) for k, v in records.items()}
            density = np.array([float(family.log_density(theta, record)) for theta in thetas])
            moved = family.posterior_eta(statistic, 1) - family.prior_eta
            np.testing.assert_allclose(np.diff(density), np.diff(t @ moved), rtol=1e-3, atol=1e-3)
        read = family.constrain(thetas[0])
        for name, value in read.items():
            np.testing.assert_allclose(np.asarray(value), draws[name][0], rtol=1e-4)

    def test_statistics_stay_in_their_range_and_delta_bounds_their_differences(self) -> None:
        family = self.family
        s, (low, high) = family.statistic(family.validate(self.records)), family.statistic_range
        assert np.all((low <= s) & (s <= high))
        assert np.linalg.norm(s[:, None] - s[None], axis=-1).max() <= family.delta * (1 + 1e-12)
        m, (low, high) = family.measured(family.validate(self.records)), family.measured_range
        assert np.all((low <= m) & (m <= high))
        assert np.count_nonzero(m[:, None] != m[None], axis=-1).max() <= family.movable

    def test_a_bad_record_is_refused_without_its_value(self) -> None:
        with pytest.raises(ValueError, match="in 1 records") as caught:
            self.family.validate(self.bad_records)
        assert "77" not in str(caught.value)

    def test_public_records_sharpen_the_prior(self) -> None:
        family = self.family
        total = family.statistic(family.validate(self.records)).sum(axis=0)
        sharper = family.given_public(self.records)
        expected = family.posterior_eta(total, len(next(iter(self.records.values()))))
        np.testing.assert_allclose(sharper.prior_eta, expected, rtol=1e-12)

    # --- the price ---------------------------------------------------------------

    def test_the_price_falls_with_the_weight_and_is_never_nan(self) -> None:
        guarantees = [self.family.guarantee(50, weight=w) for w in (0.01, 0.1, 1.0)]
        for guarantee in guarantees:
            orders = 1 + np.geomspace(1e-4, 1e6, 200)
            curve = guarantee.pieces[0][0].renyi(orders)
            assert not np.isnan(curve).any()
            assert np.all(curve[1:] >= curve[:-1] * (1 - 1e-6) - 1e-9)
        spent = [g.epsilon(1e-6) for g in guarantees]
        assert spent == sorted(spent)
        stored = type(guarantees[1]).from_json(guarantees[1].to_json())
        assert stored.epsilon(1e-6) == spent[1]
