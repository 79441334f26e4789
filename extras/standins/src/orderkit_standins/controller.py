"""
A small controller runtime: watch kinds, turn events into keys, reconcile each key until quiet.

What it guarantees: a key is reconciled at least once after each event that maps to it; never by two
workers at once; again after an exception, with growing delay; again after the delay a reconcile
asks for. A key whose reconcile is long (hundreds of children) is paced: its events are gathered for
a multiple of that time. It is level-based: events only say *which* key to look at, and every
(re)start lists everything. It works on any ``ports.cluster.Cluster``.

What it does not do: leader election, rate limits over all keys, reads from a cache (the embedded
cluster reads from memory anyway).
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ground.errors import OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig
from orderkit.ports.cluster import Cluster, ExpiredError, NoSuchKindError, WatchStop

Reconcile = Callable[[ObjectKey], float | None]
"""Bring one key to its wanted state; return seconds until the next look, or None."""
ToKeys = Callable[[Manifest], Iterable[ObjectKey]]
"""Say which keys an object that changed (or vanished) concerns."""
IsSame = Callable[[Manifest, Manifest], bool]
"""Say of an object before and after a change that those keys do not care."""

logger = logging.getLogger(__name__)

_WATCH_SLICE_S = 20.0
"""How long one watch call lasts; a stop ends it at once."""
_LONG_S, _PACE_LONGEST_S = 0.01, 3.0
"""Processor time from which a reconcile is slow, and how long its events are batched at most."""
_KIND_RETRY_S = 0.2
"""How often to ask for a kind that is not served yet."""


def own_key(manifest: Manifest) -> Iterable[ObjectKey]:
    """Map an object to itself."""
    return (ObjectKey.of(manifest),)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays after failures in a row: first, doubled each time, capped."""

    first_s: float = 0.05
    longest_s: float = 30.0

    def delay_s(self, failures: int) -> float:
        return min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, 30))


@dataclass(slots=True)
class _Queue:
    """Keys with due times; a key is handed out once at a time."""

    _condition: threading.Condition = field(default_factory=threading.Condition)
    _heap: list[tuple[float, int, ObjectKey]] = field(default_factory=list)
    _due: dict[ObjectKey, float] = field(default_factory=dict)
    _running: set[ObjectKey] = field(default_factory=set)
    _sequence: itertools.count[int] = field(default_factory=itertools.count)
    _closed: bool = False

    def add(self, key: ObjectKey, after_s: float = 0.0) -> None:
        """Make `key` due after `after_s`, or earlier if it already is."""
        due = time.monotonic() + after_s
        with self._condition:
            if due >= self._due.get(key, float("inf")):
                return
            self._due[key] = due
            # a running key is queued by `done`: never two workers at once
            if key not in self._running:
                heapq.heappush(self._heap, (due, next(self._sequence), key))
                self._condition.notify()

    def take(self) -> ObjectKey | None:
        """Wait for a due key and mark it running; None once closed."""
        with self._condition:
            while not self._closed:
                wait_s = self._wait_s()
                if wait_s == 0.0:
                    key = heapq.heappop(self._heap)[2]
                    del self._due[key]
                    self._running.add(key)
                    return key
                self._condition.wait(wait_s)
            return None

    def _wait_s(self) -> float | None:
        """Seconds until the first valid entry is due; drops entries that were overtaken."""
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) != due or key in self._running:
                heapq.heappop(self._heap)
                continue
            return max(0.0, due - time.monotonic())
        return None

    def done(self, key: ObjectKey) -> None:
        """Release `key`; if it became due meanwhile, it is handed out again."""
        with self._condition:
            self._running.discard(key)
            if key in self._due:
                heapq.heappush(self._heap, (self._due[key], next(self._sequence), key))
                self._condition.notify()

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()


