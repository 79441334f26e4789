"""
One row of the live model, with its JSON made once for all who read it.

The changes of rows, numbered, for those who follow them: the last few thousand.

A position names the last change that somebody knows, ``<epoch>-<number>``. The epoch is another one
after each start, so that a position of another process is not mistaken for one of this.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import asdict

from ground.objects.kube_objects import ObjectKey
from ground.shapes import ObjectReference
from orderkit.core.order.order_view import ListedOrder, OrderRow


@dataclass(frozen=True, slots=True)
class LiveRow:
    """A row and its JSON."""

    row: OrderRow
    data: bytes
    """What ``GET /v1/orders`` and ``GET /v1/stream`` send of it."""

    @classmethod
    def of(cls, row: OrderRow, xr: ObjectKey | None, *, is_ready: bool) -> LiveRow:
        """Make a row with the fields that ``orderkit list --json`` has, too."""
        listed = ListedOrder(
            **asdict(row),
            ready=is_ready,
            advice=row.remedy,
            xr=ObjectReference.to(xr) if xr else None,
        )
        return cls(row, json.dumps(listed.to_json(), separators=(",", ":")).encode())


CHANGES_KEPT = 5_000
_POSITION = re.compile(r"([0-9a-f]{1,32})-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change: the row as it is now, or was before its order ended."""

    number: int
    row: LiveRow
    is_gone: bool = False


class ChangeLog:
    """Thread-safe. Whoever subscribed is called, in whatever thread, after changes were added."""

    def __init__(self, *, size: int = CHANGES_KEPT) -> None:
        self._epoch = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._changes: deque[RowChange] = deque(maxlen=size)
        self._last = 0
        self._subscribers: list[Callable[[], None]] = []

    @property
    def last(self) -> int:
        """The number of the newest change."""
        return self._last

    def position(self, number: int | None = None) -> str:
        """Return the position of a change, of the newest by default."""
        return f"{self._epoch}-{self._last if number is None else number}"

    def number(self, position: str) -> int | None:
        """Return the number that a position means; None if it is not one of this log."""
        match = _POSITION.fullmatch(position)
        if match is None or match[1] != self._epoch or int(match[2]) > self._last:
            return None
        return int(match[2])

    def add(self, changes: Iterable[tuple[LiveRow, bool]]) -> None:
        """Append changes: a row, and whether its order is gone."""
        with self._lock:
            for row, is_gone in changes:
                self._last += 1
                self._changes.append(RowChange(self._last, row, is_gone))
            subscribers = tuple(self._subscribers)
        for subscriber in subscribers:
            subscriber()

    def after(self, number: int) -> tuple[RowChange, ...] | None:
        """Return the changes after a number; None if some of them are not kept any more."""
        with self._lock:
            if number >= self._last:
                return ()
            first = self._last - len(self._changes) + 1
            if number + 1 < first:
                return None
            return tuple(islice(self._changes, number + 1 - first, None))

    def subscribe(self, subscriber: Callable[[], None]) -> Callable[[], None]:
        """Have a function called after each addition; return what ends that."""
        with self._lock:
            self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers.remove(subscriber)

        return unsubscribe
