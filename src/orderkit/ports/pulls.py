"""
The part of the forge port about changes that wait for somebody: branches and pull requests.

With them go what people and machines say about such a change: comments and statuses.
The values are here, and the Protocol that ``ports.forge.Forge`` is composed of.

Called by flows that offer a change instead of writing it; reached through ``ports.forge``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from orderkit.core.names import CommitSha, RepoId
from orderkit.ports.revisions import Commit, Operation

PullState = Literal["open", "closed", "merged"]
StatusState = Literal["pending", "success", "failure", "error", "warning"]


class MergeStyle(StrEnum):
    """How a pull request becomes part of its base."""

    MERGE = "merge"
    """A merge commit, always."""
    SQUASH = "squash"
    """One new commit on the base; it carries the operation's message."""


@dataclass(frozen=True, slots=True)
class PullDraft:
    """A pull request as it is asked for: from branch `head` into branch `base`."""

    title: str
    body: str
    head: str
    base: str = "main"


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as the forge shows it."""

    number: int
    title: str
    body: str
    """Without the hidden line that carries operation and requester."""
    state: PullState
    draft: bool
    head: str
    head_commit: CommitSha
    base: str
    mergeable: bool
    """False also while the forge is still checking; true also if there is nothing to merge."""
    merge_commit: CommitSha | None
    web_url: str
    operation: str = ""
    """Id of the operation that opened it or changed it last; "" if none of ours did."""
    requester: str = ""


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """What a check says of a commit; the newest of each `context` counts."""

    context: str
    state: StatusState
    description: str = ""
    target_url: str = ""


class ForgePulls(Protocol):
    """
    Branches, pull requests, and what is said about them.

    What every method may raise stands at `ports.forge.Forge`.
    """

    def ensure_branch(self, repo: RepoId, branch: str, at: CommitSha) -> bool:
        """
        Make sure a branch exists that contains `at`. Idempotent. True if it was created.

        A branch that has moved on from `at` is left as it is.

        Raises:
            ConflictError: A branch of that name exists and does not contain `at`.
            InvalidInputError: The forge refuses the name.
            NotFoundError: No such repository or commit.
        """
        ...

    def delete_branch(self, repo: RepoId, branch: str) -> bool:
        """
        Remove a branch. Idempotent. True if it was there.

        Raises:
            RefusedError: It is the default branch, protected, or the base of a pull request.
        """
        ...

    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]:
        """
        Return the commits in `head` that are not in `base`, newest first. Idempotent.

        Args:
            base: Branch or full commit id.
            head: Branch or full commit id.

        Raises:
            NotFoundError: No such repository, branch or commit.
        """
        ...

    def open_pull(self, repo: RepoId, draft: PullDraft, operation: Operation) -> PullRequest:
        """
        Make sure a pull request is open from ``draft.head`` into ``draft.base``. Idempotent.

        One that is open already is returned, with title and body brought up to date.
        One that this operation opened before is returned also if it was merged or closed
        since, so that a repeated command never opens a second one.

        Raises:
            RefusedError: `head` has no commit that `base` lacks: there is nothing to merge.
            NotFoundError: No such repository or branch.
        """
        ...

    def pull(self, repo: RepoId, number: int) -> PullRequest | None:
        """Return a pull request, or None if there is none of that number. Idempotent."""
        ...

    def pulls(
        self,
        repo: RepoId,
        *,
        state: Literal["open", "closed", "all"] = "open",
        base: str | None = None,
        head: str | None = None,
    ) -> Iterator[PullRequest]:
        """Yield pull requests, newest first; merged ones count as closed. Idempotent."""
        ...

    def update_pull(
        self,
        repo: RepoId,
        number: int,
        operation: Operation,
        *,
        title: str | None = None,
        body: str | None = None,
    ) -> PullRequest:
        """
        Set title or body; None leaves one as it is. Idempotent.

        Raises:
            NotFoundError: No such pull request.
        """
        ...

    def close_pull(self, repo: RepoId, number: int) -> bool:
        """
        Close a pull request without merging it. Idempotent. True if it was open.

        Raises:
            NotFoundError: No such pull request.
            ConflictError: It was merged.
        """
        ...

    def merge_pull(
        self,
        repo: RepoId,
        number: int,
        *,
        head: CommitSha,
        style: MergeStyle,
        operation: Operation,
        deadline_s: float = 30.0,
    ) -> CommitSha:
        """
        Merge a pull request if its head is still `head`; return the commit on the base.

        Idempotent: one that is already merged at that head is success. While the forge is
        still checking whether it can be merged, this waits, at most `deadline_s`.

        Raises:
            ConflictError: Its head is another commit, it was closed, or it conflicts with
                its base. Nothing was merged.
            RefusedError: A draft, nothing to merge, a style that is switched off, or a rule
                that is not met (checks, approvals). Nothing was merged.
            BusyError: Still being checked at the deadline.
            NotFoundError: No such pull request.
        """
        ...

    def comment(self, repo: RepoId, number: int, text: str, *, marker: str) -> None:
        """
        Make sure our one comment named `marker` says `text`. Idempotent.

        The comment is found again by a hidden line; comments of other users are never changed.

        Raises:
            NotFoundError: No such pull request or issue.
        """
        ...

    def set_status(self, repo: RepoId, commit: CommitSha, status: CommitStatus) -> None:
        """
        Make sure the newest status of that context is `status`. Idempotent.

        Raises:
            NotFoundError: No such repository or commit.
        """
        ...

    def statuses(self, repo: RepoId, commit: CommitSha) -> tuple[CommitStatus, ...]:
        """
        Return the newest status of each context, sorted by context. Idempotent.

        Raises:
            NotFoundError: No such repository or commit.
        """
        ...
