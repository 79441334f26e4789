"""Forms of changes: what they show is what was ordered, and an untouched form changes nothing."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from chances import Chances
from hypothesis import given, settings
from hypothesis import strategies as st
from kitforms import Made

from ground.errors import InvalidInputError
from orderkit.core.kit.change_forms import NOT_SET, change_named, changes_of, form_data, form_paths
from orderkit.core.order.change.change_fields import FieldEdit, entered_edits
from softwaretemplates.render import render_data
from softwaretemplates.template import Template, parse_template

BASE = "c" * 40
PLACE = "__ORDERKIT_SERVICE_URL__/v1/orders/thing-ae"
TEXT = {"type": "string"}
FIELDS: dict[str, Any] = {
    "teamName": {**TEXT, "pattern": "^[a-z]{2,9}$"},
    "text": TEXT,
    "size": {"type": "integer", "minimum": 0, "maximum": 100},
    "ratio": {"type": "number"},
    "on": {"type": "boolean"},
    "level": {**TEXT, "enum": ["low", "middle", "high"]},
    "count": {"type": "integer", "enum": [1, 2, 4]},
    "hosts": {"type": "array", "items": TEXT},
    "labels": {"type": "object", "additionalProperties": TEXT},
    "port": {"x-kubernetes-int-or-string": True},
    "preset": {**TEXT, "default": "usual"},
    "nested": {
        "type": "object",
        "properties": {"gb": {"type": "integer"}, "class": TEXT, "deep": {"type": "object",
                       "properties": {"on": {"type": "boolean"}}}},
    },
    "members": {"type": "array", "items": {
        "type": "object", "required": ["name"], "properties": {"name": TEXT, "admin": {
            "type": "boolean"}}}},
}  # fmt: skip
SPEC = {"required": ["teamName"], "properties": FIELDS}
KIT = {"nameFrom": "teamName", "teamFrom": "teamName", "aliases": {"text": "some_text"}}
WORDS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12),
    st.sampled_from(
        ["yes", "0o17", "1e3", "null", "~", "- a", "a: b", "${{ x }}", "{% if %}", "#"]
    ),
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "some_text": WORDS,
        "size": st.integers(0, 100),
        "ratio": st.floats(-1000, 1000, allow_nan=False, width=16),
        "on": st.booleans(),
        "level": st.sampled_from(["low", "middle", "high"]),
        "count": st.sampled_from([1, 2, 4]),
        "hosts": st.lists(WORDS, max_size=3),
        "labels": st.dictionaries(WORDS, WORDS, max_size=3),
        "port": st.one_of(st.integers(1, 65535), st.just("http")),
        "preset": WORDS,
        "nested": st.fixed_dictionaries(
            {},
            optional={
                "gb": st.integers(-5, 5),
                "class": WORDS,
                "deep": st.fixed_dictionaries({}, optional={"on": st.booleans()}),
            },
        ),
        "members": st.lists(
            st.fixed_dictionaries({"name": WORDS}, optional={"admin": st.booleans()}),
            max_size=2,
        ),
    },
)


def without_empties(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out lists and groups in which nothing was entered: an order does not have them."""
    inner = {k: without_empties(v) if isinstance(v, dict) else v for k, v in values.items()}
    return {key: value for key, value in inner.items() if value not in ([], {})}


@pytest.fixture(scope="module")
def made() -> Made:
    return Made(SPEC, KIT)


def change_form(made: Made, name: str) -> Template:
    data = made.files[PurePosixPath("day2", "thing", f"{name}.yaml")]
    return parse_template(data, name=name)


def test_a_change_form_shows_what_was_entered_into_the_order_form(
    made: Made, chances: Chances
) -> None:
    """And it passes the change's own form, and sending it untouched is not an edit."""
    (change,) = changes_of(made.kit)
    form = change_form(made, change.name)

    @given(values=VALUES)
    @settings(max_examples=chances.count(20, 5000), deadline=None)
    def holds(values: dict[str, Any]) -> None:
        spec = made.xr({"teamName": "ae", **values})["spec"]

        shown = form_data(made.kit, change, order="thing-ae", base=BASE, spec=spec)

        own = {k: v for k, v in shown.items() if k not in ("order_id", "base_commit")}
        assert own == {"preset": "usual", **without_empties(values)}
        filled = form.validate(shown)
        sent = {name: filled[name] for name in own}
        paths = form_paths(made.kit, change)
        assert entered_edits(made.kit, sent, shown_spec=spec, form=paths) == ()

    holds()


