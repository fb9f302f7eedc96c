# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""A chain whose every test reads all records from disk, piece by piece, on all devices of all processes.

Ratios are rounded to whole multiples of a power of two and summed as integers: the sum
is exact, so it does not depend on pieces, devices, processes or their order.

Process 0 makes the release. The others hold records too, get the states that process 0
compares, and give back their sums; they have no randomness and see no test.

Proof page: docs/proofs/dp_mcmc.md#streaming.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

from discreet.data import StoredRecords
from discreet.mechanisms import _chain
from discreet.mechanisms._chain import Array, Chain, accept
from discreet.mechanisms._chain_blocks import Layout, ahead
from discreet.mechanisms._ratios import Moments
from discreet.mechanisms.base import Drawn
from discreet.mechanisms.interruption import Paused
from discreet.mechanisms.proposals import Noise
from discreet.models.base import Theta, count
from discreet.privacy import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import jax

_PIECE = 1 << 23
"""Bytes of the records that a device gets at once."""


class Parts(Protocol):
    """A step in three parts, so that what it sums can be summed elsewhere."""

    def propose(self, theta: Theta, noise: Noise) -> tuple[Theta, jax.Array]:
        """A candidate and the public part of its log ratio."""
        ...

    def ratios(
        self, theta: Theta, candidate: Theta, batch: Theta, constants: Mapping[str, float]
    ) -> jax.Array:
        """One number in [-1, 1] per record."""
        ...

    def judge(
        self, seen: Moments, number: int, public: Any, test: Any, constants: Mapping[str, float]
    ) -> jax.Array:
        """Whether the candidate is accepted."""
        ...


class States(NamedTuple):
    """What a step compares, leading axis = chain: names in alphabetical order, laid end to end."""

    theta: Array
    candidate: Array


def bits(number: int) -> int:
    """Ratios are multiples of 2^-bits: as fine as a sum of `number` of them in 63 bits allows.

    Proof: docs/proofs/dp_mcmc.md#streaming.
    """
    return min(52, 62 - number.bit_length())


