"""Characters that terminals obey are shown as code points, in long texts of ASCII too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ground.errors import shorten
from ground.visible_text import HIDDEN, visible


@given(st.text(st.characters(max_codepoint=0x7F)))
def test_a_text_of_ascii_shows_what_any_text_shows(text: str) -> None:
    beside = f"{text}é"
    assert visible(text) + "é" == visible(beside)
    assert not HIDDEN.search(visible(text))


def test_a_foreign_text_is_one_line_of_at_most_so_many_characters() -> None:
    assert shorten(" a\n b ", limit=3) == "a b"
    assert shorten("abcd", limit=4) == "abcd"
    assert shorten("abcde", limit=4) == "abc…"
