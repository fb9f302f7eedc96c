"""The No-U-Turn sampler, by NumPyro: for posteriors that the coupled chains cannot serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.models.base import Model, Records
from discreet.models.losses import Loss
from discreet.privacy import Evidence, Sensitive, checks
from discreet.samplers.posterior import TRACES, Sampled, SamplingError, Target, named_draws
from discreet.samplers.randomness import Randomness

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class NUTS:
    """The last state of a No-U-Turn chain; one chain per draw, and at least `chains`.

    Args:
        warmup: steps of adaptation.
        steps: steps after it.
        rhat: if given, the largest split R-hat (rank-normalised or not, as NumPyro
            has it) allowed; above it, or at any divergence, or below `ess`, nothing is
            released. If not, diagnostics are for the data holder only.
        ess: the least effective sample size of any parameter, all chains together,
            that the check asks for.
        chains: the fewest; the check compares them.
        depth: the largest depth of a tree, which bounds the time of a step.

    Guarantee:
        None: that a chain without warnings has arrived is assumed, or, with `rhat`,
        assumed after a check (ERRATA 5).

    References: Hoffman & Gelman 2014; paper B, Section 4.
    """

    warmup: int = 1000
    steps: int = 200
    rhat: float | None = None
    ess: float = 100.0
    chains: int = 4
    depth: int = 10

    def __post_init__(self) -> None:
        checks.integer("warmup", self.warmup, at_least=1)
        checks.integer("steps", self.steps, at_least=4)
        if self.rhat is not None:
            checks.real("rhat", self.rhat, above=1.0)
        checks.real("ess", self.ess, at_least=0.0)
        checks.integer("chains", self.chains, at_least=1 if self.rhat is None else 2)
        checks.integer("depth", self.depth, at_least=1)

    @property
    def distance(self) -> float:
        return 0.0

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        claim = "each draw is exactly from the posterior (delta has no part for a chain's distance from it)"
        return (Evidence.assumed(claim, f"NUTS, {self.warmup} + {self.steps} steps"),)

    def refusal(self, model: Model, loss: Loss) -> str | None:  # noqa: ARG002
        return None

    def sample(
        self, model: Model, loss: Loss, records: Records, randomness: Randomness, draws: int
    ) -> Sampled:
        import jax
        import jax.numpy as jnp
        from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

        target = Target(model, type(loss))
        with jax.enable_x64(True):
            data = {name: jnp.asarray(value) for name, value in records.items()}
            numbers = {name: jnp.asarray(value) for name, value in loss.numbers.items()}
            run = _program(target, self.warmup, self.steps, max(draws, self.chains), self.depth)
            run.run(randomness.jax(), numbers, data, extra_fields=("diverging",))
            states = np.asarray(run.get_samples(group_by_chain=True)["flat"], dtype=np.float64)
            diverged = int(np.asarray(run.get_extra_fields()["diverging"]).sum())
        with np.errstate(all="ignore"):  # a warning would tell that a chain stood still
            rhat = np.asarray(split_gelman_rubin(states))
            effective = np.asarray(effective_sample_size(states))
        diagnostics: dict[str, Sensitive[Any]] = {
            "rhat": Sensitive(rhat, "R-hat"),
            "effective_sample_size": Sensitive(effective, "effective sample size"),
            "divergences": Sensitive(diverged, "divergences"),
        }
        if not np.isfinite(states).all():
            raise SamplingError(
                "the chain must stay finite, got NaN or infinity; check the scale of the records"
            )
        evidence: tuple[Evidence, ...] = ()
        if self.rhat is not None:
            if diverged or not (np.all(rhat <= self.rhat) and np.all(effective >= self.ess)):
                raise SamplingError(
                    f"NUTS must show R-hat of at most {self.rhat:g}, an effective sample size of at least "
                    f"{self.ess:g} and no divergence, got otherwise, and nothing was released; plan again "
                    "with more warmup and steps, which is a new spend"
                )
            claim = (
                f"R-hat of {len(states)} chains is at most {self.rhat:g} and the effective sample size at "
                f"least {self.ess:g} in every parameter; none diverged"
            )
            evidence = (Evidence.checked(claim, "these chains on these records", confidence=_CONFIDENCE),)
        return Sampled(named_draws(target, states[:draws, -1]), evidence, diagnostics)


@lru_cache(maxsize=8)
def _program(target: Target, warmup: int, steps: int, chains: int, depth: int) -> Any:
    """A NumPyro run that is compiled once per shape of the records."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro import infer

    def posterior(numbers: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        TRACES["nuts"] += 1
        flat: Any = numpyro.sample(
            "flat", dist.ImproperUniform(dist.constraints.real_vector, (), (target.size,))
        )
        numpyro.factor("posterior", target.log_density(flat, numbers, data))

    return infer.MCMC(
        infer.NUTS(posterior, max_tree_depth=depth),
        num_warmup=warmup,
        num_samples=steps,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
        jit_model_args=True,
    )
