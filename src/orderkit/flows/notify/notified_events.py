"""
What one channel was told of each order, kept in ConfigMaps of the cluster.

``orderkit-notified-<channel>`` says since when the channel is used and what was given up;
sixteen more, ``…-0`` to ``…-f``, have a line for each order. Writes are compare-and-swap: a leader
that was replaced meanwhile cannot take back what its successor noted. A ConfigMap stays below the
cluster's limit: lines of orders that are gone leave first.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ground.errors import ConflictError
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Manifest, ObjectKey
from orderkit.core.notify.order_event import NOTHING, Notified, OrderEvent
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import in_rounds
from orderkit.ports.cluster import Cluster, NoSuchNamespaceError

OWNER = "orderkit-notifications"
NAME = "orderkit-notified-"
LABEL = "orderkit.dev/notified"
REPORTS_KEPT = 20
_SHARDS = "0123456789abcdef"
_BYTES_MAX = 900_000
"""Of the lines of one ConfigMap; the cluster's limit is 1 MiB."""
_BEGAN, _REPORTS = "began", "givenUp"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GivenUp:
    """An event that was not delivered for a day."""

    order: str
    kind: str
    when: str
    reason: str


class NotifiedEvents:
    """The memory of one channel. Thread-safe; only `load` and `flush` contact the cluster."""

    def __init__(self, platform: Platform, namespace: str, channel: str) -> None:
        self._platform, self._namespace, self.channel = platform, namespace, channel
        self._lock = threading.Lock()
        self._notified: dict[str, dict[str, Notified]] = {}
        self._changed: set[str] = set()
        self._reports: list[GivenUp] = []
        self.began = ""
        """When the channel was first used, RFC 3339 in UTC."""

    def load(self, *, begin: bool = True) -> None:
        """
        Read what was told; with `begin`, write down since when a new channel is used.

        Raises:
            OrderkitError: The cluster cannot be asked, or refuses.
        """
        head = self._platform.cluster.get(self._key(""))
        began = "" if head else self._now()
        if head is None and begin:
            try:
                self._create("", {_BEGAN: began})
            except ConflictError:  # another replica began it at the same moment
                head = self._platform.cluster.get(self._key(""))
        data = _data(head) if head else {_BEGAN: began}
        notified: dict[str, dict[str, Notified]] = {}
        for shard in _SHARDS:
            manifest = self._platform.cluster.get(self._key(shard))
            for order, line in _data(manifest).items():
                notified[order] = _parsed(line)
        with self._lock:
            self.began = data.get(_BEGAN, "")
            self._reports = list(_reports(data))
            self._notified, self._changed = notified, set()

    def _now(self) -> str:
        """Return the time by the clock of what is told, else an event soon after is lost."""
        now = self._platform.other_clock() or self._platform.clock.now()
        return now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def of(self, order: str) -> Mapping[str, Notified]:
        """Return the last told event of each topic of an order."""
        with self._lock:
            return self._notified.get(order, NOTHING)

    def orders(self) -> set[str]:
        """Return the orders that the channel was told of."""
        with self._lock:
            return set(self._notified)

    def note(self, event: OrderEvent) -> None:
        """Remember that the channel was told; `flush` writes it down."""
        notified = Notified(event.number, event.kind, event.subject)
        with self._lock:
            self._notified[event.order] = {
                **self._notified.get(event.order, {}),
                event.topic: notified,
            }
            self._changed.add(event.order)

    def forget(self, order: str) -> None:
        """Drop what was told of an order that is gone."""
        with self._lock:
            if self._notified.pop(order, None) is not None:
                self._changed.add(order)

    def report(self, given_up: GivenUp) -> None:
        """
        Write down that an event is not tried any more, for ``orderkit doctor``.

        Raises:
            OrderkitError: The cluster cannot be asked, or refuses.
        """
        with self._lock:
            self._reports = [*self._reports, given_up][-REPORTS_KEPT:]
            lines = [[r.order, r.kind, r.when, r.reason] for r in self._reports]
            began = self.began
        self._swap("", lambda data: {_BEGAN: began, **data, _REPORTS: json.dumps(lines)})

    def flush(self) -> None:
        """
        Write down what changed.

        Raises:
            OrderkitError: The cluster cannot be asked, or refuses; what is not written stays due.
        """
        with self._lock:
            changed = {shard: set[str]() for shard in _SHARDS}
            for order in self._changed:
                changed[_shard(order)].add(order)
        for shard, orders in changed.items():
            if orders:
                self._swap(shard, partial(self._merged, orders))
                with self._lock:
                    self._changed -= orders

    def _merged(self, orders: set[str], data: Mapping[str, str]) -> dict[str, str]:
        """Return lines with ours; of two about a topic the later one counts."""
        lines = dict(data)
        with self._lock:
            for order in orders:
                ours = self._notified.get(order)
                if ours is None:
                    lines.pop(order, None)
                    continue
                theirs = _parsed(lines.get(order, ""))
                later = {
                    topic: notified
                    for topic, notified in theirs.items()
                    if topic not in ours or notified.number > ours[topic].number
                }
                self._notified[order] = {**ours, **later}
                lines[order] = _line(self._notified[order])
        while sum(map(len, lines)) + sum(map(len, lines.values())) > _BYTES_MAX:
            order = next(iter(lines))
            logger.warning("%s: more is told than fits: %s is forgotten", self.channel, order)
            del lines[order]
        return lines

    def _swap(self, shard: str, change: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
        """Raises ConflictError if others write all the time."""

        def attempt() -> None:
            manifest = self._platform.cluster.get(self._key(shard))
            if manifest is None:
                self._create(shard, change({}))
                return
            data = change(_data(manifest))
            if data != _data(manifest):
                self._platform.cluster.replace({**manifest, "data": data}, owner=OWNER)

        in_rounds(attempt)

    def _create(self, shard: str, data: dict[str, str]) -> None:
        key = self._key(shard)
        manifest: Manifest = {
            "apiVersion": CONFIG_MAP.api_version,
            "kind": CONFIG_MAP.kind,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": {LABEL: "lines" if shard else "channel"},
            },
            "data": data,
        }
        try:
            self._platform.cluster.create(manifest, owner=OWNER)
        except NoSuchNamespaceError:
            ensure_namespace(self._platform.cluster, self._namespace)
            self._platform.cluster.create(manifest, owner=OWNER)

    def _key(self, shard: str) -> ObjectKey:
        suffix = f"-{shard}" if shard else ""
        return ObjectKey(CONFIG_MAP, f"{NAME}{self.channel}{suffix}", self._namespace)


