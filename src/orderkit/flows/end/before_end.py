"""
Change an order before it ends, and list what survives it: kit.yaml's ``end``.

The same way removes resources that would survive and that the caller asks to take along
(``end.survives`` with a name).

Crossplane runs no function for an XR that is being deleted. So the last work of its stations
(``end.first``) is a normal change that is delivered before the end begins. If the process is
killed, a repetition finds the fields set and waits again. An order that is not delivered, or whose
repository is gone, is skipped.

Runs before the end is recorded.

Say what the end of an order deletes and what it leaves, before anything is written.

What stays: what the kit says survives, managed resources that their provider may not delete, claims
that a StatefulSet made, and an archived repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import InvalidInputError, OrderkitError
from ground.names import CommitSha
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata, wrapped_object
from ground.objects.values import same, shown
from orderkit.core.kit.kit_file import First, How
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, order_state
from orderkit.core.order.change import FieldEdit
from orderkit.core.order.end_record import Survivor
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.end.end_steps import kit_if_published
from orderkit.flows.order import order_report, tracing
from orderkit.flows.order.approval_records import waiting_order
from orderkit.flows.order.live_order import XrFile, find_living, read_xr
from orderkit.flows.platform import Platform, get_object, ledger_snapshot
from orderkit.flows.waiting import until
from orderkit.ports.requesters import Requester


class TakenAlong(First, frozen=True):
    """A person confirmed it with the order's id: no review is needed."""


def first_of(kit: Kit, take: Sequence[str]) -> tuple[First, ...]:
    """
    Return the fields to set before the end: the kit's, and those for resources to take along.

    Raises:
        InvalidInputError: The kit has no such name.
    """
    survivors = {survivor.name: survivor for survivor in kit.end.survivors if survivor.name}
    for name in take:
        if name not in survivors:
            offered = f"it has: {', '.join(survivors)}" if survivors else f"kit {kit.name} has none"
            raise InvalidInputError(
                "take", name, "is not a resource that an end can take along", hint=offered
            )
    taken_along = tuple(
        TakenAlong(survivors[name].unless, why=survivors[name].ask) for name in sorted(set(take))
    )
    return (*((kit.end.first,) if kit.end.first else ()), *taken_along)


def make_first(
    platform: Platform, order: str, first: First, xr: ObjectKey, *, requester: str, timeout_s: float
) -> str:
    """
    Set the fields to set before the end, and wait until the XR's status confirms them. Idempotent.

    Returns what was done, in words; empty if there was nothing to do.

    Raises:
        RefusedError: The kit's own rules forbid it.
        IncompleteError: The status did not confirm it in time.
    """
    xr_file = xr_in_git(platform, order)
    if xr_file is None:
        return ""
    edits = tuple(
        FieldEdit(path, "set", value)
        for path, value in first.set.items()
        if not same(dig(xr_file.xr, "spec", *path.split(".")), value)
    )
    commit = xr_file.commit
    if edits:
        request = ChangeRequest(
            order=order,
            edits=edits,
            requester=Requester(requester),
            reason=first.why or "the order ends",
            how=How.DIRECT,
            accept_loss=isinstance(first, TakenAlong),
            ends=isinstance(first, TakenAlong),
        )
        commit = change(platform, request).commit or commit
    _await(platform, order, xr=xr, commit=commit, first=first, timeout_s=timeout_s)
    values = ", ".join(f"{path} is {shown(value)}" for path, value in first.set.items())
    return f"{values}: {first.why}" if first.why else values


def survivors(platform: Platform, order: str, kit: Kit) -> tuple[str, ...]:
    """Return what survives this order by its XR in Git; without an XR, everything that may."""
    xr_file = xr_in_git(platform, order)
    spec: dict[str, Any] = (xr_file.xr.get("spec") if xr_file else None) or {}
    return tuple(survivor.text for survivor in kit.end.survivors if survivor.holds(spec))


def xr_in_git(platform: Platform, order: str) -> XrFile | None:
    """Return an order's XR on ``main``; None if it is gone, archived or damaged."""
    try:
        live = find_living(platform, order)
        head = platform.forge.head(live.repository)
        return read_xr(platform, live, head) if head else None
    except OrderkitError as error:
        if error.retryable:
            raise
        return None  # archived, or its record or XR is damaged: it must still be able to end


def _await(
    platform: Platform,
    order: str,
    *,
    xr: ObjectKey,
    commit: CommitSha,
    first: First,
    timeout_s: float,
) -> None:
    def why_not() -> str:
        application = get_object(platform, application_key(order))
        if application is None:
            return ""
        return order_state.undelivered(application, commit) or _missing(
            get_object(platform, xr), first
        )

    until(
        platform.clock,
        why_not,
        lambda reason: not reason,
        timeout_s=timeout_s,
        goal=f"{order}: the change before its end",
        why_not=lambda reason: reason,
    )


def _missing(xr: Manifest | None, first: First) -> str:
    """Say what the XR's status does not confirm yet; empty if all is well or there is no XR."""
    if xr is None:
        return ""
    conditions = dig(xr, "status", "conditions", default=())
    synced: Manifest = next((entry for entry in conditions if entry.get("type") == "Synced"), {})
    if synced.get("status") != "True":
        return f"Crossplane says: {synced.get('message') or 'nothing yet'}"
    if synced.get("observedGeneration") != metadata(xr).get("generation"):
        return "Crossplane has not reconciled it since"
    for path, value in first.until.items():
        actual = dig(xr, "status", *path.split("."))
        if not same(actual, value):
            return f"status.{path} is {shown(actual)}, not {shown(value)}"
    return ""


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
