"""
CustomResourceDefinitions: validate them, and list the kinds that they serve.

A definition is Established in the same write that stores it. Served versions are converted by
changing ``apiVersion`` only (strategy None). Not here: ``selectableFields`` are kept, not
evaluated; the ``scale`` subresource is not served; the cost of CEL rules is not estimated.

`KindRegistry` has the kinds that are served now: the built-in ones and those of the definitions in
the store. Every request reads it; only ``writes`` changes it, when a definition changes, with the
store's lock held. A change replaces the maps, so readers need no lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ground.objects.kube_objects import Kind, Manifest, dig, metadata
from kubeschema.cel import has_rules, rules_of
from kubeschema.structural import check_schema
from orderkit_standins.cluster.documents import now
from orderkit_standins.cluster.kinds import AGE, BUILT_IN, Column, Schemas, ServedKind
from orderkit_standins.cluster.refusals import Cause, KindMissing

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Keeps a definition until its last object is gone."""

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")


def faults(definition: Manifest) -> list[Cause]:
    """Return why the server would refuse the definition; empty if it is sound."""
    spec = definition["spec"]
    return [*_name_faults(definition), *_scope_faults(spec), *_version_faults(spec)]


def _name_faults(definition: Manifest) -> Iterator[Cause]:
    spec, name = definition["spec"], definition["metadata"]["name"]
    group, plural = spec["group"], dig(spec, "names", "plural", default="")
    if name != f"{plural}.{group}":
        yield Cause(
            "metadata.name",
            f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group',
        )
    if "." not in group:
        yield Cause(
            "spec.group", f'Invalid value: "{group}": should be a domain with at least one dot'
        )
    for field in ("plural", "singular", "kind", "listKind"):
        value = dig(spec, "names", field)
        if value is not None and not _LABEL.match(value.lower()):
            yield Cause(
                f"spec.names.{field}",
                f'Invalid value: "{value}": a DNS-1035 label must consist of lower case '
                "alphanumeric characters or '-', start with an alphabetic character, and end "
                "with an alphanumeric character",
            )


def _scope_faults(spec: dict[str, Any]) -> Iterator[Cause]:
    if spec["scope"] not in {"Cluster", "Namespaced"}:
        yield Cause(
            "spec.scope",
            f'Unsupported value: "{spec["scope"]}": supported values: "Cluster", "Namespaced"',
            "FieldValueNotSupported",
        )


def _version_faults(spec: dict[str, Any]) -> Iterator[Cause]:
    versions = spec["versions"]
    if sum(bool(version["storage"]) for version in versions) != 1:
        yield Cause(
            "spec.versions",
            "Invalid value: must have exactly one version marked as storage version",
        )
    names = [version["name"] for version in versions]
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}]"
        if names.index(version["name"]) != index:
            yield Cause(
                f"{at}.name", f'Duplicate value: "{version["name"]}"', "FieldValueDuplicate"
            )
        schema_at = f"{at}.schema.openAPIV3Schema"
        schema = dig(version, "schema", "openAPIV3Schema")
        lines = check_schema(schema, at=schema_at)
        for line in lines:
            field, _, message = line.partition(": ")
            yield Cause(field, message)
        if not lines:
            for path, message in rules_of(schema).faults(at=schema_at):
                yield Cause(path, message)


def with_defaults(definition: Manifest) -> Manifest:
    """Return the definition with the names the server fills in."""
    spec = definition["spec"]
    names = spec["names"]
    kind = names.get("kind", "")
    filled = {**names}
    filled.setdefault("singular", kind.lower())
    filled.setdefault("listKind", f"{kind}List")
    return {
        **definition,
        "spec": {"conversion": {"strategy": "None"}, **spec, "names": filled},
    }


