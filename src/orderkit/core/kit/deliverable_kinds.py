"""
The kinds that orders of a pack may deliver: the list for every team's AppProject.

``gitops/kinds.yaml`` is generated from the XRDs of all kits and committed, so that a review shows
when teams may deliver a new kind. It is not part of a layer, so Argo CD does not deliver it.
``orderkit team add`` and bootstrap write its kinds into each team's AppProject
(``core.order.ledger_applications``): cluster-scoped kinds into ``clusterResourceWhitelist``,
namespaced kinds into ``namespaceResourceWhitelist``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.kit.generated_mark import pack_comment
from orderkit.core.kit.model import Kit
from yamlfiles import yaml11
from yamlfiles.documents import API_VERSION, Files

PATH = PurePosixPath("gitops", "kinds.yaml")
_KINDS = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["group", "kind"],
        "properties": {"group": {"type": "string"}, "kind": {"type": "string"}},
    },
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "spec"],
    "properties": {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": "OrderKinds"},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["clusterResources", "namespacedResources"],
            "properties": {"clusterResources": _KINDS, "namespacedResources": _KINDS},
        },
    },
}

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
    document = {
        "apiVersion": API_VERSION,
        "kind": "OrderKinds",
        "metadata": {"name": pack_name},
        "spec": {
            "clusterResources": as_rules(order_kinds.cluster),
            "namespacedResources": as_rules(order_kinds.namespaced),
        },
    }
    return {PATH: (pack_comment() + yaml11.dump(document)).encode()}


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
    spec = yaml11.load(files[PATH], name=str(PATH), schema=_SCHEMA)["spec"]
    return OrderKinds(_read(spec["clusterResources"]), _read(spec["namespacedResources"]))


def _read(rules: Iterable[dict[str, str]]) -> tuple[GroupKind, ...]:
    return tuple(sorted((rule["group"], rule["kind"]) for rule in rules))
