"""
A forge for a batch of orders: it asks each thing once, until something is written there.

Many orders need the same of pack and ledger, and one change looks at its repository in several
places. Safe, because every write names the blob that was read: after a write, and after one that
was refused, the repository is read again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal, cast

from ground.names import MAIN, CommitSha, RepoId
from orderkit.ports.forge import (
    Commit,
    FileChange,
    FileRevision,
    Forge,
    Operation,
    PullRequest,
    Written,
)

HISTORY = 200
"""How many commits of an order are read at once: who asks for fewer gets them from these."""


class SharedReads:
    """Remembers `head`, `commits` and reads of branches; passes everything else on."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge
        self._lock = threading.Lock()
        self._known: dict[RepoId, dict[tuple[Any, ...], Any]] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._forge, name)
        if name in ("tree", "special_files", "compare", "pull", "statuses"):
            return found
        if not callable(found):
            return found

        def changing(*arguments: Any, **named: Any) -> Any:
            try:
                return found(*arguments, **named)
            finally:
                if arguments and isinstance(arguments[0], RepoId):
                    self._forget(arguments[0])

        return changing

    def head(self, repo: RepoId, branch: str = MAIN) -> CommitSha | None:
        """Return the commit a branch points to: the newest of its history."""
        if branch != MAIN:
            return self._forge.head(repo, branch)
        known = self._known.get(repo, {})
        if history := known.get(("history",)):
            return cast("Sequence[Commit]", history)[0].id
        found = self._once(repo, ("head",), lambda: self._forge.head(repo))
        return cast("CommitSha | None", found)

    def commits(
        self, repo: RepoId, *, ref: str = MAIN, path: PurePosixPath | None = None, limit: int = 50
    ) -> Sequence[Commit]:
        """Return the newest commits first."""
        if path is not None or limit > HISTORY or ref not in (MAIN, self._known_head(repo)):
            return self._forge.commits(repo, ref=ref, path=path, limit=limit)
        key = ("history",)
        found = self._once(repo, key, lambda: self._forge.commits(repo, limit=HISTORY))
        return cast("Sequence[Commit]", found)[:limit]

    def _known_head(self, repo: RepoId) -> str | None:
        known = self._known.get(repo, {})
        history = known.get(("history",))
        return history[0].id if history else known.get(("head",))

    def read(self, repo: RepoId, path: PurePosixPath, ref: str) -> FileRevision | None:
        """Return a file at a branch or full commit id."""
        if ref != MAIN:
            return self._forge.read(repo, path, ref)
        key = ("read", path)
        return cast(
            "FileRevision | None",
            self._once(repo, key, lambda: self._forge.read(repo, path, ref)),
        )

    def pulls(
        self,
        repo: RepoId,
        *,
        state: Literal["open", "closed", "all"] = "open",
        base: str | None = None,
        head: str | None = None,
    ) -> Iterator[PullRequest]:
        """Yield pull requests, newest first."""
        if state == "closed" or base != MAIN or head is not None:
            return self._forge.pulls(repo, state=state, base=base, head=head)
        ask = lambda: list(self._forge.pulls(repo, state="all", base=MAIN))  # noqa: E731
        found = cast("list[PullRequest]", self._once(repo, ("pulls",), ask))
        return (pull for pull in found if state in ("all", pull.state))

    def write(
        self,
        repo: RepoId,
        changes: Sequence[FileChange],
        operation: Operation,
        *,
        branch: str = MAIN,
    ) -> Written:
        """Commit several files at once, or nothing; see the port."""
        try:
            return self._forge.write(repo, changes, operation, branch=branch)
        finally:
            self._forget(repo, [change.path for change in changes])

    def learn(self, repo: RepoId, path: PurePosixPath, file: FileRevision) -> None:
        """Remember a file of ``main`` without asking for it."""
        self._known.setdefault(repo, {})["read", path] = file

    def _once(self, repo: RepoId, key: tuple[Any, ...], ask: Callable[[], Any]) -> Any:
        with self._lock:
            known = self._known.setdefault(repo, {})
            if key in known:
                return known[key]
        found = ask()
        with self._lock:
            self._known.setdefault(repo, {})[key] = found
        return found

    def _forget(self, repo: RepoId, paths: Sequence[PurePosixPath] | None = None) -> None:
        """Forget a repository; if only some files changed, keep what is known of the others."""
        with self._lock:
            known = self._known.pop(repo, {})
            if paths is not None:
                kept = {k: v for k, v in known.items() if k[0] == "read" and k[1] not in paths}
                self._known[repo] = kept


def shared_reads(
    forge: Forge, known: Mapping[tuple[RepoId, PurePosixPath], FileRevision] | None = None
) -> Forge:
    """
    Return a forge that asks each thing once, until something is written there.

    Args:
        known: Files of ``main`` branches that need not be asked for.
    """
    shared = SharedReads(forge)
    for (repo, path), file in (known or {}).items():
        shared.learn(repo, path, file)
    return cast("Forge", shared)
