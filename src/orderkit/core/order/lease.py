"""
The lease of an order: how long it lives, and what a sweep does about it. Pure.

The record stands in annotations of the order's Application, in the ledger: `EXPIRES_AT` for
everybody who only wants to know, `RECORD` with the rest. One file holds all of it, so that one
compare-and-swap decides between a sweep, an extension and a change.

`decide` looks at the record as it is now, never at what happened in between, so a sweep can be
repeated, interrupted, or run twice at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from ground.errors import InvalidInputError, RefusedError
from ground.objects.kube_objects import Manifest, annotations_of
from orderkit.core.durations import LONGEST, duration_text, parse_duration, rough_duration
from orderkit.core.kit.order_terms import Lease, Nightly
from yamlfiles.format_versions import UPGRADE

EXPIRES_AT = "orderkit.dev/expires-at"
RECORD = "orderkit.dev/lease"
CLOCK_BOUND = timedelta(minutes=5)
"""By how much two clocks may differ before a sweep trusts neither."""
OVERDUE = timedelta(hours=6)
"""
An order that ought to have ended longer ago than this is warned again: for so long nobody swept, or
our clock jumped.
"""
NIGHTFALL = timedelta(hours=1)
"""How long after a night's begin a sweep still does what the night brings."""
REASON_MAX = 500
_YEARS = range(1970, 3000)
"""Years of a record; without a bound, a sum of a time and a duration leaves the calendar."""
_RECORD_MAX = 4_000
_FORMAT = 1
"""Of `RECORD`; Orderkit 0.2 wrote none and means this one."""


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """What a kit says about leases, in durations."""

    default: timedelta | None
    maximum: timedelta | None
    warnings: tuple[tuple[str, timedelta], ...]
    """As kit.yaml writes them, the longest first."""
    grace: timedelta = timedelta(0)
    pauses: bool = False
    extend_by: timedelta | None = None
    extend_times: int | None = None

    @property
    def last_warning(self) -> timedelta:
        """The shortest warning."""
        return min((duration for _, duration in self.warnings), default=timedelta(0))


def policy_of(lease: Lease, team: str) -> LeasePolicy | None:
    """Return the policy for a team's orders of a kit; None: they live until somebody ends them."""
    if not lease.is_declared or team in lease.exempt_teams:
        return None

    def read(text: str) -> timedelta | None:
        return parse_duration(text, field="lease") if text else None

    warnings = [(text, parse_duration(text, field="lease.warn")) for text in lease.warn]
    return LeasePolicy(
        default=read(lease.default),
        maximum=read(lease.maximum),
        warnings=tuple(sorted(warnings, key=lambda entry: -entry[1])),
        grace=read(lease.grace) or timedelta(0),
        pauses=lease.then == "pause",
        extend_by=read(lease.extend.by),
        extend_times=lease.extend.times,
    )


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What the ledger knows of an order's lease. Times are UTC, in whole seconds."""

    expires: datetime
    began: datetime
    """When its first lease was granted; the maximum counts from here."""
    granted: datetime
    """When it was granted or extended last."""
    term: timedelta
    """How long it had then: longer warnings do not apply."""
    warned: Mapping[str, datetime] = field(default_factory=dict)
    """The recorded warnings since then, as kit.yaml writes them."""
    extensions: int = 0
    by: str = ""
    """Who granted or extended it last."""
    reason: str = ""
    operation: str = ""
    """The request that extended it last: a repetition does not extend it again."""
    ending: datetime | None = None
    """When a sweep began to end it; from then on nobody extends it."""

    @property
    def last_warning(self) -> str:
        """The last recorded warning, the shortest; empty if there is none."""
        return min(self.warned, key=lambda text: (_length(text), text), default="")

    def annotations(self) -> dict[str, str]:
        """Return the annotations of the order's Application."""
        record = {
            "format": _FORMAT,
            "began": time_text(self.began),
            "granted": time_text(self.granted),
            "termMinutes": round(self.term.total_seconds() / 60, 3),
            "warned": {stage: time_text(when) for stage, when in sorted(self.warned.items())},
            "extensions": self.extensions,
            "by": self.by,
            "reason": self.reason,
            "operation": self.operation,
            "ending": time_text(self.ending) if self.ending else "",
        }
        kept = {key: value for key, value in record.items() if value not in ("", {})}
        return {
            EXPIRES_AT: time_text(self.expires),
            RECORD: json.dumps(kept, ensure_ascii=False, separators=(",", ":")),
        }


