"""
Say what the end of an order deletes and what it leaves, before anything is written.

What stays: what the kit says survives, managed resources that their provider may not delete, claims
that a StatefulSet made, and an archived repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ground.errors import OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata
from ground.objects.managed_objects import wrapped_object
from orderkit.core.order import ledger
from orderkit.core.order.end_record import Survivor
from orderkit.flows.end.before_end import survivors
from orderkit.flows.end.end_steps import kit_if_published
from orderkit.flows.order import order_report, tracing
from orderkit.flows.order.approval_records import waiting_order
from orderkit.flows.platform import Platform, get_object, ledger_snapshot

_CLAIM = Kind("", "v1", "PersistentVolumeClaim")
_NAMESPACE = "Namespace"


@dataclass(frozen=True, slots=True)
class EndPreview:
    """What an end does, in words: first the order's XR, then its parts."""

    order: str
    goes: tuple[str, ...]
    stays: tuple[str, ...]


def preview_end(
    platform: Platform, order: str, *, repository: Survivor | None = None
) -> EndPreview | None:
    """
    Return what the end of an order does; None if its end has begun, or it has ended.

    Args:
        repository: What becomes of the repository. None: as the kit says.

    Raises:
        NotFoundError: There is no such order.
    """
    paths = ledger_snapshot(platform).blobs
    if ledger.ending_order(paths, order):
        return None
    if ledger.tombstones(paths, order) and ledger.living_order(paths, order) is None:
        return None
    entry = order_report.find(order, paths)
    if entry.waiting_path in paths:
        waiting = waiting_order(platform, entry)
        kit_name, parts = waiting.kit if waiting else "", list[ObjectKey]()
    else:
        trace = tracing.trace(platform, order)
        kit_name, parts = trace.report.kit, list(trace.parts())
    kit = kit_if_published(platform, kit_name)
    stays = [*left_in_the_cluster(platform, parts)]
    stays += survivors(platform, order, kit) if kit and parts else ()
    goes = [str(key) for key in parts]
    if (repository or (kit.end.repository if kit else "archive")) == "archive":
        stays.append(f"its repository {entry.repository}, archived")
    else:
        goes.append(f"its repository {entry.repository}, with its history")
    return EndPreview(order, tuple(goes), tuple(stays))


def left_in_the_cluster(platform: Platform, parts: Sequence[ObjectKey]) -> Iterator[str]:
    """Yield what parts of an order leave behind, in words."""
    namespaces = {key.name for key in parts if (key.kind.group, key.kind.kind) == ("", _NAMESPACE)}
    for key in parts:
        try:
            manifest = get_object(platform, key)
        except OrderkitError:
            continue  # a Secret that we may not read, for example, leaves nothing
        if manifest is None:
            continue
        if is_orphaned(manifest):
            yield f"what {key} manages: its provider may not delete it"
        for workload in filter(None, (manifest, wrapped_object(manifest))):
            if dig(workload, "metadata", "namespace") not in namespaces:
                yield from _claims(platform, workload)


def is_orphaned(manifest: Manifest) -> bool:
    """Say whether what a managed resource stands for outlives it (crossplane-runtime)."""
    policies = dig(manifest, "spec", "managementPolicies")
    if isinstance(policies, list) and "*" not in policies:
        return "Delete" not in policies
    return bool(dig(manifest, "spec", "deletionPolicy") == "Orphan")


def _claims(platform: Platform, workload: Manifest) -> Iterator[str]:
    """Yield the claims that Kubernetes keeps when a StatefulSet is deleted."""
    policy = dig(workload, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
    if Kind.of(workload).kind != "StatefulSet" or policy == "Delete":
        return
    meta = metadata(workload)
    prefixes = tuple(
        f"{metadata(template).get('name')}-{meta.get('name')}-"
        for template in dig(workload, "spec", "volumeClaimTemplates") or ()
    )
    if not prefixes:
        return
    try:
        listed = platform.cluster.list(_CLAIM, namespace=meta.get("namespace")).items
    except OrderkitError:  # we may not look
        names = ", ".join(f"{prefix}N" for prefix in prefixes)
        yield f"the claims that StatefulSet {meta.get('name')} made ({names})"
        return
    for claim in map(ObjectKey.of, listed):
        if claim.name.startswith(prefixes):
            yield f"{claim}: StatefulSet {meta.get('name')} made it"
