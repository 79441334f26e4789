"""
Merge requests on GitLab, with their branches, notes and commit statuses.

`GitLabPulls` opens, finds, updates and closes them; ``merging`` merges them. Source:
doc/api/branches.md, repositories.md "Compare", merge_requests.md.

`GitLabNotes` has notes and commit statuses. Source: doc/api/notes.md, commits.md "Commit status".
GitLab has no ``warning`` and no ``error``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from ground.errors import InvalidInputError, NotFoundError, RefusedError, RemoteError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import ForgeResponse, settle
from orderkit.adapters.forges.calls import (
    BAD,
    FORBIDDEN,
    MISSING,
    NOT_NOW,
    Found,
    list_in,
    number_in,
    object_in,
    text_in,
)
from orderkit.adapters.forges.pulls import SharedBranches, SharedNotes, SharedPulls, split_line
from orderkit.adapters.gitlab.reading import GitLabReading, commit_of, ref_of
from orderkit.adapters.gitlab.transport import checked, done, person
from orderkit.adapters.gitlab.writing import GitLabWriting
from orderkit.core.platform.forge_kinds import GITLAB
from orderkit.ports.forge import (
    Commit,
    CommitStatus,
    OpenPullRef,
    PullDraft,
    PullRequest,
    PullState,
    StatusState,
)

_STATUS_STATES: Mapping[StatusState, str] = {
    "pending": "pending",
    "success": "success",
    "failure": "failed",
    "error": "canceled",
    "warning": "skipped",
}
_STATE_OF = {theirs: ours for ours, theirs in _STATUS_STATES.items()} | {"running": "pending"}


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
            # GitLab refuses a state that a status has already: then the old text stays
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
            "state": _STATUS_STATES[status.state],
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


_STATES: dict[str, PullState] = {"opened": "open", "locked": "open", "merged": "merged"}
_ASKED = {"open": "opened", "closed": "all", "all": "all"}
UNDECIDED = ("unchecked", "checking", "preparing", "approvals_syncing", "")
CONFLICTS = ("conflict", "broken_status", "need_rebase")


class GitLabPulls(GitLabWriting, GitLabNotes, SharedBranches, SharedPulls):
    """The part of the port about branches and merge requests, without merging."""

    def _new_branch(self, repo: RepoId, branch: str, at: CommitSha, doing: str) -> bool:
        body = {"branch": branch, "ref": at}
        answer = self._http.send("POST", self._project(repo, "repository", "branches"), body=body)
        if answer.status == BAD and self.head(repo, branch) is None:
            path = self._project(repo, "repository", "commits", at)
            if self._optional(path, doing) is None:
                raise NotFoundError(f"{repo} has no commit {at}")
            raise InvalidInputError("branch", branch, f"is refused: {answer.text}")
        self._refuse_archived(repo, answer.status, doing)
        return done(answer, doing)

    def _drop_branch(self, repo: RepoId, branch: str, doing: str) -> bool:
        path = self._project(repo, "repository", "branches", branch)
        answer = self._http.send("DELETE", path)
        if answer.status == MISSING:
            return False
        if answer.status in (BAD, FORBIDDEN, NOT_NOW):
            repository = self.repo(repo)
            if repository is not None and repository.default_branch == branch:
                raise RefusedError(f"{doing}: it is the default branch")
            raise RefusedError(f"{doing}: {answer.text}")
        return done(answer, doing)

    def _refuse_archived(self, repo: RepoId, status: int, doing: str) -> None:
        """
        Name an archived project as the cause of a refusal.

        Raises:
            RefusedError: It is archived.
        """
        if status not in (FORBIDDEN, NOT_NOW, MISSING):
            return
        repository = self.repo(repo)
        if repository is not None and repository.archived:
            raise RefusedError(
                f"archived, hence read-only: {doing}", hint="unarchive it in the forge"
            )

    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]:
        """
        Return the commits in `head` that are not in `base`, newest first. See the port.

        Raises:
            NotFoundError: No such repository, branch or commit.
        """
        doing = f"compare {base} with {head} in {repo}"
        query = {"from": ref_of(base), "to": ref_of(head)}
        answer = self._http.get(self._project(repo, "repository", "compare"), query)
        if answer.status == MISSING:
            raise NotFoundError(f"{doing}: one of them does not exist")
        comparison = object_in(checked(answer, doing), doing)
        if comparison.get("compare_timeout"):
            raise RemoteError(f"{doing}: the forge was not done in its time")
        # GitLab begins with the oldest
        return tuple(commit_of(entry) for entry in list_in(comparison.get("commits") or []))[::-1]

    def pull(self, repo: RepoId, number: int) -> PullRequest | None:
        """Return a pull request, or None if the number does not exist; see the port."""
        entry = self._pull_object(repo, number)
        return self._pull_of(entry, repo) if entry is not None else None

    def _pull_object(self, repo: RepoId, number: int) -> Found | None:
        path = self._project(repo, "merge_requests", str(number))
        return self._optional(path, f"read pull request {repo}#{number}")

    def pull_between(self, repo: RepoId, base: str, head: str) -> PullRequest | None:
        """Return a pull request between two branches, an open one first; see the port."""
        found: PullRequest | None = None
        try:
            for pull in self.pulls(repo, state="all", base=base, head=head):
                if pull.state == "open":
                    return pull
                found = found or pull
        except NotFoundError:
            return None
        return found

    def pulls(
        self,
        repo: RepoId,
        *,
        state: Literal["open", "closed", "all"] = "open",
        base: str | None = None,
        head: str | None = None,
    ) -> Iterator[PullRequest]:
        """Yield pull requests, newest first; see the port."""
        query = {"state": _ASKED[state], "order_by": "created_at", "sort": "desc", "scope": "all"}
        query |= {"target_branch": base} if base else {}
        query |= {"source_branch": head} if head else {}
        path = self._project(repo, "merge_requests")
        for item in self._pages(path, query, f"list pulls of {repo}", key="iid"):
            if head and not is_own(item):
                continue  # a stranger's fork may have a branch of the same name
            pull = self._pull_of(item, repo)
            if state != "closed" or pull.state != "open":
                yield pull

    def open_pulls(self, org: str) -> Iterator[OpenPullRef]:
        """Yield the open pull requests of an organisation; see the port."""
        query = {"state": "opened", "scope": "all"}
        doing = f"list the open pull requests of {org}"
        for item in self._pages(self._org(org, "merge_requests"), query, doing):
            full = text_in(item.get("references"), "full")
            repo = self.repository_named(full.rpartition("!")[0])
            if repo is not None and repo.owner == org:
                yield OpenPullRef(repo, number_in(item, "iid"), str(item.get("updated_at") or ""))

    def _new_pull(self, repo: RepoId, draft: PullDraft, body: str, doing: str) -> PullRequest:
        fields = {
            "source_branch": draft.head,
            "target_branch": draft.base,
            "title": draft.title,
            "description": body,
        }
        answer = self._http.send("POST", self._project(repo, "merge_requests"), body=fields)
        self._refuse_archived(repo, answer.status, doing)
        return self._pull_of(object_in(checked(answer, doing), doing), repo)

    def _edit_pull(
        self, repo: RepoId, number: int, title: str | None, body: str, doing: str
    ) -> PullRequest | None:
        change = {"description": body} | ({} if title is None else {"title": title})
        answer = self._change_pull(repo, number, change, doing)
        return self._pull_of(object_in(answer, doing), repo)

    def _retarget_pull(self, repo: RepoId, number: int, base: str, doing: str) -> bool:
        return self._change_pull(repo, number, {"target_branch": base}, doing).ok

    def _close_pull(self, repo: RepoId, number: int, doing: str) -> bool:
        return self._change_pull(repo, number, {"state_event": "close"}, doing).ok

    def _change_pull(
        self, repo: RepoId, number: int, change: dict[str, str], doing: str
    ) -> ForgeResponse:
        path = self._project(repo, "merge_requests", str(number))
        return checked(self._http.send("PUT", path, body=change), doing)

    def _pull_of(self, entry: Found, repo: RepoId) -> PullRequest:
        number = number_in(entry, "iid")
        body, operation, requester = split_line(str(entry.get("description") or ""))
        state = _STATES.get(str(entry.get("state")), "closed")
        merged = entry.get("merge_commit_sha") or entry.get("squash_commit_sha")
        status = str(entry.get("detailed_merge_status") or "")
        return PullRequest(
            number=number,
            title=str(entry.get("title") or ""),
            body=body,
            state=state,
            draft=bool(entry.get("draft")),
            head=text_in(entry, "source_branch"),
            head_commit=CommitSha(text_in(entry, "sha")),
            base=text_in(entry, "target_branch"),
            mergeable=status not in (*UNDECIDED, *CONFLICTS),
            merge_commit=CommitSha(str(merged)) if state == "merged" and merged else None,
            web_url=f"{self.base_url}/{repo}/{GITLAB.pages.pull}{number}",
            operation=operation,
            requester=requester,
            author=person(entry.get("author")),
            created=str(entry.get("created_at") or ""),
        )


def is_own(entry: Found) -> bool:
    """Say whether a merge request comes from a branch of the project itself, and not of a fork."""
    return entry.get("source_project_id") == entry.get("target_project_id")