def ensure_namespace(cluster: Cluster, name: str) -> None:
    """
    Make sure that a namespace exists. Idempotent.

    Raises:
        OrderkitError: The cluster cannot be asked, or refuses.
    """
    key = ObjectKey(NAMESPACE, name)
    if cluster.get(key) is not None:
        return
    manifest = {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.kind,
        "metadata": {"name": name},
    }
    with suppress(ConflictError):  # another process made it at the same moment
        cluster.create(manifest, owner=OWNER)


def given_up(cluster: Cluster, namespace: str) -> dict[str, tuple[GivenUp, ...]]:
    """
    Return by channel what was given up.

    Raises:
        OrderkitError: The cluster cannot be asked, or refuses.
    """
    listed = cluster.list(CONFIG_MAP, namespace=namespace, labels={LABEL: "channel"})
    return {
        str(manifest["metadata"]["name"]).removeprefix(NAME): _reports(_data(manifest))
        for manifest in listed.items
    }


def _shard(order: str) -> str:
    return hashlib.sha256(order.encode()).hexdigest()[0]


def _data(manifest: Manifest | None) -> dict[str, str]:
    data = (manifest or {}).get("data")
    return data if isinstance(data, dict) else {}


def _line(notified: Mapping[str, Notified]) -> str:
    return json.dumps(
        {topic: [t.number, t.kind, t.subject] for topic, t in sorted(notified.items())}
    )


def _parsed(line: str) -> dict[str, Notified]:
    """Read a line; what somebody else wrote there counts as nothing told."""
    try:
        content = json.loads(line or "{}")
        return {
            str(topic): Notified(int(number), str(kind), str(subject))
            for topic, (number, kind, subject) in content.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _reports(data: Mapping[str, str]) -> tuple[GivenUp, ...]:
    try:
        return tuple(GivenUp(*map(str, entry)) for entry in json.loads(data.get(_REPORTS, "[]")))
    except (ValueError, TypeError, RecursionError):
        return ()
