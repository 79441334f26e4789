"""
Show and extend the lease of one order, also for an AI agent, who may only ask.

`extend_lease` reads the ledger's file of the order, judges it and writes it back with the blob id
that was read: a sweep that ends the order at the same moment either comes first, or sees the
extension.

An AI agent asks to extend or to end an order by a pull request of the ledger (`propose_extension`,
`propose_end`), which holds the lease's record as the extension, or the end, would write it. Someone
who may write to the ledger merges it. Then the next sweep ends the order, after it has checked
again that the order is not protected and that no other order needs it. Neither proposal writes to
``main``.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import ClassVar, Literal

from msgspec import field

from ground.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from ground.names import MAIN, check_requester
from ground.objects.kube_objects import Manifest, metadata
from ground.shapes import Answer, Known, changed
from orderkit.core.durations import duration_text, rough_duration
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger
from orderkit.core.order.approval import CONTEXT
from orderkit.core.order.lease import (
    EXPIRES_AT,
    REASON_MAX,
    RECORD,
    Extension,
    LeasePolicy,
    LeaseRecord,
    extend,
    policy_of,
    read_record,
    time_text,
)
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.plan.plan_markdown import plain_line
from orderkit.flows.argocd.commit_pinning import application_of
from orderkit.flows.argocd.refreshing import refresh
from orderkit.flows.end.end_request import EndRequest, check_may_end
from orderkit.flows.order import order_report, tracing
from orderkit.flows.order.expiry_note import try_note_expiry
from orderkit.flows.platform import Platform, ledger_snapshot, published_kit
from orderkit.flows.repeating import in_rounds
from orderkit.ports.clock import Clock
from orderkit.ports.forge import (
    REASON_TRAILER,
    CommitStatus,
    FileChange,
    FileRevision,
    Operation,
    PullDraft,
    PullRequest,
    agent_notes,
)
from orderkit.ports.requesters import Requester
from yamlfiles import yaml11

_ROUNDS = 8
_OPERATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LeasedOrder:
    """An order's file in the ledger, with its lease and what its kit says about leases."""

    entry: OrderEntry
    file: FileRevision
    application: Manifest
    kit: str
    then: Literal["end", "pause"]
    """``end`` or ``pause``."""
    policy: LeasePolicy | None
    record: LeaseRecord | None
    broken: str = ""
    """Why the record cannot be read; empty if it can, or there is none."""

    def with_record(self, record: LeaseRecord) -> FileChange:
        """Return the write of another record, which needs the file to be as it was read."""
        meta = metadata(self.application)
        others = {k: v for k, v in (meta.get("annotations") or {}).items()
                  if k not in (EXPIRES_AT, RECORD)}  # fmt: skip
        annotations = {**others, **record.annotations()}
        application = {**self.application, "metadata": {**meta, "annotations": annotations}}
        path = self.entry.application_path
        return FileChange(path, yaml11.dump(application).encode(), self.file.sha)


def read_leased(platform: Platform, entry: OrderEntry) -> LeasedOrder:
    """
    Read the lease of an order from the ledger.

    Raises:
        NotFoundError: The ledger has no file of the order.
        ManifestError: Its file cannot be read.
    """
    file = platform.forge.read(platform.ledger, entry.application_path, "main")
    application = application_of(file)
    if file is None or application is None:
        raise NotFoundError(
            f"no order '{entry.order}' in the ledger", hint=f"orderkit repair {entry.order}"
        )
    kit = _kit(platform, ledger.kit_of(application))
    broken = ""
    record = None
    try:
        record = read_record(application)
    except InvalidInputError as error:
        # shown, not raised: 'orderkit lease extend' writes a new one
        broken = str(error)
    return LeasedOrder(
        entry,
        file,
        application,
        ledger.kit_of(application),
        kit.lease.then if kit else "end",
        policy_of(kit.lease, entry.team) if kit else None,
        record,
        broken,
    )


def _kit(platform: Platform, name: str) -> Kit | None:
    try:
        return published_kit(platform, name)
    except NotFoundError:
        return None


