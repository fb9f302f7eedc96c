"""An audit in one run of real training: every canary is an axis of a logistic regression."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import discreet as dc
from discreet.audit import judge_one_run, one_run
from discreet.mechanisms import Plan, StochasticGradient
from discreet.neural import Flat
from discreet.samplers.randomness import Randomness

CANARIES = 400


def trained(plan: Plan):
    """One run of the plan's own `draw`; a canary raises its own coefficient, which is its score."""

    def run(there: NDArray[np.bool_], randomness: Randomness) -> NDArray[np.float64]:
        x = np.eye(CANARIES)[there]
        records = plan.mechanism.model.validate({"x": x, "y": np.ones(len(x))})
        own = Randomness(randomness.integer())
        return plan.mechanism.draw(plan, records, own, progress=False).draws["w"][0]

    return run


def test_stochastic_gradient_passes_in_one_run_and_less_noise_is_caught() -> None:
    model = dc.models.LogisticRegression(CANARIES, prior_precision=1e-6)
    mechanism = StochasticGradient(model, neighbours="add_remove", clipping=Flat(0.5))
    plan = mechanism.plan(n=CANARIES, batch=CANARIES, steps=1, noise_multiplier=3.0)
    found = one_run(trained(plan), CANARIES, plan.guarantee, share=0.3, key=1)
    assert found.passes
    assert found.right > 0.55 * found.guesses  # not blind
    # The negative control: the same run, with a thirtieth of the noise that is claimed.
    loud = replace(plan, parameters={**plan.parameters, "sigma": 0.1})
    caught = one_run(trained(loud), CANARIES, plan.guarantee, share=0.3, key=1)
    assert not caught.passes


def test_all_right_is_too_many_for_a_small_epsilon() -> None:
    assert not judge_one_run(100, 60, 60, dc.privacy.pure(0.5, neighbours="add_remove")).passes
