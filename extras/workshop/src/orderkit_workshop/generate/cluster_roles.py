"""
Generate the rights for a kit in the cluster: two ClusterRoles, for Crossplane and for our Jobs.

Crossplane's is aggregated to its own. Made from kit.yaml's ``composes`` (all verbs) and
``requires`` (reading). Default rights of Crossplane are omitted: the kinds of its own role, its own
groups, and the kit's XR. Composing a Role needs ``escalate``, composing a binding needs ``bind``.
``check.kind_checks`` compares with the same list and the same plurals.

Orderkit's Jobs may read. They check whether an order's XR, its parts and the objects it refers to
exist, and nothing else: their changes go to Git. (``day2/job/rights.yaml`` has their rights on
Applications.) Secrets are left out: no role reads that one is there without its values.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from compositions.granted_rights import AGGREGATE, DEFAULTS, READ, WRITE
from ground.objects.kube_objects import Kind, Manifest
from orderkit.core.kit.generated_mark import comment
from orderkit.core.kit.kit_file import KindRef
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_kinds import plural, read_resources
from yamlfiles import yaml11

_RBAC = "rbac.authorization.k8s.io"
_OWN_GROUPS = frozenset(
    f"{name}.crossplane.io" for name in ("apiextensions", "ops", "pkg", "protection")
)


def rbac(kit: Kit) -> dict[PurePosixPath, bytes]:
    """Return ``gitops/apis/<kit>/rbac.yaml``."""
    role: Manifest = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"crossplane-compose-{kit.name}", "labels": {AGGREGATE: "true"}},
        "rules": rules(kit),
    }
    # also without rules, so that a right that is no longer needed is removed
    path = PurePosixPath("gitops", "apis", kit.name, "rbac.yaml")
    return {path: (comment(kit.name) + yaml11.dump(role)).encode()}


def rules(kit: Kit) -> list[dict[str, Any]]:
    """Return the rules of the kit's role, sorted, one per group and set of verbs."""
    verbs_by_resource: dict[tuple[str, str], set[str]] = {}
    for verbs, kinds in ((WRITE, kit.composes), (READ, kit.requires)):
        for ref in kinds:
            if not _is_default(kit, ref):
                verbs_by_resource.setdefault((_kind(ref).group, plural(ref)), set()).update(verbs)
    named: dict[str, set[str]] = {}
    for ref in kit.composes:
        for resource, verb in _granting(ref):
            if ref.binds:
                named.setdefault(resource, set()).update(ref.binds)
            else:
                verbs_by_resource.setdefault((_RBAC, resource), set()).add(verb)
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), verbs_ in sorted(verbs_by_resource.items()):
        grouped.setdefault((group, _ordered(verbs_)), []).append(resource)
    return [
        *(
            {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
            for (group, verbs), resources in sorted(grouped.items())
        ),
        *(
            {
                "apiGroups": [_RBAC],
                "resources": [resource],
                "resourceNames": sorted(names),
                "verbs": ["bind"],
            }
            for resource, names in sorted(named.items())
        ),
    ]


def _ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    all_verbs = (*WRITE, "bind", "escalate")
    return tuple(sorted(verbs, key=all_verbs.index))


def _granting(ref: KindRef) -> Iterable[tuple[str, str]]:
    """Yield resource and verb needed to pass rights on, beyond the verbs to write the object."""
    kind = _kind(ref)
    if kind.group != _RBAC:
        return
    # Kubernetes lets nobody grant rights that they do not have themselves
    if kind.kind in {"Role", "ClusterRole"}:
        yield plural(ref), "escalate"
    elif kind.kind == "ClusterRoleBinding":
        yield "clusterroles", "bind"
    elif kind.kind == "RoleBinding":
        yield from ((resource, "bind") for resource in ("clusterroles", "roles"))


def _is_default(kit: Kit, ref: KindRef) -> bool:
    kind = _kind(ref)
    is_own_xr = (kind.group, kind.kind) == (kit.kind.group, kit.kind.kind)
    return is_own_xr or kind.group in _OWN_GROUPS or (kind.group, kind.kind) in DEFAULTS


def _kind(ref: KindRef) -> Kind:
    return Kind.parse(ref.api_version, ref.kind)


RUNNER_AGGREGATE = "orderkit.dev/aggregate-to-runner"


def runner_role(kit: Kit) -> dict[PurePosixPath, bytes]:
    """Return ``gitops/apis/<kit>/runner.yaml``."""
    role: Manifest = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"orderkit-run-{kit.name}", "labels": {RUNNER_AGGREGATE: "true"}},
        "rules": [
            {"apiGroups": [group], "resources": sorted(names), "verbs": ["get", "list"]}
            for group, names in sorted(read_resources(kit).items())
        ],
    }
    path = PurePosixPath("gitops", "apis", kit.name, "runner.yaml")
    return {path: (comment(kit.name) + yaml11.dump(role)).encode()}
