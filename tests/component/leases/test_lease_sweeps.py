"""Sweeps that are killed, run twice at once, meet extensions, pause, or run in the service."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import pytest
import requests
import yaml
from commands import Command
from consolebrowser import Browser
from rivals import Rival
from tests.component.leases.conftest import KIT, LEASE, Leases, TurnedClock, entry_of

from ground.errors import InvalidInputError, OrderkitError, RefusedError
from ground.names import RepoId
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.order import ledger
from orderkit.core.order.end_record import PROTECTED, Phase
from orderkit.core.order.lease import CLOCK_BOUND, EXPIRES_AT, RECORD
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.lease.extending import (
    ExtendRequest,
    extend_lease,
)
from orderkit.flows.lease.sweeper import LeaseSweeper
from orderkit.flows.lease.sweeping import SWEEPER, SweepRequest, sweep
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

HOUR = timedelta(hours=1)
XR = PurePosixPath("manifests/xgarage.yaml")
EVE = Requester("user:default/eve")


class KilledError(BaseException):
    """The process is gone."""


class DyingForge:
    """A forge whose caller is killed before or after one of its writes."""

    def __init__(self, forge: Any, at: int, side: str) -> None:
        self._forge, self._left, self._side = forge, at, side

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)

    def write(self, *arguments: Any) -> Any:
        self._left -= 1
        if self._left == 0 and self._side == "before":
            raise KilledError
        done = self._forge.write(*arguments)
        if self._left == 0:
            raise KilledError
        return done


def killed(platform: Platform, at: int, side: str) -> Platform:
    return replace(platform, forge=DyingForge(platform.forge, at, side))  # type: ignore[arg-type]


def turn_to_the_end(order: str, leases: Leases) -> None:
    """Let both warnings be recorded, and turn the clock beyond the expiry."""
    leases.delivered(order)
    for step in (timedelta(days=2, minutes=1), 23 * HOUR + timedelta(minutes=1)):
        leases.clock.moved += step
        assert [one.split()[0] for one in leases.actions(order)] == ["warn"]
    leases.clock.moved += timedelta(minutes=62)


def ends(platform: Platform, order: str) -> tuple[int, int]:
    """Return how often an end was decided, and how many tombstones there are."""
    commits = platform.forge.commits(platform.ledger, limit=200)
    tombstones = [
        path
        for path in ledger_snapshot(platform).blobs
        if path.parts[:3] == ("data", entry_of(order).team, order) and "tombstone" in path.name
    ]
    decided = [c for c in commits if f"{order}: its lease is over, and it ends" in c.message]
    return len(decided), len(tombstones)


def test_of_two_sweeps_at_once_and_an_extension_one_wins_and_nothing_ends_twice(
    platform: Platform, order: str, leases: Leases
) -> None:
    turn_to_the_end(order, leases)
    begin = threading.Barrier(3)

    def race(act: Any) -> object:
        begin.wait()
        try:
            return act()
        except OrderkitError as error:
            return error

    extending = ExtendRequest(order, 8 * HOUR, EVE, "not yet")
    with ThreadPoolExecutor(3) as threads:
        acts = [
            lambda: sweep(platform, SweepRequest()),
            lambda: sweep(platform, SweepRequest()),
            lambda: extend_lease(platform, extending),
        ]
        extended = list(threads.map(race, acts))[2]

    leases.actions(order)
    if isinstance(extended, OrderkitError):
        assert isinstance(extended, RefusedError)
        assert ends(platform, order) == (1, 1)
    else:
        assert ends(platform, order) == (0, 0)
        assert leases.expires(order) > leases.clock.now() + 7 * HOUR


def true_time(passed: timedelta) -> datetime:
    return datetime.now(UTC) + passed


def test_random_histories_with_kills_and_jumps_end_once_after_their_warnings(
    platform: Platform, order: str, leases: Leases, clock: TurnedClock
) -> None:
    """The true time is the machine's, turned by what passed; jumps are on top of it."""
    chance, passed = random.Random(20261123), timedelta(0)  # noqa: S311 - no secret
    leases.delivered(order)
    promised, jumps = leases.expires(order), 0
    for _ in range(40):
        if ends(platform, order)[0]:
            break
        passed += chance.choice((20 * HOUR, 50 * HOUR, HOUR, timedelta(minutes=61), 23 * HOUR))
        jump = chance.choice((0, 0, 0, 0, 500, -30)) * HOUR
        jumps += bool(jump)
        clock.moved = passed + jump
        there = replace(platform, other_clock=partial(true_time, passed))
        if chance.random() < 0.5:
            there = killed(there, chance.choice((1, 2, 3)), chance.choice(("before", "after")))
        try:
            if not jump and chance.random() < 0.15:
                extend_lease(there, ExtendRequest(order, 8 * HOUR, EVE, "more"))
            else:
                sweep(there, SweepRequest())
        except (KilledError, OrderkitError):
            pass
        if not ends(platform, order)[0]:
            promised = max(promised, leases.expires(order))
    true_now = datetime.now(UTC) + passed

    assert jumps
    assert true_now >= promised - CLOCK_BOUND
    clock.moved = passed
    leases.actions(order)
    assert ends(platform, order) == (1, 1)
    messages = [c.message for c in platform.forge.commits(platform.ledger, limit=200)]
    warned = [
        stage for stage in ("24h", "1h") if any(f"{order}: warned {stage}" in m for m in messages)
    ]
    assert warned == ["24h", "1h"]


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_extension_that_is_killed_is_finished_by_the_same_command(
    platform: Platform, shared_order: str, leases: Leases, at: int, side: str
) -> None:
    before = leases.expires(shared_order)
    request = ExtendRequest(shared_order, HOUR, EVE, "killed", f"kill-{at}-{side}")

    try:
        extend_lease(killed(platform, at, side), request)
    except KilledError:
        assert at <= 2
    extend_lease(platform, request)
    again = extend_lease(platform, request)

    assert (leases.expires(shared_order), again.changed) == (before + HOUR, False)


