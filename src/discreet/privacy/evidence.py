"""What a guarantee rests on, and how firmly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from discreet.privacy import checks


class Standing(StrEnum):
    """How a claim is known."""

    PROVED = "proved"
    """A theorem, and code that verified its conditions."""

    CHECKED = "checked"
    """A statistical test or an estimate, with its confidence."""

    ASSUMED = "assumed"
    """Somebody said so."""


@dataclass(frozen=True)
class Evidence:
    """One claim that a guarantee or a release rests on.

    Attributes:
        claim: what is said, one sentence without private values.
        standing: how it is known.
        source: the proof page, the test, or the person behind it.
        confidence: for a checked claim, the probability that the check was right.

    Example:
        >>> Evidence.proved("row norms are at most 1", "clipped before use")
        Evidence(claim='row norms are at most 1', standing=<Standing.PROVED: 'proved'>, ...)
    """

    claim: str
    standing: Standing
    source: str
    confidence: float | None = None

    def __post_init__(self) -> None:
        if (self.confidence is not None) != (self.standing is Standing.CHECKED):
            raise ValueError(
                f"confidence must be given for a checked claim and for no other, got {self.confidence!r} "
                f"for a claim that is {self.standing}; use Evidence.checked"
            )
        if self.confidence is not None:
            checks.real("confidence", self.confidence, above=0.0, at_most=1.0)

    @staticmethod
    def proved(claim: str, source: str) -> Evidence:
        """A claim that follows from a theorem whose conditions were verified."""
        return Evidence(claim, Standing.PROVED, source)

    @staticmethod
    def checked(claim: str, source: str, *, confidence: float) -> Evidence:
        """A claim that a test or an estimate supports."""
        return Evidence(claim, Standing.CHECKED, source, confidence)

    @staticmethod
    def assumed(claim: str, source: str) -> Evidence:
        """A claim taken on somebody's word."""
        return Evidence(claim, Standing.ASSUMED, source)

    def to_dict(self) -> dict[str, Any]:
        """The claim as plain values."""
        return {
            "claim": self.claim,
            "standing": str(self.standing),
            "source": self.source,
            "confidence": self.confidence,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Evidence:
        """Rebuild a claim from `to_dict`."""
        return Evidence(data["claim"], Standing(data["standing"]), data["source"], data["confidence"])

    def __str__(self) -> str:
        sure = f" (confidence {self.confidence:g})" if self.confidence is not None else ""
        return f"{self.standing}{sure}: {self.claim} [{self.source}]"
