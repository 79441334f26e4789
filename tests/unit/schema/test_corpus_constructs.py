"""Which construct of XRDs which kits of the corpus have: together they have all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from corpuspack import definition, definition_path, kit_names, made

from ground.objects.kube_objects import Manifest, dig
from kubeschema.xrd import is_legacy, referenceable_version, scope_of, versions_of

Schema = Mapping[str, Any]
LIST_TYPE, PRESERVE = "x-kubernetes-list-type", "x-kubernetes-preserve-unknown-fields"


def _nodes(schema: Schema) -> Iterator[Schema]:
    yield schema
    for inner in (schema.get("properties") or {}).values():
        yield from _nodes(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from _nodes(schema[key])


def _fields(xrd: Manifest) -> list[Schema]:
    """Return every level of the referenceable version's spec, itself first."""
    path = ("schema", "openAPIV3Schema", "properties", "spec")
    return list(_nodes(dig(referenceable_version(xrd), *path, default={})))


def _any(holds: Callable[[Schema], object]) -> Callable[[Manifest], bool]:
    return lambda xrd: any(holds(schema) for schema in _fields(xrd)[1:])


def _rules(xrd: Manifest) -> list[Schema]:
    top = dig(referenceable_version(xrd), "schema", "openAPIV3Schema", default={})
    nodes = [top, *_fields(xrd)]
    return [rule for node in nodes for rule in node.get("x-kubernetes-validations") or ()]


def _ruled(holds: Callable[[Schema], object]) -> Callable[[Manifest], bool]:
    return lambda xrd: any(holds(rule) for rule in _rules(xrd))


def _depth(schema: Schema) -> int:
    inner = (schema.get("properties") or {}).values()
    return 1 + max((_depth(one) for one in inner), default=0)


def _version(xrd: Manifest) -> str:
    return str(xrd["apiVersion"]).rpartition("/")[2]


