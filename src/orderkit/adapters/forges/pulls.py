"""
Pull requests, their branches, comments and statuses, each safe to repeat: what forges share.

`SharedPulls` opens, finds, updates and closes pull requests. A hidden line at the end of the body
carries operation and requester, so that a repeated command recognises its own pull request even
after it was merged.

`SharedNotes` keeps comments and commit statuses that are there once. Forges allow duplicate
comments and only ever add statuses, so each method reads first: a hidden line identifies our
comment, and the context identifies our status.

`SharedBranches` makes and removes branches.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal

from ground.errors import ConflictError, NotFoundError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import settle
from orderkit.adapters.forges.calls import Found, number_in, text_in
from orderkit.ports.forge import Commit, CommitStatus, Operation, PullDraft, PullRequest

_MARKER = re.compile(r"[A-Za-z0-9._:/-]+")


class SharedNotes(ABC):
    """The part of the port about comments and statuses that no forge differs in."""

    @abstractmethod
    def user(self) -> str: ...

    @abstractmethod
    def statuses(self, repo: RepoId, commit: CommitSha) -> tuple[CommitStatus, ...]: ...

    @abstractmethod
    def _comments(self, repo: RepoId, number: int, doing: str) -> list[Found]:
        """
        Return all comments, each with ``id``, ``body`` and its author.

        Raises:
            NotFoundError: No such pull request or issue.
        """

    def _comment_author(self, comment: Found) -> str:
        return text_in(comment.get("user"), "login")

    @abstractmethod
    def _new_comment(self, repo: RepoId, number: int, body: str, doing: str) -> None: ...

    @abstractmethod
    def _edit_comment(
        self, repo: RepoId, number: int, /, comment: Found, body: str, doing: str
    ) -> None: ...

    @abstractmethod
    def _delete_comment(self, repo: RepoId, number: int, /, comment: Found, doing: str) -> None: ...

    @abstractmethod
    def _post_status(
        self, repo: RepoId, commit: CommitSha, status: CommitStatus, doing: str
    ) -> bool:
        """Add the status, once."""

    def comment(self, repo: RepoId, number: int, text: str, *, marker: str) -> None:
        """
        Make sure exactly one comment of ours with `marker` says `text`. Idempotent. See the port.

        Raises:
            NotFoundError: No such pull request or issue.
        """
        if not _MARKER.fullmatch(marker) or "--" in marker:
            raise ValueError(f"marker {marker!r} holds more than letters, digits and ._:/-")
        line = f"<!-- orderkit-comment: {marker} -->"
        body, doing = f"{text.rstrip()}\n\n{line}\n", f"comment on {repo}#{number}"
        ours: list[Found] = []

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            ours[:] = self._our_comments(repo, number, line)
            texts = [str(comment.get("body")).strip() for comment in ours]
            return True if texts == [body.strip()] else None

        def act() -> None:
            for double in ours[1:]:
                self._delete_comment(repo, number, double, doing)
            if ours:
                self._edit_comment(repo, number, ours[0], body, doing)
                return
            self._new_comment(repo, number, body, doing)

        settle(look, act, doing)  # read again after each try: another process may comment too

    def _our_comments(self, repo: RepoId, number: int, line: str) -> list[Found]:
        """Return the comments of our account that end in `line`, oldest first."""
        doing = f"read the comments of {repo}#{number}"
        comments = self._comments(repo, number, doing)
        comments = [
            comment for comment in comments if str(comment.get("body")).rstrip().endswith(line)
        ]
        me = self.user().lower() if comments else ""
        mine = [comment for comment in comments if self._comment_author(comment).lower() == me]
        return sorted(mine, key=lambda comment: number_in(comment, "id"))

    def set_status(self, repo: RepoId, commit: CommitSha, status: CommitStatus) -> None:
        """
        Make sure the newest status of that context is `status`. Idempotent. See the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        doing = f"set status {status.context} of {commit[:8]} in {repo}"

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return True if status in self.statuses(repo, commit) else None

        settle(look, lambda: self._post_status(repo, commit, status, doing), doing)


_LINE = re.compile(r"\s*<!-- orderkit-operation: (\S+) requester: (.*?) -->\s*\Z")


