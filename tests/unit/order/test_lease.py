"""Leases: granted, extended and swept, on the pure model; random histories with clock jumps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ownforge import OwnForge

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import OrderId, TeamName
from ground.shapes import changed
from orderkit.core.durations import duration_text, parse_duration, rough_duration
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_terms import Extend, Lease, Nightly
from orderkit.core.order.lease import (
    CLOCK_BOUND,
    EXPIRES_AT,
    OVERDUE,
    RECORD,
    Extension,
    LeaseAction,
    LeasePolicy,
    LeaseRecord,
    clock_doubt,
    decide,
    extend,
    grant,
    night_due,
    policy_of,
    read_record,
)
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import order_application
from orderkit.core.order.team_file import TeamFile
from orderkit.flows.lease.extending import read_leased
from orderkit.flows.order.expiry_note import new_lease
from orderkit.flows.order.live_order import LiveOrder

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EVE = "user:default/eve"


def policy(**fields: object) -> LeasePolicy:
    """Three days, at most ten, two extensions of four days, warned a day and an hour before."""
    lease = Lease(declared_default="3d", maximum="10d", extend=Extend("4d", 2))
    found = policy_of(changed(lease, **fields), "ae86")
    assert found is not None
    return found


def granted(found: LeasePolicy, asked: object = None) -> LeaseRecord:
    record = grant(found, NOW, asked, by=EVE)
    assert record is not None
    return record


def by(duration: timedelta, operation: str = "") -> Extension:
    return Extension("garage-ae86", duration, EVE, "the demo", operation)


def swept(
    record: LeaseRecord, found: LeasePolicy, start: datetime, until: datetime, step: timedelta
) -> list[tuple[datetime, LeaseAction, str]]:
    """Sweep again and again; return what was done and when, up to the end."""
    done: list[tuple[datetime, LeaseAction, str]] = []
    while start <= until:
        decision = decide(start, record, found)
        record = decision.record or record
        if decision.action is not LeaseAction.NOTHING:
            done.append((start, decision.action, decision.stage))
        if decision.action in (LeaseAction.END, LeaseAction.PAUSE):
            break
        start += step
    return done


@pytest.mark.parametrize(
    ("text", "length"),
    [("90m", 90 * HOUR / 60), ("8h", 8 * HOUR), ("30d", 30 * DAY), ("4w", 28 * DAY)],
)
def test_durations_are_whole_numbers_of_a_unit(text: str, length: timedelta) -> None:
    assert parse_duration(text, field="x") == length
    assert parse_duration(duration_text(length), field="x") == length


@pytest.mark.parametrize(
    "text",
    ["", "0h", "8", "8 h", "1y", "-3d", "08h", "1.5d", "٣d", "9999999d", 8, None, "1" * 10**6],
)
def test_what_is_no_duration_is_refused_with_examples(text: object) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_duration(text, field="lease")

    assert "8h" in caught.value.hint
    assert len(str(caught.value)) < 300


def test_a_rough_duration_has_two_units() -> None:
    lengths = (3 * DAY + 4 * HOUR + HOUR / 60, 59 * HOUR / 60, -DAY, 2 * DAY)
    assert list(map(rough_duration, lengths)) == ["3d 4h", "59m", "0m", "2d"]


def test_a_new_order_gets_the_default_or_what_its_form_says() -> None:
    assert granted(policy()).expires == NOW + 3 * DAY
    assert granted(policy(), "8h").expires == NOW + 8 * HOUR


@pytest.mark.parametrize(
    ("asked", "says"),
    [("11d", "longer than the maximum, 10d"), ("1h", "not longer than the last warning, 1h"),
     ("soon", "is not a duration"), (["8h"], "is not a duration")],
)  # fmt: skip
def test_a_form_cannot_ask_for_what_the_kit_forbids(asked: object, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        grant(policy(), NOW, asked, by=EVE)


def test_no_lease_no_exempt_team_and_no_default_is_no_expiry() -> None:
    assert policy_of(Lease(), "ae86") is None
    assert policy_of(Lease(declared_default="3d", exempt_teams=("ae86",)), "ae86") is None
    assert grant(policy(declared_default="never"), NOW, None, by=EVE) is None


def test_a_record_is_read_as_it_was_written() -> None:
    record = replace(
        granted(policy()), warned={"24h": NOW}, extensions=2, reason="für 'später'", ending=NOW
    )

    application = {"metadata": {"annotations": {**record.annotations(), "other": "x"}}}

    assert read_record(application) == record
    assert read_record({"metadata": {"annotations": {"other": "x"}}}) is None
    assert read_record(None) is None


def with_record(changes: dict[str, Any], expires: str | None = None) -> dict[str, Any]:
    """Return an Application with a lease's record with some entries changed."""
    notes = granted(policy()).annotations()
    notes[RECORD] = json.dumps({**json.loads(notes[RECORD]), **changes})
    return {"metadata": {"annotations": {**notes, **({EXPIRES_AT: expires} if expires else {})}}}


