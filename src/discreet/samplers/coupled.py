"""One draw by a Markov chain whose distance from the posterior is estimated by coupled copies of it.

Proof page: docs/proofs/coupled_chains.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.models.base import Model, Records
from discreet.models.losses import Loss
from discreet.privacy import Evidence, Sensitive, checks
from discreet.samplers.laplace import fit
from discreet.samplers.posterior import TRACES, Sampled, SamplingError, Target, named_draws
from discreet.samplers.randomness import Randomness

if TYPE_CHECKING:
    import jax

PAGE = "docs/proofs/coupled_chains.md"
_CONFIDENCE = 0.999
_DEGREES = 6.0
_SMALL = 1e-3
_FEW = 30
_LARGEST = 400
_NUMBERS_AT_ONCE = 5e6


@dataclass(frozen=True)
class CoupledChains:
    """Chains in Laplace coordinates: Hamiltonian, independence and small random-walk moves.

    Everything that takes time is fixed here, so that run time tells nothing.

    Args:
        gamma: the total variation distance from the posterior that is promised per
            draw. The plan bills it unless `bill` is False.
        meet: m, steps within which coupled pairs are asked to meet.
        pairs: N, coupled pairs; 0 draws without a check.
        stragglers: k, pairs of the N that may fail to meet before the draw is refused.
        bill: whether gamma enters delta. A budget with delta = 0 has no room for
            it; then the distance stands in the evidence only.

    Guarantee:
        None by itself: the distance is checked, with confidence 0.999, not proved
        (docs/proofs/coupled_chains.md says what it assumes). If the check fails,
        nothing is released.

    References: Biswas, Jacob & Vanetti 2019, Theorem 2.5; Heng & Jacob 2019.
    """

    gamma: float = 1e-6
    meet: int = 12
    pairs: int = 24
    stragglers: int = 3
    bill: bool = True

    def __post_init__(self) -> None:
        checks.real("gamma", self.gamma, above=0.0, below=1.0)
        checks.integer("meet", self.meet, at_least=1)
        checks.integer("pairs", self.pairs, at_least=0)
        checks.integer("stragglers", self.stragglers, at_least=0)
        if 0 < self.pairs <= self.stragglers:
            raise ValueError(
                f"stragglers must be fewer than the pairs, got {self.stragglers} of {self.pairs}; take more "
                "pairs"
            )
        if self.pairs and self.steps > 100_000:
            raise ValueError(
                f"gamma {self.gamma:g} must be within reach of {self.pairs} pairs, got a need of "
                f"{self.steps} steps; take more pairs"
            )

    @property
    def steps(self) -> int:
        """How long the chain of a draw is: enough for gamma if all stragglers do not meet in time."""
        limit = _limit(self.stragglers, self.pairs) if self.pairs else 0.3
        least = self.gamma * (1 - limit) / math.ceil(self.meet / self.lag)
        return self.meet * math.ceil(math.log(least) / math.log(limit))

    @property
    def lag(self) -> int:
        """L, how far the first chain of a pair is ahead: short, because until then the second idles."""
        return math.ceil(self.meet / 8)

    def estimate(self, unmet: int) -> float:
        """The total variation distance that so many pairs without a meeting allow."""
        limit = _limit(unmet, self.pairs)
        if limit == 1:
            return 1.0
        return math.ceil(self.meet / self.lag) * limit ** (self.steps // self.meet) / (1 - limit)

    @property
    def distance(self) -> float:
        return self.gamma if self.bill else 0.0

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        if self.bill:
            return ()
        return (
            Evidence.assumed(
                "each draw is exactly from the posterior; its Markov chain is run long enough that what "
                f"coupled chains measure is below {self.gamma:g}, which is not in delta",
                PAGE,
            ),
        )

    def refusal(self, model: Model, loss: Loss) -> str | None:  # noqa: ARG002
        size = sum(math.prod(shape) for shape in model.parameter_shapes.values())
        if size > _LARGEST:
            return f"it factors a {size} x {size} matrix, and its limit is {_LARGEST} parameters; use NUTS"
        return None

    def sample(
        self, model: Model, loss: Loss, records: Records, randomness: Randomness, draws: int
    ) -> Sampled:
        import jax
        import jax.numpy as jnp

        target = Target(model, type(loss))
        source = randomness.numpy()
        with jax.enable_x64(True):
            data = {name: jnp.asarray(value) for name, value in records.items()}
            numbers = {name: jnp.asarray(value) for name, value in loss.numbers.items()}
            programs = _programs(target)
            mode, scale = programs.fit(numbers, data)
            block = min(draws, max(1, int(_NUMBERS_AT_ONCE / (self.steps * 3 * target.size))))
            blocks: list[np.ndarray] = []
            moves: list[np.ndarray] = []
            for _ in range(math.ceil(draws / block)):
                noise = _Noise.draw(source, self.steps, block, target.size)
                ends, moved = programs.chains(mode, scale, noise, numbers, data)
                blocks.append(np.asarray(ends))
                moves.append(np.asarray(moved))
            unmet = 0
            if self.pairs:
                noise = _Noise.draw(source, self.lag + self.meet, self.pairs, target.size)
                met = programs.pairs(mode, scale, noise, jnp.asarray(self.lag), numbers, data)
                unmet = int(np.count_nonzero(~np.asarray(met)))
        flat = np.concatenate(blocks)[:draws].astype(np.float64)
        accepted = np.concatenate(moves)
        diagnostics: dict[str, Sensitive[Any]] = {"acceptance": Sensitive(accepted, "acceptance rates")}
        if not np.isfinite(flat).all():
            raise SamplingError(
                "the chain must stay finite, got NaN or infinity; check the scale of the records"
            )
        if not self.pairs:
            return Sampled(named_draws(target, flat), (), diagnostics)
        estimate = self.estimate(unmet)
        diagnostics["gamma"] = Sensitive(estimate, "estimated distance from the posterior")
        diagnostics["unmet"] = Sensitive(unmet, "pairs that did not meet")
        if estimate > self.gamma:
            raise SamplingError(
                f"coupled chains must show a distance of at most {self.gamma:g} from the posterior, got "
                "more, and nothing was released; plan again with a larger `meet`, which is a new spend"
            )
        claim = (
            f"each draw is within {self.gamma:g} of the posterior in total variation, if pairs of chains "
            f"that have not met after {self.meet} steps meet no less easily than fresh ones and no mode lies "
            "out of sight"
        )
        source = f"{self.pairs} coupled pairs on these records, {PAGE}"
        evidence = Evidence.checked(claim, source, confidence=_CONFIDENCE)
        return Sampled(named_draws(target, flat), (evidence,), diagnostics)


def _limit(failures: int, trials: int) -> float:
    """Upper Clopper-Pearson limit of a probability."""
    from scipy.stats import beta

    if failures >= trials:
        return 1.0
    return float(beta.ppf(_CONFIDENCE, failures + 1, trials - failures))


class _Noise(NamedTuple):
    """All random numbers of a run, leading axes (step, chain)."""

    momentum: Any
    proposal: Any
    walk: Any
    stretch: Any
    log_chance: Any
    start: Any
    other: Any

    @staticmethod
    def draw(source: np.random.Generator, steps: int, chains: int, d: int) -> _Noise:
        """Fresh random numbers."""
        return _Noise(
            source.standard_normal((steps, chains, d)),
            _student(source, (steps, chains), d),
            source.standard_normal((steps, chains, d)),
            source.uniform(0.8, 1.0, (steps, chains)),
            -source.standard_exponential((steps, chains, 4)),
            _student(source, (chains,), d),
            _student(source, (chains,), d),
        )


def _student(source: np.random.Generator, shape: tuple[int, ...], d: int) -> np.ndarray:
    """Multivariate Student-t vectors."""
    chi = source.standard_gamma(_DEGREES / 2, (*shape, 1)) / (_DEGREES / 2)
    return source.standard_normal((*shape, d)) / np.sqrt(chi)


def _log_student(z: jax.Array) -> jax.Array:
    import jax.numpy as jnp

    return -0.5 * (_DEGREES + z.shape[-1]) * jnp.log1p((z**2).sum(-1) / _DEGREES)


class _Point(NamedTuple):
    """Places of chains, leading axis = chain: Laplace coordinates, log density, its gradient."""

    z: jax.Array
    height: jax.Array
    slope: jax.Array

    def where(self, choose: jax.Array, other: _Point) -> _Point:
        """This point where `choose`, the other elsewhere."""
        import jax.numpy as jnp

        return _Point(
            jnp.where(choose[:, None], self.z, other.z),
            jnp.where(choose, self.height, other.height),
            jnp.where(choose[:, None], self.slope, other.slope),
        )


class _Programs(NamedTuple):
    fit: Callable[..., Any]
    chains: Callable[..., Any]
    pairs: Callable[..., Any]


@lru_cache(maxsize=32)
def _programs(target: Target) -> _Programs:
    """The compiled parts; JAX compiles each again only for records of another shape."""
    import jax
    import jax.numpy as jnp

    d = target.size
    length = d**-0.25
    leaps = max(1, round(math.pi / 2 / length))
    # In many dimensions an independent proposal is never accepted, and left out.
    last = leaps + 1 if d <= _FEW else leaps

    def run_fit(numbers: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[jax.Array, jax.Array]:
        TRACES["coupled.fit"] += 1
        return fit(
            lambda flat: target.log_density(flat, numbers, data),
            lambda flat: target.model.log_prior(target.theta(flat)),
            jnp.zeros(d),
        )

    def density(
        mode: jax.Array, scale: jax.Array, numbers: Mapping[str, Any], data: Mapping[str, Any]
    ) -> Callable[[jax.Array], _Point]:
        graded = jax.vmap(jax.value_and_grad(lambda z: target.log_density(mode + scale @ z, numbers, data)))

        def at(z: jax.Array) -> _Point:
            height, slope = graded(z)
            return _Point(z, jnp.where(jnp.isnan(height), -jnp.inf, height), slope)

        return at

    def step(at: Callable[[jax.Array], _Point], x: _Point, noise: _Noise, walk: _Walk) -> _Point:
        """Hamiltonian, independence and random-walk move of every chain, one density evaluation at a time."""

        def micro(state: tuple[_Point, _Point, jax.Array], k: jax.Array) -> tuple[Any, None]:
            here, path, momentum = state
            stride = (length * noise.stretch)[:, None]
            momentum = momentum + 0.5 * stride * path.slope
            aim = jnp.where(
                k < leaps, path.z + stride * momentum, jnp.where(k == last, walk(here.z), noise.proposal)
            )
            there = at(aim)
            momentum = momentum + 0.5 * stride * there.slope
            gain = there.height - here.height
            kinetic = 0.5 * ((noise.momentum**2).sum(-1) - (momentum**2).sum(-1))
            ratio = _log_student(here.z) - _log_student(there.z)
            gain = gain + jnp.where(k < leaps, kinetic, jnp.where(k == last, 0.0, ratio))
            chance = noise.log_chance[:, jnp.where(k < leaps, 0, jnp.where(k == last, 2, 1))]
            # A comparison with NaN is False: the chain stays where it is.
            here = there.where((k >= leaps - 1) & (chance < gain), here)
            return (here, there, momentum), None

        return jax.lax.scan(micro, (x, x, noise.momentum), jnp.arange(last + 1))[0][0]

    def run_chains(
        mode: jax.Array, scale: jax.Array, noise: _Noise, numbers: Mapping[str, Any], data: Mapping[str, Any]
    ) -> tuple[jax.Array, jax.Array]:
        TRACES["coupled.chains"] += 1
        at = density(mode, scale, numbers, data)
        steps = noise.stretch.shape[0]

        def move(state: tuple[_Point, jax.Array], t: jax.Array) -> tuple[tuple[_Point, jax.Array], None]:
            x, moves = state
            now = _at_time(noise, t)
            # At time -1 the only move is to the start.
            moved = step(at, x, now, lambda z: z + _SMALL * now.walk)
            return (moved, moves + (jnp.abs(moved.z - x.z).sum(-1) > 0)), None

        start = _nowhere(noise.start)
        end, moves = jax.lax.scan(move, (start, jnp.zeros(len(noise.start))), jnp.arange(steps))[0]
        return mode + end.z @ scale.T, moves / steps

    def run_pairs(  # noqa: PLR0917
        mode: jax.Array,
        scale: jax.Array,
        noise: _Noise,
        lag: jax.Array,
        numbers: Mapping[str, Any],
        data: Mapping[str, Any],
    ) -> jax.Array:
        TRACES["coupled.pairs"] += 1
        at = density(mode, scale, numbers, data)
        steps, count = noise.stretch.shape

        def move(state: tuple[_Point, jax.Array], t: jax.Array) -> tuple[tuple[_Point, jax.Array], None]:
            both, met = state
            one = _at_time(noise, t)
            two = _Noise(*(jnp.concatenate([part, part]) for part in one))
            moved = step(at, both, two, lambda z: _reflect(z, one))
            # The second chain of each pair starts `lag` steps after the first.
            late = (jnp.arange(2 * count) >= count) & (t < lag)
            both = both.where(late, moved)
            same = jnp.all(both.z[:count] == both.z[count:], axis=-1)
            first = _Point(*(jnp.concatenate([part[:count], part[:count]]) for part in both))
            return (first.where(jnp.concatenate([same, same]), both), met | same), None

        start = _nowhere(jnp.concatenate([noise.start, noise.other]))
        return jax.lax.scan(move, (start, jnp.zeros(count, bool)), jnp.arange(steps))[0][1]

    return _Programs(jax.jit(run_fit), jax.jit(run_chains), jax.jit(run_pairs))


_Walk = Callable[["jax.Array"], "jax.Array"]


def _nowhere(z: jax.Array | np.ndarray) -> _Point:
    """Chains whose density is not computed yet: they take the first independence proposal."""
    import jax.numpy as jnp

    return _Point(jnp.asarray(z), jnp.full(len(z), -jnp.inf), jnp.zeros(z.shape))


def _at_time(noise: _Noise, t: jax.Array) -> _Noise:
    """The random numbers of one step, those of the start left out."""
    import jax.numpy as jnp

    now = [jnp.asarray(part)[t] for part in noise[:5]]
    return _Noise(now[0], now[1], now[2], now[3], now[4], noise.start, noise.other)


def _reflect(z: jax.Array, noise: _Noise) -> jax.Array:
    """Random-walk proposals of the first and second chains, by maximal reflection coupling."""
    import jax.numpy as jnp

    first, second = jnp.split(z, 2)
    gap = (first - second) / _SMALL
    unit = gap / jnp.maximum(jnp.linalg.norm(gap, axis=-1, keepdims=True), 1e-300)
    accept = noise.log_chance[:, 3] < 0.5 * ((noise.walk**2).sum(-1) - ((noise.walk + gap) ** 2).sum(-1))
    mirrored = noise.walk - 2 * (unit * noise.walk).sum(-1, keepdims=True) * unit
    there = first + _SMALL * noise.walk
    return jnp.concatenate([there, jnp.where(accept[:, None], there, second + _SMALL * mirrored)])
