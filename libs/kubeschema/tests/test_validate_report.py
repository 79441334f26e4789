"""Reports of `kubeschema.validate`: stable reasons, paths, ways out, defaults, what is dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import pytest

from ground.objects.kube_objects import Manifest
from kubeschema.cel import Gap
from kubeschema.validate import Reason, ValidationReport, Validator
from kubeschema.validate.findings import DefaultedValue, Located, sentence

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "string", "enum": ["small", "large"], "description": "How much of it."},
        "replicas": {"type": "integer", "minimum": 1, "default": 2},
        "team": {"type": "string", "pattern": "^[a-z]+$"},
        "ports": {
            "type": "array",
            "items": {"type": "object", "properties": {"number": {"type": "integer"}}},
        },
    },
    "x-kubernetes-validations": [
        {"rule": "self.size != 'large' || self.replicas > 2", "message": "large needs three"},
        {"rule": "self.replicas >= oldSelf.replicas", "message": "never shrinks"},
    ],
}


def xrd(**changes: Any) -> Manifest:
    schema = {"type": "object", "properties": {"spec": SPEC}}
    version = {"served": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xthings.example.org"},
        "spec": {
            "scope": "Cluster",
            "group": "example.org",
            "names": {"kind": "XThing", "plural": "xthings"},
            "versions": [
                {**version, "name": "v1", "referenceable": True},
                {**version, "name": "v0", "served": False},
            ],
            **changes,
        },
    }


def thing(name: str = "good", version: str = "v1", **spec: Any) -> Manifest:
    return {
        "apiVersion": f"example.org/{version}",
        "kind": "XThing",
        "metadata": {"name": name},
        "spec": {"size": "small", **spec},
    }


def check(new: Manifest, old: Manifest | None = None) -> ValidationReport:
    return Validator(xrd()).check(new, old)


def told(report: ValidationReport) -> list[tuple[str, str]]:
    return [(finding.path, finding.reason) for finding in report.findings]


def test_a_good_object_is_valid_and_gets_its_defaults() -> None:
    report = check(thing())

    assert report.valid
    assert report.defaulted == (DefaultedValue("spec.replicas", 2),)
    assert report.result["spec"] == {"size": "small", "replicas": 2}


def test_crossplanes_own_fields_are_known() -> None:
    report = check(thing(crossplane={"compositionRef": {"name": "other"}}))

    assert report.valid


def test_an_unknown_field_names_the_nearest_and_is_dropped() -> None:
    report = check(thing(repliccas=3))

    (finding,) = report.findings
    assert (finding.path, finding.reason) == ("spec.repliccas", Reason.UNKNOWN_FIELD)
    assert finding.hint == "did you mean 'replicas'?"
    assert report.pruned == ("spec.repliccas",)
    assert "repliccas" not in report.result["spec"]


def test_an_unknown_field_far_from_all_names_them_all() -> None:
    (finding,) = check(thing(ports=[{"zzz": 1}])).findings

    assert finding.path == "spec.ports[0].zzz"
    assert finding.hint == "fields here: number"


@pytest.mark.parametrize(
    ("spec", "path", "reason", "rule"),
    [
        ({"size": "huge"}, "spec.size", Reason.NOT_ALLOWED, 'enum ["small", "large"]'),
        ({"replicas": 0}, "spec.replicas", Reason.INVALID, "minimum 1"),
        ({"replicas": "x"}, "spec.replicas", Reason.WRONG_TYPE, 'type "integer"'),
        ({"team": "X"}, "spec.team", Reason.INVALID, 'pattern "^[a-z]+$"'),
        ({"size": None}, "spec.size", Reason.REQUIRED, "required"),
    ],
)
def test_structure_is_told_with_its_rule(
    spec: dict[str, Any], path: str, reason: Reason, rule: str
) -> None:
    (finding,) = check(thing(**spec)).findings

    assert (finding.path, finding.reason, finding.rule) == (path, reason, rule)


def test_an_enum_tells_what_is_allowed_and_what_the_field_is_for() -> None:
    (finding,) = check(thing(size="huge")).findings

    assert finding.value == '"huge"'
    assert finding.hint == 'use one of "small", "large"; How much of it.'


def test_a_rule_sees_defaults_and_tells_its_message() -> None:
    (finding,) = check(thing(size="large")).findings

    assert finding.reason == Reason.RULE
    assert finding.message == "Invalid value: large needs three"
    assert finding.rule == "self.size != 'large' || self.replicas > 2"


def test_a_transition_rule_judges_the_change_only() -> None:
    assert check(thing(replicas=1)).valid

    (finding,) = check(thing(replicas=1), thing()).findings
    assert (finding.reason, finding.message) == (
        Reason.TRANSITION,
        "Invalid value: never shrinks",
    )


OBJECT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "zone": {"type": "string"},
        "tier": {"type": "string"},
        "size": {"type": "integer"},
        "x-y": {"type": "string"},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "disk": {
            "type": "object",
            "properties": {"kind": {"type": "string"}, "gb": {"type": "integer"}},
        },
        "ports": {
            "type": "array",
            "items": {"type": "object", "properties": {"number": {"type": "integer"}}},
        },
    },
}
SEALED = "!has(oldSelf.zone) || (has(self.zone) && self.zone == oldSelf.zone)"
GOLD = "self.tier != 'gold' || self.size >= 10"
OF_OLD = "!oldSelf.hasValue() || self.zone == oldSelf.value().zone"
Spec = dict[str, Any]


@dataclass(frozen=True)
class Refused:
    reason: str
    rule: str
    new: Spec
    old: Spec | None
    path: str
    value: str
    hint: str = ""
    more: Spec = field(default_factory=dict)
    """What the rule's entry has beside."""


