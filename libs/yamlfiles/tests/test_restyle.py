"""Other people's YAML in a pack's style: comments stay, and the object is what was asked for."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from yamlfiles.restyle import rewritten

OBJECT: dict[str, Any] = {"kind": "A", "spec": {"list": [{"a": 1, "b": "x"}], "text": "a\nb\n"}}
THEIRS = """\
kind:   B
spec:
    more: 1
    list:
  # first
    -   a: 1   # one
        b: x   \n




    text: |
        a
        b
"""
OURS = """\
kind: A
spec:
  list:
    # first
    - a: 1     # one
      b: x


  text: |
    a
    b
"""


def test_a_text_is_written_in_the_packs_style_with_its_comments() -> None:
    assert rewritten(THEIRS.encode(), OBJECT).decode() == OURS


@pytest.mark.parametrize("text", ['{"kind": "A"}', "a: [", "a: &a 1\n", "- 1\n", ""])
def test_a_text_that_cannot_be_kept_is_written_anew(text: str) -> None:
    assert yaml.safe_load(rewritten(text.encode(), OBJECT)) == OBJECT


def test_braces_and_brackets_are_kept_unless_blocks_are_wanted() -> None:
    text = "# top\na: {b: [1, 2], c: {}}\n"
    manifest = {"a": {"b": [1, 2], "c": {}}}

    kept = rewritten(text.encode(), manifest).decode()
    unfolded = rewritten(text.encode(), manifest, in_blocks=True).decode()

    assert kept == text
    assert unfolded == "# top\na:\n  b:\n    - 1\n    - 2\n  c: {}\n"


def test_entries_come_and_go_and_the_others_keep_their_comments() -> None:
    text = "a:\n  - 1 # one\n  - 2 # two\nb: x # why\nc: 1\n"

    longer = rewritten(text.encode(), {"a": [1, 3, 4], "b": True, "d": {"e": 1}}).decode()
    shorter = rewritten(text.encode(), {"a": [1], "b": "x"}).decode()

    assert yaml.safe_load(longer) == {"a": [1, 3, 4], "b": True, "d": {"e": 1}}
    assert "- 1 # one" in longer
    assert shorter == "a:\n  - 1 # one\nb: x # why\n"


def test_a_fault_while_parts_are_moved_is_not_hidden() -> None:
    def move(_tree: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rewritten(b"a: 1\n", {"a": 1}, prepare=move)