@pytest.mark.parametrize(
    "changes",
    [
        {"termMinutes": None}, {"termMinutes": True}, {"termMinutes": -1}, {"termMinutes": 10**8},
        {"termMinutes": "60"}, {"extensions": "2"}, {"extensions": 1.5}, {"warned": []},
        {"began": "soon"}, {"granted": None}, {"warned": {"24h": "soon"}}, {"ending": "soon"},
        {"began": "2026-10-01T12:00:00"}, {"began": "0001-01-01T00:00:00+00:00"},
    ],
)  # fmt: skip
def test_a_record_that_somebody_wrote_otherwise_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=RECORD):
        read_record(with_record(changes))


@pytest.mark.parametrize(
    "changes",
    [{"termMinutes": 0}, {"termMinutes": 10**8 - 1}, {"extensions": 0}, {"ending": ""},
     {"began": "2026-10-01T14:00:00+02:00"}, {"format": 1}],
)  # fmt: skip
def test_a_record_at_its_borders_is_read(changes: dict[str, Any]) -> None:
    assert read_record(with_record(changes)) is not None


@pytest.mark.parametrize("text", ["{", "[]", "5", "", "[" * 100_000])
def test_a_record_that_is_no_map_is_refused_without_all_of_it(text: str) -> None:
    notes = {**granted(policy()).annotations(), RECORD: text}

    with pytest.raises(InvalidInputError) as refused:
        read_record({"metadata": {"annotations": notes}})

    assert refused.value.rule == "is not the record of a lease"
    assert refused.value.value == text[:100]


def test_a_time_that_is_none_is_told_with_its_beginning() -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_record(with_record({}, expires="x" * 101))

    assert (refused.value.field, refused.value.value) == (EXPIRES_AT, "x" * 100)


def test_a_record_of_a_newer_orderkit_is_refused_as_such() -> None:
    with pytest.raises(RefusedError, match="format 2 is newer than 1"):
        read_record(with_record({"format": 2}))


@pytest.mark.parametrize(
    "notes",
    [
        {EXPIRES_AT: "tomorrow"},
        {EXPIRES_AT: "2026-12-01T00:00:00Z"},
        {EXPIRES_AT: "2026-12-01T00:00:00", RECORD: "{}"},
        {EXPIRES_AT: "9999-12-31T23:59:59-12:00", RECORD: "{}"},
        {EXPIRES_AT: "0001-01-01T00:00:00+12:00", RECORD: "{}"},
        {EXPIRES_AT: "2026-12-01T00:00:00Z", RECORD: "[1]"},
        {EXPIRES_AT: "2026-12-01T00:00:00Z", RECORD: "[" * 3_000},
        {EXPIRES_AT: "2026-12-01T00:00:00Z", RECORD: '{"termMinutes": 1e999}'},
        {EXPIRES_AT: "2026-12-01T00:00:00Z", RECORD: '{"termMinutes": true, "began": "x"}'},
        {EXPIRES_AT: "2026-12-01T00:00:00Z", RECORD: "x" * 10**6},
        {RECORD: "{}"},
    ],
)
def test_what_somebody_wrote_there_is_refused_not_believed(notes: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError):
        read_record({"metadata": {"annotations": notes}})


def test_an_extension_counts_from_the_expiry_and_is_counted() -> None:
    record = extend(granted(policy()), policy(), NOW + DAY, by(2 * DAY, "one"))

    assert record.expires == NOW + 5 * DAY
    assert (record.extensions, record.by, record.reason) == (1, EVE, "the demo")
    assert extend(record, policy(), NOW + 2 * DAY, by(2 * DAY, "one")) is record


def test_an_extension_after_the_expiry_counts_from_now() -> None:
    record = extend(granted(policy()), policy(), NOW + 4 * DAY, by(2 * DAY))

    assert record.expires == NOW + 6 * DAY


