"""
Data is printed as the portal's YAML library prints it, or refused.

``yamlprint.json`` holds pairs of data and what npm ``yaml`` 2.9.1 made of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import RefusedError
from softwaretemplates.npm_yaml import dump
from yamlfiles import yaml12

OBSERVED = json.loads(Path(__file__).with_name("yamlprint.json").read_text())


def test_the_same_bytes_as_the_library() -> None:
    assert len(OBSERVED) > 300
    for value, text in OBSERVED:
        assert dump(value) == text


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (" leading\nline", "blanks around line ends"),
        ("trailing \nline", "blanks around line ends"),
        ("line\n\n", "more than one line end at the end"),
        ("\nline", "an empty first line"),
        ("short\n" + "x" * 100, "a long line in a block"),
        ("\x07" * 40, "a long line that cannot be folded"),
        ("é" * 70 + " \U0001f600 " + "x" * 30, "a long line with characters of two units"),
        ({"x" * 200: 1}, "a long key"),
        ({"a\nb": 1}, "a key of two lines"),
        ("--- a", "like a document at the root"),
    ],
)
def test_what_would_differ_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(RefusedError, match="portal's YAML"):
        dump(value), reason


def test_a_key_of_120_characters_is_the_longest() -> None:
    assert dump({"x" * 120: 1}) == f"{'x' * 120}: 1\n"
    with pytest.raises(RefusedError):
        dump({"x" * 121: 1})


# Left out: what the library prints raw and readers of YAML 1.1 take for line ends or refuse.
TEXT = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn", "Co"], include_characters="\n")
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_printed_reads_back(value: Any) -> None:
    try:
        text = dump(value)
    except RefusedError:
        return

    assert yaml12.load(text.encode(), name="x") == value
