# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
"""The loop that every chain of this room runs in: compiled once, in blocks, on O(batch) batches.

A block is a fixed number of steps. Its batches and noise are drawn by NumPy while the
compiled loop runs the block before it. Nothing about a block depends on the data:
neither its length, nor its work, nor when the progress bar moves.

Proof page: docs/proofs/dp_mcmc.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.mechanisms.base import Drawn
from discreet.mechanisms.interruption import Paused
from discreet.mechanisms.proposals import Noise
from discreet.models.base import Model, Records, Theta
from discreet.privacy import Evidence, Sensitive
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax

Array = NDArray[np.float64]

_STEPS_PER_BLOCK, _LARGEST_BLOCK = 256, 2**23


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
    """One step of a chain, compiled. Hashable, so that equal steps compile once."""

    def __call__(
        self, theta: Theta, noise: Noise, test: Any, batch: Theta, constants: Mapping[str, jax.Array]
    ) -> Moved:
        """From a state to the next."""
        ...


Batches = Callable[[np.random.Generator, int, int, tuple[int, ...]], NDArray[np.int32]]


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
    test_noise: Callable[[np.random.Generator, tuple[int, ...]], tuple[Array, ...]]
    constants: Mapping[str, float]
    records: Records
    batch: int | None
    steps: int
    start: dict[str, Array]
    randomness: Randomness
    progress: bool
    draw_batches: Batches = field(default_factory=lambda: batches)
    _pieces: list[dict[str, Array]] = field(default_factory=list[dict[str, Array]], init=False)
    _totals: list[Array] = field(default_factory=list[Array], init=False)
    _done: int = field(default=0, init=False)

    def run(self) -> Drawn:
        """All steps that are left. Ctrl-C raises `Paused` with what is there."""
        import jax

        with jax.enable_x64(True), _bar(self.progress, self._done, self.steps) as advance:
            compiled = _compiled_block()
            step, data = _hashable(self.step), jax.device_put(self.records)
            theta: Any = (
                {name: values[-1] for name, values in self._pieces[-1].items()}
                if self._pieces
                else self.start
            )
            try:
                inputs = self._inputs()
                while self._done < self.steps:
                    count = min(self.block, self.steps - self._done)
                    running = compiled(step, self.block, theta, inputs, data, self.constants, count)
                    if self._done + count < self.steps:
                        inputs = self._inputs()  # drawn while the block runs
                    draws, totals = jax.device_get(running)
                    self._pieces.append({name: values[:count] for name, values in draws.items()})
                    self._totals.append(totals)
                    self._done += count
                    theta = {name: values[count - 1] for name, values in draws.items()}
                    advance(count)
            except KeyboardInterrupt:
                raise Paused(self._drawn(), self.run) from None
        return self._drawn()

    @property
    def chains(self) -> int:
        """How many run side by side."""
        return len(next(iter(self.start.values())))

    @property
    def block(self) -> int:
        """Steps per block: public, and small enough that its batches fit in memory."""
        size = len(next(iter(self.records.values())))
        per_step = self.chains * (self.batch or min(size, 2**15))
        return max(1, min(_STEPS_PER_BLOCK, _LARGEST_BLOCK // per_step))

    def _inputs(self) -> tuple[Any, ...]:
        """Batches, proposal noise and test noise of a block, leading axes step and chain."""
        g, shape = self.randomness.numpy(), (self.block, self.chains)
        size = len(next(iter(self.records.values())))
        rows = None if self.batch is None else self.draw_batches(g, size, self.batch, shape)
        like = {name: (*shape, *values.shape[1:]) for name, values in self.start.items()}
        normal = {name: g.standard_normal(s) for name, s in like.items()}
        uniform = {name: g.random(s) for name, s in like.items()}
        key = g.integers(0, 2**32, size=(*shape, 2), dtype=np.uint32)
        return rows, normal, uniform, key, self.test_noise(g, shape)

    def _drawn(self) -> Drawn:
        """The draws, one chain after the other."""
        chains, start = self.chains, self.start
        empty = {name: np.empty((0, *values.shape)) for name, values in start.items()}
        draws: dict[str, Array] = {}
        for name in start:
            steps = np.concatenate([piece[name] for piece in (empty, *self._pieces)])
            draws[name] = np.ascontiguousarray(np.moveaxis(steps, 1, 0)).reshape(-1, *steps.shape[2:])
        totals = np.sum(self._totals, axis=0) if self._totals else np.zeros((2, chains))
        shares = totals / max(1, self._done)
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
                "acceptance_rate": Sensitive(shares[0], "acceptance rate of each chain"),
                "clipped_share": Sensitive(shares[1], "share of clipped ratios of each chain"),
            },
        )


def batches(
    generator: np.random.Generator, size: int, batch: int, shape: tuple[int, ...]
) -> NDArray[np.int32]:
    """Uniform subsets of `batch` of the numbers 0 .. size-1, in O(batch) time each.

    NumPy's `choice` runs Floyd's algorithm, or swaps the tail of a list of `size`
    numbers when `batch` is over a fiftieth of `size`; both are exactly uniform, and
    both cost O(batch) (docs/proofs/dp_mcmc.md#batches).
    """
    rows = np.empty((*shape, batch), dtype=np.int32 if size < 2**31 else np.int64)
    for place in np.ndindex(*shape):
        rows[place] = generator.choice(size, size=batch, replace=False, shuffle=False)
    return cast("NDArray[np.int32]", rows)


def starts(model: Model, start: Mapping[str, ArrayLike] | None, chains: int) -> dict[str, Array]:
    """The first states, leading axis = chain; zeros unless given, once for all or chain by chain."""
    states: dict[str, Array] = {}
    shapes = model.parameter_shapes
    given = {name: np.zeros(shape) for name, shape in shapes.items()} if start is None else start
    if set(given) != set(shapes):
        raise ValueError(
            f"start must name the parameters {', '.join(sorted(shapes))}, got {', '.join(sorted(given))}; "
            "give each its first value"
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


def check_starts(model: Model, states: Mapping[str, Array]) -> None:
    """Refuse first states outside the support of the prior; all of this is public."""
    import jax

    with jax.enable_x64(True):
        inside = np.isfinite(np.asarray(jax.vmap(model.log_prior)(cast("Theta", dict(states)))))
    if not inside.all():
        raise ValueError(
            f"start must lie in the support of the prior, got a point outside for {int((~inside).sum())} of "
            f"{len(inside)} chains; move it inside"
        )


class _ByIdentity:
    """A step that cannot be hashed, because a part of it cannot; compiled anew for every run."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def __call__(
        self, theta: Theta, noise: Noise, test: Any, batch: Theta, constants: Mapping[str, jax.Array]
    ) -> Moved:
        return self.step(theta, noise, test, batch, constants)


