"""Numbers and JSON print as JavaScript prints them."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softwaretemplates.render import javascript as js


@pytest.mark.parametrize(
    ("number", "text", "reason"),
    [
        (2.0, "2", "no fraction"),
        (-0.0, "0", "minus zero has no sign"),
        (1e21, "1e+21", "exponents start at 21 digits"),
        (123456789012345680000.0, "123456789012345680000", "21 digits are written out"),
        (1e-6, "0.000001", "six places are written out"),
        (1e-7, "1e-7", "seven are not"),
        (1.25e-9, "1.25e-9", "digits before the exponent"),
        (5e-324, "5e-324", "the smallest"),
        (1.7976931348623157e308, "1.7976931348623157e+308", "the largest"),
        (2**53 + 1, "9007199254740992", "integers are doubles"),
        (10**400, "Infinity", "beyond a double"),
        (math.nan, "NaN", "not a number"),
    ],
)
def test_numbers_print_as_in_javascript(number: float, text: str, reason: str) -> None:
    assert js.number_text(number) == text, reason


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_reads_back_as_the_same(number: float) -> None:
    assert float(js.number_text(number)) == number


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
))  # fmt: skip
def test_dump_is_json_that_reads_back(value: object) -> None:
    text = js.to_json(value)

    assert json.loads(text) == value
    assert json.loads(js.to_json(value, 2)) == value


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, "1", True),
        ("", 0, True),
        (None, js.UNDEFINED, True),
        (None, 0, False),
        (True, "1", True),
        ([1], "1", True),
        ({}, "[object Object]", True),
        ("a", "A", False),
        (math.nan, math.nan, False),
    ],
)
def test_loose_equality(left: object, right: object, *, equal: bool) -> None:
    assert js.loosely_equal(left, right) is equal
    assert js.loosely_equal(right, left) is equal


def test_length_counts_utf16_units() -> None:
    assert js.utf16_length("a😀") == 3


@pytest.mark.parametrize("indent", [12, "abcdefghijkl"])
def test_json_is_indented_by_ten_characters_at_most(indent: int | str) -> None:
    pad = " " * 10 if isinstance(indent, int) else "abcdefghij"

    assert js.to_json([1], indent) == f"[\n{pad}1\n]"