@pytest.mark.parametrize(
    ("record", "found", "length", "says", "way_out"),
    [
        (None, None, DAY, "has no lease to extend", "kit.yaml"),
        (
            "new",
            policy(),
            5 * DAY,
            "one extension may be, 4d",
            "extend garage-ae86 4d --reason TEXT",
        ),
        (
            "new",
            policy(extend=Extend("", 2)),
            8 * DAY,
            "10d at most",
            "orderkit lease extend garage-ae86 7d --reason TEXT",
        ),
        ("twice", policy(), HOUR, "was extended 2 times", "order it again"),
        ("new", policy(extend=Extend("4d", 0)), HOUR, "allows no extension", "order it again"),
        ("ending", policy(), HOUR, "it is ending", "order it again"),
    ],
)
def test_what_the_kit_does_not_allow_is_refused_with_a_way_out(
    record: str | None, found: LeasePolicy | None, length: timedelta, says: str, way_out: str
) -> None:
    records = {
        "new": granted(policy()),
        "twice": replace(granted(policy()), extensions=2),
        "ending": replace(granted(policy()), ending=NOW),
    }
    with pytest.raises(RefusedError, match=says) as caught:
        extend(records[record] if record else None, found, NOW, by(length))

    assert way_out in caught.value.hint


def test_eighty_extensions_by_a_hundred_years_do_not_leave_the_calendar() -> None:
    """Without a maximum, only the first one fits."""
    free = policy(maximum="", extend=Extend())
    longest = parse_duration("36500d", field="duration")
    record = extend(granted(free), free, NOW + 4 * DAY, by(longest))
    for _ in range(80):
        with pytest.raises(InvalidInputError, match="duration: '36500d' moves the end") as caught:
            extend(record, free, NOW + 5 * DAY, by(longest))
    assert caught.value.hint == "the lease ends at 2126-11-03T12:00:00Z: extend it later"

    late = replace(record, expires=record.expires.replace(year=2999))
    with pytest.raises(InvalidInputError, match="a hundred years ahead"):
        extend(late, free, NOW, by(HOUR))


def test_an_order_without_a_lease_gets_one_by_extending_it() -> None:
    record = extend(None, policy(), NOW, by(4 * DAY))

    assert (record.began, record.expires) == (NOW, NOW + 4 * DAY)


def test_warnings_come_once_each_and_then_the_end() -> None:
    done = swept(granted(policy()), policy(), NOW, NOW + 9 * DAY, timedelta(minutes=30))

    assert [(action, stage) for _, action, stage in done] == [
        (LeaseAction.WARN, "24h"),
        (LeaseAction.WARN, "1h"),
        (LeaseAction.END, ""),
    ]
    assert done[-1][0] == NOW + 3 * DAY


def test_grace_lies_between_the_expiry_and_the_end() -> None:
    done = swept(granted(policy(grace="2d")), policy(grace="2d"), NOW, NOW + 9 * DAY, HOUR)

    assert done[-1][0] == NOW + 5 * DAY


def test_a_kit_may_pause_instead() -> None:
    done = swept(granted(policy()), policy(then="pause"), NOW, NOW + 9 * DAY, HOUR)

    assert done[-1][1] is LeaseAction.PAUSE


def test_after_weeks_of_downtime_every_warning_is_recorded_and_its_time_granted() -> None:
    """The 24 hours begin when somebody can hear the warning."""
    back = NOW + 40 * DAY

    done = swept(granted(policy()), policy(), back, back + 9 * DAY, timedelta(minutes=30))

    assert [stage for _, _, stage in done] == ["24h", "1h", ""]
    assert done[-1][0] == back + DAY


def test_downtime_after_the_last_warning_warns_again() -> None:
    record = granted(policy())
    record = replace(record, warned={"24h": NOW + 2 * DAY, "1h": NOW + 3 * DAY - HOUR})
    back = record.expires + OVERDUE + HOUR

    done = swept(record, policy(), back, back + 9 * DAY, timedelta(minutes=30))

    assert [stage for _, _, stage in done] == ["24h", "1h", ""]
    assert done[-1][0] == back + DAY


def test_a_lease_shorter_than_a_warning_is_not_prolonged_by_it() -> None:
    done = swept(granted(policy(), "8h"), policy(), NOW, NOW + DAY, timedelta(minutes=30))

    assert [(when - NOW, stage) for when, _, stage in done] == [(7 * HOUR, "1h"), (8 * HOUR, "")]