class Controller:
    """One reconcile function, fed by watches and by calls of `enqueue`."""

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        reconcile: Reconcile,
        *,
        workers: int = 2,
        backoff: Backoff | None = None,
        pace: int = 2,
    ) -> None:
        """
        Make a controller that does nothing yet.

        Args:
            pace: For how many times the duration of a long reconcile the key's events are gathered.
        """
        self._name, self._cluster, self._reconcile = name, cluster, reconcile
        self._pace_factor = pace
        self._backoff = backoff or Backoff()
        self._queue = _Queue()
        self._failures: dict[ObjectKey, int] = {}
        self._paces_s: dict[ObjectKey, float] = {}
        self._stopping = WatchStop()
        self._lock = threading.Lock()
        self._mappings: dict[Kind, dict[ToKeys, IsSame | None]] = {}
        self._known: dict[Kind, dict[str, Manifest]] = {}
        self._watchers: dict[Kind, threading.Thread] = {}
        self._workers = [
            threading.Thread(target=self._work, name=f"{name}-{n}", daemon=True)
            for n in range(workers)
        ]
        self._started = False

    def watch(
        self, kind: Kind, to_keys: ToKeys = own_key, *, is_same: IsSame | None = None
    ) -> None:
        """Feed the keys that objects of `kind` map to. Idempotent; may be called while running."""
        with self._lock:
            mappings = self._mappings.setdefault(kind, {})
            if to_keys in mappings:
                return
            self._mappings[kind] = {**mappings, to_keys: is_same}
            if kind not in self._watchers:
                self._watchers[kind] = self._thread(kind)
                if self._started:
                    self._watchers[kind].start()
                return
            if not self._started:
                return  # its watcher lists at start; a real server may not serve the kind yet
        self._relist(kind)

    def _thread(self, kind: Kind) -> threading.Thread:
        return threading.Thread(
            target=self._watch_forever, args=(kind,), name=f"{self._name}-watch-{kind}", daemon=True
        )

    def known(self, kind: Kind) -> list[Manifest]:
        """Return the objects of a kind as its watch last showed them; they may not be changed."""
        return list(self._known.get(kind, {}).values())

    def enqueue(self, key: ObjectKey) -> None:
        """Look at `key` soon."""
        self._queue.add(key, 0.0)

    def start(self) -> None:
        """Start watchers and workers; returns at once."""
        with self._lock:
            self._started = True
            threads = [*self._watchers.values(), *self._workers]
        for thread in threads:
            thread.start()

    def stop(self) -> None:
        """Stop after the reconciles that are running; waits for all threads."""
        self._stopping.set()
        self._queue.close()
        with self._lock:
            threads = [*self._watchers.values(), *self._workers]
        for thread in threads:
            if thread.is_alive():
                thread.join(timeout=10)

    def _work(self) -> None:
        while (key := self._queue.take()) is not None:
            begin_s = time.thread_time()
            try:
                again_s = self._reconcile(key)
            except Exception as error:  # noqa: BLE001 - a worker must outlive every failure
                self._failed(key, error)
            else:
                self._failures.pop(key, None)
                if again_s is not None:
                    self._queue.add(key, again_s)
            finally:
                self._pace(key, time.thread_time() - begin_s)
                self._queue.done(key)

    def _pace(self, key: ObjectKey, took_s: float) -> None:
        if took_s > _LONG_S:
            self._paces_s[key] = min(_PACE_LONGEST_S, self._pace_factor * took_s)
        else:
            self._paces_s.pop(key, None)

    def _failed(self, key: ObjectKey, error: Exception) -> None:
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        expected = isinstance(error, OrderkitError)
        logger.log(
            logging.INFO if expected else logging.ERROR,
            "%s: %s failed %d times: %s",
            self._name,
            key,
            failures,
            error,
            exc_info=None if expected else error,
        )
        if not self._stopping.is_set():
            self._queue.add(key, self._backoff.delay_s(failures))

    def _watch_forever(self, kind: Kind) -> None:
        """List, then watch from there, for ever; list again when the position is lost."""
        since = ""
        while not self._stopping.is_set():
            try:
                since = since or self._relist(kind)
                since = self._watch_once(kind, since)
            except NoSuchKindError:
                since = ""
                self._stopping.wait(_KIND_RETRY_S)
            except ExpiredError:
                since = ""
            except Exception as error:  # noqa: BLE001 - a watch must outlive every failure
                if not self._stopping.is_set():
                    logger.info("%s: watch of %s ended: %s", self._name, kind, error)
                since = ""
                self._stopping.wait(_KIND_RETRY_S)

    def _relist(self, kind: Kind) -> str:
        """Feed everything that is there, and everything that vanished since the last look."""
        listed_objects = self._cluster.list(kind)
        by_uid = {_uid(manifest): manifest for manifest in listed_objects.items}
        vanished = [
            lost_object
            for uid, lost_object in self._known.get(kind, {}).items()
            if uid not in by_uid
        ]
        self._known[kind] = by_uid
        for manifest in (*listed_objects.items, *vanished):
            self._feed(kind, manifest)
        return listed_objects.resource_version

    def _watch_once(self, kind: Kind, since: str) -> str:
        events = self._cluster.watch(
            kind, since=since, timeout_s=_WATCH_SLICE_S, stop=self._stopping
        )
        for event in events:
            since = dig(event.object, "metadata", "resourceVersion", default=since)
            if event.type == "DELETED":
                self._known[kind].pop(_uid(event.object), None)
                self._feed(kind, event.object)
            elif event.type != "BOOKMARK":
                before = self._known[kind].get(_uid(event.object))
                self._known[kind][_uid(event.object)] = event.object
                self._feed(kind, event.object, before)
            if self._stopping.is_set():
                break
        return since

    def _feed(self, kind: Kind, manifest: Manifest, before: Manifest | None = None) -> None:
        for to_keys, is_same in self._mappings[kind].items():
            if before is not None and is_same is not None and is_same(before, manifest):
                continue
            for key in to_keys(manifest):
                self._queue.add(key, self._paces_s.get(key, 0.0))


def side_by_side(calls: Iterable[Callable[[], None]]) -> None:
    """Run all calls at once and wait for them."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _uid(manifest: Manifest) -> str:
    return str(dig(manifest, "metadata", "uid", default=""))
