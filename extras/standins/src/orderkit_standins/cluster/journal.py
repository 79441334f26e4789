"""
The cluster on disk: current objects, a bounded history of changes, one version counter.

SQLite in WAL mode with ``synchronous=NORMAL``: one transaction per change, so every
acknowledged change survives ``kill -9``. A power failure or kernel crash may lose the newest
changes but leaves the file consistent. The file is locked while open: a second process is refused.
Called only by ``store``, which holds its lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from ground.errors import RefusedError
from ground.objects.kube_objects import Manifest
from orderkit_standins.cluster.documents import decode, encode

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
        self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            raise RefusedError(
                f"{path.name}: {error}",
                hint="another process has this state folder open: stop it, or choose another one",
            ) from error
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
