"""
Notes and commit statuses on GitLab.

Source: doc/api/notes.md, commits.md "Commit status". GitLab has no ``warning`` and no ``error``;
it refuses a state that a status has already, also with another text: then the old text stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from ground.errors import NotFoundError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.calls import BAD, MISSING, Found, number_in, text_in
from orderkit.adapters.forges.notes import SharedNotes
from orderkit.adapters.forges.retries import settle
from orderkit.adapters.gitlab.calls import done
from orderkit.adapters.gitlab.reading import GitLabReading
from orderkit.ports.forge import CommitStatus, StatusState

_STATES: Mapping[StatusState, str] = {
    "pending": "pending",
    "success": "success",
    "failure": "failed",
    "error": "canceled",
    "warning": "skipped",
}
_STATE_OF = {theirs: ours for ours, theirs in _STATES.items()} | {"running": "pending"}


class GitLabNotes(GitLabReading, SharedNotes):
    """The part of the port about comments and statuses."""

    def _notes(self, repo: RepoId, number: int) -> str:
        return self._project(repo, "merge_requests", str(number), "notes")

    def _comments(self, repo: RepoId, number: int, doing: str) -> list[Found]:
        query = {"sort": "asc", "order_by": "created_at"}
        notes = self._pages(self._notes(repo, number), query, doing)
        try:
            return [note for note in notes if not note.get("system")]
        except NotFoundError as error:
            raise NotFoundError(f"{repo} has no pull request or issue {number}") from error

    def _comment_author(self, comment: Found) -> str:
        return text_in(comment.get("author"), "username")

    def _new_comment(self, repo: RepoId, number: int, body: str, doing: str) -> None:
        done(self._http.send("POST", self._notes(repo, number), body={"body": body}), doing)

    def _edit_comment(
        self, repo: RepoId, number: int, comment: Found, body: str, doing: str
    ) -> None:
        path = f"{self._notes(repo, number)}/{number_in(comment, 'id')}"
        answer = self._http.send("PUT", path, body={"body": body})
        if answer.status != MISSING:
            done(answer, doing)

    def _delete_comment(self, repo: RepoId, number: int, comment: Found, doing: str) -> None:
        path = f"{self._notes(repo, number)}/{number_in(comment, 'id')}"
        answer = self._http.send("DELETE", path)
        if answer.status != MISSING:
            done(answer, doing)

    def set_status(self, repo: RepoId, commit: CommitSha, status: CommitStatus) -> None:
        """
        Make sure the newest status of that context has the state of `status`. See the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        doing = f"set status {status.context} of {commit[:8]} in {repo}"
        refused: list[bool] = []

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            now = {each.context: each for each in self.statuses(repo, commit)}.get(status.context)
            is_there = now == status or (refused and now and now.state == status.state)
            return True if is_there else None

        def post() -> bool | None:
            answer = self._send_status(repo, commit, status)
            if answer.status == BAD:
                refused.append(True)
                if look(True):  # noqa: FBT003  settle's shape
                    return True
            return done(answer, doing)

        settle(look, post, doing)

    def _post_status(
        self, repo: RepoId, commit: CommitSha, status: CommitStatus, doing: str
    ) -> bool:
        return done(self._send_status(repo, commit, status), doing)

    def _send_status(self, repo: RepoId, commit: CommitSha, status: CommitStatus) -> ForgeResponse:
        body = {
            "name": status.context,
            "state": _STATES[status.state],
            "description": status.description,
            "target_url": status.target_url,
        }
        body = {key: value for key, value in body.items() if value}
        return self._http.send("POST", self._project(repo, "statuses", commit), body=body)

    def statuses(self, repo: RepoId, commit: CommitSha) -> tuple[CommitStatus, ...]:
        """
        Return the newest status of each context, sorted by context. See the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        path = self._project(repo, "repository", "commits", commit, "statuses")
        newest: dict[str, Found] = {}
        for entry in self._pages(path, {}, f"read the statuses of {commit[:8]} in {repo}"):
            name = text_in(entry, "name")
            if name not in newest or number_in(entry, "id") > number_in(newest[name], "id"):
                newest[name] = entry
        return tuple(_status(newest[name]) for name in sorted(newest))


def _status(entry: Found) -> CommitStatus:
    return CommitStatus(
        text_in(entry, "name"),
        _STATE_OF.get(str(entry.get("status")), "error"),
        str(entry.get("description") or ""),
        str(entry.get("target_url") or ""),
    )
