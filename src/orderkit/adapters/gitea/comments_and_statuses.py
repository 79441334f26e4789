"""
Comments and commit statuses on Gitea.

Gitea allows duplicate comments and only ever adds statuses, so each method reads first: a hidden
line identifies our comment, and the context identifies our status.

Called through ``client.GiteaForge``; ``ports.pulls.ForgePulls`` documents the contract.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from ground.errors import NotFoundError
from ground.names import CommitSha, RepoId
from orderkit.adapters.gitea.answers import ServerError
from orderkit.adapters.gitea.calls import MISSING, Found, done, number_in, text_in
from orderkit.adapters.gitea.reading import GiteaReading
from orderkit.adapters.gitea.retries import settle
from orderkit.ports.forge import CommitStatus, StatusState

_MARKER = re.compile(r"[A-Za-z0-9._:/-]+")
_STATES: Mapping[str, StatusState] = {state: state for state in get_args(StatusState)}


class Notes(GiteaReading):
    """The part of the port about comments and statuses."""

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
                self._comment_call("DELETE", repo, double, doing)
            if ours:
                self._comment_call("PATCH", repo, ours[0], doing, body)
                return
            path = self._path(repo, "issues", str(number), "comments")
            done(self._http.send("POST", path, body={"body": body}), doing)

        settle(look, act, doing)  # read again after each try: another process may comment too

    def _our_comments(self, repo: RepoId, number: int, line: str) -> list[Found]:
        """Return the comments of our account that end in `line`, oldest first."""
        path = self._path(repo, "issues", str(number))
        doing = f"read the comments of {repo}#{number}"
        try:
            comments = list(self._pages(f"{path}/comments", {}, doing))
        except ServerError:  # Gitea 1.26.0 answers 500 for a missing issue
            if self._optional(path, doing) is None:
                raise NotFoundError(f"{repo} has no pull request or issue {number}") from None
            raise
        comments = [
            comment for comment in comments if str(comment.get("body")).rstrip().endswith(line)
        ]
        me = self.user().lower() if comments else ""
        mine = [
            comment for comment in comments if text_in(comment.get("user"), "login").lower() == me
        ]
        return sorted(mine, key=lambda comment: number_in(comment, "id"))

    def _comment_call(
        self, method: str, repo: RepoId, comment: Found, doing: str, body: str | None = None
    ) -> bool:
        path = self._path(repo, "issues", "comments", str(number_in(comment, "id")))
        answer = self._http.send(method, path, body=None if body is None else {"body": body})
        return answer.status == MISSING or done(answer, doing)

    def set_status(self, repo: RepoId, commit: CommitSha, status: CommitStatus) -> None:
        """
        Make sure the newest status of that context is `status`. Idempotent. See the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        body = {
            "context": status.context,
            "state": status.state,
            "description": status.description,
            "target_url": status.target_url,
        }
        doing = f"set status {status.context} of {commit[:8]} in {repo}"

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return True if status in self.statuses(repo, commit) else None

        def post() -> bool:
            return done(
                self._http.send("POST", self._path(repo, "statuses", commit), body=body), doing
            )

        settle(look, post, doing)

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
