# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""The loop of noisy steps: Poisson batches and noise are prepared by a thread while a step runs.

Proof page: docs/proofs/private_gradients.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms._chain import progress_bar
from discreet.mechanisms._chain_blocks import ahead
from discreet.mechanisms._private_sums import Engine, Inputs, Numbers, Tree, trained_shapes
from discreet.mechanisms.interruption import Paused, between_steps
from discreet.models import NeuralNetwork
from discreet.models.base import Records, count
from discreet.neural import normals
from discreet.neural.batches import Filled, PoissonBatches
from discreet.neural.keystream import Keystream, Ratchet
from discreet.privacy import Observer, independent_pairs

Array = NDArray[np.float64]


class Numbered(NamedTuple):
    """The public numbers of all steps, one entry for each.

    Attributes:
        bounds: C.
        sds: of the noise on the sum.
        step_sizes: eta.
    """

    bounds: Array
    sds: Array
    step_sizes: Array

    @property
    def sigmas(self) -> Array:
        """The noise multipliers."""
        return self.sds / self.bounds


class Prepared(NamedTuple):
    """What a step needs from outside of the compiled program.

    Attributes:
        passes: the batch, one buffer after the other.
        bits: of the noise.
        key: of what is random in the layers.
        after: the ratchet's secret once this step has its own.
        couples: the pairs of the first pass that observers are told of, padded.
        told: how many distances they are told.
    """

    passes: list[Filled]
    bits: normals.Bits
    key: NDArray[np.uint32]
    after: bytes
    couples: NDArray[np.int32] | None = None
    told: int = 0


@dataclass(frozen=True)
class Kept:
    """Which steps are kept, and how their parameters are.

    Attributes:
        after: steps before it are not kept.
        every: the distance between two.
        average: whether the mean of the kept parameters is wanted rather than each.
    """

    after: int
    every: int = 1
    average: bool = False

    def __contains__(self, step: object) -> bool:
        """Whether the parameters after `step` steps are kept."""
        return isinstance(step, int) and step > self.after and (step - self.after) % self.every == 0