def test_a_kit_that_pauses_makes_its_change_once(
    platform: Platform, order: str, leases: Leases, orderkit: Command
) -> None:
    turn_to_the_end(order, leases)
    with kit_of(platform, {**LEASE, "then": "pause", "pause": {"stage": "stage1"}}):
        assert leases.actions(order) == ["pause"]
        assert leases.actions(order) == []
        stage = orderkit("status", order, "--json").json["values"]["stage"]
        entries = orderkit("history", order, "--json").json["entries"]

    assert stage == "stage1"
    assert "its lease ended at" in entries[0]["reason"]


class kit_of:  # noqa: N801 - reads like a function
    """Publish another lease of the garages for a while."""

    def __init__(self, platform: Platform, lease: Any) -> None:
        self._platform, self._lease = platform, lease
        self._before = b""

    def __enter__(self) -> None:
        revision = self._platform.forge.read(self._platform.pack_repo, KIT, "main")
        assert revision is not None
        kit = yaml.safe_load(revision.data)
        kit["spec"]["lease"] = self._lease
        if self._lease is None:
            del kit["spec"]["lease"]
        self._before = revision.data
        self._write(yaml.safe_dump(kit, sort_keys=False).encode())

    def __exit__(self, *_: object) -> None:
        self._write(self._before)

    def _write(self, data: bytes) -> None:
        revision = self._platform.forge.read(self._platform.pack_repo, KIT, "main")
        assert revision is not None
        operation = Operation(f"kit-{revision.sha}-{hash(data)}", EVE.ref, "another lease")
        change = FileChange(KIT, data, revision.sha)
        self._platform.forge.write(self._platform.pack_repo, [change], operation)


def test_orders_from_before_have_no_expiry_until_somebody_adopts_or_extends_them(
    platform: Platform, leases: Leases, orderkit: Command, old_order: str
) -> None:
    assert "lives until somebody ends it" in orderkit("lease", old_order).out
    (reported,) = leases.sweep(old_order)
    assert "lease sweep --adopt" in reported.what

    swept = sweep(platform, SweepRequest(adopt=True))

    assert ("adopt", True) in [(o.action, o.done) for o in swept.orders if o.order == old_order]
    left = leases.expires(old_order) - leases.clock.now()
    assert timedelta(days=2, hours=23) < left <= timedelta(days=3)


