# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""The loop that every chain of this room runs in: compiled once, in blocks, on O(batch) batches.

A block is a fixed number of steps. Another thread draws the batches and the noise of the
blocks to come while the compiled loop runs. Nothing about a block depends on the data:
neither its length, nor its work, nor when the progress bar moves.

Proof page: docs/proofs/dp_mcmc.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms._chain_batches import Batches, batches
from discreet.mechanisms.base import Drawn
from discreet.mechanisms.interruption import Paused
from discreet.mechanisms.proposals import Noise
from discreet.models.base import Records, Theta, count, fields_per_record, take
from discreet.privacy import Evidence, Sensitive
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax

Array = NDArray[np.float64]
T = TypeVar("T")

_STEPS_PER_BLOCK, _LARGEST_BLOCK, _BLOCKS_AHEAD = 256, 2**24, 4

# XLA's newer code generator takes twice as long to compile such a loop, and its code is not faster.
_COMPILER = {"xla_cpu_use_fusion_emitters": False}


class Moved(NamedTuple):
    """The outcome of one step.

    Attributes:
        theta: the next state.
        accepted: whether it is the candidate.
        clipped: the share of records whose ratio was clipped.
    """

    theta: Theta
    accepted: jax.Array
    clipped: jax.Array


class Step(Protocol):
    """One step of one chain, compiled. Hashable, so that equal steps compile once."""

    def __call__(
        self, theta: Theta, noise: Noise, test: Any, batch: Theta, constants: Mapping[str, float]
    ) -> Moved:
        """From a state to the next."""
        ...


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