class SharedPulls(ABC):
    """The part of the port about pull requests that no forge differs in."""

    @abstractmethod
    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]: ...

    @abstractmethod
    def pull(self, repo: RepoId, number: int) -> PullRequest | None: ...

    @abstractmethod
    def pull_between(self, repo: RepoId, base: str, head: str) -> PullRequest | None: ...

    @abstractmethod
    def pulls(
        self,
        repo: RepoId,
        *,
        state: Literal["open", "closed", "all"] = "open",
        base: str | None = None,
        head: str | None = None,
    ) -> Iterator[PullRequest]: ...

    @abstractmethod
    def _new_pull(self, repo: RepoId, draft: PullDraft, body: str, doing: str) -> PullRequest:
        """Open it with this body, once."""

    @abstractmethod
    def _edit_pull(
        self, repo: RepoId, number: int, title: str | None, body: str, doing: str
    ) -> PullRequest | None:
        """Set body and, unless None, title; None if another writer of the text was faster."""

    @abstractmethod
    def _retarget_pull(self, repo: RepoId, number: int, base: str, doing: str) -> bool:
        """Give it another base, once."""

    @abstractmethod
    def _close_pull(self, repo: RepoId, number: int, doing: str) -> bool:
        """Close it, once."""

    def open_pull(self, repo: RepoId, draft: PullDraft, operation: Operation) -> PullRequest:
        """
        Make sure a pull request is open from ``draft.head`` into ``draft.base``. See the port.

        Raises:
            RefusedError: `head` has no commit that `base` lacks.
            NotFoundError: No such repository or branch.
        """
        doing = f"open a pull request from {draft.head} in {repo}"

        def look(_: bool) -> PullRequest | None:  # noqa: FBT001  settle's shape
            return self._pull_between(repo, draft, operation)

        def create() -> PullRequest:
            if not self.compare(repo, draft.base, draft.head):
                raise RefusedError(
                    f"{doing}: {draft.base} has all its commits already",
                    hint="there is nothing to merge; write a change to the branch first",
                )
            pull = self._new_pull(repo, draft, with_line(draft.body, operation), doing)
            return self._one_pull(repo, pull)

        existing = settle(look, create, doing)
        if existing.state != "open":
            return existing
        return self.update_pull(
            repo, existing.number, operation, title=draft.title, body=draft.body, current=existing
        )

    def _one_pull(self, repo: RepoId, pull: PullRequest) -> PullRequest:
        """Close our new pull request if another process opened one first; return the one to use."""
        open_pulls = self.pulls(repo, base=pull.base, head=pull.head)
        first = min(open_pulls, key=lambda candidate: candidate.number, default=pull)
        if first.number < pull.number:  # Gitea 1.26.0 can miss a duplicate that is opened at once
            self.close_pull(repo, pull.number)
            return first
        return pull

    def _pull_between(
        self, repo: RepoId, draft: PullDraft, operation: Operation
    ) -> PullRequest | None:
        """Return the open pull request between two branches, or one that this operation opened."""
        pull = self.pull_between(repo, draft.base, draft.head)
        if pull is None or pull.state == "open" or pull.operation == operation.id:
            return pull
        for candidate in self.pulls(repo, state="all", base=draft.base, head=draft.head):
            if candidate.state == "open" or candidate.operation == operation.id:
                return candidate
        return None

    def update_pull(
        self,
        repo: RepoId,
        number: int,
        operation: Operation,
        *,
        title: str | None = None,
        body: str | None = None,
        current: PullRequest | None = None,
    ) -> PullRequest:
        """
        Set title or body. Idempotent. See the port.

        Args:
            current: The pull request if it was just read; saves one request.

        Raises:
            NotFoundError: No such pull request.
        """
        first = [current] if current else []

        def look(_: bool) -> PullRequest | None:  # noqa: FBT001  settle's shape
            now = first.pop() if first else self._pull_or_raise(repo, number)
            up_to_date = (
                title in (None, now.title)
                and (body is None or body.rstrip() == now.body)
                and now.operation == operation.id
            )
            return now if up_to_date else None

        def patch() -> PullRequest | None:
            return self._patch(repo, number, operation, title=title, body=body)

        return settle(look, patch, f"update pull request {repo}#{number}")

    def _patch(
        self,
        repo: RepoId,
        number: int,
        operation: Operation,
        *,
        title: str | None,
        body: str | None,
    ) -> PullRequest | None:
        """Send the change; None if the forge lost a race against another writer of the text."""
        text = body if body is not None else self._pull_or_raise(repo, number).body
        doing = f"update pull request {repo}#{number}"
        return self._edit_pull(repo, number, title, with_line(text, operation), doing)

    def retarget_pull(self, repo: RepoId, number: int, base: str) -> bool:
        """
        Give an open pull request another base. Idempotent. See the port.

        Raises:
            NotFoundError: No such pull request.
            ConflictError: It is not open.
        """
        doing = f"let pull request {repo}#{number} go to {base}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            now = self._pull_or_raise(repo, number)
            if now.state != "open":
                raise ConflictError(f"{doing}: it is {now.state}", hint="open a new one")
            return attempted if now.base == base else None

        return settle(look, lambda: self._retarget_pull(repo, number, base, doing), doing)

    def close_pull(self, repo: RepoId, number: int) -> bool:
        """
        Close a pull request without merging it. Idempotent. See the port.

        Raises:
            NotFoundError: No such pull request.
            ConflictError: It was merged.
        """
        doing = f"close pull request {repo}#{number}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            now = self._pull_or_raise(repo, number)
            if now.state == "merged":
                raise ConflictError(f"{doing}: it was merged", hint="revert it by a new change")
            return attempted if now.state == "closed" else None

        return settle(look, lambda: self._close_pull(repo, number, doing), doing)

    def _pull_or_raise(self, repo: RepoId, number: int) -> PullRequest:
        pull = self.pull(repo, number)
        if pull is None:
            raise NotFoundError(f"{repo} has no pull request {number}")
        return pull


