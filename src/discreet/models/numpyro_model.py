"""Any NumPyro model whose observed site lies in one plate over records."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.attack import assumed_bounds
from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.integrals import power_integral
from discreet.models.intervals import Interval, output_intervals, used_inputs
from discreet.privacy import Evidence

if TYPE_CHECKING:
    import jax

PAGE = "docs/proofs/beta_divergence.md"
Pairs = tuple[tuple[str, tuple[int, ...]], ...]


def from_numpyro(
    fn: Callable[..., Any],
    records: str,
    *,
    fields: Mapping[str, tuple[int, ...]] | None = None,
    certificates: Mapping[str, float] | None = None,
    typical_density: float = 0.5,
) -> NumPyroModel:
    """A model written in NumPyro.

    `fn` takes the fields of the records by name, each an array whose leading axis
    is the record, and has one observed site, inside the plate named `records`,
    whose `obs` is one of the fields. Latent sites lie outside the plate.

    Args:
        fn: the NumPyro model.
        records: the name of the plate over records.
        fields: the shape of each field of one record; a number, (), if not given.
        certificates: bounds that cannot be read off the model ("density",
            "lipschitz_difference", ...). They count as assumed, and are attacked by
            random search before a plan uses them.
        typical_density: density of a typical record, public, for the choice of
            beta and weight only.

    Example:
        >>> import numpyro, numpyro.distributions as dist
        >>> def coin(y=None):
        ...     p = numpyro.sample("p", dist.Beta(1, 1))
        ...     with numpyro.plate("people", len(y)):
        ...         numpyro.sample("heads", dist.Bernoulli(p), obs=y)
        >>> from_numpyro(coin, records="people").parameter_shapes
        {'p': ()}
    """
    given = dict(fields or {})
    names = list(inspect.signature(fn).parameters)
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ValueError(
            f"fields must be parameters of the model, got {', '.join(unknown)}; it has {', '.join(names)}"
        )
    shapes = tuple((name, tuple(given.get(name, ()))) for name in names)
    model = NumPyroModel(
        fn, records, shapes, tuple(sorted((certificates or {}).items())), float(typical_density)
    )
    _ = model.structure
    return model


@dataclass(frozen=True)
class Structure:
    """What a trace of the model showed.

    Attributes:
        observed: the observed site.
        latents: unconstrained shapes by site.
        discrete: whether the outcome is.
        kind: the distribution of the outcome, wrappers off.
        peak: sup f by interval arithmetic, infinite if none was found.
        spread: of the integral (see `PowerIntegral`).
    """

    observed: str
    latents: Pairs
    discrete: bool
    kind: str
    peak: float
    spread: float


@dataclass(frozen=True)
class NumPyroModel(Model):
    """See `from_numpyro`."""

    fn: Callable[..., Any]
    records: str
    fields: Pairs
    certificates: tuple[tuple[str, float], ...] = ()
    typical_density: float = 0.5

    @property
    def outcome(self) -> None:
        """No field: `obs` may be any function of the fields."""

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict(self.fields)

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict(self.structure.latents)

    @cached_property
    def structure(self) -> Structure:
        """The model's structure, found by tracing it on no data."""
        import jax

        with jax.enable_x64(True):
            return _structure(self.fn, self.records, self.fields)

    def log_prior(self, theta: Theta) -> jax.Array:
        return _run(self, theta, _blank(self.fields))[0]

    def log_density(self, theta: Theta, record: Mapping[str, jax.Array]) -> jax.Array:
        site = _run(self, theta, {k: v[None] for k, v in record.items()})[1]
        return site["fn"].log_prob(site["value"]).sum()

    def observation(self, theta: Theta, record: Mapping[str, jax.Array]) -> Any:
        return _run(self, theta, {k: v[None] for k, v in record.items()})[1]["fn"]

    def constrain(self, theta: Theta) -> Theta:
        return _run(self, theta, _blank(self.fields))[2]

    def unconstrain(self, values: Mapping[str, jax.Array]) -> Theta:
        from numpyro.distributions import biject_to
        from numpyro.handlers import seed, substitute, trace

        given = super().unconstrain(values)
        sites = trace(substitute(seed(self.fn, 0), data=given)).get_trace(**_blank(self.fields))
        return {name: biject_to(sites[name]["fn"].support).inv(value) for name, value in given.items()}

    def draw_prior(self, generator: np.random.Generator, draws: int) -> Records:
        import jax
        from numpyro.handlers import seed, trace

        def one(key: jax.Array) -> Theta:
            sites = trace(seed(self.fn, key)).get_trace(**_blank(self.fields))
            return self.unconstrain({name: sites[name]["value"] for name in self.parameter_shapes})

        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(int(generator.integers(2**62))), draws)
            return {name: np.asarray(value) for name, value in jax.jit(jax.vmap(one))(keys).items()}

    @property
    def bounds(self) -> dict[str, Bound]:
        s, found = self.structure, dict[str, Bound]()
        if s.discrete:
            found["density"] = Bound(1.0, Evidence.proved("a probability is at most 1", f"site {s.observed}"))
        elif math.isfinite(s.peak):
            claim = f"the density of {s.observed} ({s.kind}) is at most {s.peak:.4g}"
            found["density"] = Bound(
                s.peak, Evidence.proved(claim, "interval arithmetic on the supports of the priors")
            )
        found["integral_spread"] = Bound(
            s.spread, Evidence.proved(f"the outcome is {s.kind}", f"{PAGE} Lemmas 1 to 3")
        )
        return {**assumed_bounds(dict(self.certificates)), **found}

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": "from_numpyro",
            "function": f"{self.fn.__module__}.{self.fn.__qualname__}",
            "records": self.records,
            "fields": {name: list(shape) for name, shape in self.fields},
            "certificates": dict(self.certificates),
        }


