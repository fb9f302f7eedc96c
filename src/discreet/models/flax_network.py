# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Any Flax module as a model; its per-example gradients are stored, a chunk at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.network_outcomes import Categories, Outcome
from discreet.models.outcomes import gaussian_prior
from discreet.models.priors import GaussianPrior, Prior

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class FlaxNetwork(Model):
    """y | x with the output of a Flax module, Linen or NNX, as its parameter.

    Slower than `NeuralNetwork`: per-example gradients are stored, `chunk` at a time
    (an argument of the mechanism), where book-keeping stores none. The module sees one
    example at a time, in evaluation mode as far as it depends on a mode.

    Args:
        module: takes a batch with one example, gives a batch of outputs. For NNX, its
            own parameters are where a run starts, if they are given as `start`.
        inputs: the shape of one example.
        outcome: what y is; a category by default.
        prior: of every parameter.

    Raises:
        TypeError: for a module with state beside its parameters, such as batch
            normalisation.

    Example:
        >>> from flax import linen
        >>> FlaxNetwork(linen.Dense(3), (4,)).parameter_shapes
        {'bias': (3,), 'kernel': (4, 3)}
    """

    module: Any
    inputs: tuple[int, ...]
    outcome: Outcome = Categories()  # noqa: RUF009  # frozen
    prior: Prior = GaussianPrior()  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        _ = self._form

    @cached_property
    def _form(self) -> _Form:
        return _linen(self.module, self.inputs) if hasattr(self.module, "apply") else _nnx(self.module)

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": self.inputs, "y": ()}

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(leaf.shape) for name, leaf in self._form.leaves.items()}

    def initial(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        """First values, as the module initialises itself, drawn without data."""
        return self._form.initial(int(generator.integers(2**31)))

    def log_prior(self, theta: Theta) -> jax.Array:
        import jax.numpy as jnp

        return sum((self.prior.log_density(value) for value in theta.values()), start=jnp.zeros(()))

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        return self.outcome.log_density(self._form.output(theta, record["x"]), record["y"])

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        return self.outcome.distribution(self._form.output(theta, record["x"]))

    @property
    def bounds(self) -> dict[str, Bound]:
        precision, found = self.prior.precision, self.outcome.bounds
        return found if precision is None else {**found, **gaussian_prior(precision)}

    def admit(self, records: Records) -> Records:
        import jax

        leaves = self._form.leaves
        theta = {name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for name, leaf in leaves.items()}
        example = jax.ShapeDtypeStruct(self.inputs, np.float32)
        return self.outcome.admit(records, jax.eval_shape(self._form.output, theta, example).shape[0])

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": "FlaxNetwork",
            "module": repr(self.module),
            "inputs": list(self.inputs),
            "outcome": repr(self.outcome),
            "prior": repr(self.prior),
        }


@dataclass(frozen=True)
class _Form:
    """A module as named parameters and a function of them.

    Attributes:
        leaves: shapes and types of the parameters.
        initial: first values from a seed.
        output: of one example.
    """

    leaves: Mapping[str, Any]
    initial: Any
    output: Any


def _linen(module: Any, inputs: tuple[int, ...]) -> _Form:
    import jax

    def first(seed: Any) -> Any:
        return module.init(jax.random.key(seed), np.zeros((1, *inputs), np.float32))

    variables = jax.eval_shape(first, 0)
    beside = sorted(set(variables) - {"params"})
    if beside:
        _refuse(beside)
    tree = jax.tree.structure(variables["params"])
    leaves = _named(variables["params"])

    def output(theta: Theta, x: Any) -> Any:
        parameters = jax.tree.unflatten(tree, [theta[name] for name in leaves])
        return module.apply({"params": parameters}, x[None])[0]

    def initial(seed: int) -> dict[str, np.ndarray]:
        return {name: np.asarray(value) for name, value in _named(first(seed)["params"]).items()}

    return _Form(leaves, initial, output)


def _nnx(module: Any) -> _Form:
    import jax
    from flax import nnx

    graph, parameters, rest = nnx.split(module, nnx.Param, ...)
    beside = sorted({type(leaf).__name__ for leaf in jax.tree.leaves(rest, is_leaf=_is_variable)} & _STATE)
    if beside:
        _refuse(beside)
    tree = jax.tree.structure(parameters)
    leaves = _named(parameters)

    def output(theta: Theta, x: Any) -> Any:
        found = jax.tree.unflatten(tree, [theta[name] for name in leaves])
        return nnx.merge(graph, found, rest)(x[None])[0]

    def initial(seed: int) -> dict[str, np.ndarray]:
        del seed  # a module of NNX holds its own first values, drawn when it was made
        return {name: np.asarray(value) for name, value in leaves.items()}

    return _Form(leaves, initial, output)


_STATE = {"BatchStat", "Cache", "Intermediate"}


def _is_variable(leaf: object) -> bool:
    from flax import nnx

    return isinstance(leaf, nnx.Variable)


def _named(tree: Any) -> dict[str, Any]:
    """Leaves by a name made of the path to them, in the order of the tree."""
    import jax

    found: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        keys = [str(getattr(part, "key", getattr(part, "idx", getattr(part, "name", part)))) for part in path]
        found["_".join(key for key in keys if key != "value")] = leaf
    return found


def _refuse(beside: list[str]) -> NoReturn:
    raise TypeError(
        f"a module must have parameters only, got {', '.join(beside)} beside them: through batch "
        "normalisation every record changes the gradients of the others; use LayerNorm or GroupNorm"
    )
