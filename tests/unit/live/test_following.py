"""A kind is followed through refusals, expiry, broken watches and objects of any shape."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ground.errors import AccessError, UnreachableError
from ground.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey
from orderkit.flows.live.following import KindFollower, Receiver
from orderkit.ports.cluster import ExpiredError, NoSuchKindError, ObjectList, WatchEvent


def config(name: str, version: str = "1") -> Manifest:
    meta = {"name": name, "namespace": "x", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def key(name: str) -> ObjectKey:
    return ObjectKey(CONFIG_MAP, name, "x")


class Played:
    """A cluster that lists and watches as a scene says; then it says nothing more."""

    def __init__(self, *scenes: Any) -> None:
        self._scenes = iter(scenes)
        self.asked: queue.Queue[str] = queue.Queue()
        self._silence = threading.Event()

    def _next(self, what: str, stop: Any = None) -> Any:
        self.asked.put(what)
        scene = next(self._scenes, None)
        if scene is None:
            if stop is not None:
                stop.wait(20)
            return ()
        if isinstance(scene, Exception):
            raise scene
        return scene

    def list_pages(self, _kind: Any, *, namespace: str | None) -> Iterator[ObjectList]:
        assert namespace == "x"
        names = self._next("list")
        yield ObjectList(tuple(config(name) for name in names), "7")

    def watch(self, _kind: Any, *, since: str, stop: Any, **_: Any) -> Iterator[WatchEvent]:
        for event, manifest in self._next(f"watch {since}", stop):
            yield WatchEvent(event, manifest)


class Held:
    """What a receiver holds; an object named ``bad`` has a shape that it cannot read."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.states = 0

    def put(self, manifest: Manifest) -> None:
        name = manifest["metadata"]["name"]
        if name == "bad":
            raise ValueError("no shape")
        self.names.add(name)

    def remove(self, gone: ObjectKey) -> None:
        self.names.discard(gone.name)

    def known(self) -> set[ObjectKey]:
        return {key(name) for name in self.names}

    def note(self) -> None:
        self.states += 1


@contextmanager
def followed(cluster: Played, held: Held, *asked: str) -> Iterator[KindFollower]:
    """Follow until the cluster was asked all of this."""
    receiver = Receiver(held.put, held.remove, held.known)
    played: Any = cluster
    follower = KindFollower(played, CONFIG_MAP, receiver, namespace="x", on_state=held.note)
    follower.start()
    found = [cluster.asked.get(timeout=20) for _ in asked]
    yield follower
    follower.stop()
    follower.join(20)
    assert found == list(asked)


def test_what_is_listed_and_watched_is_held() -> None:
    held = Held()
    events = [
        ("ADDED", config("b", "8")),
        ("BOOKMARK", config("mark", "9")),
        ("DELETED", config("a", "10")),
    ]
    with followed(Played(["a"], events), held, "list", "watch 7", "watch 10") as follower:
        assert (held.names, follower.is_complete, follower.refusal) == ({"b"}, True, "")
        assert (follower.restarts, follower.age_s, held.states) == (0, 0.0, 1)


def test_one_object_of_a_strange_shape_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    held = Held()
    with (
        caplog.at_level(logging.ERROR),
        followed(Played(["bad", "a"], []), held, "list", "watch 7", "watch 7"),
    ):
        assert held.names == {"a"}
    assert "has a shape that cannot be read" in caplog.text


@pytest.mark.parametrize(
    ("error", "again", "logged"),
    [
        (UnreachableError("no answer"), "watch 7", "cannot be followed now: no answer"),
        (ExpiredError("too old"), "list", ""),
        (ZeroDivisionError(), "list", "a bug while following"),
    ],
    ids=["no answer", "too old", "a bug"],
)
def test_a_watch_that_breaks_is_resumed_or_begun_anew(
    error: Exception, again: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    held = Held()
    rest = ("watch 7",) if again == "list" else ()
    scenes = [["a"], error, ["b"]] if rest else [["a"], error]
    with (
        caplog.at_level(logging.WARNING),
        followed(Played(*scenes), held, "list", "watch 7", again, *rest) as follower,
    ):
        assert held.names == ({"b"} if rest else {"a"})
        assert (follower.restarts, follower.is_complete) == (1, True)
    assert logged in caplog.text
    assert bool(caplog.text) is bool(logged)


@pytest.mark.parametrize(
    ("error", "refusal"),
    [(AccessError("you may not"), "you may not"), (NoSuchKindError("no such kind"), "")],
    ids=["refused", "not served"],
)
def test_a_kind_that_may_not_be_read_or_is_not_served_is_left_out(
    error: Exception, refusal: str, caplog: pytest.LogCaptureFixture
) -> None:
    held, noted = Held(), threading.Event()
    held.names = {"a"}
    receiver = Receiver(held.put, held.remove, held.known)
    played: Any = Played(error)
    follower = KindFollower(played, CONFIG_MAP, receiver, namespace="x", on_state=noted.set)
    with caplog.at_level(logging.WARNING):
        follower.start()
        assert noted.wait(20)
        follower.stop()
        follower.join(20)

    assert (follower.is_complete, follower.refusal, held.names) == (True, refusal, set())
    assert (follower.restarts, follower.age_s) == (0, 0.0)
    assert bool(caplog.text) is bool(refusal)
