"""Leases on the embedded platform: granted, shown, extended, swept to the end, by a turned clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

import pytest
from commands import Command
from tests.component.leases.conftest import TurnedClock

from orderkit.core.names import OrderId, RepoId, TeamName
from orderkit.core.order.lease import EXPIRES_AT
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.yaml import yaml11
from orderkit.flows.lease.extending import read_leased
from orderkit.flows.lease.sweeping import Swept
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import FileChange, Operation

XR = PurePosixPath("manifests/xgarage.yaml")
HOUR = timedelta(hours=1)
Delivered = Callable[[str, str], Any]
Sweeping = Callable[..., Swept]


def entry_of(order: str) -> OrderEntry:
    return OrderEntry(TeamName(order.removeprefix("garage-")), OrderId(order))


def expires(platform: Platform, order: str) -> datetime:
    """Return the expiry that the ledger has."""
    record = read_leased(platform, entry_of(order)).record
    assert record is not None
    return record.expires


def xr_text(platform: Platform, order: str) -> str:
    entry = entry_of(order)
    revision = platform.forge.read(entry.repository, XR, "main")
    assert revision is not None
    return revision.text


def actions(swept: Swept, order: str) -> list[tuple[str, str]]:
    return [(one.action, one.stage) for one in swept.orders if one.order == order]


def test_a_new_order_has_an_expiry_in_ledger_file_list_and_status(
    orderkit: Command, platform: Platform, order: str, delivered: Delivered
) -> None:
    shown = orderkit("lease", order, "--json").json
    at = shown["expires"]

    assert 71 * 3600 < shown["leftSeconds"] <= 72 * 3600
    assert f"{EXPIRES_AT}: '{at}'" in xr_text(platform, order).replace('"', "'")
    delivered(order, at)
    assert orderkit("status", order, "--json").json["expires"] == at
    assert f"expires at {at}, in 2d 23h, and then ends" in orderkit("lease", order).out
    assert orderkit("status", order, "--check").code == 0


def test_ordering_again_grants_nothing_anew(
    orderkit: Command, platform: Platform, order: str
) -> None:
    before = expires(platform, order)
    head = ledger_snapshot(platform).commit

    again = orderkit(
        "order", "garage", f"team_name={order.removeprefix('garage-')}", "stage=stage2"
    )

    assert (again.code, expires(platform, order)) == (0, before)
    assert ledger_snapshot(platform).commit == head


def test_an_extension_is_recorded_with_reason_and_requester(
    orderkit: Command, platform: Platform, order: str
) -> None:
    before = expires(platform, order)
    words = ("lease", "extend", order, "8h", "--reason", "the <b>demo</b>\n\x1b[31m is tomorrow")
    eve = ("--requester", "user:default/eve", "--operation", "once")

    first = orderkit(*words, *eve)
    again = orderkit(*words, *eve, "--json")

    assert (first.code, again.code) == (0, 0), first.err
    assert expires(platform, order) == before + 8 * HOUR
    assert again.json["changed"] is False
    assert again.json["extensions"] == 1
    assert "by user:default/eve: the <b>demo</b>" in first.out
    assert "\x1b" not in first.out
    newest = platform.forge.commits(platform.ledger, limit=1)[0]
    assert newest.requester == "user:default/eve"
    assert f"{before + 8 * HOUR:%Y-%m-%dT%H:%M:%SZ}" in xr_text(platform, order)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("5d", "--reason", "x"), 4, "longer than one extension may be, 4d"),
        (("8", "--reason", "x"), 2, "for example 90m, 8h"),
        (("8h", "--reason", " "), 2, "reason is missing"),
        (("8h", "--reason", "x" * 501), 2, "longer than 500 characters"),
        (("8h", "--reason", "x", "--operation", "a b"), 2, "is not a name"),
    ],
)
def test_what_is_refused_says_the_way_out(
    orderkit: Command, platform: Platform, order: str, words: tuple[str, ...], code: int, says: str
) -> None:
    before = expires(platform, order)

    refused = orderkit("lease", "extend", order, *words)

    assert (refused.code, expires(platform, order)) == (code, before)
    assert says in refused.err


def test_a_sweep_warns_twice_and_then_proves_the_end(
    orderkit: Command,
    platform: Platform,
    order: str,
    clock: TurnedClock,
    delivered: Delivered,
    sweeping: Sweeping,
) -> None:
    at = expires(platform, order)
    delivered(order, f"{at:%Y-%m-%dT%H:%M:%SZ}")
    assert actions(sweeping(), order) == []

    clock.moved = timedelta(days=2, minutes=1)
    assert actions(sweeping(dry_run=True), order) == [("warn", "24h")]
    assert actions(sweeping(), order) == [("warn", "24h")]
    assert actions(sweeping(), order) == []
    assert orderkit("lease", order, "--json").json["lastWarning"] == "24h"
    clock.moved += 23 * HOUR
    assert actions(sweeping(), order) == [("warn", "1h")]
    clock.moved += timedelta(minutes=58)
    assert actions(sweeping(), order) == []
    clock.moved += timedelta(minutes=3)
    assert actions(sweeping(), order) == [("end", "")]

    assert actions(sweeping(), order) == []
    assert orderkit("status", order).code == 1
    commits = platform.forge.commits(platform.ledger, limit=20)
    assert sum(f"{order}: its lease is over" in commit.message for commit in commits) == 1
    tombstones = [p for p in ledger_snapshot(platform).blobs if "tombstone" in p.name]
    assert sum(order in str(path) for path in tombstones) == 1


def test_after_weeks_of_downtime_the_warning_comes_first_and_its_time_is_granted(
    platform: Platform, order: str, clock: TurnedClock, sweeping: Sweeping, delivered: Delivered
) -> None:
    delivered(order, f"{expires(platform, order):%Y-%m-%dT%H:%M:%SZ}")
    clock.moved = timedelta(days=40)

    assert actions(sweeping(), order) == [("warn", "24h")]

    left = expires(platform, order) - clock.now()
    assert timedelta(hours=23, minutes=58) < left <= timedelta(hours=24)
    assert f"{expires(platform, order):%Y-%m-%dT%H:%M:%SZ}" in xr_text(platform, order)


def test_a_clock_that_others_contradict_ends_nothing(
    platform: Platform, order: str, clock: TurnedClock, orderkit: Command, delivered: Delivered
) -> None:
    """The API server's own Date header is that other clock."""
    from dataclasses import replace

    from orderkit.flows.lease.sweeping import SweepRequest, sweep

    delivered(order, f"{expires(platform, order):%Y-%m-%dT%H:%M:%SZ}")
    real = replace(platform, other_clock=platform.cluster.clock)  # type: ignore[attr-defined]
    clock.moved = timedelta(days=300)
    before, head = expires(platform, order), ledger_snapshot(platform).commit

    swept = sweep(real, SweepRequest())

    assert "one of them is wrong" in swept.doubt
    assert actions(swept, order) == [("report", "")]
    assert (expires(platform, order), ledger_snapshot(platform).commit) == (before, head)
    clock.moved = timedelta(days=-300)
    assert "newest commit" in sweep(platform, SweepRequest()).doubt
    assert orderkit("lease", "sweep").code == 0  # by the true clock


