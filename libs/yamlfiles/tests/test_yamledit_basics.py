"""``yamlfiles.edit``: what an edit does to a text, and what it refuses to do."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from yamlfiles.edit import Edit, EditRefusal, EditRefusedError, Op, Value, YamlLimits, edit
from yamlfiles.edit.proving import ExpectedEvents, prove
from yamlfiles.edit.stream import read, scan

SET, ADD, REMOVE, UNSET = Op.SET, Op.ADD, Op.REMOVE, Op.UNSET


@dataclass(frozen=True)
class Case:
    reason: str
    before: str
    path: str
    value: Value
    after: str | EditRefusal
    op: Op = SET


DEEP: Value = []
for _ in range(40):
    DEEP = [DEEP]
CASES = [
    Case("a comment and its column stay", "a: 1   # c\n", "a", 2, "a: 2   # c\n"),
    Case("single quotes stay", "a: 'x'\n", "a", "y", "a: 'y'\n"),
    Case("double quotes stay", 'a: "x"\n', "a", "y", 'a: "y"\n'),
    Case("quotes go where a number comes", 'a: "x"\n', "a", 5, "a: 5\n"),
    Case("a number's text is quoted", "a: x\n", "a", "5", "a: '5'\n"),
    Case("YAML 1.1 reads yes as true", "a: x\n", "a", "yes", "a: 'yes'\n"),
    Case("YAML 1.1 reads octal", "a: x\n", "a", "0644", "a: '0644'\n"),
    Case("YAML 1.1 reads sixties", "a: x\n", "a", "1:20", "a: '1:20'\n"),
    Case("YAML 1.1 reads dates", "a: x\n", "a", "2026-11-21", "a: '2026-11-21'\n"),
    Case("YAML 1.2 reads 1e3 as a number", "a: x\n", "a", "1e3", "a: '1e3'\n"),
    Case("Kubernetes reads y as true", "a: x\n", "a", "y", "a: 'y'\n"),
    Case("control characters need escapes", "a: x\n", "a", "\x07\u2028", 'a: "\\u0007\\u2028"\n'),
    Case("a large float has a point for YAML 1.1", "a: 1\n", "a", 1e22, "a: 1.0e+22\n"),
    Case("what all readers see already stays", "a: 0x10\n", "a", 16, "a: 0x10\n"),
    Case("what they see differently is written anew", "a: yes\n", "a", "yes", "a: 'yes'\n"),
    Case("an empty value gets a blank", "a:\nb: 1\n", "a", 1, "a: 1\nb: 1\n"),
    Case(
        "a missing key goes to the end",
        "a:\n  b: 1\nc: 2\n",
        "a.d",
        3,
        "a:\n  b: 1\n  d: 3\nc: 2\n",
    ),
    Case("missing maps come too", "a: 1\n", "b.c.d", 3, "a: 1\nb:\n  c:\n    d: 3\n"),
    Case("no final newline stays so", "a: 1", "b", 2, "a: 1\nb: 2"),
    Case("CRLF stays", "a: 1\r\nb: 2\r\n", "c", 3, "a: 1\r\nb: 2\r\nc: 3\r\n"),
    Case("a byte order mark stays", "\ufeffa: 1\n", "a", 2, "\ufeffa: 2\n"),
    Case("an item is appended", "a:\n- x\nb: 1\n", "a", "z", "a:\n- x\n- z\nb: 1\n", ADD),
    Case("a missing list is begun", "a: 1\n", "b", "x", "a: 1\nb:\n  - x\n", ADD),
    Case(
        "its dashes stand as those of other lists", "a:\n- x\n", "b", "z", "a:\n- x\nb:\n- z\n", ADD
    ),
    Case("a list has no keys", "a: [{b: 1}]\n", "a.b", 2, EditRefusal.WRONG_KIND),
    Case("an item is removed", "a:\n  - x # c\n  - y\n", "a", "x", "a:\n  - y\n", REMOVE),
    Case("the last item leaves a list", "a:\n  - x\nb: 1\n", "a", "x", "a: []\nb: 1\n", REMOVE),
    Case(
        "a key is removed with its line", "a: 1\nb: 2 # c\nc: 3\n", "b", None, "a: 1\nc: 3\n", UNSET
    ),
    Case("flow: an item is appended", "a: [x, y]\n", "a", "z", "a: [x, y, z]\n", ADD),
    Case("flow: a key is removed", "a: {x: 1, z: 2}\n", "a.z", None, "a: {x: 1}\n", UNSET),
    Case(
        "flow: an item leaves with its line, however little that is indented",
        "a: [\n x, # one\n y,\n]\n",
        "a",
        "x",
        "a: [\n y,\n]\n",
        REMOVE,
    ),
    Case("JSON stays JSON", '{"a": [1]}\n', "b", "x", '{"a": [1], "b": "x"}\n'),
    Case("a block keeps its mark", "a: |\n  x\nb: 1\n", "a", "y\nz\n", "a: |\n  y\n  z\nb: 1\n"),
    Case(
        "a text that ends in a blank line takes the place of those below the block",
        "a: |\n  x\n\n\nb: 1\n",
        "a",
        "y\n\n",
        "a: |+\n  y\n\nb: 1\n",
    ),
    Case("nothing goes through an alias", "a: &x 1\nb: *x\n", "b", 2, EditRefusal.ALIAS),
    Case("nothing else changes with it", "a: &x 1\nb: *x\n", "a", 2, EditRefusal.ANCHOR_IN_USE),
    Case(
        "an item that is repeated elsewhere",
        "a:\n- &x 1\n- 2\nb: *x\n",
        "a",
        1,
        EditRefusal.ANCHOR_IN_USE,
        REMOVE,
    ),
    Case(
        "a key of which a part is repeated elsewhere",
        "a: {c: [&x 1]}\nb: *x\n",
        "a",
        None,
        EditRefusal.ANCHOR_IN_USE,
        UNSET,
    ),
    Case("an item with an unused anchor", "a: [&x 1, 2]\n", "a", 1, "a: [2]\n", REMOVE),
    Case("an unused anchor stays", "a: &x 1\n", "a", 2, "a: &x 2\n"),
    Case("a tag has its own meaning", "a: !Ref x\n", "a", "y", EditRefusal.TAG),
    Case("a key twice is ambiguous", "a: 1\na: 2\n", "a", 3, EditRefusal.DUPLICATE_KEY),
    Case("an inherited key", "x: &x {b: 1}\na:\n  <<: *x\n", "a.b", 2, EditRefusal.MERGE_KEY),
    Case("two documents", "a: 1\n---\na: 2\n", "a", 3, EditRefusal.DOCUMENT),
    Case("an empty second document is not a second", "a: 1\n---\n", "a", 3, "a: 3\n---\n"),
    Case(
        "a comment would become text of the block",
        "a:\n- |\n  x\n- z\n\n  # c\n",
        "a",
        "z",
        EditRefusal.BLOCK_SCALAR,
        REMOVE,
    ),
    Case(
        "a blank line would become text of the block",
        "a: |+\n  x\nb: 1\n\n",
        "b",
        None,
        EditRefusal.BLOCK_SCALAR,
        UNSET,
    ),
    Case(
        "the same behind the end of a map",
        "c:\n  a: |+\n    x\nb: 1\n\n",
        "b",
        None,
        EditRefusal.BLOCK_SCALAR,
        UNSET,
    ),
    Case("a text without a scalar and a line break", "- []", "0", [[]], "- [[]]"),
    Case("an item behind one without a scalar", "- []", "", 1, "- []\n- 1", ADD),
    Case("no such item", "a: [1]\n", "a", 2, EditRefusal.MISSING, REMOVE),
    Case("two such items", "a: [1, 1]\n", "a", 1, EditRefusal.NOT_UNIQUE, REMOVE),
    Case("a list that is none", "a: x\n", "a", 1, EditRefusal.WRONG_KIND, ADD),
    Case("a map that is none", "a: x\n", "a.b", 1, EditRefusal.WRONG_KIND),
    Case("infinity is not JSON", "a: 1\n", "a", float("inf"), EditRefusal.VALUE),
    Case("more than 64 bits is not a number for all", "a: 1\n", "a", 2**64, EditRefusal.VALUE),
    Case("half a character", "a: 1\n", "a", "\ud800", EditRefusal.VALUE),
    Case("a value deeper than any file", "a: 1\n", "a", DEEP, EditRefusal.VALUE),
    Case("a key beyond a parser's look-ahead", "a: 1\n", "b", {"k" * 1001: 1}, EditRefusal.VALUE),
    Case("Kubernetes reads the key y as true", "x: 1\ny: 2\n", "y", 3, EditRefusal.AMBIGUOUS_KEY),
    Case("a key in quotes is text", "x: 1\n'y': 2\n", "y", 3, "x: 1\n'y': 3\n"),
    Case("a number is a key too", "8080: a\n", "8080", "b", "8080: b\n"),
    Case(
        "two keys that YAML 1.1 takes for one",
        "a: 1\ntrue: 2\nyes: 3\n",
        "a",
        4,
        EditRefusal.DUPLICATE_KEY,
    ),
    Case(
        "a merge is not a value", "x: &x {b: 1}\na:\n  <<: *x\n", "a.<<", 2, EditRefusal.MERGE_KEY
    ),
    Case("a pair without braces", "a: [b: 1]\n", "a.0.c", 2, EditRefusal.PAIR),
    Case("a document that holds nothing", "---\n---\na: 1\n", "a", 3, "---\n---\na: 3\n"),
    Case("no YAML", "a: [\n", "a", 1, EditRefusal.NOT_YAML),
    Case("nothing in it", "# nothing\n", "a", 1, EditRefusal.EMPTY),
    Case(
        "lines that YAML 1.1 alone breaks", "a: 1 # x\u2028b: 2\n", "a", 1, EditRefusal.LINE_BREAK
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_an_edit_gives_these_bytes_or_this_refusal(case: Case) -> None:
    wish = Edit(tuple(filter(None, case.path.split("."))), case.op, case.value)
    if not isinstance(case.after, EditRefusal):
        assert edit(case.before.encode(), [wish]).decode() == case.after
        return
    with pytest.raises(EditRefusedError) as refused:
        edit(case.before.encode(), [wish], name="f.yaml")
    assert refused.value.code is case.after
    assert refused.value.hint
    assert "f.yaml" in str(refused.value)


FIRST, SECOND = 3, 4
"""The events of the first two items of a list."""
REPEATED = [
    ("is gone", "- &x 1\n- *x\n", "- *x\n", ExpectedEvents(FIRST, SECOND, [])),
    (
        "gives way to one of the same name above",
        "- &x 0\n- &x 1\n- *x\n",
        "- &x 0\n- *x\n",
        ExpectedEvents(SECOND, SECOND + 1, []),
    ),
    ("changes", "- &x 1\n- *x\n", "- &x 2\n- *x\n", ExpectedEvents(FIRST, SECOND, [2], "x")),
]


@pytest.mark.parametrize("case", REPEATED, ids=lambda case: case[0])
def test_nothing_is_proved_if_what_an_alias_repeats(
    case: tuple[str, str, str, ExpectedEvents],
) -> None:
    _, before, after, expected = case

    with pytest.raises(EditRefusedError, match="alias") as refused:
        prove(read(before), scan(after), expected)

    assert refused.value.code is EditRefusal.UNPROVED


def test_an_anchor_may_go_whose_name_stands_for_another_node_by_the_time_it_is_repeated() -> None:
    before, after = "- &x 1\n- &x 2\n- *x\n", "- &x 2\n- *x\n"

    prove(read(before), scan(after), ExpectedEvents(FIRST, SECOND, []))


def test_all_edits_or_none() -> None:
    data = b"a: 1\nb: 2\n"
    assert edit(data, [Edit(("a",), SET, 3), Edit(("b",), UNSET)]) == b"a: 3\n"
    with pytest.raises(EditRefusedError):
        edit(data, [Edit(("a",), SET, 3), Edit(("c",), UNSET)])


LAUGHS = "l0: &l0 [x, x]\n" + "".join(
    f"l{at + 1}: &l{at + 1} [{', '.join([f'*l{at}'] * 9)}]\n" for at in range(9)
)
HOSTILE = [
    ("many aliases of aliases", LAUGHS, EditRefusal.LIMITS),
    ("deep brackets", "a: " + "[" * 100_000, EditRefusal.LIMITS),
    ("deep dashes", "- " * 40_000, EditRefusal.LIMITS),
    ("many keys", "".join(f"k{at}: 1\n" for at in range(60_000)), EditRefusal.LIMITS),
    ("many bytes", "a: " + "x" * 1_000_001, EditRefusal.LIMITS),
    ("an alias of nothing", "a: *x\n", EditRefusal.NOT_YAML),
    ("an alias of what is around it", "a: &a [*a]\n", EditRefusal.NOT_YAML),
]  # fmt: skip


@pytest.mark.parametrize(("_name", "text", "code"), HOSTILE, ids=[case[0] for case in HOSTILE])
def test_hostile_text_ends_at_the_limits(_name: str, text: str, code: EditRefusal) -> None:
    with pytest.raises(EditRefusedError) as refused:
        edit(text.encode(), [Edit(("a",), SET, 1)])
    assert refused.value.code is code


def test_limits_can_be_narrower() -> None:
    with pytest.raises(EditRefusedError):
        edit(b"a: {b: {c: 1}}\n", [Edit(("a",), SET, 1)], limits=YamlLimits(depth=2))


def test_text_that_is_no_utf_8_is_refused() -> None:
    with pytest.raises(EditRefusedError) as refused:
        edit("a: é\n".encode("latin-1"), [Edit(("a",), SET, 1)])
    assert refused.value.code is EditRefusal.ENCODING