REFUSED = [
    Refused("the field that the change touches", SEALED, {"zone": "east", "size": 8},
            {"zone": "west", "size": 8}, "spec.zone", '"east"', 'put back "west"'),
    Refused("only the field that the rule reads", SEALED, {"zone": "east", "size": 9},
            {"zone": "west", "size": 8}, "spec.zone", '"east"', 'put back "west"'),
    Refused("a field that the change removes", SEALED, {"size": 8},
            {"zone": "west", "size": 8}, "spec.zone", "", 'put back "west"'),
    Refused("what a new object has of what the rule reads", GOLD, {"tier": "gold", "size": 8},
            None, "spec.tier", '"gold"', "the rule also reads size 8"),
    Refused("the field that the message names", GOLD, {"tier": "gold", "size": 8}, None,
            "spec.size", "8", 'the rule also reads tier "gold"',
            {"message": "gold needs a size of 10"}),
    Refused("the path that the message names", GOLD, {"tier": "gold", "size": 8}, None,
            "spec.size", "8", 'the rule also reads tier "gold"',
            {"message": "a tier of gold needs 10 in spec.size"}),
    Refused("a changed field of a rule without oldSelf", GOLD, {"tier": "gold", "size": 8},
            {"tier": "silver", "size": 8}, "spec.tier", '"gold"'),
    Refused("of a value that is compared whole, what differs", "self == oldSelf",
            {"tier": "gold", "size": 8}, {"tier": "silver", "size": 9}, "spec.tier", '"gold"',
            'put back tier "silver", size 9'),
    Refused("a field of a group", "self.disk == oldSelf.disk", {"disk": {"kind": "ssd", "gb": 2}},
            {"disk": {"kind": "ssd", "gb": 1}}, "spec.disk.gb", "2", "put back 1"),
    Refused("a field whose name CEL escapes", "self.x__dash__y != 'a'", {"x-y": "a"}, None,
            "spec.x-y", '"a"'),
    Refused("a key of a map", "self.tags['c.d'] != 'a'", {"tags": {"c.d": "a"}}, None,
            "spec.tags[c.d]", '"a"'),
    Refused("a list as a whole", "self.ports.all(p, p.number > 1)", {"ports": [{"number": 1}]},
            None, "spec.ports", '[{"number": 1}]'),
    Refused("an optional old value", OF_OLD, {"zone": "east", "size": 9},
            {"zone": "west", "size": 8}, "spec.zone", '"east"', 'put back "west"',
            {"optionalOldSelf": True}),
    Refused("the author's fieldPath", GOLD, {"tier": "gold", "size": 8}, None, "spec.size", "8",
            more={"fieldPath": ".size"}),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.reason)
def test_a_rule_of_a_parent_names_the_fields_that_it_is_about(case: Refused) -> None:
    rules = [{"rule": case.rule, "message": "no", **case.more}]
    spec = {**OBJECT, "x-kubernetes-validations": rules}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "referenceable": True, "schema": schema}
    validator = Validator(xrd(versions=[version]))
    new, old = (s and {**thing(), "spec": s} for s in (case.new, case.old))

    (finding,) = validator.check(new or {}, old).findings

    assert (finding.path, finding.value, finding.hint) == (case.path, case.value, case.hint)
    assert finding.place in (None, "spec")


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "dot.", "ü"])
def test_a_name_that_is_no_dns_name_is_refused(name: str) -> None:
    assert told(check(thing(name))) == [("metadata.name", Reason.NAME)]


def test_a_name_too_long_for_crossplanes_label_is_refused() -> None:
    assert check(thing("a" * 63)).valid
    assert told(check(thing("a" * 64))) == [("metadata.name", Reason.TOO_LONG)]


def test_an_object_without_a_name_is_refused_unless_one_is_generated() -> None:
    nameless = {**thing(), "metadata": {}}

    assert told(check(nameless)) == [("metadata.name", Reason.REQUIRED)]
    assert check({**thing(), "metadata": {"generateName": "a-"}}).valid


def test_a_version_that_is_not_served_names_those_that_are() -> None:
    (finding,) = check(thing(version="v0")).findings

    assert finding.reason == Reason.UNKNOWN_VERSION
    assert finding.hint == "served: example.org/v1"


def test_another_kind_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match=r"ConfigMap is not a XThing\.example\.org"):
        check({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})


def test_the_object_is_left_alone() -> None:
    new = thing(extra=1, ports=[{"number": None}])
    before = repr(new)
    check(new, thing())

    assert repr(new) == before


def test_only_an_xrd_or_a_crd_judges() -> None:
    with pytest.raises(ValueError, match="ConfigMap is neither an XRD nor a CRD"):
        Validator({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})


def test_a_broken_rule_is_the_definitions_fault() -> None:
    definition = xrd()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = {**SPEC, "x-kubernetes-validations": [{"rule": "self.colour == 'red'"}]}
    definition["spec"]["versions"][0]["schema"] = {
        "openAPIV3Schema": {**schema, "properties": {"spec": spec}}
    }
    validator = Validator(definition)

    ((path, message),) = validator.faults()
    assert path == "v1: properties[spec].x-kubernetes-validations[0].rule"
    assert "undefined field 'colour'" in message
    assert validator.check(thing()).valid


def test_a_rule_that_was_not_evaluated_is_told_with_its_reason() -> None:
    gap = Located(PurePath("xr.yaml"), 4, 1, "Thing one", Gap("spec", "isURL(self)", "no library"))

    assert sentence(gap) == "xr.yaml:4: spec: not evaluated: isURL(self) (no library)"
