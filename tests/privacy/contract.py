"""What every price must do. A piece inherits it by naming a guarantee made of it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from oracles import within

from discreet.privacy import Guarantee, inexact, nothing, pure

DELTAS = [0.0, 1e-12, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9]
EPSILONS = [0.0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 1.0, 2.0, 5.0, 20.0, 100.0, 1000.0]
ORDERS = [1.0001, 1.01, 1.2, 1.5, 2.0, 2.5, 3.0, 8.0, 33.3, 128.0, 1e3, 1e6]

LIMIT = 15.0
"""Seconds of the processor after which an answer is a hang; the slowest takes 3, and 6 on a shared core."""


class Contract:
    """Tests inherited by every piece."""

    guarantee: Guarantee

    @pytest.fixture(params=[1, 3], ids=["once", "thrice"])
    def composed(self, request: pytest.FixtureRequest) -> Guarantee:
        return self.guarantee.repeat(request.param)

    # --- answers ------------------------------------------------------------------

    def test_epsilon_is_non_negative_and_non_increasing_in_delta(self, composed: Guarantee) -> None:
        with within(LIMIT):
            found = [composed.epsilon(delta) for delta in DELTAS]
        assert not any(math.isnan(e) for e in found)
        assert all(e >= 0 and math.copysign(1, e) == 1 for e in found)
        assert all(a >= b for a, b in pairwise(found)), found

    def test_delta_is_a_probability_and_non_increasing_in_epsilon(self, composed: Guarantee) -> None:
        with within(LIMIT):
            found = [composed.delta(epsilon) for epsilon in EPSILONS]
        assert all(0 <= d <= 1 for d in found)
        assert all(math.copysign(1, d) == 1 for d in found), "a delta of -0.0"
        assert all(a >= b * (1 - 1e-12) for a, b in pairwise(found)), found

    def test_delta_of_epsilon_is_no_more_than_asked(self, composed: Guarantee) -> None:
        for delta in DELTAS:
            epsilon = composed.epsilon(delta)
            if math.isfinite(epsilon):
                assert composed.delta(epsilon) <= delta * (1 + 1e-9), f"delta {delta}"

    def test_renyi_is_non_decreasing_in_order(self, composed: Guarantee) -> None:
        found = [composed.renyi(order) for order in ORDERS]
        assert not any(math.isnan(d) for d in found)
        assert all(d >= 0 for d in found)
        assert all(b >= a * (1 - 1e-9) for a, b in pairwise(found)), found

    def test_the_profile_is_convex_in_e_to_the_epsilon(self) -> None:
        """A hockey-stick divergence is; what is not, some piece of code has bent."""
        if self.guarantee.pieces[0][1] > 1:
            pytest.skip("a composition takes the best of several curves")
        (piece, _) = self.guarantee.pieces[0]
        for reach in (0.1, 3.0):
            # Three neighbours each time, the middle one halfway in e^epsilon.
            x = np.linspace(1, math.exp(reach), 401)
            deltas = piece.profile(np.log(x))
            assert not np.isnan(deltas).any()
            assert np.all((deltas >= 0) & (deltas <= 1))
            assert np.all(deltas[1:-1] <= (deltas[:-2] + deltas[2:]) / 2 * (1 + self.bent) + 1e-13)

    bent = 1e-9
    """How much the profile may bend; more where it is a minimum over orders."""

    def test_pure_is_the_end_of_every_currency(self) -> None:
        (piece, _) = self.guarantee.pieces[0]
        if math.isfinite(worst := piece.pure()) and piece.slack == 0:
            assert piece.profile(np.array([worst]))[0] <= 1e-15
            assert self.guarantee.epsilon(0.0) <= worst * self.guarantee.pieces[0][1] * (1 + 1e-11)
            if not self.loose:
                assert np.all(piece.renyi(np.array(ORDERS)) <= worst * (1 + 1e-9) + 1e-12)
                assert piece.renyi(np.array([1e7]))[0] >= 0.99 * worst
        elif piece.slack == 0:
            assert self.guarantee.epsilon(0.0) == math.inf
            assert np.all(piece.profile(np.array([0.0, 0.1])) > 0)

    loose = False
    """Whether the Renyi curve is a bound that does not tend to the largest loss."""

    def test_a_conversion_never_lowers_the_profile(self) -> None:
        """Every route of one piece is at least its exact profile."""
        if self.by_renyi or self.guarantee.pieces[0][1] > 1:
            pytest.skip("the profile is itself a conversion, or there is none")
        (piece, _) = self.guarantee.pieces[0]
        for delta in (1e-9, 1e-5, 1e-2):
            for name, epsilon in self.guarantee.by_route(delta).items():
                # Any route claims delta at its epsilon, and the profile is at most that there.
                assert piece.profile(np.array([epsilon]))[0] <= delta * (1 + 1e-9), name

    by_renyi = False
    """Whether the profile is made from the Renyi curve."""

    # --- composition ----------------------------------------------------------------

    @pytest.mark.parametrize("times", [2, 5])
    def test_repeating_is_adding(self, times: int) -> None:
        added = self.guarantee
        for _ in range(times - 1):
            added = added + self.guarantee
        repeated = self.guarantee.repeat(times)
        assert repeated == added == times * self.guarantee == self.guarantee * times
        assert hash(repeated) == hash(added)
        assert repeated.to_json() == added.to_json()
        with within(LIMIT):
            assert repeated.epsilon(1e-5) == added.epsilon(1e-5)
        assert repeated.delta(0.7) == added.delta(0.7)
        assert repeated.renyi(2.0) == added.renyi(2.0)

    def test_repeating_no_times_is_nothing(self) -> None:
        assert self.guarantee.repeat(0) == nothing(neighbours=self.guarantee.neighbours)

    def test_composing_never_lowers(self, composed: Guarantee) -> None:
        more = composed + pure(0.05, neighbours=composed.neighbours)
        with within(LIMIT):
            for delta in (1e-7, 1e-5, 1e-2):
                assert more.epsilon(delta) >= composed.epsilon(delta) * (1 - 1e-9)
            assert more.delta(0.5) >= composed.delta(0.5) * (1 - 1e-9)
        assert more.renyi(2.0) >= composed.renyi(2.0)
        assert composed.repeat(2).epsilon(1e-5) >= composed.epsilon(1e-5) * (1 - 1e-9)

    def test_adding_nothing_changes_nothing(self, composed: Guarantee) -> None:
        empty = nothing(neighbours=composed.neighbours)
        assert composed + empty == composed == empty + composed
        assert composed + inexact(0.0, neighbours=composed.neighbours) == composed
        free = composed + pure(0.0, neighbours=composed.neighbours)
        for delta in (0.0, 1e-5, 0.3):
            assert free.epsilon(delta) == composed.epsilon(delta)
        for epsilon in (0.0, 0.5):
            assert free.delta(epsilon) == composed.delta(epsilon)
        for order in ORDERS:
            assert free.renyi(order) == composed.renyi(order)

    # --- groups -----------------------------------------------------------------------

    def test_a_group_of_one_is_the_guarantee_itself(self) -> None:
        assert self.guarantee.for_group(1) == self.guarantee

    def test_a_larger_group_costs_more(self) -> None:
        with within(LIMIT):
            for delta in (1e-6, 1e-2):
                sizes = [self.guarantee.for_group(size).epsilon(delta) for size in (1, 2, 3)]
                assert all(b >= a * (1 - 1e-9) for a, b in pairwise(sizes))
            assert self.guarantee.for_group(3).delta(0.5) >= self.guarantee.delta(0.5) * (1 - 1e-9)
        assert self.guarantee.for_group(3).renyi(2.0) >= self.guarantee.renyi(2.0)

    def test_a_group_composes(self) -> None:
        with within(LIMIT):
            assert self.guarantee.for_group(2).repeat(2).epsilon(1e-3) >= self.guarantee.for_group(2).epsilon(
                1e-3
            ) * (1 - 1e-9)

    # --- values -----------------------------------------------------------------------

    def test_json_round_trip(self, composed: Guarantee) -> None:
        for original in (
            composed,
            composed.for_group(2),
            composed + inexact(1e-9, neighbours=composed.neighbours),
        ):
            copy = Guarantee.from_json(original.to_json())
            assert copy == original
            assert hash(copy) == hash(original)
        copy = Guarantee.from_json(composed.to_json())
        assert copy.describe() == composed.describe()
        assert copy.epsilon(1e-5) == composed.epsilon(1e-5)
        assert copy.delta(0.3) == composed.delta(0.3)
        assert copy.renyi(3.0) == composed.renyi(3.0)

    def test_frozen_and_described(self) -> None:
        with pytest.raises(AttributeError):
            self.guarantee.inexactness = 0.0  # pyright: ignore[reportAttributeAccessIssue]
        (piece, _) = self.guarantee.pieces[0]
        with pytest.raises(AttributeError):
            piece.neighbours = piece.neighbours  # pyright: ignore[reportAttributeAccessIssue]
        assert str(self.guarantee.neighbours) in self.guarantee.describe()
        assert self.guarantee.describe().count("\n") == 2
        assert "% of the time" in self.guarantee.describe()
        stated = self.guarantee.describe(1e-3)
        assert f"epsilon {self.guarantee.epsilon(1e-3):.6g} at delta 0.001: whoever found" in stated
        assert piece.describe()

    def test_asking_changes_nothing(self) -> None:
        before = self.guarantee.to_json()
        first = self.guarantee.epsilon(1e-5)
        self.guarantee.delta(0.1)
        self.guarantee.repeat(2).epsilon(1e-3)
        assert self.guarantee.epsilon(1e-5) == first
        assert self.guarantee.to_json() == before