@dataclass
class Chain:
    """Everything a run needs, and where it stands. Made by a mechanism, run once.

    Args:
        step: the compiled step.
        test_noise: draws the noise of the acceptance tests for a whole block.
        constants: public numbers that the step reads.
        records: checked records.
        batch: records per step, drawn without replacement; None takes them all.
        steps: of each chain.
        start: the first state of each chain, leading axis = chain.
        randomness: where everything random comes from.
        progress: whether to show a bar.
        draw_batches: draws the rows of every step of a block.
    """

    step: Step
    test_noise: Callable[[np.random.Generator, tuple[int, ...]], tuple[Any, ...]]
    constants: Mapping[str, float]
    records: Records
    batch: int | None
    steps: int
    start: dict[str, Array]
    randomness: Randomness
    progress: bool
    draw_batches: Batches = field(default_factory=lambda: batches)
    _pieces: list[Array] = field(default_factory=list[Array], init=False)
    _done: int = field(default=0, init=False)

    def run(self) -> Drawn:
        """All steps that are left. Ctrl-C raises `Paused` with what is there."""
        import jax

        with (
            jax.enable_x64(True),
            progress_bar(self.progress, self._done, self.steps) as advance,
            closing(ahead(self._inputs, math.ceil((self.steps - self._done) / self.block))) as blocks,
        ):
            compiled, step = _compiled_block(), hashable(self.step)
            every = jax.device_put(self.records) if self.batch is None else None
            state: Any = self._pieces[-1][-1] if self._pieces else self._first()
            room = jax.device_put(np.zeros((self.block, *state.shape)))

            def keep(rows: Any) -> None:
                """Wait for a block, and keep its steps; those past the plan's number were not run."""
                steps = min(self.block, self.steps - self._done)
                self._pieces.append(jax.device_get(rows)[:steps])
                self._done += steps
                advance(steps)

            try:
                started, running = self._done, None
                for layout, inputs in blocks:
                    steps = min(self.block, self.steps - started)
                    state, rows = compiled(step, layout, state, room, inputs, every, steps)
                    if running is not None:
                        keep(running)  # while the next one runs
                    started, running = started + steps, rows
                if running is not None:
                    keep(running)
            except KeyboardInterrupt:
                raise Paused(self._drawn(), self.run) from None
        return self._drawn()

    @property
    def chains(self) -> int:
        """How many run side by side."""
        return len(next(iter(self.start.values())))

    @property
    def lead(self) -> tuple[int, ...]:
        """The axis of chains; one chain goes without, which compiles faster."""
        return () if self.chains == 1 else (self.chains,)

    @property
    def block(self) -> int:
        """Steps per block: public, and small enough that its batches fit in memory."""
        width = fields_per_record(self.records)
        noise = sum(values.size for values in self.start.values())
        per_step = 8 * ((self.batch or 0) * self.chains * (width + 1) + 4 * noise)
        return max(1, min(_STEPS_PER_BLOCK, _LARGEST_BLOCK // per_step))

    def _first(self) -> Array:
        """The state before the first step, laid out as the loop wants it."""
        rows = [values.reshape(*self.lead, -1) for values in self.start.values()]
        return np.concatenate([*rows, np.zeros((*self.lead, 2))], axis=-1)

    def _inputs(self) -> tuple[Layout, Any]:
        """Batches, proposal noise and test noise of a block, leading axes step and chain."""
        import jax

        g, shape = self.randomness.numpy(), (self.block, *self.lead)
        batch = None
        if self.batch is not None:
            rows = self.draw_batches(g, count(self.records), self.batch, shape)
            batch = take(self.records, rows)
        like = {name: (*shape, *values.shape[1:]) for name, values in self.start.items()}
        normal = {name: g.standard_normal(s) for name, s in like.items()}
        uniform = {name: g.random(s) for name, s in like.items()}
        words = g.integers(0, 2**32, size=(*shape, 2), dtype=np.uint32)
        leaves, tree = jax.tree.flatten((normal, uniform, self.test_noise(g, shape)))
        layout = Layout(
            chains=self.chains,
            state=tuple((name, values.shape[1:]) for name, values in self.start.items()),
            noise=tuple(leaf.shape[len(shape) :] for leaf in leaves),
            tree=tree,
            constants=tuple(self.constants.items()),
        )
        numbers = np.concatenate([leaf.reshape(*shape, -1) for leaf in leaves], axis=-1)
        with jax.enable_x64(True):
            return layout, jax.device_put((batch, numbers, words))

    def _drawn(self) -> Drawn:
        """The draws, one chain after the other."""
        rows = np.concatenate([np.empty((0, *self._first().shape)), *self._pieces])
        rows = np.moveaxis(rows.reshape(self._done, self.chains, rows.shape[-1]), 1, 0)
        draws: dict[str, Array] = {}
        at = 0
        for name, values in self.start.items():
            to = at + values[0].size
            draws[name] = np.ascontiguousarray(rows[:, :, at:to]).reshape(-1, *values.shape[1:])
            at = to
        shares = rows[:, :, at:].sum(axis=1) / max(1, self._done)
        evidence = ()
        if self._done < self.steps:
            evidence = (
                Evidence.proved(
                    f"interrupted after {self._done} of {self.steps} steps, all of which are billed",
                    "the plan is billed before the first step",
                ),
            )
        return Drawn(
            draws,
            evidence,
            {
                "acceptance_rate": Sensitive(shares[:, 0], "acceptance rate of each chain"),
                "clipped_share": Sensitive(shares[:, 1], "share of clipped ratios of each chain"),
            },
        )


def ahead(make: Callable[[], T], number: int) -> Generator[T]:
    """What `number` calls of `make` return, in order; another thread makes the next few meanwhile."""
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="discreet-blocks")
    waiting: deque[Future[T]] = deque()
    try:
        for place in range(number):
            while len(waiting) < min(_BLOCKS_AHEAD, number - place):
                waiting.append(worker.submit(make))
            yield waiting.popleft().result()
    finally:
        worker.shutdown(cancel_futures=True)


class _ByIdentity:
    """A step that cannot be hashed, because a part of it cannot; compiled anew for every run."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def __call__(
        self, theta: Theta, noise: Noise, test: Any, batch: Theta, constants: Mapping[str, float]
    ) -> Moved:
        return self.step(theta, noise, test, batch, constants)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.step, name)


def hashable(step: Step) -> Step:
    """A step that JAX can key its compiled code by."""
    try:
        hash(step)
    except TypeError:
        return _ByIdentity(step)
    return step


@cache
def _compiled_block() -> Callable[..., Any]:
    """The loop, compiled per step, layout and shapes."""
    import jax

    quick, plain = (jax.jit(_block, static_argnums=(0, 1), compiler_options=o) for o in (_COMPILER, None))

    def run(*given: Any) -> Any:
        try:
            return quick(*given)
        except jax.errors.JaxRuntimeError as error:
            if "No such compile option" not in str(error):
                raise
            return plain(*given)  # another version of XLA

    return run


def _block(  # noqa: PLR0917 - JAX marks static arguments by position
    step: Step, layout: Layout, first: Any, room: Any, inputs: Any, every: Any, steps: Any
) -> tuple[jax.Array, jax.Array]:
    """`steps` steps of all chains: the last row, and a row for each step.

    A row is the state after a step, and what `Moved` counts.
    """
    import jax
    from jax import lax

    names, shapes = zip(*layout.state, strict=True)
    constants = dict(layout.constants)

    def one(row: Any, at: tuple[Any, Any, Any]) -> Any:
        batch, numbers, words = at
        theta: Theta = dict(zip(names, split(row, shapes), strict=True))
        normal, uniform, test = jax.tree.unflatten(layout.tree, split(numbers, layout.noise))
        moved = step(theta, Noise(normal, uniform, words), test, every if batch is None else batch, constants)
        parts = [*(moved.theta[name] for name in names), moved.accepted, moved.clipped]
        return lax.concatenate([lax.convert_element_type(p, row.dtype).reshape(-1) for p in parts], 0)

    run = one if layout.chains == 1 else jax.vmap(one)

    def body(i: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        row, out = carry
        row = run(row, jax.tree.map(partial(at, i=i), inputs))
        zeros = (0,) * row.ndim
        return row, lax.dynamic_update_slice(out, row[None], (i, *zeros), allow_negative_indices=False)

    return lax.fori_loop(0, steps, body, (first, room))


def at(array: Any, *, i: Any) -> Any:
    """array[i], for an index that is known to be inside."""
    from jax import lax

    return lax.dynamic_index_in_dim(array, i, keepdims=False, allow_negative_indices=False)


def split(row: Any, shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    """The arrays of these shapes that lie end to end in the row."""
    from jax import lax

    ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)]).tolist()
    return [
        lax.reshape(lax.slice(row, (start,), (end,)), shape)
        for start, end, shape in zip(ends, ends[1:], shapes, strict=False)
    ]


def accept(accepted: jax.Array, candidate: Theta, theta: Theta) -> Theta:
    """The candidate or the current state."""
    import jax.numpy as jnp

    return {name: jnp.where(accepted, candidate[name], theta[name]) for name in theta}


def progress_bar(progress: bool, done: int, steps: int) -> AbstractContextManager[Callable[[int], None]]:
    """A progress bar on standard error, or nothing."""
    if not progress:
        return nullcontext(_nothing)
    return _Bar(done, steps)


def _nothing(steps: int) -> None:
    del steps


class _Bar:
    """Counts steps: a public number, at moments that do not depend on the data."""

    def __init__(self, done: int, steps: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(console=Console(stderr=True))
        self._task = self._progress.add_task("steps", total=steps, completed=done)

    def __enter__(self) -> Callable[[int], None]:
        self._progress.start()
        return partial(self._progress.advance, self._task)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
