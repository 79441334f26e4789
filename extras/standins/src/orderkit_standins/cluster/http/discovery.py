"""
What is served, as clients ask for it: ``/version``, ``/api``, ``/apis`` and below.

Computed from the registry at each request, so a new definition is visible at once. The
aggregated form of newer clients is not offered; they fall back to this one.
"""

from __future__ import annotations

from ground.objects.kube_objects import Manifest
from orderkit_standins.cluster.cluster import VERSION_TEXT
from orderkit_standins.cluster.kinds import ServedKind
from orderkit_standins.cluster.registry import KindRegistry

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
    served = [kind for kind in registry.all() if kind.kind.group == name]
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in dict.fromkeys(kind.kind.version for kind in served)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


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
