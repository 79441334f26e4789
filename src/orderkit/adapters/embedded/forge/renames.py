"""
New names for repositories, users and organisations; the old ones lead to them.

A name is a row and a folder. The wish is noted first, then folder and row change together
while nobody else reads the store. A process killed in between leaves a note and one of two
folders: `repair` (at start) reads from them whether it happened. An old name leads on until
somebody takes it.

Called by ``EmbeddedForge`` and the endpoints. It does not ask who may do what.
"""

from __future__ import annotations

import logging
from pathlib import Path

from orderkit.adapters.embedded.forge import accounts, registry
from orderkit.adapters.embedded.forge.accounts import Account, Accounts
from orderkit.adapters.embedded.forge.registry import Registry, RepoRow
from orderkit.adapters.embedded.forge.store import Store
from orderkit.core.errors import ConflictError, NotFoundError

log = logging.getLogger(__name__)


class Renames:
    """Renames of one forge."""

    def __init__(self, store: Store, known: Accounts, repositories: Registry) -> None:
        self._store, self._accounts, self._registry = store, known, repositories

    def repository(self, repo: RepoRow, name: str) -> RepoRow:
        """
        Rename a repository within its owner's.

        Raises:
            InvalidInputError: A name that Gitea refuses.
            ConflictError: The owner has another repository of that name, in any case.
            NotFoundError: It was deleted meanwhile.
        """
        registry.check_name(name)
        owner = repo.repo.owner
        with self._registry.lifecycle:
            other = self._registry.find(owner, name)
            if other is not None and other.id != repo.id:
                raise ConflictError(f"repository already exists [uname: {owner}, name: {name}]")
            self._note("repositories", repo.id, name)
            with self._store.transaction():
                _move(repo.path, repo.path.with_name(f"{name}.git"))
                self._finish_repository(repo.id, repo.owner_id, repo.repo.name, name)
        found = self._registry.find(owner, name)
        if found is None:
            raise NotFoundError(f"{owner}/{name} does not exist")
        return found

    def account(self, account: Account, name: str) -> Account:
        """
        Rename a user or organisation.

        Raises:
            InvalidInputError: A bad or reserved name.
            ConflictError: The name is taken.
        """
        accounts.check_name(name)
        with self._registry.lifecycle:
            other = self._accounts.find(name)
            if other is not None and other.id != account.id:
                raise ConflictError(f"user already exists [name: {name}]")
            self._note("accounts", account.id, name)
            folder = self._registry.folder
            with self._store.transaction():
                _move(folder / account.name, folder / name)
                self._finish_account(account.id, account.name, name)
        return self._accounts.by_id(account.id)

    def repository_now(self, owner_id: int, name: str) -> RepoRow | None:
        """Return the repository that had this name, or None."""
        row = self._store.row(
            "SELECT repo_id FROM repository_redirects WHERE owner_id = ? AND lower_name = ?",
            owner_id,
            name.lower(),
        )
        if row is None:
            return None
        return next((repo for repo in self._registry.all() if repo.id == row["repo_id"]), None)

    def account_now(self, name: str) -> Account | None:
        """Return the user or organisation that had this name, or None."""
        row = self._store.row(
            "SELECT account_id FROM account_redirects WHERE lower_name = ?", name.lower()
        )
        return self._accounts.by_id(row["account_id"]) if row else None

    def repair(self) -> None:
        """Finish or forget what a killed process began. Call at start, before repositories'."""
        folder = self._registry.folder
        for row in self._store.rows("SELECT * FROM accounts WHERE moving_to <> ''"):
            if _moved(folder / row["name"], folder / row["moving_to"]):
                log.warning("finishing the new name %s of %s", row["moving_to"], row["name"])
                with self._store.transaction():
                    self._finish_account(row["id"], row["name"], row["moving_to"])
        for row in self._store.rows(
            "SELECT r.*, a.name AS owner FROM repositories r JOIN accounts a ON a.id = r.owner_id"
            " WHERE r.moving_to <> ''"
        ):
            here, there = (
                folder / row["owner"] / f"{row[key]}.git" for key in ("name", "moving_to")
            )
            if _moved(here, there):
                log.warning("finishing the new name %s of %s", there, here)
                with self._store.transaction():
                    self._finish_repository(
                        row["id"], row["owner_id"], row["name"], row["moving_to"]
                    )
        for table in ("accounts", "repositories"):
            self._note(table, None, "")

    def _note(self, table: str, row_id: int | None, name: str) -> None:
        sql = {
            "accounts": "UPDATE accounts SET moving_to = ? WHERE id = coalesce(?, id)",
            "repositories": "UPDATE repositories SET moving_to = ? WHERE id = coalesce(?, id)",
        }
        self._store.change(sql[table], name, row_id)

    def _finish_repository(self, repo_id: int, owner_id: int, old: str, new: str) -> None:
        self._store.change(
            "UPDATE repositories SET name = ?, lower_name = ?, moving_to = '' WHERE id = ?",
            new,
            new.lower(),
            repo_id,
        )
        self._store.change(
            "INSERT OR REPLACE INTO repository_redirects VALUES (?, ?, ?)",
            owner_id,
            old.lower(),
            repo_id,
        )
        self._store.change(
            "DELETE FROM repository_redirects WHERE owner_id = ? AND lower_name = ?",
            owner_id,
            new.lower(),
        )

    def _finish_account(self, account_id: int, old: str, new: str) -> None:
        self._store.change(
            "UPDATE accounts SET name = ?, lower_name = ?, moving_to = '' WHERE id = ?",
            new,
            new.lower(),
            account_id,
        )
        self._store.change(
            "INSERT OR REPLACE INTO account_redirects VALUES (?, ?)", old.lower(), account_id
        )
        self._store.change("DELETE FROM account_redirects WHERE lower_name = ?", new.lower())


def _move(here: Path, there: Path) -> None:
    if here != there and here.exists():
        here.rename(there)


def _moved(here: Path, there: Path) -> bool:
    return here != there and there.exists() and not here.exists()
