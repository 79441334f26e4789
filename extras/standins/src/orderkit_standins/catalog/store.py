"""
The catalog's tables: locations, and the entities read from them. SQLite, durable.

One connection behind a lock; every write is its own transaction and is on disk when the call
returns.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

from ground.errors import RefusedError
from ground.objects.kube_objects import Manifest
from orderkit.adapters.backstage import entity_ref
from orderkit.ports.catalog import Location

VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS locations (id TEXT PRIMARY KEY, target TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS entities (
    ref TEXT PRIMARY KEY,
    uid TEXT UNIQUE NOT NULL,
    location TEXT NOT NULL REFERENCES locations (id) ON DELETE CASCADE,
    data TEXT NOT NULL
);
"""


class CatalogStore:
    """Locations and entities in one file."""

    def __init__(self, path: Path) -> None:
        """
        Open or create the file.

        Raises:
            RefusedError: A newer version of Orderkit wrote it.
        """
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(path)
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, path: Path) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise RefusedError(
                f"{path}: format {version} is newer than this Orderkit knows ({VERSION})",
                hint="use the newer Orderkit, or another state folder",
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.executescript(_TABLES)
        self._db.execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def locations(self) -> list[Location]:
        rows = self._all("SELECT id, target FROM locations ORDER BY target")
        return [Location(id_, target) for id_, target in rows]

    def add_location(self, target: str) -> tuple[Location, bool]:
        """Return the location of a target, and whether it is new."""
        with self._lock:
            added = self._db.execute(
                "INSERT INTO locations (id, target) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (str(uuid.uuid4()), target),
            ).rowcount
            (id_,) = self._db.execute(
                "SELECT id FROM locations WHERE target = ?", (target,)
            ).fetchone()
        return Location(id_, target), added == 1

    def remove_location(self, id_: str) -> bool:
        """Remove a location and its entities. False if there was none."""
        with self._lock:
            deleted_rows = self._db.execute("DELETE FROM locations WHERE id = ?", (id_,)).rowcount
        return deleted_rows == 1

    def put_entities(self, location: Location, entities: Sequence[Manifest]) -> list[str]:
        """
        Make these the location's entities, all at once; return the refused references.

        An entity that another location registered first is refused. If the location was removed
        in the meantime, nothing is stored.
        """
        refs = [entity_ref(entity) for entity in entities]
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            location_row = self._db.execute("SELECT 1 FROM locations WHERE id = ?", (location.id,))
            if location_row.fetchone() is None:
                return []
            marks = ", ".join("?" * len(refs))
            self._db.execute(
                f"DELETE FROM entities WHERE location = ? AND ref NOT IN ({marks})",  # noqa: S608 - only question marks are put in
                (location.id, *refs),
            )
            return [
                ref
                for ref, entity in zip(refs, entities, strict=True)
                if not self._put_entity(ref, location.id, entity)
            ]

    def _put_entity(self, ref: str, location_id: str, entity: Manifest) -> bool:
        row = self._db.execute(
            "SELECT location, uid FROM entities WHERE ref = ?", (ref,)
        ).fetchone()
        if row is not None and row[0] != location_id:
            return False
        uid = row[1] if row else str(uuid.uuid4())
        stored = {**entity, "metadata": {**entity["metadata"], "uid": uid}}
        self._db.execute(
            "INSERT INTO entities (ref, uid, location, data) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (ref) DO UPDATE SET data = excluded.data",
            (ref, uid, location_id, json.dumps(stored)),
        )
        return True

    def entities(self) -> list[Manifest]:
        return [json.loads(data) for (data,) in self._all("SELECT data FROM entities ORDER BY ref")]

    def entity(self, ref: str) -> Manifest | None:
        rows = self._all("SELECT data FROM entities WHERE ref = ?", ref.lower())
        return json.loads(rows[0][0]) if rows else None

    def remove_entity(self, uid: str) -> bool:
        """Remove one entity. It returns at the next read if its location still has it."""
        with self._lock:
            deleted_rows = self._db.execute("DELETE FROM entities WHERE uid = ?", (uid,)).rowcount
        return deleted_rows == 1

    def _all(self, query: str, *arguments: str) -> list[tuple[str, ...]]:
        with self._lock:
            return self._db.execute(query, arguments).fetchall()
