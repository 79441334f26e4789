"""``kit check --since``: each change that would break living orders, and changes that would not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import labkit
import pytest

from compositions.station import Station, StationRequest, StationResponse
from kubeschema.validate import Finding
from orderkit_workshop.check.behaviour_rule_codes import SinceRule
from orderkit_workshop.check.rule_codes import Coded
from orderkit_workshop.check.since_checks import check_since, kit_is_gone, tightened

KIT, XRD = "templates/lab/kit.yaml", "gitops/apis/lab/definition.yaml"
COMPOSITION = "gitops/apis/lab/composition.yaml"
SIZE = "                size:\n"
NOTE = "                note:\n                  type: string\n"
Changes = Mapping[str, str | None]


@dataclass(frozen=True)
class Case:
    rule: SinceRule
    reason: str
    after: Changes = field(default_factory=dict)
    before: Changes = field(default_factory=dict)
    stations: Mapping[str, Station] = field(default_factory=dict)


def swap(path: str, *pairs: tuple[str, str]) -> Changes:
    text = labkit.TEXTS[path]
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return {path: text}


def changed(say: Callable[[StationResponse], None]) -> Mapping[str, Station]:
    """The station, with something done to what it wants once all of it is there."""

    def run(request: StationRequest) -> StationResponse:
        response = labkit.station(request)
        if "sheet" in response.desired.resources:
            say(response)
        return response

    return {"lab": run}


def renamed(response: StationResponse) -> None:
    response.desired.resources["paper"] = response.desired.resources.pop("sheet")


def retyped(response: StationResponse) -> None:
    response.desired.resources["sheet"].resource["kind"] = "Secret"


def recalled(response: StationResponse) -> None:
    response.desired.resources["sheet"].resource["metadata"]["name"] = "page"


RULES = """\
              x-kubernetes-validations:
                - rule: "self.size != 'large' || self.team == 'alpha'"
"""
PATTERN = "                  pattern: '^[a-z][a-z0-9-]{2,28}$'\n"


def ruled(old: str, new: str) -> Changes:
    """The XRD with a rule more."""
    required = "[team, size]\n"
    return swap(XRD, (required, required + RULES.replace(old, new)))


OLD_VERSION = """\
    - name: v1
      served: false
      referenceable: false
      schema:
        openAPIV3Schema: {type: object}