def test_a_kit_that_lost_its_lease_ends_nothing() -> None:
    record = granted(policy())

    assert decide(NOW + DAY, record, None).action is LeaseAction.NOTHING
    assert decide(NOW + 30 * DAY, record, None).action is LeaseAction.REPORT


def test_with_a_doubtful_clock_nothing_happens_but_a_report() -> None:
    record = granted(policy())
    jumped = NOW + 300 * DAY
    doubt = clock_doubt(jumped, {"the cluster's": NOW}, None)

    assert "one of them is wrong" in doubt
    assert decide(jumped, record, policy(), doubt=doubt).action is LeaseAction.REPORT
    assert decide(NOW, record, policy(), doubt=doubt).action is LeaseAction.NOTHING
    assert clock_doubt(NOW, {"the cluster's": NOW + CLOCK_BOUND, "none": None}, NOW) == ""
    assert "newest commit" in clock_doubt(NOW, {}, NOW + DAY)


# --- random histories


@dataclass
class World:
    """One order, its file, the true time and our clock, which may be wrong."""

    policy: LeasePolicy
    record: LeaseRecord = field(init=False)
    true: datetime = NOW
    offset: timedelta = timedelta(0)
    promised: datetime = NOW
    """Until when people were told that it lives, in true time."""
    warned: dict[str, datetime] = field(default_factory=dict)
    """When warnings were recorded since the last grant, in true time."""
    ends: list[datetime] = field(default_factory=list)
    stale: list[tuple[LeaseRecord, LeaseRecord]] = field(default_factory=list)
    """Writes that other sweeps still want to make: what they read, and what they write."""

    def __post_init__(self) -> None:
        self.record = granted(self.policy)
        self.promised = self.record.expires

    @property
    def now(self) -> datetime:
        return self.true + self.offset

    def sweep(self, *, is_killed: bool, is_slow: bool) -> None:
        doubt = clock_doubt(self.now, {"the cluster's": self.true}, None)
        decision = decide(self.now, self.record, self.policy, doubt=doubt)
        if decision.record is None or is_killed:
            return
        if is_slow:
            self.stale.append((self.record, decision.record))
        else:
            self.write(self.record, decision.record)

    def write(self, read: LeaseRecord, new: LeaseRecord) -> None:
        """Compare and swap, as the forge does."""
        if read != self.record:
            return
        if new.ending:
            self.check_end()
            self.ends.append(self.true)
        for stage in new.warned.keys() - self.record.warned.keys():
            self.warned[stage] = self.true
        self.record = new

    def check_end(self) -> None:
        assert self.true >= self.promised - CLOCK_BOUND, "it ends early"
        stages = [s for s in self.policy.warnings if s[1] < self.record.term]
        for text, length in stages or self.policy.warnings[-1:]:
            assert text in self.record.warned, "it ends without a warning"
            heard = self.warned.get(text, self.record.granted)
            assert self.true - heard >= length - 2 * CLOCK_BOUND, "its warning came too late"

    def extend(self, length: timedelta) -> None:
        try:
            new = extend(self.record, self.policy, self.now, by(length))
        except RefusedError:
            return
        self.record = new
        if abs(self.offset) <= CLOCK_BOUND:
            self.promised = max(self.promised, new.expires - self.offset)
        else:  # granted by a wrong clock: only what it adds is promised
            self.promised = max(self.promised, self.true)
        self.warned = {s: w for s, w in self.warned.items() if s in new.warned}

    def make(self, move: str, size: int) -> None:
        """Make one move of a history."""
        match move:
            case "wait":
                for _ in range(size):
                    self.true += HOUR
                    self.sweep(is_killed=False, is_slow=False)
            case "away":
                self.true += size * HOUR
            case "jump" | "right":
                self.offset = size * HOUR if size else timedelta(0)
            case "sweep":
                self.sweep(is_killed=size == 1, is_slow=size == 2)
            case "extend":
                self.extend(size * HOUR)
            case "late":
                for read, new in self.stale:
                    self.write(read, new)
                self.stale.clear()


MOVES = st.one_of(
    st.tuples(st.just("wait"), st.integers(1, 80)),  # hours, with a sweep in each
    st.tuples(st.just("wait"), st.integers(20, 80)),
    st.tuples(st.just("away"), st.integers(1, 2000)),  # hours without a sweep
    st.tuples(st.just("jump"), st.sampled_from([-500, -5, 1, 3, 5, 23, 26, 80, 4000])),  # hours
    st.tuples(st.just("right"), st.just(0)),
    st.tuples(st.just("sweep"), st.sampled_from([0, 0, 0, 0, 1, 2])),
    st.tuples(st.just("extend"), st.integers(1, 96)),
    st.tuples(st.just("late"), st.just(0)),
)


