"""
All objects in memory, backed by a journal on disk: one lock, one version counter, three indexes.

A change is written to disk first, then to memory, then published to watchers, all under `lock`.
Stored manifests are shared and never changed in place: writers pass a new manifest, and callers
copy before they return one.

The journal has the current objects and a bounded history of changes: SQLite in WAL mode with
``synchronous=NORMAL``, one transaction per change, so every acknowledged change survives
``kill -9``. A power failure or kernel crash may lose the newest changes but leaves the file
consistent. The file is locked while open: a second process is refused.

A watcher has its own queue and is woken by a condition (threads) or a callback (the event loop of
the HTTP side); nothing polls. A watcher that falls behind is closed with 410, so that its queue
cannot grow without limit. The store publishes while it holds its write lock, so order is exact.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from ground.errors import RefusedError
from ground.objects.kube_objects import Manifest, labels_of, metadata
from orderkit_standins.cluster.documents import decode, encode
from orderkit_standins.cluster.refusals import Expired

FORMAT = 1
"""Layout of the file, in ``PRAGMA user_version``. A newer one is refused."""
HISTORY = 20_000
"""Number of changes that a watch can at least go back; older positions get 410."""
_TRIM_EVERY = 1_000

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

_LAYOUT = """
CREATE TABLE objects (
    grp TEXT, kind TEXT, namespace TEXT, name TEXT, data TEXT NOT NULL,
    PRIMARY KEY (grp, kind, namespace, name)
) WITHOUT ROWID;
CREATE TABLE changes (
    version INTEGER PRIMARY KEY, grp TEXT NOT NULL, kind TEXT NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
    data TEXT NOT NULL, old_labels TEXT
);
CREATE TABLE trimmed (version INTEGER NOT NULL);
INSERT INTO trimmed VALUES (0);
"""


class StorageKey(NamedTuple):
    """Where an object is stored: the same for all served versions of its kind."""

    group: str
    kind: str
    namespace: str
    name: str


class JournalEntry(NamedTuple):
    """One entry of the history. `manifest` is shared: readers must not change it."""

    version: int
    type: ChangeType
    store_key: StorageKey
    manifest: Manifest
    old_labels: dict[str, str] | None
    """Labels before the change, for watches that select by label; None for a new object."""


class Journal:
    """The SQLite file of one cluster. Not thread-safe."""

    def __init__(self, path: Path, *, history: int = HISTORY) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._history = history
        self._db = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
        try:
            self._open(path)
        except BaseException:
            self._db.close()
            raise

    def _open(self, path: Path) -> None:
        # a second process is refused while the file is open
        self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            raise RefusedError(
                f"{path.name}: {error}",
                hint="another process has this state folder open: stop it, or choose another one",
            ) from error
        # survives kill -9; a power failure may lose the newest changes, no more
        self._db.execute("PRAGMA synchronous=NORMAL")
        (format_number,) = self._db.execute("PRAGMA user_version").fetchone()
        if format_number > FORMAT:
            raise RefusedError(
                f"{path.name}: written by a newer Orderkit (format {format_number},"
                f" known {FORMAT})",
                hint="use that version, or another state folder",
            )
        if format_number == 0:
            self._db.executescript(f"BEGIN; {_LAYOUT} PRAGMA user_version={FORMAT}; COMMIT;")

    def close(self) -> None:
        self._db.close()

    def version(self) -> int:
        """Return the version of the newest change."""
        newest = self._db.execute("SELECT MAX(version) FROM changes").fetchone()[0]
        return int(newest or self.trimmed())

    def trimmed(self) -> int:
        """Return the version up to which the history was discarded."""
        return int(self._db.execute("SELECT version FROM trimmed").fetchone()[0])

    def objects(self) -> Iterator[tuple[StorageKey, Manifest]]:
        """Yield every object."""
        rows = self._db.execute("SELECT grp, kind, namespace, name, data FROM objects")
        for *key_columns, data in rows:
            yield StorageKey(*key_columns), decode(data)

    def latest_versions(self) -> Iterator[tuple[str, str, int]]:
        """Yield group, kind and the version of the newest change the history holds of it."""
        yield from self._db.execute("SELECT grp, kind, MAX(version) FROM changes GROUP BY 1, 2")

    def write(self, change: JournalEntry) -> None:
        """Store one change durably: the object's row and its entry in the history."""
        data = encode(change.manifest)
        self._db.execute("BEGIN IMMEDIATE")
        try:
            if change.type == "DELETED":
                self._db.execute(
                    "DELETE FROM objects WHERE grp=? AND kind=? AND namespace=? AND name=?",
                    change.store_key,
                )
            else:
                self._db.execute(
                    "INSERT OR REPLACE INTO objects VALUES (?,?,?,?,?)", (*change.store_key, data)
                )
            old = None if change.old_labels is None else encode(change.old_labels)
            self._db.execute(
                "INSERT INTO changes VALUES (?,?,?,?,?,?,?,?)",
                (change.version, *change.store_key, change.type, data, old),
            )
            if change.version % _TRIM_EVERY == 0:
                self._trim(change.version - self._history)
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def _trim(self, upto: int) -> None:
        if upto > 0:
            self._db.execute("DELETE FROM changes WHERE version <= ?", (upto,))
            self._db.execute("UPDATE trimmed SET version = ?", (upto,))

    def changes_after(self, version: int, group: str, kind: str) -> list[JournalEntry]:
        """Return the changes of one kind that are newer than `version`, oldest first."""
        rows = self._db.execute(
            "SELECT version, type, namespace, name, data, old_labels FROM changes "
            "WHERE version > ? AND grp = ? AND kind = ? ORDER BY version",
            (version, group, kind),
        )
        return [
            JournalEntry(
                number,
                type_,
                StorageKey(group, kind, namespace, name),
                decode(data),
                None if old is None else decode(old),
            )
            for number, type_, namespace, name, data, old in rows
        ]


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
            # a watcher that falls behind is closed, so that its queue cannot grow without limit
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


