"""The controller runtime on a real embedded cluster."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ground.errors import OrderkitError
from ground.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.controller import Backoff, Controller, Reconcile

DEADLINE_S = 60.0


def config_map(name: str, value: str = "0") -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"value": value},
    }


def key(name: str) -> ObjectKey:
    return ObjectKey(CONFIG_MAP, name, "default")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path / "cluster.sqlite")
    yield found
    found.close()


@pytest.fixture
def run(cluster: EmbeddedCluster) -> Iterator[Callable[[Reconcile], Controller]]:
    """Start controllers over ConfigMaps; stop them afterwards."""
    started: list[Controller] = []

    def start(reconcile: Reconcile) -> Controller:
        backoff = Backoff(first_s=0.01, longest_s=0.05)
        controller = Controller("test", cluster, reconcile, workers=4, backoff=backoff)
        controller.watch(CONFIG_MAP)
        controller.start()
        started.append(controller)
        return controller

    yield start
    for controller in started:
        controller.stop()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.005)


Run = Callable[[Reconcile], Controller]


def test_what_is_there_at_the_start_is_looked_at(cluster: EmbeddedCluster, run: Run) -> None:
    cluster.create(config_map("old"), owner="test")
    seen: list[ObjectKey] = []

    run(seen.append)

    eventually(lambda: key("old") in seen)


def test_creation_change_and_deletion_are_each_looked_at(
    cluster: EmbeddedCluster, run: Run
) -> None:
    seen: Counter[ObjectKey] = Counter()

    def count(found: ObjectKey) -> None:
        seen[found] += 1

    run(count)
    for step in (
        lambda: cluster.create(config_map("a"), owner="test"),
        lambda: cluster.apply(config_map("a", "1"), owner="test"),
        lambda: cluster.delete(key("a")),
    ):
        before = seen[key("a")]
        step()
        eventually(lambda before=before: seen[key("a")] > before)  # type: ignore[misc]  # bound now


def test_one_key_is_never_reconciled_twice_at_once(run: Run) -> None:
    active: Counter[ObjectKey] = Counter()
    overlaps, runs = [], Counter[ObjectKey]()
    lock = threading.Lock()

    def slow(found: ObjectKey) -> None:
        with lock:
            active[found] += 1
            runs[found] += 1
            if active[found] > 1:
                overlaps.append(found)
        time.sleep(0.01)
        with lock:
            active[found] -= 1

    controller = run(slow)
    for _ in range(50):
        controller.enqueue(key("a"))
        controller.enqueue(key("b"))
        time.sleep(0.002)

    eventually(lambda: runs[key("a")] > 2 and runs[key("b")] > 2)
    assert overlaps == []


def test_a_failing_key_is_tried_again_until_it_succeeds(run: Run) -> None:
    tries: list[float] = []

    def third_time_lucky(_: ObjectKey) -> None:
        tries.append(time.monotonic())
        if len(tries) < 3:
            raise OrderkitError("not yet")

    run(third_time_lucky).enqueue(key("a"))

    eventually(lambda: len(tries) == 3)
    time.sleep(0.1)
    assert len(tries) == 3


def test_a_failing_key_does_not_hold_up_others(run: Run) -> None:
    seen: list[ObjectKey] = []

    def picky(found: ObjectKey) -> None:
        if found == key("bad"):
            raise OrderkitError("never")
        seen.append(found)

    controller = run(picky)
    controller.enqueue(key("bad"))
    controller.enqueue(key("good"))

    eventually(lambda: key("good") in seen)


def test_a_reconcile_can_ask_to_be_called_again(run: Run) -> None:
    seen: list[ObjectKey] = []

    def twice(found: ObjectKey) -> float | None:
        seen.append(found)
        return 0.01 if len(seen) < 2 else None

    run(twice).enqueue(key("a"))

    eventually(lambda: len(seen) == 2)


def test_events_of_a_long_reconcile_are_gathered(cluster: EmbeddedCluster, run: Run) -> None:
    """Twice as long as it takes: however slow the machine is, that bounds how often it runs."""
    runs: list[str] = []
    long_s = 0.05

    def long(found: ObjectKey) -> None:
        live = cluster.get(found) or {}
        begun_s = time.thread_time()
        while time.thread_time() - begun_s < long_s:
            pass  # what counts is the processor time that it takes
        runs.append(live.get("data", {}).get("value", ""))

    cluster.create(config_map("a"), owner="test")
    run(long)
    eventually(lambda: bool(runs))
    begin_s, value = time.monotonic(), 0
    while time.monotonic() - begin_s < 20 * long_s:
        value += 1
        cluster.apply(config_map("a", str(value)), owner="test")

    eventually(lambda: str(value) in runs)
    assert len(runs) < 5 + (time.monotonic() - begin_s) / (2 * long_s)


def test_changes_that_a_mapping_ignores_are_not_seen_but_a_deletion_is(
    cluster: EmbeddedCluster,
) -> None:
    seen: list[str] = []

    def note(manifest: Manifest) -> list[ObjectKey]:
        seen.append(f"{manifest['metadata']['name']}={manifest['data']['value']}")
        return []

    controller = Controller("ignoring", cluster, lambda _: None)
    controller.watch(CONFIG_MAP, note, is_same=lambda a, b: a["data"] == b["data"])
    cluster.create(config_map("a"), owner="test")
    controller.start()
    try:
        eventually(lambda: seen == ["a=0"])
        labelled = config_map("a")
        labelled["metadata"]["labels"] = {"x": "y"}
        cluster.apply(labelled, owner="test")
        cluster.apply(config_map("a", "1"), owner="test")
        eventually(lambda: len(seen) > 1)
        cluster.delete(key("a"))
        eventually(lambda: len(seen) > 2)
    finally:
        controller.stop()
    assert seen == ["a=0", "a=1", "a=1"]


@pytest.mark.parametrize(
    ("failures", "delay_s"), [(1, 0.05), (2, 0.1), (3, 0.2), (10, 25.6), (11, 30.0), (99, 30.0)]
)
def test_delays_double_up_to_their_cap(failures: int, delay_s: float) -> None:
    assert Backoff().delay_s(failures) == pytest.approx(delay_s)
