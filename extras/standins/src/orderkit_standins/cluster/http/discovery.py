"""
What is served, as clients ask for it: ``/version``, ``/api``, ``/apis`` and below.

Computed from the registry at each request, so a new definition is visible at once. The
aggregated form of newer clients is not offered; they fall back to this one.
"""

from __future__ import annotations

import re

from ground.objects.kube_objects import Manifest
from orderkit_standins.cluster.cluster import VERSION_TEXT
from orderkit_standins.cluster.definitions import KindRegistry
from orderkit_standins.cluster.kinds import ServedKind

VERSION: Manifest = {
    "major": "1",
    "minor": "37",
    "gitVersion": VERSION_TEXT,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "cpython",
    "platform": "embedded",
}

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def core_versions() -> Manifest:
    """Answer ``/api``."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(registry: KindRegistry) -> Manifest:
    """Answer ``/apis``."""
    groups = dict.fromkeys(served.kind.group for served in registry.all() if served.kind.group)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(registry, name) for name in groups],
    }


def group(registry: KindRegistry, name: str) -> Manifest | None:
    """Answer ``/apis/<group>``."""
    if not any(served.kind.group == name for served in registry.all()):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, name)}


def _group(registry: KindRegistry, name: str) -> Manifest:
    served = {kind.kind.version for kind in registry.all() if kind.kind.group == name}
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in sorted(served, key=_priority)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _priority(version: str) -> tuple[int, int, int, str]:
    """
    Return the key that puts the preferred version of a group first.

    Stable before beta before alpha, then the higher number; other names last, by alphabet.
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority
    """
    found = re.fullmatch(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?", version)
    if not found:
        return (3, 0, 0, version)
    stage = {"": 0, "beta": 1, "alpha": 2}[found[2] or ""]
    return (stage, -int(found[1]), -int(found[3] or 0), "")


def resource_list(registry: KindRegistry, group_name: str, version: str) -> Manifest | None:
    """Answer ``/api/v1`` and ``/apis/<group>/<version>``."""
    kinds = [
        served
        for served in registry.all()
        if (served.kind.group, served.kind.version) == (group_name, version)
    ]
    if not kinds:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].kind.api_version,
        "resources": [entry for served in kinds for entry in _resources(served)],
    }


def _resources(served: ServedKind) -> list[Manifest]:
    entry: Manifest = {
        "name": served.plural,
        "singularName": served.singular,
        "namespaced": served.namespaced,
        "kind": served.kind.kind,
        "verbs": _VERBS,
    }
    if served.short_names:
        entry["shortNames"] = list(served.short_names)
    if served.categories:
        entry["categories"] = list(served.categories)
    if not served.has_status:
        return [entry]
    status = {
        "name": f"{served.plural}/status",
        "singularName": "",
        "namespaced": served.namespaced,
        "kind": served.kind.kind,
        "verbs": ["get", "patch", "update"],
    }
    return [entry, status]
