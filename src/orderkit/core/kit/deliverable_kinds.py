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

from ground.shapes import StrictShape
from orderkit.core.documents import read_document, write_document
from orderkit.core.kit.generated_mark import pack_comment
from orderkit.core.kit.model import Kit
from yamlfiles.documents import Files

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
