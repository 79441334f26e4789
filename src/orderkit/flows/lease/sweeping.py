"""
Sweep the leases of all orders: record warnings, pause and end what is due. Idempotent.

A kit may also have its orders changed each night; that needs no lease of theirs.

The cluster's copies of the Applications say which orders may be due, in one request; what is done
about one is decided by its file in the ledger (`core.order.lease.decide`), which is written back
with the blob id that was read. So two sweeps at once do no harm, and one that is killed is
continued by the next. An end is recorded in that file first: from then on nobody extends it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from ground.errors import ConflictError, InvalidInputError, OrderkitError, RefusedError
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Manifest,
    dig,
    labels_of,
    metadata,
)
from ground.objects.values import same
from ground.shapes import Answer, Known
from orderkit.core.kit.kit_file import How
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_terms import Values
from orderkit.core.order import ledger
from orderkit.core.order.change import FieldEdit
from orderkit.core.order.lease import (
    LeaseAction,
    LeaseDecision,
    LeasePolicy,
    LeaseRecord,
    clock_doubt,
    decide,
    grant,
    night_due,
    policy_of,
    read_record,
    time_text,
)
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.refreshing import refresh
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.end.destroying import destroy, xr_in_git
from orderkit.flows.end.end_request import EndRequest, check_may_end
from orderkit.flows.lease.extending import LeasedOrder, read_leased
from orderkit.flows.order import tracing
from orderkit.flows.order.expiry_note import try_note_expiry
from orderkit.flows.order.ledger_records import begun_end
from orderkit.flows.order.live_order import XrFile
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack
from orderkit.flows.repeating import in_rounds
from orderkit.ports.forge import Operation
from orderkit.ports.requesters import Requester
from orderkit.ports.urgency import background

SWEEPER = "user:default/orderkit-lease"
"""Whom commits of a sweep name."""
_SLACK = timedelta(hours=1)
_FIRST = (LeaseAction.WARN, LeaseAction.REPORT)
"""What a sweep does first: it takes no time, and others wait for it."""


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """How to sweep."""

    dry_run: bool = False
    at: datetime | None = None
    """For a dry run: the time to look at. None: now."""
    adopt: bool = False
    """Give orders that have none the lease that their kit gives to new ones."""
    timeout_s: float = 300.0
    """How long one end may take before the sweep goes on with the next order."""


class SweptOrder(Answer, frozen=True):
    """What a sweep did, or would do, about one order."""

    order: str
    team: str
    action: str
    """``warn``, ``pause``, ``end``, ``report``, ``adopt``."""
    expires: Known = ""
    stage: Known = ""
    what: str = ""
    done: bool = True
    """False if it failed, or was not finished in time: the next sweep continues."""


class Swept(Answer, frozen=True):
    """What a sweep did."""

    at: str
    doubt: Known
    """Why the clock was not trusted; empty if it was."""
    orders: tuple[SweptOrder, ...]


Orders = list[tuple[OrderEntry, Manifest]]
"""Orders of the ledger, each with its Application in the cluster."""
OnSwept = Callable[[SweptOrder], None]


def sweep(
    platform: Platform, request: SweepRequest, *, on_order: OnSwept = lambda _: None
) -> Swept:
    """
    Do what is due about the leases of all orders. Idempotent, resumable.

    What fails for one order is reported with it, and the others go on.

    Raises:
        InvalidInputError: A time to look at, without a dry run.
        RemoteError: Ledger or cluster do not answer.
    """
    if request.at and not request.dry_run:
        raise InvalidInputError("at", time_text(request.at), "is for dry runs", hint="--dry-run")
    with background():
        return _Sweep(platform, request, on_order).run()


class _Sweep:
    """One sweep."""

    def __init__(self, platform: Platform, request: SweepRequest, on_order: OnSwept) -> None:
        self._platform, self._request, self._on_order = platform, request, on_order
        self._now = request.at or platform.clock.now()
        self._doubt = "" if request.at else _doubt(platform, self._now)
        self._kits: Mapping[str, Kit] = {kit.name: kit for kit in published_pack(platform).kits()}

    def run(self) -> Swept:
        due: list[tuple[LeasedOrder, LeaseDecision]] = []
        swept: list[SweptOrder] = []
        paths = ledger_snapshot(self._platform).blobs
        orders = self._orders(paths)
        for entry in self._candidates(orders, paths):
            swept += self._first(entry, due)
        for entry in ledger.ending_orders(paths):
            if entry.application_path not in paths:  # its lease went with it
                swept += self._safely(entry, partial(self._continue, entry))
        for leased, decision in sorted(due, key=lambda pair: _expires(pair[0])):
            swept += self._safely(leased.entry, partial(self._act, leased, decision))
        for entry, kit, night in self._nights(orders, paths):
            swept += self._safely(entry, partial(self._stop_for, night, entry, kit))
        return Swept(time_text(self._now), self._doubt, tuple(swept))

    def _candidates(self, orders: Orders, paths: Collection[PurePosixPath]) -> Iterator[OrderEntry]:
        """Yield the orders that may be due, by what the cluster has of them."""
        for entry, application in orders:
            ends_already = entry.end_path in paths
            if self._may_be_due(entry, application, ends_already=ends_already):
                yield entry

    def _orders(self, paths: Collection[PurePosixPath]) -> Orders:
        """Return the orders that have an Application in the cluster."""
        listed = self._platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
        applications = {str(metadata(application)["name"]): application for application in listed}
        return [
            (entry, application)
            for entry in ledger.entries(paths)
            if (application := applications.get(entry.order))
            and labels_of(application).get(ledger.ORDER_LABEL) == entry.order
        ]

    def _nights(
        self, orders: Orders, paths: Collection[PurePosixPath]
    ) -> Iterator[tuple[OrderEntry, Kit, str]]:
        """Yield the orders of kits for which a night has just begun."""
        if self._doubt:
            return
        for entry, application in orders:
            kit = self._kits.get(ledger.kit_of(application))
            nightly = (
                kit.lease.nightly if kit and entry.team not in kit.lease.exempt_teams else None
            )
            night = night_due(self._now, nightly) if nightly else ""
            if kit and night and entry.end_path not in paths:
                yield entry, kit, night

    def _may_be_due(self, entry: OrderEntry, application: Manifest, *, ends_already: bool) -> bool:
        try:
            record = read_record(application)
        except (InvalidInputError, RefusedError):
            # unreadable in the cluster: the ledger's file decides
            return True
        if ends_already:
            return bool(record and record.ending)
        policy = self._policy(entry, ledger.kit_of(application))
        if record is None:
            return bool(policy and policy.default)
        longest = policy.warnings[0][1] if policy and policy.warnings else timedelta(0)
        return bool(record.ending) or record.expires - longest - _SLACK <= self._now

    def _policy(self, entry: OrderEntry, kit_name: str) -> LeasePolicy | None:
        kit = self._kits.get(kit_name)
        return policy_of(kit.lease, entry.team) if kit else None

    def _first(
        self, entry: OrderEntry, due: list[tuple[LeasedOrder, LeaseDecision]]
    ) -> list[SweptOrder]:
        """Warn and report; put off what takes time."""

        def look() -> SweptOrder | None:
            leased = read_leased(self._platform, entry)
            decision = self._decided(leased)
            if decision is None:
                return self._without_record(leased)
            if decision.action is LeaseAction.NOTHING:
                return None
            if decision.action in _FIRST and not decision.is_due:
                return self._act(leased, decision)
            due.append((leased, decision))
            return None

        return self._safely(entry, look)

    def _safely(self, entry: OrderEntry, act: Callable[[], SweptOrder | None]) -> list[SweptOrder]:
        try:
            swept = act()
        except OrderkitError as error:
            swept = SweptOrder(
                entry.order, entry.team, LeaseAction.REPORT, what=str(error), done=False
            )
        if swept is None:
            return []
        self._on_order(swept)
        return [swept]

    def _decided(self, leased: LeasedOrder) -> LeaseDecision | None:
        """Decide by the ledger's file; None if the order has no lease there."""
        if leased.record is None:
            return None
        return decide(self._now, leased.record, leased.policy, doubt=self._doubt)

    def _without_record(self, leased: LeasedOrder) -> SweptOrder | None:
        order, policy = leased.entry.order, leased.policy
        if leased.broken:
            what = f"{leased.broken}; 'orderkit lease extend {order}' writes a new one"
            return _swept(leased, LeaseAction.REPORT, what=what, done=False)
        granted = grant(policy, self._now, None, by=SWEEPER) if policy else None
        if granted is None:
            return None
        if not self._request.adopt:
            return _swept(
                leased,
                LeaseAction.REPORT,
                what="was ordered before its kit had a lease, and has no expiry:"
                " orderkit lease sweep --adopt gives it one",
            )
        if not self._request.dry_run:
            self._write(leased, granted, "gets the lease of its kit")
        return _swept(leased, "adopt", granted, what=f"expires at {time_text(granted.expires)}")

    # --- acting

    def _act(self, leased: LeasedOrder, decision: LeaseDecision) -> SweptOrder | None:
        """Carry a decision out, as the file is now: it may have changed since it was read."""
        with suppress(ConflictError):
            return self._act_once(leased, decision)

        def attempt() -> SweptOrder | None:
            now = read_leased(self._platform, leased.entry)
            return self._act_once(now, self._decided(now) or LeaseDecision(LeaseAction.NOTHING))

        return in_rounds(attempt)

    def _act_once(self, leased: LeasedOrder, decision: LeaseDecision) -> SweptOrder | None:
        record = decision.record or leased.record
        if decision.is_due and (why := self._guard(leased)):
            return self._released(leased, why)
        if decision.action is LeaseAction.NOTHING or record is None:
            return None
        if decision.action is LeaseAction.PAUSE:
            return self._pause(leased)
        if not self._request.dry_run:
            if decision.action is LeaseAction.END:
                return self._end(leased, decision, record)
            if decision.action is LeaseAction.WARN:
                self._write(leased, record, f"warned {decision.stage} before its lease ends")
        return _swept(leased, decision.action, record, decision.stage, decision.why)

    def _write(self, leased: LeasedOrder, record: LeaseRecord, summary: str) -> None:
        """Write a record to the ledger, and the expiry to the order's own file if it moved."""
        entry, expires = leased.entry, time_text(record.expires)
        before = leased.record
        self._platform.forge.write(
            self._platform.ledger,
            [leased.with_record(record)],
            Operation(
                f"lease-sweep-{entry.order}-after-{leased.file.sha[:12]}",
                SWEEPER,
                f"{entry.order}: {summary}, expires at {expires}",
            ),
        )
        with suppress(OrderkitError):  # Argo CD looks by itself, later
            refresh(self._platform.cluster, ledger.team_application(entry.team))
        if before is None or before.expires != record.expires:
            try_note_expiry(self._platform, entry.order, expires, Requester(SWEEPER))

    def _guard(self, leased: LeasedOrder) -> str:
        """Say why the order may not end; empty if it may, or if its end has begun."""
        blobs = ledger_snapshot(self._platform).blobs
        # an end that has begun is finished, whatever needs the order by now
        if leased.entry.end_path in blobs:
            return ""
        xr = tracing.trace(self._platform, leased.entry.order).report.xr
        try:
            check_may_end(self._platform, leased.entry, xr)
        except RefusedError as error:
            return f"{error}: its lease is over, but it does not end"
        return ""

    def _released(self, leased: LeasedOrder, why: str) -> SweptOrder:
        """Report an order that may not end; it can be extended again."""
        record = leased.record
        if record and record.ending and not self._request.dry_run:
            record = replace(record, ending=None)
            self._write(leased, record, "does not end")
        return _swept(leased, LeaseAction.REPORT, record, what=why)

    def _pause(self, leased: LeasedOrder) -> SweptOrder | None:
        xr_file = xr_in_git(self._platform, leased.entry.order)
        if xr_file is None:
            outcome = "its lease is over, and there is no XR in Git to pause"
            return _swept(leased, LeaseAction.REPORT, leased.record, what=outcome, done=False)
        expires = time_text(leased.record.expires) if leased.record else ""
        values = self._kits[leased.kit].lease.pause
        outcome = self._set(leased.entry, xr_file, values, f"its lease ended at {expires}")
        return _swept(leased, LeaseAction.PAUSE, leased.record, what=outcome) if outcome else None

    def _stop_for(self, night: str, entry: OrderEntry, kit: Kit) -> SweptOrder | None:
        """Give an order the values of the night, once: who starts it again is left alone."""
        nightly, xr_file = kit.lease.nightly, xr_in_git(self._platform, entry.order)
        if nightly is None or xr_file is None:
            return None
        spec = xr_file.xr.get("spec") or {}
        if nightly.unless and not _differing(spec, nightly.unless):
            return None
        # the night's id: a repetition finds the commit and changes nothing
        reason, operation = f"the night of {night} begins", f"night-{night}-{entry.order}"
        outcome = self._set(entry, xr_file, nightly.values, reason, operation)
        return (
            SweptOrder(entry.order, entry.team, LeaseAction.PAUSE, what=outcome)
            if outcome
            else None
        )

    def _set(
        self,
        entry: OrderEntry,
        xr_file: XrFile,
        values: Values,
        reason: str,
        operation: str | None = None,
    ) -> str:
        """Give an order values by a direct change; return what it changes, empty if nothing."""
        differing = _differing(xr_file.xr.get("spec") or {}, values)
        if not differing:
            return ""
        if not self._request.dry_run:
            request = ChangeRequest(
                order=entry.order,
                edits=tuple(FieldEdit(path, "set", value) for path, value in values.items()),
                requester=Requester(SWEEPER),
                reason=reason,
                operation=operation,
                how=How.DIRECT,
                base=xr_file.commit,
            )
            if change(self._platform, request).repeated:
                return ""
        return ", ".join(f"{path} becomes {values[path]}" for path in differing)

    def _end(self, leased: LeasedOrder, decision: LeaseDecision, record: LeaseRecord) -> SweptOrder:
        entry, platform = leased.entry, self._platform
        # first: from then on nobody extends it
        if decision.record:
            self._write(leased, record, "its lease is over, and it ends")
        try:
            gone = self._destroy(entry, f"its lease ended at {time_text(record.expires)}")
        except RefusedError as error:  # protected in this very moment
            return self._released(read_leased(platform, entry), str(error))
        return _swept(leased, LeaseAction.END, record, what=gone)

    def _destroy(self, entry: OrderEntry, reason: str) -> str:
        """End an order, or continue; return what is proved."""
        request = EndRequest(entry.order, SWEEPER, reason=reason, timeout_s=self._request.timeout_s)
        ended = destroy(self._platform, request, on_step=lambda *_: None)
        return f"{len(ended.record.must_be_gone)} objects are verified to be gone"

    def _continue(self, entry: OrderEntry) -> SweptOrder | None:
        """Continue an end of a sweep's that was cut off near its own end."""
        end = begun_end(self._platform, entry)
        if end is None or end.requester != SWEEPER:
            return None
        what = "it is continued"
        if not self._request.dry_run:
            what = self._destroy(entry, "its lease ended")
        return SweptOrder(entry.order, entry.team, LeaseAction.END, what=what)


def _differing(spec: Mapping[str, Any], values: Values) -> list[str]:
    return [path for path in values if not same(dig(spec, *path.split(".")), values[path])]


def _expires(leased: LeasedOrder) -> tuple[str, str]:
    return time_text(leased.record.expires) if leased.record else "", leased.entry.order


def _swept(
    leased: LeasedOrder,
    action: str,
    record: LeaseRecord | None = None,
    stage: str = "",
    what: str = "",
    *,
    done: bool = True,
) -> SweptOrder:
    entry, expires = leased.entry, time_text(record.expires) if record else ""
    return SweptOrder(entry.order, entry.team, str(action), expires, stage, what, done)


def _doubt(platform: Platform, now: datetime) -> str:
    """Compare our clock with the cluster's, and with the newest commit of the ledger."""
    newest = None
    for commit in platform.forge.commits(platform.ledger, limit=1):
        with suppress(ValueError):
            newest = datetime.fromisoformat(commit.when)
    return clock_doubt(now, {"the cluster's": platform.other_clock()}, newest)
