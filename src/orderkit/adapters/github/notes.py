"""Comments and commit statuses on GitHub, which keeps 1,000 statuses of a context and commit."""

from __future__ import annotations

from collections.abc import Mapping

from ground.errors import NotFoundError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.calls import INVALID, MISSING, Found, done, number_in
from orderkit.adapters.forges.notes import SharedNotes
from orderkit.adapters.github.reading import GitHubReading
from orderkit.ports.forge import CommitStatus, StatusState

_STATES: Mapping[str, StatusState] = {
    "pending": "pending",
    "success": "success",
    "failure": "failure",
    "error": "error",
}
_DESCRIPTION_MAX = 140
"""Characters that GitHub takes."""
_WARNING = "warning: "
"""GitHub has no such state: our statuses that warn succeed, and their text begins so."""


class Notes(GitHubReading, SharedNotes):
    """The part of the port about comments and statuses."""

    def _comments(self, repo: RepoId, number: int, doing: str) -> list[Found]:
        try:
            path = self._path(repo, "issues", str(number), "comments")
            return list(self._pages(path, {}, doing))
        except NotFoundError:
            raise NotFoundError(f"{repo} has no pull request or issue {number}") from None

    def _new_comment(self, repo: RepoId, number: int, body: str, doing: str) -> None:
        path = self._path(repo, "issues", str(number), "comments")
        done(self._http.send("POST", path, body={"body": body}), doing)

    def _edit_comment(self, repo: RepoId, _: int, comment: Found, body: str, doing: str) -> None:
        path = self._path(repo, "issues", "comments", str(number_in(comment, "id")))
        answer = self._http.send("PATCH", path, body={"body": body})
        if answer.status != MISSING:
            done(answer, doing)

    def _delete_comment(self, repo: RepoId, _: int, comment: Found, doing: str) -> None:
        path = self._path(repo, "issues", "comments", str(number_in(comment, "id")))
        answer = self._http.send("DELETE", path)
        if answer.status != MISSING:
            done(answer, doing)

    def _post_status(
        self, repo: RepoId, commit: CommitSha, status: CommitStatus, doing: str
    ) -> bool:
        is_warning = status.state == "warning"
        text = f"{_WARNING}{status.description}" if is_warning else status.description
        body = {
            "context": status.context,
            "state": "success" if is_warning else status.state,
            "description": text[:_DESCRIPTION_MAX],
            **({"target_url": status.target_url} if status.target_url else {}),
        }
        answer = self._http.send("POST", self._path(repo, "statuses", commit), body=body)
        if answer.status == INVALID:
            if self._http.get(self._path(repo, "git", "commits", commit)).status == MISSING:
                raise NotFoundError(f"{repo} has no commit {commit}")
            raise RefusedError(
                f"{doing}: {answer.text}",
                hint="GitHub keeps 1,000 statuses of one name and commit: push a new commit",
            )
        return done(answer, doing)

    def statuses(self, repo: RepoId, commit: CommitSha) -> tuple[CommitStatus, ...]:
        """
        Return the newest status of each context, sorted by context. See the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        path = self._path(repo, "commits", commit, "status")
        doing = f"read the statuses of {commit[:8]} in {repo}"
        newest: dict[str, Found] = {}
        for entry in self._pages(path, {}, doing, inside="statuses"):
            context = str(entry.get("context"))
            if context not in newest or number_in(entry, "id") > number_in(newest[context], "id"):
                newest[context] = entry
        return tuple(_status(newest[context]) for context in sorted(newest))


def _status(entry: Found) -> CommitStatus:
    state, text = str(entry.get("state") or ""), str(entry.get("description") or "")
    found = _STATES.get(state, "error")
    if found == "success" and text.startswith(_WARNING):
        found, text = "warning", text.removeprefix(_WARNING)
    return CommitStatus(str(entry.get("context")), found, text, str(entry.get("target_url") or ""))
