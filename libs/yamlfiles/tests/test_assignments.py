"""``yamlfiles.assignments``: edits as people write them on a command line."""

from __future__ import annotations

import pytest

from ground.errors import InvalidInputError
from yamlfiles.assignments import Assignment, parse, parse_path
from yamlfiles.edit import Op

GOOD = [
    ("spec.stage=stage3", Assignment(("spec", "stage"), Op.SET, "stage3")),
    ("a=3", Assignment(("a",), Op.SET, 3)),
    ("a=1.5", Assignment(("a",), Op.SET, 1.5)),
    ("a=true", Assignment(("a",), Op.SET, value=True)),
    ("a=yes", Assignment(("a",), Op.SET, "yes")),
    ("a=null", Assignment(("a",), Op.SET, None)),
    ("a=", Assignment(("a",), Op.SET, "")),
    ('a="3"', Assignment(("a",), Op.SET, "3")),
    ("a='true'", Assignment(("a",), Op.SET, "true")),
    ("a=[x, 1]", Assignment(("a",), Op.SET, ["x", 1])),
    ("a={x: {y: 1}}", Assignment(("a",), Op.SET, {"x": {"y": 1}})),
    ("a=b=c", Assignment(("a",), Op.SET, "b=c")),
    ("a=x # y: z", Assignment(("a",), Op.SET, "x # y: z")),
    ("a+=x", Assignment(("a",), Op.ADD, "x")),
    ("a-=x", Assignment(("a",), Op.REMOVE, "x")),
    ("a-", Assignment(("a",), Op.UNSET)),
    ("a-b.c-d=x", Assignment(("a-b", "c-d"), Op.SET, "x")),
    ("a[0].b=x", Assignment(("a", 0, "b"), Op.SET, "x")),
    ("a[-1]-", Assignment(("a", -1), Op.UNSET)),
    ('m["a.b/c"]=x', Assignment(("m", "a.b/c"), Op.SET, "x")),
    ("m['a=b-']=x", Assignment(("m", "a=b-"), Op.SET, "x")),
    (r"m.a\.b/c=x", Assignment(("m", "a.b/c"), Op.SET, "x")),
]


@pytest.mark.parametrize(("text", "meant"), GOOD, ids=[text for text, _ in GOOD])
def test_an_edit_is_read(text: str, meant: Assignment) -> None:
    found = parse(text)
    assert found == meant
    assert type(found.value) is type(meant.value)


BAD = ["", "a", "=x", "a..b=x", ".a=x", "a[x]=1", "a[0", 'a="x', "a=[x", "a=.inf", "a=.nan", "a+x"]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_edit_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse(text)


def test_a_value_may_be_forced_to_be_text() -> None:
    assert parse("a=1.10", as_text=True).value == "1.10"


def test_a_path_stands_alone() -> None:
    assert parse_path("spec.hosts[0]") == ("spec", "hosts", 0)
    with pytest.raises(InvalidInputError, match=r"^path: 'spec\.' is not a path"):
        parse_path("spec.")
