"""A merge that is tried here comes out as git's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderkit.adapters.forges.merging import conflicts

BEFORE = b"a\nb\nc\nd\ne\n"
CASES = {
    "far apart": (BEFORE, b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n", False),
    "the same line": (BEFORE, b"a\nb\nC\nd\ne\n", b"a\nb\nx\nd\ne\n", True),
    "lines side by side": (BEFORE, b"a\nB\nc\nd\ne\n", b"a\nb\nC\nd\ne\n", True),
    "the same on both sides": (BEFORE, b"a\nX\n", b"a\nX\n", False),
    "added by both": (None, b"a\n", b"b\n", True),
    "binary": (b"\0a", b"\0b", b"\0c", True),
    "too large to be tried": (BEFORE, b"b" * 1_000_001, b"c", False),
    "a head too large": (BEFORE, b"c", b"b" * 1_000_001, False),
    "it was too large": (b"b" * 1_000_001, b"b", b"c", False),
    "just small enough": (BEFORE, b"b" * 1_000_000, b"c", True),
}
LINES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=6).map(
    lambda lines: "".join(f"{line}\n" for line in lines).encode()
)


@pytest.mark.parametrize("case", CASES)
def test_it_says_whether_a_conflict_is_left(case: str) -> None:
    before, ours, theirs, expected = CASES[case]

    assert conflicts(before, ours, theirs) is expected


@given(before=LINES, ours=LINES, theirs=LINES)
def test_git_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, ours: bytes, theirs: bytes
) -> None:
    folder = tmp_path_factory.mktemp("merge")

    assert conflicts(before, ours, theirs) is _git_conflicts(folder, before, ours, theirs)


def _git_conflicts(folder: Path, before: bytes, ours: bytes, theirs: bytes) -> bool:
    for name, data in {"ours": ours, "before": before, "theirs": theirs}.items():
        (folder / name).write_bytes(data)
    command = ["git", "merge-file", "--stdout", "ours", "before", "theirs"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=60)
    return done.returncode != 0
