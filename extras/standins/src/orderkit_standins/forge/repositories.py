"""
Repositories: a row and a bare folder that appear, are renamed and disappear together.

A row is ``creating`` before its folder is made and ``ready`` after; it is ``deleting`` before its
folder is deleted and removed after. A new name is stored in the row before the folder is renamed.
Only ``ready`` rows are shown. So a process killed between any two steps leaves a state whose end is
known: `repair` (at start) and the next `create` finish it. A folder without a row is never deleted:
it is moved aside. An old name leads to the repository until another one takes it. `Repositories`
knows nothing of permissions.

`FolderLock` ensures one forge per folder, and `remove_leftovers` removes the locks that a dead one
left. The forge holds an advisory lock on ``forge.lock`` while it lives; the git processes it starts
inherit it. So the holder of the lock knows that no other process writes here, and may remove the
files that killed writers left: git's ``*.lock`` files, which would block every later writer, and
half-written objects, which only take space.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ground.errors import ConflictError, InvalidInputError, NotFoundError, OrderkitError
from ground.names import RepoId
from orderkit_standins.forge import git_read
from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.store import Store, load, timestamp

log = logging.getLogger(__name__)

WAIT_S = 5.0
"""How long git processes of a killed forge may take to end."""
_PAUSE_S = 0.05


class FolderInUseError(OrderkitError):
    """Another forge process works in this folder."""


class FolderLock:
    """An advisory lock on a folder, held until `release` and by the processes started."""

    def __init__(self, folder: Path) -> None:
        self.fd = os.open(folder / "forge.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + WAIT_S
        while not _try_lock(self.fd):
            if time.monotonic() > deadline:
                os.close(self.fd)
                raise FolderInUseError(
                    f"another forge is running in {folder}",
                    hint="stop the other `orderkit up`, or choose another state folder",
                )
            time.sleep(_PAUSE_S)

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def remove_leftovers(repository: Path) -> list[Path]:
    """
    Remove what killed writers left in a bare repository; return what was removed.

    Call only while holding the `FolderLock`: then every lock file's owner is dead.
    """
    removed = list(_leftovers(repository))
    for path in removed:
        log.warning("removing left-over of a dead writer: %s", path)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return removed


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _leftovers(repository: Path) -> Iterator[Path]:
    yield from repository.glob("*.lock")
    yield from (repository / "refs").rglob("*.lock")
    objects = repository / "objects"
    yield from objects.glob("*.lock")
    yield from objects.glob("tmp_object_git2_*")
    yield from objects.glob("??/tmp_object_git2_*")
    yield from objects.glob("??/tmp_obj_*")
    yield from objects.glob("pack/tmp_*")
    yield from objects.glob("tmp_objdir-incoming-*")
    yield from objects.glob("incoming-*")


NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}\Z")
RESERVED_SUFFIXES = (".git", ".wiki", ".rss", ".atom")
DESCRIPTION_MAX = 2048
"""Gitea's."""
_SELECT = "SELECT r.*, a.name AS owner FROM repositories r JOIN accounts a ON a.id = r.owner_id"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as the store knows it."""

    id: int
    repo: RepoId
    owner_id: int
    description: str
    private: bool
    archived: bool
    default_branch: str
    allow_squash_merge: bool
    path: Path

    @property
    def full_name(self) -> str:
        return str(self.repo)


@dataclass(frozen=True, slots=True)
class NewRepository:
    """What a caller may choose when a repository is created."""

    name: str
    description: str = ""
    private: bool = False
    default_branch: str = "main"


class Repositories:
    """The repositories of one forge."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self.folder = store, folder
        self._lifecycle = threading.Lock()
        """Held while repositories appear, disappear or get another name."""

    def find(self, owner: str, name: str) -> Repository | None:
        """Return a repository by owner and name, ignoring case, or None."""
        row = self._store.row(
            f"{_SELECT} WHERE a.lower_name = ? AND r.lower_name = ? AND r.state = 'ready'",
            owner.lower(),
            name.lower(),
        )
        return self._load(row) if row else None

    def all(self, *, owner_id: int | None = None) -> list[Repository]:
        """Return all repositories, or those of one owner, oldest first."""
        sql = f"{_SELECT} WHERE r.state = 'ready' AND r.owner_id = coalesce(?, r.owner_id)"
        return [self._load(row) for row in self._store.rows(f"{sql} ORDER BY r.id", owner_id)]

    def create(self, owner: Account, new: NewRepository) -> Repository:
        """
        Create an empty bare repository.

        Finishes what a killed process began with the same name.

        Raises:
            InvalidInputError: A name that Gitea refuses.
            ConflictError: The owner has a repository of that name, in any case.
        """
        check_name(new.name)
        with self._lifecycle:
            self._drop_unfinished(owner.id, new.name)
            # its state is "creating" until the folder is there: `repair` removes what a kill leaves
            row_id = self._insert(owner, new)
            path = self._path(owner.name, new.name)
            # a folder without a row is never deleted: it is moved aside
            self._move_aside(path)
            git_read.init_bare(path, new.default_branch)
            self._store.update("repositories", row_id, state="ready")
            self._drop_redirect(owner.id, new.name)
        return self._existing(owner.name, new.name)

    def update(self, repo: Repository, **changes: str | bool | None) -> Repository:
        """
        Change the given fields of the row; None leaves one as it is.

        Raises:
            NotFoundError: The repository was deleted meanwhile.
        """
        self._store.update("repositories", repo.id, **changes, updated=timestamp())
        if branch := changes.get("default_branch"):
            git_read.point_head(repo.path, str(branch))
        return self._existing(repo.repo.owner, repo.repo.name)

    def delete(self, repo: Repository) -> None:
        """Remove row and folder. `repair` finishes it after a kill in between."""
        with self._lifecycle:
            self._store.update("repositories", repo.id, state="deleting")
            self._erase(repo.id, repo.path)

    def adopt_first_branch(self, repo: Repository) -> Repository:
        """Make the only branch the default one if the default branch does not exist (Gitea)."""
        branches = git_read.branch_names(git_read.open_repository(repo.path))
        if branches and repo.default_branch not in branches:
            return self.update(repo, default_branch=branches[0])
        return repo

    # New names

    def rename(self, repo: Repository, name: str) -> Repository:
        """
        Give a repository another name; the old one leads to it.

        Raises:
            InvalidInputError: A name that Gitea refuses.
            ConflictError: The owner has another repository of that name, in any case.
            NotFoundError: It was deleted meanwhile.
        """
        check_name(name)
        owner = repo.repo.owner
        with self._lifecycle:
            other = self.find(owner, name)
            if other is not None and other.id != repo.id:
                raise ConflictError(f"repository already exists [uname: {owner}, name: {name}]")
            # before the folder is renamed, so that `repair` can finish it
            self._store.update("repositories", repo.id, moving_to=name)
            with self._store.transaction():
                if repo.path.exists() and name != repo.repo.name:
                    repo.path.rename(self._path(owner, name))
                self._finish_rename(repo.id, repo.owner_id, repo.repo.name, name)
        return self._existing(owner, name)

    def renamed(self, owner_id: int, old_name: str) -> Repository | None:
        """Return the repository that had this name, or None."""
        sql = f"{_SELECT} JOIN repository_redirects x ON x.repo_id = r.id"
        row = self._store.row(
            f"{sql} WHERE x.owner_id = ? AND x.lower_name = ? AND r.state = 'ready'",
            owner_id,
            old_name.lower(),
        )
        return self._load(row) if row else None

    def _finish_rename(self, repo_id: int, owner_id: int, old: str, new: str) -> None:
        self._store.update("repositories", repo_id, name=new, lower_name=new.lower(), moving_to="")
        sql = "INSERT OR REPLACE INTO repository_redirects VALUES (?, ?, ?)"
        self._store.change(sql, owner_id, old.lower(), repo_id)
        self._drop_redirect(owner_id, new)

    def _drop_redirect(self, owner_id: int, name: str) -> None:
        sql = "DELETE FROM repository_redirects WHERE owner_id = ? AND lower_name = ?"
        self._store.change(sql, owner_id, name.lower())

    # After a kill

    def repair(self) -> None:
        """
        Finish what a killed process left. Call at start, holding the folder lock.

        Unfinished creations and deletions are removed (neither was acknowledged as present), a
        rename whose folder has the new name is finished, another one is forgotten, a ``ready``
        row without a folder gets an empty one, stale git locks are removed.
        """
        for row in self._store.rows(f"{_SELECT} WHERE r.moving_to <> ''"):
            old, new = (self._path(row["owner"], row[key]) for key in ("name", "moving_to"))
            if new.exists() and not old.exists():
                log.warning("finishing the new name %s of %s", new, old)
                self._finish_rename(row["id"], row["owner_id"], row["name"], row["moving_to"])
            self._store.update("repositories", row["id"], moving_to="")
        for row in self._store.rows(f"{_SELECT} WHERE r.state <> 'ready'"):
            log.warning("finishing %s of %s/%s", row["state"], row["owner"], row["name"])
            self._erase(row["id"], self._path(row["owner"], row["name"]))
        for repo in self.all():
            if not (repo.path / "HEAD").exists():
                log.error("%s has no folder; an empty repository takes its place", repo.full_name)
                self._move_aside(repo.path)
                git_read.init_bare(repo.path, repo.default_branch)
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

    def _insert(self, owner: Account, new: NewRepository) -> int:
        try:
            return self._store.insert(
                "repositories",
                owner_id=owner.id,
                name=new.name,
                lower_name=new.name.lower(),
                state="creating",
                description=new.description,
                private=new.private,
                default_branch=new.default_branch,
                created=timestamp(),
                updated=timestamp(),
            )
        except sqlite3.IntegrityError as error:
            raise ConflictError("The repository with the same name already exists.") from error

    def _erase(self, row_id: int, path: Path) -> None:
        if path.exists():
            doomed = path.with_name(f".new-doomed-{row_id}")
            shutil.rmtree(doomed, ignore_errors=True)
            # out of its place in one step: a kill leaves no half repository under the name
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

    def _load(self, row: sqlite3.Row) -> Repository:
        repo = RepoId(row["owner"], row["name"])
        return load(Repository, row, repo=repo, path=self._path(repo.owner, repo.name))

    def _existing(self, owner: str, name: str) -> Repository:
        repo = self.find(owner, name)
        if repo is None:
            raise NotFoundError(f"{owner}/{name} does not exist")
        return repo


def check_name(name: str) -> None:
    """
    Refuse repository names that Gitea refuses.

    Raises:
        InvalidInputError: Bad characters, too long, or reserved.
    """
    if not NAME.match(name):
        raise InvalidInputError("name", name, "is not a repository name (letters, digits, -_.)")
    if name in (".", "..", "-") or name.lower().endswith(RESERVED_SUFFIXES):
        raise InvalidInputError("name", name, "is reserved")
