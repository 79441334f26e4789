"""A field by the name a person gave it, and what an edit makes of its value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import InvalidInputError, UsageError
from ground.objects.values import path_text, with_value
from kubeschema.field_paths import steps_of
from orderkit.core.kit.change_forms import by_form_names
from orderkit.core.kit.model import Kit
from orderkit.core.order.change import ABSENT, FieldEdit, apply, resolve, same, value_at
from orderkit.core.order.change.change_fields import Op
from orderkit.core.order.change.differences import differences, in_group

SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "teamName": {"type": "string"},
        "stage": {"type": "string", "enum": ["stage1", "stage2"]},
        "budget": {"type": "integer", "default": 10},
        "share": {"type": "number"},
        "guests": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "items": {"type": "object", "properties": {"number": {"type": "integer"}}},
        },
        "storage": {"type": "object", "properties": {"sizeGb": {"type": "integer"}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "on": {"type": "boolean"},
    },
}


def kit_with(spec: dict[str, Any], **more: Any) -> Kit:
    xrd = {
        "spec": {
            "group": "example.org",
            "names": {"kind": "XBay", "plural": "xbays"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "referenceable": True,
                    "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}},
                }
            ],
        }
    }
    return Kit(name="bay", xrd=xrd, title="Bay", **more)


KIT = kit_with(SPEC, aliases={"teamName": "team_name"})


@dataclass(frozen=True)
class Case:
    reason: str
    path: str
    op: Op
    text: str
    before: Any
    after: Any


CASES = [
    Case("text stays text whatever it looks like", "stage", "set", "yes", "stage1", "yes"),
    Case("a form parameter names its field", "team_name", "set", "rx7", "ae86", "rx7"),
    Case("spec. in front is allowed", "spec.stage", "set", "stage2", "stage1", "stage2"),
    Case("a number is read", "budget", "set", "7", 1, 7),
    Case("a number is added", "budget", "add", "5", 7, 12),
    Case("a number is taken away", "budget", "remove", "5", 7, 2),
    Case("a sum begins at the default", "budget", "add", "5", ABSENT, 15),
    Case("a fraction is read", "share", "set", "0.5", ABSENT, 0.5),
    Case("a boolean is read", "on", "set", "true", ABSENT, after=True),
    Case("an element is added at the end", "guests", "add", "eve", ["bob"], ["bob", "eve"]),
    Case("an element is added once", "guests", "add", "bob", ["bob"], ["bob"]),
    Case("a missing list is begun", "guests", "add", "eve", ABSENT, ["eve"]),
    Case("an element is taken out", "guests", "remove", "bob", ["bob", "eve"], ["eve"]),
    Case("taking out what is not there is nothing", "guests", "remove", "x", ["bob"], ["bob"]),
    Case("a whole list is JSON", "guests", "set", '["a", "b"]', ["c"], ["a", "b"]),
    Case("a nested field", "storage.sizeGb", "set", "20", 10, 20),
    Case("a missing map is made", "storage.sizeGb", "set", "20", ABSENT, 20),
    Case("an item of a list", "ports[0].number", "set", "81", 80, 81),
    Case("a key with dots", "labels[a.b/c]", "set", "1", ABSENT, "1"),
    Case("unknown fields where they are kept", "extra.any.thing", "set", "[1]", ABSENT, [1]),
    Case("text where no type is known", "extra.word", "set", "hello", ABSENT, "hello"),
    Case("a field is removed", "budget", "unset", "", 7, ABSENT),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_an_edit_gives_the_value_that_is_meant(case: Case) -> None:
    target = resolve(KIT, FieldEdit(case.path, case.op, case.text, typed=True))
    spec: dict[str, Any] = {"ports": [{"number": 80}]}
    spec = with_value(spec, target.steps, case.before)

    after = apply(spec, [target])

    assert same(value_at(after, target.steps), case.after), after


@pytest.mark.parametrize(
    ("path", "op", "text", "told"),
    [
        ("stag", "set", "x", "did you mean 'stage'?"),
        ("storage.size", "set", "1", "did you mean 'storage.sizeGb'?"),
        ("stage.deeper", "set", "1", "use one of: team_name, "),
        ("", "set", "1", "use one of: team_name, "),
        ("ports[x].number", "set", "1", "use one of: team_name, "),
        ("budget", "set", "many", "for example 3"),
        ("budget", "set", "1.5", ""),
        ("budget", "set", "true", ""),
        ("budget", "add", "[1]", ""),
        ("guests", "set", "eve", "for example"),
        ("storage", "set", "[]", ""),
    ],
)
def test_what_is_no_field_or_no_value_of_it_is_refused(
    path: str, op: Op, text: str, told: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        resolve(KIT, FieldEdit(path, op, text, typed=True))

    assert told in caught.value.hint


def test_a_field_that_is_none_cannot_be_removed_in_the_words_that_were_typed() -> None:
    with pytest.raises(InvalidInputError, match="note: 'note-' cannot be removed: kit"):
        resolve(KIT, FieldEdit("note", "unset", typed=True))


@pytest.mark.parametrize(
    ("path", "op", "before"),
    [("stage", "add", {"stage": "x"}), ("budget", "add", {"budget": "x"}),
     ("ports[3].number", "set", {"ports": []}), ("storage.sizeGb", "set", {"storage": 3})],
)  # fmt: skip
def test_an_edit_that_does_not_fit_what_is_there_is_refused(
    path: str, op: Op, before: dict[str, Any]
) -> None:
    target = resolve(KIT, FieldEdit(path, op, 1))

    with pytest.raises(InvalidInputError):
        apply(before, [target])


_keys = st.text(st.sampled_from("ab.[x"), min_size=1, max_size=4).filter(
    lambda text: not set("[]") & set(text)
)


@given(st.lists(st.one_of(_keys, st.integers(0, 9)), min_size=1, max_size=4))
def test_a_path_is_read_as_it_is_written(steps: list[str | int]) -> None:
    assert steps_of(path_text(steps)) == [str(step) for step in steps]


_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=2)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_json, st.lists(st.text(max_size=2), min_size=1, max_size=3), _json)
def test_a_value_that_was_set_is_there_and_the_original_is_untouched(
    spec: Any, steps: list[str], new: Any
) -> None:
    before = repr(spec)
    try:
        after = with_value(spec, steps, new)
    except KeyError:
        return

    assert same(value_at(after, steps), new)
    assert repr(spec) == before
    assert value_at(with_value(after, steps, ABSENT), steps) is ABSENT


# --- one field has several names

GROUPED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "parameters": {
            "type": "object",
            "properties": {
                "storage": {"type": "integer"},
                "teamName": {"type": "string"},
                "disk": {"type": "object", "properties": {"size": {"type": "integer"}}},
            },
        },
        "region": {"type": "string"},
    },
}
FORM = ("storage", "team_name", "disk", "region")


def grouped_kit() -> Kit:
    return kit_with(GROUPED, unfold="parameters", aliases={"teamName": "team_name"})


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("storage", "parameters.storage"),
        ("parameters.storage", "parameters.storage"),
        ("spec.parameters.storage", "parameters.storage"),
        ("spec.storage", "parameters.storage"),
        ("team_name", "parameters.teamName"),
        ("parameters.team_name", "parameters.teamName"),
        ("parameters.teamName", "parameters.teamName"),
        ("disk.size", "parameters.disk.size"),
        ("region", "region"),
        ("spec.region", "region"),
    ],
)
def test_a_change_understands_every_name_of_a_field(name: str, path: str) -> None:
    value = "1" if path.endswith(("storage", "size")) else "x"

    assert resolve(grouped_kit(), FieldEdit(name, "set", value, typed=True)).path == path


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("storage", "storage"),
        ("parameters.storage", "storage"),
        ("spec.parameters.storage", "storage"),
        ("teamName", "team_name"),
        ("parameters.teamName", "team_name"),
        ("spec.parameters.teamName", "team_name"),
        ("team_name", "team_name"),
        ("nothing", "nothing"),
    ],
)
def test_an_order_understands_every_name_of_a_field(name: str, parameter: str) -> None:
    assert by_form_names(grouped_kit(), FORM, {name: "1"}) == {parameter: "1"}


def test_a_field_that_is_given_twice_by_two_names_is_refused() -> None:
    with pytest.raises(UsageError, match="storage is given twice: '1' and '2'"):
        by_form_names(grouped_kit(), FORM, {"storage": "1", "spec.parameters.storage": "2"})


def test_people_see_the_name_that_the_form_has() -> None:
    old, new = ({"parameters": {"storage": size}} for size in (1, 2))
    (difference,) = in_group(differences(old, new), "parameters")

    assert str(difference) == "storage 1 → 2"
    assert difference.answer.field == "parameters.storage", "programs keep the XRD's path"
    with pytest.raises(InvalidInputError) as refused:
        resolve(grouped_kit(), FieldEdit("parameters.storag", "set", 1))
    assert refused.value.hint == "did you mean 'storage'?"