"""
SECOND = "---\n" + labkit.COMPOSITION.replace("name: lab-default", "name: lab-other")

CASES = [
    Case(SinceRule.IDENTITY, "the kind", swap(XRD, ("kind: XLab", "kind: XLabs"))),
    Case(
        SinceRule.NAMES,
        "a short name",
        swap(XRD, ("xlabs\n  e", "xlabs\n    shortNames: [l]\n  e")),
    ),
    Case(SinceRule.SCOPE, "namespaced", swap(XRD, ("scope: Cluster", "scope: Namespaced"))),
    Case(
        SinceRule.VERSION,
        "not served",
        {XRD: labkit.DEFINITION + OLD_VERSION},
        {XRD: labkit.DEFINITION + OLD_VERSION.replace("served: false", "served: true")},
    ),
    Case(
        SinceRule.REFERENCEABLE,
        "another one",
        {
            XRD: labkit.DEFINITION.replace("referenceable: true", "referenceable: false")
            + OLD_VERSION.replace("able: false", "able: true")
        },
        {XRD: labkit.DEFINITION + OLD_VERSION},
    ),
    Case(SinceRule.COMPOSITION, "gone", {}, {COMPOSITION: labkit.COMPOSITION + SECOND}),
    Case(
        SinceRule.COMPOSITION,
        "of another version",
        swap(COMPOSITION, ("org/v1alpha1\n    kind: X", "org/v1\n    kind: X")),
    ),
    Case(
        SinceRule.ORDER_NAME, "two fields", swap(KIT, ("nameFrom: team", "nameFrom: [team, size]"))
    ),
    Case(SinceRule.TEAM, "asked for", swap(KIT, ("  teamFrom: team\n", ""))),
    Case(
        SinceRule.PARAMETER,
        "an alias",
        swap(KIT, ("  changes:", "  aliases: {size: space}\n  changes:")),
    ),
    Case(SinceRule.FIELD_GONE, "a note", {}, swap(XRD, (SIZE, NOTE + SIZE))),
    Case(
        SinceRule.TYPE,
        "a number",
        swap(XRD, (SIZE, NOTE.replace("string", "integer") + SIZE)),
        swap(XRD, (SIZE, NOTE + SIZE)),
    ),
    Case(SinceRule.ENUM, "no large ones", swap(XRD, ("small, medium, large", "small, medium"))),
    Case(SinceRule.PATTERN, "shorter", swap(XRD, ("{2,28}", "{2,18}"))),
    Case(
        SinceRule.BOUNDS,
        "shorter notes",
        swap(XRD, (SIZE, NOTE + "                  maxLength: 8\n" + SIZE)),
        swap(XRD, (SIZE, NOTE + "                  maxLength: 9\n" + SIZE)),
    ),
    Case(
        SinceRule.REQUIRED,
        "a note",
        swap(XRD, (SIZE, NOTE + SIZE), ("[team, size]", "[team, size, note]")),
        swap(XRD, (SIZE, NOTE + SIZE)),
    ),
    Case(
        SinceRule.CLOSED,
        "no null",
        swap(XRD, (SIZE, NOTE + SIZE)),
        swap(XRD, (SIZE, NOTE + "                  nullable: true\n" + SIZE)),
    ),
    Case(
        SinceRule.LOGIC,
        "one of",
        swap(XRD, ("[team, size]\n", "[team, size]\n              oneOf: [{required: [team]}]\n")),
    ),
    Case(
        SinceRule.CEL,
        "a rule that all orders keep",
        swap(
            XRD,
            ("[team, size]\n", "[team, size]\n" + RULES.replace("alpha", "alpha' || true || '")),
        ),
    ),
    Case(
        SinceRule.DEFAULT,
        "another one",
        swap(XRD, (SIZE, NOTE + "                  default: b\n" + SIZE)),
        swap(XRD, (SIZE, NOTE + "                  default: a\n" + SIZE)),
    ),
    Case(SinceRule.RESOURCE_GONE, "renamed", stations=changed(renamed)),
    Case(SinceRule.RESOURCE_KIND, "a Secret", stations=changed(retyped)),
    Case(SinceRule.RESOURCE_NAME, "a page", stations=changed(recalled)),
]


def told(case: Case) -> list[tuple[Coded, str]]:
    old = labkit.subject(case.before)
    new = labkit.subject(case.after, {"lab": labkit.station, **case.stations})
    rules = []
    for entry in check_since(old, new):
        assert isinstance(entry.about, Finding)
        assert isinstance(entry.about.reason, Coded)
        assert entry.about.hint
        assert entry.line
        rules.append((entry.about.reason, entry.about.message))
    return rules


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.reason}")
def test_a_change_that_orders_would_feel_is_told_by_its_rule(case: Case) -> None:
    found = told(case)

    assert {rule for rule, _ in found} == {case.rule}, found


def test_every_rule_is_tried() -> None:
    elsewhere = {SinceRule.KIT, SinceRule.ORDER_REFUSED}

    assert {case.rule for case in CASES} | elsewhere == set(SinceRule)


def test_a_rule_that_refuses_an_order_of_before_names_that_order() -> None:
    case = Case(
        SinceRule.ORDER_REFUSED,
        "alpha may not be large",
        ruled("alpha", "beta"),
    )

    found = dict(told(case))

    assert found.keys() == {SinceRule.CEL, SinceRule.ORDER_REFUSED}
    assert found[SinceRule.ORDER_REFUSED].startswith("example 'usual', size=large: ")


def test_a_kit_that_is_gone_is_told_in_pack_yaml() -> None:
    entry = kit_is_gone(labkit.subject(), "v1.0.0")

    assert str(entry.file) == "pack.yaml"
    assert "was in the pack at v1.0.0" in str(entry.about)


@pytest.mark.parametrize(
    ("reason", "after"),
    [
        ("nothing", {}),
        ("a new optional field", swap(XRD, (SIZE, NOTE + SIZE))),
        ("one size more", swap(XRD, ("medium, large", "medium, large, huge"))),
        (
            "no pattern any more",
            swap(XRD, (PATTERN, "")),
        ),
        ("other words", swap(XRD, ("How many benches.", "Benches."), ("A laboratory", "The lab"))),
        ("a new version beside", {XRD: labkit.DEFINITION + OLD_VERSION}),
        ("a Composition beside", {COMPOSITION: labkit.COMPOSITION + SECOND}),
        ("a title", swap(KIT, ("Laboratory", "Lab"))),
        (
            "a rule that looks at what was",
            swap(
                XRD,
                (
                    "[team, size]\n",
                    "[team, size]\n" + RULES.replace("self.team ==", "oldSelf.team =="),
                ),
            ),
        ),
    ],
)
def test_changes_that_let_orders_be_are_not_told(reason: str, after: Changes) -> None:
    assert told(Case(SinceRule.KIT, reason, after)) == []


@pytest.mark.parametrize(
    ("reason", "old", "new", "rules"),
    [
        ("a bound that is new", {}, {"minimum": 1}, {SinceRule.BOUNDS}),
        ("a bound that is wider", {"minimum": 2}, {"minimum": 1}, set()),
        ("a bound that is gone", {"maximum": 2}, {}, set()),
        ("a coarser step", {"multipleOf": 2}, {"multipleOf": 4}, {SinceRule.BOUNDS}),
        ("a finer step", {"multipleOf": 4}, {"multipleOf": 2}, set()),
        (
            "an end that is out",
            {"maximum": 2},
            {"maximum": 2, "exclusiveMaximum": True},
            {SinceRule.BOUNDS},
        ),
        ("the first enum", {}, {"enum": [1]}, {SinceRule.ENUM}),
        ("no enum any more", {"enum": [1]}, {}, set()),
        ("int or string", {}, {"x-kubernetes-int-or-string": True}, {SinceRule.TYPE}),
        (
            "an entry of a list",
            {"items": {"type": "string"}},
            {"items": {"type": "string", "maxLength": 1}},
            {SinceRule.BOUNDS},
        ),
        (
            "a value of a map",
            {"additionalProperties": {"type": "string"}},
            {"additionalProperties": {"type": "integer"}},
            {SinceRule.TYPE},
        ),
        ("no map any more", {"additionalProperties": {"type": "string"}}, {}, {SinceRule.CLOSED}),
        (
            "a field that moves into an open object",
            {"properties": {"a": {"type": "string"}}},
            {"properties": {}, "x-kubernetes-preserve-unknown-fields": True},
            set(),
        ),
        (
            "required with a default",
            {"properties": {"a": {"type": "string", "default": "x"}}},
            {"properties": {"a": {"type": "string", "default": "x"}}, "required": ["a"]},
            set(),
        ),
        ("how a list is merged", {}, {"x-kubernetes-list-type": "set"}, {SinceRule.LOGIC}),
    ],
)
def test_schemas_are_compared_for_what_they_allow(
    reason: str, old: dict[str, Any], new: dict[str, Any], rules: set[SinceRule]
) -> None:
    assert {rule for rule, _, _ in tightened(old, new, "spec")} == rules, reason