def lease_annotations(application: Manifest | None) -> dict[str, str]:
    """Return the annotations of an Application that hold its order's lease, as they are."""
    notes = annotations_of(application or {})
    return {key: str(notes[key]) for key in (EXPIRES_AT, RECORD) if notes.get(key)}


def read_record(application: Manifest | None) -> LeaseRecord | None:
    """
    Read the lease of an order from its Application; None if it has none.

    Raises:
        InvalidInputError: Somebody wrote something else there.
        RefusedError: A newer Orderkit wrote it.
    """
    notes = lease_annotations(application)
    if not notes:
        return None
    expires = _time(EXPIRES_AT, notes.get(EXPIRES_AT))
    text = notes.get(RECORD, "")
    try:
        fields = json.loads(text[:_RECORD_MAX]) if len(text) <= _RECORD_MAX else None
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise InvalidInputError(RECORD, text[:100], "is not the record of a lease")
    written = fields.get("format", _FORMAT)
    if isinstance(written, int) and written > _FORMAT:
        raise RefusedError(
            f"{RECORD}: format {written} is newer than {_FORMAT},"
            " the newest that this Orderkit knows",
            hint=UPGRADE,
        )
    return _record(expires, fields)


def _record(expires: datetime, fields: Mapping[str, Any]) -> LeaseRecord:
    minutes, count, warned = (
        fields.get("termMinutes"),
        fields.get("extensions", 0),
        fields.get("warned", {}),
    )
    if (
        isinstance(minutes, bool)
        or not isinstance(minutes, int | float)
        or not 0 <= minutes < 10**8
        or not isinstance(count, int)
        or not isinstance(warned, dict)
    ):
        raise InvalidInputError(RECORD, None, "is not the record of a lease")
    return LeaseRecord(
        expires=expires,
        began=_time(RECORD, fields.get("began")),
        granted=_time(RECORD, fields.get("granted")),
        term=timedelta(minutes=minutes),
        warned={str(stage): _time(RECORD, when) for stage, when in warned.items()},
        extensions=count,
        by=str(fields.get("by", "")),
        reason=str(fields.get("reason", "")),
        operation=str(fields.get("operation", "")),
        ending=_time(RECORD, fields["ending"]) if fields.get("ending") else None,
    )


