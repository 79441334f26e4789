"""Each refusal of an edit with its words, and what stands beside it and is done."""

from __future__ import annotations

from typing import Any

import pytest

from yamlfiles.edit import Edit, EditRefusal, EditRefusedError, Op, YamlLimits, edit, read_value

SET, ADD, REMOVE, UNSET, MOVE = Op.SET, Op.ADD, Op.REMOVE, Op.UNSET, Op.MOVE
MERGED = "x: &x {q: 1}\na: {<<: *x, b: 1}\n"
R = EditRefusal
KEYS = {str(number): number for number in range(501)}
REFUSED: list[tuple[str, Op, tuple[str | int, ...], Any, EditRefusal, str]] = [
    ("&x a: 1\n", MOVE, ("a",), ["c"], R.ANCHOR_IN_USE, "the key has an anchor"),
    ("a: 1\nb: 2\n", MOVE, ("a",), ["b"], R.DUPLICATE_KEY, "b: is there already"),
    ("a: {? [x] : 1}\n", SET, ("a",), {"b": 1}, R.MERGE_KEY, "a key there is not plain text"),
    (MERGED, SET, ("a",), {"b": 1}, R.MERGE_KEY, "a key there is not plain text"),
    (MERGED, UNSET, ("a", "b"), None, R.MERGE_KEY, "the map inherits through '<<'"),
    (MERGED, SET, ("a", "c"), 1, R.MERGE_KEY, "a.c: the map inherits through '<<'"),
    ("a: 1\n", SET, (), 3, R.WRONG_KIND, "the whole document cannot be replaced"),
    ("- 1\n", SET, (), {"b": 1}, R.WRONG_KIND, "the whole document cannot be replaced"),
    ("a: 1\n", UNSET, (), None, R.WRONG_KIND, "the whole document cannot be removed"),
    ("a: [x]\n", SET, ("a", "b"), 1, R.WRONG_KIND, "a.b: 'b' is not an index, and there is a list"),
    ("a: [x]\n", SET, ("a", 1), 1, R.MISSING, "a[1]: the list has 1 items"),
    ("a: [x]\n", SET, ("a", -2), 1, R.MISSING, "a[-2]: the list has 1 items"),
    ("a: {}\n", SET, ("a", 3), 1, R.MISSING, "a[3]: there is no a[3]"),
    ("a: {}\n", SET, ("a", "<<"), 1, R.MISSING, 'a["<<"]: there is no a["<<"]'),
    ("a: {}\n", SET, ("a", "b", 0), 1, R.MISSING, "a.b[0]: there is no a.b"),
    ("a: 1\n", UNSET, ("b",), None, R.MISSING, "b: there is no b"),
    ("a: 1\n", ADD, ("a",), 1, R.WRONG_KIND, "a: is a scalar, no list"),
    ("a: {b: 1}\n", REMOVE, ("a",), 1, R.WRONG_KIND, "a: is a map, no list"),
    ("a: 1\n", REMOVE, ("b",), 1, R.MISSING, "b: there is no b"),
    ("a: [1]\n", REMOVE, ("a",), True, R.MISSING, "a: has no item True"),
    ("a: [1, 1]\n", REMOVE, ("a",), 1, R.NOT_UNIQUE, "a: has 1 2 times"),
    ("a: [ # c\n]\n", ADD, ("a",), 1, R.COMMENT, "a comment stands in the brackets"),
    ("a: { # c\n}\n", SET, ("a", "b"), 1, R.COMMENT, "a comment stands in the brackets"),
    ("x: &x k\n*x : 1\nb: 2\n", SET, ("b",), 1, R.ALIAS, "b: a key beside it is an alias"),
    ("!!str a: 1\n", SET, ("a",), 2, R.TAG, "a: the key has a tag"),
    ("a: &x # c\n  1\n", SET, ("a",), 2, R.ANCHOR_IN_USE, "an anchor stands apart"),
    ("a: &x 1\nb: {c: *x}\n", UNSET, ("a",), None, R.ANCHOR_IN_USE, "a: is used elsewhere as *x"),
    ("a: |\n\nb: 1\n", SET, ("a",), "x\ny\n", R.BLOCK_SCALAR, "the block scalar is empty"),
    ("a: >\nb: 1\n", SET, ("a",), "x", R.BLOCK_SCALAR, "the block scalar is empty"),
    (
        "a: |\n  x",
        SET,
        ("b",),
        1,
        R.BLOCK_SCALAR,
        "the text ends in a block scalar without a line break",
    ),
    ("a: 1\ufeff\n", SET, ("a",), 2, R.ENCODING, "has a byte order mark in its midst"),
    ("a: \x01\n", SET, ("a",), 2, R.NOT_YAML, "is not valid YAML: unacceptable character #x0001"),
    ("a: 1\n", SET, ("a",), {1: 2}, R.VALUE, "a key of the new value is not text"),
    ("a: 1\n", SET, ("a",), b"x", R.VALUE, "bytes is not a YAML value"),
    ("a: 1\n", SET, ("a",), -(2**63) - 1, R.VALUE, f"{-(2**63) - 1} has more than 64 bits"),
    ("a: 1\n", SET, ("a",), 2**64, R.VALUE, f"{2**64} has more than 64 bits"),
    ("a: {x: 1}\n", SET, ("a",), KEYS, R.LIMITS, "more than 500 changes at once"),
]