def test_a_night_gives_an_order_its_values_once_and_leaves_others_alone(
    platform: Platform, order: str, leases: Leases, orderkit: Command
) -> None:
    leases.delivered(order)
    entry, lease = entry_of(order), alone(platform, order)
    night = {
        "at": f"{leases.clock.now() - timedelta(minutes=5):%H:%M}",
        "zone": "UTC",
        "set": {"stage": "stage1"},
    }
    with kit_of(platform, {**lease, "nightly": {**night, "unless": {"stage": "stage2"}}}):
        assert leases.actions(order) == []
    with kit_of(platform, {**lease, "nightly": night}):
        sound = rewritten(platform, entry.repository, XR, b"{")
        assert leases.actions(order) == [], "its XR cannot be read: there is nothing to change"
        rewritten(platform, entry.repository, XR, sound)
        assert leases.actions(order) == ["pause"]
        assert leases.actions(order) == []
        assert orderkit("change", order, "stage=stage3", "--no-wait").code == 0
        assert leases.actions(order) == [], "who starts it again in the same night is left alone"

    (again, stopped, *_) = orderkit("history", order, "--json").json["entries"]
    assert "the night of" in stopped["reason"]
    assert again["fields"][0]["to"] == "stage3"


def alone(platform: Platform, order: str) -> dict[str, Any]:
    """Return the lease of the garages for the team of one order only."""
    teams = ledger.teams(ledger_snapshot(platform).blobs)
    return {**LEASE, "except": [team for team in teams if team != entry_of(order).team]}


def rewritten(platform: Platform, repo: RepoId, path: PurePosixPath, data: bytes) -> bytes:
    """Push another content of a file; return what was there."""
    seen = platform.forge.read(repo, path, "main")
    assert seen is not None
    operation = Operation(f"by-hand-{seen.sha[:12]}-{len(data)}", EVE.ref, "by hand")
    platform.forge.write(repo, [FileChange(path, data, seen.sha)], operation)
    return seen.data


def test_an_order_that_cannot_be_looked_at_is_reported_and_stops_no_other(
    platform: Platform, order: str, shared_order: str, leases: Leases
) -> None:
    leases.delivered(order)
    leases.clock.moved = leases.expires(shared_order) - leases.clock.now() - HOUR / 2
    path = entry_of(order).application_path
    sound = rewritten(platform, platform.ledger, path, b"{")
    try:
        swept = {one.order: one for one in sweep(platform, SweepRequest(dry_run=True)).orders}
    finally:
        rewritten(platform, platform.ledger, path, sound)

    assert (swept[order].action, swept[order].done) == ("report", False)
    assert order in swept[order].what
    assert swept[shared_order].done


def test_an_order_that_is_protected_in_the_moment_of_its_end_stays_and_can_be_extended(
    platform: Platform, order: str, leases: Leases
) -> None:
    turn_to_the_end(order, leases)
    repo = entry_of(order).repository

    def protect() -> None:
        file = platform.forge.read(repo, XR, "main")
        assert file is not None
        xr = yaml.safe_load(file.data)
        xr["metadata"].setdefault("annotations", {})[PROTECTED] = "audited"
        rewritten(platform, repo, XR, yaml.safe_dump(xr).encode())

    rival: Any = Rival(platform.forge, "write", protect, when="after")
    with kit_of(platform, alone(platform, order)):
        swept = sweep(replace(platform, forge=rival), SweepRequest()).orders

    (mine,) = [one for one in swept if one.order == order]
    assert (rival.has_acted, mine.action, mine.done) == (True, "report", True)
    assert "is protected and cannot end: audited" in mine.what
    assert ends(platform, order) == (1, 0)
    extend_lease(platform, ExtendRequest(order, 8 * HOUR, EVE, "audited"))
    assert leases.expires(order) > leases.clock.now()


@pytest.mark.parametrize("by", [SWEEPER, EVE.ref])
def test_a_sweep_finishes_what_a_sweep_began_to_end_and_nobody_elses_end(
    platform: Platform, order: str, leases: Leases, orderkit: Command, by: str
) -> None:
    """The order's lease is gone with its Application by then."""

    def cut(step: Phase, _: str) -> None:
        if step == "removing":
            raise KilledError

    with pytest.raises(KilledError):
        destroy(platform, EndRequest(order, by), on_step=cut)

    assert orderkit("lease", order).code == 1
    is_swept = by == SWEEPER
    assert leases.actions(order, dry_run=True) == ["end"] * is_swept
    assert ends(platform, order)[1] == 0
    assert leases.actions(order) == ["end"] * is_swept
    assert ends(platform, order)[1] == is_swept


