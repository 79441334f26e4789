"""
The part of the forge port about changes under review: branches, pull requests and their notes.

Notes are the comments of people and the commit statuses of checks. Defines the values and the
Protocol `ForgePulls`, one of the parts of ``ports.forge.Forge``.

Reached through ``ports.forge``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

from ground.names import CommitSha, RepoId
from orderkit.ports.revisions import Commit, Operation

PullState = Literal["open", "closed", "merged"]
ReviewState = Literal["approved", "rejected"]
StatusState = Literal["pending", "success", "failure", "error", "warning"]


PLAN_CONTEXT = "orderkit/plan"
"""The context of the commit status that says what a plan came to."""


class MergeStyle(StrEnum):
    """How a pull request becomes part of its base."""

    MERGE = "merge"
    """A merge commit, always."""
    SQUASH = "squash"
    """One new commit on the base; it carries the operation's message."""


@dataclass(frozen=True, slots=True)
class ForgeUser:
    """A user of the forge. A login can change and pass to somebody else; an id never does."""

    id: int
    login: str
    is_machine: bool = field(default=False, compare=False)
    """Whether it is the account of an App, an access token or a pipeline, as the forge says."""


@dataclass(frozen=True, slots=True)
class PullDraft:
    """A pull request to open: from branch `head` into branch `base`."""

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
    """False while the forge is still checking, too; True if there is nothing to merge, too."""
    merge_commit: CommitSha | None
    web_url: str
    operation: str = ""
    """Id of our operation that opened it or changed it last; "" if there is none."""
    requester: str = ""
    """As the text of the pull request says, which everybody who may push can edit."""
    author: ForgeUser = ForgeUser(0, "")
    """Who opened it, as the forge authenticated them."""
    created: str = ""
    """RFC 3339."""


@dataclass(frozen=True, slots=True)
class Review:
    """An approval or rejection of a pull request."""

    reviewer: ForgeUser
    state: ReviewState
    commit: CommitSha
    """The head that was looked at."""
    official: bool
    """Whether the forge counts it: the reviewer could write then, and it was not dismissed."""
    when: str
    dismissed: bool = False


@dataclass(frozen=True, slots=True)
class PullEvent:
    """Something that happened to a pull request after it was opened."""

    kind: Literal["push", "retarget"]
    by: ForgeUser
    """Who did it, as the forge authenticated them."""
    when: str
    commits: tuple[CommitSha, ...] = ()
    """What a push added."""


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """The verdict of a check on a commit; only the newest of each `context` counts."""

    context: str
    state: StatusState
    description: str = ""
    target_url: str = ""


@dataclass(frozen=True, slots=True)
class OpenPullRef:
    """Where a pull request is open, and when it changed last as far as the forge says."""

    repo: RepoId
    number: int
    updated: str