class LeaseAnswer(Answer, frozen=True, kw_only=True):
    """The lease of an order, as command and service answer it; times in ISO 8601."""

    component: ClassVar[str] = "Lease"
    order: str
    team: str
    kit: str
    expires: Known = ""
    """Empty: it has no expiry."""
    left_seconds: int | None
    began: Known = ""
    latest: Known = ""
    """The latest time to which it can be extended."""
    last_warning: Known = ""
    warned: Mapping[str, str] = field(default_factory=dict)
    extensions: int = 0
    by: Known = ""
    reason: Known = ""
    ending: bool = False
    then: Literal["end", "pause"]
    may_extend: bool
    extend_by: Known
    changed: bool
    message: str
    remark: Known
    url: Known = ""
    """The pull request that asks for an extension, if an AI agent asked."""


@dataclass(frozen=True, slots=True)
class LeaseView:
    """The lease of an order, for people and programs."""

    leased: LeasedOrder
    left: timedelta | None
    changed: bool = False
    remark: str = ""
    """What did not work besides."""

    @property
    def message(self) -> str:
        """One sentence."""
        leased, record = self.leased, self.leased.record
        if leased.broken:
            return f"{leased.entry.order}: its lease in the ledger cannot be read: {leased.broken}"
        if record is None:
            return f"{leased.entry.order} has no expiry: it lives until somebody ends it"
        if record.ending:
            return f"{leased.entry.order} expired at {time_text(record.expires)} and is ending"
        left = self.left or timedelta(0)
        follow = "pauses" if leased.then == "pause" else "ends"
        if left <= timedelta(0):
            return f"{leased.entry.order} expired at {time_text(record.expires)} and {follow} soon"
        return (
            f"{leased.entry.order} expires at {time_text(record.expires)},"
            f" in {rough_duration(left)}, and then {follow}"
        )

    @property
    def answer(self) -> LeaseAnswer:
        """What command line and service say of it."""
        leased, record, policy = self.leased, self.leased.record, self.leased.policy
        found = LeaseAnswer(
            order=leased.entry.order,
            team=leased.entry.team,
            kit=leased.kit,
            left_seconds=max(0, int(self.left.total_seconds())) if self.left else None,
            then=leased.then,
            may_extend=_may_extend(policy, record),
            extend_by=duration_text(policy.extend_by) if policy and policy.extend_by else "",
            changed=self.changed,
            message=self.message,
            remark=self.remark or leased.broken,
        )
        if record is None:
            return found
        latest = record.began + policy.maximum if policy and policy.maximum else None
        return changed(
            found,
            expires=time_text(record.expires),
            began=time_text(record.began),
            latest=time_text(latest) if latest else "",
            last_warning=record.last_warning,
            warned={stage: time_text(when) for stage, when in record.warned.items()},
            extensions=record.extensions,
            by=record.by,
            reason=record.reason,
            ending=bool(record.ending),
        )


def _may_extend(policy: LeasePolicy | None, record: LeaseRecord | None) -> bool:
    if policy is None or (record and record.ending):
        return False
    times = policy.extend_times
    return times is None or (record.extensions if record else 0) < times


def lease_of(platform: Platform, order: str) -> LeaseView:
    """
    Return the lease of an order. Nothing is written.

    Raises:
        NotFoundError: There is no such order, or it has ended.
        RefusedError: It waits for approval.
    """
    entry, _ = _delivered(platform, order)
    return _view(platform.clock, read_leased(platform, entry))


def _view(
    clock: Clock, leased: LeasedOrder, *, changed: bool = False, remark: str = ""
) -> LeaseView:
    remaining = leased.record.expires - clock.now() if leased.record else None
    return LeaseView(leased, remaining, changed, remark)


@dataclass(frozen=True, slots=True)
class ExtendRequest:
    """By how much to extend which order's lease, for whom and why."""

    order: str
    duration: timedelta
    requester: Requester
    reason: str
    operation: str = ""
    """Identifies the request, so that a repetition is recognised; empty: a new one."""


