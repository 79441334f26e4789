"""
What a core made of XRs, as an account that two cores can share.

Of an XR: spec, references, conditions, the rest of its status and what kubectl prints of it. Of a
composed resource: exactly the fields that the core applied, read from ``managedFields``, so what
the API server defaults, and what providers write, is not part of it. Nested XRs are both.

What two runs cannot share is replaced: uids, times, and hashes in names, which are checked
before they go. Nothing else is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import requests

from compositions.composed import RESOURCE_NAME_ANNOTATION, child_name
from ground.objects.kube_objects import (
    EVENT,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from orderkit.ports.cluster import Cluster

Account = dict[str, dict[str, Any]]
"""What was seen of each subject: an XR, a composed resource by path, a cell that kubectl prints."""

_COMPOSED = "apiextensions.crossplane.io/composed/"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_AGE, _REVISION = "AGE", "COMPOSITIONREVISION"
_NEWER = {
    "XGarage": ("BAY", "ASSEMBLED"),
    "XDatasetAgent": ("SPENT", "BUCKET"),
    "XAgentBudget": ("SINCE",),
}
"""Columns that the XRDs have since the scenes were recorded; they show fields of the status."""
_REVISION_HASH = re.compile(r"(?<=-)[0-9a-f]{7}$")
_PASSING = re.compile(
    r"^(\(combined from similar events\): )?"
    r"(Composed resource .* is not yet |selected CompositionRevision .*: pipeline status unknown$)"
)
"""What is said on the way, and more or less often, or not at all."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Where an API server prints its objects as ``kubectl get`` shows them."""

    url: str
    authorization: str = field(repr=False)
    verify: str | bool = True

    def row(self, path: str) -> dict[str, Any]:
        """Return the cells of one object by column; None where it is gone."""
        with requests.Session() as session:
            session.trust_env = False
            headers = {"Accept": _TABLE, "Authorization": self.authorization}
            answer = session.get(self.url + path, headers=headers, timeout=30, verify=self.verify)
        table = answer.json()
        columns = [column["name"] for column in table.get("columnDefinitions") or ()]
        (row,) = table.get("rows") or [{"cells": [None] * len(columns)}]
        return dict(zip(columns, row["cells"], strict=True))


