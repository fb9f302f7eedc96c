# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""`Release`: private draws with what they cost and what that rests on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.mechanisms import _folder
from discreet.models.base import Model
from discreet.privacy import Evidence, Guarantee, checks
from discreet.privacy.sensitive import Sensitive

if TYPE_CHECKING:
    import jax

    from discreet.models.prediction import Prediction

Array = NDArray[np.float64]

_PRIOR_DRAWS, _PRIOR_NUMBERS = 2000, 200_000


class Scale(StrEnum):
    """The scale of the parameters that a mechanism returns."""

    UNCONSTRAINED = "unconstrained"
    """That of `Model.log_prior`; what people read may stand beside it, under its own name."""

    NATURAL = "natural"
    """That of `Model.constrain`."""


@dataclass(frozen=True)
class Release:
    """What may be published.

    Attributes:
        draws: named arrays, leading axis = draw.
        guarantee: what the draws cost.
        evidence: what the guarantee rests on.
        provenance: the plan, its hash, the scale of the draws, and the versions that ran.
        diagnostics: for the data holder's eyes; `save` leaves them out.
        model: the model, for prediction. `load` brings back those of the catalogue; set
            it for a NumPyro model with `dataclasses.replace`.
    """

    draws: dict[str, Array]
    guarantee: Guarantee
    evidence: tuple[Evidence, ...]
    provenance: Mapping[str, Any]
    diagnostics: Mapping[str, Sensitive[Any]] = field(default_factory=dict[str, Sensitive[Any]], repr=False)
    model: Model | None = None

    # --- on disk ------------------------------------------------------------------

    def save(self, folder: str | Path) -> Path:
        """Write `release.json` and `posterior.nc` into a new folder; no diagnostics, nothing unbilled.

        The folder appears when it is complete. `posterior.nc` is what ArviZ reads:
        the groups `posterior` and, where the model can draw from it, `prior`.

        Raises:
            FileExistsError: if the folder is there; nothing is written.
        """
        document = {
            "guarantee": self.guarantee.to_dict(),
            "evidence": [claim.to_dict() for claim in self.evidence],
            "provenance": self.provenance,
            "hash": self.hash(),
        }
        return _folder.write(Path(folder), document, by_chain(self.draws, self.chains), self.prior)

    @staticmethod
    def load(folder: str | Path) -> Release:
        """Read back what `save` wrote, also what version 0.1 wrote (format 1).

        Raises:
            ValueError: if the folder is of a later format, or was changed.
        """
        from discreet.models.saved import rebuild

        document, draws, prior = _folder.read(Path(folder))
        provenance = document["provenance"]
        release = Release(
            draws=draws,
            guarantee=Guarantee.from_dict(document["guarantee"]),
            evidence=tuple(Evidence.from_dict(claim) for claim in document["evidence"]),
            provenance=provenance,
            model=rebuild(provenance["plan"]["settings"].get("model", {})),
        )
        if release.hash() != document.get("hash", release.hash()):
            raise ValueError(
                f"the draws in {folder} must be those that release.json names, got others; "
                "take an unchanged copy of the folder"
            )
        release.__dict__["prior"] = prior
        return release

    # --- what can be done with it -------------------------------------------------

    @property
    def chains(self) -> int:
        """How many chains the draws are of, one after the other; 1 for mechanisms that run none."""
        return int(self.provenance["plan"]["parameters"].get("chains", 1))

    @cached_property
    def prior(self) -> dict[str, Array]:
        """Draws from the model's prior, on the scale of `draws`; made without data, always the same.

        Empty where the model does not say how to draw, or has too many parameters.
        """
        shapes = {} if self.model is None else self.model.parameter_shapes
        size = sum(int(np.prod(shape)) for shape in shapes.values())
        if self.model is None or size * 100 > _PRIOR_NUMBERS:
            return {}
        count = min(_PRIOR_DRAWS, _PRIOR_NUMBERS // max(size, 1))
        free = self.model.draw_prior(np.random.default_rng(0), count)
        if free is None:
            return {}
        natural = _vmapped(self.model.constrain, free)
        both = {**free, **natural} if self._natural else {**natural, **free}
        return {name: both[name] for name in self.draws if name in both}

    def natural(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """`draws` or `prior` on the scale people read, where the model is known; as they are where not."""
        shapes = {} if self.model is None else self.model.parameter_shapes
        if self.model is None or self._natural or not set(shapes) <= set(values):
            return dict(values)
        found = _vmapped(self.model.constrain, {name: values[name] for name in shapes})
        return {**found, **{name: array for name, array in values.items() if name not in shapes}}

    @property
    def posterior(self) -> Any:
        """The draws as ArviZ holds them: an `InferenceData` whose axes are chain and draw.

        Its diagnostics, such as `arviz.summary`, are functions of the draws, and so
        as public as these.
        """
        return _folder.inference_data(by_chain(self.draws, self.chains), self.prior)

    def predict(self, rows: ArrayLike | Mapping[str, ArrayLike] | None = None) -> Prediction:
        """The outcome of new records, with epistemic and aleatoric doubt; costs nothing more.

        Args:
            rows: the features, or the fields of records by name without the outcome;
                None for a model whose records are outcomes alone.

        Example:
            >>> from discreet import Budget, mechanisms, models
            >>> mechanism = mechanisms.OnePosteriorSample(models.LogisticRegression(2), draws=5)
            >>> plan = mechanism.plan(4, budget=Budget(5.0))
            >>> release = plan.release({"x": [[1, 0], [0, 1], [1, 1], [0, 0]], "y": [1, 0, 1, 0]})
            >>> release.predict([[1.0, 0.0], [0.0, 1.0]]).mean.shape
            (2, 2)
        """
        from discreet.models import prediction

        if self.model is None:
            raise ValueError(
                "a prediction needs the model, which this release does not hold; give it with "
                "dataclasses.replace(release, model=...)"
            )
        if rows is None:
            rows = {}
        elif not isinstance(rows, Mapping):
            fields = prediction.predictors(self.model)
            if len(fields) != 1:
                raise ValueError(
                    f"rows must be given by name for the fields {', '.join(fields) or '(none)'}, "
                    "got one array; pass a dict"
                )
            rows = {fields[0]: rows}
        values = _vmapped(self.model.unconstrain, self.draws) if self._natural else self.draws
        return prediction.predict(self.model, values, rows)

    def hash(self) -> str:
        """SHA-256 of the draws and of the plan they came from: what the ledger refers to."""
        digest = hashlib.sha256(str(self.provenance.get("plan_hash")).encode())
        for name, array in sorted(self.draws.items()):
            digest.update(name.encode() + str(array.shape).encode())
            for draw in array:  # one after the other: draws on disk stay there
                digest.update(np.ascontiguousarray(draw).tobytes())
        return digest.hexdigest()

    def describe(self, delta: float | None = None) -> str:
        """The release in words; with `delta`, its epsilon there as well."""
        shapes = ", ".join(f"{name} {array.shape}" for name, array in self.draws.items())
        lines = [f"draws: {shapes}", *self.guarantee.describe(delta).splitlines()]
        return "\n".join([*lines, "rests on", *(f"  {claim}" for claim in self.evidence)])

    @property
    def _natural(self) -> bool:
        return self.provenance.get("scale") == Scale.NATURAL


def by_chain(draws: Mapping[str, Array], chains: int) -> dict[str, Array]:
    """Draws with leading axes chain and draw, as ArviZ wants them."""
    checks.integer("chains", chains, at_least=1)
    return {name: np.asarray(values).reshape(chains, -1, *values.shape[1:]) for name, values in draws.items()}


def _vmapped(function: Any, values: Mapping[str, Array]) -> dict[str, Array]:
    """A map between scales, for every draw, in double precision."""
    import jax

    with jax.enable_x64(True):
        named: Mapping[str, jax.Array] = jax.device_put({k: np.asarray(v) for k, v in values.items()})
        found = jax.vmap(function)(named)
        return {name: np.array(value, dtype=np.float64) for name, value in found.items()}
