"""Who spent what on one data set: an append-only, hash-chained record that refuses overspends."""

from discreet.ledger.chain import Anchor, Quote, Receipt, Verification
from discreet.ledger.entries import Abandoned, Entry, Opened, Released, Spend
from discreet.ledger.errors import BudgetExceeded, LedgerBroken, LedgerError, LedgerMissing
from discreet.ledger.ledger import Ledger

__all__ = [
    "Abandoned",
    "Anchor",
    "BudgetExceeded",
    "Entry",
    "Ledger",
    "LedgerBroken",
    "LedgerError",
    "LedgerMissing",
    "Opened",
    "Quote",
    "Receipt",
    "Released",
    "Spend",
    "Verification",
]