def test_a_time_to_look_at_needs_a_dry_run(platform: Platform) -> None:
    with pytest.raises(InvalidInputError, match="is for dry runs"):
        sweep(platform, SweepRequest(at=platform.clock.now()))


def test_the_service_says_why_it_does_not_sweep(
    platform: Platform, leases: Leases, caplog: pytest.LogCaptureFixture
) -> None:
    leases.clock.moved = timedelta(days=300)
    doubting = replace(platform, other_clock=platform.cluster.clock)  # type: ignore[attr-defined]
    sweeper = LeaseSweeper(doubting, interval_s=0.1)
    sweeper.start()
    until(
        SystemClock(),
        lambda: "leases are not swept: " in caplog.text,
        bool,
        timeout_s=60,
        goal="the warning",
    )
    sweeper.close()

    assert "one of them is wrong" in caplog.text


@pytest.fixture
def old_order(platform: Platform, order: str) -> str:
    """An order from before leases: its Application has no such annotations."""
    write_notes(platform, order, {})
    until(
        SystemClock(),
        lambda: EXPIRES_AT in str(platform.cluster.get(_key(order))),
        lambda has: not has,
        timeout_s=60,
        goal="the annotations to go",
    )
    return order


def _key(order: str) -> Any:
    from ground.names import OrderId
    from orderkit.flows.argocd.refreshing import application_key

    return application_key(OrderId(order))


def write_notes(platform: Platform, order: str, notes: dict[str, str]) -> None:
    """Write other annotations of a lease into the ledger, as an administrator can."""
    path = entry_of(order).application_path
    revision = platform.forge.read(platform.ledger, path, "main")
    assert revision is not None
    application = yaml.safe_load(revision.data)
    kept = {k: v for k, v in application["metadata"]["annotations"].items()
            if k not in (EXPIRES_AT, RECORD)}  # fmt: skip
    application["metadata"]["annotations"] = {**kept, **notes}
    platform.forge.write(
        platform.ledger,
        [FileChange(path, yaml.safe_dump(application).encode(), revision.sha)],
        Operation(f"notes-{revision.sha[:12]}", EVE.ref, "by hand"),
    )


def test_a_record_that_somebody_broke_ends_nothing_and_can_be_replaced(
    platform: Platform, order: str, leases: Leases, orderkit: Command
) -> None:
    hostile = '{"began": "\x1b[31m<script>", "warned": []}'
    write_notes(platform, order, {EXPIRES_AT: "2026-01-01T00:00:00Z", RECORD: hostile})
    until(
        SystemClock(),
        lambda: leases.sweep(order, dry_run=True),
        bool,
        timeout_s=60,
        goal="the sweep seeing it",
    )

    (reported,) = leases.sweep(order)

    assert (reported.action, reported.done) == ("report", False)
    assert "\x1b" not in orderkit("lease", order).out
    assert "cannot be read" in orderkit("status", order).out
    assert orderkit("lease", "extend", order, "1d", "--reason", "it was broken").code == 0
    assert leases.expires(order) > leases.clock.now() + 23 * HOUR


def test_the_service_sweeps_by_itself_and_one_of_two_replicas_does(
    platform: Platform, order: str, leases: Leases
) -> None:
    leases.delivered(order)
    leases.clock.moved = timedelta(days=2, minutes=1)
    replicas = [LeaseSweeper(platform, interval_s=0.2) for _ in range(2)]
    for replica in replicas:
        replica.start()
    until(
        SystemClock(),
        lambda: orderkit_warning(platform, order),
        lambda stage: stage == "24h",
        timeout_s=60,
        goal="the warning",
    )
    for replica in replicas:
        replica.close()

    messages = [commit.message for commit in platform.forge.commits(platform.ledger, limit=50)]
    assert sum(f"{order}: warned 24h" in message for message in messages) == 1


class SlowForge:
    """A forge whose writes take their time, and are counted."""

    def __init__(self, forge: Any, write_s: float) -> None:
        self._forge, self._write_s = forge, write_s
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)

    def write(self, *arguments: Any) -> Any:
        self.writes += 1
        time.sleep(self._write_s)
        return self._forge.write(*arguments)


