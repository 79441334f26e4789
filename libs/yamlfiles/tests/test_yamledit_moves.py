"""Values move to other keys, and comments go with them; what would lose one is refused."""

from __future__ import annotations

import pytest

from yamlfiles.edit import Edit, EditRefusal, EditRefusedError, Op, edit

CASES = [
    ("only the key changes", "a: 1   # why\nb: 2\n", ("a",), ("c",), "c: 1   # why\nb: 2\n"),
    (
        "a map keeps its comments",
        "a:  # one\n  # two\n  x: 1  # three\nb: 2\n",
        ("a",), ("c",),
        "c:  # one\n  # two\n  x: 1  # three\nb: 2\n",
    ),
    ("a key that needs quotes", "a: 1\n", ("a",), ("yes",), "'yes': 1\n"),
    ("within braces", "s: {a: 1, b: 2}  # x\n", ("s", "a"), ("s", "c"), "s: {c: 1, b: 2}  # x\n"),
    ("a quoted key", "'a': 1\n", ("a",), ("c",), "c: 1\n"),
    (
        "to a map that is missing",
        "s:\n  a: 1  # GiB\n  b: 2\n", ("s", "a"), ("s", "d", "e"),
        "s:\n  b: 2\n  d:\n    e: 1  # GiB\n",
    ),
    (
        "to a map that is there",
        "s:\n  # above\n  a: x # why\n  d:\n    f: 1\n", ("s", "a"), ("s", "d", "e"),
        "s:\n  # above\n  d:\n    f: 1\n    e: x  # why\n",
    ),
    (
        "a text with a number sign is no comment",
        "s:\n  a: 'x # y'\n  b: 1\n", ("s", "b"), ("s", "d", "b"),
        "s:\n  a: 'x # y'\n  d:\n    b: 1\n",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "text", "path", "to", "after"), CASES, ids=lambda v: str(v)[:40]
)
def test_moves(
    reason: str, text: str, path: tuple[str, ...], to: tuple[str, ...], after: str
) -> None:
    assert edit(text.encode(), [Edit(path, Op.MOVE, list(to))]).decode() == after, reason


REFUSED = [
    ("there already", "a: 1\nb: 2\n", ("a",), ("b",), EditRefusal.DUPLICATE_KEY),
    ("not there", "a: 1\n", ("x",), ("b",), EditRefusal.MISSING),
    (
        "comments inside",
        "s:\n  a:\n    x: 1  # why\n    y: 2\n  b: 1\n", ("s", "a"), ("s", "d", "e"),
        EditRefusal.COMMENT,
    ),
    (
        "no room for the comment",
        "s:\n  a: 1  # why\n  d: {f: 1}\n", ("s", "a"), ("s", "d", "e"), EditRefusal.COMMENT,
    ),
    ("used elsewhere", "a: &x 1\nb: *x\n", ("a",), ("c",), EditRefusal.ANCHOR_IN_USE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "text", "path", "to", "code"), REFUSED, ids=lambda v: str(v)[:40]
)
def test_moves_that_are_refused(
    reason: str, text: str, path: tuple[str, ...], to: tuple[str, ...], code: EditRefusal
) -> None:
    with pytest.raises(EditRefusedError) as error:
        edit(text.encode(), [Edit(path, Op.MOVE, list(to))])
    assert error.value.code is code, reason
