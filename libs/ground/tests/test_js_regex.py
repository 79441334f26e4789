"""Patterns mean what they mean in JavaScript, or are refused."""

from __future__ import annotations

import pytest

from ground.regular_expressions import compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "found", "reason"),
    [
        ("^[a-z]+$", "abc", True, "plain"),
        ("^[a-z]+$", "abc\n", False, "$ is the very end"),
        ("b", "abc", True, "searched, not matched"),
        (r"^\d+$", "٣", False, "digits are ASCII"),
        (r"^\w+$", "é", False, "so are words"),
        (r"a\sb", "a\u00a0b", True, "blanks are not"),
        (r"^\S+$", "a\ufeff", False, "nor what is not a blank"),
        ("^.$", "\u2028", False, "a dot is not a line end"),
        ("^[^]$", "\n", True, "anything"),
        ("[$.]", "$", True, "a dollar in brackets"),
        (r"^[\w.-]+@[\w.-]+$", "a@b.c", True, "classes in brackets"),
        ("[[]", "[", True, "a bracket in brackets"),
        ("^(?!__).+$", "__x", False, "looking ahead"),
        (r"^(a)\1$", "aa", True, "back references"),
        ("[]", "a", False, "nothing"),
        ("^[a-]$", "-", True, "a dash at the end of brackets"),
        (r"^[+--]$", ",", True, "a range to the dash"),
        ("^[&&]$", "&", True, "no set operations"),
    ],
)
def test_pattern(pattern: str, text: str, *, found: bool, reason: str) -> None:
    assert bool(compile_pattern(pattern).search(text)) is found, reason


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{L}",
        r"\u{61}",
        "(?<n>a)",
        "(?P<n>a)",
        r"\Aa",
        r"a\Z",
        "(?i)a",
        "a++",
        "(?>a)",
        "(",
        "a{",
        "a]",
        r"\_",
        r"[\w-z]",
        r"(a)?\1",
        "(?=a)*",
        "(?!a)?",
        r"\ud83d",
        "a{,3}",
    ],
)
def test_what_python_reads_differently_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_pattern(pattern)
