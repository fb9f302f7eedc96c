# pyright: reportUnknownMemberType=false
"""What the mechanisms that run a Markov chain have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from discreet.data import StoredRecords
from discreet.mechanisms import _planner
from discreet.mechanisms._chain import Array, Chain, Moved, Step, accept
from discreet.mechanisms._chain_batches import Batches, batches
from discreet.mechanisms._chain_streamed import StreamedChain
from discreet.mechanisms._ratios import Moments, clipped_ratios, moments, public_ratio
from discreet.mechanisms.base import Drawn, Mechanism, Plain, Plan
from discreet.mechanisms.losses import LogLikelihood, Loss
from discreet.mechanisms.proposals import Noise, Proposal
from discreet.models.base import Model, Records, Theta
from discreet.privacy import Budget, Evidence, checks
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax

PROOF = "docs/proofs/dp_mcmc.md"


@dataclass(frozen=True)
class ChainMechanism(Mechanism):
    """A mechanism that runs chains on prior(theta) * exp(-N0/n * sum of losses).

    Args:
        model: likelihood and prior.
        tempered_size: N0, what the data count for, in records. None is n.
        chains: how many run side by side; each is billed.
        start: first values of the parameters (public), for all chains or one by one.
        loss: what is summed over records; the log-likelihood by default.
    """

    model: Model  # pyright: ignore[reportIncompatibleMethodOverride] - a field implements the property
    tempered_size: int | None = field(default=None, kw_only=True)
    chains: int = field(default=1, kw_only=True)
    start: Mapping[str, ArrayLike] | None = field(default=None, kw_only=True)
    loss: Loss = field(default_factory=LogLikelihood, kw_only=True)

    def __post_init__(self) -> None:
        if self.tempered_size is not None:
            checks.integer("tempered_size", self.tempered_size, at_least=1)
        checks.integer("chains", self.chains, at_least=1)
        _check_inside(self.model, self.starts())

    def starts(self) -> dict[str, Array]:
        """The first states, leading axis = chain; zeros unless given, once for all or chain by chain."""
        states: dict[str, Array] = {}
        shapes, chains = self.model.parameter_shapes, self.chains
        zeros = {name: np.zeros(shape) for name, shape in shapes.items()}
        given = zeros if self.start is None else self.start
        if set(given) != set(shapes):
            raise ValueError(
                f"start must name the parameters {', '.join(sorted(shapes))}, got "
                f"{', '.join(sorted(given))}; give each its first value"
            )
        for name, shape in shapes.items():
            array = np.asarray(given[name], dtype=np.float64)
            if array.shape not in {shape, (chains, *shape)}:
                raise ValueError(
                    f"start of {name} must have shape {shape} or {(chains, *shape)}, got {array.shape}; "
                    "give one first value, or one per chain"
                )
            states[name] = np.array(np.broadcast_to(array, (chains, *shape)))
        return states

    def counted_size(self, n: int) -> int:
        """N0, for `n` records."""
        checks.integer("n", n, at_least=2)
        if self.tempered_size is None:
            return n
        return checks.integer("tempered_size", self.tempered_size, at_least=1, at_most=n)

    def settings(self) -> dict[str, Plain]:
        return {
            **super().settings(),
            "loss": repr(self.loss),
            "tempered_size": self.tempered_size,
            "chains": self.chains,
            "start": {name: values.tolist() for name, values in self.starts().items()},
        }

    def planned(
        self,
        n: int,
        price: _planner.Price,
        budget: Budget | None,
        steps: int | None,
        *,
        evidence: tuple[Evidence, ...],
        parameters: Mapping[str, Plain],
        reasons: tuple[str, ...],
    ) -> Plan:
        """The plan of a chain whose noise is settled, with as many steps as given or as the budget allows."""
        T, why = _planner.count_steps(price, budget, steps)
        return Plan(
            mechanism=self,
            size=n,
            guarantee=price(T),
            evidence=(
                Evidence.proved("every accepted or rejected step is billed", f"{PROOF}#privacy"),
                *evidence,
                Evidence.assumed(
                    "the proposal and the first state do not depend on the data", "said by the user"
                ),
            ),
            parameters={"steps": T, "chains": self.chains, **parameters},
            reasons=(*reasons, *why),
        )

    def run(
        self,
        plan: Plan,
        records: Records,
        randomness: Randomness,
        *,
        progress: bool,
        step: Step,
        test_noise: Callable[[np.random.Generator, tuple[int, ...]], tuple[Any, ...]],
        constants: Mapping[str, float],
        batch: int | None = None,
        draw_batches: Batches = batches,
        watch: Callable[[Array], None] | None = None,
        width: int = 0,
    ) -> Drawn:
        """The plan's chains; see `Chain` for the arguments."""
        streamed = batch is None and isinstance(records, StoredRecords)
        return (StreamedChain if streamed else Chain)(
            step=step,
            test_noise=test_noise,
            constants=constants,
            records=records,
            batch=batch,
            steps=cast("int", plan.parameters["steps"]),
            start=self.starts(),
            randomness=randomness,
            progress=progress,
            draw_batches=draw_batches,
            watch=watch,
            width=width,
        ).run()


