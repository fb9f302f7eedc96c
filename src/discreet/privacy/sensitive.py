"""A type for what the data holder may see and nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")
S = TypeVar("S")


class Sensitive(Generic[T]):
    """A value that depends on the data and was not billed.

    It refuses to be printed, formatted, compared, iterated, pickled or saved, so it
    cannot slip into a log, a release or an exception. The data holder takes it out
    with `reveal()`, in sight of whoever reads the code.

    Example:
        >>> accepted = Sensitive(0.34, "acceptance rate")
        >>> print(accepted)
        <acceptance rate: sensitive, not for release; the data holder may call reveal()>
        >>> accepted.reveal()
        0.34
    """

    __slots__ = ("_name", "_value")

    def __init__(self, value: T, name: str = "value") -> None:
        self._value, self._name = value, name

    def reveal(self) -> T:
        """The value itself, for the eyes of the data holder."""
        return self._value

    def map(self, function: Callable[[T], S], name: str | None = None) -> Sensitive[S]:
        """A function of the value, sensitive as well."""
        return Sensitive(function(self._value), name or self._name)

    def __repr__(self) -> str:
        return f"<{self._name}: sensitive, not for release; the data holder may call reveal()>"

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            f"{self._name} is sensitive and cannot be compared, converted, pickled or saved; "
            "the data holder may call reveal()"
        )

    __reduce__ = __reduce_ex__ = __getstate__ = _refuse  # pyright: ignore[reportAssignmentType]
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse  # pyright: ignore[reportAssignmentType]
    __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = _refuse
    __array__ = __hash__ = _refuse  # pyright: ignore[reportAssignmentType]