@dataclass
class Training:
    """Everything a run needs, and where it stands. Made by a mechanism, run once.

    Args:
        engine: the compiled step.
        batches: how they are drawn.
        numbers: public, of all steps.
        records: checked.
        theta: the first parameters.
        ratchet: where batches, noise and what is random in the layers come from.
        kept: which steps.
        observers: who watches; `begin` was called.
        unit: what an observed distance is multiplied by, step by step.
        progress: whether to show a bar.
        words: what the bar says of a number of steps.
    """

    engine: Engine
    batches: PoissonBatches
    numbers: Numbered
    records: Records
    theta: dict[str, Array]
    ratchet: Ratchet
    kept: Kept
    observers: Sequence[Observer] = ()
    unit: Array | None = None
    progress: bool = False
    draws: list[dict[str, Array]] = field(default_factory=list[dict[str, Array]], init=False)
    done: int = field(default=0, init=False)
    _state: Any = field(default=None, init=False)
    _sum: dict[str, Array] | None = field(default=None, init=False)

    @property
    def steps(self) -> int:
        """How many there are in all."""
        return len(self.numbers.sds)

    @property
    def double(self) -> bool:
        """Networks run in single precision, other models in double."""
        return not isinstance(self.engine.model, NeuralNetwork)

    def run(self, wrap: Callable[[], Any]) -> Any:
        """All steps that are left, then `wrap()`; Ctrl-C raises `Paused` with what `wrap` returns by then."""
        import jax

        with (
            jax.enable_x64(self.double),
            progress_bar(self.progress, self.done, self.steps) as advance,
            ahead(self._prepare, self.steps - self.done) as prepared,
            between_steps() as asked,
        ):
            records = jax.device_put(
                {name: values.astype(self.kind) for name, values in self.records.items()}
            )
            theta: Any = jax.device_put({name: v.astype(self.kind) for name, v in self.theta.items()})
            state = self.engine.rule.init(theta) if self.done == 0 else jax.device_put(self._state)
            total: Any = None if self._sum is None else jax.device_put(self._sum)
            step, sums, finish, added = _compiled()
            for given in prepared:
                first, *others = self._passes(given)
                if others:  # more records than the buffer holds
                    whole, distances = sums(self.engine, theta, records, first)
                    for inputs in others:
                        whole = added(whole, sums(self.engine, theta, records, inputs)[0])
                    theta, state = finish(self.engine, theta, state, whole, first)
                else:
                    theta, state, distances = step(self.engine, theta, state, records, first)
                self.done += 1
                self._observe(distances, given.told)
                if self.done in self.kept:
                    if self.kept.average:
                        total = theta if total is None else added(total, theta)
                    else:
                        self.draws.append(_fetched(theta))
                advance(1)
                if asked.stop and self.done < self.steps:
                    self.ratchet = Ratchet(
                        given.after
                    )  # what was prepared ahead is prepared again, to the bit
                    break
            self.theta, self._state = _fetched(theta), jax.device_get(state)
            self._sum = None if total is None else _fetched(total)
        if self.done < self.steps:
            raise Paused(wrap(), lambda: self.run(wrap))
        return wrap()

    @property
    def mean(self) -> dict[str, Array]:
        """The mean of the kept parameters; the last ones if none were kept."""
        if self._sum is None:
            return self.theta
        number = sum(t in self.kept for t in range(1, self.done + 1))
        return {name: values / number for name, values in self._sum.items()}

    @property
    def kind(self) -> type[np.float32] | type[np.float64]:
        """The precision of the run."""
        return np.float64 if self.double else np.float32

    # --- one step -------------------------------------------------------------------

    def _prepare(self) -> Prepared:
        stream: Keystream = self.ratchet.next()
        passes = self.batches.draw(stream, count(self.records), shuffle=bool(self.observers))
        number = sum(math.prod(shape) for shape in trained_shapes(self.engine.model).values())
        key = stream.words(2, np.uint32).astype(np.uint32)
        bits = normals.draw(stream, number, double=self.double)
        couples, told = self._couples(stream, passes[0].valid)
        return Prepared(passes, bits, key, self.ratchet.leave(), couples, told)

    def _couples(self, stream: Keystream, valid: int) -> tuple[NDArray[np.int32] | None, int]:
        """What observers are told of a pass of `valid` records: pairs that are independent draws, or rows."""
        watched = self.engine.watched
        if not watched.both or not watched.pairs:
            return None, min(valid, watched.pairs)
        generator = np.random.default_rng(stream.words(4, np.uint32))
        chosen = independent_pairs(valid, watched.pairs, size=count(self.records), generator=generator)
        couples = np.zeros((2, watched.pairs), np.int32)
        told = len(chosen[0])
        couples[:, :told] = chosen
        return couples, told

    def _passes(self, given: Prepared) -> list[Inputs]:
        """The inputs of the passes of a step."""
        numbers = Numbers(*(self.kind(column[self.done]) for column in self.numbers))
        return [
            Inputs(part.rows, np.int32(part.valid), given.bits, given.key, numbers, given.couples)
            for part in given.passes
        ]

    def _observe(self, distances: Any, told: int) -> None:
        if not self.observers:
            return
        seen = np.asarray(distances, dtype=np.float64)[:told]
        if self.unit is not None:
            seen = seen * self.unit[self.done - 1]
        for observer in self.observers:
            observer.observe(seen[: observer.pairs])


def _fetched(theta: Tree) -> dict[str, Array]:
    import jax

    return {name: np.array(value) for name, value in jax.device_get(theta).items()}


@cache
def _compiled() -> tuple[Any, Any, Any, Any]:
    """A step of one pass; and its parts, for batches larger than the buffer. Compiled per engine."""
    import jax

    def step(engine: Engine, *given: Any) -> Any:
        return engine.step(*given)

    def sums(engine: Engine, *given: Any) -> Any:
        return tuple(engine.sums(*given))

    def finish(engine: Engine, *given: Any) -> Any:
        return engine.finish(*given)

    def added(left: Tree, right: Tree) -> Tree:
        return jax.tree.map(jax.numpy.add, left, right)

    first, second, third = (jax.jit(f, static_argnums=0) for f in (step, sums, finish))
    return first, second, third, jax.jit(added)
