"""``import`` of kit.yaml: what it adds to a kit, and what cannot work."""

from __future__ import annotations

from typing import Any

import pytest

from orderkit.core.kit.consistency import problems
from orderkit.core.kit.kit_file import Direction, How
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import kit_of
from orderkit.core.kit.xrd_fields import fields_of

IMPORT = {"names": {"bucket": "taken.bucket", "key": "taken.key"}, "manage": "manage"}
CHANGES = [{"name": "grow", "fields": ["size"]}]


def definition(**spec: Any) -> dict[str, Any]:
    text = {"type": "string"}
    properties = {
        "size": {"type": "integer"},
        "manage": {"type": "boolean"},
        "taken": {"type": "object", "properties": {"bucket": text, "key": text}},
        **spec,
    }
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xstores.example.org"},
        "spec": {
            "group": "example.org",
            "names": {"kind": "XStore", "plural": "xstores"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "referenceable": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def kit(spec: dict[str, Any], **fields: Any) -> Kit:
    return kit_of("store", spec, definition(**fields))


def test_the_form_asks_for_names_and_reviewed_changes_do_the_rest() -> None:
    read = kit({"import": IMPORT, "changes": CHANGES})

    asked = [field.path for field in fields_of(read).form if field.asked]
    assert asked == ["size", "taken"]
    assert [(change.name, change.fields, change.how) for change in read.changes] == [
        ("grow", ("size",), How.DIRECT),
        ("import", ("taken.bucket", "taken.key"), How.REVIEW),
        ("manage", ("manage",), How.REVIEW),
    ]
    assert not list(problems(read, {"import": IMPORT, "changes": CHANGES}))


def test_changes_that_the_kit_declares_stay() -> None:
    own = [
        {"name": "hand-over", "fields": ["manage"], "how": "review", "who": ["platform"]},
        {"name": "fixed", "fields": ["taken"], "direction": "never"},
    ]
    read = kit({"import": IMPORT, "changes": own})

    assert [change.name for change in read.changes] == ["hand-over", "fixed"]
    assert read.changes[1].direction is Direction.NEVER
    assert not list(problems(read, {"import": IMPORT, "changes": own}))


@pytest.mark.parametrize(
    ("spec", "fields", "at", "rule"),
    [
        ({"names": {"bucket": "taken.bukket"}}, {}, "bucket", "is not a field of the XRD"),
        ({"names": {"bucket": "size"}}, {}, "bucket", "is not a text"),
        ({"manage": "size"}, {}, "manage", "is not yes-or-no"),
        (
            {},
            {"manage": {"type": "boolean", "default": True}},
            "manage",
            "is set in every order",
        ),
    ],
)
def test_fields_that_cannot_be_meant(
    spec: dict[str, Any], fields: dict[str, Any], at: str, rule: str
) -> None:
    written = {"import": {**IMPORT, **spec}, "changes": CHANGES}

    found = [
        p for p in problems(kit(written, **fields), written) if p.steps[:2] == ("spec", "import")
    ]

    assert [(problem.steps[-1], problem.rule) for problem in found] == [(at, rule)]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ([], "needs changes: without them every field may change directly"),
        (
            [{"name": "manage", "fields": ["manage"]}],
            "is a field of an import: its change needs a review",
        ),
        (
            [
                {"name": "names", "fields": ["taken"]},
                {"name": "m", "fields": ["manage"], "how": "review"},
            ],
            "is a field of an import: its change needs a review",
        ),
    ],
)
def test_nothing_is_taken_over_without_a_review(changes: list[dict[str, Any]], rule: str) -> None:
    written = {"import": IMPORT, "changes": changes}

    assert rule in {problem.rule for problem in problems(kit(written), written)}
