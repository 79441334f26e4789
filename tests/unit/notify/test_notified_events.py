"""What a channel was told, as the cluster keeps it, and which events the ledger has."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bareplatform import platform_of
from countedforge import CountedForge
from ownforge import OwnForge
from receivers import receiving
from refusedreads import RefusedReads

from ground.errors import ConflictError, NotFoundError
from ground.names import OrderId, TeamName
from ground.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey
from ground.shapes import changed
from orderkit.adapters.notify.notifiers import WebhookNotifier, WebhookTarget
from orderkit.core.notify.order_event import Notified, OrderEvent, row_events
from orderkit.core.order.end_record import EndRecord
from orderkit.core.order.order_view import OrderRow
from orderkit.core.order.team_file import TeamFile
from orderkit.core.platform.notification_settings import (
    Digest,
    NotificationSettings,
    TeamChannel,
    TeamNotifications,
)
from orderkit.flows.notify.channel_worker import ChannelPlan, ChannelWorker
from orderkit.flows.notify.due_events import LedgerNotes, LedgerReader, PastStates, due_events
from orderkit.flows.notify.notified_events import (
    NAME,
    REPORTS_KEPT,
    GivenUp,
    NotifiedEvents,
    ensure_namespace,
    given_up,
)
from orderkit.ports.clock import SystemClock
from orderkit_standins.cluster import EmbeddedCluster

HOME, CHANNEL = "orderkit-test", "chat"
NOW = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)


class Then(SystemClock):
    def now(self) -> datetime:
        return NOW


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path / "cluster.sqlite")
    yield found
    found.close()


def memory(cluster: Any, **parts: Any) -> NotifiedEvents:
    return NotifiedEvents(platform_of(cluster, clock=Then(), **parts), HOME, CHANNEL)


def event(order: str = "garage-a", number: int = 0, **parts: Any) -> OrderEvent:
    fields = {"kind": "ready", "topic": "health", "team": "a", "kit": "garage", "subject": "1"}
    return OrderEvent(order=order, when="", number=number, **{**fields, **parts})


def held(cluster: EmbeddedCluster) -> dict[str, dict[str, str]]:
    """Return what the ConfigMaps have, by the end of their names."""
    found = cluster.list(CONFIG_MAP, namespace=HOME).items
    return {m["metadata"]["name"].removeprefix(NAME + CHANNEL): m["data"] for m in found}


def test_a_channel_begins_once_and_not_for_those_who_only_look(cluster: EmbeddedCluster) -> None:
    looking, using = memory(cluster), memory(cluster, other_clock=lambda: NOW + timedelta(hours=1))

    looking.load(begin=False)
    assert (looking.began, held(cluster)) == ("2026-11-24T08:00:00Z", {})
    using.load()
    looking.load()

    assert (looking.began, using.began) == ("2026-11-24T09:00:00Z",) * 2
    assert held(cluster) == {"": {"began": "2026-11-24T09:00:00Z"}}


class Overtaken:
    """A cluster where another replica makes each object a moment earlier."""

    def __init__(self, cluster: EmbeddedCluster, **differing: Any) -> None:
        self._cluster, self._differing = cluster, differing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def create(self, manifest: Manifest, *, owner: str) -> Manifest:
        self._cluster.create({**manifest, **self._differing}, owner=owner)
        return self._cluster.create(manifest, owner=owner)


def test_of_two_replicas_that_begin_a_channel_the_first_counts(cluster: EmbeddedCluster) -> None:
    ensure_namespace(platform_of(cluster).cluster, HOME)
    late = memory(Overtaken(cluster, data={"began": "2026-11-24T07:59:59Z"}))

    late.load()

    assert late.began == "2026-11-24T07:59:59Z"


def test_a_namespace_that_another_process_made_meanwhile_is_there(cluster: EmbeddedCluster) -> None:
    for _ in range(2):
        ensure_namespace(platform_of(Overtaken(cluster)).cluster, HOME)

    with pytest.raises(ConflictError):
        Overtaken(cluster).create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}, owner="x"
        )


def test_what_was_told_is_written_down_and_read_again(cluster: EmbeddedCluster) -> None:
    writer, reader = memory(cluster), memory(cluster)
    writer.load()
    writer.note(event())
    writer.note(event(topic="lease", kind="lease-warning", number=3))
    writer.note(event("garage-b"))
    writer.flush()
    writer.forget("garage-b")
    writer.forget("garage-unknown")

    reader.load()
    before = reader.orders()
    writer.flush()
    reader.load()

    assert (before, reader.orders()) == ({"garage-a", "garage-b"}, {"garage-a"})
    assert reader.of("garage-a") == {
        "health": Notified(0, "ready", "1"),
        "lease": Notified(3, "lease-warning", "1"),
    }
    assert dict(reader.of("garage-b")) == {}


def test_what_a_successor_noted_later_is_not_taken_back(cluster: EmbeddedCluster) -> None:
    former, successor = memory(cluster), memory(cluster)
    former.load()
    successor.load()
    for number, teller in ((2, successor), (1, former)):
        teller.note(event(number=number))
        teller.note(event(topic="lease" if teller is former else "end", number=number))
        teller.flush()

    numbers = {topic: told.number for topic, told in former.of("garage-a").items()}

    assert numbers == {"health": 2, "lease": 1, "end": 2}
    former.note(event(number=2, kind="failing"))
    former.flush()
    assert former.of("garage-a")["health"].kind == "failing"
    successor.load()
    assert successor.of("garage-a") == former.of("garage-a")


def test_nothing_is_written_where_nothing_changed(cluster: EmbeddedCluster) -> None:
    told = memory(cluster)
    told.load()
    told.note(event())
    told.flush()
    (name,) = set(held(cluster)) - {""}
    key = ObjectKey(CONFIG_MAP, f"{NAME}{CHANNEL}{name}", HOME)
    version = (cluster.get(key) or {})["metadata"]["resourceVersion"]

    told.flush()
    told.note(event())
    told.flush()

    assert (cluster.get(key) or {})["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"health": [1]}', '{"health": ["x", "ready", "1"]}', "[" * 200_000, "7"]
)
def test_a_line_that_somebody_else_wrote_counts_as_nothing_told(
    line: str, cluster: EmbeddedCluster
) -> None:
    told = memory(cluster)
    told.load()
    told.note(event())
    told.flush()
    (name,) = set(held(cluster)) - {""}
    key = ObjectKey(CONFIG_MAP, f"{NAME}{CHANNEL}{name}", HOME)
    manifest = cluster.get(key)
    assert manifest
    cluster.replace({**manifest, "data": {"garage-a": line}}, owner="somebody")

    told.load()

    assert dict(told.of("garage-a")) == {}


def test_the_newest_of_what_was_given_up_is_kept(cluster: EmbeddedCluster) -> None:
    told = memory(cluster)
    told.load()
    reports = [GivenUp(f"garage-{n}", "ready", "", "no answer") for n in range(REPORTS_KEPT + 1)]
    for report in reports:
        told.report(report)

    found = given_up(platform_of(cluster).cluster, HOME)

    assert found == {CHANNEL: tuple(reports[1:])}
    assert held(cluster)[""]["began"] == "2026-11-24T08:00:00Z"
    again = memory(cluster)
    again.load()
    again.report(reports[0])
    assert given_up(platform_of(cluster).cluster, HOME)[CHANNEL] == (*reports[2:], reports[0])


@pytest.mark.parametrize("text", ["{", "7", '[["a"]]', "[7]"])
def test_reports_that_cannot_be_read_are_none(text: str, cluster: EmbeddedCluster) -> None:
    told = memory(cluster)
    told.load()
    key = ObjectKey(CONFIG_MAP, f"{NAME}{CHANNEL}", HOME)
    manifest = cluster.get(key)
    assert manifest
    cluster.replace({**manifest, "data": {"givenUp": text}}, owner="somebody")

    assert given_up(platform_of(cluster).cluster, HOME) == {CHANNEL: ()}


def test_lines_leave_before_a_config_map_is_full(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    told = memory(cluster)
    told.load()
    told.note(event(subject="x" * 500_000))
    told.flush()
    (name,) = set(held(cluster)) - {""}
    key = ObjectKey(CONFIG_MAP, f"{NAME}{CHANNEL}{name}", HOME)
    manifest = cluster.get(key)
    assert manifest
    older = {"garage-0": "x" * 399_900}
    cluster.replace({**manifest, "data": {**older, **manifest["data"]}}, owner="somebody")
    with caplog.at_level(logging.WARNING):
        told.note(event(subject="y" * 500_000, number=1))
        told.flush()
        kept = set(held(cluster)[name])
        told.note(event(subject="y" * 500_100, number=2))
        told.flush()

    assert kept == {"garage-0", "garage-a"}
    assert set(held(cluster)[name]) == {"garage-a"}
    assert "garage-0 is forgotten" in caplog.text


# --- the ledger

TOLD = TeamNotifications(channels={"ci": TeamChannel(url="https://ci.example.com/hook")})


def tombstone(order: str, day: str = "20261123", ended_at: str = "2026-11-23T05:51:24Z") -> str:
    record = EndRecord(
        order=OrderId(order),
        requester="user:default/eve",
        kit="garage",
        repository="archive",
        step="closing",
        started_at=f"{day}T055124Z",
        ended_at=ended_at,
        must_be_gone=(),
    )
    return record.to_yaml()


def read_ledger(forge: OwnForge, files: dict[str, str]) -> LedgerNotes:
    forge.repo(forge.ledger, files)
    return LedgerReader(forge.platform(clock=Then())).read()


def test_the_ledger_is_read_again_only_if_it_moved(forge: OwnForge) -> None:
    team = TeamFile(team=TeamName("a"), notifications=TOLD).to_yaml()
    files = {
        "data/a/team.yaml": team,
        "data/a/garage-a/tombstone-20261123T055124.yaml": tombstone("garage-a"),
        "data/a/garage-a/order.yaml": "{",
        "apps/a/garage-b.yaml": "{",
    }
    forge.repo(forge.ledger, files)
    counted = CountedForge(forge.client_of(), forge.ledger)
    ledger = LedgerReader(forge.platform(forge=counted, clock=Then()))

    first = ledger.read()
    same = ledger.read()
    commit = forge.write(forge.ledger, {"README.md": "it moved"})
    moved = ledger.read()

    assert same is first
    assert (moved.commit, moved.teams, moved.ends) == (commit, first.teams, first.ends)
    assert first.commit != commit
    assert first.teams == {"a": TOLD}
    assert [(end.order, end.team, end.kind) for end in first.ends] == [("garage-a", "a", "ended")]
    assert counted.calls["read"] == 2, "the team's file and the tombstone, once each"


def test_an_end_is_told_for_a_week(forge: OwnForge) -> None:
    days = {"old": "20261117T075959", "just": "20261117T080000", "new": "20261124T000000"}
    files = {f"data/a/{o}/tombstone-{stamp}.yaml": tombstone(o) for o, stamp in days.items()}

    ends = read_ledger(forge, files).ends

    assert {end.order for end in ends} == {"just", "new"}


def test_of_several_ends_of_one_id_the_last_is_told(forge: OwnForge) -> None:
    files = {
        f"data/a/garage-a/tombstone-2026112{day}T055124.yaml": tombstone(
            "garage-a", ended_at=f"2026-11-2{day}T06:00:00Z"
        )
        for day in (3, 1, 2)
    }

    (end,) = read_ledger(forge, files).ends

    assert end.when == "2026-11-23T06:00:00Z"


def test_of_very_many_ends_the_newest_are_told(
    forge: OwnForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orderkit.flows.notify.due_events._ENDS_MAX", 2)
    files = {
        f"data/a/g-{day}/tombstone-2026112{day}T055124.yaml": tombstone(f"g-{day}")
        for day in (3, 1, 2)
    }

    assert [end.order for end in read_ledger(forge, files).ends] == ["g-2", "g-3"]


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("data/a/team.yaml", "{", "no notifications by the file of team a"),
        ("data/a/g/tombstone-20261123T055124.yaml", "{", "a tombstone cannot be read"),
        ("data/a/g/tombstone-20261123T055124.yaml", tombstone("g", ended_at=""), ""),
    ],
)
def test_a_file_that_cannot_be_read_costs_no_other_its_events(
    path: str, text: str, told: str, forge: OwnForge, caplog: pytest.LogCaptureFixture
) -> None:
    other = "data/b/garage-b/tombstone-20261123T055124.yaml"

    with caplog.at_level(logging.WARNING):
        notes = read_ledger(forge, {path: text, other: tombstone("garage-b")})

    assert [end.order for end in notes.ends] == ["garage-b"]
    assert all(team == TeamNotifications() for team in notes.teams.values())
    assert told in caplog.text
    assert bool(caplog.text) is bool(told)


def test_a_platform_without_a_ledger_has_none_to_tell_of(forge: OwnForge) -> None:
    platform = forge.platform(clock=Then())
    with pytest.raises(NotFoundError, match=f"no ledger on {platform.forge.base_url}"):
        LedgerReader(platform).read()


# --- decisions

WAITING = OrderRow("garage-a", "a", "garage", "Waiting", approval="finance")


@pytest.mark.parametrize(
    ("row", "is_decided"),
    [
        (WAITING, False),
        (OrderRow("garage-a", "a", "garage", "Ready", change_approval="by finance"), False),
        (OrderRow("garage-a", "a", "garage", "Written"), True),
    ],
)
@pytest.mark.parametrize("is_seen", [True, False], ids=["seen waiting", "told of it once"])
def test_a_decision_is_told_when_nothing_waits_any_more(
    row: OrderRow, is_decided: object, *, is_seen: bool
) -> None:
    (wanted,) = row_events(WAITING, None)
    told = memory(None)
    told.note(wanted)
    past = PastStates(waiting={"garage-a": (WAITING, wanted)} if is_seen else {})

    due = [e.kind for e in due_events([], told, {"garage-a": row}, past)]

    assert due == ["approval-decided"] * bool(is_decided)


def test_no_decision_is_told_of_an_order_that_never_waited() -> None:
    told, row = memory(None), OrderRow("garage-a", "a", "garage", "Ready")
    told.note(event())
    told.note(replace(event("garage-b"), topic="approval", kind="approval-decided"))

    assert list(due_events([], told, {"garage-a": row, "garage-b": row}, PastStates())) == []


def test_the_lines_of_an_order_are_json(cluster: EmbeddedCluster) -> None:
    told = memory(cluster)
    told.load()
    told.note(event())
    told.flush()

    (line,) = (lines["garage-a"] for name, lines in held(cluster).items() if name)

    assert json.loads(line) == {"health": [0, "ready", "1"]}


class Moved(SystemClock):
    """The machine's clock, moved ahead."""

    ahead_s = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead_s)

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


