"""
What an independent watch of the API sees: every change of some kinds, in the server's own order.

It knows nothing of who delivers. Versions are the server's revisions, one count for all kinds, so
that a creation here and a deletion there have an order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ground.errors import OrderkitError
from ground.objects.kube_objects import Kind, Manifest, metadata
from orderkit.ports.cluster import Cluster, ExpiredError, NoSuchKindError

_SLICE_S = 1.0
_CATCH_UP_S = 90.0
_LOOK_S = 0.02
Belongs = Callable[[Manifest], bool]


@dataclass(frozen=True, slots=True)
class Event:
    """One change; of a deletion `manifest` is the last known state."""

    version: int
    gone: bool
    manifest: Manifest

    @property
    def uid(self) -> str:
        return str(metadata(self.manifest).get("uid"))


@dataclass(slots=True)
class EventLog:
    """Watches kinds of a cluster until it is stopped. The client should be its own."""

    cluster: Cluster
    kinds: Sequence[Kind]
    _events: list[Event] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin to watch from now on; every kind must be served."""
        for kind in self.kinds:
            since = self.cluster.list(kind).resource_version
            thread = threading.Thread(target=self._follow, args=(kind, since), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop watching; returns when the watches have ended."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=10)

    def version(self) -> int:
        """Return the newest version of the cluster: later changes have greater ones."""
        return int(self.cluster.list(self.kinds[0], namespace="nobody").resource_version)

    def of(self, belongs: Belongs) -> list[Event]:
        """
        Return all events that belong to somebody, up to now, in the server's order.

        Waits until the watches have seen what a list shows.
        """
        deadline = time.monotonic() + _CATCH_UP_S
        while not self._is_current(belongs):
            assert time.monotonic() < deadline, "the watch does not catch up"
            time.sleep(_LOOK_S)
        return self._seen(belongs)

    def _seen(self, belongs: Belongs) -> list[Event]:
        with self._lock:
            found = [event for event in self._events if belongs(event.manifest)]
        return sorted(found, key=lambda event: event.version)

    def _is_current(self, belongs: Belongs) -> bool:
        latest = {event.uid: event for event in self._seen(belongs)}
        known = {uid: event.version for uid, event in latest.items() if not event.gone}
        return known == {str(metadata(one).get("uid")): _version(one) for one in self._now(belongs)}

    def _now(self, belongs: Belongs) -> Iterator[Manifest]:
        for kind in self.kinds:
            yield from filter(belongs, self.cluster.list(kind).items)

    def _follow(self, kind: Kind, since: str) -> None:
        while not self._stopping.is_set():
            with suppress(NoSuchKindError):
                since = self._watch(kind, since)

    def _watch(self, kind: Kind, since: str) -> str:
        try:
            for event in self.cluster.watch(kind, since=since, timeout_s=_SLICE_S):
                since = str(_version(event.object))
                if event.type != "BOOKMARK":
                    self._note(Event(int(since), event.type == "DELETED", event.object))
                if self._stopping.is_set():
                    break
        except ExpiredError as error:
            raise AssertionError("the watch fell behind: its log has a hole") from error
        except OrderkitError as error:
            if not (error.retryable or self._stopping.is_set()):
                raise
            self._stopping.wait(_LOOK_S)  # a CRD's storage is made anew: the version still counts
        return since

    def _note(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)


def _version(manifest: Manifest) -> int:
    return int(metadata(manifest)["resourceVersion"])


def per_object(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Group events by the object they are about, each group in order."""
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.uid, []).append(event)
    return found
