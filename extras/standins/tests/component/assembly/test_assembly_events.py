"""Events of the assembly: one object per statement, gone after an hour."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ground.objects.kube_objects import EVENT, Manifest
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.crossplane.reconciler_context import EventRecorder

ABOUT: Manifest = {
    "apiVersion": "lab.example.org/v1",
    "kind": "App",
    "metadata": {"name": "demo", "uid": "u-1"},
}


class HandClock:
    """A clock that a test sets forward."""

    def __init__(self) -> None:
        self.passed = timedelta()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + self.passed

    def monotonic_s(self) -> float:
        return self.passed.total_seconds()

    def sleep(self, seconds: float) -> None:
        self.passed += timedelta(seconds=seconds)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    made = EmbeddedCluster(tmp_path / "cluster.sqlite")
    yield made
    made.close()


def say(cluster: EmbeddedCluster, clock: HandClock, *messages: str) -> None:
    """One life of a recorder: everything is written when it has stopped."""
    recorder = EventRecorder(cluster, clock)
    recorder.start()
    for message in messages:
        recorder.warning(ABOUT, "ComposeResources", message)
    recorder.stop()


def counts(cluster: EmbeddedCluster) -> dict[str, int]:
    return {event["message"]: event["count"] for event in cluster.list(EVENT).items}


def test_a_statement_is_one_object_in_the_default_namespace(cluster: EmbeddedCluster) -> None:
    say(cluster, HandClock(), "one", "two", "one")

    assert counts(cluster).keys() == {"one", "two"}
    event = cluster.list(EVENT).items[0]
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"] == {
        "apiVersion": "lab.example.org/v1",
        "kind": "App",
        "name": "demo",
        "uid": "u-1",
    }


def test_a_later_process_counts_on(cluster: EmbeddedCluster) -> None:
    clock = HandClock()
    say(cluster, clock, "one")
    clock.sleep(30)
    say(cluster, clock, "one")

    assert counts(cluster) == {"one": 2}
    assert cluster.list(EVENT).items[0]["lastTimestamp"] == "2026-01-01T00:00:30Z"


def test_events_are_removed_an_hour_after_they_were_last_said(cluster: EmbeddedCluster) -> None:
    clock = HandClock()
    say(cluster, clock, "old", "repeated")
    clock.sleep(3000)
    say(cluster, clock, "repeated")
    clock.sleep(1000)

    EventRecorder(cluster, clock).sweep()

    assert counts(cluster) == {"repeated": 2}


def test_an_event_that_cannot_be_written_does_not_stop_the_next(cluster: EmbeddedCluster) -> None:
    recorder = EventRecorder(cluster, HandClock())
    recorder.start()
    homeless = {**ABOUT, "metadata": {**ABOUT["metadata"], "namespace": "nowhere"}}
    recorder.normal(homeless, "Lost", "never seen")
    recorder.normal(ABOUT, "Found", "seen")
    recorder.stop()

    assert counts(cluster) == {"seen": 1}
