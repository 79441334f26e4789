"""Plain HTML asks for what the portal's form asks for, and what is entered is read as entered."""

from __future__ import annotations

from typing import Any

import pytest

from ground.errors import InvalidInputError
from orderkit.web.console.html_form import PREFIX, FormPage, with_problems

STAGE = {"type": "string", "enum": ["small", "large"]}
DISK = {"type": "integer"}
BRANCHES = {
    "type": "object",
    "properties": {"stage": STAGE},
    "dependencies": {
        "stage": {
            "oneOf": [
                {"properties": {"stage": {"enum": ["small"]}}},
                {"properties": {"stage": {"enum": ["large"]}, "disk": DISK}, "required": ["disk"]},
            ]
        }
    },
}
CONDITION = {
    "type": "object",
    "properties": {"stage": STAGE},
    "allOf": [
        {
            "if": {"properties": {"stage": {"const": "large"}}},
            "then": {"properties": {"disk": DISK}, "required": ["disk"]},
        }
    ],
}


def sent(**values: str | list[str]) -> dict[str, list[str]]:
    """Return what a browser sends for these inputs."""
    return {
        f"{PREFIX}{name}": value if isinstance(value, list) else [value]
        for name, value in values.items()
    }


@pytest.mark.parametrize("schema", [BRANCHES, CONDITION], ids=["dependencies", "if and then"])
def test_a_field_that_depends_on_an_answer_counts_only_with_it(schema: dict[str, Any]) -> None:
    page = FormPage(schema, {})

    _, disk = page.fields({})

    assert (disk["name"], disk["required"]) == (f"{PREFIX}disk", True)
    assert disk["when"] == {"field": "stage", "values": ["large"]}
    assert page.read(sent(stage="large", disk="7")) == {"stage": "large", "disk": 7}
    assert page.read(sent(stage="small", disk="7")) == {"stage": "small"}


@pytest.mark.parametrize("schema", [BRANCHES, CONDITION], ids=["dependencies", "if and then"])
def test_an_answer_that_is_known_decides_at_once(schema: dict[str, Any]) -> None:
    large, small = (FormPage(schema, {"stage": stage}) for stage in ("large", "small"))

    assert [field["path"] for field in large.fields({})] == ["disk"]
    assert large.fields({})[0]["when"] is None
    assert large.read(sent(disk="7")) == {"disk": 7}
    assert small.fields({}) == []
    assert small.read(sent(disk="7")) == {}


def test_a_field_of_every_answer_is_asked_for_once_as_the_page_itself_has_it() -> None:
    branch = {"properties": {"stage": {"enum": ["small"]}, "name": {"type": "integer"}}}
    schema = {
        "properties": {"stage": STAGE, "name": {"type": "string"}},
        "dependencies": {"stage": {"oneOf": [branch]}},
    }

    for known in ({}, {"stage": "small"}):
        assert FormPage(schema, known).read(sent(name="7"))["name"] == "7"


OF_A = {"oneOf": [{"properties": {"a": {"const": 1}, "x": {"type": "integer"}}}]}
OF_B = {"oneOf": [{"properties": {"b": {"const": 1}, "x": {"type": "string"}}}]}


@pytest.mark.parametrize(
    ("known", "when", "kind"),
    [({}, {"field": "a", "values": [1]}, "number"), ({"b": 1}, None, "text")],
    ids=["two open answers: the first", "one answer is known: that"],
)
def test_a_field_of_two_answers_is_asked_for_once(
    known: dict[str, Any], when: dict[str, Any] | None, kind: str
) -> None:
    page = FormPage({"dependencies": {"a": OF_A, "b": OF_B}}, known)

    (field,) = page.fields({})

    assert (field["path"], field["when"], field["kind"]) == ("x", when, kind)


