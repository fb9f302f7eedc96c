"""What a mechanism's own docstring says of it, and how to cite it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet import mechanisms
from discreet.privacy import Guarantee
from discreet.report._page import Html, code, paragraph
from discreet.report.numbers import plain, upward

_HERE = re.compile(r"\s*(?:docs/|ERRATA|see\b)", re.IGNORECASE)


@dataclass(frozen=True)
class About:
    """A mechanism in words.

    Attributes:
        sentence: what it does.
        definition: the rest of what its docstring says before its arguments.
        references: the papers it comes from.
    """

    sentence: str
    definition: str
    references: tuple[str, ...]


def about(name: str) -> About | None:
    """The words of a mechanism of this version; None for one that it does not have."""
    found = getattr(mechanisms, name, None) if name in mechanisms.__all__ else None
    text = inspect.getdoc(found) if inspect.isclass(found) else None
    if text is None:
        return None
    body, *sections = re.split(r"^(?=[A-Z]\w+:(?:$| ))", text, flags=re.MULTILINE)
    sentence, _, definition = (" ".join(body.split())).partition(". ")
    parts = dict(section.split(":", 1) for section in sections)
    references = " ".join(parts.get("References", "").split()).rstrip(".").split(";")
    cited = (re.sub(r"\s*\((?:ERRATA|with|or)[^)]*\)", "", r).strip() for r in references)
    return About(
        sentence.rstrip(".") + ".",
        definition.strip(),
        tuple(r for r in cited if r and not _HERE.match(r)),
    )


def citation(provenance: Mapping[str, Any], guarantee: Guarantee, delta: float, draws: int) -> list[Html]:
    """A sentence for the methods section, and what to cite."""
    settings = provenance["plan"]["settings"]
    version, digest = provenance["versions"]["discreet"], provenance["plan_hash"]
    known = about(settings["mechanism"])
    references = "; ".join(known.references) if known else ""
    relation = str(guarantee.neighbours).replace("_", "-")
    stated = (
        f"epsilon {upward(guarantee.epsilon(delta))}"
        if delta == 0
        else f"(epsilon {upward(guarantee.epsilon(delta))}, delta {plain(delta)})"
    )
    methods = (
        f"We released {draws:,} draw{'s' if draws > 1 else ''} by {settings['mechanism']}"
        + (f" ({references})" if references else "")
        + f" for the model {settings['model']['model']}, with {stated} differential privacy under {relation} "
        f"neighbours ({guarantee.neighbours.explanation}), computed with discreet {version} "
        f"(plan {digest[:12]})."
    )
    entry = (
        "@software{discreet,\n"
        "  author  = {{The discreet maintainers}},\n"
        "  title   = {discreet: differentially private Bayesian inference that can be checked},\n"
        f"  version = {{{version}}},\n"
        f"  note    = {{plan {digest}}}\n"
        "}"
    )
    return [
        paragraph("A sentence for a methods section:"),
        code(methods),
        paragraph("The software, with the SHA-256 of the plan that was spent and run:"),
        code(entry),
    ]
