# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""What the output of a network is about: a category, a yes, a number."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.models.base import Bound, Records
from discreet.models.outcomes import binary, categories, normal_outcome, probability
from discreet.privacy import checks

if TYPE_CHECKING:
    import jax

OUTCOMES: dict[str, type[Outcome]] = {}
"""Name of an outcome -> its class, for models that were saved."""


@dataclass(frozen=True)
class Outcome(ABC):
    """The distribution of y given the output of a network."""

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        OUTCOMES[cls.__name__] = cls

    @property
    @abstractmethod
    def width(self) -> int | None:
        """How many outputs it takes; None for any number."""

    @abstractmethod
    def log_density(self, output: Any, y: Any) -> jax.Array:
        """Log density of y for one example."""

    @abstractmethod
    def distribution(self, output: Any) -> Any:
        """The NumPyro distribution of y for one example."""

    @property
    @abstractmethod
    def bounds(self) -> dict[str, Bound]:
        """What is certified whatever the network."""

    def admit(self, records: Records, width: int) -> Records:
        """Refuse outcomes outside the declared domain."""
        del width
        return records


@dataclass(frozen=True)
class Categories(Outcome):
    """y in 0, 1, ..., k - 1; the outputs are log odds, one for each (softmax)."""

    @property
    def width(self) -> None:
        """As many as there are categories."""

    def log_density(self, output: Any, y: Any) -> jax.Array:
        import jax
        import jax.numpy as jnp

        chosen = jnp.arange(output.shape[-1]) == y
        return jnp.where(chosen, output, 0.0).sum() - jax.nn.logsumexp(output)

    def distribution(self, output: Any) -> Any:
        import numpyro.distributions as dist

        return dist.CategoricalLogits(output, validate_args=False)

    @property
    def bounds(self) -> dict[str, Bound]:
        return probability()

    def admit(self, records: Records, width: int) -> Records:
        return categories(records, width)


@dataclass(frozen=True)
class Yes(Outcome):
    """y in {0, 1}; the one output is the log odds of 1."""

    @property
    def width(self) -> int:
        return 1

    def log_density(self, output: Any, y: Any) -> jax.Array:
        import jax

        return jax.nn.log_sigmoid((2 * y - 1) * output[0])

    def distribution(self, output: Any) -> Any:
        import numpyro.distributions as dist

        return dist.BernoulliLogits(output[0], validate_args=False)

    @property
    def bounds(self) -> dict[str, Bound]:
        return probability()

    def admit(self, records: Records, width: int) -> Records:
        del width
        return binary(records)


@dataclass(frozen=True)
class Number(Outcome):
    """y ~ N(output, sd^2).

    Args:
        sd: public.
    """

    sd: float = 1.0

    def __post_init__(self) -> None:
        checks.real("sd", self.sd, above=0.0)

    @property
    def width(self) -> int:
        return 1

    def log_density(self, output: Any, y: Any) -> jax.Array:
        return -0.5 * ((y - output[0]) / self.sd) ** 2 - math.log(self.sd * math.sqrt(2 * math.pi))

    def distribution(self, output: Any) -> Any:
        import numpyro.distributions as dist

        return dist.Normal(output[0], self.sd, validate_args=False)

    @property
    def bounds(self) -> dict[str, Bound]:
        return normal_outcome(self.sd**2)


@dataclass(frozen=True)
class NumberAndSpread(Outcome):
    """y ~ N(m, v) with outputs m and s: v = smallest_sd^2 + exp(s), different for each example.

    Args:
        smallest_sd: public; it bounds the density.

    References: paper N, Appendix C.2 (heteroscedastic regression).
    """

    smallest_sd: float = 0.05

    def __post_init__(self) -> None:
        checks.real("smallest_sd", self.smallest_sd, above=0.0)

    @property
    def width(self) -> int:
        return 2

    def _variance(self, output: Any) -> Any:
        import jax.numpy as jnp

        return self.smallest_sd**2 + jnp.exp(output[1])

    def log_density(self, output: Any, y: Any) -> jax.Array:
        import jax.numpy as jnp

        v = self._variance(output)
        return -0.5 * (y - output[0]) ** 2 / v - 0.5 * jnp.log(2 * math.pi * v)

    def distribution(self, output: Any) -> Any:
        import jax.numpy as jnp
        import numpyro.distributions as dist

        return dist.Normal(output[0], jnp.sqrt(self._variance(output)), validate_args=False)

    @property
    def bounds(self) -> dict[str, Bound]:
        return normal_outcome(self.smallest_sd**2)
