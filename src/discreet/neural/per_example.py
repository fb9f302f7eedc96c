# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Clipped sums over a batch: by book-keeping, or for any function by `vmap` of its gradient in chunks.

Proof page: docs/proofs/private_gradients.md#clipping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.neural.clipping import Clipping
from discreet.neural.network import Book
from discreet.neural.sites import Stored

if TYPE_CHECKING:
    import jax

Gradient = Callable[[Any, Any], Mapping[str, Any]]
"""(parameters, one record) to the gradient of the record's loss."""


class Summed(NamedTuple):
    """What a batch adds up to.

    Attributes:
        total: the sum of the clipped gradients.
        distances: what observers asked for: norms of clipped gradients, or distances of
            the clipped gradients of pairs; empty if nobody did.
    """

    total: dict[str, jax.Array]
    distances: jax.Array


class Watched(NamedTuple):
    """What observers want of a batch, known before it.

    Attributes:
        pairs: how many distances.
        both: whether a distance is between two records; if not, it is the norm of row k.
    """

    pairs: int = 0
    both: bool = False

    @property
    def rows(self) -> int:
        """How many records it takes."""
        return self.pairs * (1 + self.both)


NOBODY = Watched()


def from_book(
    book: Book | Stored,
    mask: Any,
    clipping: Clipping,
    bound: Any,
    watched: Watched = NOBODY,
    *,
    couples: Any = None,
) -> Summed:
    """The clipped sum of a batch whose norms and sums a book knows.

    Args:
        book: of the batch.
        mask: whether a row is a record.
        clipping: the rule.
        bound: C of this step.
        watched: what observers want.
        couples: the rows of the first and of the second record of each pair.
    """
    import jax.numpy as jnp

    squares = book.squares()
    weights = jnp.where(mask, clipping.weights(squares, bound), 0.0)
    return Summed(book.total(weights), _distances(book, squares, weights, watched, couples))


def by_vmap(  # noqa: PLR0917  # in the order of `from_book`
    gradient: Gradient,
    parameters: Any,
    batch: Any,
    mask: Any,
    clipping: Clipping,
    bound: Any,
    watched: Watched = NOBODY,
    *,
    couples: Any = None,
    chunk: int,
) -> Summed:
    """The clipped sum of a batch, with the gradients of `chunk` records in memory at a time.

    Args:
        gradient: of one record.
        parameters: at which.
        batch: fields of records, leading axis = record.
        mask: whether a row is a record.
        clipping: the rule.
        bound: C of this step.
        watched: what observers want; the records that it takes are worked on together.
        couples: the rows of the first and of the second record of each pair.
        chunk: how many records are worked on together.
    """
    import jax
    import jax.numpy as jnp

    each = jax.vmap(gradient, in_axes=(None, 0))

    def add(total: Any, part: Any) -> tuple[Any, None]:
        fields, here = part
        found = from_book(Stored(each(parameters, fields)), here, clipping, bound)
        return jax.tree.map(jnp.add, total, found.total), None

    def part_of(first: int, last: int) -> Any:
        return jax.tree.map(lambda v: v[first:last], (batch, mask))

    shapes = jax.eval_shape(gradient, parameters, jax.tree.map(lambda v: v[0], batch))
    total = {name: jnp.zeros(s.shape, s.dtype) for name, s in shapes.items()}
    distances = jnp.zeros(0)
    seen = min(watched.rows, len(mask))
    if seen:
        fields, here = part_of(0, seen)
        head = from_book(Stored(each(parameters, fields)), here, clipping, bound, watched, couples=couples)
        total, distances = head
    size = len(mask) - seen
    if size == 0:
        return Summed(total, distances)
    chunk = min(chunk, size)
    pad = -size % chunk
    cut = jax.tree.map(
        lambda v: jnp.concatenate([v, jnp.zeros((pad, *v.shape[1:]), v.dtype)]).reshape(
            -1, chunk, *v.shape[1:]
        ),
        part_of(seen, len(mask)),
    )
    total, _ = jax.lax.scan(add, total, cut)
    return Summed(total, distances)


def _distances(book: Book | Stored, squares: Any, weights: Any, watched: Watched, couples: Any) -> jax.Array:
    import jax.numpy as jnp

    if not watched.pairs:
        return jnp.zeros(0)
    # A gradient whose norm is not finite was left out: it contributes 0, and nothing of it may enter here.
    lengths = jnp.where(weights != 0, weights**2 * squares, 0.0)
    if not watched.both:
        return jnp.sqrt(lengths[: watched.pairs])
    left, right = couples
    products = weights[left] * weights[right]
    inner = jnp.where(products != 0, products * book.inner(left, right), 0.0)
    return jnp.sqrt(jnp.maximum(lengths[left] + lengths[right] - 2 * inner, 0.0))
