"""Differentially private Bayesian inference in which every guarantee can be checked.

The public names load on first use, so `import discreet` costs nothing and changes nothing, and
`discreet.privacy` works without JAX ever being imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet import audit, data, ledger, mechanisms, metrics, models, privacy, report, sklearn, study
    from discreet.ledger import Ledger
    from discreet.mechanisms import Plan, Release
    from discreet.privacy import Budget

    __version__: str

__all__ = [
    "Budget",
    "Ledger",
    "Plan",
    "Release",
    "__version__",
    "audit",
    "data",
    "ledger",
    "mechanisms",
    "metrics",
    "models",
    "privacy",
    "report",
    "sklearn",
    "study",
]

# Public name -> where it lives: "module", or "module:attribute".
_HOME = {
    "Budget": "discreet.privacy:Budget",
    "Ledger": "discreet.ledger:Ledger",
    "Plan": "discreet.mechanisms:Plan",
    "Release": "discreet.mechanisms:Release",
    "audit": "discreet.audit",
    "data": "discreet.data",
    "ledger": "discreet.ledger",
    "mechanisms": "discreet.mechanisms",
    "metrics": "discreet.metrics",
    "models": "discreet.models",
    "privacy": "discreet.privacy",
    "report": "discreet.report",
    "sklearn": "discreet.sklearn",
    "study": "discreet.study",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # costs more than all the rest of this module

        value = version("discreet")
    elif name in _HOME:
        module, _, attribute = _HOME[name].partition(":")
        value = import_module(module)
        if attribute:
            value = getattr(value, attribute)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}.")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