NOT_ASKED: dict[str, dict[str, Any]] = {
    "a hidden field": {"properties": {"x": {"type": "string", "ui:widget": "hidden"}}},
    "a constant": {"properties": {"x": {"const": 1}}},
    "the answers of a branch": {"properties": {"x": {"enum": ["a"]}}},
    "a property that is no schema": {"properties": {"x": True}},
    "an empty page": {},
    "an empty dependency": {"dependencies": {"a": None}},
    "names that another field requires": {"dependencies": {"a": ["b"]}},
    "a branch of no fields": {"dependencies": {"a": {"oneOf": [{"required": ["b"]}]}}},
    "a condition without a test": {"allOf": [{"then": {"properties": {"x": STAGE}}}]},
    "a test of no field": {"allOf": [{"if": {"required": ["a"]}, "then": {"required": ["b"]}}]},
    "a condition without a consequence": {"allOf": [{"if": {"properties": {"a": {"const": 1}}}}]},
    "a consequence of no field": {
        "allOf": [{"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}}]
    },
}


@pytest.mark.parametrize("case", NOT_ASKED)
def test_a_page_asks_for_no_field_by(case: str) -> None:
    assert FormPage(NOT_ASKED[case], {}).fields({}) == []


def test_a_branch_that_names_no_answer_never_counts() -> None:
    page = FormPage({"dependencies": {"a": {"oneOf": [{"properties": {"x": DISK}}]}}}, {})

    (field,) = page.fields({})

    assert field["when"] == {"field": "a", "values": []}
    assert page.read(sent(x="7")) == {}


SHOWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing but its type": (
        {},
        {"title": "x", "help": "", "placeholder": "", "team": False, "limit": None},
    ),
    "its own title": ({"title": "Plate"}, {"title": "Plate"}),
    "a description": ({"description": "Its size.", "ui:help": "Ask us."}, {"help": "Its size."}),
    "a help": ({"ui:help": "Ask us."}, {"help": "Ask us."}),
    "an example": ({"ui:placeholder": "b-12"}, {"placeholder": "b-12"}),
    "a picker of owners": ({"ui:field": "OwnerPicker"}, {"team": True}),
    "a picker of teams": ({"ui:field": "OwnedEntityPicker"}, {"team": True}),
    "a picker of something else": ({"ui:field": "EntityPicker"}, {"team": False}),
    "as many characters as a line has": ({"maxLength": 120}, {"kind": "text", "limit": 120}),
    "one character more": ({"maxLength": 121}, {"kind": "long"}),
    "a text area": ({"ui:widget": "textarea"}, {"kind": "long"}),
    "a list of anything": ({"type": "array"}, {"kind": "yaml", "choices": []}),
    "a list of several types": ({"type": "array", "items": [STAGE]}, {"kind": "yaml"}),
    "a default": ({"default": "b"}, {"value": "b"}),
    "yes or no": (
        {"type": "boolean"},
        {"choices": [{"value": "true", "title": "yes"}, {"value": "false", "title": "no"}]},
    ),
    "a switch": ({"type": "boolean", "default": False}, {"value": "false", "choices": []}),
    "answers with titles": (
        {"enum": ["a", None, "b"], "ui:enumNames": ["Alpha"]},
        {"choices": [{"value": "a", "title": "Alpha"}, {"value": "b", "title": "b"}]},
    ),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_field_shows_what_its_schema_has(case: str) -> None:
    schema, expected = SHOWN[case]

    (field,) = FormPage({"properties": {"x": {"type": "string", **schema}}}, {}).fields({})

    assert {name: field[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("value", "current", "is_changed"),
    [(4, 3, True), (4, 4, False), (None, 3, False), (4, None, False)],
)
def test_a_field_is_marked_only_if_it_differs_from_what_the_order_has(
    value: int | None, current: int | None, is_changed: object
) -> None:
    (field,) = FormPage({"properties": {"x": DISK}}, {}).fields({"x": value}, {"x": current})

    assert field["changed"] is is_changed


KINDS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "a text": ({"type": "string"}, "text", "a: b"),
    "a long text": ({"type": "string", "maxLength": 500}, "long", "one\ntwo"),
    "a whole number": ({"type": "integer"}, "number", -3),
    "a number": ({"type": "number"}, "number", 1.5),
    "a number of a few": ({"type": "integer", "enum": [1, 2]}, "choice", 2),
    "no": ({"type": "boolean"}, "choice", False),
    "yes": ({"type": "boolean"}, "choice", True),
    "lines of numbers": ({"type": "array", "items": {"type": "integer"}}, "lines", [1, 2]),
    "a map": (
        {"type": "object", "additionalProperties": {"type": "string"}},
        "yaml",
        {"on": "yes", "b": "1"},
    ),
    "a list of objects": (
        {"type": "array", "items": {"type": "object"}},
        "yaml",
        [{"name": "a", "size": 1}, {"name": "b"}],
    ),
    "an empty map": ({"type": "object", "additionalProperties": {"type": "string"}}, "yaml", {}),
    "an empty list": ({"type": "array", "items": {"type": "object"}}, "yaml", []),
}


@pytest.mark.parametrize("case", KINDS)
def test_what_a_field_shows_is_read_as_the_same_value(case: str) -> None:
    schema, kind, value = KINDS[case]
    page = FormPage({"type": "object", "properties": {"x": schema}}, {})

    (field,) = page.fields({"x": value}, {"x": None})

    assert field["kind"] == kind
    assert page.read(sent(x=field["value"])) == {"x": value}
    assert page.read(sent(x=" ")) == {}


def test_what_is_neither_yes_nor_no_stays_text_for_the_schema_to_refuse() -> None:
    page = FormPage({"properties": {"x": {"type": "boolean"}}}, {})

    assert page.read(sent(x="maybe")) == {"x": "maybe"}


@pytest.mark.parametrize("start", ["", "---\n", "---\r\n", "--- \n"])
def test_a_map_may_begin_as_a_document_does(start: str) -> None:
    page = FormPage({"properties": {"x": KINDS["a map"][0]}}, {})

    assert page.read(sent(x=f"{start}b: 'yes'")) == {"x": {"b": "yes"}}


def test_boxes_are_read_as_what_is_ticked() -> None:
    items = {"type": "string", "enum": ["a", "b"], "enumNames": ["first"]}
    switch = {"type": "boolean", "default": True}
    properties = {"some": {"type": "array", "items": items}, "on": switch}
    page = FormPage({"type": "object", "properties": properties}, {})

    some, on = page.fields({"some": ["b"]})
    asked = {f"{PREFIX}{name}.asked": ["1"] for name in properties}

    assert some["choices"] == [
        {"value": "a", "title": "first"},
        {"value": "b", "title": "b"},
    ]
    assert (some["value"], on["kind"], on["value"]) == (["b"], "flag", "true")
    assert page.read({**asked, **sent(some=["a", "b"], on="true")}) == {
        "some": ["a", "b"],
        "on": True,
    }
    assert page.read(asked) == {"some": [], "on": False}
    assert page.read({}) == {}


def test_the_fields_of_an_object_stand_together_and_show_what_changed() -> None:
    inner = {"size": {"type": "integer"}, "secret": {"type": "string", "ui:widget": "hidden"}}
    pit = {"type": "object", "properties": inner, "required": ["size"]}
    page = FormPage({"properties": {"pit": pit, "a": STAGE}, "ui:order": ["a", "pit", "*"]}, {})

    first, group = page.fields({"pit": {"size": 4}}, {"pit": {"size": 3}})
    (size,) = group["fields"]

    assert (first["path"], group["kind"]) == ("a", "group")
    assert (size["name"], size["required"]) == (f"{PREFIX}pit.size", True)
    assert (size["value"], size["current"], size["changed"]) == ("4", "3", True)
    assert page.read(sent(**{"pit.size": "5"})) == {"pit": {"size": 5}}
    assert page.read(sent(**{"pit.size": ""})) == {}


@pytest.mark.parametrize(
    ("schema", "text", "rule"),
    [
        ({"type": "integer"}, "many", "is not a number"),
        ({"type": "number"}, "NaN", "is not a number of JSON"),
        ({"type": "number"}, "inf", "is not a number of JSON"),
        ({"type": "object"}, "a: [", "is not YAML"),
    ],
)
def test_what_is_no_value_is_refused_with_its_field(
    schema: dict[str, Any], text: str, rule: str
) -> None:
    page = FormPage({"properties": {"pit": {"type": "object", "properties": {"x": schema}}}}, {})

    with pytest.raises(InvalidInputError, match=rule) as raised:
        page.read(sent(**{"pit.x": text}))

    assert (raised.value.field, raised.value.value) == ("pit.x", text)


def problem(field: str, rule: str, value: Any, hint: str | None = None) -> dict[str, Any]:
    return {"field": field, "rule": rule, "value": value, "hint": hint}


PATTERN = "does not match '^[a-z]+$'"
WORDS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "nothing given": ({}, problem("x", "is missing", None), "Plate is missing."),
    "an empty text": ({}, problem("x", "is too short", ""), "Plate is missing."),
    "zero": ({}, problem("x", "is less than 1", 0), "Plate: 0 is less than 1."),
    "a pattern": ({}, problem("x", PATTERN, "B 1"), "Plate cannot be 'B 1'."),
    "an example": (
        {"ui:placeholder": "b-1", "enum": ["a"]},
        problem("x", "is missing", None),
        "Plate is missing. For example: b-1",
    ),
    "one of its answers": (
        {"enum": ["a", "b"]},
        problem("x", "is not one of them", "c"),
        "Plate: 'c' is not one of them. For example: a",
    ),
    "a hint": (
        {},
        problem("x", PATTERN, "B 1", "use small letters"),
        "Plate cannot be 'B 1'. Use small letters.",
    ),
    "a hint of a pattern": ({}, problem("x", "is odd", "B", PATTERN), "Plate: 'B' is odd."),
}


