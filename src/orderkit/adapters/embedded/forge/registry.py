"""
Repositories: a row and a bare folder that appear and disappear together.

A row is ``creating`` before its folder is made and ``ready`` after; it is ``deleting``
before the folder goes and removed after. Only ``ready`` rows are shown. So a process
killed between any two steps leaves a state whose end is known: `repair` (at start) and the
next `create` finish it. A folder without a row is never deleted: it is moved aside.

Called by the HTTP API and by ``EmbeddedForge``. It knows nothing of permissions.
"""

from __future__ import annotations

import logging
import re
import shutil
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.locks import remove_leftovers
from orderkit.adapters.embedded.forge.store import Store, timestamp
from orderkit.core.errors import ConflictError, InvalidInputError, NotFoundError
from orderkit.core.names import RepoId

log = logging.getLogger(__name__)

NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}\Z")
RESERVED_SUFFIXES = (".git", ".wiki", ".rss", ".atom")
DESCRIPTION_MAX = 2048
_SELECT = (
    "SELECT r.*, a.name AS owner, a.is_org AS owner_is_org FROM repositories r"
    " JOIN accounts a ON a.id = r.owner_id"
)


@dataclass(frozen=True, slots=True)
class RepoRow:
    """A repository as the store knows it."""

    id: int
    repo: RepoId
    owner_id: int
    owner_is_org: bool
    description: str
    private: bool
    archived: bool
    default_branch: str
    topics: tuple[str, ...]
    created: str
    updated: str
    path: Path

    @property
    def full_name(self) -> str:
        return str(self.repo)


@dataclass(frozen=True, slots=True)
class NewRepo:
    """What a caller may choose when a repository is created."""

    name: str
    description: str = ""
    private: bool = False
    default_branch: str = "main"


