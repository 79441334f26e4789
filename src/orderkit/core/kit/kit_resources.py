"""The kinds that a kit's orders consist of, as RBAC names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ground.objects.kube_objects import Kind, plural_of
from orderkit.core.kit.kit_file import KindRef
from orderkit.core.kit.model import Kit


def plural(ref: KindRef) -> str:
    """Return the plural of a kind for RBAC: the declared one, otherwise by English rules."""
    return ref.resource or plural_of(ref.kind)


def read_resources(kit: Kit) -> dict[str, set[str]]:
    """Return the resources of the XR, its parts and what its fields refer to, without Secrets."""
    resources = {kit.kind.group: {str(kit.xrd["spec"]["names"]["plural"])}}
    for ref in (*kit.composes, *_referred(kit)):
        group = Kind.parse(ref.api_version, ref.kind).group
        if (group, ref.kind) == ("", "Secret"):
            continue
        resources.setdefault(group, set()).add(plural(ref))
    return resources


def service_rules(kits: Sequence[Kit]) -> list[dict[str, Any]]:
    """Return what the service may read of the orders of these kits."""
    resources: dict[str, set[str]] = {}
    for kit in kits:
        for group, names in read_resources(kit).items():
            resources.setdefault(group, set()).update(names)
    rules: list[dict[str, Any]] = [
        {"apiGroups": [group], "resources": sorted(names), "verbs": ["get", "list", "watch"]}
        for group, names in sorted(resources.items())
    ]
    if any(map(_composes_secrets, kits)):  # outputs, and masks of what is derived from them
        rules.append({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]})
    return rules


def _composes_secrets(kit: Kit) -> bool:
    """Say whether the kit's orders compose Secrets."""
    return any((ref.api_version, ref.kind) == ("v1", "Secret") for ref in kit.composes)


def _referred(kit: Kit) -> Iterator[KindRef]:
    """Yield the kinds that fields refer to, with the plural from ``requires``."""
    required = {(ref.api_version, ref.kind): ref for ref in kit.requires}
    for hints in kit.fields.values():
        if hints.refers:
            key = (hints.refers.api_version, hints.refers.kind)
            yield required.get(key, KindRef(*key))
