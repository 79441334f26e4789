"""
What the forge knows besides git, in SQLite.

One connection guarded by a lock (statements take microseconds), WAL mode, so an acknowledged write
survives kill -9. It knows nothing of folders, HTTP or permissions.

The tables are made by steps from one release's state to the next: ``migrations/*.sql``. A step is
never changed after it was released: a state folder remembers how many it has taken (``PRAGMA
user_version``) and takes the others when it is opened. Tables of features that are gone (labels,
merges that wait, merge settings) stay there, unused.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ground.errors import OrderkitError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_STEPS = (files("orderkit_standins.forge") / "migrations").iterdir()
MIGRATIONS = tuple(
    step.read_text(encoding="utf-8")
    for step in sorted(_STEPS, key=lambda step: int(step.name.partition("_")[0]))
)


SCHEMA_VERSION = len(MIGRATIONS)
_INSERT = "INSERT INTO {} ({}) VALUES ({})"
_UPDATE = "UPDATE {} SET {} WHERE {} = ?"
_KEYS = {"pulls": "issue_id"}
"""Tables whose key is not called ``id``."""
_Value = TypeVar("_Value", bound="DataclassInstance")


def timestamp() -> str:
    """Return the present time as rows keep it and the API shows it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def fine_timestamp() -> str:
    """Return the present time to the millisecond: for what is compared with what came before."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def load(kind: type[_Value], row: sqlite3.Row, **extra: Any) -> _Value:
    """
    Make a value from the columns that have the names of its fields; 0 and 1 become booleans.

    Args:
        kind: The class of the value.
        row: The row.
        extra: Fields that are not columns.
    """
    columns = {
        name: bool(row[name]) if is_flag else row[name]
        for name, is_flag in _columns(kind)
        if name not in extra
    }
    return kind(**columns, **extra)


@cache
def _columns(kind: type[DataclassInstance]) -> tuple[tuple[str, bool], ...]:
    return tuple((field.name, field.type == "bool") for field in fields(kind))


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
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            self._db.executescript(f"BEGIN;{script}PRAGMA user_version={number};COMMIT;")

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """Run one statement and return its rows."""
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def row(self, sql: str, *values: object) -> sqlite3.Row | None:
        """Run one statement and return its first row, or None."""
        rows = self.rows(sql, *values)
        return rows[0] if rows else None

    def insert(self, table: str, **values: object) -> int:
        """
        Add a row and return its id; columns that are not named get their defaults.

        Raises:
            sqlite3.IntegrityError: A unique value exists already.
        """
        sql = _INSERT.format(table, ", ".join(values), ", ".join("?" * len(values)))
        with self._lock:
            return int(self._db.execute(sql, tuple(values.values())).lastrowid or 0)

    def update(self, table: str, row_id: int, **values: object) -> None:
        """Change the named columns of a row; those that are None stay as they are."""
        changed = {name: value for name, value in values.items() if value is not None}
        if changed:
            columns = ", ".join(f"{name} = ?" for name in changed)
            self.change(
                _UPDATE.format(table, columns, _KEYS.get(table, "id")), *changed.values(), row_id
            )

    def change(self, sql: str, *values: object) -> int:
        """Run one UPDATE or DELETE and return how many rows it touched."""
        with self._lock:
            return self._db.execute(sql, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """
        All statements inside happen or none does; other threads wait.

        Inside another transaction it is a part of that one.
        """
        with self._lock:
            if self._db.in_transaction:
                yield
                return
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
