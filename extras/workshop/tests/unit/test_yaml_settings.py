"""Fields that a form takes as YAML: what the text may set, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from kitforms import Made, xrd_of

from ground.errors import InvalidInputError
from orderkit.core.kit.change_forms import changes_of, form_data, form_paths, order_data
from orderkit.core.kit.form_values import read_settings, yaml_roots
from orderkit.core.order.change.change_fields import entered_edits
from orderkit_workshop.check.trial_runs import xr_of
from orderkit_workshop.generate.kit_draft import KEPT, form_draft

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}


def group(*required: str, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


WINDOW = group("day", day={**TEXT, "enum": ["mon", "sun"]}, hours=NUMBER)
PARAMETERS = group(
    "region",
    region=TEXT,
    domain=TEXT,
    password=TEXT,
    backup=group(
        plan=TEXT,
        window=WINDOW,
        tags={"type": "object", "additionalProperties": TEXT},
        copies={"type": "array", "items": WINDOW},
        token=TEXT,
    ),
    extra={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
KIT = {
    "unfold": "parameters",
    "yamlFields": [
        "parameters.backup.window",
        "parameters.backup.tags",
        "parameters.backup.copies",
        "parameters.extra",
    ],
    "hidden": {"parameters.domain": {"from": "BASE_DOMAIN", "pattern": "^[a-z.]+$"}},
}


@pytest.fixture(scope="module")
def made() -> Made:
    return Made(group("parameters", parameters=PARAMETERS), KIT)


def ordered(made: Made, text: str, **values: Any) -> Any:
    entered = {"region": "eu", "domain": "x.org", "more_settings": text, **values}
    return made.xr(entered)["spec"]["parameters"]


def refused(made: Made, text: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        read_settings(made.kit, text, yaml_roots(made.kit))
    return f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("text", "backup"),
    [
        ("backup: {window: {day: sun}}", {"window": {"day": "sun"}}),
        ("backup:\n  tags: {}\n", {"tags": {}}),
        ("backup:\n  copies: []\n", {"copies": []}),
        (
            "backup:\n  copies:\n    - day: mon\n      hours: 3\n    - {day: sun}\n",
            {"copies": [{"day": "mon", "hours": 3}, {"day": "sun"}]},
        ),
        ('backup: {tags: {"a: b": "yes", c: "1.0"}}', {"tags": {"a: b": "yes", "c": "1.0"}}),
        ("backup:\r\n  tags:\r\n    a: '${{ values.x }} {% if %}'\r\n", {
            "tags": {"a": "${{ values.x }} {% if %}"}
        }),
    ],
)  # fmt: skip
def test_what_the_text_sets_is_what_the_xr_has(
    made: Made, text: str, backup: dict[str, Any]
) -> None:
    assert ordered(made, text)["backup"] == backup


def test_the_text_and_the_form_share_a_group(made: Made) -> None:
    text = "backup: {window: {day: mon, hours: 2}}\nextra: {any: [1, {b: null}]}"

    assert ordered(made, text, backup={"plan": "daily"}) == {
        "region": "eu",
        "domain": "x.org",
        "backup": {"plan": "daily", "window": {"day": "mon", "hours": 2}},
        "extra": {"any": [1, {"b": None}]},
    }


def test_without_a_text_nothing_is_set(made: Made) -> None:
    for text in ("", "# nothing\n", "---\n", "{}"):
        assert ordered(made, text) == {"region": "eu", "domain": "x.org"}


@pytest.mark.parametrize(
    ("reason", "text", "says"),
    [
        ("asked for elsewhere", "region: us", "region: 'us' cannot be set in more_settings"),
        ("asked for in the group", "backup: {plan: x}", "the form has a field of its own"),
        ("the platform's", "domain: evil.org", "domain: 'evil.org' is set by the platform"),
        ("a secret", "password: hunter2", "password: '***' looks like a secret"),
        ("a secret inside", "backup: {token: hunter2}", "backup.token: '***' looks like a secret"),
        ("metadata", "metadata: {name: x}", "metadata: {'name': 'x'} cannot be set"),
        ("the group itself", "parameters: {extra: {}}", "parameters: {'extra': {}} cannot be set"),
        ("misspelt", "backup: {windwo: {day: sun}}", "did you mean 'backup.window'?"),
        ("wrong type", "backup: {window: {day: sun, hours: two}}", "backup.window.hours: 'two'"),
        ("not in the enum", "backup: {window: {day: fri}}", "backup.window.day: 'fri' is refused"),
        ("unknown inside", "backup: {window: {day: sun, h: 1}}", "backup.window.h: 1 is refused"),
        ("a secret's own group", "backup: 1", "backup: 1 is not a group of fields"),
        ("incomplete", "backup: {window: {hours: 1}}", "backup.window.day"),
        ("no map", "- a", "is not a map of fields"),
        ("no YAML", "a: [", "is not usable YAML: line"),
        ("a tab", "backup:\n\twindow: {}", "line 2"),
        ("twice", "extra: {}\nextra: {a: 1}", "line 2: key 'extra' is given twice"),
        ("two documents", "extra: {}\n---\nextra: {}", "has more than one document"),
        ("an anchor", "extra: &a {b: 1}\nbackup: {tags: *a}", "aliases"),
        ("a tag", "extra: !!python/object:os.system {}", "tag"),
        ("a large number", "extra: {a: 9007199254740993}", "is not between"),
        ("infinite", "extra: {a: .inf}", "cannot be written as JSON"),
        ("a prototype", "extra: {__proto__: {a: 1}}", "is not a name that a portal keeps"),
        ("a line break of YAML 1.1", 'extra: {a: "x\\u2028y"}', "has a line break"),
        ("a control character", 'extra: {a: "\\x07"}', "has a control character"),
        ("a list", ["extra"], "is not a text"),
        ("long", "a" * 20_001, "is not a text of at most 20000 characters"),
    ],
)
def test_the_text_sets_nothing_else(made: Made, reason: str, text: Any, says: str) -> None:
    message = refused(made, text)

    assert says in message, reason
    assert "hunter2" not in message


def test_no_text_leaves_its_fields(made: Made) -> None:
    """A template writes the values itself, so even an answer that was forged stays inside."""
    files = made.skeleton()

    manifest = files["manifests/xthing.yaml"].decode()
    assert "values.yaml.parameters.backup.window" in manifest
    assert "values.yaml.parameters.region" not in manifest
    assert "values.yaml.metadata" not in manifest


SPEC = {
    "parameters": {
        "region": "eu",
        "backup": {"plan": "daily", "window": {"day": "sun", "hours": 2}, "tags": {"a": "b"}},
    }
}


def edits(made: Made, **values: Any) -> dict[str, Any]:
    (change,) = changes_of(made.kit)
    shown = form_data(made.kit, change, order="thing-a", base="0" * 40, spec=SPEC)
    entered = {
        name: value for name, value in shown.items() if "_id" not in name and name != "base_commit"
    }
    return {
        edit.path: edit.value if edit.op == "set" else None
        for edit in entered_edits(
            made.kit,
            {**entered, **values},
            shown_spec=SPEC,
            form=form_paths(made.kit, change),
            roots=yaml_roots(made.kit, change.fields),
        )
    }  # fmt: skip


def test_a_change_form_shows_the_text_of_what_is_set(made: Made) -> None:
    (change,) = changes_of(made.kit)

    data = form_data(made.kit, change, order="thing-a", base="0" * 40, spec=SPEC)

    assert yaml.safe_load(data["more_settings"]) == {
        "backup": {"window": {"day": "sun", "hours": 2}, "tags": {"a": "b"}}
    }
    assert (data["region"], data["backup"]) == ("eu", {"plan": "daily"})


def test_a_change_of_the_text_is_a_change_of_these_fields_alone(made: Made) -> None:
    assert edits(made) == {}
    assert edits(made, more_settings="backup: {window: {day: mon, hours: 2}, tags: {a: b}}") == {
        "parameters.backup.window.day": "mon"
    }
    assert edits(made, more_settings="backup: {tags: {a: b, c: d}}") == {
        "parameters.backup.window": None,
        "parameters.backup.tags.c": "d",
    }
    assert edits(made, more_settings="") == {
        "parameters.backup.window": None,
        "parameters.backup.tags": None,
    }
    assert edits(made, region="us") == {"parameters.region": "us"}


def test_a_form_that_is_older_than_the_text_does_not_empty_it(made: Made) -> None:
    (change,) = changes_of(made.kit)

    assert not entered_edits(
        made.kit,
        {"region": "eu", "backup": {"plan": "daily"}},
        shown_spec=SPEC,
        form=form_paths(made.kit, change),
        roots=yaml_roots(made.kit, change.fields),
    )


def test_adopting_an_order_answers_its_form_with_the_text(made: Made) -> None:
    spec = {"parameters": {**SPEC["parameters"], "domain": "x.org"}}

    answers = order_data(made.kit, spec, order="thing-a", team="ae86")

    assert made.xr(answers)["spec"] == spec


def test_an_example_may_have_the_text(made: Made) -> None:
    xr = xr_of(made.kit, {"name": "a", "region": "eu", "more_settings": "extra: {b: 1}"})

    assert xr["spec"]["parameters"] == {"region": "eu", "extra": {"b": 1}}


# --- what import writes into kit.yaml


def draft(schema: Schema) -> dict[str, Any]:
    return form_draft(xrd_of(schema))


@pytest.mark.parametrize(
    ("reason", "schema", "expected"),
    [
        ("a plain form", group(a=TEXT, deletionPolicy=TEXT), {}),
        (
            "one group of parameters",
            group("parameters", parameters=group("a", a=TEXT), deletionPolicy=TEXT),
            {"unfold": "parameters"},
        ),
        ("beside another group", group(parameters=group(a=TEXT), network=group(b=TEXT)), {}),
        ("a name that is taken", group(parameters=group(a=TEXT), a=TEXT), {}),
        ("optional with required fields", group(parameters=group("a", a=TEXT)), {}),
        (
            "infrastructure inside a group",
            group(db=group(size=TEXT, deletionPolicy=TEXT, cloud=group(claimRef=TEXT))),
            {"yamlFields": ["db.deletionPolicy", "db.cloud"]},
        ),
    ],
)
def test_import_drafts_the_form(reason: str, schema: Schema, expected: dict[str, Any]) -> None:
    assert draft(schema) == expected, reason


def large() -> Schema:
    """258 values in twelve groups, two of them required."""
    leaf = {f"f{n:02d}": TEXT for n in range(18)}
    inner = group("f00", **leaf, deep=group(**{f"d{n}": NUMBER for n in range(3)}))
    groups = {f"group{n:02d}": inner for n in range(12)}
    own = {f"top{n}": TEXT for n in range(6)}
    return group("parameters", parameters=group("group00", "top0", **own, **groups))


def test_a_large_xrd_keeps_what_is_required_and_as_much_as_people_read() -> None:
    drafted = draft(large())
    made = Made(large(), drafted)
    paths = set(drafted["yamlFields"])
    values = sum(1 for root in yaml_roots(made.kit) for field in root.walk() if not field.fields)

    assert drafted["unfold"] == "parameters"
    assert values >= 258 - KEPT
    assert "parameters.group11" in paths
    assert not paths & {"parameters.group00", "parameters.group00.f00", "parameters.top0"}
    assert len(made.template.pages) <= 8
    assert list(made.template.pages[-1]["properties"]) == ["more_settings"]
    xr = made.xr(
        {"top0": "a", "group00": {"f00": "b"}, "more_settings": "group11: {f00: c, f17: d}"}
    )
    assert xr["spec"]["parameters"] == {
        "top0": "a",
        "group00": {"f00": "b"},
        "group11": {"f00": "c", "f17": "d"},
    }  # fmt: skip
