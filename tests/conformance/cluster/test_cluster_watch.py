"""Cluster contract: watches are ordered, complete, resumable and end in time."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from ground.errors import UnreachableError
from ground.objects.kube_objects import CONFIG_MAP, ObjectKey, dig
from orderkit.ports.cluster import Cluster, ExpiredError, WatchEvent, WatchStop

if TYPE_CHECKING:
    from tests.conformance.cluster.conftest import World

HOLD = "suite.orderkit.dev/hold"


def told(events: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["name"]) for event in events]


def version(event: WatchEvent) -> int:
    return int(event.object["metadata"]["resourceVersion"])


def test_a_watch_tells_what_happened_in_order(cluster: Cluster, world: World) -> None:
    since = world.version(world.CAR)
    created = cluster.create(world.car("a"), owner="me")
    cluster.create(world.car("b"), owner="me")
    patched = cluster.patch(ObjectKey.of(created), {"spec": {"size": "large"}}, owner="me")
    cluster.delete(ObjectKey.of(created))

    events = world.seen(world.CAR, since, 4)
    assert told(events) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [version(event) for event in events] == sorted({version(event) for event in events})
    assert events[0].object == created
    assert events[2].object == patched


def test_a_deleted_event_carries_the_last_state(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car("a", spec={"size": "large"}), owner="me")
    since = world.version(world.CAR)
    cluster.delete(ObjectKey.of(created))

    (event,) = world.seen(world.CAR, since, 1)
    assert event.object["spec"]["size"] == "large"
    assert event.object["metadata"]["uid"] == created["metadata"]["uid"]
    assert version(event) > int(created["metadata"]["resourceVersion"])


def test_a_held_object_is_modified_before_it_is_deleted(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car("a", finalizers=[HOLD]), owner="me")
    since = world.version(world.CAR)
    cluster.delete(ObjectKey.of(created))
    cluster.patch(ObjectKey.of(created), {"metadata": {"finalizers": None}}, owner="me")

    events = world.seen(world.CAR, since, 2)
    assert told(events) == [("MODIFIED", "a"), ("DELETED", "a")]
    assert dig(events[0].object, "metadata", "deletionTimestamp")


def test_a_watch_starts_after_the_list_it_follows(cluster: Cluster, world: World) -> None:
    cluster.create(world.car("before"), owner="me")
    since = world.version(world.CAR)
    cluster.create(world.car("after"), owner="me")

    assert told(world.seen(world.CAR, since, 1)) == [("ADDED", "after")]


def test_a_watch_resumes_from_any_event(cluster: Cluster, world: World) -> None:
    since = world.version(world.CAR)
    for name in ("a", "b", "c"):
        cluster.create(world.car(name), owner="me")
    first, *rest = world.seen(world.CAR, since, 3)

    assert world.seen(world.CAR, str(version(first)), 2) == rest


def test_a_watch_keeps_to_its_namespace(cluster: Cluster, world: World) -> None:
    other = world.new_namespace()
    since = world.version(world.CAR)
    elsewhere = world.car("elsewhere")
    elsewhere["metadata"]["namespace"] = other
    cluster.create(elsewhere, owner="me")
    cluster.create(world.car("here"), owner="me")

    assert told(world.seen(world.CAR, since, 1)) == [("ADDED", "here")]


def test_a_watch_without_namespace_sees_all_of_them(cluster: Cluster, world: World) -> None:
    other = world.new_namespace()
    since = cluster.list(world.CAR).resource_version
    for namespace in (other, world.namespace):
        car = world.car("same")
        car["metadata"]["namespace"] = namespace
        cluster.create(car, owner="me")

    seen = set()
    for event in cluster.watch(world.CAR, since=since, timeout_s=20):
        seen.add(event.object["metadata"].get("namespace"))
        if {other, world.namespace} <= seen:
            break
    assert {other, world.namespace} <= seen


def test_a_watch_keeps_to_its_kind(cluster: Cluster, world: World) -> None:
    since = world.version(CONFIG_MAP)
    cluster.create(world.car("a"), owner="me")
    cluster.create(world.config_map("b"), owner="me")

    events = world.seen(CONFIG_MAP, since, 1)
    assert [e for e in told(events) if e[1] != "kube-root-ca.crt"] in ([("ADDED", "b")], [])
    assert {event.object["kind"] for event in events} == {"ConfigMap"}


def test_an_open_watch_sees_what_happens_meanwhile(cluster: Cluster, world: World) -> None:
    since = world.version(world.CAR)
    found: list[WatchEvent] = []
    thread = threading.Thread(target=lambda: found.extend(world.seen(world.CAR, since, 2)))
    thread.start()
    time.sleep(0.2)  # lets the watch open first; the result is the same if it does not
    created = cluster.create(world.car("a"), owner="me")
    cluster.delete(ObjectKey.of(created))
    thread.join()  # `seen` has a deadline

    assert told(found) == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watch_ends_when_its_time_is_over(cluster: Cluster, world: World) -> None:
    since = world.version(world.CAR)
    started = time.monotonic()
    stream = cluster.watch(world.CAR, namespace=world.namespace, since=since, timeout_s=0.5)

    assert [event for event in stream if event.type != "BOOKMARK"] == []
    assert 0.4 < time.monotonic() - started < 60


def test_an_abandoned_watch_harms_nobody(cluster: Cluster, world: World) -> None:
    since = world.version(world.CAR)
    for name in ("a", "b"):
        cluster.create(world.car(name), owner="me")
    for event in cluster.watch(world.CAR, namespace=world.namespace, since=since, timeout_s=20):
        assert event.object["metadata"]["name"] == "a"
        break

    assert told(world.seen(world.CAR, since, 2)) == [("ADDED", "a"), ("ADDED", "b")]


def test_writes_without_effect_are_no_events(cluster: Cluster, world: World) -> None:
    since = world.version(world.CAR)
    car = world.car("a")
    for _ in range(3):
        cluster.apply(car, owner="me")
    cluster.create(world.car("b"), owner="me")

    assert told(world.seen(world.CAR, since, 2)) == [("ADDED", "a"), ("ADDED", "b")]


def test_a_version_that_is_too_old_is_told(cluster: Cluster, world: World) -> None:
    if world.implementation.forget_history is None:
        pytest.skip("only where a test can make history old")
    since = world.version(world.CAR)
    cluster.create(world.car("a"), owner="me")
    world.implementation.forget_history()

    with pytest.raises(ExpiredError):
        list(cluster.watch(world.CAR, namespace=world.namespace, since=since, timeout_s=5))
    assert cluster.list(world.CAR, namespace=world.namespace).items


def test_a_stop_ends_an_open_watch_at_once(cluster: Cluster, world: World) -> None:
    since, stop = world.version(world.CAR), WatchStop()
    cluster.create(world.car("a"), owner="me")
    begun, ended = threading.Event(), threading.Event()

    def watch() -> None:
        with suppress(UnreachableError):
            for _ in cluster.watch(
                world.CAR, namespace=world.namespace, since=since, timeout_s=3600, stop=stop
            ):
                begun.set()
        ended.set()

    thread = threading.Thread(target=watch)
    thread.start()
    assert begun.wait(60)
    stop.set()

    assert ended.wait(60)
    thread.join()


def test_a_stop_that_is_set_ends_a_watch_that_is_opened_later(
    cluster: Cluster, world: World
) -> None:
    since, stop = world.version(world.CAR), WatchStop()
    stop.set()

    with suppress(UnreachableError):
        stream = cluster.watch(
            world.CAR, namespace=world.namespace, since=since, timeout_s=3600, stop=stop
        )
        assert [event for event in stream if event.type != "BOOKMARK"] == []


def test_pages_are_what_a_list_is(cluster: Cluster, world: World) -> None:
    for name in ("a", "b", "c"):
        cluster.create(world.car(name), owner="me")
    listed = cluster.list(world.CAR, namespace=world.namespace)
    pages = list(cluster.list_pages(world.CAR, namespace=world.namespace))

    assert [item for page in pages for item in page.items] == list(listed.items)
    assert len({page.resource_version for page in pages}) == 1