class ForgePulls(Protocol):
    """
    Branches, pull requests, comments and statuses.

    `ports.forge.Forge` lists the errors that every method may raise.
    """

    def ensure_branch(self, repo: RepoId, branch: str, at: CommitSha) -> bool:
        """
        Make sure a branch exists that contains `at`. Idempotent. True if it was created.

        A branch that has moved on from `at` is not changed.

        Raises:
            ConflictError: A branch of that name exists and does not contain `at`.
            InvalidInputError: The forge refuses the name.
            NotFoundError: No such repository or commit.
        """
        ...

    def delete_branch(self, repo: RepoId, branch: str) -> bool:
        """
        Remove a branch. Idempotent. True if it existed.

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
            TooManyCommitsError: The forge does not show all of them.
        """
        ...

    def open_pull(self, repo: RepoId, draft: PullDraft, operation: Operation) -> PullRequest:
        """
        Make sure a pull request is open from ``draft.head`` into ``draft.base``. Idempotent.

        An open pull request between the two branches gets the new title and body and is returned.
        A pull request that this operation opened earlier is returned even if it was merged or
        closed since, so that a repeated command never opens a second one.

        Raises:
            RefusedError: `head` has no commit that `base` lacks: there is nothing to merge.
            NotFoundError: No such repository or branch.
        """
        ...

    def pull(self, repo: RepoId, number: int) -> PullRequest | None:
        """Return a pull request, or None if the number does not exist. Idempotent."""
        ...

    def pull_between(self, repo: RepoId, base: str, head: str) -> PullRequest | None:
        """
        Return a pull request from `head` into `base`, in whatever state; None if there is none.

        Which one, if there are several, is the forge's choice: `pulls` yields them all, but asks
        for all of the repository. Idempotent.
        """
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

    def open_pulls(self, org: str) -> Iterator[OpenPullRef]:
        """
        Yield the open pull requests of an organisation's repositories that we may see.

        One request for each page, however many repositories there are. Idempotent. A new one may
        appear seconds later.
        """
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
        Set title or body; None leaves it unchanged. Idempotent.

        Raises:
            NotFoundError: No such pull request.
        """
        ...

    def retarget_pull(self, repo: RepoId, number: int, base: str) -> bool:
        """
        Give an open pull request another base. Idempotent. True if it had another.

        Gitea forgets then who pushed to its branch.

        Raises:
            ConflictError: It is not open.
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

        Idempotent: succeeds if it is already merged at that head. While the forge checks whether
        it can be merged, this waits up to `deadline_s`.

        Raises:
            ConflictError: Its head is another commit, it was closed, or it conflicts with
                its base. Nothing was merged.
            RefusedError: A draft, nothing to merge, a style that is switched off, or a rule
                that is not met (checks, approvals). Nothing was merged.
            InProgressError: The forge was still checking it at the deadline.
            NotFoundError: No such pull request.
        """
        ...

    def reviews(self, repo: RepoId, number: int) -> tuple[Review, ...]:
        """
        Return every approval and rejection of a pull request, oldest first. Idempotent.

        Raises:
            NotFoundError: No such pull request.
        """
        ...

    def review(
        self, repo: RepoId, number: int, state: ReviewState, *, head: CommitSha, text: str
    ) -> None:
        """
        Approve or reject a pull request at a head, as whoever our credentials belong to.

        Idempotent.

        Raises:
            RefusedError: We opened it ourselves, or it is not open.
            NotFoundError: No such pull request, or we may not see it.
        """
        ...

    def pull_events(self, repo: RepoId, number: int) -> tuple[PullEvent, ...]:
        """
        Return who pushed to a pull request's branch and who changed its base, oldest first.

        Only since it was opened. A push appears seconds later if the forge is busy. Idempotent.

        Raises:
            NotFoundError: No such pull request.
        """
        ...

    def user_with_right(self, repo: RepoId, login: str) -> tuple[ForgeUser, str] | None:
        """
        Return who has a login now, and ``none``, ``read``, ``write``, ``admin`` or ``owner``.

        None if no such login exists.

        Raises:
            NotFoundError: No such repository.
        """
        ...

    def is_protected(self, repo: RepoId, branch: str, *, checks: Sequence[str]) -> bool:
        """Say whether a branch is as `protect_branch` leaves it. Idempotent."""
        ...

    def protect_branch(self, repo: RepoId, branch: str, *, checks: Sequence[str]) -> bool:
        """
        Let only owners of the organisation push to a branch or merge into it.

        Idempotent. True if that was not so. Merging also requires a success of each status in
        `checks`, for admins too. Our own account can write afterwards, whatever its right.

        Raises:
            RefusedError: Another rule of the repository counts before ours.
            NotFoundError: No such repository.
        """
        ...

    def blocking_rule(self, repo: RepoId, branch: str) -> str:
        """
        Return the protection rule that keeps our account from pushing to a branch; "" if none does.

        Raises:
            NotFoundError: No such repository or branch.
            RefusedError: The branch's newest commit is one that the forge cannot show.
        """
        ...

    def comment(self, repo: RepoId, number: int, text: str, *, marker: str) -> None:
        """
        Make sure exactly one comment of ours with this `marker` exists and says `text`. Idempotent.

        A hidden line identifies the comment. Comments of other users are never changed.

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
