"""Forms of changes: what they show is what was ordered, and an untouched form changes nothing."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from kitforms import Made
from tests.conftest import Chances

from orderkit.core.errors import InvalidInputError
from orderkit.core.kit.change_forms import NOT_SET, change_named, changes_of, form_data, form_paths
from orderkit.core.order.change.change_fields import FieldEdit
from orderkit.core.order.change.form_answers import entered_edits
from orderkit.core.portal.template import Template, parse_template

BASE = "c" * 40
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
    dependencies = form.pages[0]["dependencies"][f"current_{field}"]["oneOf"]
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


def test_links_lead_from_the_order_to_its_forms() -> None:
    made = Made(SPEC, {**KIT, "title": "A: Thing", "changes": CHANGES})

    entity = yaml.safe_load(made.render({"teamName": "ae"})["catalog-info.yaml"])

    place = "__ORDERKIT_SERVICE_URL__/v1/orders/thing-ae"
    assert [(link["title"], link["url"]) for link in entity["metadata"]["links"]] == [
        ("Change the level", f"{place}/changes/level/form"),
        ("Change count", f"{place}/changes/count/form"),
        ("Change rest", f"{place}/changes/rest/form"),
        ("End the A: Thing", f"{place}/end/form"),
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
