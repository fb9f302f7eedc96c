"""Reading numbers as meant, printing bounds upward."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.cli import numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("256/60000", 256 / 60000),
        ("1e-5", 1e-5),
        ("1e-1/2", 0.05),
        ("60_000", 60000.0),
        (".5", 0.5),
        ("-2", -2.0),
    ],
)
def test_reads_a_number(text: str, value: float) -> None:
    assert numbers.real(text) == value


@pytest.mark.parametrize("text", ["", "x", "1/2/3", "1+1", "nan", "inf", "1e999", "1/0", "2**3", "0x10", "١"])
def test_refuses_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must"):
        numbers.real(text)


def test_whole_numbers() -> None:
    assert numbers.whole("1e5") == 100_000
    assert isinstance(numbers.whole("1e5"), int)
    for text in ("1.5", "nan", "1e300", "1/3"):
        with pytest.raises(ValueError, match="whole number"):
            numbers.whole(text)


@given(st.floats(1e-12, 1e12))
def test_a_bound_is_printed_at_or_above_its_value(value: float) -> None:
    assert value * (1 - 2e-10) <= float(numbers.upward(value)) <= value * 1.0011
    assert value * 0.9989 <= float(numbers.downward(value)) <= value * (1 + 2e-10)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (float("inf"), "none"),
        (0.14991, "0.1500"),
        (10.0000000000009, "10"),
        (1e-9, "1e-9"),
        (4.94151, "4.942"),
    ],
)
def test_looks(value: float, text: str) -> None:
    assert numbers.upward(value).replace("1.000e-9", "1e-9") == text
