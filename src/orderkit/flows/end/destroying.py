"""
End an order and prove that it is gone; before that, say what survives and change it.

`destroy` ends an order. Removing the only manifest does not prune it: Argo CD answers
"app path does not exist" or "auto-sync will wipe out all resources" (observed on 3.2.11). Hence the
order of steps, each recorded in the ledger before it is taken:

    marked         end mark; the Application without self-heal, pruning, allowed to become empty
    emptying       the manifests replaced by .gitkeep; everything seen to be gone, twice
    removing       the Application out of the ledger, seen to be gone
    unregistering  the entity out of the catalog
    closing        the repository archived or deleted; the tombstone

A repetition continues at the recorded step. Crossplane runs no function for an XR that is being
deleted, so no step depends on one.

For the same reason the last work of an order's stations (``end.first`` of kit.yaml) is a normal
change that is delivered before the end begins and is recorded (`make_first`). If the process is
killed, a repetition finds the fields set and waits again. An order that is not delivered, or whose
repository is gone, is skipped. The same way removes resources that would survive and that the
caller asks to take along (``end.survives`` with a name).

`preview_end` says what the end deletes and what it leaves, before anything is written. What stays:
what the kit says survives (`survivors`), managed resources that their provider may not delete,
claims that a StatefulSet made, and an archived repository.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, OrderkitError, RefusedError
from ground.names import CommitSha, OrderId, TeamName, check_requester
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata, wrapped_object
from ground.objects.values import same, shown
from ground.shapes import ObjectReference, changed
from orderkit.core.kit.kit_file import End, First, How
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, order_state
from orderkit.core.order.change import FieldEdit
from orderkit.core.order.end_record import EndRecord, Survivor, parse
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.end.end_request import (
    Ended,
    EndRequest,
    OnStep,
    begin_withdrawal,
    check_may_end,
)
from orderkit.flows.end.end_steps import EndRun, kit_if_published, write_tombstone
from orderkit.flows.order import order_report, tracing
from orderkit.flows.order.ledger_records import begun_end, waiting_order
from orderkit.flows.order.live_order import XrFile, find_living, read_xr
from orderkit.flows.order.order_report import NOTHING_KNOWN, KnownReads
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    ledger_snapshot,
    pack_snapshot,
    read_text,
)
from orderkit.flows.repeating import until
from orderkit.ports.cluster import Cluster
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


def survivors(
    platform: Platform, order: str, kit: Kit, known: KnownReads = NOTHING_KNOWN
) -> tuple[str, ...]:
    """Return what survives this order by its XR in Git; without an XR, everything that may."""
    xr_file = xr_in_git(platform, order, known)
    spec: dict[str, Any] = (xr_file.xr.get("spec") if xr_file else None) or {}
    return tuple(survivor.text for survivor in kit.end.survivors if survivor.holds(spec))


def xr_in_git(platform: Platform, order: str, known: KnownReads = NOTHING_KNOWN) -> XrFile | None:
    """Return an order's XR on ``main``; None if it is gone, archived or damaged."""
    try:
        live = find_living(platform, order, known.ledger_files, known.pack)
        head = known.head or platform.forge.head(live.repository)
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
        application = get_object(platform.cluster, application_key(order))
        if application is None:
            return ""
        return order_state.undelivered(application, commit) or _missing(
            get_object(platform.cluster, xr), first
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
    stays = [*left_in_the_cluster(platform.cluster, parts)]
    stays += survivors(platform, order, kit) if kit and parts else ()
    goes = [str(key) for key in parts]
    if (repository or (kit.end.repository if kit else "archive")) == "archive":
        stays.append(f"its repository {entry.repository}, archived")
    else:
        goes.append(f"its repository {entry.repository}, with its history")
    return EndPreview(order, tuple(goes), tuple(stays))


def left_in_the_cluster(cluster: Cluster, parts: Sequence[ObjectKey]) -> Iterator[str]:
    """Yield what parts of an order leave behind, in words."""
    namespaces = {key.name for key in parts if (key.kind.group, key.kind.kind) == ("", _NAMESPACE)}
    for key in parts:
        try:
            manifest = get_object(cluster, key)
        except OrderkitError:
            continue  # a Secret that we may not read, for example, leaves nothing
        if manifest is None:
            continue
        if is_orphaned(manifest):
            yield f"what {key} manages: its provider may not delete it"
        for workload in filter(None, (manifest, wrapped_object(manifest))):
            # claims in a Namespace of the order go with it
            if dig(workload, "metadata", "namespace") not in namespaces:
                yield from _claims(cluster, workload)


def is_orphaned(manifest: Manifest) -> bool:
    """Say whether what a managed resource stands for outlives it (crossplane-runtime)."""
    policies = dig(manifest, "spec", "managementPolicies")
    if isinstance(policies, list) and "*" not in policies:
        return "Delete" not in policies
    return bool(dig(manifest, "spec", "deletionPolicy") == "Orphan")


def _claims(cluster: Cluster, workload: Manifest) -> Iterator[str]:
    """Yield the claims that Kubernetes keeps when a StatefulSet is deleted."""
    policy = dig(workload, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
    if Kind.of(workload).kind != "StatefulSet" or policy == "Delete":
        return
    meta = metadata(workload)
    # Kubernetes names a claim <template>-<set>-<ordinal>
    prefixes = tuple(
        f"{metadata(template).get('name')}-{meta.get('name')}-"
        for template in dig(workload, "spec", "volumeClaimTemplates") or ()
    )
    if not prefixes:
        return
    try:
        listed = cluster.list(_CLAIM, namespace=meta.get("namespace")).items
    except OrderkitError:  # we may not look
        names = ", ".join(f"{prefix}N" for prefix in prefixes)
        yield f"the claims that StatefulSet {meta.get('name')} made ({names})"
        return
    for claim in map(ObjectKey.of, listed):
        if claim.name.startswith(prefixes):
            yield f"{claim}: StatefulSet {meta.get('name')} made it"


def destroy(
    platform: Platform,
    request: EndRequest,
    *,
    on_step: OnStep,
    on_wait: Callable[[str], object] | None = None,
) -> Ended:
    """
    End an order, or continue an interrupted end. Idempotent, resumable.

    Args:
        on_wait: Told again and again what is waited for.

    Raises:
        NotFoundError: There is no such order, and no tombstone of one; or it does not wait, and
            only a waiting one is to end.
        RefusedError: It is protected, or another order needs it.
        IncompleteError: A part is not gone in time; the message lists what is left.
        ConflictError: Somebody else began to withdraw or end it at the same moment.
    """
    check_requester(request.requester)
    ledger_files = ledger_snapshot(platform)
    paths = ledger_files.blobs
    entry = ledger.ending_order(paths, request.order)
    tombstones = ledger.tombstones(paths, request.order)
    if entry is None and tombstones and ledger.living_order(paths, request.order) is None:
        return _already_ended(platform, request, tombstones[-1])
    entry = entry or order_report.find(request.order, paths)
    if request.only_waiting:
        _check_waits(platform, entry, paths)
    try:
        record = _begin(platform, entry, request, on_step, ledger_files)
        run = EndRun(platform, entry, request, on_step, on_wait, tombstones=tombstones)
        return run.run(record)
    except NotFoundError:
        paths = ledger_snapshot(platform).blobs
        now = ledger.tombstones(paths, request.order)
        if now == tombstones:
            raise
        # Somebody else ended it meanwhile. Its id and repository may be a new order's by now.
        if ledger.living_order(paths, request.order) or ledger.ending_order(paths, request.order):
            request = replace(request, repository=None)
        return _already_ended(platform, request, now[-1])


def _begin(
    platform: Platform,
    entry: OrderEntry,
    request: EndRequest,
    on_step: OnStep,
    ledger_files: RepositorySnapshot,
) -> EndRecord:
    if entry.waiting_path not in ledger_files.blobs:
        return _record(platform, entry, request, on_step, ledger_files)
    record = begin_withdrawal(
        platform,
        entry,
        requester=request.requester,
        proof=request.proof,
        notes=request.notes,
        repository=request.repository,
    )
    on_step("marked", "withdrawn before it was delivered")
    return record


def _check_waits(platform: Platform, entry: OrderEntry, paths: Container[PurePosixPath]) -> None:
    end = None if entry.waiting_path in paths else begun_end(platform, entry)
    if entry.waiting_path not in paths and not (end and end.is_withdrawal):
        raise NotFoundError(
            f"{entry.order} does not wait any more: it was delivered meanwhile",
            hint=f"to end it: orderkit destroy {entry.order}",
        )


def _already_ended(platform: Platform, request: EndRequest, tombstone: PurePosixPath) -> Ended:
    """Delete an archived repository if asked to, and update the tombstone; nothing else is left."""
    entry = OrderEntry(TeamName(tombstone.parts[1]), OrderId(request.order))
    text = read_text(platform.forge, platform.ledger, tombstone, "main") or ""
    record = parse(text, name=str(tombstone))
    if request.repository != "delete":
        return Ended(record, entry.team, changed=False)
    deleted = platform.forge.delete_repo(entry.repository)
    known = (record.repository, record.removal_scheduled)
    is_recorded = known == ("delete", deleted.scheduled_on)  # else a run was killed in between
    if not is_recorded:
        record = changed(record, repository="delete", removal_scheduled=deleted.scheduled_on)
        write_tombstone(platform, entry, record, request)
    return Ended(record, entry.team, changed=bool(deleted) or not is_recorded)


def _record(
    platform: Platform,
    entry: OrderEntry,
    request: EndRequest,
    on_step: OnStep,
    ledger_files: RepositorySnapshot,
) -> EndRecord:
    record = begun_end(platform, entry, ledger_files.commit)
    if record is not None:
        _check_taken(platform, record, request)
        return record
    known = KnownReads(ledger_files, pack_snapshot(platform))
    trace = tracing.trace(platform, entry.order, known)
    known = replace(known, head=trace.report.state.head)
    check_may_end(platform, entry, trace.report.xr, known)
    kit = kit_if_published(platform, trace.report.kit, known.pack)
    end = kit.end if kit else End()
    xr = trace.report.xr
    firsts = first_of(kit, request.take) if kit else ()
    requester, timeout_s = request.requester, request.timeout_s
    if xr and firsts:
        for first in firsts:
            order = entry.order
            set_values = make_first(
                platform, order, first, xr, requester=requester, timeout_s=timeout_s
            )
            on_step("first", set_values)
        known = NOTHING_KNOWN
        trace = tracing.trace(platform, entry.order)
    return EndRecord(
        order=entry.order,
        kit=trace.report.kit,
        requester=request.requester,
        repository=request.repository or end.repository,
        step="marked",
        started_at=platform.clock.now().isoformat(timespec="seconds"),
        must_be_gone=tuple(map(ObjectReference.to, trace.parts())),
        survives=survivors(platform, entry.order, kit, known) if kit else (),
    )


def _check_taken(platform: Platform, record: EndRecord, request: EndRequest) -> None:
    """Refuse further resources once the end is under way: no station runs any more."""
    kit = kit_if_published(platform, record.kit) if request.take else None
    for survivor in kit.end.survivors if kit else ():
        if survivor.name in request.take and survivor.text in record.survives:
            raise RefusedError(
                f"{record.order} is already ending and will not remove '{survivor.name}'",
                hint=f"leave that --take out; {survivor.text} stays, remove it yourself",
            )