def _hashable(step: Step) -> Step:
    try:
        hash(step)
    except TypeError:
        return _ByIdentity(step)
    return step


@cache
def _compiled_block() -> Callable[..., Any]:
    """The loop, compiled per step, block length and shapes."""
    import jax

    return jax.jit(_block, static_argnums=(0, 1))


def _block(  # noqa: PLR0917 - JAX marks static arguments by position
    step: Step, length: int, theta: Theta, inputs: tuple[Any, ...], records: Theta, constants: Any, count: Any
) -> tuple[Theta, jax.Array]:
    """`count` steps of all chains: the states after each, and the sums of what `Moved` counts."""
    import jax
    import jax.numpy as jnp

    chains = len(next(iter(theta.values())))

    def one(state: Theta, at: tuple[Any, ...]) -> Moved:
        rows, normal, uniform, key, test = at
        noise = Noise(normal, uniform, jax.random.wrap_key_data(key, impl="threefry2x32"))
        batch = records if rows is None else {name: values[rows] for name, values in records.items()}
        return step(state, noise, test, batch, constants)

    def body(i: Any, carry: tuple[Theta, Theta, jax.Array]) -> tuple[Theta, Theta, jax.Array]:
        state, out, totals = carry

        def here(array: jax.Array) -> jax.Array:
            return array[i]

        moved = jax.vmap(one)(state, jax.tree.map(here, inputs))
        out = {name: out[name].at[i].set(value) for name, value in moved.theta.items()}
        return moved.theta, out, totals + jnp.stack([moved.accepted * 1.0, moved.clipped * 1.0])

    room = {name: jnp.zeros((length, *value.shape)) for name, value in theta.items()}
    _, out, totals = jax.lax.fori_loop(0, count, body, (theta, room, jnp.zeros((2, chains))))
    return out, totals


def accept(accepted: jax.Array, candidate: Theta, theta: Theta) -> Theta:
    """The candidate or the current state."""
    import jax.numpy as jnp

    return {name: jnp.where(accepted, candidate[name], theta[name]) for name in theta}


def _bar(progress: bool, done: int, steps: int) -> AbstractContextManager[Callable[[int], None]]:
    """A progress bar on standard error, or nothing."""
    if not progress:
        return nullcontext(_nothing)
    return _Bar(done, steps)


def _nothing(count: int) -> None:
    del count


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
