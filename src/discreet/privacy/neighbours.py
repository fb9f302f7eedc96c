"""Who is protected: the two neighbour relations between data sets."""

from __future__ import annotations

from enum import StrEnum


class Neighbours(StrEnum):
    """The relation between two data sets that an epsilon compares.

    A guarantee under one relation says nothing about the other without a
    conversion, so no function of discreet chooses a relation for you.
    """

    SUBSTITUTE = "substitute"
    """One record is replaced by another; the number of records is public."""

    ADD_REMOVE = "add_remove"
    """One record is added or removed; the number of records is private."""

    @property
    def explanation(self) -> str:
        """One clause that a reader of a report understands."""
        return _EXPLANATION[self]


_EXPLANATION = {
    Neighbours.SUBSTITUTE: "one person's record replaced by any other, number of records public",
    Neighbours.ADD_REMOVE: "one person's record added or removed, number of records private",
}


def as_neighbours(value: Neighbours | str) -> Neighbours:
    """Read a neighbour relation, as the member or as its text."""
    try:
        return Neighbours(value)
    except ValueError:
        raise ValueError(
            f"neighbours must be 'substitute' or 'add_remove', got {value!r}; "
            "choose the relation your statement of privacy is about"
        ) from None