@pytest.mark.parametrize("case", WORDS)
def test_what_is_wrong_with_a_field_is_said_in_words(case: str) -> None:
    schema, wrong, words = WORDS[case]
    x = {"type": "string", "title": "Plate", **schema}
    fields = FormPage({"properties": {"x": x}}, {}).fields({})

    (field,) = with_problems(fields, {"problems": [wrong]})

    assert field["wrong"] == words


@pytest.mark.parametrize(
    ("of", "wrong"),
    [
        ("size", ["size"]),
        ("spec.parameters.size", ["size"]),
        ("tags.0", ["tags"]),
        ("pit.size", ["size", "pit.size"]),
        ("resize", []),
        ("sizes", []),
    ],
)
def test_a_problem_stands_at_the_field_that_it_is_about(of: str, wrong: list[str]) -> None:
    tags = {"type": "array", "items": {"type": "string"}}
    pit = {"type": "object", "properties": {"size": DISK}}
    schema = {"properties": {"size": DISK, "tags": tags, "pit": pit}}

    *alone, group = with_problems(
        FormPage(schema, {}).fields({}), {"problems": [problem(of, "is odd", 1)]}
    )

    fields = [*alone, *group["fields"]]
    assert [field["path"] for field in fields if field["wrong"]] == wrong
    assert [field["path"] for field in fields if field["focus"]] == wrong[:1]


def test_a_form_without_problems_has_no_wrong_field() -> None:
    page = FormPage({"properties": {"size": DISK}}, {})

    (field,) = with_problems(page.fields({}), None)

    assert (field["wrong"], field["focus"]) == ("", False)


def test_branches_within_branches_end() -> None:
    endless: dict[str, Any] = {"properties": {"stage": STAGE}}
    endless["dependencies"] = {
        "stage": {"oneOf": [{**endless, "properties": {"stage": {"const": "small"}}}]}
    }
    endless["dependencies"]["stage"]["oneOf"][0]["dependencies"] = endless["dependencies"]

    assert [field["path"] for field in FormPage(endless, {}).fields({})] == ["stage"]


def test_questions_may_follow_from_each_other_twelve_times() -> None:
    schema: dict[str, Any] = {"properties": {"q13": STAGE}}
    for at in reversed(range(13)):
        asked = {f"q{at}": {"const": "large"}, **schema["properties"]}
        branch = {**schema, "properties": asked}
        schema = {"properties": {f"q{at}": STAGE}, "dependencies": {f"q{at}": {"oneOf": [branch]}}}

    paths = [field["path"] for field in FormPage(schema, {}).fields({})]

    assert paths == [f"q{at}" for at in range(13)]