def with_line(text: str, operation: Operation) -> str:
    """Return the body of a pull request with the hidden line of its operation."""
    line = f"<!-- orderkit-operation: {operation.id} requester: {operation.requester} -->"
    return f"{text.rstrip()}\n\n{line}\n".lstrip("\n")


def split_line(text: str) -> tuple[str, str, str]:
    """Return the body without its hidden line, and the operation and requester that it names."""
    text = text.replace("\r\n", "\n")
    line = _LINE.search(text)
    if line is None:
        return text.rstrip(), "", ""
    return text[: line.start()].rstrip(), line[1], line[2]


class SharedBranches(ABC):
    """The part of the port about branches that no forge differs in."""

    @abstractmethod
    def head(self, repo: RepoId, branch: str = "main") -> CommitSha | None: ...

    @abstractmethod
    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]: ...

    @abstractmethod
    def _new_branch(self, repo: RepoId, branch: str, at: CommitSha, doing: str) -> bool:
        """
        Make the branch, once.

        Raises:
            InvalidInputError: The forge refuses the name.
            NotFoundError: No such commit.
        """

    @abstractmethod
    def _drop_branch(self, repo: RepoId, branch: str, doing: str) -> bool:
        """
        Remove the branch, once; False if there is none.

        Raises:
            RefusedError: It is the default branch, protected, or the base of a pull request.
        """

    def ensure_branch(self, repo: RepoId, branch: str, at: CommitSha) -> bool:
        """
        Make sure a branch exists that contains `at`. Idempotent. See the port.

        Raises:
            ConflictError: A branch of that name exists and does not contain `at`.
            InvalidInputError: The forge refuses the name.
            NotFoundError: No such repository or commit.
        """
        doing = f"create branch {branch} of {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            head = self.head(repo, branch)
            if head is None:
                return None
            if head != at and self.compare(repo, head, at):
                raise ConflictError(f"{repo} has a branch {branch} without commit {at[:8]}")
            return attempted and head == at

        return settle(look, lambda: self._new_branch(repo, branch, at, doing), doing)

    def delete_branch(self, repo: RepoId, branch: str) -> bool:
        """
        Remove a branch. Idempotent. See the port.

        Raises:
            RefusedError: It is the default branch, protected, or the base of a pull request.
        """
        doing = f"delete branch {branch} of {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return True if attempted and self.head(repo, branch) is None else None

        return settle(look, lambda: self._drop_branch(repo, branch, doing), doing)
