"""What a ledger refuses, in one sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.privacy import attacker_success, percent

if TYPE_CHECKING:
    from discreet.ledger.chain import Quote


class LedgerError(Exception):
    """A ledger could not do what was asked; nothing was spent unless the sentence says so."""


class LedgerMissing(LedgerError):  # noqa: N818  # reads as what happened
    """There is no ledger at the place; nothing was spent."""


class LedgerBroken(LedgerError):  # noqa: N818  # reads as what happened
    """The record was changed by something other than a spend; nothing more is spent from it."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(f"the ledger is broken at entry {position}: {problem}; restore it from a backup")
        self.position, self.problem = position, problem


class BudgetExceeded(LedgerError):  # noqa: N818  # reads as what happened
    """A spend that would bring the total above the budget; nothing was spent.

    Attributes:
        quote: what was asked, spent and left.
    """

    def __init__(self, quote: Quote) -> None:
        right = percent(attacker_success(quote.after, quote.budget.delta))
        super().__init__(
            f"the budget of {quote.budget.epsilon:g} would be exceeded: asked {quote.asked:.4g}, "
            f"spent {quote.spent:.4g}, left {quote.left:.4g}, together {quote.after:.4g} "
            f"(epsilon at delta {quote.budget.delta:g}; a guess about one person would be right up to "
            f"{right} of the time); plan with a smaller budget"
        )
        self.quote = quote

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[Quote]]:
        return BudgetExceeded, (self.quote,)
