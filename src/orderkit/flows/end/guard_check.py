"""
Refuse to end an order that is protected, or that another order still needs.

Checked before the first step of an end, never later: an end that has begun is finished. Called by
``flows.end.destroying``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ground.argocd.delivery_hindrances import tracker
from ground.errors import RefusedError
from ground.objects.kube_objects import Manifest, ObjectKey
from orderkit.core.kit.model import Kit
from orderkit.core.order.end_record import DEPENDS_ON, PROTECTED, needs, protection
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.platform import Platform, get_object, published_pack, snapshot
from orderkit.ports.cluster import NoSuchKindError
from yamlfiles.manifests import ManifestError, parse_manifests

_YAML = (".yaml", ".yml", ".json")


def check_may_end(platform: Platform, entry: OrderEntry, xr: ObjectKey | None) -> None:
    """
    Check that an order may end.

    Protection is read from Git, or from the live XR if the repository is gone. The orders that
    need this one are read from the XRs of all kits in the cluster.

    Raises:
        RefusedError: It is protected, or another order needs it; the message names which.
    """
    protection_note = protection(_manifests_in_git(platform, entry, xr))
    if protection_note:
        raise RefusedError(
            f"{entry.order} is protected and cannot end: {protection_note}",
            hint=f"remove the annotation {PROTECTED} from its XR in {entry.repository} first",
        )
    users = sorted(_users(platform, entry, xr)) if xr else []
    if users:
        raise RefusedError(
            f"{entry.order} is needed by {', '.join(users)}",
            hint=f"end those first, or remove the annotation {DEPENDS_ON} from their XRs",
        )


def _manifests_in_git(
    platform: Platform, entry: OrderEntry, xr: ObjectKey | None
) -> Iterator[Manifest]:
    files = snapshot(platform, entry.repository)
    if files is None:
        living = get_object(platform, xr) if xr else None
        if living is not None:
            yield living
        return
    for path in sorted(files.blobs):
        if path.is_relative_to(MANIFESTS) and path.suffix in _YAML:
            revision = platform.forge.read(entry.repository, path, files.commit)
            try:
                yield from parse_manifests(str(path), revision.data) if revision else ()
            except ManifestError:
                continue  # Argo CD cannot read it either: it must not block the end


def _users(platform: Platform, entry: OrderEntry, xr: ObjectKey) -> Iterator[str]:
    for kit in published_pack(platform).kits():
        reads_kind = _reads(kit, xr)
        for other in _living(platform, kit):
            if ObjectKey.of(other) == xr:
                continue
            how = needs(other, entry.order, xr.name, reads_kind=reads_kind)
            if how:
                yield f"{_order_of(other)} ({how})"


def _reads(kit: Kit, xr: ObjectKey) -> bool:
    kind = (xr.kind.api_version, xr.kind.kind)
    return any((requirement.api_version, requirement.kind) == kind for requirement in kit.requires)


def _living(platform: Platform, kit: Kit) -> tuple[Manifest, ...]:
    try:
        xrs = platform.cluster.list(kit.kind).items
    except NoSuchKindError:
        return ()
    return tuple(xr for xr in xrs if not xr["metadata"].get("deletionTimestamp"))


def _order_of(xr: Manifest) -> str:
    """Name the order that delivers an XR; one that nobody delivers by its kind and name."""
    return tracker(xr) or str(ObjectKey.of(xr))
