"""
The forge: where repositories live, and the only place Orderkit writes to.

One Protocol in three parts: repositories and their files (here), ``ports.pulls`` and
``ports.access``. Every write is idempotent: it compares and swaps blob ids, carries an operation id
as a commit trailer, and after an unclear answer the adapter reads the repository before it reports
a failure. Every adapter passes one contract suite (``tests/conformance/forge``).

All names of the three parts can be imported from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from ground.names import BlobSha, CommitSha, RepoId
from orderkit.core.platform.forge_kinds import ForgeCapabilities
from orderkit.core.platform.neighbours import ReleaseVerdict
from orderkit.ports.access import (
    AccessGrant,
    ForgeAccess,
    ReaderAccount,
    Repository,
    TeamRight,
    Webhook,
)
from orderkit.ports.pulls import (
    CommitStatus,
    ForgePulls,
    ForgeUser,
    MergeStyle,
    OpenPullRef,
    PullDraft,
    PullEvent,
    PullRequest,
    PullState,
    Review,
    StatusState,
)
from orderkit.ports.revisions import (
    AGENT_TRAILER,
    CHANGE_TRAILER,
    EXECUTABLE,
    LINK,
    OPERATION_TRAILER,
    PLAIN,
    PROOF_TRAILER,
    REASON_TRAILER,
    REQUEST_TRAILER,
    REQUESTER_ACCOUNT_TRAILER,
    REQUESTER_TRAILER,
    Commit,
    FileChange,
    FileRevision,
    Operation,
    SpecialFile,
    Written,
    agent_notes,
    trailers,
)
from orderkit.ports.workflows import ForgeWorkflows

__all__ = [
    "AGENT_TRAILER",
    "CHANGE_TRAILER",
    "EXECUTABLE",
    "LINK",
    "OPERATION_TRAILER",
    "PLAIN",
    "PROOF_TRAILER",
    "REASON_TRAILER",
    "REQUESTER_ACCOUNT_TRAILER",
    "REQUESTER_TRAILER",
    "REQUEST_TRAILER",
    "AccessGrant",
    "Commit",
    "CommitStatus",
    "FileChange",
    "FileRevision",
    "Forge",
    "ForgeAccess",
    "ForgePulls",
    "ForgeUser",
    "MergeStyle",
    "OpenPullRef",
    "Operation",
    "PullDraft",
    "PullEvent",
    "PullRequest",
    "PullState",
    "ReaderAccount",
    "Removal",
    "Repository",
    "Review",
    "SpecialFile",
    "StatusState",
    "TeamRight",
    "Webhook",
    "Written",
    "agent_notes",
    "trailers",
]


@dataclass(frozen=True, slots=True)
class Removal:
    """What became of a repository that was to be removed; true if it existed."""

    existed: bool
    scheduled_on: str = ""
    """The day on which the forge was told, if it still keeps the repository; empty: it is gone."""

    def __bool__(self) -> bool:
        return self.existed


class Forge(ForgePulls, ForgeAccess, Protocol):
    """
    A forge such as Gitea.

    Every method may raise UnreachableError (nobody answers), AccessError (401, 403: bad
    credentials, missing scope or right), MovedError (the repository has another name or owner now)
    and RemoteError (any other failure); every method that writes may raise RefusedError for an
    archived repository. The methods list only further errors. A write that ends with
    UnreachableError or a retryable RemoteError may have been carried out: repeat the call with the
    same operation, which detects that and never writes twice. `base_url` never ends in a slash.
    """

    @property
    def base_url(self) -> str: ...

    @property
    def capabilities(self) -> ForgeCapabilities:
        """What this forge can do; asked where a decision depends on it, and no request."""
        ...

    @property
    def workflows(self) -> ForgeWorkflows | None:
        """What only some forges have, for templates; None: this one has not."""
        ...

    def repository_named(self, full_name: str) -> RepoId | None:
        """Return the repository that the forge itself calls so; None if it is none of ours."""
        ...

    def remember(self) -> None:
        """Ask each thing once from now on, until something is written: for one look at all."""
        ...

    def version(self) -> str:
        """Return the server's version text."""
        ...

    def judge_release(self) -> ReleaseVerdict:
        """Return how well this server's release is known, and its known holes."""
        ...

    @property
    def credentials_source(self) -> str:
        """A description of where our credentials came from; never contains a secret."""
        ...

    def user(self) -> str:
        """Return the login name behind our credentials."""
        ...

    def missing_rights(self, repo: RepoId) -> tuple[str, ...]:
        """
        Return what we lack to change the repository: token scopes, write access.

        Writes nothing. Empty if nothing is missing.

        Raises:
            NotFoundError: No such repository, or hidden from us.
        """
        ...

    def ensure_org(self, name: str) -> bool:
        """Make sure the organisation exists. Idempotent. True if it was created."""
        ...

    def has_org(self, name: str) -> bool: ...

    def ensure_repo(
        self, repo: RepoId, *, description: str, private: bool = False, may_squash: bool = True
    ) -> Repository:
        """
        Make sure the repository exists (created empty, default branch ``main``). Idempotent.

        Args:
            may_squash: False: pull requests are not squashed, if the forge can be told so by the
                request that makes the repository; `forbid_squash` makes sure.

        Raises:
            NotFoundError: The organisation does not exist.
        """
        ...

    def repo(self, repo: RepoId) -> Repository | None:
        """Return the repository, or None if it does not exist or is hidden from us."""
        ...

    def head(self, repo: RepoId, branch: str = "main") -> CommitSha | None:
        """Return the commit a branch points to; None if repository or branch does not exist."""
        ...

    def tree(self, repo: RepoId, commit: CommitSha) -> Mapping[PurePosixPath, BlobSha]:
        """
        Return every file of a commit with its blob id.

        Raises:
            NotFoundError: No such commit.
        """
        ...

    def names_like(self, repo: RepoId, branch: str) -> tuple[str, ...]:
        """
        Return the full names of refs that git, a forge or Argo CD may take for a branch.

        Such as the tag ``main``, or the branches ``refs/heads/main`` and ``main``, a space, ``x``.

        Raises:
            NotFoundError: No such repository.
        """
        ...

    def special_files(self, repo: RepoId, commit: CommitSha) -> Mapping[PurePosixPath, SpecialFile]:
        """
        Return what a commit has besides plain files: executables, links, submodules.

        `tree` has no submodules. Needs no request for a commit whose `tree` was just read.

        Raises:
            NotFoundError: No such commit.
        """
        ...

    def read(self, repo: RepoId, path: PurePosixPath, ref: str) -> FileRevision | None:
        """Return a file at a branch or full commit id; None if it is not there."""
        ...

    def read_ahead(self, repo: RepoId, paths: Iterable[PurePosixPath], commit: CommitSha) -> None:
        """Get files of a commit with few requests, where the forge can, for `read` to return."""
        ...

    def write(
        self,
        repo: RepoId,
        changes: Sequence[FileChange],
        operation: Operation,
        *,
        branch: str = "main",
    ) -> Written:
        """
        Commit several files at once, or nothing. Idempotent by ``operation.id``.

        Files that already have the new content are left out; if no file remains, no commit is
        made. After a lost answer the adapter reads the branch and looks for the trailer.

        Raises:
            ConflictError: A file lacks its `expected_sha`, or other writers won every round.
            NotFoundError: No such repository or branch.
            RefusedError: The repository is archived.
        """
        ...

    def commits(
        self, repo: RepoId, *, ref: str = "main", path: PurePosixPath | None = None, limit: int = 50
    ) -> Sequence[Commit]:
        """Return the newest commits first; empty if the repository or branch is empty."""
        ...

    def forbid_squash(self, repo: RepoId, seen: Repository | None = None) -> bool:
        """
        Make sure that pull requests are not merged as one new commit. Idempotent.

        Returns whether they could be. Other ways to merge keep the commits with their signatures.

        Args:
            seen: The repository if it was just read; saves one request.

        Raises:
            AccessError: Our credentials are no admin's of the repository.
            NotFoundError: No such repository.
        """
        ...

    def archive(self, repo: RepoId, *, undo: bool = False) -> None:
        """
        Make the repository read-only, or writable again. Idempotent.

        Raises:
            NotFoundError: It does not exist.
        """
        ...

    def set_default_branch(self, repo: RepoId, branch: str) -> None:
        """
        Make a branch the one that clones and web forms begin with. Idempotent.

        Raises:
            AccessError: Our credentials are no admin's of the repository.
            NotFoundError: Repository or branch do not exist.
        """
        ...

    def rename_repo(self, repo: RepoId, name: str) -> None:
        """
        Give the repository another name in its organisation; the old name leads to it. Idempotent.

        Raises:
            NotFoundError: It does not exist.
            ConflictError: Another repository has that name.
        """
        ...

    def delete_repo(self, repo: RepoId) -> Removal:
        """
        Remove the repository for good, or have the forge remove it later. Idempotent.

        Afterwards there is no repository of that name for us.
        """
        ...
