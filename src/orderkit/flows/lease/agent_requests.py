"""
An AI agent asks to extend or to end an order: as a pull request of the ledger.

The pull request holds the lease's record as the extension, or the end, would write it. Someone who
may write to the ledger merges it. Then the next sweep ends the order, after it has checked again
that the order is not protected and that no other order needs it. Nothing here writes to ``main``.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timedelta

from ground.errors import ConflictError, RefusedError
from ground.names import MAIN, check_requester
from orderkit.core.durations import duration_text
from orderkit.core.order.approval import CONTEXT
from orderkit.core.order.lease import LeaseRecord, time_text
from orderkit.core.plan.plan_markdown import plain_line
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.end.guard_check import check_may_end
from orderkit.flows.lease.extending import ExtendRequest, LeasedOrder, extended, read_leased
from orderkit.flows.order import order_report, tracing
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import (
    REASON_TRAILER,
    CommitStatus,
    Operation,
    PullDraft,
    PullRequest,
    agent_notes,
)


def propose_extension(platform: Platform, request: ExtendRequest) -> PullRequest:
    """
    Return the open pull request that proposes an extension, opening one if there is none.

    Raises:
        NotFoundError: There is no such order, or it has ended.
        InvalidInputError, RefusedError: As of the extension itself.
        ConflictError: The ledger changed meanwhile.
    """
    leased = _leased(platform, request.order)
    by = request.requester
    operation = request.operation or f"extend-{uuid.uuid4().hex[:12]}"
    record = extended(platform, leased, replace(request, operation=operation))
    title = (
        f"{request.order}: extend by {duration_text(request.duration)},"
        f" to {time_text(record.expires)}"
    )
    notes = ((REASON_TRAILER, record.reason), *agent_notes(by.agent))
    why = Operation(f"agent-{operation}", by.ref, title, by.proof, notes)
    return _proposed(platform, leased, record, "extend", why)


def propose_end(platform: Platform, request: EndRequest) -> PullRequest:
    """
    Return the open pull request that proposes the end of an order, opening one if there is none.

    Raises:
        NotFoundError: There is no such order, or it has ended.
        RefusedError: It is protected, needed by another order, not delivered, or ending.
        ConflictError: The ledger changed meanwhile.
    """
    check_requester(request.requester)
    leased = _leased(platform, request.order)
    check_may_end(platform, leased.entry, tracing.trace(platform, request.order).report.xr)
    now = platform.clock.now().replace(microsecond=0)
    before = leased.record or LeaseRecord(now, now, now, timedelta(0))
    record = _ended_by(before, now, request)
    why = Operation(
        f"agent-end-{uuid.uuid4().hex[:12]}",
        request.requester,
        f"{request.order}: end",
        request.proof,
        request.notes,
    )
    return _proposed(platform, leased, record, "end", why)


def _ended_by(before: LeaseRecord, now: datetime, request: EndRequest) -> LeaseRecord:
    reason = " ".join(request.reason.split())
    expires = min(before.expires, now)
    return replace(before, expires=expires, ending=now, by=request.requester, reason=reason)


def _leased(platform: Platform, order: str) -> LeasedOrder:
    blobs = ledger_snapshot(platform).blobs
    entry = order_report.find(order, blobs)
    if entry.waiting_path in blobs:
        raise RefusedError(
            f"{order} waits for approval and is not delivered",
            hint=f"its requester can withdraw it: orderkit destroy {order}",
        )
    if entry.end_path in blobs:
        raise RefusedError(f"{order} is ending", hint=f"orderkit destroy {order} finishes it")
    return read_leased(platform, entry)


def _proposed(
    platform: Platform, leased: LeasedOrder, record: LeaseRecord, verb: str, why: Operation
) -> PullRequest:
    """Open a pull request, at most one for each order and verb."""
    forge, repo, order = platform.forge, platform.ledger, leased.entry.order
    branch = f"orderkit/agents/{verb}-{order}"
    for pull in forge.pulls(repo, base=MAIN, head=branch):
        return pull
    forge.delete_branch(repo, branch)
    start = forge.head(repo)
    if start is None:
        raise ConflictError(f"{repo} is empty", hint="orderkit bootstrap")
    forge.ensure_branch(repo, branch, start)
    commit = forge.write(repo, [leased.with_record(record)], why, branch=branch).commit
    asked = "\n".join(f"- {key}: {plain_line(text)}" for key, text in why.notes)
    person = f"{plain_line(why.requester)}{'' if why.proof else ' (not proved)'}"
    body = (
        f"An AI agent asks for this on behalf of {person}.\n\n{asked}\n\n"
        "Merging this does it. Closing this declines it."
    )
    pull = forge.open_pull(repo, PullDraft(why.summary, body, branch, MAIN), why)
    text = "an AI agent asks; a person decides by merging"
    forge.set_status(repo, commit, CommitStatus(CONTEXT, "success", text, pull.web_url))
    return pull
