"""
Count the durable writes of this process, and kill its group by SIGKILL before or after one.

A write is a SQLite commit, a git object or reference, a ``git receive-pack``, and every
rename, new folder and removal below one folder. Each has two sides: just before it, and just
after it, when nobody was told yet. Installed by ``zygote`` before the command starts; the
command itself knows nothing of it.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import shutil  # noqa: F401  decides at import whether os has its own rmdir: import it before
import signal
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pygit2

from orderkit_standins.forge import git_read, git_write

Side = Literal["before", "after"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Faults:
    """
    Where to log the writes, below which folder files count, and where to die.

    Writes are numbered within their kind: threads interleave differently in every run, but the
    n-th commit of one database is more or less the same. Number 0 never comes.
    """

    log: str
    root: str
    kind: str = ""
    at: int = 0
    side: Side = "before"


class _Writes:
    """The writes so far: a number for each, and a line in the log."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._log = os.open(faults.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)

    def covers(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self._faults.root)

    @contextmanager
    def around(self, kind: str, what: str = "") -> Iterator[None]:
        fork = multiprocessing.current_process().name
        kind = kind if fork == "MainProcess" else f"{fork}: {kind}"  # each counts for itself
        with self._lock:
            self._counts[kind] += 1
            number = self._counts[kind]
            line = json.dumps({"number": number, "kind": kind, "what": what[:120]})
            os.write(self._log, f"{line}\n".encode())
        self._die_at(kind, number, "before")
        yield
        self._die_at(kind, number, "after")

    def _die_at(self, kind: str, number: int, side: Side) -> None:
        faults = self._faults
        if (kind, number, side) == (faults.kind, faults.at, faults.side):
            os.killpg(0, signal.SIGKILL)  # the platform's forks are this process too


def install(faults: Faults) -> None:
    """Count from now on in this process."""
    writes = _Writes(faults)
    _count_sqlite(writes)
    _count_git(writes)
    _count_pushes(writes)
    _count_files(writes)


_CHANGES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


def _count_sqlite(writes: _Writes) -> None:
    class Connection(sqlite3.Connection):
        name = ""

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            text = sql.lstrip().upper()
            alone = text.startswith(_CHANGES) and not self.in_transaction
            format_mark = text.startswith("PRAGMA USER_VERSION") and "=" in text
            if not (alone or format_mark or text.startswith("COMMIT")):
                return super().execute(sql, *values)
            with writes.around(f"commit {self.name}", sql.strip()):
                return super().execute(sql, *values)

        def executescript(self, sql_script: str) -> sqlite3.Cursor:
            with writes.around(f"commit {self.name}", "script"):
                return super().executescript(sql_script)

        def __exit__(self, *failure: Any) -> Literal[False]:  # noqa: PYI036  passed on
            if not self.in_transaction:
                return super().__exit__(*failure)
            with writes.around(f"commit {self.name}", "with"):
                return super().__exit__(*failure)

    connect = sqlite3.connect

    def counting(path: Any, *arguments: Any, **options: Any) -> sqlite3.Connection:
        found: sqlite3.Connection = connect(path, *arguments, factory=Connection, **options)
        if isinstance(found, Connection):
            found.name = Path(path).name
        return found

    sqlite3.connect = counting  # type: ignore[assignment]  # same call, one keyword fixed


def _count_git(writes: _Writes) -> None:
    _wrap(pygit2.Repository, "create_blob", writes, "git object")
    _wrap(pygit2.Repository, "create_commit", writes, "git object")
    _wrap(pygit2.Index, "write_tree", writes, "git object")
    _wrap(pygit2, "init_repository", writes, "git init")
    _wrap(git_write, "_move", writes, "git ref")
    _wrap(git_read, "point_head", writes, "git ref")


def _wrap(owner: Any, name: str, writes: _Writes, kind: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def counting(*arguments: Any, **options: Any) -> Any:
        with writes.around(kind, name):
            return original(*arguments, **options)

    setattr(owner, name, counting)


def _count_pushes(writes: _Writes) -> None:
    class Popen(subprocess.Popen[bytes]):
        is_push = False

        def __init__(self, args: Any, **options: Any) -> None:
            if "receive-pack" not in args or "--advertise-refs" in args:
                super().__init__(args, **options)
                return
            self.is_push = True
            with writes.around("receive-pack", "start"):
                super().__init__(args, **options)

        def communicate(self, *arguments: Any, **options: Any) -> tuple[bytes, bytes]:
            if not self.is_push:
                return super().communicate(*arguments, **options)
            with writes.around("receive-pack", "end"):
                return super().communicate(*arguments, **options)

    subprocess.Popen = Popen  # type: ignore[misc,assignment]  # its subclass


def _count_files(writes: _Writes) -> None:
    """Count by the target's path; what ``rmtree`` removes is named relative to a folder."""
    for name in ("rename", "replace", "mkdir", "unlink", "rmdir"):
        original = getattr(os, name)

        def counting(
            path: Any, *arguments: Any, _name: str = name, _original: Any = original, **options: Any
        ) -> Any:
            covered = writes.covers(path) or options.get("dir_fd") is not None
            if not covered or (_name == "mkdir" and Path(path).is_dir()):
                return _original(path, *arguments, **options)
            shown = arguments[0] if _name in {"rename", "replace"} else path
            with writes.around(f"file {_name}", os.path.basename(str(shown))):  # noqa: PTH119
                return _original(path, *arguments, **options)

        setattr(os, name, counting)
