"""Patterns of the API server in JavaScript: flags that forms do not have are written out."""

from __future__ import annotations

import itertools

import pytest

from ground import regular_expressions
from kubeschema.re2_patterns import compile_pattern
from orderkit.core.kit.form_rules import to_javascript

FLAGGED = [
    "(?i)^ab$",
    "^((?i)ab|k)s$",
    "^(?i:a)b",
    "^(?i)a(?-i)b",
    "^(?:(?i)a)b",
    "(?i)^[a-bK]s$",
    "(?i)^[^k]$",
    "(?i)[[:lower:]]b",
    r"(?i)^\w$",
    r"(?i)\x6b$",
    "(?s)^.b",
    "(?is)^a.$",
    "^(?<name>ab)$",
]
TEXTS = [
    "".join(text) for n in range(4) for text in itertools.product("abBkKs\u212a\u017f\n", repeat=n)
]


@pytest.mark.parametrize("pattern", FLAGGED)
def test_a_pattern_with_flags_matches_alike_in_the_form(pattern: str) -> None:
    server, form = (
        compile_pattern(pattern),
        regular_expressions.compile_pattern(to_javascript(pattern)),
    )

    differing = [t for t in TEXTS if (server.search(t) is None) != (form.search(t) is None)]

    assert differing == []
    assert any(server.search(text) for text in TEXTS)


@pytest.mark.parametrize("pattern", ["(?m)^a$", "(?U)a+", "(?i)\u00e9", r"(?i)\W"])
def test_a_flag_without_an_equivalent_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="JavaScript"):
        to_javascript(pattern)