def _blank(fields: Pairs) -> dict[str, jax.Array]:
    import jax.numpy as jnp

    return {name: jnp.zeros((1, *shape)) for name, shape in fields}


def _run(
    model: NumPyroModel, theta: Theta, batch: Mapping[str, jax.Array]
) -> tuple[jax.Array, dict[str, Any], Theta]:
    """Log prior on the unconstrained scale, the observed site, and the constrained latents."""
    return _trace(model.fn, model.structure.observed, theta, batch)


def _trace(
    fn: Callable[..., Any], observed: str, theta: Theta, batch: Mapping[str, jax.Array]
) -> tuple[jax.Array, dict[str, Any], Theta]:
    import jax.numpy as jnp
    from numpyro.distributions import biject_to
    from numpyro.handlers import seed, substitute, trace

    volume: list[jax.Array] = []

    def place(site: dict[str, Any]) -> Any:
        if site["type"] != "sample" or site["name"] not in theta:
            return None
        transform = biject_to(site["fn"].support)
        u = theta[site["name"]]
        value = transform(u)
        volume.append(transform.log_abs_det_jacobian(u, value).sum())
        return value

    sites = trace(substitute(seed(fn, 0), substitute_fn=place)).get_trace(**batch)
    prior = sum(volume, start=jnp.zeros(()))
    values: Theta = {}
    for name in theta:
        site = sites[name]
        prior = prior + site["fn"].log_prob(site["value"]).sum()
        values[name] = site["value"]
    return prior, sites[observed], values


@cache
def _structure(fn: Callable[..., Any], plate: str, fields: Pairs) -> Structure:
    from numpyro.distributions import biject_to
    from numpyro.handlers import seed, trace

    try:
        sites = trace(seed(fn, 0)).get_trace(**_blank(fields))
    except (TypeError, ValueError, IndexError) as error:
        named = ", ".join(f"{name} {shape}" for name, shape in fields)
        raise ValueError(
            f"the model must run on one record with fields of shapes {named}, got {type(error).__name__} "
            f"({error}); give their shapes as fields={{'x': (2,), ...}}"
        ) from error
    observed = _observed(sites, plate)
    latents: dict[str, tuple[int, ...]] = {}
    for name, site in sites.items():
        if site["type"] != "sample" or name == observed:
            continue
        if any(frame.name == plate for frame in site["cond_indep_stack"]):
            raise ValueError(
                f"latent sites must lie outside the plate {plate!r}, got {name!r} inside it; "
                "a draw of it would belong to one person: integrate it out or leave it out"
            )
        if site["fn"].support.is_discrete:
            raise ValueError(
                f"latent sites must be continuous, got the discrete site {name!r}; sum it out of the model"
            )
        latents[name] = tuple(biject_to(site["fn"].support).inverse_shape(site["value"].shape))
    _refuse_data_dependence(fn, latents, fields)
    outcome = sites[observed]["fn"]
    base = outcome
    while hasattr(base, "base_dist") and type(base).__name__ in {"ExpandedDistribution", "Independent"}:
        base = base.base_dist
    discrete = bool(base.support.is_discrete)
    peak, spread = (
        (1.0, 0.0) if discrete else _density_facts(fn, observed, latents, fields, base=base, outcome=outcome)
    )
    return Structure(observed, tuple(latents.items()), discrete, type(base).__name__, peak, spread)


