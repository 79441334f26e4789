"""
End an order and prove that it is gone.

Removing the only manifest does not prune it: Argo CD answers "app path does not exist" or
"auto-sync will wipe out all resources" (observed on 3.2.11). Hence the order of steps, each
recorded in the ledger before it is taken:

    marked         end mark; the Application without self-heal, pruning, allowed to become empty
    emptying       the manifests replaced by .gitkeep; everything seen to be gone, twice
    removing       the Application out of the ledger, seen to be gone
    unregistering  the entity out of the catalog
    closing        the repository archived or deleted; the tombstone

A repetition continues at the recorded step. Functions do not run for deleted XRs, so nothing here
depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import PurePosixPath

from ground.errors import NotFoundError, RefusedError
from ground.names import OrderId, TeamName, check_requester
from ground.shapes import ObjectReference, changed
from orderkit.core.kit.model import End
from orderkit.core.order import ledger
from orderkit.core.order.end_record import EndRecord, parse
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.end.before_end import first_of, make_first, survivors
from orderkit.flows.end.end_request import Ended, EndRequest, OnStep
from orderkit.flows.end.end_steps import EndRun, kit_if_published, write_tombstone
from orderkit.flows.end.guard_check import check_may_end
from orderkit.flows.end.withdrawing import begin_withdrawal
from orderkit.flows.order import order_report, tracing
from orderkit.flows.order.end_records import begun_end
from orderkit.flows.platform import Platform, ledger_snapshot, read_text


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
    paths = ledger_snapshot(platform).blobs
    entry = ledger.ending_order(paths, request.order)
    tombstones = ledger.tombstones(paths, request.order)
    if entry is None and tombstones and ledger.living_order(paths, request.order) is None:
        return _already_ended(platform, request, tombstones[-1])
    entry = entry or order_report.find(request.order, paths)
    if request.only_waiting:
        _check_waits(platform, entry, paths)
    try:
        record = _begin(platform, entry, request, on_step, is_waiting=entry.waiting_path in paths)
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
    *,
    is_waiting: bool,
) -> EndRecord:
    if not is_waiting:
        return _record(platform, entry, request, on_step)
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
    text = read_text(platform, platform.ledger, tombstone, "main") or ""
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
    platform: Platform, entry: OrderEntry, request: EndRequest, on_step: OnStep
) -> EndRecord:
    record = begun_end(platform, entry)
    if record is not None:
        _check_taken(platform, record, request)
        return record
    trace = tracing.trace(platform, entry.order)
    check_may_end(platform, entry, trace.report.xr)
    kit = kit_if_published(platform, trace.report.kit)
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
        trace = tracing.trace(platform, entry.order)
    return EndRecord(
        order=entry.order,
        kit=trace.report.kit,
        requester=request.requester,
        repository=request.repository or end.repository,
        step="marked",
        started_at=platform.clock.now().isoformat(timespec="seconds"),
        must_be_gone=tuple(map(ObjectReference.to, trace.parts())),
        survives=survivors(platform, entry.order, kit) if kit else (),
    )


def _check_taken(platform: Platform, record: EndRecord, request: EndRequest) -> None:
    """Refuse further resources once the end is under way: no station runs any more."""
    kit = kit_if_published(platform, record.kit) if request.take else None
    for survivor in kit.end.survives if kit else ():
        if survivor.name in request.take and survivor.text in record.survives:
            raise RefusedError(
                f"{record.order} is already ending and will not remove '{survivor.name}'",
                hint=f"leave that --take out; {survivor.text} stays, remove it yourself",
            )
