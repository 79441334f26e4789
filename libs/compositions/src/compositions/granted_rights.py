"""
The rights that ClusterRoles grant to Crossplane.

A pack is judged by them before it is published, a plan with those of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable

from ground.objects.kube_objects import Kind, Manifest, dig

__all__ = [
    "AGGREGATE",
    "DEFAULTS",
    "READ",
    "WRITE",
    "is_aggregated",
    "is_granted",
    "right_to_hand_on",
    "verbs_granted",
]

AGGREGATE = "rbac.crossplane.io/aggregate-to-crossplane"
WRITE = ("get", "list", "watch", "create", "update", "patch", "delete")
READ = ("get", "list", "watch")
DEFAULTS = frozenset(
    {
        ("", "Event"),
        ("", "Secret"),
        ("", "Service"),
        ("", "ServiceAccount"),
        ("", "ConfigMap"),
        ("coordination.k8s.io", "Lease"),
        ("apps", "Deployment"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    }
)
"""What Crossplane's own role allows, read from the source of 2.3."""
_RBAC = "rbac.authorization.k8s.io"
_PROVIDERS = (".crossplane.io", ".upbound.io")
_HANDING_ON = {"bind", "escalate"}


def is_aggregated(role: Manifest) -> bool:
    """Return whether a ClusterRole is aggregated to Crossplane's own."""
    return bool(dig(role, "metadata", "labels", AGGREGATE) == "true")


def is_granted(kind: Kind) -> bool:
    """Return whether Crossplane may compose a kind without a role of the pack."""
    return kind.group.endswith(_PROVIDERS) or (kind.group, kind.kind) in DEFAULTS


def verbs_granted(roles: Iterable[Manifest], group: str, resource: str) -> set[str]:
    """Return the verbs that roles grant on a resource; malformed rules grant none."""
    granted: set[str] = set()
    for role in roles:
        rules = dig(role, "rules")
        for rule in rules if isinstance(rules, list) else ():
            groups = _texts(dig(rule, "apiGroups"))
            resources = _texts(dig(rule, "resources"))
            if not {group, "*"}.isdisjoint(groups) and not {resource, "*"}.isdisjoint(resources):
                granted |= set(_texts(dig(rule, "verbs")))
    return set(WRITE) | _HANDING_ON if "*" in granted else granted


def right_to_hand_on(kind: Kind) -> tuple[str, str] | None:
    """Return verb and resource needed to pass rights on by an object of a kind, if it does."""
    if kind.group != _RBAC:
        return None
    binding = kind.kind.endswith("Binding")  # the verb applies to the role that is bound
    role = "clusterroles" if binding else f"{kind.kind.lower()}s"
    return ("bind" if binding else "escalate", role)


def _texts(value: object) -> list[str]:
    """Return the texts of a list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