_Table = dict[tuple[str, str], Manifest]


class ObjectStore:
    """Objects by place, by uid, by owner and by namespace."""

    def __init__(self, path: Path, *, history: int = HISTORY) -> None:
        self.lock = threading.RLock()
        """Hold it over every read-decide-write sequence; re-entrant."""
        self._journal = Journal(path, history=history)
        self._hub = Hub()
        self._tables: dict[tuple[str, str], _Table] = {}
        self._by_uid: dict[str, StorageKey] = {}
        self._by_owner: dict[str, set[StorageKey]] = {}
        self._by_namespace: dict[str, set[StorageKey]] = {}
        self._closed = False
        self._version = self._journal.version()
        self._changed_at = {(g, k): version for g, k, version in self._journal.latest_versions()}
        for store_key, manifest in self._journal.objects():
            self._index(store_key, manifest)

    @property
    def version(self) -> int:
        """The version of the newest change."""
        return self._version

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """End all watches and close the file. Idempotent."""
        with self.lock:
            if not self._closed:
                self._closed = True
                self._hub.close_all()
                self._journal.close()

    def get(self, store_key: StorageKey) -> Manifest | None:
        """Return the stored (shared) manifest."""
        return self._tables.get((store_key.group, store_key.kind), {}).get(
            (store_key.namespace, store_key.name)
        )

    def scan(self, group: str, kind: str, namespace: str | None = None) -> list[Manifest]:
        """Return the stored (shared) manifests of a kind, sorted by namespace and name."""
        with self.lock:
            rows = sorted(self._tables.get((group, kind), {}).items(), key=lambda item: item[0])
        return [
            m for (row_namespace, _), m in rows if namespace is None or row_namespace == namespace
        ]

    def places(self) -> list[StorageKey]:
        """Return the places of all objects."""
        with self.lock:
            return list(self._by_uid.values())

    def place_of(self, uid: str) -> StorageKey | None:
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[StorageKey]:
        """Return the objects with `uid` as an owner."""
        with self.lock:
            return sorted(self._by_owner.get(uid, ()))

    def content(self, namespace: str) -> list[StorageKey]:
        """Return what lives in a namespace."""
        with self.lock:
            return sorted(self._by_namespace.get(namespace, ()))

    def commit(self, type_: ChangeType, store_key: StorageKey, manifest: Manifest) -> Manifest:
        """
        Make one change durable and visible; return the manifest with its new version.

        `manifest` becomes the store's own. For DELETED it is the last state.
        """
        with self.lock:
            if self._closed:
                raise RuntimeError("the cluster is closed")
            version = self._version + 1
            manifest["metadata"]["resourceVersion"] = str(version)
            old = self.get(store_key)
            old_labels = None if old is None else labels_of(old)
            change = JournalEntry(version, type_, store_key, manifest, old_labels)
            self._journal.write(change)
            self._version = version
            self._changed_at[store_key.group, store_key.kind] = version
            if old is not None:
                self._unindex(store_key, old)
            if type_ != "DELETED":
                self._index(store_key, manifest)
            self._hub.publish(change)
            return manifest

    def reshape(self, group: str, kind: str, shape: Callable[[Manifest], Manifest]) -> None:
        """
        Convert the objects of a kind in memory with `shape`, without writing them to disk.

        `shape` may not touch the metadata. What is on disk stays until the next write.
        """
        with self.lock:
            table = self._tables.get((group, kind), {})
            for key, manifest in table.items():
                table[key] = shape(manifest)

    def _index(self, store_key: StorageKey, manifest: Manifest) -> None:
        table = self._tables.setdefault((store_key.group, store_key.kind), {})
        table[store_key.namespace, store_key.name] = manifest
        self._by_uid[metadata(manifest)["uid"]] = store_key
        for uid in owner_uids(manifest):
            self._by_owner.setdefault(uid, set()).add(store_key)
        if store_key.namespace:
            self._by_namespace.setdefault(store_key.namespace, set()).add(store_key)

    def _unindex(self, store_key: StorageKey, manifest: Manifest) -> None:
        del self._tables[store_key.group, store_key.kind][store_key.namespace, store_key.name]
        del self._by_uid[metadata(manifest)["uid"]]
        for uid in owner_uids(manifest):
            _discard(self._by_owner, uid, store_key)
        if store_key.namespace:
            _discard(self._by_namespace, store_key.namespace, store_key)

    @contextmanager
    def watching(
        self,
        kind: tuple[str, str] | None,
        *,
        namespace: str | None = None,
        since: int | None = None,
        on_ready: Callable[[], None] | None = None,
    ) -> Iterator[Watcher]:
        """
        Open a watch; `since` None starts with the next change.

        Raises:
            Expired: `since` is older than the history, or from another cluster's future.
        """
        watcher = Watcher(namespace, on_ready)
        with self.lock:
            if self._closed:
                raise RuntimeError("the cluster is closed")
            # under the lock: no change falls between what was missed and what is published next
            if since is not None and kind is not None:
                watcher.push(self._missed(kind, since))
            self._hub.add(kind, watcher)
        try:
            yield watcher
        finally:
            with self.lock:
                self._hub.remove(kind, watcher)

    def _missed(self, kind: tuple[str, str], since: int) -> list[JournalEntry]:
        if since > self._version:
            raise Expired(since, self._version)
        if since >= self._changed_at.get(kind, 0):
            trimmed = self._journal.trimmed() if kind not in self._changed_at else 0
            if since >= trimmed:
                return []
        if since < self._journal.trimmed():
            raise Expired(since, self._journal.trimmed())
        return self._journal.changes_after(since, *kind)


def owner_uids(manifest: Manifest) -> list[str]:
    """Return the uids of all owner references."""
    references = metadata(manifest).get("ownerReferences") or ()
    return [reference["uid"] for reference in references]


def _discard(index: dict[str, set[StorageKey]], key: str, store_key: StorageKey) -> None:
    places = index.get(key)
    if places is not None:
        places.discard(store_key)
        if not places:
            del index[key]