def test_a_sweep_that_takes_longer_than_the_lease_lasts_keeps_it(
    platform: Platform, order: str, leases: Leases
) -> None:
    leases.delivered(order)
    leases.clock.moved = timedelta(days=2, minutes=1)
    slow, other = SlowForge(platform.forge, 3.0), SlowForge(platform.forge, 0.0)
    replicas = [
        LeaseSweeper(replace(platform, forge=forge), interval_s=0.2)  # type: ignore[arg-type]
        for forge in (slow, other)
    ]
    replicas[0].start()
    until(SystemClock(), lambda: slow.writes, bool, timeout_s=60, goal="a sweep has begun")
    replicas[1].start()
    until(
        SystemClock(),
        lambda: orderkit_warning(platform, order),
        lambda stage: stage == "24h",
        timeout_s=60,
        goal="the warning",
    )
    for replica in replicas:
        replica.close()

    assert slow.writes > 0
    assert other.writes == 0


def test_replicas_whose_clocks_differ_end_an_order_once_and_no_earlier_than_they_differ(
    platform: Platform, order: str, leases: Leases, clock: TurnedClock
) -> None:
    turn_to_the_end(order, leases)
    clock.moved += leases.expires(order) - clock.now() - timedelta(seconds=40)
    ahead = TurnedClock()
    ahead.moved = clock.moved + timedelta(seconds=30)
    assert leases.actions(order) == []
    assert Leases(replace(platform, clock=ahead), ahead).actions(order) == []

    for each in (clock, ahead):
        each.moved += timedelta(seconds=15)
    replicas = [LeaseSweeper(replace(platform, clock=c), interval_s=0.2) for c in (ahead, clock)]
    for replica in replicas:
        replica.start()
    until(
        SystemClock(),
        lambda: ends(platform, order)[1],
        bool,
        timeout_s=60,
        goal="the end",
    )
    for replica in replicas:
        replica.close()

    assert ends(platform, order) == (1, 1)


def orderkit_warning(platform: Platform, order: str) -> str:
    from orderkit.flows.lease.extending import lease_of

    record = lease_of(platform, order).leased.record
    return record.last_warning if record else ""


def test_the_service_shows_and_extends_for_its_callers(
    running_platform: Running, shared_order: str, leases: Leases
) -> None:
    settings = running_platform.settings
    url = f"{settings.service.url}/v1/orders/{shared_order}/lease"
    headers = {SECRET_HEADER: token(settings.service), "Idempotency-Key": "once"}
    before = leases.expires(shared_order)
    body = {"by": "1h", "reason": "more", "requester": "user:default/eve"}

    first = requests.post(url, json=body, headers=headers, timeout=60)
    again = requests.post(url, json=body, headers=headers, timeout=60)
    shown = requests.get(url, headers=headers, timeout=60).json()
    refused = requests.post(url, json={**body, "by": "9w"}, headers=headers, timeout=60)
    malformed = requests.post(url, json={"by": "1h"}, headers=headers, timeout=60)

    assert [first.status_code, again.status_code] == [201, 200], first.text
    assert leases.expires(shared_order) == before + HOUR
    assert (shown["by"], shown["reason"]) == ("user:default/eve", "more")
    assert refused.status_code == 403, refused.text
    assert "longer than one extension may be" in refused.json()["error"]["message"]
    assert malformed.status_code == 400, malformed.text
    assert requests.get(url, timeout=60).status_code in (401, 403)


def test_the_console_extends_by_a_form(
    running_platform: Running, order: str, leases: Leases
) -> None:
    browser = Browser(running_platform.settings.service.url)
    team = f"group:default/{entry_of(order).team}"
    lead = Requester("user:default/keiichi", "a one-time link", frozenset({team}))
    assert browser.sign_in(token(running_platform.settings.service), lead).status == 200
    before, path = leases.expires(order), f"/orders/{order}/lease"

    shown = browser.get(path)
    refused = browser.submit(shown.form(path), by="9w", reason="<b>more</b>")
    done = browser.submit(refused.form(path), by="1h", reason="<b>more</b>")

    assert "expires at" in shown.page.text
    assert "longer than one extension may be" in refused.page.text
    assert done.page.h1 == order
    assert leases.expires(order) == before + HOUR
    assert "<b>more</b>" in browser.get(path).page.text
    shown = browser.get(f"/orders/{order}")
    assert "Extend" in shown.page.text
    assert f"Last change History Order {order}" in shown.page.text, (
        "a note of the lease is no change"
    )
    assert PurePosixPath(path).name in browser.get(f"/orders/{order}/end").text
