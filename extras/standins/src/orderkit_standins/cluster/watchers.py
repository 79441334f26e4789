"""
Deliver each change to all watchers of its kind.

A watcher has its own queue and is woken by a condition (threads) or a callback (the event loop of
the HTTP side); nothing polls. A watcher that falls behind is closed with 410, so that its queue
cannot grow without limit. The store publishes while it holds its write lock, so order is exact.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from orderkit_standins.cluster.journal import JournalEntry

BACKLOG_LIMIT = 20_000
"""Number of changes that a watcher may be behind before it is closed."""


class Watcher:
    """A queue of changes of one kind (or of all), in order."""

    def __init__(self, namespace: str | None, on_ready: Callable[[], None] | None = None) -> None:
        self._namespace = namespace
        self._on_ready = on_ready
        self._queue: deque[JournalEntry] = deque()
        self._condition = threading.Condition()
        self._closed = False
        self._overrun = False

    @property
    def closed(self) -> bool:
        """Whether no more changes will arrive."""
        return self._closed

    @property
    def overrun(self) -> bool:
        """Whether changes were lost because the reader was too slow."""
        return self._overrun

    def push(self, changes: Iterable[JournalEntry]) -> None:
        """Queue the changes that are of interest and wake the reader."""
        relevant = [
            change
            for change in changes
            if self._namespace is None or change.store_key.namespace == self._namespace
        ]
        if not relevant:
            return
        with self._condition:
            if len(self._queue) + len(relevant) > BACKLOG_LIMIT:
                self._overrun = self._closed = True
            if not self._closed:
                self._queue.extend(relevant)
            self._condition.notify_all()
        if self._on_ready is not None:
            self._on_ready()

    def take(self, timeout_s: float = 0.0) -> list[JournalEntry]:
        """Return what is queued, waiting up to `timeout_s` for the first change."""
        deadline = time.monotonic() + timeout_s
        with self._condition:
            while not self._queue and not self._closed:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                self._condition.wait(left_s)
            changes = list(self._queue)
            self._queue.clear()
            return changes

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._on_ready is not None:
            self._on_ready()


class Hub:
    """All watchers, found by group and kind. Callers hold the store's lock."""

    def __init__(self) -> None:
        self._watchers: dict[tuple[str, str] | None, list[Watcher]] = {}

    def add(self, kind: tuple[str, str] | None, watcher: Watcher) -> None:
        """Feed `watcher` from now on; kind None means every kind."""
        self._watchers.setdefault(kind, []).append(watcher)

    def remove(self, kind: tuple[str, str] | None, watcher: Watcher) -> None:
        """Stop feeding `watcher`. Idempotent."""
        watchers = self._watchers.get(kind, [])
        if watcher in watchers:
            watchers.remove(watcher)

    def publish(self, change: JournalEntry) -> None:
        for kind in ((change.store_key.group, change.store_key.kind), None):
            for watcher in tuple(self._watchers.get(kind, ())):
                watcher.push((change,))

    def close_all(self) -> None:
        """End every watch."""
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.close()
        self._watchers.clear()
