"""`BayesianLoss`: a Bayesian epsilon, which stands beside a guarantee and never in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn

from discreet.privacy.attacker import attacker_success, attacker_words, percent
from discreet.privacy.evidence import Evidence
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.neighbours import Neighbours

Definition = Literal["average", "tail"]

PROTECTS = "a person drawn from the same distribution as the data"
_BELIEF = "whoever found it equally likely before that such a person took part believes it to at most"
_RELATION = {
    Neighbours.ADD_REMOVE: "such a person is in the table, or is not",
    Neighbours.SUBSTITUTE: "such a person's record is in the table, or another such person's is",
}
_OTHERWISE = {Neighbours.ADD_REMOVE: "absent otherwise", Neighbours.SUBSTITUTE: "replaced otherwise"}
_PROOF = "docs/proofs/bayesian_accountant.md"


@dataclass(frozen=True)
class BayesianLoss:
    """What one run risks for a person drawn from the same distribution as its data.

    Attributes:
        epsilon: the Bayesian epsilon.
        delta: what lies beyond it, over the person, the outputs and the estimate.
        gamma: the part of delta that is the estimate's.
        order: the lambda that gave the epsilon.
        guarantee: the differential privacy of the same run, for everybody.
        neighbours: whether the person is absent or replaced in the other table.
        definition: what delta is about.
        adaptive: whether steps may depend on earlier outputs.

    Guarantee:
        None. It cannot be added to a guarantee, spent, or stored in a ledger.

    References: paper Y, Definitions 5 and 6; docs/proofs/bayesian_accountant.md#meaning.
    """

    epsilon: float
    delta: float
    gamma: float
    order: float
    guarantee: Guarantee
    neighbours: Neighbours
    definition: Definition
    adaptive: bool

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What the number rests on."""
        claims = [
            Evidence.proved(
                "the loss of a whole run is bounded by its moments over people", _PROOF + "#composition"
            ),
            Evidence.checked(
                "the moments are not underestimated", _PROOF + "#estimators", confidence=1 - self.gamma
            )
            if self.gamma > 0
            else Evidence.proved("the moments are those of everybody in the data", _PROOF + "#people"),
            Evidence.assumed(
                "the person comes from the same distribution as the data", "definition of the measure"
            ),
        ]
        if not self.adaptive:
            claims.append(
                Evidence.assumed(
                    "a step's cost to a person does not depend on earlier answers to that person",
                    _PROOF + "#fixed",
                )
            )
        return tuple(claims)

    def describe(self) -> str:
        """Both numbers, with whom each protects."""
        everybody = self.guarantee.epsilon(self.delta)
        lines = [
            f"Bayesian epsilon {self.epsilon:.4g} at delta {self.delta:g}, which is not a guarantee",
            f"  protects {PROTECTS}: nobody who is unusual, and no particular person",
            f"  {self.neighbours} neighbours ({_RELATION[self.neighbours]})",
            f"  {self._attacker()}",
            *(f"  {claim}" for claim in self.evidence),
            *self._comparison(everybody),
            f"beside epsilon {everybody:.4g} at delta {self.delta:g}, which is guaranteed to everybody",
            f"  {self.guarantee.neighbours} neighbours ({self.guarantee.neighbours.explanation})",
            f"  {attacker_words(everybody, self.delta)}",
        ]
        return "\n".join(lines)

    __str__ = describe

    def _comparison(self, everybody: float) -> list[str]:
        """Where the two numbers cannot be compared, or the guarantee says more."""
        if self.neighbours is not self.guarantee.neighbours:
            return [
                (
                    "  the two numbers ask different questions: this one of a person who is "
                    f"{_OTHERWISE[self.neighbours]}, the guarantee of one who is "
                    f"{_OTHERWISE[self.guarantee.neighbours]}"
                )
            ]
        if self.definition == "average" and self.epsilon >= everybody:
            return ["  it says no more than the guarantee does, which holds for such a person as well"]
        return []

    def _attacker(self) -> str:
        if self.definition == "average":
            return f"{attacker_words(self.epsilon, self.delta)} and over such people"
        return (
            f"{_BELIEF} {percent(attacker_success(self.epsilon))} afterwards, except with probability "
            f"{self.delta:g} over the person, the output and the estimate"
        )

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            "a Bayesian privacy loss is not a guarantee and cannot be added to anything; "
            "compose the guarantees that stand beside it"
        )

    __add__ = __radd__ = __mul__ = __rmul__ = _refuse
