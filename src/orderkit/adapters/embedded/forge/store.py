"""
What the forge knows besides git: accounts, tokens, members and repositories, in SQLite.

One connection guarded by a lock (statements take microseconds), WAL mode, so an
acknowledged write survives kill -9. It knows nothing of folders, HTTP or permissions.

Called by ``accounts`` and ``registry``.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orderkit.core.errors import OrderkitError

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE accounts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  lower_name TEXT NOT NULL UNIQUE,
  is_org INTEGER NOT NULL,
  admin INTEGER NOT NULL DEFAULT 0,
  password TEXT NOT NULL DEFAULT '',
  email TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL DEFAULT '',
  visibility TEXT NOT NULL DEFAULT 'public'
);
CREATE TABLE tokens (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE,
  last_eight TEXT NOT NULL,
  scopes TEXT NOT NULL,
  UNIQUE (account_id, name)
);
CREATE TABLE owners (
  org_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  PRIMARY KEY (org_id, account_id)
);
CREATE TABLE repositories (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  lower_name TEXT NOT NULL,
  state TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  private INTEGER NOT NULL DEFAULT 0,
  archived INTEGER NOT NULL DEFAULT 0,
  default_branch TEXT NOT NULL DEFAULT 'main',
  topics TEXT NOT NULL DEFAULT '',
  created TEXT NOT NULL,
  updated TEXT NOT NULL,
  UNIQUE (owner_id, lower_name)
);
"""


class NewerStateError(OrderkitError):
    """A later release wrote this state."""


class Store:
    """The SQLite file of the forge."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        try:
            self._prepare(path)
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, path: Path) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA foreign_keys=ON")
        version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            raise NewerStateError(
                f"{path.name} has schema {version}, this release knows {SCHEMA_VERSION}",
                hint="use the newer orderkit, or another state folder",
            )
        if version == 0:
            self._db.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version={SCHEMA_VERSION};COMMIT;")

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """Run one statement and return its rows."""
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def row(self, sql: str, *values: object) -> sqlite3.Row | None:
        """Run one statement and return its first row, or None."""
        found = self.rows(sql, *values)
        return found[0] if found else None

    def insert(self, sql: str, *values: object) -> int:
        """
        Run one INSERT and return the new row's id.

        Raises:
            sqlite3.IntegrityError: A unique value exists already.
        """
        with self._lock:
            return int(self._db.execute(sql, values).lastrowid or 0)

    def change(self, sql: str, *values: object) -> int:
        """Run one UPDATE or DELETE and return how many rows it touched."""
        with self._lock:
            return self._db.execute(sql, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements inside happen or none does; other threads wait."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the file; later calls fail."""
        with self._lock:
            self._db.close()
