"""A generated file follows its skeleton, and keeps what people did: by lines and by structure."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orderkit.core.campaign.three_way import merge_text, merged

TEXT, YAML = PurePosixPath("README.md"), PurePosixPath("catalog-info.yaml")
LINES = st.lists(st.sampled_from("abcdefgh"), max_size=9).map("".join)


def lines(letters: str) -> bytes:
    return "".join(f"{letter}\n" for letter in letters).encode()


@pytest.mark.parametrize(
    ("reason", "then", "now", "there", "becomes"),
    [
        ("the skeleton is the same", "a", "a", "x", None),
        ("it follows already", "a", "b", "b", None),
        ("nobody touched it", "a", "b", "a", "b"),
        ("the skeleton gives it up", "a", None, "a", ""),
        ("but people changed it", "a", None, "x", None),
        ("people removed it", "a", "b", None, None),
        ("it is new", None, "b", None, "b"),
        ("both changed other lines", "abcde", "Xbcde", "abcdY", "XbcdY"),
        ("both made the same change", "abcde", "aXcde", "aXcde", None),
    ],
)
def test_what_becomes_of_a_file(
    reason: str, then: str | None, now: str | None, there: str | None, becomes: str | None
) -> None:
    texts = [None if text is None else lines(text) for text in (then, now, there)]
    found = merged(TEXT, *texts)
    if becomes is None:
        assert found is None, reason
    else:
        assert found is not None
        assert (found.data or b"", found.conflicts) == (lines(becomes), ())


def test_a_conflict_has_the_skeletons_side_and_no_markers() -> None:
    found = merged(TEXT, lines("abc"), lines("aXc"), lines("aYc"))
    assert found is not None
    assert found.data == lines("aXc")
    assert found.conflicts == ("the skeleton had:\nb\n\nit has now:\nX\n\nthe file has:\nY\n",)


def test_a_file_that_people_made_is_shown_beside_the_skeletons() -> None:
    found = merged(TEXT, None, lines("ab"), lines("xb"))
    assert found is not None
    assert "both the skeleton and people made it" in found.conflicts[0]
    assert "-x" in found.conflicts[0]


def test_neighbouring_values_of_yaml_are_no_conflict() -> None:
    then = b"spec:\n  type: order   # of a kit\n  owner: a\n"
    now = b"spec:\n  type: order   # of a kit\n  owner: b\n"
    there = b"spec:\n  type: order   # of a kit\n  system: shop\n  owner: a\n"
    found = merged(YAML, then, now, there)
    assert found is not None
    assert found.conflicts == ()
    assert b"system: shop\n  owner: b" in (found.data or b"")
    assert b"# of a kit" in (found.data or b"")


def test_one_value_that_both_changed_is_named() -> None:
    found = merged(YAML, b"a: {b: 1}\n", b"a: {b: 2}\n", b"a: {b: 3}\n")
    assert found is not None
    assert found.conflicts == ("a.b: the skeleton had 1, has 2 now; the file has 3",)


def test_a_skeleton_that_is_only_indented_anew_is_no_conflict() -> None:
    then = b"a:\n  b: 1\n  c: 2\ne: 4\n"
    now = b"a:\n    b: 1\n    c: 2\ne: 4\n"
    there = b"a:\n  b: 1\n  c: 2\n  x: 5\ne: 4\n"
    assert merged(YAML, then, now, there) is None


@settings(max_examples=150, deadline=None)
@given(then=LINES, now=LINES, there=LINES)
def test_what_merges_cleanly_is_what_git_makes_of_it(then: str, now: str, there: str) -> None:
    ours = merge_text(lines(then), lines(now), lines(there))
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name, side) for side in ("there", "then", "now")]
        for path, text in zip(paths, (there, then, now), strict=True):
            path.write_bytes(lines(text))
        git = subprocess.run(
            ["git", "merge-file", "-p", *map(str, paths)], capture_output=True, check=False
        )
    if not ours.conflicts and git.returncode == 0:
        assert ours.data == git.stdout
