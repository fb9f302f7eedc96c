# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""The loop of noisy steps: Poisson batches and noise are prepared by a thread while a step runs.

Proof page: docs/proofs/private_gradients.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms._chain_blocks import ahead
from discreet.mechanisms._private_inputs import Preparation, Prepared
from discreet.mechanisms._private_progress import spending_bar
from discreet.mechanisms._private_storage import Checkpoint, Draws, InMemory, Saved
from discreet.mechanisms._private_sums import Engine, Inputs, Numbers, Tree, single_precision
from discreet.mechanisms.interruption import Paused, between_steps
from discreet.models.base import Records
from discreet.neural.batches import PoissonBatches
from discreet.neural.keystream import Ratchet
from discreet.privacy import Observer

Array = NDArray[np.float64]

_COMPILER = {"xla_cpu_use_fusion_emitters": False}
"""Half as long to compile; elementwise passes over large arrays take twice as long."""

_LARGE = 100_000


TOGETHER = 16
"""How many steps observers are told of at a time."""


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

    def number(self, done: int) -> int:
        """How many of the first `done` steps are kept."""
        return max(0, done - self.after) // self.every


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
        draws: where kept draws go.
        checkpoint: the file that is kept up to date, or None.
        about: what a checkpoint says of the run, see `Saved`.
        spent: what so many steps cost, in words, for the bar.
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
    draws: Draws = field(default_factory=InMemory)
    checkpoint: Checkpoint | None = None
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    spent: Callable[[int], str] = field(default=lambda _: "steps")
    done: int = field(default=0, init=False)
    _state: list[Array] = field(default_factory=list[Array], init=False)
    _sum: dict[str, Array] | None = field(default=None, init=False)
    _shown: list[tuple[Any, int, float]] = field(default_factory=list[tuple[Any, int, float]], init=False)

    @property
    def steps(self) -> int:
        """How many there are in all."""
        return len(self.numbers.sds)

    def run(self, wrap: Callable[[], Any]) -> Any:
        """All steps that are left, then `wrap()`; Ctrl-C raises `Paused` with what `wrap` returns by then."""
        import jax

        preparation = self._preparation()
        with (
            jax.enable_x64(preparation.double),
            spending_bar(self.progress, self.done, self.steps, self.spent) as advance,
            ahead(preparation.next, self.steps - self.done, most=2) as prepared,
            between_steps() as asked,
        ):
            theta: Any = jax.device_put({name: v.astype(self.kind) for name, v in self.theta.items()})
            state = self.engine.rule.init(theta)
            if self.done:
                state = jax.tree.unflatten(jax.tree.structure(state), jax.device_put(self._state))
            total: Any = None if self._sum is None else jax.device_put(self._sum)
            compiled = _compiled(quick=sum(v.size for v in self.theta.values()) < _LARGE)
            running: tuple[Prepared, Any] | None = None
            for given in prepared:
                theta, state, distances, over = self._step(compiled, theta, state, given)
                if running is not None:  # the step before this one: its memory is used again
                    jax.block_until_ready(running[1])
                    preparation.done(running[0])
                running = (given, over)
                self.done += 1
                self._observe(distances, given.told)
                if self.done in self.kept:
                    if self.kept.average:
                        total = compiled.added(theta, total) if total is not None else compiled.copied(theta)
                    else:
                        self.draws.append(_fetched(theta), self.number_kept - 1)
                advance(1)
                if self.checkpoint is not None and self.done % self.checkpoint.every == 0:
                    self._hold(theta, state, total)
                    self._write(given.after)
                if asked.stop and self.done < self.steps:
                    # What was prepared ahead is prepared again, to the bit.
                    self.ratchet = Ratchet(given.after)
                    break
            self._tell()
            self._hold(theta, state, total)
        if self.done < self.steps:
            self._write(self.ratchet.leave())
            raise Paused(wrap(), lambda: self.run(wrap))
        if self.checkpoint is not None:
            self.checkpoint.remove()
        return wrap()

    def restore(self, saved: Saved) -> None:
        """Stand where a checkpoint stood."""
        self.done, self.theta, self._state = saved.done, saved.theta, saved.state
        self._sum = saved.total or None
        self.ratchet = Ratchet(saved.secret)

    def _hold(self, theta: Any, state: Any, total: Any) -> None:
        import jax

        self.theta = _fetched(theta)
        self._state = [np.array(leaf) for leaf in jax.device_get(jax.tree.leaves(state))]
        self._sum = None if total is None else _fetched(total)

    def _write(self, secret: bytes) -> None:
        if self.checkpoint is None:
            return
        draws = self.draws.stacked(self.number_kept) if isinstance(self.draws, InMemory) else {}
        self.checkpoint.write(
            Saved(
                **self.about,
                done=self.done,
                theta=self.theta,
                state=self._state,
                total=self._sum or {},
                draws=draws,
                secret=secret,
            )
        )

    @property
    def number_kept(self) -> int:
        """How many draws were kept so far."""
        return 0 if self.kept.average else self.kept.number(self.done)

    @property
    def mean(self) -> dict[str, Array]:
        """The mean of the kept parameters; the last ones if none were kept."""
        if self._sum is None:
            return self.theta
        number = self.kept.number(self.done)
        return {name: values / number for name, values in self._sum.items()}

    @property
    def kind(self) -> type[np.float32] | type[np.float64]:
        """The precision of the run."""
        return np.float32 if single_precision(self.engine.model) else np.float64

    # --- one step -------------------------------------------------------------------

    def _preparation(self) -> Preparation:
        with np.errstate(over="ignore"):  # it becomes infinite, and counts as 0; a warning would tell
            records = {name: values.astype(self.kind) for name, values in self.records.items()}
        return Preparation(self.engine, self.batches, records, self.ratchet)

    def _step(
        self, compiled: _Compiled, theta: Any, state: Any, given: Prepared
    ) -> tuple[Any, Any, Any, Any]:
        """Start a step; the parameters and the state before it are used up.

        Last of what it returns is an array that is there once everything given was read.
        """
        numbers = Numbers(*(self.kind(column[self.done]) for column in self.numbers))
        inputs = Inputs(given.batch, given.bits, given.layers, numbers, given.couples)
        # Variational layers have one gradient in two uses: as one program, it would be computed twice.
        if not given.others and not given.layers.normals.words.size:
            theta, state, distances = compiled.step(self.engine, theta, state, inputs)
            return theta, state, distances, distances
        total, distances = compiled.sums(self.engine, theta, inputs)  # or more records than the buffer holds
        for batch in given.others:
            total = compiled.added(compiled.sums(self.engine, theta, inputs._replace(batch=batch))[0], total)
        # The noise is read by the last program, so that the distances, which are of the first, are no sign.
        theta, state, over = compiled.finish(self.engine, theta, state, total, inputs)
        return theta, state, distances, over

    def _observe(self, distances: Any, told: int) -> None:
        """Keep what a step showed: telling observers of several steps together does not stall the next."""
        if not self.observers:
            return
        self._shown.append((distances, told, 1.0 if self.unit is None else float(self.unit[self.done - 1])))
        if len(self._shown) == TOGETHER:
            self._tell()

    def _tell(self) -> None:
        """Tell the observers of all steps that were kept, in order."""
        shown, self._shown = self._shown, []
        for distances, told, unit in shown:
            seen = np.asarray(distances, dtype=np.float64)[:told] * unit
            for observer in self.observers:
                observer.observe(seen[: observer.pairs])