def test_a_report_that_the_cluster_does_not_take_stops_no_channel(
    cluster: EmbeddedCluster, refused: RefusedReads, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Moved()
    notified = NotifiedEvents(platform_of(refused.of(cluster), clock=clock), HOME, CHANNEL)
    notified.load()
    settings = changed(NotificationSettings(), digest=Digest(within="0s"))
    with receiving() as receiver:
        target = WebhookTarget(receiver.url, "key", "https://o", ("127.0.0.0/8",), 10.0)
        notifier = WebhookNotifier(target)
        plan = ChannelPlan(
            CHANNEL, notifier, notified, settings, for_people=False, address="https://o"
        )
        worker = ChannelWorker(plan, clock, lambda: True, first_pause_s=0.05)
        worker.start()
        receiver.fault = "500"
        worker.offer({"garage-a": [event("garage-a", 1)]})
        awaited(lambda: worker.state().failed >= 1)
        refused.of(cluster, {"ConfigMap"})
        clock.ahead_s = 86_400.0
        awaited(lambda: f"channel {CHANNEL}: not written down: " in caplog.text)
        receiver.fault = ""
        worker.offer({"garage-b": [event("garage-b", 1)]})
        receiver.wait_for(("garage-b", "ready"))
        worker.stop()
        worker.join(10)

    assert worker.state().given_up == 1


def awaited(is_met: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30
    while not is_met():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
