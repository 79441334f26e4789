"""
Field ownership: ``metadata.managedFields``, server-side apply and its conflicts.

`record_update` records the fields that a create, replace or patch changed. `apply` merges a
manager's configuration into the live object, removes fields that the manager no longer sets, and
refuses to overwrite fields of others unless forced. Pure; called by ``writes`` with the write lock
held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ground.objects.kube_objects import Manifest, metadata
from ground.objects.values import clone
from orderkit_standins.cluster import typed_documents
from orderkit_standins.cluster.documents import now
from orderkit_standins.cluster.refusals import ApplyConflict, Cause, RefusalSubject
from orderkit_standins.cluster.typed_documents import (
    SELF,
    FieldSet,
    difference,
    intersection,
    paths,
    union,
)

_SERVER_SET = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "generation",
        "managedFields",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    }
)
"""Metadata that nobody owns."""


@dataclass(frozen=True, slots=True)
class Manager:
    """An identity in managedFields. Applying managers are the same in every API version."""

    name: str
    operation: str
    subresource: str = ""
    api_version: str = ""

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return text


class ManagerEntry(NamedTuple):
    """The fields of a manager, the API version of its request, and the time."""

    fields: FieldSet
    api_version: str
    time: str


Entries = dict[Manager, ManagerEntry]


class Author(NamedTuple):
    """Who writes, through which API version and subresource."""

    owner: str
    api_version: str
    subresource: str = ""

    def updating(self) -> Manager:
        return Manager(self.owner, "Update", self.subresource, self.api_version)

    def applying(self) -> Manager:
        return Manager(self.owner, "Apply", self.subresource)


def read(manifest: Manifest) -> Entries:
    """Return the managers of an object in their order."""
    entries: Entries = {}
    for entry in metadata(manifest).get("managedFields") or ():
        operation, api_version = entry.get("operation", ""), entry.get("apiVersion", "")
        manager = Manager(
            entry.get("manager", ""),
            operation,
            entry.get("subresource", ""),
            "" if operation == "Apply" else api_version,
        )
        entries[manager] = ManagerEntry(
            entry.get("fieldsV1") or {}, api_version, entry.get("time", "")
        )
    return entries


def _write(manifest: Manifest, entries: Entries) -> None:
    manifest["metadata"]["managedFields"] = [
        {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": entry.api_version,
            "time": entry.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": entry.fields,
        }
        | ({"subresource": manager.subresource} if manager.subresource else {})
        for manager, entry in entries.items()
    ]


def visible(manifest: Manifest) -> Manifest:
    """Return the part of an object that can have owners."""
    parts = {k: v for k, v in manifest.items() if k not in {"apiVersion", "kind", "metadata"}}
    kept = {k: v for k, v in metadata(manifest).items() if k not in _SERVER_SET}
    if kept:
        parts["metadata"] = kept
    return parts


def record_update(
    old: Manifest | None, new: Manifest, schema: Mapping[str, Any] | None, author: Author
) -> None:
    """
    Set ``managedFields`` of `new`: what changed against `old` now belongs to `author`.

    Owners stated in `new` count instead of those of `old` (kubectl migrates owners that way);
    an explicit ``managedFields: [{}]`` forgets all of them, as on the real server.
    """
    stated_fields = metadata(new).get("managedFields")
    entries = {} if stated_fields == [{}] else read(new) or read(old or {})
    before, after = visible(old or {}), visible(new)
    changes = typed_documents.compare(before, after, schema)
    changes.touched.get("f:metadata", {}).pop(SELF, None)
    manager = author.updating()
    changed_fields = union(changes.touched, changes.removed)
    entries = _without(entries, changed_fields, spare=manager)
    _take(entries, manager, author, changes)
    _write(new, entries)


def _without(entries: Entries, fields: FieldSet, *, spare: Manager) -> Entries:
    if not fields:
        return entries
    remaining: Entries = {}
    for manager, entry in entries.items():
        if manager == spare:
            remaining[manager] = entry
            continue
        fields_left = difference(entry.fields, fields)
        if fields_left:
            remaining[manager] = (
                entry if fields_left == entry.fields else entry._replace(fields=fields_left)
            )
    return remaining


def _take(
    entries: Entries, manager: Manager, author: Author, changes: typed_documents.OwnedFieldChanges
) -> None:
    mine = entries.get(manager, ManagerEntry({}, author.api_version, ""))
    fields = union(difference(mine.fields, changes.removed), changes.touched)
    if not fields:
        entries.pop(manager, None)
    elif fields != mine.fields:
        entries[manager] = ManagerEntry(fields, author.api_version, now())


def apply(
    live: Manifest,
    config: Manifest,
    schema: Mapping[str, Any] | None,
    author: Author,
    *,
    force: bool,
    subject: RefusalSubject,
) -> Manifest:
    """
    Return `live` with exactly the fields of `config` owned by `author`, managedFields set.

    `live` is the object's skeleton (name only) when it does not exist yet.

    Raises:
        ApplyConflict: Another manager owns a field that would change, and `force` is False.
    """
    entries = read(live)
    manager = author.applying()
    applied = visible(config)
    claimed = typed_documents.fields_of(applied, schema)
    before = visible(live)
    merged = typed_documents.merge(before, applied, schema)
    last = entries.get(manager)
    other_fields = _all_fields(entries, but=manager)
    if last is not None:
        merged = typed_documents.prune(merged, last.fields, union(other_fields, claimed), schema)
    changes = typed_documents.compare(before, merged, schema)
    if not force:
        _refuse_conflicts(entries, manager, changes.touched, subject)
    entries = _without(entries, union(changes.touched, changes.removed), spare=manager)
    _claim(entries, manager, author, claimed, last)
    return _assembled(live, merged, entries)


def _all_fields(entries: Entries, *, but: Manager) -> FieldSet:
    fields: FieldSet = {}
    for manager, entry in entries.items():
        if manager != but:
            fields = union(fields, entry.fields)
    return fields


def _claim(
    entries: Entries, manager: Manager, author: Author, claimed: FieldSet, last: ManagerEntry | None
) -> None:
    if not claimed:
        entries.pop(manager, None)
    elif last is None or last.fields != claimed or last.api_version != author.api_version:
        entries[manager] = ManagerEntry(claimed, author.api_version, now())


def _assembled(live: Manifest, merged: Manifest, entries: Entries) -> Manifest:
    """Return the merged object: server-set metadata from `live`, the rest from `merged`."""
    kept = {k: v for k, v in metadata(live).items() if k in _SERVER_SET}
    merged_rest = clone(merged)
    assembled = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {**clone(kept), **merged_rest.pop("metadata", {})},
        **merged_rest,
    }
    _write(assembled, entries)
    return assembled


def _refuse_conflicts(
    entries: Entries, manager: Manager, touched: FieldSet, subject: RefusalSubject
) -> None:
    conflicts: list[tuple[str, str]] = []
    for other, entry in entries.items():
        if other == manager:
            continue
        who = str(other)
        if other.operation == "Update":
            who += f" using {entry.api_version}"
        conflicts += [(who, path) for path in paths(intersection(entry.fields, touched))]
    if conflicts:
        causes = [
            Cause(path, f"conflict with {who}", "FieldManagerConflict") for who, path in conflicts
        ]
        raise ApplyConflict(_conflict_text(conflicts), subject=subject, causes=causes)


def _conflict_text(conflicts: list[tuple[str, str]]) -> str:
    if len(conflicts) == 1:
        who, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {who}: {path}"
    groups = [
        f"conflicts with {who}:\n" + "\n".join(f"- {path}" for w, path in conflicts if w == who)
        for who in sorted({who for who, _ in conflicts})
    ]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(groups)
