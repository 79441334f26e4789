"""
Comments and commit statuses that are there once: what forges share.

Forges allow duplicate comments and only ever add statuses, so each method reads first: a hidden
line identifies our comment, and the context identifies our status.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.calls import Found, number_in, text_in
from orderkit.adapters.forges.retries import settle
from orderkit.ports.forge import CommitStatus

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