def _fetched(theta: Tree) -> dict[str, Array]:
    import jax

    return {name: np.array(value) for name, value in jax.device_get(theta).items()}


class _Compiled(NamedTuple):
    """A step of one pass; and its parts, for batches larger than the buffer. Compiled per engine."""

    step: Callable[..., Any]
    sums: Callable[..., Any]
    finish: Callable[..., Any]
    added: Callable[..., Any]
    copied: Callable[..., Any]


def quick_jit(function: Callable[..., Any], **how: Any) -> Callable[..., Any]:
    """`jax.jit` with the code generator that compiles faster, where this version of XLA has the choice."""
    import jax

    quick, plain = (jax.jit(function, compiler_options=o, **how) for o in (_COMPILER, None))

    def run(*given: Any) -> Any:
        try:
            return quick(*given)
        except jax.errors.JaxRuntimeError as error:
            if "No such compile option" not in str(error):
                raise
            return plain(*given)  # another version of XLA

    return run


@cache
def _compiled(*, quick: bool) -> _Compiled:
    import jax

    jit = quick_jit if quick else jax.jit

    def step(engine: Engine, *given: Any) -> Any:
        return engine.step(*given)

    def sums(engine: Engine, *given: Any) -> Any:
        return tuple(engine.sums(*given))

    def finish(engine: Engine, *given: Any) -> Any:
        theta, state = engine.finish(*given)
        return theta, state, next(iter(theta.values())).reshape(-1)[:1]

    def added(left: Tree, right: Tree) -> Tree:
        return jax.tree.map(jax.numpy.add, left, right)

    def copied(tree: Tree) -> Tree:
        return jax.tree.map(jax.numpy.copy, tree)

    return _Compiled(
        jit(step, static_argnums=0, donate_argnums=(1, 2)),
        jit(sums, static_argnums=0),
        jit(finish, static_argnums=0, donate_argnums=(1, 2)),
        jit(added, donate_argnums=1),
        jit(copied),
    )