def test_protected_and_needed_orders_are_reported_and_not_ended(
    platform: Platform, order: str, clock: TurnedClock, sweeping: Sweeping, delivered: Delivered
) -> None:
    annotate(platform, order, "orderkit.dev/protected", "audited until May")
    delivered(order, f"{expires(platform, order):%Y-%m-%dT%H:%M:%SZ}")
    go_through_warnings(order, clock, sweeping)

    swept = [one for one in sweeping().orders if one.order == order]

    assert [one.action for one in swept] == ["report"]
    assert "audited until May" in swept[0].what
    clock.moved += timedelta(days=9)
    assert actions(sweeping(), order) == [("report", "")]
    annotate(platform, order, "orderkit.dev/protected", "false")
    assert actions(sweeping(), order) == [("warn", "24h")]  # nobody expects its end any more


def go_through_warnings(order: str, clock: TurnedClock, sweeping: Sweeping) -> None:
    """Turn the clock beyond the expiry, with a sweep at each warning."""
    clock.moved = timedelta(days=2, minutes=1)
    assert actions(sweeping(), order) == [("warn", "24h")]
    clock.moved += timedelta(hours=23, minutes=1)
    assert actions(sweeping(), order) == [("warn", "1h")]
    clock.moved += timedelta(minutes=62)


def annotate(platform: Platform, order: str, key: str, value: str) -> None:
    """Push an annotation of the XR, as anybody who may push can."""
    entry = entry_of(order)
    revision = platform.forge.read(entry.repository, XR, "main")
    assert revision is not None
    xr = yaml11.load(revision.data, name=str(XR), schema={})
    xr["metadata"].setdefault("annotations", {})[key] = value
    platform.forge.write(
        RepoId(entry.team, entry.order),
        [FileChange(XR, yaml11.dump(xr).encode(), revision.sha)],
        Operation(f"by-hand-{revision.sha[:8]}", "user:default/mallory", "by hand"),
    )


def test_who_edits_the_expiry_changes_nothing_and_repair_puts_it_back(
    orderkit: Command, platform: Platform, order: str, delivered: Delivered
) -> None:
    at = f"{expires(platform, order):%Y-%m-%dT%H:%M:%SZ}"
    delivered(order, at)
    annotate(platform, order, EXPIRES_AT, "2099-01-01T00:00:00Z")

    status = orderkit("status", order)
    lease = orderkit("lease", order, "--json").json

    assert "2099-01-01T00:00:00Z" in status.out
    assert f"orderkit repair {order}" in status.out
    assert lease["expires"] == at
    repaired = orderkit("repair", order)
    assert repaired.code == 0, repaired.err
    assert at in xr_text(platform, order)
    assert "2099" not in orderkit("status", order).out


def test_a_lost_file_of_the_ledger_comes_back_with_its_lease(
    orderkit: Command, platform: Platform, order: str, delivered: Delivered
) -> None:
    at = expires(platform, order)
    delivered(order, f"{at:%Y-%m-%dT%H:%M:%SZ}")
    path = entry_of(order).application_path
    file = platform.forge.read(platform.ledger, path, "main")
    assert file is not None
    platform.forge.write(
        platform.ledger,
        [FileChange(path, None, file.sha)],
        Operation(f"lost-{order}", "user:default/mallory", "lost"),
    )

    assert orderkit("repair", order).code == 0

    assert expires(platform, order) == at


def test_the_list_sorts_by_expiry(orderkit: Command, platform: Platform, order: str) -> None:
    listed = orderkit("list", "--sort", "expires", "--json")

    assert listed.code == 0
    assert orderkit("list", "--sort", "expiry").code == 2
