# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""What a noisy step reads from outside of the compiled program, prepared by a thread.

A step of a large network reads twelve million random bytes. They are drawn into a slab of
memory that the compiled program reads in place; a slab is free again when its step is over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms._private_sums import Batch, Engine, single_precision, trained_shapes
from discreet.models import NeuralNetwork
from discreet.neural import sources
from discreet.neural.batches import Filled, PoissonBatches
from discreet.neural.keystream import Keystream, Ratchet
from discreet.neural.normals import Bits
from discreet.neural.sources import Wanted
from discreet.privacy import independent_pairs

_ALIGNED = 64
_Part = tuple[type[np.generic], tuple[int, ...]]


class Slab(NamedTuple):
    """Memory of a step, and the arrays in it.

    Attributes:
        memory: all of it.
        bits: where the random bytes go: its beginning.
        arrays: views, in the order of the layout.
    """

    memory: NDArray[np.uint8]
    bits: NDArray[np.uint8]
    arrays: list[NDArray[Any]]


class Prepared(NamedTuple):
    """What a step needs.

    Attributes:
        batch: the first pass of the batch.
        others: the passes after it; few steps have any.
        bits: of the noise.
        layers: bits of what is random in the layers.
        after: the ratchet's secret once this step has its own.
        couples: the pairs of the first pass that observers are told of, padded.
        told: how many distances they are told.
        slab: to be handed back when the step is over.
    """

    batch: Batch
    others: list[Batch]
    bits: Bits
    layers: sources.Drawn
    after: bytes
    couples: NDArray[np.int32] | None
    told: int
    slab: Slab


@dataclass
class Preparation:
    """Prepares steps, one after the other, in one thread.

    Args:
        engine: the compiled step.
        batches: how they are drawn.
        records: in the precision of the run.
        ratchet: one key for each step.
    """

    engine: Engine
    batches: PoissonBatches
    records: Mapping[str, NDArray[Any]]
    ratchet: Ratchet
    _free: SimpleQueue[Slab] = field(default_factory=SimpleQueue[Slab], init=False)

    @property
    def double(self) -> bool:
        """Networks run in single precision, other models in double."""
        return not single_precision(self.engine.model)

    def next(self) -> Prepared:
        """The next step's inputs."""
        import jax

        stream = self.ratchet.next()
        size = len(next(iter(self.records.values())))
        first, *others = self.batches.draw(stream, size, shuffle=bool(self.engine.watched.pairs))
        couples, told = self._couples(stream, first.valid)
        slab = self._slab()
        stream.fill(slab.bits)
        *drawn, mask = slab.arrays
        words, tails, layer_words, layer_tails, coins, *fields = drawn
        self._fill(first, fields, mask)
        with jax.enable_x64(self.double):
            on_device = [jax.dlpack.from_dlpack(array) for array in (words, layer_words, layer_tails, coins)]
            tails = jax.dlpack.from_dlpack(tails)
            batch = self._batch([jax.dlpack.from_dlpack(array) for array in fields], mask)
        words, layer_words, layer_tails, coins = on_device
        return Prepared(
            batch=batch,
            others=[self._another(part) for part in others],
            bits=Bits(words, tails),
            layers=sources.Drawn(Bits(layer_words, layer_tails), coins),
            after=self.ratchet.leave(),
            couples=couples,
            told=told,
            slab=slab,
        )

    def done(self, prepared: Prepared) -> None:
        """The step is over, and its memory free."""
        self._free.put(prepared.slab)

    # --- inside -----------------------------------------------------------------------

    def _couples(self, stream: Keystream, valid: int) -> tuple[NDArray[np.int32] | None, int]:
        """What observers are told of a pass of `valid` records: pairs that are independent draws, or rows."""
        watched = self.engine.watched
        if not watched.both or not watched.pairs:
            return None, min(valid, watched.pairs)
        generator = np.random.default_rng(stream.words(4, np.uint32))
        size = len(next(iter(self.records.values())))
        chosen = independent_pairs(valid, watched.pairs, size=size, generator=generator)
        couples = np.zeros((2, watched.pairs), np.int32)
        told = len(chosen[0])
        couples[:, :told] = chosen
        return couples, told

    def _batch(self, fields: list[Any], mask: NDArray[Any]) -> Batch:
        return Batch(dict(zip(self.records, fields, strict=True)), np.array(mask))

    def _fill(self, part: Filled, fields: list[NDArray[Any]], mask: NDArray[Any]) -> None:
        for values, room in zip(self.records.values(), fields, strict=True):
            np.take(values, part.rows, axis=0, out=room, mode="clip")
        mask[:] = np.arange(len(mask)) < part.valid

    def _another(self, part: Filled) -> Batch:
        mask = np.arange(len(part.rows)) < part.valid
        return Batch({name: values[part.rows] for name, values in self.records.items()}, mask)

    def _slab(self) -> Slab:
        try:
            return self._free.get_nowait()
        except Empty:
            return _allocated(self._layout())

    def _layout(self) -> tuple[list[_Part], list[_Part]]:
        """The random arrays, and the others."""
        model, buffer = self.engine.model, self.batches.buffer
        noise = sum(math.prod(shape) for shape in trained_shapes(model).values())
        wanted = model.network.wanted(buffer) if isinstance(model, NeuralNetwork) else Wanted(0, 0)
        random: list[_Part] = [
            (np.uint64 if self.double else np.uint32, (noise,)),
            (np.uint8, (0 if self.double else noise,)),
            (np.uint32, (wanted.normals,)),
            (np.uint8, (wanted.normals,)),
            (np.uint16, (wanted.coins,)),
        ]
        rest: list[_Part] = [(v.dtype.type, (buffer, *v.shape[1:])) for v in self.records.values()]
        return random, [*rest, (np.bool_, (buffer,))]


def _allocated(layout: tuple[list[_Part], list[_Part]]) -> Slab:
    random, rest = layout
    sizes = [math.prod(shape) * np.dtype(kind).itemsize for kind, shape in (*random, *rest)]
    starts = np.cumsum([0, *(-(-size // _ALIGNED) * _ALIGNED for size in sizes)]).tolist()
    memory = np.empty(starts[-1] + _ALIGNED, np.uint8)
    offset = -memory.ctypes.data % _ALIGNED
    arrays = [
        memory[offset + start : offset + start + size].view(kind).reshape(shape)
        for (kind, shape), start, size in zip((*random, *rest), starts, sizes, strict=False)
    ]
    return Slab(memory, memory[offset : offset + starts[len(random)]], arrays)
