"""What is wrong with outputs, facts and attention of a kit.yaml, and what each key comes to."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from ground.errors import InvalidInputError
from orderkit.core.kit.consistency import problems
from orderkit.core.kit.pack import kit_of, read_kit
from yamlfiles import yaml11

STATUS = {
    "url": {"type": "string"},
    "paused": {"type": "boolean"},
    "spent": {"type": "number"},
    "pod": {"type": "object", "properties": {"name": {"type": "string"}}},
}


def definition() -> dict[str, Any]:
    properties = {
        "spec": {
            "type": "object",
            "properties": {"size": {"type": "integer"}, "label": {"type": "string"}},
        },
        "status": {"type": "object", "properties": STATUS},
    }
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xbots.example.org"},
        "spec": {
            "group": "example.org",
            "names": {"kind": "XBot", "plural": "xbots"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "referenceable": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
    }


CHANGES = [{"name": "grow", "fields": ["size"]}]


@pytest.mark.parametrize(
    ("entry", "at", "says", "hint"),
    [
        (
            {"outputs": [{"name": "chat", "path": "ulr"}]},
            ("outputs", 0, "path"),
            "is not a field of the XRD's status",
            "did you mean 'url'?",
        ),
        (
            {"outputs": [{"name": "pod", "path": "pod"}]},
            ("outputs", 0, "path"),
            "cannot be shown: it is an object",
            "name a text",
        ),
        (
            {"outputs": [{"name": "chat", "path": "paused", "link": True}]},
            ("outputs", 0, "link"),
            "cannot be a link: it is a boolean",
            "leave 'link' out",
        ),
        (
            {"outputs": [{"name": "chat", "path": "url", "link": True, "secret": True}]},
            ("outputs", 0, "link"),
            "cannot be a link and a secret",
            "leave one",
        ),
        (
            {"outputs": [{"name": "chat", "path": "url"}, {"name": "chat", "path": "pod.name"}]},
            ("outputs", 1, "name"),
            "is the name of two outputs",
            "",
        ),
        (
            {"outputs": [{"name": "p", "secret": {"name": "{spec.siez}-x", "key": "k"}}]},
            ("outputs", 0, "secret", "name"),
            "is not a field of spec, status or metadata",
            "did you mean 'spec.size'?",
        ),
        (
            {"facts": [{"name": "x", "path": "url", "format": "bytes"}]},
            ("facts", 0, "format"),
            "is for numbers: 'url' is a string",
            "leave it out",
        ),
        (
            {"facts": [{"name": "x", "path": "url", "spend": True}]},
            ("facts", 0, "spend"),
            "is money, and 'unit' does not say in which currency",
            "unit: USD",
        ),
        (
            {"attention": [{"when": "status.pausd", "sentence": "x"}]},
            ("attention", 0, "when"),
            "is refused: undefined field 'pausd' not found",
            "status.paused",
        ),
        (
            {"attention": [{"when": "status.url", "sentence": "x"}]},
            ("attention", 0, "when"),
            "is refused: it is string, not true or false",
            "CEL condition",
        ),
        (
            {"attention": [{"when": "status.url > 1", "sentence": "x"}]},
            ("attention", 0, "when"),
            "no matching overload",
            "CEL condition",
        ),
        (
            {"attention": [{"when": "status.(", "sentence": "x"}]},
            ("attention", 0, "when"),
            "Syntax error",
            "CEL condition",
        ),
        (
            {"attention": [{"when": "true", "sentence": "{size} is too small"}]},
            ("attention", 0, "sentence"),
            "is not a field of spec, status or metadata",
            "did you mean 'spec.size'?",
        ),
        (
            {"attention": [{"when": "true", "sentence": "x", "change": "gorw"}]},
            ("attention", 0, "change"),
            "is not a change of this kit",
            "did you mean 'grow'?",
        ),
        (
            {
                "changes": [
                    {
                        "name": "grow",
                        "fields": ["size"],
                        "atLeast": {"path": "spend", "title": "Spent", "why": "so"},
                    }
                ]
            },
            ("changes", 0, "atLeast", "path"),
            "is not a field of the XRD's status",
            "did you mean 'spent'?",
        ),
        (
            {
                "changes": [
                    {
                        "name": "grow",
                        "fields": ["size"],
                        "atLeast": {"path": "url", "title": "Spent", "why": "so"},
                    }
                ]
            },
            ("changes", 0, "atLeast", "path"),
            "is a string in the XRD's status, not a number",
            "name a number",
        ),
        (
            {
                "changes": [
                    {
                        "name": "grow",
                        "fields": ["label"],
                        "atLeast": {"path": "spent", "title": "Spent", "why": "so"},
                    }
                ]
            },
            ("changes", 0, "atLeast"),
            "belongs to a change of exactly one field, a number",
            "make a change of that field alone",
        ),
    ],
)
def test_what_cannot_work_with_the_xrd_is_named(
    entry: dict[str, Any], at: tuple[Any, ...], says: str, hint: str
) -> None:
    spec = {"changes": CHANGES, **entry}

    (problem,) = problems(kit_of("bot", spec, definition()), spec)

    assert problem.steps == ("spec", *at)
    assert says in problem.rule
    assert hint in problem.hint


def test_what_fits_is_no_problem() -> None:
    spec = {
        "changes": CHANGES,
        "outputs": [
            {"name": "chat", "path": "url", "link": True},
            {"name": "token", "secret": {"name": "{metadata.name}-{spec.size}", "key": "token"}},
        ],
        "facts": [{"name": "spent", "path": "spent", "format": "number", "unit": "USD"}],
        "attention": [
            {
                "when": "status.paused && metadata.labels['a'] == 'b'",
                "sentence": "{status.spent} of {spec.size} for {metadata.name}",
                "change": "grow",
                "button": "More",
            }
        ],
    }

    assert list(problems(kit_of("bot", spec, definition()), spec)) == []


def read(spec: dict[str, Any]) -> Any:
    document = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "Kit",
        "metadata": {"name": "bot"},
        "spec": spec,
    }
    files = {
        PurePosixPath("templates/bot/kit.yaml"): yaml11.dump(document).encode(),
        PurePosixPath("gitops/apis/bot/definition.yaml"): yaml11.dump(definition()).encode(),
    }
    return read_kit("bot", files)


def test_objects_below_facts_are_fixtures_as_in_packs_from_before() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

    kit = read({"facts": [config, {"name": "spent", "path": "spent"}]})

    assert kit.fixtures == (config,)
    assert [fact.title for fact in kit.facts] == ["Spent"]


@pytest.mark.parametrize(
    "spec",
    [
        {"outputs": [{"name": "chat"}]},
        {"outputs": [{"name": "chat", "secret": False}]},
        {"outputs": [{"name": "chat", "path": "url", "secret": {"name": "a", "key": "b"}}]},
        {"outputs": [{"name": "chat", "secret": {"name": "a", "key": "b"}, "link": True}]},
        {"outputs": [{"name": "<b>", "path": "url"}]},
        {"facts": [{"name": "spent"}]},
        {"facts": [{"apiVersion": "v1", "kind": "ConfigMap"}]},
        {"attention": [{"when": "true"}]},
        {"attention": [{"when": "true", "sentence": "x", "button": "Press"}]},
    ],
)
def test_entries_of_another_shape_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        read(spec)
