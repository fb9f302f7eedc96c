"""Blocks drawn ahead: what waits or runs is not drawn over (docs/proofs/dp_mcmc.md#batches)."""

from typing import Any

import jax
import numpy as np
import pytest

from discreet.mechanisms import _chain_blocks
from discreet.mechanisms._chain_batches import batches
from discreet.mechanisms._chain_blocks import Blocks
from discreet.samplers.randomness import Randomness

N, BATCH, NUMBER = 5_000, 64, 40


def blocks(chains: int = 1) -> Blocks:
    """Records that say which row they are."""
    return Blocks(
        records={"row": np.arange(N, dtype=float), "pair": np.arange(2.0 * N).reshape(N, 2)},
        batch=BATCH,
        start={"t": np.zeros((chains, 3))},
        test_noise=lambda g, shape: (g.standard_normal(shape),),
        draw_batches=batches,
        constants={},
        randomness=Randomness(1),
    )


def overwritten(drawn: Blocks) -> int:
    """How many blocks change while the next one is asked for, as when they still run."""
    changed = 0
    with jax.enable_x64(True), drawn.drawn(NUMBER) as inputs:
        running: Any = None
        for batch, _, _ in inputs:
            if running is not None:
                then, now = running
                changed += not np.array_equal(then, np.asarray(now))
            running = np.array(batch["row"]), batch["row"]
    return changed


@pytest.mark.parametrize("chains", [1, 3])
def test_every_step_reads_its_own_batch(chains: int) -> None:
    drawn, seen = blocks(chains), []
    lead = (drawn.steps, *drawn.lead)
    with jax.enable_x64(True), drawn.drawn(NUMBER) as inputs:
        for batch, numbers, words in inputs:
            rows = np.array(batch["row"])
            assert rows.shape == (*lead, BATCH)
            assert numbers.shape == (*lead, 7)
            assert words.shape == (*lead, 2)
            np.testing.assert_array_equal(batch["pair"][..., 1], 2 * rows + 1)
            assert np.all(np.diff(rows) > 0)  # sorted and distinct
            seen.append(rows.reshape(-1, BATCH))
    every = np.concatenate(seen)
    assert len(every) == NUMBER * drawn.steps * chains
    assert len(np.unique(every, axis=0)) == len(every)  # no batch twice


def test_a_block_that_runs_is_not_drawn_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert overwritten(blocks()) == 0

    def too_few(self: Blocks, number: int) -> dict[str, list[np.ndarray]]:
        """One room stands for two."""
        rooms = whole(self, number)
        return {name: [*room[:-1], room[0]] for name, room in rooms.items()}

    whole = Blocks._rooms
    monkeypatch.setattr(Blocks, "_rooms", too_few)
    assert overwritten(blocks()) > 0


def test_shapes_are_those_of_what_is_drawn() -> None:
    drawn = blocks(2)
    with jax.enable_x64(True), drawn.drawn(1) as inputs:
        told, found = (
            jax.tree.leaves(jax.tree.map(lambda a: (a.shape, a.dtype), t))
            for t in (drawn.shapes, next(inputs))
        )
    assert told == found
    assert _chain_blocks._MOST_AHEAD < NUMBER