@dataclass(frozen=True)
class ProposingMechanism(ChainMechanism):
    """A chain whose candidates come from a proposal.

    Args:
        proposal: where to go next; see `discreet.mechanisms.proposals`.
    """

    proposal: Proposal

    def check_stored(self, plan: Plan, records: StoredRecords) -> None:
        batch = cast("int", plan.parameters["batch"])
        if records.rows < records.total and batch < records.total:
            raise ValueError(
                f"batch must be all {records.total} records where several processes hold them, got {batch}; "
                "give batch = records, or run one process"
            )

    def settings(self) -> dict[str, Plain]:
        return {**super().settings(), "proposal": repr(self.proposal)}


@dataclass(frozen=True)
class RatioStep:
    """A step that proposes, reads the clipped ratios of a batch, and decides on them."""

    model: Model
    proposal: Proposal
    loss: Loss

    def __call__(
        self, theta: Theta, noise: Noise, test: Any, batch: Theta, constants: Mapping[str, float]
    ) -> Moved:
        candidate, public = self.propose(theta, noise)
        accepted, clipped = self.decide(
            self.ratios(theta, candidate, batch, constants), public, test, constants
        )
        return Moved(accept(accepted, candidate, theta), accepted, clipped)

    def propose(self, theta: Theta, noise: Noise) -> tuple[Theta, jax.Array]:
        """A candidate, and the log prior ratio plus the proposal ratio."""
        from jax import lax

        proposed, proposal_ratio = self.proposal.propose(theta, noise)
        candidate = {name: lax.convert_element_type(proposed[name], theta[name].dtype) for name in theta}
        return candidate, public_ratio(self.model, candidate, theta, proposal_ratio)

    def ratios(
        self, theta: Theta, candidate: Theta, batch: Theta, constants: Mapping[str, float]
    ) -> jax.Array:
        """Of the records of a batch, over the limit, in [-1, 1]."""
        return clipped_ratios(
            self.loss, self.model, candidate=candidate, theta=theta, batch=batch, limit=constants["limit"]
        )

    @abstractmethod
    def decide(
        self, ratios: jax.Array, public: Any, test: Any, constants: Mapping[str, float]
    ) -> tuple[jax.Array, jax.Array]:
        """Whether the candidate is accepted, and the share of clipped ratios.

        Args:
            ratios: of the records of the batch, over the limit, in [-1, 1].
            public: log prior ratio plus proposal ratio; a candidate for which it is not
                finite must be rejected.
            test: the noise of the test.
            constants: of the chain.
        """


class MomentStep(RatioStep):
    """A step whose test reads the moments of the ratios only, so that they can be summed piece by piece."""

    def decide(
        self, ratios: jax.Array, public: Any, test: Any, constants: Mapping[str, float]
    ) -> tuple[jax.Array, jax.Array]:
        seen = moments(ratios)
        return self.judge(seen, len(ratios), public, test, constants), seen.clipped

    @abstractmethod
    def judge(
        self, seen: Moments, number: int, public: Any, test: Any, constants: Mapping[str, float]
    ) -> jax.Array:
        """Whether the candidate is accepted, as `decide`, from the moments of `number` ratios."""


def _check_inside(model: Model, states: Mapping[str, Array]) -> None:
    """Refuse first states outside the support of the prior; all of this is public."""
    import jax

    with jax.enable_x64(True):
        inside = np.isfinite(np.asarray(jax.vmap(model.log_prior)(cast("Theta", dict(states)))))
    if not inside.all():
        raise ValueError(
            f"start must lie in the support of the prior, got a point outside for {int((~inside).sum())} of "
            f"{len(inside)} chains; move it inside"
        )
