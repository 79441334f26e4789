"""
Comments and commit statuses on Gitea.

Called through ``client.GiteaForge``; ``ports.pulls.ForgePulls`` documents the contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from ground.errors import NotFoundError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import ServerError
from orderkit.adapters.forges.calls import MISSING, Found, done, number_in
from orderkit.adapters.forges.notes import SharedNotes
from orderkit.adapters.gitea.reading import GiteaReading
from orderkit.ports.forge import CommitStatus, StatusState

_STATES: Mapping[str, StatusState] = {state: state for state in get_args(StatusState)}


class Notes(GiteaReading, SharedNotes):
    """The part of the port about comments and statuses."""

    def _comments(self, repo: RepoId, number: int, doing: str) -> list[Found]:
        path = self._path(repo, "issues", str(number))
        try:
            return list(self._pages(f"{path}/comments", {}, doing))
        except ServerError:  # Gitea 1.26.0 answers 500 for a missing issue
            if self._optional(path, doing) is None:
                raise NotFoundError(f"{repo} has no pull request or issue {number}") from None
            raise

    def _new_comment(self, repo: RepoId, number: int, body: str, doing: str) -> None:
        path = self._path(repo, "issues", str(number), "comments")
        done(self._http.send("POST", path, body={"body": body}), doing)

    def _edit_comment(self, repo: RepoId, _: int, comment: Found, body: str, doing: str) -> None:
        self._comment_call("PATCH", repo, comment, doing, body)

    def _delete_comment(self, repo: RepoId, _: int, comment: Found, doing: str) -> None:
        self._comment_call("DELETE", repo, comment, doing)

    def _comment_call(
        self, method: str, repo: RepoId, comment: Found, doing: str, body: str | None = None
    ) -> bool:
        path = self._path(repo, "issues", "comments", str(number_in(comment, "id")))
        answer = self._http.send(method, path, body=None if body is None else {"body": body})
        return answer.status == MISSING or done(answer, doing)

    def _post_status(
        self, repo: RepoId, commit: CommitSha, status: CommitStatus, doing: str
    ) -> bool:
        body = {
            "context": status.context,
            "state": status.state,
            "description": status.description,
            "target_url": status.target_url,
        }
        return done(self._http.send("POST", self._path(repo, "statuses", commit), body=body), doing)

    def statuses(self, repo: RepoId, commit: CommitSha) -> tuple[CommitStatus, ...]:
        """
        Return the newest status of each context, sorted by context. See the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        path = self._path(repo, "commits", commit, "status")
        entries = self._pages(path, {}, f"read the statuses of {commit[:8]} in {repo}")
        newest: dict[str, Found] = {}
        for entry in entries:
            context = str(entry.get("context"))
            if context not in newest or number_in(entry, "id") > number_in(newest[context], "id"):
                newest[context] = entry
        return tuple(_status(newest[context]) for context in sorted(newest))


def _status(entry: Found) -> CommitStatus:
    """Read a status; Gitea returns the sent ``state`` as ``status``."""
    state = str(entry.get("status") or entry.get("state") or "")
    return CommitStatus(
        str(entry.get("context")),
        _STATES.get(state, "success" if state == "skipped" else "error"),
        str(entry.get("description") or ""),
        str(entry.get("target_url") or ""),
    )