def time_text(moment: datetime) -> str:
    """Return a time as RFC 3339 in UTC, in whole seconds."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _time(field_name: str, text: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or moment.year not in _YEARS:
        raise InvalidInputError(
            field_name,
            str(text)[:100],
            "is not a time as RFC 3339 in UTC",
            hint="2026-10-01T12:00:00Z",
        )
    return moment.astimezone(UTC)


def _length(text: str) -> timedelta:
    try:
        return parse_duration(text, field="warn")
    except InvalidInputError:
        return timedelta.max  # what cannot be read stays as warned


# --- granting


def grant(policy: LeasePolicy, now: datetime, asked: object, *, by: str) -> LeaseRecord | None:
    """
    Return the lease of a new order; None if its kit gives none until somebody extends it.

    Args:
        asked: What the kit's field says; None: the default counts.

    Raises:
        InvalidInputError: It is not a duration, longer than the maximum, or shorter than the last
            warning.
    """
    term = policy.default if asked is None else parse_duration(asked, field="lease")
    if term is None:
        return None
    if policy.maximum is not None and term > policy.maximum:
        hint = f"ask for {duration_text(policy.maximum)} at most"
        raise InvalidInputError(
            "lease",
            asked,
            f"is longer than the maximum, {duration_text(policy.maximum)}",
            hint=hint,
        )
    if term <= policy.last_warning:
        shortest = duration_text(policy.last_warning)
        raise InvalidInputError(
            "lease", asked, f"is not longer than the last warning, {shortest} before the end",
            hint=f"ask for more than {shortest}",
        )  # fmt: skip
    now = now.replace(microsecond=0)
    return LeaseRecord(expires=now + term, began=now, granted=now, term=term, by=by)


@dataclass(frozen=True, slots=True)
class Extension:
    """By how much to extend which order, who asks, and why."""

    order: str
    duration: timedelta
    by: str
    reason: str
    operation: str


def extend(
    record: LeaseRecord | None, policy: LeasePolicy | None, now: datetime, extension: Extension
) -> LeaseRecord:
    """
    Return the lease after an extension; the same record if this operation extended it already.

    An order without a lease gets one that begins now. One that has expired gets its time from now.

    Raises:
        RefusedError: The kit has no lease, or does not allow it; the hint says what it allows.
        InvalidInputError: The lease would end more than a hundred years from now.
    """
    order = extension.order
    if record and extension.operation and record.operation == extension.operation:
        return record
    if record and record.ending:
        raise RefusedError(
            f"{order}: its lease expired at {time_text(record.expires)}, and it is ending",
            hint=f"order it again when 'orderkit destroy {order}' is through",
        )
    if policy is None:
        raise RefusedError(
            f"{order} has no lease to extend: it lives until somebody ends it",
            hint="a kit declares 'lease' in its kit.yaml, and for which teams",
        )
    now = now.replace(microsecond=0)
    _check_extension(record, policy, extension)
    begin = max(record.expires, now) if record else now
    if extension.duration > now + LONGEST - begin:
        raise InvalidInputError(
            "duration",
            duration_text(extension.duration),
            f"moves the end of the lease of {order} more than a hundred years ahead",
            hint=f"the lease ends at {time_text(begin)}: extend it later",
        )
    expires = begin + extension.duration
    began = record.began if record else now
    if policy.maximum is not None and expires > began + policy.maximum:
        rest = began + policy.maximum - begin
        command = f"orderkit lease extend {order} {_whole(rest)} --reason TEXT"
        way_out = (
            f"{rough_duration(rest)} are left: {command}"
            if rest >= timedelta(minutes=1)
            else "nothing is left: order it again, or ask the platform for a longer maximum"
        )
        raise RefusedError(
            f"{order}: {duration_text(extension.duration)} more is longer than its kit allows:"
            f" an order lives for {duration_text(policy.maximum)} at most, this one since"
            f" {time_text(began)}",
            hint=way_out,
        )
    left = expires - now
    return LeaseRecord(
        expires=expires,
        began=began,
        granted=now,
        term=left,
        warned={
            stage: when
            for stage, when in (record.warned if record else {}).items()
            # the others lie ahead again, and are given again
            if _length(stage) >= left
        },
        extensions=(record.extensions if record else 0) + 1,
        by=extension.by,
        reason=extension.reason,
        operation=extension.operation,
    )


def _check_extension(record: LeaseRecord | None, policy: LeasePolicy, extension: Extension) -> None:
    order, times = extension.order, policy.extend_times
    if times is not None and record and record.extensions >= times:
        raise RefusedError(
            f"{order} was extended {record.extensions} times, and its kit allows {times}"
            if times
            else f"{order}: its kit allows no extension",
            hint="order it again, or ask the platform's people to change lease.extend in kit.yaml",
        )
    if policy.extend_by is not None and extension.duration > policy.extend_by:
        longest = duration_text(policy.extend_by)
        raise RefusedError(
            f"{order}: {duration_text(extension.duration)} is longer than one extension may be,"
            f" {longest}",
            hint=f"orderkit lease extend {order} {longest} --reason TEXT",
            form_hint=f"extend it by {longest} at most",
        )


def _whole(duration: timedelta) -> str:
    return duration_text(timedelta(minutes=int(duration.total_seconds()) // 60))


# --- sweeping


class LeaseAction(StrEnum):
    """What a sweep does about one order."""

    NOTHING = "nothing"
    WARN = "warn"
    PAUSE = "pause"
    END = "end"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class LeaseDecision:
    """What to do about one order, and the record to write before it."""

    action: LeaseAction
    record: LeaseRecord | None = None
    """None: the record stays as it is."""
    stage: str = ""
    """The warning to record."""
    why: str = ""
    is_due: bool = False
    """Its lease is over: if it is protected, or needed by others, that is reported instead."""


_NOTHING = LeaseDecision(LeaseAction.NOTHING)
_ORPHAN = "its lease is over, but its kit has none any more: it stays until somebody ends it"


def decide(
    now: datetime, record: LeaseRecord, policy: LeasePolicy | None, *, doubt: str = ""
) -> LeaseDecision:
    """
    Say what a sweep does about an order now. The same record gives the same answer.

    A warning that comes late moves the expiry, so that the warned time is really left. So an order
    ends only after each of its warnings was recorded, and its time has passed.

    Args:
        policy: None: its kit has no lease, or not for this team.
        doubt: Why our clock cannot be trusted; empty if it can.
    """
    now = now.replace(microsecond=0)
    if record.ending:
        return LeaseDecision(LeaseAction.END, is_due=True)
    if policy is None:
        return LeaseDecision(LeaseAction.REPORT, why=_ORPHAN) if now > record.expires else _NOTHING
    stage = _due_warning(now, record, policy)
    over = now - record.expires - policy.grace
    if doubt and (stage or over >= timedelta(0)):
        return LeaseDecision(LeaseAction.REPORT, why=f"nothing was done: {doubt}")
    if stage:
        return _warning(now, record, stage)
    return _NOTHING if over < timedelta(0) else _expired(now, record, policy, over)


def _expired(
    now: datetime, record: LeaseRecord, policy: LeasePolicy, over: timedelta
) -> LeaseDecision:
    """Say what to do about an order whose warnings are recorded and whose grace is over."""
    if policy.pauses:
        return LeaseDecision(LeaseAction.PAUSE)
    if over > OVERDUE:
        again = replace(record, warned={})
        decision = _warning(now, again, _applicable(again, policy)[0])
        return replace(decision, is_due=True)
    ending = replace(record, ending=now)
    return LeaseDecision(LeaseAction.END, ending, is_due=True)


def _applicable(record: LeaseRecord, policy: LeasePolicy) -> list[tuple[str, timedelta]]:
    """Return the warnings that an order gets, the longest first: at least the shortest."""
    shorter = [entry for entry in policy.warnings if entry[1] < record.term]
    return shorter or list(policy.warnings[-1:])


def _due_warning(
    now: datetime, record: LeaseRecord, policy: LeasePolicy
) -> tuple[str, timedelta] | None:
    """Return the longest warning that is due and not recorded."""
    left = record.expires - now
    for text, duration in _applicable(record, policy):
        if duration >= left and text not in record.warned:
            return text, duration
    return None


def _warning(now: datetime, record: LeaseRecord, warning: tuple[str, timedelta]) -> LeaseDecision:
    text, duration = warning
    expires = max(record.expires, now + duration)  # so that the warned time is really left
    return LeaseDecision(
        LeaseAction.WARN,
        replace(record, expires=expires, warned={**record.warned, text: now}),
        text,
        f"expires at {time_text(expires)}",
    )


def night_due(now: datetime, nightly: Nightly) -> str:
    """
    Return which night has begun within the last hour, as a date; empty if none has.

    A night that nobody swept in its first hour is left out: people may be at work again.
    """
    at = time.fromisoformat(nightly.at)
    local = now.astimezone(ZoneInfo(nightly.zone))
    # the day before, too: a night may have begun before midnight
    for day in (local.date(), local.date() - timedelta(days=1)):
        begin = datetime.combine(day, at, local.tzinfo).astimezone(UTC)
        if timedelta(0) <= now - begin < NIGHTFALL:
            return day.isoformat()
    return ""


def clock_doubt(
    now: datetime, others: Mapping[str, datetime | None], newest: datetime | None
) -> str:
    """
    Say why our clock cannot be trusted; empty if nothing speaks against it.

    Args:
        others: What other clocks say now, by name; None: they are not at hand.
        newest: When the newest commit of the ledger was made, by the forge's clock.
    """
    for name, moment in others.items():
        if moment is not None and abs(now - moment) > CLOCK_BOUND:
            return (
                f"our clock says {time_text(now)}, and {name} {time_text(moment)}:"
                " one of them is wrong"
            )
    if newest is not None and newest - now > CLOCK_BOUND:  # that it is old says nothing
        return (
            f"our clock says {time_text(now)}, and the ledger's newest commit is of"
            f" {time_text(newest)}: one of them is wrong"
        )
    return ""