class Registry:
    """The repositories of one forge."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self.folder = folder
        self.lifecycle = threading.Lock()
        """Held while repositories appear, disappear or get another name."""

    def find(self, owner: str, name: str) -> RepoRow | None:
        """Return a repository by owner and name, whatever their case, or None."""
        row = self._store.row(
            f"{_SELECT} WHERE a.lower_name = ? AND r.lower_name = ? AND r.state = 'ready'",
            owner.lower(),
            name.lower(),
        )
        return self._row(row) if row else None

    def all(self, *, owner_id: int | None = None) -> list[RepoRow]:
        """Return all repositories, or those of one owner, oldest first."""
        where = " WHERE r.state = 'ready'" + (" AND r.owner_id = ?" if owner_id else "")
        values = (owner_id,) if owner_id else ()
        return [
            self._row(row) for row in self._store.rows(f"{_SELECT}{where} ORDER BY r.id", *values)
        ]

    def create(self, owner: Account, new: NewRepo) -> RepoRow:
        """
        Create an empty bare repository.

        Finishes what a killed process began with the same name.

        Raises:
            InvalidInputError: A name that Gitea refuses.
            ConflictError: The owner has a repository of that name, in any case.
        """
        check_name(new.name)
        with self.lifecycle:
            self._drop_unfinished(owner.id, new.name)
            row_id = self._insert(owner, new)
            path = self._path(owner.name, new.name)
            self._move_aside(path)
            gitread.init_bare(path, new.default_branch)
            self._store.change("UPDATE repositories SET state = 'ready' WHERE id = ?", row_id)
            self._store.change(
                "DELETE FROM repository_redirects WHERE owner_id = ? AND lower_name = ?",
                owner.id,
                new.name.lower(),
            )
        found = self.find(owner.name, new.name)
        if found is None:
            raise RuntimeError(f"{owner.name}/{new.name} vanished while it was created")
        return found

    def update(
        self,
        repo: RepoRow,
        *,
        description: str | None = None,
        private: bool | None = None,
        archived: bool | None = None,
        default_branch: str | None = None,
    ) -> RepoRow:
        """
        Change what is given.

        Raises:
            NotFoundError: The repository was deleted meanwhile.
        """
        self._store.change(
            "UPDATE repositories SET description = coalesce(?, description),"
            " private = coalesce(?, private), archived = coalesce(?, archived),"
            " default_branch = coalesce(?, default_branch), updated = ? WHERE id = ?",
            description,
            None if private is None else int(private),
            None if archived is None else int(archived),
            default_branch,
            timestamp(),
            repo.id,
        )
        if default_branch is not None:
            gitread.point_head(repo.path, default_branch)
        found = self.find(repo.repo.owner, repo.repo.name)
        if found is None:
            raise NotFoundError(f"{repo.full_name} does not exist")
        return found

    def set_topics(self, repo: RepoRow, topics: tuple[str, ...]) -> None:
        """Replace the topics."""
        self._store.change(
            "UPDATE repositories SET topics = ? WHERE id = ?", " ".join(topics), repo.id
        )

    def delete(self, repo: RepoRow) -> None:
        """Remove row and folder. A kill in between is finished by `repair`."""
        with self.lifecycle:
            self._store.change("UPDATE repositories SET state = 'deleting' WHERE id = ?", repo.id)
            self._erase(repo.id, repo.path)

    def adopt_first_branch(self, repo: RepoRow) -> None:
        """Make the only branch the default one if the default branch does not exist (Gitea)."""
        branches = gitread.branch_names(gitread.open_repository(repo.path))
        if branches and repo.default_branch not in branches:
            self.update(repo, default_branch=branches[0])

    def repair(self) -> None:
        """
        Finish what a killed process left. Call at start, holding the folder lock.

        Unfinished creations and deletions are removed (neither was acknowledged as present),
        a ``ready`` row without a folder gets an empty one, stale git locks are removed.
        """
        for row in self._store.rows(f"{_SELECT} WHERE r.state <> 'ready'"):
            log.warning("finishing %s of %s/%s", row["state"], row["owner"], row["name"])
            self._erase(row["id"], self._path(row["owner"], row["name"]))
        for repo in self.all():
            if not (repo.path / "HEAD").exists():
                log.error("%s has no folder; an empty repository takes its place", repo.full_name)
                self._move_aside(repo.path)
                gitread.init_bare(repo.path, repo.default_branch)
            remove_leftovers(repo.path)
            self.adopt_first_branch(repo)
        for leftover in self.folder.glob("*/.new-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def _drop_unfinished(self, owner_id: int, name: str) -> None:
        row = self._store.row(
            f"{_SELECT} WHERE r.owner_id = ? AND r.lower_name = ? AND r.state <> 'ready'",
            owner_id,
            name.lower(),
        )
        if row:
            self._erase(row["id"], self._path(row["owner"], row["name"]))

    def _insert(self, owner: Account, new: NewRepo) -> int:
        try:
            return self._store.insert(
                "INSERT INTO repositories (owner_id, name, lower_name, state, description,"
                " private, default_branch, created, updated)"
                " VALUES (?, ?, ?, 'creating', ?, ?, ?, ?, ?)",
                owner.id,
                new.name,
                new.name.lower(),
                new.description,
                int(new.private),
                new.default_branch,
                timestamp(),
                timestamp(),
            )
        except sqlite3.IntegrityError as error:
            raise ConflictError("The repository with the same name already exists.") from error

    def _erase(self, row_id: int, path: Path) -> None:
        if path.exists():
            doomed = path.with_name(f".new-doomed-{row_id}")
            shutil.rmtree(doomed, ignore_errors=True)
            path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
        self._store.change("DELETE FROM repositories WHERE id = ?", row_id)

    def _move_aside(self, path: Path) -> None:
        number = 1
        while path.exists():
            aside = path.with_name(f"{path.name}.orphan-{number}")
            if not aside.exists():
                log.warning("folder without a repository: moving %s to %s", path, aside.name)
                path.rename(aside)
            number += 1

    def _path(self, owner: str, name: str) -> Path:
        return self.folder / owner / f"{name}.git"

    def _row(self, row: sqlite3.Row) -> RepoRow:
        return RepoRow(
            id=row["id"],
            repo=RepoId(row["owner"], row["name"]),
            owner_id=row["owner_id"],
            owner_is_org=bool(row["owner_is_org"]),
            description=row["description"],
            private=bool(row["private"]),
            archived=bool(row["archived"]),
            default_branch=row["default_branch"],
            topics=tuple(str(row["topics"]).split()),
            created=row["created"],
            updated=row["updated"],
            path=self._path(row["owner"], row["name"]),
        )


def check_name(name: str) -> None:
    """
    Refuse repository names that Gitea refuses.

    Raises:
        InvalidInputError: Bad characters, too long, or reserved.
    """
    if not NAME.match(name):
        raise InvalidInputError("name", name, "is no repository name (letters, digits, -_.)")
    if name in (".", "..", "-") or name.lower().endswith(RESERVED_SUFFIXES):
        raise InvalidInputError("name", name, "is reserved")