def test_untouched_emptied_and_changed_fields_are_told_apart(made: Made) -> None:
    (change,) = changes_of(made.kit)
    spec = {"teamName": "ae", "text": "a", "size": 1, "nested": {"gb": 1, "class": "x"}}
    paths = form_paths(made.kit, change)
    entered = {"some_text": "a", "nested": {"gb": 2}, "hosts": [], "labels": {}, "preset": "usual"}

    assert entered_edits(made.kit, entered, shown_spec=spec, form=paths) == (
        FieldEdit("nested.gb", "set", 2),
        FieldEdit("size", "unset"),
        FieldEdit("nested.class", "unset"),
    )
    assert entered_edits(made.kit, {"hosts": [], "size": 1}, shown_spec=spec) == (
        FieldEdit("hosts", "set", []),
    )
    assert entered_edits(made.kit, {"text": "a", "size": None}) == (
        FieldEdit("text", "set", "a"),
        FieldEdit("size", "unset"),
    )


def test_what_names_the_order_is_in_no_form_of_a_change(made: Made) -> None:
    (change,) = changes_of(made.kit)

    assert "teamName" not in form_paths(made.kit, change)
    assert "nested.deep.on" in form_paths(made.kit, change)


CHANGES = [
    {"name": "level", "title": "Change the level", "fields": ["level"], "direction": "step"},
    {"name": "count", "fields": ["count"], "direction": "grow", "warning": "It takes a while."},
    {"name": "rest", "fields": ["nested.gb", "hosts"]},
    {"name": "text", "fields": ["text"], "direction": "never"},
]


def offered(form: Template, field: str, now: str) -> list[Any]:
    dependencies = form.pages[0]["then"]["dependencies"][f"current_{field}"]["oneOf"]
    (found,) = [
        branch["properties"][field]["enum"]
        for branch in dependencies
        if branch["properties"][f"current_{field}"]["enum"] == [now]
    ]
    return list(found)


def test_a_choice_offers_what_the_kits_rules_allow_next() -> None:
    made = Made(SPEC, {**KIT, "changes": CHANGES})
    level, count = change_form(made, "level"), change_form(made, "count")

    assert offered(level, "level", "low") == ["low", "middle"]
    assert offered(level, "level", "middle") == ["low", "middle", "high"]
    assert offered(level, "level", NOT_SET) == ["low", "middle", "high"]
    assert offered(count, "count", "2") == [2, 4]
    assert count.pages[0]["description"] == "It takes a while."


def test_only_its_fields_are_in_the_form_of_a_change() -> None:
    made = Made(SPEC, {**KIT, "changes": CHANGES})
    change = change_named(made.kit, "rest")
    spec = {"teamName": "ae", "nested": {"gb": 3, "class": "x"}, "hosts": ["a"], "size": 4}

    shown = form_data(made.kit, change, order="thing-ae", base=BASE, spec=spec)

    assert shown == {
        "order_id": "thing-ae",
        "base_commit": BASE,
        "nested": {"gb": 3},
        "hosts": ["a"],
    }
    assert form_paths(made.kit, change) == ("hosts", "nested.gb")
    assert PurePosixPath("day2/thing/text.yaml") not in made.files
    with pytest.raises(InvalidInputError, match="is not a change of"):
        change_named(made.kit, "text")


def test_the_form_of_a_step_accepts_what_is_allowed_and_nothing_else() -> None:
    made = Made(SPEC, {**KIT, "changes": CHANGES})
    change = change_named(made.kit, "level")
    form = change_form(made, "level")
    shown = form_data(made.kit, change, order="thing-ae", base=BASE, spec={"level": "low"})

    assert form.validate({**shown, "level": "middle"})["level"] == "middle"
    with pytest.raises(InvalidInputError):
        form.validate({**shown, "level": "high"})


def day2_entities(made: Made) -> dict[str, Any]:
    """Return the Templates of changes and end by their file's name."""
    return {
        path.stem: yaml.safe_load(data)
        for path, data in made.files.items()
        if path.parts[0] == "day2"
    }


def test_buttons_say_what_they_do_and_titles_differ() -> None:
    made = Made(SPEC, {**KIT, "title": "Big Thing", "changes": CHANGES})
    order = yaml.safe_load(made.files[PurePosixPath("templates/thing/template.yaml")])
    entities = {"order": order, **day2_entities(made)}

    labels = {
        name: entity["spec"]["presentation"]["buttonLabels"]["createButtonText"]
        for name, entity in entities.items()
    }
    titles = {name: entity["metadata"]["title"] for name, entity in entities.items()}

    assert labels == {
        "order": "Order", "level": "Change", "count": "Change", "rest": "Change", "end": "End",
    }  # fmt: skip
    assert titles == {
        "order": "Big Thing",
        "level": "Change the level (Big Thing)",
        "count": "Change count (Big Thing)",
        "rest": "Change rest (Big Thing)",
        "end": "End the Big Thing",
    }


