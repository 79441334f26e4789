"""
Rows of the live model: their JSON, changes, costs, when they are due, and the model's state.

A `LiveRow` has its JSON made once for all who read it.

`ChangeLog` numbers the changes of rows, for those who follow them: the last few thousand. A
position names the last change that somebody knows, ``<epoch>-<number>``. The epoch is another one
after each start, so that a position of another process is not mistaken for one of this.

`RowCosts` composes what orders cost in one thread, again only after a change. The cost of an order
follows from its XR's values and the published pack, so a change of a status or of a part computes
nothing. Until the cost is known, the row has none.

`DueRows` says when rows are made again without a change: an error of a part has lasted too long to
pass.

`ModelState` says how far the live model can be relied on, with its figures. `ReadyTimes` says how
long orders take from being ordered to their first Ready, as this process sees it. An order that is
Ready when it is seen first was so before: it says nothing. `ReadyTimes` is not thread-safe.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from msgspec.structs import asdict

from ground.errors import OrderkitError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest, ObjectKey, metadata
from ground.shapes import ObjectReference
from orderkit.core.campaign.record import CampaignFigures
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_view import ListedOrder, OrderRow, PartState
from orderkit.core.order.part_failures import seconds_until
from orderkit.flows.composing.on_demand import cost_of
from orderkit.flows.platform import Platform


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


BOUNDS_S = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Durations:
    """Durations as a histogram has them."""

    within: Mapping[float, int] = field(default_factory=dict)
    """By bound in seconds: how many took at most so long."""
    count: int = 0
    sum_s: float = 0.0


class ReadyTimes:
    """The durations since the process started."""

    def __init__(self) -> None:
        """Know no order yet."""
        self._ready: set[str] = set()
        self._within: Counter[float] = Counter()
        self._count, self._sum_s = 0, 0.0

    def note(self, order: str, former: OrderRow | None, row: OrderRow | None) -> None:
        """Take a row that changed; None: there was none, or it is gone."""
        if row is None:
            self._ready.discard(order)
        elif row.phase == "Ready" and order not in self._ready:
            self._ready.add(order)
            took_s = _seconds(row.created, row.since) if former is not None else None
            if took_s is not None:
                self._count += 1
                self._sum_s += took_s
                self._within.update(bound for bound in BOUNDS_S if took_s <= bound)

    def durations(self) -> Durations:
        """Return all of them."""
        return Durations(dict(self._within), self._count, self._sum_s)


def _seconds(begin: str, end: str) -> float | None:
    try:
        took = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    except ValueError:  # the cluster does not say it
        return None
    return max(0.0, took.total_seconds())


@dataclass(frozen=True, slots=True)
class ModelState:
    """How far the model can be relied on."""

    is_complete: bool
    """Everything was read once."""
    age_s: float
    """For how long rows may be out of date; 0 while every watch is open."""
    orders: int
    restarts: int
    """How many watches broke or expired."""
    waits_for: str
    """What is not read yet, or cannot be; empty if complete."""
    left_out: Mapping[str, str]
    """Kinds of composed objects that may not be read, and why."""
    ledger_commit: str
    """The ledger that rows are from; empty: none was read."""
    rows_due: int = 0
    """Rows that wait to be made again."""
    to_ready: Durations = Durations()
    """How long orders took to their first Ready."""
    campaigns: CampaignFigures = field(default_factory=CampaignFigures)


class DueRows:
    """By order, when its row is due. For one thread: that of rows."""

    def __init__(self) -> None:
        self._due_s: dict[str, float] = {}

    def note(self, order: str, parts: Sequence[PartState], now: datetime) -> None:
        """Have an order's row made again when the first error of a part is too old to pass."""
        begin = [seconds_until(part.fails_from, now) for part in parts if part.fails_from]
        waits_s = min((wait_s for wait_s in begin if wait_s > 0), default=None)
        if waits_s is None:
            self.forget(order)
        else:
            self._due_s[order] = time.monotonic() + waits_s

    def forget(self, order: str) -> None:
        """The order has no row, or none of its parts fails."""
        self._due_s.pop(order, None)

    def wait_s(self) -> float:
        """Return in how many seconds the next row is due; infinity if none is."""
        return min(self._due_s.values(), default=float("inf")) - time.monotonic()

    def taken(self) -> list[str]:
        """Return the orders whose rows are due, once."""
        now_s = time.monotonic()
        orders = [order for order, due_s in self._due_s.items() if due_s <= now_s]
        for order in orders:
            del self._due_s[order]
        return orders


logger = logging.getLogger(__name__)
_RETRY_S = 5.0


class RowCosts:
    """The costs of rows, and the thread that computes new ones. Thread-safe."""

    def __init__(self, platform: Platform, on_known: Callable[[str], None]) -> None:
        """
        Take who is called with an order's id once its cost is known.

        Args:
            platform: Whose pack composes and prices the orders.
            on_known: Has the row made again.
        """
        self._platform, self._on_known = platform, on_known
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._known: dict[str, tuple[int, OrderCost | None]] = {}
        """By order: a hash of what the cost was computed from, and the cost."""
        self._waiting: dict[str, int] = {}
        self._thread = InheritingThreads(1, thread_name_prefix="live costs")

    def stop(self) -> None:
        """Compute nothing more, and wait for the order that is being computed."""
        self._closed.set()
        self._thread.shutdown(cancel_futures=True)

    def forget(self, order: str) -> None:
        """Drop what is known of an order that is gone."""
        with self._lock:
            self._known.pop(order, None)
            self._waiting.pop(order, None)

    def of(self, order: str, xr: Manifest | None, pack: CommitSha | None) -> OrderCost | None:
        """Return what an order costs; None if that is not known yet, or there are no prices."""
        if xr is None or pack is None:
            return None
        state = hash((pack, metadata(xr).get("name"), json.dumps(xr.get("spec"), sort_keys=True)))
        with self._lock:
            known_state, cost = self._known.get(order, (None, None))
            if known_state == state:
                return cost
            if self._waiting.get(order) != state and not self._closed.is_set():
                self._waiting[order] = state
                self._thread.submit(self._compute, order, state, xr)
        return None

    def _compute(self, order: str, state: int, xr: Manifest) -> None:
        while not self._closed.is_set():
            with self._lock:
                if self._waiting.get(order) != state:
                    return  # it changed or ended meanwhile
            try:
                cost = cost_of(self._platform, xr)
            except OrderkitError as error:
                logger.warning("what %s costs cannot be computed now: %s", order, error)
                if error.retryable:
                    self._closed.wait(_RETRY_S)
                    continue
                cost = OrderCost("", None, unknown=(str(error),))
            except Exception:  # whatever somebody pushed: others have costs, too
                logger.exception("a bug while computing what %s costs", order)
                cost = OrderCost("", None, unknown=("this is a bug in Orderkit",))
            with self._lock:
                if self._waiting.get(order) != state:
                    return
                self._known[order] = (state, cost)
                del self._waiting[order]
            if cost is not None:
                self._on_known(order)
            return
