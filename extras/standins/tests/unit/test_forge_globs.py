"""Globs of branch filters and protection rules."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import InvalidInputError
from orderkit_standins.globs import compile_glob


@dataclass(frozen=True)
class Case:
    reason: str
    pattern: str
    text: str
    matches: bool
    separator: str = ""


CASES = [
    Case("a plain name is itself", "main", "main", matches=True),
    Case("and nothing longer", "main", "main2", matches=False),
    Case("nor anything it is the end of", "main", "xmain", matches=False),
    Case("a star crosses slashes without a separator", "rel/*", "rel/1/2", matches=True),
    Case("a star stops at the separator", "rel/*", "rel/1/2", matches=False, separator="/"),
    Case("two stars do not", "rel/**", "rel/1/2", matches=True, separator="/"),
    Case("a star may stand for nothing", "rel*", "rel", matches=True),
    Case("a question mark is one character", "v?", "v1", matches=True),
    Case("not none", "v?", "v", matches=False),
    Case("nor the separator", "v?x", "v/x", matches=False, separator="/"),
    Case("one of a class", "v[12]", "v2", matches=True),
    Case("one of a range", "v[0-9]", "v7", matches=True),
    Case("not of a negated class", "v[!12]", "v2", matches=False),
    Case("alternatives", "{main,dev}", "dev", matches=True),
    Case("alternatives with a star", "{main,rel/*}", "rel/x", matches=True),
    Case("alternatives inside alternatives", "{a,b{c,d}}", "bd", matches=True),
    Case("a comma outside braces is a comma", "a,b", "a,b", matches=True),
    Case("what a backslash precedes is itself", r"a\*", "a*", matches=True),
    Case("and matches nothing else", r"a\*", "ab", matches=False),
    Case("a dot is a dot", "a.b", "axb", matches=False),
    Case("the case counts", "Main", "main", matches=False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_globs_match_whole_names(case: Case) -> None:
    found = compile_glob(case.pattern, case.separator).match(case.text)

    assert bool(found) == case.matches


@pytest.mark.parametrize("pattern", ["[a-", "{a,b", "a\\", "[z-a]"])
def test_broken_globs_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a glob"):
        compile_glob(pattern)


@given(st.text())
def test_every_text_is_a_glob_or_refused(pattern: str) -> None:
    try:
        found = compile_glob(pattern)
    except InvalidInputError:
        return
    found.match("main")


@given(st.text(st.characters(exclude_characters="*?[]{},\\!"), min_size=1))
def test_a_text_without_special_characters_matches_itself_only(text: str) -> None:
    assert compile_glob(text).match(text)
    assert not compile_glob(text).match(f"{text}x")
