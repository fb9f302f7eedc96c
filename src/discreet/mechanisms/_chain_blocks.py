# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""What a chain's compiled loop reads: batches and noise, a block of steps at a time, drawn ahead.

Proof: docs/proofs/dp_mcmc.md#batches.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.data import StoredRecords
from discreet.mechanisms._chain_batches import Batches, Rows
from discreet.models.base import Records, count, fields_per_record, take
from discreet.samplers.randomness import Randomness

Array = NDArray[np.float64]
T = TypeVar("T")
TestNoise = Callable[[np.random.Generator, tuple[int, ...]], tuple[Any, ...]]

_STEPS_PER_BLOCK, _LARGEST_BLOCK = 256, 2**24
# Few blocks wait drawn, so that the threads that compile are not in the way of the one that draws.
_MOST_AHEAD, _BYTES_AHEAD = 4, 2**26
_FIRST_ROWS = 2**22


class Layout(NamedTuple):
    """What a block is compiled for: how a step's numbers are laid end to end, and constants.

    Attributes:
        chains: how many run side by side.
        state: names and shapes of the parameters.
        noise: shapes of what `tree` holds.
        tree: normals, uniforms and test noise.
        constants: public numbers that the step reads.
    """

    chains: int
    state: tuple[tuple[str, tuple[int, ...]], ...]
    noise: tuple[tuple[int, ...], ...]
    tree: Any
    constants: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Blocks:
    """Draws the inputs of blocks. Nothing about a block depends on the data but the records in it.

    Args:
        records: checked records.
        batch: records per step, drawn without replacement; None when the loop reads all.
        start: the first state of each chain, leading axis = chain.
        test_noise: draws the noise of the acceptance tests for a whole block.
        draw_batches: draws the rows of some steps.
        constants: public numbers that the step reads.
        randomness: where everything random comes from.
    """

    records: Records
    batch: int | None
    start: Mapping[str, Array]
    test_noise: TestNoise
    draw_batches: Batches
    constants: Mapping[str, float]
    randomness: Randomness

    @property
    def chains(self) -> int:
        """How many run side by side."""
        return len(next(iter(self.start.values())))

    @property
    def lead(self) -> tuple[int, ...]:
        """The axis of chains; one chain goes without, which compiles faster."""
        return () if self.chains == 1 else (self.chains,)

    @property
    def steps(self) -> int:
        """Steps per block: public, and small enough that its batches fit in memory."""
        return max(1, min(_STEPS_PER_BLOCK, _LARGEST_BLOCK // self._bytes_per_step))

    @cached_property
    def layout(self) -> Layout:
        """How the numbers of a step lie in what `draw` yields; found without drawing it."""
        import jax

        leaves, tree = jax.tree.flatten(self._noise(np.random.default_rng(0), (1,)))
        return Layout(
            chains=self.chains,
            state=tuple((name, values.shape[1:]) for name, values in self.start.items()),
            noise=tuple(leaf.shape[1:] for leaf in leaves),
            tree=tree,
            constants=tuple(self.constants.items()),
        )

    @property
    def shapes(self) -> Any:
        """The shapes of what `draw` yields."""
        import jax

        lead = (self.steps, *self.lead)
        fields = _fields(self.records).items()
        batch = {
            name: jax.ShapeDtypeStruct((*lead, self.batch or 0, *shape), np.float64) for name, shape in fields
        }
        width = sum(math.prod(shape) for shape in self.layout.noise)
        return (
            None if self.batch is None else batch,
            jax.ShapeDtypeStruct((*lead, width), np.float64),
            jax.ShapeDtypeStruct((*lead, 2), np.uint32),
        )

    def drawn(self, number: int) -> AbstractContextManager[Iterator[Any]]:
        """The inputs of `number` blocks, in order; another thread begins to draw them at once.

        Batches lie in rooms that are used in turn: memory that is fresh from the system costs
        more than what is put there. Whoever asks for a block must be done with all before it
        but the last: then its room, and those of the blocks that wait, differ.
        """
        most = min(number, max(2, min(_MOST_AHEAD, _BYTES_AHEAD // (self.steps * self._bytes_per_step))))
        rooms, rows = self._rooms(most + 1), self._rows(number)
        turns = itertools.cycle([{name: room[i] for name, room in rooms.items()} for i in range(most + 1)])
        return ahead(lambda: self.block(next(turns), rows), number, most)

    def block(self, room: Records, rows: Iterator[Rows]) -> Any:
        """Batches, proposal noise and test noise of a block, leading axes step and chain.

        Args:
            room: where the records of the batches go, by field.
            rows: of the blocks to come, in turn.
        """
        import jax

        g, shape = self.randomness.numpy(), (self.steps, *self.lead)
        if room:
            chosen = next(rows)
            _copy(self.records, chosen, room)
        leaves = jax.tree.leaves(self._noise(g, shape))
        numbers = np.concatenate([leaf.reshape(*shape, -1) for leaf in leaves], axis=-1)
        words = g.integers(0, 2**32, size=(*shape, 2), dtype=np.uint32)
        with jax.enable_x64(True):
            return jax.device_put((room or None, numbers, words))

    def _noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Normals and uniforms in the shapes of the parameters, and the noise of the tests."""
        like = {name: (*shape, *values.shape[1:]) for name, values in self.start.items()}
        normal = {name: generator.standard_normal(s) for name, s in like.items()}
        uniform = {name: generator.random(s) for name, s in like.items()}
        return normal, uniform, self.test_noise(generator, shape)

    def _rows(self, number: int) -> Iterator[Rows]:
        """The rows of the batches of `number` blocks, in turn.

        Those of the first blocks are drawn in one call, which runs beside Python while the
        loop is traced and compiled; later a block at a time, while the one before runs.
        """
        if self.batch is None:
            return
        size, shape = count(self.records), (self.steps, *self.lead)
        some, begin = max(1, _FIRST_ROWS // (math.prod(shape) * self.batch)), 0
        while begin < number:
            blocks = min(some, number - begin)
            yield from self.draw_batches(self.randomness.numpy(), size, self.batch, (blocks, *shape))
            some, begin = 1, begin + blocks

    def _rooms(self, number: int) -> Records:
        """Memory for the batches of `number` blocks, by field, leading axis = block."""
        if self.batch is None:
            return {}
        shape = (number, self.steps, *self.lead, self.batch)
        return {name: _aligned((*shape, *field)) for name, field in _fields(self.records).items()}

    @property
    def _bytes_per_step(self) -> int:
        width = fields_per_record(self.records)
        noise = sum(values.size for values in self.start.values())
        return 8 * ((self.batch or 0) * self.chains * width + 4 * noise)


def _fields(records: Records) -> dict[str, tuple[int, ...]]:
    """The shape of each field of one record."""
    if isinstance(records, StoredRecords):
        return records.shapes
    return {name: values.shape[1:] for name, values in records.items()}


def _copy(records: Records, rows: Rows, room: Records) -> None:
    """Put the records with these numbers into the room."""
    if isinstance(records, StoredRecords):
        for name, values in take(records, rows).items():
            room[name][...] = values
        return
    for name, values in room.items():
        # Rows are inside; in its default mode, `take` would copy once more to be sure.
        records[name].take(rows, axis=0, out=values, mode="clip")


@contextmanager
def ahead(make: Callable[[], T], number: int, most: int = 4) -> Generator[Iterator[T]]:
    """What `number` calls of `make` return, in order; another thread makes the next `most` meanwhile."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="discreet-blocks") as worker:
        waiting = deque(worker.submit(make) for _ in range(min(most, number)))

        def in_turn() -> Iterator[T]:
            for place in range(number):
                if 0 < place <= number - most:
                    waiting.append(worker.submit(make))
                yield waiting.popleft().result()

        try:
            yield in_turn()
        finally:
            worker.shutdown(cancel_futures=True)


def _aligned(shape: tuple[int, ...]) -> Array:
    """An empty array that begins where JAX wants it, so that it is used in place."""
    size = 8 * math.prod(shape)
    memory = np.empty(size + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + size].view(np.float64).reshape(shape)