def established(definition: Manifest) -> Manifest:
    """Return the definition with the status of a served one; times of old conditions stay."""
    spec = definition["spec"]
    status = dict(definition.get("status") or {})
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    for type_, reason, message in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        conditions.setdefault(
            type_,
            {
                "type": type_,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": now(),
            },
        )
    status["conditions"] = list(conditions.values())
    status["acceptedNames"] = spec["names"]
    stored = list(status.get("storedVersions") or ())
    storage = next(version["name"] for version in spec["versions"] if version["storage"])
    status["storedVersions"] = stored if storage in stored else [*stored, storage]
    return {**definition, "status": status}


def terminating(definition: Manifest) -> bool:
    """Say whether the definition is being deleted."""
    return bool(dig(definition, "metadata", "deletionTimestamp"))


def served_kinds(definition: Manifest) -> list[ServedKind]:
    """Return one entry per served version, the storage version first."""
    versions = [v for v in definition["spec"]["versions"] if v["served"]]
    return [
        _served(definition["spec"], version)
        for version in sorted(versions, key=lambda v: not v["storage"])
    ]


def stored_kind(definition: Manifest) -> ServedKind:
    """Return the kind in its storage version, served or not."""
    spec = definition["spec"]
    return _served(spec, next(version for version in spec["versions"] if version["storage"]))


def _served(spec: dict[str, Any], version: dict[str, Any]) -> ServedKind:
    names = spec["names"]
    schema = dig(version, "schema", "openAPIV3Schema", default={"type": "object"})
    schemas = Schemas.of(schema)
    return ServedKind(
        kind=Kind(spec["group"], version["name"], names["kind"]),
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        schemas=lambda: schemas,
        rules=rules_of(schema) if has_rules(schema) else None,
        singular=names.get("singular", names["kind"].lower()),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=_columns(version),
        has_status=dig(version, "subresources", "status") is not None,
        has_generation=True,
        custom=True,
        shaped_on_read=len(spec["versions"]) > 1,
        description=schema.get("description", ""),
    )


def _columns(version: dict[str, Any]) -> tuple[Column, ...]:
    declared = version.get("additionalPrinterColumns")
    if not declared:
        return (AGE,)
    return tuple(
        Column(
            column["name"],
            column["jsonPath"],
            column["type"],
            column.get("format", ""),
            column.get("description", ""),
            column.get("priority", 0),
        )
        for column in declared
    )


class KindRegistry:
    """Served kinds by kind and by (group, version, plural)."""

    def __init__(self) -> None:
        self._definitions: dict[str, list[ServedKind]] = {}
        self._by_kind: dict[Kind, ServedKind] = {}
        self._by_resource: dict[tuple[str, str, str], ServedKind] = {}
        self._rebuild()

    def define(self, definition: Manifest) -> None:
        """Start to serve the kinds of a definition."""
        self._definitions[metadata(definition)["name"]] = served_kinds(definition)
        self._rebuild()

    def forget(self, name: str) -> None:
        """Stop serving the kinds of a definition."""
        self._definitions.pop(name, None)
        self._rebuild()

    def _rebuild(self) -> None:
        kinds_served = [
            *BUILT_IN,
            *(kind for kinds in self._definitions.values() for kind in kinds),
        ]
        self._by_resource = {
            (served.kind.group, served.kind.version, served.plural): served
            for served in kinds_served
        }
        self._by_kind = {served.kind: served for served in kinds_served}

    def find(self, kind: Kind) -> ServedKind | None:
        return self._by_kind.get(kind)

    def get(self, kind: Kind) -> ServedKind:
        """
        Return a served kind.

        Raises:
            KindMissing: It is not served.
        """
        served = self._by_kind.get(kind)
        if served is None:
            raise KindMissing(kind)
        return served

    def resource(self, group: str, version: str, plural: str) -> ServedKind | None:
        """Return the kind behind a URL's group, version and plural."""
        return self._by_resource.get((group, version, plural))

    def any_version(self, group: str, kind: str) -> ServedKind | None:
        """Return the kind in a served version, preferably the storage version."""
        return next((s for s in self.all() if (s.kind.group, s.kind.kind) == (group, kind)), None)

    def all(self) -> Iterable[ServedKind]:
        """Return every served kind in every version."""
        return self._by_kind.values()