def extend_lease(platform: Platform, request: ExtendRequest) -> LeaseView:
    """
    Extend the lease of an order, or give one to an order that has none. Idempotent by operation.

    Raises:
        NotFoundError: There is no such order, or it has ended.
        InvalidInputError: The reason is missing or too long.
        RefusedError: The kit does not allow it, or the order is ending or waits for approval.
        ConflictError: Others won every round.
    """
    check_requester(request.requester.ref)
    request = replace(request, operation=request.operation or f"extend-{uuid.uuid4().hex[:12]}")
    entry, blobs = _delivered(platform, request.order)
    if entry.end_path in blobs:
        raise RefusedError(
            f"{entry.order} is ending and cannot be extended any more",
            hint=f"finish the end: orderkit destroy {entry.order}",
        )

    def attempt() -> tuple[LeasedOrder, LeaseRecord]:
        leased = read_leased(platform, entry)
        record = extended(platform.clock, leased, request)
        if record is not leased.record:
            _write(platform, leased, record, request)
        return leased, record

    leased, record = in_rounds(attempt, rounds=_ROUNDS)
    changed = record is not leased.record
    requester, expires = request.requester, time_text(record.expires)
    remark = try_note_expiry(platform, entry.order, expires, requester)
    refresh(platform.cluster, ledger.team_application(entry.team))
    return _view(platform.clock, replace(leased, record=record), changed=changed, remark=remark)


def extended(clock: Clock, leased: LeasedOrder, request: ExtendRequest) -> LeaseRecord:
    """
    Return the lease after an extension; the same record if this operation extended it already.

    Raises:
        InvalidInputError: The reason is missing or too long.
        RefusedError: The kit does not allow it, or the order is ending.
    """
    by, reason = check_requester(request.requester.ref), _reason(request.reason)
    extension = Extension(request.order, request.duration, by, reason, request.operation)
    return extend(leased.record, leased.policy, clock.now(), extension)


def check_operation(text: str) -> str:
    """
    Return a name for a request that commits can hold; empty if there is none.

    Raises:
        InvalidInputError: It is something else.
    """
    if text and not _OPERATION.fullmatch(text):
        rule = "is not a name of letters, digits, '.', '_' and '-', at most 60 long"
        raise InvalidInputError("operation", text, rule)
    return text


def _write(
    platform: Platform, leased: LeasedOrder, record: LeaseRecord, request: ExtendRequest
) -> None:
    order = leased.entry.order
    platform.forge.write(
        platform.ledger,
        [leased.with_record(record)],
        Operation(
            f"lease-{record.operation}-{order}-after-{leased.file.sha[:8]}",
            request.requester.ref,
            f"{order}: extended by {duration_text(request.duration)},"
            f" expires at {time_text(record.expires)}",
            request.requester.proof,
            ((REASON_TRAILER, record.reason), *agent_notes(request.requester.agent)),
        ),
    )


def _reason(text: str) -> str:
    reason = " ".join(text.split()).replace("-->", "→")
    if not reason:
        raise InvalidInputError("reason", None, "is missing", hint="say why; it is kept in Git")
    if len(reason) > REASON_MAX:
        raise InvalidInputError(
            "reason", reason, f"is longer than {REASON_MAX} characters", hint="shorten --reason"
        )
    return reason


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
    record = extended(platform.clock, leased, replace(request, operation=operation))
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


def _delivered(platform: Platform, order: str) -> tuple[OrderEntry, Collection[PurePosixPath]]:
    """Return the entry of an order, and the ledger's paths; refuse an order that waits."""
    blobs = ledger_snapshot(platform).blobs
    entry = order_report.find(order, blobs)
    if entry.waiting_path in blobs:
        raise RefusedError(
            f"{order} waits for approval and is not delivered",
            hint=f"its requester can withdraw it: orderkit destroy {order}",
        )
    return entry, blobs


def _leased(platform: Platform, order: str) -> LeasedOrder:
    entry, blobs = _delivered(platform, order)
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