@pytest.mark.parametrize("order", ["thing-ae", "component:default/thing-ae"])
def test_a_form_that_nobody_filled_in_asks_which_order(made: Made, order: str) -> None:
    (change,) = changes_of(made.kit)
    form = change_form(made, change.name)

    entered = form.validate({"order_ref": order})

    assert set(entered) == {"order_ref"}, "a default would look like a change"
    picker = form.pages[0]["else"]["properties"]["order_ref"]
    assert picker["ui:field"] == "EntityPicker"
    assert picker["ui:options"]["catalogFilter"] == [
        {"kind": "Component", "spec.type": "order", "metadata.tags": "thing"}
    ]
    with pytest.raises(InvalidInputError, match="order_ref"):
        form.validate({})
    with pytest.raises(InvalidInputError, match="order_ref"):
        form.validate({"order_ref": "component:other/thing-ae"})


ANSWERS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    (
        {"order_ref": "component:default/thing-ae"}, {"look": {"code": 200, "body": {}}},
        {"Continue: Change the Thing": f"{PLACE}/changes/change/form"},
        "Nothing was changed yet",
    ),
    (
        {"order_id": "thing-ae", "base_commit": BASE},
        {"ask": {"code": 201, "body": {"url": "http://f/c", "message": "Committed"}}},
        {"See it in Git": "http://f/c"},
        "Change the Thing",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("entered", "outputs", "links", "title"), ANSWERS)
def test_a_task_shows_the_change_or_the_way_to_the_filled_in_form(
    entered: dict[str, Any], outputs: dict[str, Any], links: dict[str, str], title: str
) -> None:
    made = Made(SPEC, {**KIT, "title": "Thing"})
    spec = day2_entities(made)["change"]["spec"]
    scope = {
        "parameters": entered,
        "steps": {step: {"output": output} for step, output in outputs.items()},
    }

    def holds(entry: dict[str, Any]) -> bool:
        return "if" not in entry or bool(render_data(entry["if"], scope, name="if"))

    steps = [step["id"] for step in spec["steps"] if holds(step)]
    shown = [link for link in spec["output"]["links"] if holds(link)]
    (text,) = [text for text in spec["output"]["text"] if holds(text)]

    assert steps == [*outputs]
    rendered: Any = render_data(shown, scope, name="links")
    assert {link["title"]: link.get("url") for link in rendered} == {
        **links, "The order in the catalog": None,
    }  # fmt: skip
    assert rendered[-1]["entityRef"] == "component:default/thing-ae"
    assert text["title"] == title


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ({"code": 403, "body": {"error": {"message": "1 → 0 is refused", "hint": "add"}}},
         "1 → 0 is refused (add) — This"),
        ({"code": 504, "body": {"message": "too slow"}}, "too slow — This"),
        ({"code": 500, "body": {"error": {"message": "no", "hint": ""}}}, "no — This"),
        ({"code": 502, "body": {}}, "the service did not say why — This"),
    ],
)  # fmt: skip
def test_a_refused_request_fails_the_task_with_its_sentence(
    made: Made, output: dict[str, Any], sentence: str
) -> None:
    step = day2_entities(made)["end"]["spec"]["steps"][-1]
    scope = {"parameters": {}, "steps": {"ask": {"output": output}}}

    rendered: Any = render_data([step["if"], step["input"]["headers"]], scope, name="step")

    assert rendered == [True, {"sentence": sentence}]
    done = {"parameters": {}, "steps": {"ask": {"output": {"code": 200, "body": {}}}}}
    assert render_data(step["if"], done, name="if") is False


def test_links_lead_from_the_order_to_its_forms() -> None:
    made = Made(SPEC, {**KIT, "title": "A: Thing", "changes": CHANGES})

    entity = yaml.safe_load(made.render({"teamName": "ae"})["catalog-info.yaml"])

    assert [(link["title"], link["url"]) for link in entity["metadata"]["links"]] == [
        ("Change the level", f"{PLACE}/changes/level/form"),
        ("Change count", f"{PLACE}/changes/count/form"),
        ("Change rest", f"{PLACE}/changes/rest/form"),
        ("End the A: Thing", f"{PLACE}/end/form"),
    ]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"changes": [{"name": "end", "fields": ["size"]}]}, "is the name of the end"),
        ({"aliases": {"size": "order_id"}}, "forms of changes need"),
    ],
)
def test_names_that_are_taken_are_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Made(SPEC, {**KIT, **more})