@given(st.lists(MOVES, max_size=40), st.sampled_from(["", "2d"]), st.sampled_from(["10d", ""]))
def test_nothing_ends_early_without_warning_or_twice(
    moves: list[tuple[str, int]], grace: str, maximum: str
) -> None:
    limits = {} if maximum else {"maximum": "", "extend": Extend()}
    world = World(policy(grace=grace, **limits))
    for move, size in moves:
        world.make(move, size)
        assert len(world.ends) <= 1


@pytest.mark.parametrize(
    ("zone", "at", "now", "night", "reason"),
    [
        ("UTC", "20:00", "2026-11-23T20:00:00+00:00", "2026-11-23", "it begins on the minute"),
        ("UTC", "20:00", "2026-11-23T19:59:59+00:00", "", "not before"),
        ("UTC", "20:00", "2026-11-23T20:59:59+00:00", "2026-11-23", "for an hour"),
        ("UTC", "20:00", "2026-11-23T21:00:00+00:00", "", "and no longer"),
        ("Europe/Berlin", "20:00", "2026-11-23T19:30:00+00:00", "2026-11-23", "by the zone"),
        ("Europe/Berlin", "20:00", "2026-07-23T18:30:00+00:00", "2026-07-23", "in summer, too"),
        ("UTC", "23:30", "2026-11-24T00:10:00+00:00", "2026-11-23", "of the day before"),
        ("Asia/Tokyo", "00:10", "2026-11-23T15:20:00+00:00", "2026-11-24", "of the zone's day"),
    ],
)
def test_a_night_is_due_for_an_hour(zone: str, at: str, now: str, night: str, reason: str) -> None:
    nightly = Nightly(at, {"running": False}, zone)

    assert night_due(datetime.fromisoformat(now), nightly) == night, reason


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ("11d", "is longer than the maximum, 10d"),
        ("1h", "is not longer than the last warning"),
        ("soon", "is not a duration"),
        ("5d", ""),
    ],
)
def test_a_new_order_that_asks_for_another_lease_than_its_kit_grants_is_refused(
    forge: OwnForge, asked: str, rule: str
) -> None:
    """The field is named as in the order's form."""
    versions = [{"name": "v1", "referenceable": True}]
    xrd = {"spec": {"group": "a.example.org", "names": {"kind": "XApp"}, "versions": versions}}
    lease = Lease(declared_default="3d", maximum="10d", term_field="howLong")
    kit = Kit(name="app", xrd=xrd, lease=lease, aliases={"howLong": "term"})
    entry = OrderEntry(TeamName(forge.named("ae86")), OrderId("app-a"))
    xr = {"apiVersion": "a.example.org/v1", "kind": "XApp", "metadata": {"name": entry.order}}
    forge.repo(
        entry.repository, {"manifests/x.yaml": json.dumps({**xr, "spec": {"howLong": asked}})}
    )
    record: Any = None
    live = LiveOrder(entry, kit, record, TeamFile(entry.team))

    if not rule:
        assert EXPIRES_AT in new_lease(forge.platform(), live, EVE)
        return
    with pytest.raises(InvalidInputError) as refused:
        new_lease(forge.platform(), live, EVE)
    assert (refused.value.field, refused.value.value) == ("term", asked)
    assert refused.value.rule.startswith(rule)


def test_the_lease_of_an_order_whose_kit_is_gone_is_shown_and_that_of_no_order_is_not(
    forge: OwnForge,
) -> None:
    entry = OrderEntry(TeamName("ae86"), OrderId("app-a"))
    forge.repo(forge.pack, {"pack.yaml": json.dumps(PACK)})
    forge.repo(forge.ledger)
    with pytest.raises(NotFoundError, match="no order 'app-a' in the ledger") as missing:
        read_leased(forge.platform(), entry)
    application = order_application(entry, kit="app", forge_url=forge.client.base_url)
    forge.write(forge.ledger, {str(entry.application_path): json.dumps(application)})

    leased = read_leased(forge.platform(), entry)

    assert missing.value.hint == "orderkit repair app-a"
    assert (leased.kit, leased.then, leased.policy) == ("app", "end", None)


PACK = {
    "apiVersion": "orderkit.dev/v1alpha1",
    "kind": "Pack",
    "metadata": {"name": "empty"},
    "spec": {"kits": []},
}
