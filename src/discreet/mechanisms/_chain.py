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
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms._chain_batches import Batches, batches
from discreet.mechanisms._chain_blocks import Blocks, Layout
from discreet.mechanisms.base import Drawn
from discreet.mechanisms.interruption import Paused
from discreet.mechanisms.proposals import Noise
from discreet.models.base import Records, Theta
from discreet.privacy import Evidence, Sensitive
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax

Array = NDArray[np.float64]
T = TypeVar("T")

# XLA's newer code generator takes twice as long to compile such a loop, and its code is slower. Vectors are
# as wide as the processor has them; two pieces keep two cores busy, and more would repeat each other's work.
_COMPILER: dict[str, str | bool] = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_prefer_vector_width": "512",
    "xla_cpu_parallel_codegen_split_count": "2",
}


class Moved(NamedTuple):
    """The outcome of one step.

    Attributes:
        theta: the next state.
        accepted: whether it is the candidate.
        clipped: the share of records whose ratio was clipped.
        watched: numbers for whoever watches the run; none unless somebody does.
    """

    theta: Theta
    accepted: jax.Array
    clipped: jax.Array
    watched: tuple[jax.Array, ...] = ()


class Step(Protocol):
    """One step of one chain, compiled. Hashable, so that equal steps compile once."""

    def __call__(
        self, theta: Theta, noise: Noise, test: Any, batch: Theta, constants: Mapping[str, float]
    ) -> Moved:
        """From a state to the next."""
        ...


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
        watch: gets what `Moved` says of every step for those who watch, in order.
        width: how many numbers that is.
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
    watch: Callable[[Array], None] | None = None
    width: int = 0
    _pieces: list[Array] = field(default_factory=list[Array], init=False)
    _done: int = field(default=0, init=False)

    def run(self) -> Drawn:
        """All steps that are left. Ctrl-C raises `Paused` with what is there."""
        import jax

        draws = self.blocks
        with (
            jax.enable_x64(True),
            progress_bar(self.progress, self._done, self.steps) as advance,
            draws.drawn(math.ceil((self.steps - self._done) / draws.steps)) as blocks,
        ):
            every = jax.device_put(self.records) if self.batch is None else None
            state: Any = self._pieces[-1][-1] if self._pieces else self._first()
            state = np.concatenate([state, np.zeros((*state.shape[:-1], self.width))], axis=-1)
            room = np.zeros((draws.steps, *state.shape))

            def keep(rows: Any) -> None:
                """Wait for a block, and keep its steps; those past the plan's number were not run."""
                steps = min(draws.steps, self.steps - self._done)
                found = jax.device_get(rows)[:steps]
                self._pieces.append(found[..., : found.shape[-1] - self.width])
                self._done += steps
                if self.watch is not None:
                    self.watch(found[..., found.shape[-1] - self.width :].reshape(-1, self.width))
                advance(steps)

            try:
                given = (state, room, draws.shapes, every, np.int64(0))
                run = _compiled(self.step, draws.layout, given)
                started, running = self._done, None
                for inputs in blocks:
                    steps = min(draws.steps, self.steps - started)
                    state, rows = run(state, room, inputs, every, np.int64(steps))
                    if running is not None:
                        keep(running)  # while the next one runs
                    started, running = started + steps, rows
                if running is not None:
                    keep(running)
            except KeyboardInterrupt:
                raise Paused(self._drawn(), self.run) from None
        return self._drawn()

    @property
    def blocks(self) -> Blocks:
        """What draws the inputs of the loop."""
        return Blocks(
            self.records,
            self.batch,
            self.start,
            self.test_noise,
            self.draw_batches,
            self.constants,
            self.randomness,
        )

    def _first(self) -> Array:
        """The state before the first step, laid out as the loop wants it."""
        lead = self.blocks.lead
        rows = [values.reshape(*lead, -1) for values in self.start.values()]
        return np.concatenate([*rows, np.zeros((*lead, 2))], axis=-1)

    def _drawn(self) -> Drawn:
        """The draws, one chain after the other."""
        rows = np.concatenate([np.empty((0, *self._first().shape)), *self._pieces])
        rows = np.moveaxis(rows.reshape(self._done, self.blocks.chains, rows.shape[-1]), 1, 0)
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


def _compiled(step: Step, layout: Layout, given: Any) -> Callable[..., Any]:
    """The loop, compiled for these shapes, whose arrays need not be there yet; once per step and layout."""
    import jax

    shapes, tree = jax.tree.flatten(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), given))
    return _compile(hashable(step), layout, tuple(shapes), tree)[0]


@lru_cache(maxsize=64)
def _compile(
    step: Step, layout: Layout, shapes: tuple[Any, ...], tree: Any
) -> tuple[Callable[..., Any], Any]:
    """The compiled loop, and what it was compiled from: to free that takes as long as some hundred steps."""
    import jax

    lowered = jax.jit(partial(_block, step, layout)).lower(*jax.tree.unflatten(tree, shapes))
    try:
        return lowered.compile(_COMPILER), lowered
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return lowered.compile(), lowered  # another version of XLA


def _block(  # noqa: PLR0917 - JAX compiles for positions
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
        parts = [*(moved.theta[name] for name in names), moved.accepted, moved.clipped, *moved.watched]
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

    zeros = (0,) * (array.ndim - 1)
    row = lax.dynamic_slice(array, (i, *zeros), (1, *array.shape[1:]), allow_negative_indices=False)
    return lax.squeeze(row, (0,))


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
    from jax import lax

    return {name: lax.select_n(accepted, theta[name], candidate[name]) for name in theta}


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

        self._progress = Progress(console=Console(stderr=True), refresh_per_second=2)
        self._task = self._progress.add_task("steps", total=steps, completed=done)

    def __enter__(self) -> Callable[[int], None]:
        self._progress.start()
        return partial(self._progress.advance, self._task)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