@pytest.mark.parametrize(("text", "op", "path", "value", "code", "words"), REFUSED)
def test_an_edit_is_refused_with_its_reason(
    text: str, op: Op, path: tuple[str | int, ...], value: Any, *, code: EditRefusal, words: str
) -> None:
    with pytest.raises(EditRefusedError) as refused:
        edit(text.encode(), [Edit(path, op, value)])

    assert refused.value.code is code
    assert refused.value.reason.startswith(words)


@pytest.mark.parametrize(
    ("text", "op", "path", "value", "after"),
    [
        ("a: 1\n", SET, (), {"b": 1}, "b: 1\n"),
        ("a: [x]\n", SET, ("a", -1), 1, "a: [1]\n"),
        ("a: [!x 1, 2]\n", REMOVE, ("a",), 2, "a: [!x 1]\n"),
        ("a: [&x 1, *x, 2]\n", REMOVE, ("a",), 2, "a: [&x 1, *x]\n"),
        ("a: [1, true]\n", REMOVE, ("a",), True, "a: [1]\n"),
        ("a: [{b: 1}, {b: 2}]\n", REMOVE, ("a",), {"b": 2}, "a: [{b: 1}]\n"),
        ("? [x]\n: 1\nb: 2\n", SET, ("b",), 3, "? [x]\n: 1\nb: 3\n"),
        ("a: &x\n  {b: 1}\n", SET, ("a", "b"), 2, "a: &x\n  {b: 2}\n"),
        ("a: &x 1\n", SET, ("a",), 2, "a: &x 2\n"),
        ("a: 1\n", SET, ("a",), -(2**63), f"a: {-(2**63)}\n"),
        ("a: 1\n", SET, ("a",), 2**64 - 1, f"a: {2**64 - 1}\n"),
        ("a: [x]\n", SET, ("a",), {"k": "v"}, "a:\n  k: v\n"),
        ("a: 2001-99-99\n", SET, ("a",), "2001-99-99", "a: '2001-99-99'\n"),
        ("a: [1, 2]\n", SET, ("a",), [1, True], "a: [1, true]\n"),
        ("a: [1, 2]\n", SET, ("a",), [1], "a: [1]\n"),
        ("a: {b: 1, c: 2}\n", SET, ("a",), {"c": 2, "b": 1}, "a: {b: 1, c: 2}\n"),
        ("a: b\n", SET, ("a",), "x\x07y", 'a: "x\\u0007y"\n'),
        ("a: b\n", SET, ("a",), 'x"y\\z\x85', 'a: "x\\"y\\\\z\\u0085"\n'),
        ("a: 'b'\n", SET, ("a",), "b", "a: 'b'\n"),
        ("a: '1'\n", SET, ("a",), 1, "a: 1\n"),
    ],
)
def test_an_edit_beside_a_refused_one_is_made(
    text: str, op: Op, path: tuple[str | int, ...], value: Any, after: str
) -> None:
    assert edit(text.encode(), [Edit(path, op, value)]).decode() == after


THREE = b"a: 1\n---\n---\nb: 1\n"


@pytest.mark.parametrize(
    ("document", "code", "words"),
    [
        (3, R.DOCUMENT, "has 3 documents and none with number 3"),
        (-1, R.DOCUMENT, "has 3 documents and none with number -1"),
        (1, R.EMPTY, "document 1 holds nothing"),
        (None, R.DOCUMENT, "has 2 documents"),
    ],
)
def test_a_document_that_is_not_there_is_refused(
    document: int | None, code: EditRefusal, words: str
) -> None:
    with pytest.raises(EditRefusedError) as refused:
        edit(THREE, [Edit(("b",), SET, 2, document)])

    assert (refused.value.code, refused.value.reason) == (code, words)


def test_a_document_is_chosen_by_its_number() -> None:
    assert edit(THREE, [Edit(("b",), SET, 2, 2)]) == b"a: 1\n---\n---\nb: 2\n"


def test_a_result_that_is_too_large_is_refused() -> None:
    limits = YamlLimits(size_bytes=20)

    assert (
        edit(b"a: 1\n", [Edit(("a",), SET, "x" * 16)], limits=limits) == b"a: " + b"x" * 16 + b"\n"
    )
    with pytest.raises(EditRefusedError) as refused:
        edit(b"a: 1\n", [Edit(("a",), SET, "x" * 17)], limits=limits)
    assert (refused.value.code, refused.value.reason) == (R.LIMITS, "would be larger than 20 bytes")


@pytest.mark.parametrize(
    ("text", "path", "code", "words"),
    [
        ("a: &x 1\nb: *x\n", ("b",), R.ALIAS, "b: is the alias *x"),
        ("a: [!x 1]\n", ("a",), R.TAG, "there is the tag !x"),
        ("x: &x k\na: [*x]\n", ("a",), R.ALIAS, "there is the alias *x"),
        ("a: {? [x] : 1}\n", ("a",), R.WRONG_KIND, "a key there is not a scalar"),
        (MERGED, ("a",), R.MERGE_KEY, "the map inherits through '<<'"),
        ("a: 1\n", ("b",), R.MISSING, "b: there is no b"),
    ],
)
def test_a_value_that_readers_may_see_differently_is_not_read(
    text: str, path: tuple[str, ...], code: EditRefusal, words: str
) -> None:
    with pytest.raises(EditRefusedError) as refused:
        read_value(text.encode(), path)

    assert (refused.value.code, refused.value.reason) == (code, words)


def test_a_value_is_read_as_yaml_1_2_reads_it() -> None:
    text = b"a: {b: [1, 'x', ~, 0x1f, 0o17, 1.5, yes, '1']}\n"

    assert read_value(text, ("a", "b")) == [1, "x", None, 31, 15, 1.5, "yes", "1"]
