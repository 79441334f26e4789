# ruff: noqa: E501 - one case a row
"""What is wrong with a kit is told with file, line, value and the way out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import pytest
from kitforms import kit_files

from ground.errors import InvalidInputError
from orderkit.core.kit.checked_kits import checked_kit, refusals
from orderkit.core.kit.pack import read_kit
from orderkit_workshop.generate.kit_files import generate

SPEC: dict[str, Any] = {
    "required": ["teamName"],
    "properties": {
        "teamName": {"type": "string", "pattern": "^[a-z]+$"},
        "stage": {"type": "string", "enum": ["one", "two"], "default": "one"},
        "size": {"type": "integer"},
        "domain": {"type": "string"},
        "storage": {"type": "object", "properties": {"gb": {"type": "integer"}}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "zones": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        "paused": {"type": "boolean"},
    },
}
HEAD = "apiVersion: orderkit.dev/v1alpha1\nkind: Kit\nmetadata: {name: thing}\nspec:\n"
KIT, XRD = "templates/thing/kit.yaml", "gitops/apis/thing/definition.yaml"


@dataclass(frozen=True)
class Case:
    reason: str
    kit: str
    says: str
    """What the message says behind the file and line of kit.yaml."""
    line: int = 5
    hint: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    """Properties that the XRD has instead."""


GATE = "  gate: {{paused: {}, cause: {}, exhausted: [used-up]}}"
CASES = [
    Case("a gate on a status the XRD lacks", GATE.format("full", "why"),
         "'full' is not a field of the XRD's status", 5),
    Case("a misspelt key", "  titel: x", "spec: 'titel' is not a known key", hint="'title'"),
    Case("a misspelt key inside", "  fields:\n    size: {hlep: x}", "'hlep' is not a known key",
         6, "'help'"),
    Case("a field that the XRD lacks", "  fields:\n    sise: {}", "'sise' is not a field of the XRD",
         6, "'size'"),
    Case("a page with an unknown field", "  pages:\n  - title: A\n    fields: [size, stge]",
         "'stge' is not a field", 7, "'stage'"),
    Case("a nested field that is none", "  hidden:\n    storage.sizeGb: {from: A}", "is not a field", 6),
    Case("a change of no field", "  changes:\n  - {name: a, fields: []}", "is refused", 6),
    Case("a change of an unknown field", "  changes:\n  - {name: a, fields: [tag]}",
         "'tag' is not a field", 6, "'tags'"),
    Case("two changes of one name", "  changes:\n  - {name: a, fields: [tags]}\n"
         "  - {name: a, fields: [size]}", "is the name of two changes", 7),
    Case("a text that shall grow", "  changes:\n  - {name: a, fields: [domain], direction: grow}",
         "cannot grow: it is text", 6),
    Case("a list that shall go in steps", "  changes:\n  - {name: a, fields: [tags], direction: step}",
         "has no steps: it is list", 6),
    Case("two fields with one parameter", "  aliases:\n    size: stage", "is the parameter of", 6,
         "give 'size' another name"),
    Case("an alias that every form has", "  aliases:\n    size: pack_commit",
         "is a parameter of every form", 6, "another name"),
    Case("an alias inside a group", "  aliases:\n    storage.gb: gb", "is inside another field", 6),
    Case("an alias that is not a name", "  aliases:\n    size: a-b", "is not a name of a form parameter", 6),
    Case("a hidden field without a pattern", "  hidden:\n    domain: {from: BASE_DOMAIN}",
         "is hidden without a pattern", 6, "refuses what was never baked"),
    Case("a guard that lets the sentinel through",
         "  hidden:\n    domain: {from: BASE_DOMAIN, pattern: '^.+$'}",
         "lets __ORDERKIT_BASE_DOMAIN__ through", 6),
    Case("a hidden list", "  hidden:\n    tags: {from: A, pattern: a}", "cannot be baked: it is list", 6),
    Case("a hidden field on a page", "  hidden:\n    domain: {from: A, pattern: '^a$'}\n"
         "  pages:\n  - {title: A, fields: [domain]}", "is not shown in the form", 8),
    Case("a value name that is none", "  hidden:\n    domain: {from: baseDomain}", "is refused", 6),
    Case("a label of no value", "  fields:\n    stage: {labels: {onn: x}}", "is not a value of the", 6,
         "'one'"),
    Case("a label that YAML reads as true", "  fields:\n    stage: {labels: {on: x}}",
         "is not a value of the", 6, "quotes"),
    Case("a label without enum", "  fields:\n    size: {labels: {a: x}}", "without enum", 6),
    Case("a picker for a number", "  fields:\n    size: {picker: {kind: owner}}",
         "cannot be picked from the catalog", 6),
    Case("an error without pattern", "  fields:\n    domain: {error: x}", "has no pattern to explain", 6),
    Case("a condition on an unknown field", "  fields:\n    size: {when: {stag: one}}",
         "'stag' is not a field", 6, "'stage'"),
    Case("a condition on an unknown value", "  fields:\n    size: {when: {stage: onn}}",
         "is not a value of 'stage'", 6, "'one'"),
    Case("a condition on a list", "  fields:\n    size: {when: {tags: a}}", "cannot be a condition", 6),
    Case("a condition elsewhere", "  fields:\n    storage.gb: {when: {stage: one}}",
         "does not stand beside 'storage.gb'", 6),
    Case("a condition on another page", "  fields:\n    size: {when: {stage: one}}\n  pages:\n"
         "  - {title: A, fields: [stage]}\n  - {title: B, fields: [size]}", "is on another page", 6),
    Case("conditions in a circle", "  fields:\n    size: {when: {stage: one}}\n    stage: {when: {domain: x}}"
         "\n    domain: {when: {size: 1}}", "depends on this field itself", 6),
    Case("a condition for what is required", "  fields:\n    teamName: {when: {stage: one}}",
         "is required by the XRD", 6),
    Case("a name from what may be missing", "  nameFrom: domain", "may be left out", 5, "required"),
    Case("a name from a list", "  nameFrom: [stage, tags]", "cannot name it: it is list"),
    Case("a team from a number", "  teamFrom: size", "cannot name it: it is integer"),
    Case("a part of a group on a page", "  pages:\n  - {title: A, fields: [storage.gb]}",
         "is inside another field", 6, "'storage'"),
    Case("a field on two pages", "  pages:\n  - {title: A, fields: [size]}\n"
         "  - {title: B, fields: [size]}", "is on a page already", 7),
    Case("a link to nowhere", "  links:\n  - {title: A}", "needs url or entityRef", 6),
    Case("a lease of nothing", "  lease:\n    grace: 1h", "does not say how long", 5, "a maximum"),
    Case("an extension beyond the maximum", "  lease:\n    maximum: 7d\n    extend: {by: 8d}",
         "is longer than the maximum, 7d", 7),
    Case("a warning before the order", "  lease:\n    default: 8h\n    warn: [24h, 1h]",
         "is not shorter than the lease, 8h", 7),
    Case("a lease without a warning", "  lease:\n    default: 30m",
         "is not longer than the last warning, 1h", 6, "warn: [10m]"),
    Case("a lease from no field", "  lease:\n    field: sise", "is not a field", 6, "'size'"),
    Case("a lease from a number", "  lease:\n    field: size", "cannot say how long: it is integer", 6),
    Case("a lease from words", "  lease:\n    field: stage", "of its enum is not a duration", 6),
    Case("a lease from what may be missing", "  lease:\n    field: domain", "may be left out", 6),
    Case("a pause without values", "  lease:\n    default: 3d\n    then: pause",
         "needs the values that pause", 7),
    Case("a pause of an end", "  lease:\n    default: 3d\n    pause: {stage: one}",
         "is for then: pause", 7),
    Case("a pause by a change that is reviewed", "  lease:\n    default: 3d\n    then: pause\n"
         "    pause: {stage: one}\n  changes:\n  - {name: c, fields: [stage], how: review}",
         "is in no change that is committed directly", 8),
    Case("a pause with another value", "  lease:\n    default: 3d\n    then: pause\n"
         "    pause: {stage: nine}\n  changes:\n  - {name: c, fields: [stage]}",
         "is not a value of 'stage'", 8),
    Case("nights in no zone", "  lease:\n    default: 3d\n    nightly: {at: '20:00', zone: Berlin,"
         " set: {stage: one}}\n  changes:\n  - {name: c, fields: [stage]}", "is not a time zone", 7),
    Case("nights by a change that is reviewed", "  lease:\n    default: 3d\n    nightly: {at: '20:00',"
         " set: {stage: one}}\n  changes:\n  - {name: c, fields: [stage], how: review}",
         "is in no change that is committed directly", 7),
    Case("nights that spare no field", "  lease:\n    default: 3d\n    nightly: {at: '20:00',"
         " set: {stage: one}, unless: {sise: 1}}\n  changes:\n  - {name: c, fields: [stage]}",
         "is not a field of the XRD", 7, "'size'"),
    Case("a lease beyond its maximum", "  lease:\n    default: 9w\n    maximum: 30d", "is longer than", 6),
    Case("a lease of centuries", "  lease:\n    default: 99999w", "is longer than a hundred years", 5,
         "for example"),
    Case("a warning at the beginning", "  lease:\n    default: 8h\n    warn: [8h]",
         "is not shorter than the lease, 8h", 7),
    Case("a lease as long as its last warning", "  lease:\n    default: 1h",
         "is not longer than the last warning, 1h", 6),
    Case("a lease from a field that is not shown", "  hidden:\n    domain: {from: A, pattern: '^a$'}\n"
         "  lease:\n    default: 8h\n    field: domain", "is not shown", 9, "name a text"),
    Case("a pause that is neither on nor off", "  lease:\n    default: 3d\n    then: pause\n"
         "    pause: {paused: 'True'}\n  changes:\n  - {name: c, fields: [paused]}",
         "is not a value of 'paused'", 8, "quotes"),
    Case("a pause of no field", "  lease:\n    default: 3d\n    then: pause\n    pause: {stag: one}",
         "is not a field of the XRD", 8, "'stage'"),
    Case("a change of the platform's value", "  hidden:\n    domain: {from: A, pattern: '^a$'}\n"
         "  changes:\n  - {name: c, fields: [domain]}", "is the platform's value", 8, "never"),
    Case("a label of no entry", "  fields:\n    zones: {labels: {b: x}}", "is not a value of the", 6, ""),
    Case("a reference in a number", "  fields:\n    size: {refers: {apiVersion: v1, kind: Pod}}", "cannot refer to an object: it is not a text", 6),
]  # fmt: skip
LEASES = [
    ("an extension as long as the maximum", "maximum: 7d\n    extend: {by: 7d}"),
    ("a lease as long as the maximum", "default: 7d\n    maximum: 7d"),
    ("a warning within the lease", "default: 8h\n    warn: [7h]"),
    ("of several warnings, one within the lease", "default: 2h"),
    ("a text with a default", "field: domain\n    default: 8h"),
    ("no lease", ""),
]


@pytest.mark.parametrize("lease", [row[1] for row in LEASES], ids=[row[0] for row in LEASES])
def test_lengths_that_fit_each_other_are_accepted(lease: str) -> None:
    kit = HEAD + (f"  lease:\n    {lease}\n" if lease else "  title: x\n")

    assert not list(refusals("thing", kit_files(SPEC, kit)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_kit_yaml_is_told_with_its_line(case: Case) -> None:
    with pytest.raises(InvalidInputError) as caught:
        checked_kit("thing", kit_files(SPEC, HEAD + case.kit + "\n"))

    assert str(caught.value).startswith(f"{KIT}:{case.line}: "), str(caught.value)
    assert f" {case.says}" in f" {caught.value}"
    assert case.hint in caught.value.hint


XRD_CASES = [
    Case("an enum without its default", "", "'thre' is none of the values of its enum", hint="three",
         spec={"a": {"type": "string", "enum": ["three", "two"], "default": "thre"}}),
    Case("the same in a list", "", "is none of the values of its enum",
         spec={"a": {"type": "array", "items": {"type": "object", "properties": {
             "b": {"type": "string", "enum": ["x"], "default": "y"}}}}}),
    Case("a pattern that JavaScript cannot say", "", "is refused as a pattern", hint="JavaScript",
         spec={"a": {"type": "string", "pattern": "(?m)^abc"}}),
    Case("a pattern that is none", "", "is refused as a pattern",
         spec={"a": {"type": "object", "properties": {"b": {"type": "string", "pattern": "a**"}}}}),
    Case("a type that is none", "", "'strin' is not a type", hint="'string'",
         spec={"a": {"type": "strin"}}),
]  # fmt: skip


@pytest.mark.parametrize("case", XRD_CASES, ids=lambda case: case.reason)
def test_an_xrd_is_told_with_its_line(case: Case) -> None:
    files = kit_files({"properties": case.spec})

    with pytest.raises(InvalidInputError) as caught:
        checked_kit("thing", files)

    message = str(caught.value)
    assert message.startswith(f"{XRD}:")
    line = int(message.split(":")[1])
    told = files[PurePosixPath(XRD)].decode().splitlines()[line - 1]
    assert any(key in told for key in ("default:", "pattern:", "type:")), told
    assert case.says in message
    assert case.hint in caught.value.hint


@pytest.mark.parametrize(
    ("lease", "says"),
    [
        ("maximum: 30d", "'9w' of its enum is longer than the maximum, 30d"),
        ("warn: [8h]", "'8h' of its enum is not longer than the last warning, 8h"),
    ],
)
def test_each_choice_of_a_lease_fits_its_other_lengths(lease: str, says: str) -> None:
    spec = {"required": ["time"], "properties": {"time": {"type": "string", "enum": ["8h", "9w"]}}}
    kit = HEAD + f"  lease:\n    field: time\n    {lease}\n"

    found = [str(error) for error in refusals("thing", kit_files(spec, kit))]

    assert [text.partition("spec.lease.field: ")[2] for text in found] == [says]


def test_a_required_field_that_nobody_can_enter_is_refused() -> None:
    spec = {"required": ["a"], "properties": {"a": {"type": "string", "x-ui-hidden": True}}}

    with pytest.raises(InvalidInputError, match="is required and hidden"):
        checked_kit("thing", kit_files(spec))


def test_all_problems_are_told_at_once() -> None:
    kit = HEAD + "  nameFrom: nme\n  aliases:\n    size: stage\n  links:\n  - {title: A}\n"

    found = tuple(refusals("thing", kit_files(SPEC, kit)))

    assert [str(error).split(": ")[0] for error in found] == [f"{KIT}:{n}" for n in (5, 7, 9)]


def test_a_kit_in_a_folder_of_another_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="is not the name of its folder, 'thing'"):
        checked_kit("thing", kit_files(SPEC, HEAD.replace("name: thing", "name: other")))


def test_an_xrd_alone_is_a_kit() -> None:
    files = kit_files(SPEC)
    kit = checked_kit("thing", files)

    assert (kit.title, kit.name_parameters, kit.team_parameter) == ("Thing", ("name",), "team")
    assert PurePosixPath("templates/thing/template.yaml") in generate(files, kit)


@dataclass(frozen=True)
class Malformed:
    reason: str
    path: str
    text: str


MALFORMED = [
    Malformed("kit.yaml is not YAML", KIT, "a: [\n"),
    Malformed("kit.yaml is a list", KIT, "- a\n"),
    Malformed("kit.yaml has a number for a map", KIT, HEAD + "  fields: 3\n"),
    Malformed("an XRD that is a text", XRD, "hello\n"),
    Malformed(
        "versions that are no maps",
        XRD,
        "apiVersion: v1\nkind: CompositeResourceDefinition\n"
        "metadata: {}\nspec: {group: a.b, names: {kind: X}, versions: [x, {referenceable: true}]}\n",
    ),
    Malformed(
        "names that are a list",
        XRD,
        "apiVersion: v1\nkind: CompositeResourceDefinition\n"
        "metadata: {}\nspec: {group: a.b, names: [], versions: [{referenceable: true}]}\n",
    ),
]


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case.reason)
def test_reading_a_malformed_published_kit_names_the_file(case: Malformed) -> None:
    files = {**kit_files(SPEC, HEAD), PurePosixPath(case.path): case.text.encode()}

    with pytest.raises(InvalidInputError, match=case.path):
        read_kit("thing", files)


def test_reading_does_not_check_again_what_was_checked_before_publishing() -> None:
    files = kit_files(SPEC, HEAD + "  fields:\n    sise: {}\n")

    assert read_kit("thing", files).fields.keys() == {"sise"}
