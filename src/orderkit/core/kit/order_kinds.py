"""
The kinds that orders of a pack consist of: what teams may deliver, and what RBAC names.

``gitops/kinds.yaml`` is generated from the XRDs of all kits and committed, so that a review shows
when teams may deliver a new kind. It is not part of a layer, so Argo CD does not deliver it.
``orderkit team add`` and bootstrap write its kinds into each team's AppProject
(``core.order.ledger_applications``): cluster-scoped kinds into ``clusterResourceWhitelist``,
namespaced kinds into ``namespaceResourceWhitelist``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ground.names import Files
from ground.objects.kube_objects import Kind, plural_of
from ground.shapes import StrictShape
from orderkit.core.documents import read_document, write_document
from orderkit.core.kit.generated_mark import pack_comment
from orderkit.core.kit.kit_file import KindRef
from orderkit.core.kit.model import Kit

PATH = PurePosixPath("gitops", "kinds.yaml")


class _Rule(StrictShape, frozen=True):
    group: str
    kind: str


class _KindsFile(StrictShape, frozen=True):
    name: str
    cluster_resources: tuple[_Rule, ...]
    namespaced_resources: tuple[_Rule, ...]


GroupKind = tuple[str, str]
"""Group and kind; AppProjects ignore versions."""


@dataclass(frozen=True, slots=True)
class OrderKinds:
    """The kinds that orders may deliver, by scope, sorted."""

    cluster: tuple[GroupKind, ...] = ()
    namespaced: tuple[GroupKind, ...] = ()


def kinds_of(kits: Iterable[Kit]) -> OrderKinds:
    """Return the XR kinds of kits."""
    scoped_kinds = {(kit.namespaced, (kit.kind.group, kit.kind.kind)) for kit in kits}
    return OrderKinds(
        tuple(sorted(group_kind for namespaced, group_kind in scoped_kinds if not namespaced)),
        tuple(sorted(group_kind for namespaced, group_kind in scoped_kinds if namespaced)),
    )


def kinds(pack_name: str, kits: Iterable[Kit]) -> dict[PurePosixPath, bytes]:
    """Return ``gitops/kinds.yaml``."""
    order_kinds = kinds_of(kits)
    file = _KindsFile(
        pack_name,
        tuple(_Rule(*kind) for kind in order_kinds.cluster),
        tuple(_Rule(*kind) for kind in order_kinds.namespaced),
    )
    text = write_document("OrderKinds", file, named="name")
    return {PATH: (pack_comment() + text).encode()}


def as_rules(group_kinds: Sequence[GroupKind]) -> list[dict[str, str]]:
    """Return kinds as entries of an AppProject."""
    return [{"group": group, "kind": kind} for group, kind in group_kinds]


def read_kinds(files: Files) -> OrderKinds | None:
    """
    Return the list of a pack; None if it has none.

    Raises:
        InvalidInputError: The file is malformed.
    """
    if PATH not in files:
        return None
    name = str(PATH)
    file = read_document(_KindsFile, files[PATH], name=name, kinds=("OrderKinds",), named="name")
    return OrderKinds(_read(file.cluster_resources), _read(file.namespaced_resources))


def _read(rules: Iterable[_Rule]) -> tuple[GroupKind, ...]:
    return tuple(sorted((rule.group, rule.kind) for rule in rules))


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