@dataclass
class StreamedChain(Chain):
    """A `Chain` on all of its `StoredRecords`."""

    def run(self) -> Drawn:
        import jax

        if jax.process_index() != 0:
            self._assist()
            return Drawn({})
        with (
            jax.enable_x64(True),
            _chain.progress_bar(self.progress, self._done, self.steps) as advance,
        ):
            state: Any = self._pieces[-1][-1] if self._pieces else self._first()
            try:
                blocks = self.blocks
                while self._done < self.steps:
                    inputs = blocks.block({}, iter(()))
                    for place in range(min(blocks.steps, self.steps - self._done)):
                        state = self._step(blocks.layout, state, inputs, place)
                        self._pieces.append(state[None])
                        self._done += 1
                        advance(1)
            except KeyboardInterrupt:
                raise Paused(self._drawn(), self.run) from None
        return self._drawn()

    def _assist(self) -> None:
        """Sum over the records of this process as often as process 0 asks: once for each step."""
        import jax

        size = sum(values[0].size for values in self.start.values())
        nothing = np.zeros((self.blocks.chains, size))
        with jax.enable_x64(True):
            for _ in range(self.steps):
                self._sums(States(nothing, nothing))

    def _drawn(self) -> Drawn:
        drawn = super()._drawn()
        summed = Evidence.proved(
            "ratios were summed piece by piece, without rounding: as multiples of "
            f"2^-{bits(count(self.records))} of the clipping limit",
            "docs/proofs/dp_mcmc.md#streaming",
        )
        return replace(drawn, evidence=(*drawn.evidence, summed))

    def _step(self, layout: Layout, row: Array, inputs: Any, place: int) -> Array:
        import jax

        step = cast("Parts", _chain.hashable(self.step))
        candidate, public = _compiled()["propose"](step, layout, row, inputs, place)
        ends = sum(values[0].size for values in self.start.values())
        theta = np.asarray(row).reshape(self.blocks.chains, -1)[:, :ends]
        sums = self._sums(States(theta, np.asarray(candidate).reshape(self.blocks.chains, -1)))
        totals = sums.reshape(*self.blocks.lead, 2)
        judged = _compiled()["judge"](
            step, layout, count(self.records), row, candidate, public, totals, inputs, place
        )
        return cast("Array", jax.device_get(judged))

    def _sums(self, states: States) -> Array:
        """Sums of whole ratios and of clipped ones over all records of all processes, by chain."""
        import jax
        from jax.experimental import multihost_utils

        records = cast("StoredRecords", self.records)
        if jax.process_count() > 1:
            states = States(*multihost_utils.broadcast_one_to_all(tuple(states)))
        step, shapes = cast("Parts", _chain.hashable(self.step)), _shapes(self.start)
        constants = tuple(self.constants.items())
        mesh = _mesh()
        local = len(mesh.local_devices)
        most = -(-records.total // jax.process_count())  # of one process; all take equally many pieces
        rows = max(1, min(_PIECE // (8 * records.width), -(-most // local)))
        number = -(-most // (rows * local))
        split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("records"))
        whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        compared = [jax.make_array_from_process_local_data(whole, np.asarray(each)) for each in states]
        add = _adder(mesh, step, shapes, constants, bits(records.total))
        zeros = np.zeros((local, self.blocks.chains, 2), np.int64)
        totals = jax.make_array_from_process_local_data(split, zeros)
        pieces = iter(records.pieces(rows * local, number))
        with ahead(partial(next, pieces), number) as drawn:
            for piece, there in drawn:
                inside = np.arange(rows * local) < there
                given = jax.tree.map(partial(jax.make_array_from_process_local_data, split), (piece, inside))
                totals = add(totals, *compared, *given)
        return np.asarray(jax.device_get(_compiled()["total"](whole)(totals)))


def _shapes(start: Mapping[str, Array]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, values.shape[1:]) for name, values in start.items())


@cache
def _mesh() -> jax.sharding.Mesh:
    """Every device of every process, in one row."""
    import jax

    return jax.sharding.Mesh(np.asarray(jax.devices()), ("records",))


@cache
def _adder(
    mesh: jax.sharding.Mesh,
    step: Parts,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    constants: tuple[tuple[str, float], ...],
    digits: int,
) -> Callable[..., jax.Array]:
    """Adds the sums of a piece, device by device; nothing passes between devices."""
    import jax
    import jax.numpy as jnp

    P = jax.sharding.PartitionSpec
    names, sizes = zip(*shapes, strict=True)

    def one(theta: Any, candidate: Any, piece: Theta, inside: Any) -> jax.Array:
        here, there = (dict(zip(names, _chain.split(row, sizes), strict=True)) for row in (theta, candidate))
        ratios = step.ratios(here, there, piece, dict(constants))
        whole = jnp.round(ratios * 2.0**digits).astype(jnp.int64)
        clipped = (jnp.abs(ratios) >= 1).astype(jnp.int64)
        return jnp.stack([jnp.where(inside, terms, 0).sum() for terms in (whole, clipped)])

    def on_device(totals: Any, theta: Any, candidate: Any, piece: Theta, inside: Any) -> Any:
        run = jax.vmap(one, in_axes=(0, 0, None, None))
        return totals + run(theta, candidate, piece, inside)[None]

    split, whole = P("records"), P()
    return jax.jit(
        jax.shard_map(on_device, mesh=mesh, in_specs=(split, whole, whole, split, split), out_specs=split),
        donate_argnums=0,
    )


@cache
def _compiled() -> dict[str, Callable[..., Any]]:
    """The parts of a step that read no records, compiled per step and layout."""
    import jax

    @cache
    def total(sharding: Any) -> Any:
        return jax.jit(lambda sums: sums.sum(axis=0), out_shardings=sharding)

    return {
        "propose": jax.jit(_propose, static_argnums=(0, 1)),
        "judge": jax.jit(_judge, static_argnums=(0, 1, 2)),
        "total": total,
    }


def _noise(inputs: Any, place: Any) -> Iterator[Any]:
    _, numbers, words = inputs
    yield _chain.at(numbers, i=place)
    yield _chain.at(words, i=place)


def _theta(layout: Layout, row: Any) -> Theta:
    names, shapes = zip(*layout.state, strict=True)
    return dict(zip(names, _chain.split(row, shapes), strict=True))


def _over_chains(layout: Layout, one: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    return one if layout.chains == 1 else jax.vmap(one)


def _propose(step: Parts, layout: Layout, row: Any, inputs: Any, place: Any) -> tuple[Any, Any]:
    """The candidate laid end to end, and the public part of its log ratio."""
    import jax
    import jax.numpy as jnp

    def one(row: Any, numbers: Any, words: Any) -> tuple[Any, Any]:
        normal, uniform, _ = jax.tree.unflatten(layout.tree, _chain.split(numbers, layout.noise))
        candidate, public = step.propose(_theta(layout, row), Noise(normal, uniform, words))
        names = [name for name, _ in layout.state]
        return jnp.concatenate([candidate[name].reshape(-1) for name in names]), public

    return _over_chains(layout, one)(row, *_noise(inputs, place))


def _judge(  # noqa: PLR0917 - JAX marks static arguments by position
    step: Parts,
    layout: Layout,
    number: int,
    row: Any,
    candidate: Any,
    public: Any,
    sums: Any,
    inputs: Any,
    place: Any,
) -> Any:
    """The row after the step."""
    import jax
    import jax.numpy as jnp

    def one(row: Any, candidate: Any, public: Any, sums: Any, *noise: Any) -> Any:
        *_, test = jax.tree.unflatten(layout.tree, _chain.split(noise[0], layout.noise))
        mean, clipped = sums[0] / 2.0 ** bits(number) / number, sums[1] / number
        # All records are read: the spread, which tells of the sampling of a batch, counts for nothing.
        seen = Moments(mean, jnp.zeros(()), clipped)
        accepted = step.judge(seen, number, public, test, dict(layout.constants))
        here, there = _theta(layout, row), _theta(layout, candidate)
        moved = accept(accepted, there, here)
        parts = [*(moved[name] for name, _ in layout.state), accepted, clipped]
        return jnp.concatenate([part.astype(row.dtype).reshape(-1) for part in parts])

    return _over_chains(layout, one)(row, candidate, public, sums, *_noise(inputs, place))
