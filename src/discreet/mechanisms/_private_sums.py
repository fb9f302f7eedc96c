# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""One noisy step: the clipped sum of a batch, noise, and a public rule for what to do with both.

Proof page: docs/proofs/private_gradients.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from discreet.mechanisms.losses import LogLikelihood, Loss
from discreet.models import FlaxNetwork, NeuralNetwork
from discreet.models.base import Model
from discreet.neural import normals, per_example, sources
from discreet.neural.clipping import Clipping
from discreet.neural.per_example import NOBODY, Summed, Watched

if TYPE_CHECKING:
    import jax

Tree = dict[str, Any]


class Numbers(NamedTuple):
    """The public numbers of one step.

    Attributes:
        bound: C, what no contribution exceeds.
        sd: of the noise on the sum.
        step_size: eta.
    """

    bound: Any
    sd: Any
    step_size: Any


class Rule(Protocol):
    """What follows from a noisy sum and public numbers alone. Hashable, so that equal rules compile once."""

    def init(self, theta: Tree) -> Any:
        """The state before the first step."""
        ...

    def update(
        self, model: Model, theta: Tree, state: Any, noisy: Tree, numbers: Numbers
    ) -> tuple[Tree, Any]:
        """The parameters and the state after a step."""
        ...


class Batch(NamedTuple):
    """Records of a pass, padded.

    Attributes:
        fields: by name, leading axis = record.
        mask: whether a row counts.
    """

    fields: Tree
    mask: Any


class Inputs(NamedTuple):
    """What a step reads beside the parameters and the records.

    Attributes:
        batch: records of a pass.
        bits: of the noise.
        layers: bits of what is random in the layers.
        numbers: public.
        couples: the pairs that observers are told of, as rows of the batch.
    """

    batch: Batch
    bits: normals.Bits
    layers: sources.Drawn
    numbers: Numbers
    couples: Any = None


@dataclass(frozen=True)
class Engine:
    """Everything a step is compiled for.

    Attributes:
        model: whose log density has the gradients.
        clipping: the rule for weights.
        rule: what a noisy sum does to the parameters.
        watched: what observers want.
        chunk: for models without book-keeping, how many gradients are in memory at a time.
        loss: of a record; another than minus the log density only for models without book-keeping.
    """

    model: Model
    clipping: Clipping
    rule: Rule
    watched: Watched = NOBODY
    chunk: int = 64
    loss: Loss = field(default_factory=LogLikelihood)

    def sums(self, theta: Tree, inputs: Inputs) -> Summed:
        """The clipped sum of one pass."""
        return summed(self.model, self, theta, inputs)

    def finish(self, theta: Tree, state: Any, total: Tree, inputs: Inputs) -> tuple[Tree, Any]:
        """Parameters and state after a step whose clipped sum is known: noise, then the rule."""
        noise = normals.tree(inputs.bits, {name: total[name].shape for name in theta})
        noisy = {name: total[name] + inputs.numbers.sd * noise[name] for name in theta}
        return self.rule.update(self.model, theta, state, noisy, inputs.numbers)

    def step(self, theta: Tree, state: Any, inputs: Inputs) -> tuple[Tree, Any, jax.Array]:
        """Parameters and state after a step of one pass, and the observed distances."""
        found = self.sums(theta, inputs)
        return (*self.finish(theta, state, found.total, inputs), found.distances)


def single_precision(model: Model) -> bool:
    """Networks run in single precision, other models in double."""
    return isinstance(model, NeuralNetwork | FlaxNetwork)


def trained_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """The parameters that have a gradient."""
    return model.trained_shapes if isinstance(model, NeuralNetwork) else model.parameter_shapes


@singledispatch
def summed(model: Model, engine: Engine, theta: Tree, inputs: Inputs) -> Summed:
    """The clipped sum of the gradients of the loss; by `vmap` unless registered."""
    import jax

    def gradient(at: Any, record: Any) -> Mapping[str, Any]:
        return jax.grad(lambda t: engine.loss(model, t, record))(at)

    return per_example.by_vmap(
        gradient,
        theta,
        inputs.batch.fields,
        inputs.batch.mask,
        engine.clipping,
        inputs.numbers.bound,
        engine.watched,
        couples=inputs.couples,
        chunk=engine.chunk,
    )


@summed.register(NeuralNetwork)
def _(model: NeuralNetwork, engine: Engine, theta: Tree, inputs: Inputs) -> Summed:
    fields, mask = inputs.batch
    noise = model.network.noise(sources.Streamed(inputs.layers), len(mask))
    book = model.network.book(theta, fields["x"], lambda outputs: model.losses(outputs, fields["y"]), noise)
    return per_example.from_book(
        book, mask, engine.clipping, inputs.numbers.bound, engine.watched, couples=inputs.couples
    )
