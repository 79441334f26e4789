"""Leases on the embedded platform: granted, shown, extended, and swept to the end."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import PurePosixPath
from urllib.parse import parse_qs, urlsplit

import requests
from commands import Command
from tests.component.leases.conftest import Leases, entry_of

from ground.names import RepoId
from orderkit.core.order.lease import EXPIRES_AT, time_text
from orderkit.flows.lease.extending import ExtendRequest, extend_lease
from orderkit.flows.lease.sweeping import SweepRequest, sweep
from orderkit.flows.order.order_history import history
from orderkit.flows.order.viewing import Viewer, view
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running
from yamlfiles import yaml11

XR = PurePosixPath("manifests/xgarage.yaml")
HOUR = timedelta(hours=1)
EVE = Requester("user:default/eve")


def xr_text(platform: Platform, order: str) -> str:
    entry = entry_of(order)
    revision = platform.forge.read(entry.repository, XR, "main")
    assert revision is not None
    return revision.text


def test_a_new_order_has_an_expiry_in_ledger_file_list_and_status(
    orderkit: Command, platform: Platform, order: str, leases: Leases
) -> None:
    shown = orderkit("lease", order, "--json").json
    at = shown["expires"]

    assert 71 * 3600 < shown["leftSeconds"] <= 72 * 3600
    assert f"{EXPIRES_AT}: '{at}'" in xr_text(platform, order).replace('"', "'")
    leases.delivered(order)
    again = orderkit(
        "order", "garage", f"team_name={order.removeprefix('garage-')}", "stage=stage2"
    )
    assert f"expires          in 3 days, {at}\n" in again.out
    assert orderkit("status", order, "--json").json["expires"] == at
    assert f"expires at {at}, in 2d 23h, and then ends" in orderkit("lease", order).out
    assert orderkit("status", order, "--check").code == 0


def test_the_link_to_extend_a_lease_opens_its_form_for_that_order(
    running_platform: Running, order: str
) -> None:
    url = f"{running_platform.settings.service.url}/v1/orders/{order}/changes/lease/form"

    with requests.get(url, timeout=30, allow_redirects=False) as answer:
        place = urlsplit(answer.headers["Location"])

    assert answer.status_code == 302
    assert place.path == "/create/templates/default/garage.lease"
    assert parse_qs(place.query) == {
        "formData": [json.dumps({"order_ref": f"component:default/{order}"}, separators=(",", ":"))]
    }


def test_ordering_again_grants_nothing_anew(
    orderkit: Command, platform: Platform, order: str, leases: Leases
) -> None:
    before = leases.expires(order)
    head = ledger_snapshot(platform).commit

    again = orderkit(
        "order", "garage", f"team_name={order.removeprefix('garage-')}", "stage=stage2"
    )

    assert (again.code, leases.expires(order)) == (0, before)
    assert ledger_snapshot(platform).commit == head


def test_an_extension_is_recorded_with_reason_and_requester(
    orderkit: Command, platform: Platform, order: str, leases: Leases
) -> None:
    before = leases.expires(order)
    words = ("lease", "extend", order, "8h", "--reason", "the <b>demo</b>\n\x1b[31m is tomorrow")
    eve = ("--requester", "user:default/eve", "--operation", "once")

    first = orderkit(*words, *eve)
    again = orderkit(*words, *eve, "--json")

    assert (first.code, again.code) == (0, 0), first.err
    assert leases.expires(order) == before + 8 * HOUR
    assert again.json["changed"] is False
    assert again.json["extensions"] == 1
    assert "by user:default/eve: the <b>demo</b>" in first.out
    assert "\x1b" not in first.out
    newest = platform.forge.commits(platform.ledger, limit=1)[0]
    assert newest.requester == "user:default/eve"
    assert f"{before + 8 * HOUR:%Y-%m-%dT%H:%M:%SZ}" in xr_text(platform, order)


def test_extensions_are_no_last_change_however_many_there_are(
    platform: Platform, order: str
) -> None:
    for number in range(7):
        request = ExtendRequest(order, HOUR, EVE, "longer", f"extension-{number}")
        assert extend_lease(platform, request).changed

    shown = view(platform, order, Viewer(EVE)).last_change

    notes = [entry for entry in history(platform, order) if entry.is_lease_note]
    assert len(notes) == 8  # the first is that of the order
    assert shown is not None
    assert shown["ordered"] is True


def test_an_extension_counts_although_the_orders_file_cannot_be_read(
    orderkit: Command, platform: Platform, order: str, leases: Leases
) -> None:
    before, repo = leases.expires(order), entry_of(order).repository
    file = platform.forge.read(repo, XR, "main")
    assert file is not None
    broken = FileChange(XR, b"spec: [", file.sha)
    platform.forge.write(repo, [broken], Operation(f"break-{order}", EVE.ref, "by hand"))

    extended = orderkit("lease", "extend", order, "8h", "--reason", "the demo")
    leases.delivered(order)
    status = orderkit("status", order)

    assert (extended.code, leases.expires(order)) == (0, before + 8 * HOUR), extended.err
    assert "its file on main does not say so yet: " in extended.out + extended.err
    assert "xgarage.yaml" in status.out
    assert "orderkit lease extend" not in status.out, "its lease in the ledger is sound"


REFUSED = [
    (("5d", "--reason", "x"), "longer than one extension may be, 4d"),
    (("8", "--reason", "x"), "for example 90m, 8h"),
    (("8h", "--reason", " "), "reason is missing"),
    (("8h", "--reason", "x" * 501), "longer than 500 characters"),
    (("8h", "--reason", "x", "--operation", "a b"), "is not a name"),
]


def test_what_is_refused_says_the_way_out(orderkit: Command, order: str, leases: Leases) -> None:
    before = leases.expires(order)

    for words, says in REFUSED:
        refused = orderkit("lease", "extend", order, *words)
        assert refused.code in (2, 4)
        assert says in refused.err

    assert leases.expires(order) == before


def test_a_sweep_warns_twice_and_then_proves_the_end(
    orderkit: Command, platform: Platform, order: str, leases: Leases
) -> None:
    leases.delivered(order)
    assert leases.actions(order) == []

    leases.clock.moved = timedelta(days=2, minutes=1)
    assert leases.actions(order, dry_run=True) == ["warn 24h"]
    assert leases.actions(order) == ["warn 24h"]
    assert leases.actions(order) == []
    assert orderkit("lease", order, "--json").json["lastWarning"] == "24h"
    leases.clock.moved += 23 * HOUR
    assert leases.actions(order) == ["warn 1h"]
    leases.clock.moved += timedelta(minutes=58)
    assert leases.actions(order) == []
    leases.clock.moved += timedelta(minutes=3)
    assert leases.actions(order) == ["end"]

    assert leases.actions(order) == []
    assert orderkit("status", order).code == 1
    commits = platform.forge.commits(platform.ledger, limit=20)
    assert sum(f"{order}: its lease is over" in commit.message for commit in commits) == 1
    tombstones = [p for p in ledger_snapshot(platform).blobs if "tombstone" in p.name]
    assert sum(order in str(path) for path in tombstones) == 1


def test_after_weeks_of_downtime_the_warning_comes_first_and_its_time_is_granted(
    platform: Platform, order: str, leases: Leases
) -> None:
    leases.delivered(order)
    leases.clock.moved = timedelta(days=40)

    assert leases.actions(order) == ["warn 24h"]

    left = leases.expires(order) - leases.clock.now()
    assert timedelta(hours=23, minutes=58) < left <= timedelta(hours=24)
    assert f"{leases.expires(order):%Y-%m-%dT%H:%M:%SZ}" in xr_text(platform, order)


def test_a_clock_that_others_contradict_ends_nothing(
    platform: Platform, order: str, orderkit: Command, leases: Leases
) -> None:
    """The API server's own Date header is that other clock."""
    leases.delivered(order)
    real = replace(platform, other_clock=platform.cluster.clock)  # type: ignore[attr-defined]
    leases.clock.moved = timedelta(days=300)
    before, head = leases.expires(order), ledger_snapshot(platform).commit

    swept = sweep(real, SweepRequest())

    assert "one of them is wrong" in swept.doubt
    assert [one.action for one in swept.orders if one.order == order] == ["report"]
    assert (leases.expires(order), ledger_snapshot(platform).commit) == (before, head)
    leases.clock.moved = timedelta(days=-300)
    assert "newest commit" in sweep(platform, SweepRequest()).doubt
    assert orderkit("lease", "sweep").code == 0  # by the true clock


