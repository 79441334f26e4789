"""
The embedded forge as one object: its state folder, its accounts, its app.

Called by ``orderkit up``, which binds a port, tells the forge its address and serves its
app, and by tests.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from starlette.applications import Starlette

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.accounts import Account, Accounts
from orderkit.adapters.embedded.forge.api import events, merging
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.app import forge_app
from orderkit.adapters.embedded.forge.api.payloads import NOTHING, Move
from orderkit.adapters.embedded.forge.api.pullshapes import pull_shape
from orderkit.adapters.embedded.forge.automerges import AutoMerges
from orderkit.adapters.embedded.forge.behaviour import DEFAULT, behaviour_named
from orderkit.adapters.embedded.forge.checks import DELAY_S, Checks
from orderkit.adapters.embedded.forge.comments import Comments
from orderkit.adapters.embedded.forge.deliveries import Deliveries
from orderkit.adapters.embedded.forge.hooks import Hooks
from orderkit.adapters.embedded.forge.issues import Issues
from orderkit.adapters.embedded.forge.labels import Labels
from orderkit.adapters.embedded.forge.landings import Landings
from orderkit.adapters.embedded.forge.locks import FolderLock
from orderkit.adapters.embedded.forge.mergesettings import MergeSettings
from orderkit.adapters.embedded.forge.protections import Protections
from orderkit.adapters.embedded.forge.pullgit import Pull
from orderkit.adapters.embedded.forge.pulls import Pulls
from orderkit.adapters.embedded.forge.registry import Registry, RepoRow
from orderkit.adapters.embedded.forge.renames import Renames
from orderkit.adapters.embedded.forge.statuses import Statuses
from orderkit.adapters.embedded.forge.store import Store
from orderkit.core.errors import NotFoundError, OrderkitError
from orderkit.core.names import CommitSha, RepoId

log = logging.getLogger(__name__)

PushListener = Callable[[RepoId, str, CommitSha | None], None]
"""Called with repository, branch and new head (None: the branch was deleted)."""


class EmbeddedForge:
    """
    A forge that lives in one folder, for one process at a time.

    Opening it repairs what a killed forge left. `app` is served by the caller; until
    `set_base_url` is called, links in answers begin with ``http://127.0.0.1``.
    """

    def __init__(
        self, root: Path, *, behaviour: str = DEFAULT, check_delay_s: float = DELAY_S
    ) -> None:
        """
        Open or create the forge in `root`.

        Args:
            behaviour: Whose answers are given where releases differ: a name of `BEHAVIOURS`.
                It may change from one start to the next.
            check_delay_s: How long a pull request is being checked after a push (``checks``).

        Raises:
            InvalidInputError: No such behaviour.
            FolderInUseError: Another process has it open.
            NewerStateError: A later release wrote the state.
            OrderkitError: There is no git program.
        """
        self.root = root
        self.behaviour = behaviour_named(behaviour)
        self.version = self.behaviour.version
        self.git = _find_git()
        self.base_url = "http://127.0.0.1"
        self._listeners: list[PushListener] = []
        self._closing = threading.Lock()
        self.repos_root.mkdir(parents=True, exist_ok=True)
        with ExitStack() as undo:
            self._lock = FolderLock(root)
            undo.callback(self._lock.release)
            self._store = Store(root / "forge.sqlite")
            undo.callback(self._store.close)
            self.accounts = Accounts(self._store)
            self.registry = Registry(self._store, self.repos_root)
            self.issues = Issues(self._store)
            self.labels = Labels(self._store, self.issues)
            self.comments = Comments(self._store)
            self.hooks = Hooks(self._store)
            self.deliveries = Deliveries()
            self.merge_settings = MergeSettings(self._store)
            self.pulls = Pulls(self._store, self.issues, Checks(check_delay_s))
            self.auto_merges = AutoMerges(self._store)
            self.statuses = Statuses(self._store)
            self.protections = Protections(self._store)
            self.landings = Landings(self._store, self.issues, self.pulls)
            self.renames = Renames(self._store, self.accounts, self.registry)
            self.renames.repair()
            self.registry.repair()
            for repo in self.registry.all():
                self.landings.repair(repo)
            undo.pop_all()
        self.app: Starlette = forge_app(self)

    @property
    def repos_root(self) -> Path:
        """Where the bare repositories are: ``<owner>/<name>.git``."""
        return self.root / "repos"

    @property
    def lock_fd(self) -> int:
        """The descriptor that git processes inherit, so that the folder stays locked."""
        return self._lock.fd

    def set_base_url(self, url: str) -> None:
        """Set the address that links in answers begin with (Gitea's ROOT_URL)."""
        self.base_url = url.rstrip("/")

    def ensure_user(self, name: str, password: str, *, admin: bool = False) -> None:
        """
        Make sure a user exists with this password and role. Idempotent.

        Raises:
            InvalidInputError: A name the forge refuses.
        """
        self.accounts.ensure_user(name, password, admin=admin)

    def ensure_token(self, user: str, name: str, token_value: str, scopes: Sequence[str]) -> None:
        """
        Make sure a user has a token with this secret and these scopes. Idempotent.

        Raises:
            NotFoundError: No such user.
            InvalidInputError: No scope, or an unknown one.
            ConflictError: Another token has this secret.
        """
        found = self.accounts.find(user)
        if found is None or found.is_org:
            raise NotFoundError(f"no user {user}")
        self.accounts.ensure_token(found, name, token_value, tuple(scopes))

    def repository_path(self, repo: RepoId) -> Path | None:
        """Return the folder of a repository, or None if it does not exist."""
        found = self.registry.find(repo.owner, repo.name)
        return found.path if found else None

    def on_push(self, listener: PushListener) -> None:
        """
        Call `listener` after every change of a branch, by API or by git push.

        It runs in the thread that serves the request, after the branch moved and before the
        answer; it should only note that there is work. Its exceptions are logged.
        """
        self._listeners.append(listener)

    def pushed(
        self,
        repo: RepoId,
        branch: str,
        commit: CommitSha | None,
        *,
        by: Account | None,
        before: str = "",
    ) -> None:
        """
        Let pull requests follow a branch; tell listeners and webhooks that it moved.

        Called by the endpoints that move one, after it moved.

        Args:
            by: Who moved it; None: webhooks are not told.
            before: Where it was; empty for a new branch.
        """
        row = self.registry.find(repo.owner, repo.name)
        follow = self.pulls.branch_moved if commit else self.pulls.branch_deleted
        concerned = follow(row, branch) if row is not None else []
        if row is not None and commit and by is not None:
            concerned += self._detected(row, branch, before, by=by)
        for listener in tuple(self._listeners):
            try:
                listener(repo, branch, commit)
            except Exception:
                log.exception("a push listener failed for %s", repo)
        if row is not None and commit and self.behaviour.scheduled_merge_starts_check:
            merging.land_scheduled(self, row)
        if by is not None:
            self.reference_moved(repo, gitread.HEADS + branch, before, commit or "", by=by)
            for pull in concerned:
                self._pull_followed(repo, pull, by=by)

    def _detected(self, row: RepoRow, branch: str, before: str, *, by: Account) -> list[Pull]:
        if not self.merge_settings.of(row.id)["autodetect_manual_merge"]:
            return []
        return self.landings.detect(row, branch, before, by=by.id)

    def _pull_followed(self, repo: RepoId, pull: Pull, *, by: Account) -> None:
        row = self.registry.find(repo.owner, repo.name)
        if row is not None:
            action = "closed" if pull.closed else "synchronized"
            kind = "pull_request" if pull.closed else "pull_request_sync"
            events.pull_changed(
                self,
                row,
                lambda: pull_shape(self, row, pull, Right.ADMIN),
                action,
                by=by,
                event_type=kind,
            )

    def reference_moved(
        self, repo: RepoId, ref: str, before: str, after: str, *, by: Account
    ) -> None:
        """Tell webhooks that a branch or tag moved; an empty id means that it is not there."""
        row = self.registry.find(repo.owner, repo.name)
        if row is not None:
            move = Move(row, ref, before or NOTHING, after or NOTHING)
            events.reference_moved(self, move, by=by)

    def close(self) -> None:
        """Close files and let another process open the folder. Idempotent."""
        self.deliveries.close()
        with self._closing:
            self._store.close()
            self._lock.release()


def _find_git() -> str:
    found = shutil.which("git")
    if found is None:
        raise OrderkitError("there is no git program", hint="install git (apt install git)")
    return found