@dataclass(frozen=True, slots=True)
class Eyes:
    """A way to look at a cluster."""

    cluster: Cluster
    tables: Tables
    plurals: Mapping[Kind, str]
    """Kinds of XRs, as the API's paths call them."""

    def account(self, roots: tuple[ObjectKey, ...]) -> Account:
        """Return what there is of these XRs now; one that is gone is not in it."""
        found: Account = {}
        for root in roots:
            found |= dict(self._tree(root, ""))
        return found

    def _tree(self, key: ObjectKey, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        xr = self.cluster.get(key)
        if xr is None:
            return
        label = f"{key.kind.kind} {path or key.name}"
        yield label, {**_shown(xr), "printed": self._printed(key)}
        for reference in dig(xr, "spec", "crossplane", "resourceRefs", default=None) or ():
            part = ObjectKey.from_json({"namespace": key.namespace, **reference})
            found = self.cluster.get(part)
            if found is None:
                yield f"{path or key.name}/(missing {part.kind.kind})", {}
                continue
            logical = annotations_of(found)[RESOURCE_NAME_ANNOTATION]
            below = f"{path or key.name}/{logical}"
            yield below, applied(found, xr, logical)
            if part.kind in self.plurals:
                yield from self._tree(part, below)

    def _printed(self, key: ObjectKey) -> dict[str, Any]:
        """Return what ``kubectl get -o wide`` prints, without ages and newer columns."""
        home = f"/namespaces/{key.namespace}" if key.namespace else ""
        where = f"/apis/{key.kind.api_version}{home}/{self.plurals[key.kind]}/{key.name}"
        cells = self.tables.row(where)
        newer = _NEWER.get(key.kind.kind, ())
        told = {name: cell for name, cell in cells.items() if name.upper() not in (_AGE, *newer)}
        return {**told, _REVISION: _REVISION_HASH.sub("<hash>", str(told.get(_REVISION)))}

    def events(self, roots: tuple[ObjectKey, ...]) -> set[str]:
        """Return what was said about these XRs so far, each sentence once, but for `_PASSING`."""
        about = {(root.kind.kind, root.name) for root in roots}
        return {
            f"{event['type']} {event['reason']}: {_REVISION_HASH.sub('<hash>', event['message'])}"
            for event in self.cluster.list(EVENT).items
            if (dig(event, "involvedObject", "kind"), dig(event, "involvedObject", "name")) in about
            and not _PASSING.match(event["message"])
        }


def _shown(xr: Manifest) -> dict[str, Any]:
    """Return what people see of an XR."""
    spec = dict(xr.get("spec") or {})
    machinery = spec.pop("crossplane", {})
    status = dict(xr.get("status") or {})
    conditions = status.pop("conditions", None) or []
    generation = metadata(xr).get("generation")
    references = [_reference(each) for each in machinery.get("resourceRefs") or ()]
    return {
        "spec": spec,
        "composition": dig(machinery, "compositionRef", "name"),
        "labels": metadata(xr).get("labels") or {},
        "finalizers": metadata(xr).get("finalizers") or [],
        "resourceRefs": references,
        "status": status,
        "conditions": {each["type"]: _condition(each, generation) for each in conditions},
    }


def _reference(reference: Mapping[str, str]) -> str:
    kind = Kind.parse(reference["apiVersion"], reference["kind"])
    home = f"{reference['namespace']}/" if reference.get("namespace") else ""
    return f"{kind.kind}.{kind.api_version} {home}{stable_name(reference['name'])}"


def _condition(entry: Mapping[str, Any], generation: object) -> str:
    told = f"{entry['status']} {entry['reason']}"
    told += f": {entry['message']}" if entry.get("message") else ""
    if "observedGeneration" not in entry:
        return f"{told} (of no generation)"
    return told if entry["observedGeneration"] == generation else f"{told} (of an older generation)"


def stable_name(name: str) -> str:
    """Return a name without the hash that Crossplane gives it."""
    head, _, tail = name.rpartition("-")
    is_hash = len(tail) == 12 and set(tail) <= set("0123456789abcdef")
    return f"{head}-<hash>" if is_hash else name


def applied(found: Manifest, xr: Manifest, logical: str) -> Manifest:
    """Return the fields of a composed resource that the core owns, hashes checked and replaced."""
    entries = [
        entry
        for entry in metadata(found).get("managedFields") or ()
        if entry["manager"].startswith(_COMPOSED) and entry.get("operation") == "Apply"
    ]
    assert len(entries) == 1, f"{logical}: {len(entries)} managers of {_COMPOSED}"
    kept = _owned(found, entries[0]["fieldsV1"])
    meta = kept["metadata"]
    for owner in meta.get("ownerReferences") or ():
        assert owner["uid"] == metadata(xr)["uid"], f"{logical} is owned by another"
        owner["uid"] = "<uid>"
    name = meta.get("name") or metadata(found)["name"]
    stable = stable_name(name)
    if stable != name:
        prefix = meta.get("generateName") or stable.removesuffix("<hash>")
        assert name == child_name(prefix, metadata(xr)["uid"], logical), name
    head = {"apiVersion": found["apiVersion"], "kind": found["kind"]}
    place = {"name": stable}
    if metadata(found).get("namespace"):
        place["namespace"] = metadata(found)["namespace"]
    return {**head, **kept, "metadata": {**meta, **place}}


def _owned(value: Any, fields: Mapping[str, Any]) -> Any:
    """Return the part of a value that a field set names."""
    steps = {step: below for step, below in fields.items() if step != "."}
    if not steps:
        return value
    if isinstance(value, list):
        found = [(item, _below(item, steps)) for item in value]
        return [_owned(item, below) for item, below in found if below is not None]
    return {
        step[2:]: _owned(value[step[2:]], below)
        for step, below in steps.items()
        if step.startswith("f:") and step[2:] in value
    }


def _below(item: Any, steps: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a field set names of an item of a list; None if it does not name the item."""
    for step, below in steps.items():
        tag, _, rest = step.partition(":")
        wanted = json.loads(rest)
        if tag == "v" and item == wanted:
            return cast("Mapping[str, Any]", below)
        if tag == "k" and all(item.get(key) == part for key, part in wanted.items()):
            return cast("Mapping[str, Any]", below)
    return None