HAS: dict[str, Callable[[Manifest], object]] = {
    "v1": lambda xrd: _version(xrd) == "v1",
    "v2": lambda xrd: _version(xrd) == "v2",
    "LegacyCluster by default": lambda xrd: is_legacy(xrd) and not dig(xrd, "spec", "scope"),
    "LegacyCluster": lambda xrd: dig(xrd, "spec", "scope") == "LegacyCluster",
    "Cluster": lambda xrd: scope_of(xrd) == "Cluster",
    "Namespaced": lambda xrd: scope_of(xrd) == "Namespaced",
    "a modern scope in v1": lambda xrd: _version(xrd) == "v1" and not is_legacy(xrd),
    "several versions": lambda xrd: len(versions_of(xrd)) > 1,
    "a deprecated version": lambda xrd: any(v.get("deprecated") for v in versions_of(xrd)),
    "conversion": lambda xrd: dig(xrd, "spec", "conversion"),
    "claims": lambda xrd: dig(xrd, "spec", "claimNames"),
    "connection secret": lambda xrd: dig(xrd, "spec", "connectionSecretKeys"),
    "labels and annotations for the CRD": lambda xrd: dig(xrd, "spec", "metadata"),
    "printer columns": lambda xrd: referenceable_version(xrd).get("additionalPrinterColumns"),
    "scale": lambda xrd: dig(referenceable_version(xrd), "subresources", "scale"),
    "a shorter name": lambda xrd: dig(
        referenceable_version(xrd), "schema", "openAPIV3Schema", "properties", "metadata"
    ),
    "no field at all": lambda xrd: len(_fields(xrd)) == 1,
    "default of a scalar": _any(lambda s: isinstance(s.get("default"), str | int | bool)),
    "default of an object": _any(lambda s: isinstance(s.get("default"), dict)),
    "default of a list": _any(lambda s: isinstance(s.get("default"), list)),
    "default that is not text": _any(lambda s: "default" in s and s.get("type") != "string"),
    "enum of texts": _any(lambda s: s.get("enum") and s["type"] == "string"),
    "enum of numbers": _any(lambda s: s.get("enum") and s["type"] == "integer"),
    "enum with an empty text": _any(lambda s: "" in (s.get("enum") or ())),
    "pattern": _any(lambda s: "pattern" in s),
    "lengths": _any(lambda s: "minLength" in s or "maxLength" in s),
    "bounds": _any(lambda s: "minimum" in s and "maximum" in s),
    "exclusive bounds": _any(lambda s: s.get("exclusiveMinimum")),
    "multiples": _any(lambda s: "multipleOf" in s),
    "format of a text": _any(lambda s: "format" in s and s.get("type") == "string"),
    "format of a number": _any(lambda s: "format" in s and s.get("type") != "string"),
    "boolean": _any(lambda s: s.get("type") == "boolean"),
    "number": _any(lambda s: s.get("type") == "number"),
    "nullable": _any(lambda s: s.get("nullable")),
    "int-or-string": _any(lambda s: s.get("x-kubernetes-int-or-string")),
    "list of scalars": _any(lambda s: dig(s, "items", "type") in ("string", "integer")),
    "list of objects": _any(lambda s: dig(s, "items", "type") == "object"),
    "list of lists": _any(lambda s: dig(s, "items", "type") == "array"),
    "set": _any(lambda s: s.get(LIST_TYPE) == "set"),
    "keyed list": _any(lambda s: s.get(LIST_TYPE) == "map"),
    "list keyed by two fields": _any(lambda s: len(s.get("x-kubernetes-list-map-keys", ())) > 1),
    "map of texts": _any(lambda s: dig(s, "additionalProperties", "type") == "string"),
    "map of objects": _any(lambda s: dig(s, "additionalProperties", "properties")),
    "map of lists": _any(lambda s: dig(s, "additionalProperties", "type") == "array"),
    "map of maps": _any(lambda s: dig(s, "additionalProperties", "additionalProperties")),
    "atomic map": _any(lambda s: s.get("x-kubernetes-map-type") == "atomic"),
    "five levels": lambda xrd: _depth(_fields(xrd)[0]) > 5,
    "unknown fields kept in a field": _any(lambda s: s.get(PRESERVE)),
    "unknown fields kept in spec": lambda xrd: _fields(xrd)[0].get(PRESERVE),
    "embedded object": _any(lambda s: s.get("x-kubernetes-embedded-resource")),
    "oneOf of spec": lambda xrd: _fields(xrd)[0].get("oneOf"),
    "oneOf of a field": _any(lambda s: "oneOf" in s),
    "anyOf": _any(lambda s: "anyOf" in s and not s.get("x-kubernetes-int-or-string")),
    "allOf and not": _any(lambda s: "allOf" in s and "not" in s),
    "rule": _ruled(lambda rule: "oldSelf" not in rule["rule"]),
    "rule across fields": lambda xrd: _fields(xrd)[0].get("x-kubernetes-validations"),
    "rule about the name": _ruled(lambda rule: "metadata.name" in rule["rule"]),
    "rule with oldSelf": _ruled(lambda rule: "oldSelf" in rule["rule"]),
    "rule with optionalOldSelf": _ruled(lambda rule: rule.get("optionalOldSelf")),
    "rule with a computed message": _ruled(lambda rule: rule.get("messageExpression")),
    "rule with a field path": _ruled(lambda rule: rule.get("fieldPath")),
    "immutable field": _any(
        lambda s: any(r["rule"] == "self == oldSelf" for r in s.get("x-kubernetes-validations", ()))
    ),
    "immutable spec": lambda xrd: any(
        r["rule"] == "self == oldSelf" for r in _fields(xrd)[0].get("x-kubernetes-validations", ())
    ),
    "hint for forms in the schema": _any(lambda s: any(k.startswith("x-ui-") for k in s)),
    "annotation of the ingestor": lambda xrd: "terasky" in str(xrd["metadata"]),
    "names with other signs": lambda xrd: any(
        not name.isidentifier() for s in _fields(xrd) for name in s.get("properties") or ()
    ),
}