def _observed(sites: Mapping[str, Any], plate: str) -> str:
    """The one observed site inside the one plate."""
    found = [name for name, site in sites.items() if site["type"] == "sample" and site["is_observed"]]
    inside = [n for n in found if any(f.name == plate for f in sites[n]["cond_indep_stack"])]
    for name, site in sites.items():
        if site["type"] == "param":
            raise ValueError(f"the model must have no param sites, got {name!r}; give it a prior")
        if (
            site["type"] == "plate"
            and name == plate
            and site["args"]
            and site["args"][0] != site["value"].size
        ):
            raise ValueError(f"the plate {plate!r} must not be subsampled; remove subsample_size")
    if len(found) != 1 or len(inside) != 1:
        told = ", ".join(repr(name) for name in found) or "none"
        raise ValueError(
            f"the model must have one observed site, inside the plate {plate!r}, got {told}; "
            "join outcomes into one site, and move factors into priors"
        )
    frames = [frame.name for frame in sites[inside[0]]["cond_indep_stack"]]
    if frames != [plate]:
        raise ValueError(
            f"the observed site {inside[0]!r} must lie in the plate {plate!r} alone, got {', '.join(frames)}"
            "; use to_event for dimensions inside a record"
        )
    return inside[0]


def _refuse_data_dependence(
    fn: Callable[..., Any], latents: Mapping[str, tuple[int, ...]], fields: Pairs
) -> None:
    import jax.numpy as jnp

    zeros = {name: jnp.zeros(shape) for name, shape in latents.items()}
    blank = _blank(fields)
    for name in latents:

        def prior(
            batch: dict[str, Any], theta: dict[str, Any], name: str = name
        ) -> tuple[jax.Array, jax.Array]:
            from numpyro.distributions import biject_to
            from numpyro.handlers import seed, substitute, trace

            def place(site: dict[str, Any]) -> Any:
                if site["type"] == "sample" and site["name"] in theta:
                    return biject_to(site["fn"].support)(theta[site["name"]])
                return None

            site = trace(substitute(seed(fn, 0), substitute_fn=place)).get_trace(**batch)[name]
            return site["fn"].log_prob(site["value"]).sum(), site["value"].sum()

        if used_inputs(prior, (blank, zeros), 0):
            raise ValueError(
                f"the prior of {name!r} must not depend on the records, got one that does; "
                "use declared constants instead"
            )


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) or hasattr(value, "dtype")


def _density_facts(
    fn: Callable[..., Any],
    observed: str,
    latents: Mapping[str, tuple[int, ...]],
    fields: Pairs,
    *,
    base: Any,
    outcome: Any,
) -> tuple[float, float]:
    """Sup f and the integral's spread of a continuous outcome, by interval arithmetic."""
    import jax.numpy as jnp

    try:
        entry = power_integral(base)
    except NotImplementedError:
        return math.inf, 1.0
    names = [name for name in base.arg_constraints if _is_number(vars(base).get(name))]
    zeros = {name: jnp.zeros(shape) for name, shape in latents.items()}

    def parameters(batch: dict[str, Any], theta: dict[str, Any]) -> list[jax.Array]:
        inner = _trace(fn, observed, theta, batch)[1]["fn"]
        while inner is not None and type(inner) is not type(base):
            inner = inner.base_dist
        return [jnp.asarray(getattr(inner, name)) for name in names]

    found = output_intervals(parameters, (_blank(fields), zeros))
    intervals: dict[str, Interval] = dict(zip(names, found, strict=True))
    entries = math.prod(outcome.event_shape) if type(base).__name__ != type(outcome).__name__ else 1
    peak = entry.peak(intervals)

    def constant(name: str) -> bool:
        where = names.index(name)
        return not used_inputs(lambda b, t: parameters(b, t)[where], (_blank(fields), zeros), None)

    varying = not all(constant(name) for name in entry.shapes)
    return (peak**entries if math.isfinite(peak) else math.inf), 1.0 if varying else entry.spread
