"""Models of the catalogue back from what a release saved of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from discreet.models.base import Model


def rebuild(saved: Mapping[str, Any]) -> Model | None:
    """The model that `Model.to_dict` described, or None if it is not of the catalogue.

    A NumPyro model is a function, which a file does not hold.

    Example:
        >>> from discreet.models import LogisticRegression
        >>> rebuild(LogisticRegression(3, row_norm=2.0).to_dict())
        LogisticRegression(features=3, row_norm=2.0, prior_precision=1.0, ...)
    """
    from discreet import models

    kind = vars(models).get(str(saved.get("model")))
    if not (isinstance(kind, type) and issubclass(kind, Model)):
        return None
    settings = {name: value for name, value in saved.items() if name != "model"}
    try:
        model = kind(**{name: _tuples(value) for name, value in settings.items()})
    except (TypeError, ValueError):
        return None
    # What a later version reads otherwise is not the model that was saved.
    return model if _plain(model.to_dict()) == _plain(saved) else None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