KITS: dict[str, str] = {
    "v1": "cache legacyvm namespaceclaim project team",
    "v2": "agent alertrule backupplan bucket cdn certificate …",
    "LegacyCluster by default": "cache legacyvm",
    "LegacyCluster": "team",
    "Cluster": "agent cluster dataset empty firewall gpu …",
    "Namespaced": "alertrule backupplan bucket cdn certificate dashboard …",
    "a modern scope in v1": "namespaceclaim project",
    "several versions": "cluster team",
    "a deprecated version": "cluster",
    "conversion": "cluster",
    "claims": "cache team",
    "connection secret": "cache",
    "labels and annotations for the CRD": "project",
    "printer columns": "cache cluster gpu postgres",
    "scale": "service",
    "a shorter name": "agent",
    "no field at all": "empty",
    "default of a scalar": "agent backupplan bucket cache cdn certificate …",
    "default of an object": "postgres secretstore",
    "default of a list": "topic",
    "default that is not text": "agent backupplan bucket cache certificate cluster …",
    "enum of texts": "agent bucket cache cdn certificate cluster …",
    "enum of numbers": "legacyvm redirect topic",
    "enum with an empty text": "cdn",
    "pattern": "agent backupplan cluster dnsrecord flag gpu …",
    "lengths": "agent alertrule bucket cdn certificate cluster …",
    "bounds": "agent alertrule certificate cluster dataset dnsrecord …",
    "exclusive bounds": "alertrule",
    "multiples": "dataset dnsrecord notebook",
    "format of a text": "backupplan cdn cluster dataset dnsrecord helmapp …",
    "format of a number": "dataset",
    "boolean": "bucket cache certificate device flag ingress …",
    "number": "agent alertrule dataset service",
    "nullable": "backupplan flag",
    "int-or-string": "loadbalancer queue runner",
    "list of scalars": "alertrule certificate cluster dnsrecord firewall kafkauser …",
    "list of objects": "bucket cluster dashboard firewall gateway ingress …",
    "list of lists": "alertrule",
    "set": "dnsrecord queue replica team",
    "keyed list": "bucket cluster firewall gateway",
    "list keyed by two fields": "firewall",
    "map of texts": "bucket cdn loadbalancer runner",
    "map of objects": "network",
    "map of lists": "kafkauser",
    "map of maps": "runner",
    "atomic map": "loadbalancer",
    "five levels": "workflow",
    "unknown fields kept in a field": "dashboard helmapp",
    "unknown fields kept in spec": "scratch",
    "embedded object": "dashboard",
    "oneOf of spec": "dnsrecord",
    "oneOf of a field": "stream",
    "anyOf": "stream",
    "allOf and not": "notebook",
    "rule": "agent cdn certificate gateway mailbox quota …",
    "rule across fields": "agent certificate gateway licence vpn",
    "rule about the name": "certificate",
    "rule with oldSelf": "flag gateway gpu licence namespaceclaim network …",
    "rule with optionalOldSelf": "flag",
    "rule with a computed message": "certificate",
    "rule with a field path": "certificate vpn",
    "immutable field": "gateway network postgres",
    "immutable spec": "licence",
    "hint for forms in the schema": "website",
    "annotation of the ingestor": "website",
    "names with other signs": "device topic",
}
"""Kits that have it; of more than six the first ones."""


@pytest.mark.parametrize("construct", HAS)
def test_kits_have_the_construct(construct: str) -> None:
    found = [kit for kit in kit_names() if HAS[construct](definition(kit))]

    listed = KITS[construct].split()
    shown = found if len(found) <= 6 else [*found[:6], "…"]
    assert listed == shown


def test_every_construct_is_somewhere() -> None:
    assert set(KITS) == set(HAS)
    assert all(KITS.values())


def test_the_corpus_is_large_enough() -> None:
    assert len(kit_names()) >= 40


@pytest.mark.parametrize("kit", kit_names())
def test_a_kit_says_what_it_is_for(kit: str) -> None:
    first = definition_path(kit).read_text().splitlines()[0]

    assert first.startswith("# ")
    assert first.endswith(".")


def test_every_key_of_kit_yaml_is_used_by_some_kit() -> None:
    kits = [made(name).kit for name in kit_names()]
    used = {
        name
        for name in (
            *("description", "tags", "name_from", "team_from", "aliases", "pages", "fields"),
            *("hidden", "links", "changes", "examples"),
        )
        if any(getattr(kit, name) for kit in kits)
    }

    assert used >= {"name_from", "team_from", "aliases", "pages", "fields", "hidden", "links"}
    assert used >= {"changes", "examples", "description", "tags"}
    assert any(kit.lease.default for kit in kits)
    assert any(kit.end.survives for kit in kits)
    assert {field.when for kit in kits for field in kit.fields.values() if field.when}
    assert {f.picker.kind for kit in kits for f in kit.fields.values() if f.picker} == {
        "entity",
        "owner",
    }
    assert {change.direction for kit in kits for change in kit.changes} == {
        *("any", "grow", "step", "never")
    }
