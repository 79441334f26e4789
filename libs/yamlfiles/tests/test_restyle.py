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