def test_protected_and_needed_orders_are_reported_and_not_ended(
    platform: Platform, order: str, leases: Leases
) -> None:
    annotate(platform, order, "orderkit.dev/protected", "audited until May")
    leases.delivered(order)
    go_through_warnings(order, leases)

    swept = leases.sweep(order)

    assert [one.action for one in swept] == ["report"]
    assert "audited until May" in swept[0].what
    leases.clock.moved += timedelta(days=9)
    assert leases.actions(order) == ["report"]
    annotate(platform, order, "orderkit.dev/protected", "false")
    assert leases.actions(order) == ["warn 24h"]  # nobody expects its end any more


def go_through_warnings(order: str, leases: Leases) -> None:
    """Turn the clock beyond the expiry, with a sweep at each warning."""
    leases.clock.moved = timedelta(days=2, minutes=1)
    assert leases.actions(order) == ["warn 24h"]
    leases.clock.moved += timedelta(hours=23, minutes=1)
    assert leases.actions(order) == ["warn 1h"]
    leases.clock.moved += timedelta(minutes=62)


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
    orderkit: Command, platform: Platform, order: str, leases: Leases
) -> None:
    at = f"{leases.expires(order):%Y-%m-%dT%H:%M:%SZ}"
    leases.delivered(order)
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
    orderkit: Command, platform: Platform, order: str, leases: Leases
) -> None:
    at = leases.expires(order)
    leases.delivered(order)
    path = entry_of(order).application_path
    file = platform.forge.read(platform.ledger, path, "main")
    assert file is not None
    platform.forge.write(
        platform.ledger,
        [FileChange(path, None, file.sha)],
        Operation(f"lost-{order}", "user:default/mallory", "lost"),
    )

    assert orderkit("repair", order).code == 0

    assert leases.expires(order) == at


def test_what_is_adopted_has_no_expiry_until_somebody_gives_it_one(
    orderkit: Command, platform: Platform, order: str, leases: Leases
) -> None:
    leases.delivered(order)
    entry = entry_of(order)
    file = platform.forge.read(platform.ledger, entry.application_path, "main")
    assert file is not None
    platform.forge.write(
        platform.ledger,
        [FileChange(entry.application_path, None, file.sha)],
        Operation(f"lost-{order}", "user:default/mallory", "lost"),
    )

    adopted = orderkit("adopt", str(entry.repository))

    assert adopted.code == 0, adopted.err
    assert orderkit("lease", order, "--json").json["expires"] is None


def test_the_list_sorts_by_expiry(orderkit: Command, order: str, leases: Leases) -> None:
    leases.delivered(order)
    orders = orderkit("list", "--sort", "expires", "--json").json["orders"]

    times = [one["expires"] or "~" for one in orders]
    assert time_text(leases.expires(order)) in times
    assert times == sorted(times)
    assert orderkit("list", "--sort", "expiry").code == 2
