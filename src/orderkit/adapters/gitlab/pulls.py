"""
Merge requests on GitLab, with their branches, notes and commit statuses, and their merge.

`GitLabPulls` opens, finds, updates and closes them. Source:
doc/api/branches.md, repositories.md "Compare", merge_requests.md.

`GitLabNotes` has notes and commit statuses. Source: doc/api/notes.md, commits.md "Commit status".
GitLab has no ``warning`` and no ``error``.

`GitLabMerging` merges a merge request once, at the head that was reviewed, or reports why not.
GitLab refuses with 405 whatever is not met, and says in ``detailed_merge_status`` what it is
(doc/api/merge_requests.md, "Merge status"); so that decides, and never a text. Where a project has
merge trains (doc/api/merge_trains.md), the train merges it later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ground.errors import (
    AccessError,
    ConflictError,
    InProgressError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
)
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import ForgeResponse, archived, settle
from orderkit.adapters.forges.calls import (
    BAD,
    CONFLICT,
    FORBIDDEN,
    MISSING,
    NOT_NOW,
    UNAUTHORIZED,
    Found,
    checked,
    done,
    list_in,
    number_in,
    object_in,
    text_in,
)
from orderkit.adapters.forges.merging import (
    MergeRequest,
    QueuedMerge,
    SharedMerging,
    Sides,
    checking,
    late_head,
)
from orderkit.adapters.forges.pulls import AskedState, SharedNotes, SharedPulls, split_line
from orderkit.adapters.forges.repositories import SharedBranches
from orderkit.adapters.forges.transport import Query
from orderkit.adapters.gitlab.reading import GitLabReading, ref_of
from orderkit.adapters.gitlab.transport import person
from orderkit.adapters.gitlab.writing import GitLabWriting
from orderkit.core.platform.forge_kinds import GITLAB
from orderkit.ports.forge import (
    Commit,
    CommitStatus,
    MergeStyle,
    OpenPullRef,
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

    def _comments_path(self, repo: RepoId, number: int) -> str:
        return self._path(repo, "merge_requests", str(number), "notes")

    def _comment_path(self, repo: RepoId, number: int, comment: Found, /) -> str:
        return f"{self._comments_path(repo, number)}/{number_in(comment, 'id')}"

    def _comments(self, repo: RepoId, number: int, doing: str) -> list[Found]:
        query = {"sort": "asc", "order_by": "created_at"}
        notes = self._pages(self._comments_path(repo, number), query, doing)
        try:
            return [note for note in notes if not note.get("system")]
        except NotFoundError as error:
            raise NotFoundError(f"{repo} has no pull request or issue {number}") from error

    def _comment_author(self, comment: Found) -> str:
        return text_in(comment.get("author"), "username")

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
        return self._http.send("POST", self._path(repo, "statuses", commit), body=body)

    def _statuses(self, repo: RepoId, commit: CommitSha, doing: str) -> Iterator[Found]:
        return self._pages(self._path(repo, "repository", "commits", commit, "statuses"), {}, doing)

    def _status_of(self, entry: Found) -> CommitStatus:
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

    pulls_name: ClassVar[str] = "merge_requests"
    pull_key: ClassVar[str] = "iid"
    head_field: ClassVar[str] = "source_branch"
    base_field: ClassVar[str] = "target_branch"
    body_field: ClassVar[str] = "description"
    closing: ClassVar[Found] = {"state_event": "close"}

    def _new_branch(self, repo: RepoId, branch: str, at: CommitSha, doing: str) -> bool:
        body = {"branch": branch, "ref": at}
        answer = self._http.send("POST", self._path(repo, "repository", "branches"), body=body)
        if answer.status == BAD and self.head(repo, branch) is None:
            path = self._path(repo, "repository", "commits", at)
            if self._optional(path, doing) is None:
                raise NotFoundError(f"{repo} has no commit {at}")
            raise InvalidInputError("branch", branch, f"is refused: {answer.text}")
        self._refuse_archived(repo, answer.status, doing)
        return done(answer, doing)

    def _drop_branch(self, repo: RepoId, branch: str, doing: str) -> bool:
        path = self._path(repo, "repository", "branches", branch)
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
            raise archived(doing)

    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]:
        """
        Return the commits in `head` that are not in `base`, newest first. See the port.

        Raises:
            NotFoundError: No such repository, branch or commit.
        """
        doing = f"compare {base} with {head} in {repo}"
        query = {"from": ref_of(base), "to": ref_of(head)}
        answer = self._http.get(self._path(repo, "repository", "compare"), query)
        if answer.status == MISSING:
            raise NotFoundError(f"{doing}: one of them does not exist")
        comparison = object_in(checked(answer, doing), doing)
        if comparison.get("compare_timeout"):
            raise RemoteError(f"{doing}: the forge was not done in its time")
        # GitLab begins with the oldest
        return tuple(map(self._commit_of, list_in(comparison.get("commits") or [])))[::-1]

    def _pull_query(self, _: RepoId, state: AskedState, base: str, head: str, /) -> Query:
        query = {"state": _ASKED[state], "order_by": "created_at", "sort": "desc", "scope": "all"}
        query |= {"target_branch": base} if base else {}
        return query | ({"source_branch": head} if head else {})

    def _is_asked(self, entry: Found, state: AskedState, head: str, /) -> bool:
        # a stranger's fork may have a branch of the same name
        is_here = not head or is_own(entry)
        return is_here and (state != "closed" or _state_of(entry) != "open")

    def open_pulls(self, org: str) -> Iterator[OpenPullRef]:
        """Yield the open pull requests of an organisation; see the port."""
        query = {"state": "opened", "scope": "all"}
        doing = f"list the open pull requests of {org}"
        for item in self._pages(self._org(org, "merge_requests"), query, doing):
            full = text_in(item.get("references"), "full")
            repo = self.repository_named(full.rpartition("!")[0])
            if repo is not None and repo.owner == org:
                yield OpenPullRef(repo, number_in(item, "iid"), str(item.get("updated_at") or ""))

    def _pull_of(self, entry: Found, repo: RepoId) -> PullRequest:
        number = number_in(entry, "iid")
        body, operation, requester = split_line(str(entry.get("description") or ""))
        state = _state_of(entry)
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


def _state_of(entry: Found) -> PullState:
    return _STATES.get(str(entry.get("state")), "closed")


def is_own(entry: Found) -> bool:
    """Say whether a merge request comes from a branch of the project itself, and not of a fork."""
    return entry.get("source_project_id") == entry.get("target_project_id")


_REASONS = {
    "ci_must_pass": "a check did not succeed",
    "ci_still_running": "a check is still running",
    "not_approved": "an approval is missing",
    "requested_changes": "a reviewer asked for changes",
    "discussions_not_resolved": "a discussion is not resolved",
    "draft_status": "it is a draft",
    "status_checks_must_pass": "an external check did not succeed",
    "merge_time": "it is to be merged later",
}
_LEFT = ("merged", "skip_merged")
"""States of a merge request that has left its train."""
_NO_COMMITS = "commits_status"
_ENDED = "not_open"  # merged or closed since our read, which the next round tells apart


class GitLabMerging(GitLabPulls, SharedMerging):
    """The part of the port that merges."""

    def _merge(self, request: MergeRequest, end_s: float) -> _Merge:
        return _Merge(self, request, end_s)

    def request_merge(self, request: MergeRequest) -> ForgeResponse:
        """
        Ask GitLab once for the merge.

        Raises:
            OrderkitError: No answer, or as the transport says.
        """
        message = request.operation.message
        body = {
            "sha": request.head,
            "squash": request.style is MergeStyle.SQUASH,
            "merge_commit_message": message,
            "squash_commit_message": message,
            "should_remove_source_branch": False,
        }
        path = self._pull_path(request.repo, request.number, "merge")
        return self._http.send("PUT", path, body=body)

    def has_trains(self, repo: RepoId) -> bool:
        """Say whether a project's merge requests wait on merge trains."""
        entry = self._optional(self._path(repo), f"read {repo}") or {}
        return bool(entry.get("merge_trains_enabled"))

    def is_waiting(self, request: MergeRequest) -> bool:
        """Say whether a merge request is on the train of its target branch."""
        answer = self._http.get(self._train_place(request))
        return answer.ok and answer.json().get("status") not in _LEFT

    def enqueue(self, request: MergeRequest) -> None:
        """
        Put a merge request on the train of its target branch.

        Raises:
            OrderkitError: GitLab refuses it.
        """
        body = {"sha": request.head, "squash": request.style is MergeStyle.SQUASH}
        answer = self._http.send("POST", self._train_place(request), body=body)
        if answer.status == CONFLICT:
            raise late_head(request)
        if answer.status == BAD and not self.is_waiting(request):
            status = self.merge_status(request.repo, request.number)
            if status in CONFLICTS:
                raise ConflictError(f"{request}: it conflicts with its base")
            if status in UNDECIDED or status in ("mergeable", _ENDED):
                raise checking(request)
            reason = _REASONS.get(status, answer.text)
            raise RefusedError(
                f"{request}: the merge train does not take it: {reason}",
                hint="see which checks, approvals or styles the forge asks for",
            )
        if answer.status != BAD:
            checked(answer, str(request))

    def _train_place(self, request: MergeRequest) -> str:
        number = str(request.number)
        return self._path(request.repo, "merge_trains", "merge_requests", number)

    def merged_head(self, repo: RepoId, number: int) -> CommitSha | None:
        """Return the head at which a pull request was merged: GitLab keeps it."""
        return self._pull_or_raise(repo, number).head_commit

    def sides(self, repo: RepoId, number: int) -> Sides | None:
        """Return where the branches of a pull request parted and what they hold now."""
        entry = self._pull_object(repo, number) or {}
        refs = entry.get("diff_refs") or {}
        before, theirs = str(refs.get("base_sha") or ""), str(entry.get("sha") or "")
        ours = self.head(repo, str(entry.get("target_branch")))
        return (CommitSha(before), ours, CommitSha(theirs)) if before and ours and theirs else None

    def merge_status(self, repo: RepoId, number: int) -> str:
        """Return GitLab's word for what keeps a pull request from being merged."""
        return str((self._pull_object(repo, number) or {}).get("detailed_merge_status") or "")

    def refuse_style(self, request: MergeRequest) -> None:
        """
        Refuse a style that is switched off, and a merge in an archived project.

        Raises:
            RefusedError: It is.
        """
        repository = self.repo(request.repo)
        if repository is None:
            return
        if repository.archived:
            raise archived(str(request))
        if request.style is MergeStyle.SQUASH and not repository.may_squash:
            raise RefusedError(f"{request}: squash is not allowed in this repository")


@dataclass(slots=True)
class _Merge(QueuedMerge[GitLabMerging]):
    """One merge on GitLab."""

    def _send_merge(self) -> CommitSha | OrderkitError:
        """Ask for the merge, or for a place on the train where there are trains."""
        if not self.in_queue and self.forge.has_trains(self.request.repo):
            self.merge_sent = True  # a lost answer is looked for in the next round
            try:
                return self._enqueue()
            except InProgressError as error:
                return error
        return QueuedMerge._send_merge(self)  # noqa: SLF001  a slotted class has no plain super()

    def _judge(self, answer: ForgeResponse) -> OrderkitError:
        """Return the problem if another round may help, else raise it. It is not merged."""
        request, text = self.request, answer.text
        self.forge.refuse_style(request)
        if answer.status in (UNAUTHORIZED, FORBIDDEN):
            raise AccessError(f"{request}: no right: {text}", hint="ask who may merge here")
        if answer.status == CONFLICT:
            return late_head(request)
        # 405 stands for whatever is not met (doc/api/merge_requests.md, "Merge status")
        status = self.forge.merge_status(request.repo, request.number)
        if status in CONFLICTS:
            raise self._with_paths(ConflictError(f"{request}: it conflicts with its base"))
        if status == _NO_COMMITS:
            raise RefusedError(f"{request}: its base has all its commits: nothing to merge")
        if status in _REASONS:
            raise RefusedError(
                f"{request}: {_REASONS[status]} ({status})",
                hint="see which checks, approvals or styles the forge asks for",
            )
        if status in UNDECIDED or status in ("mergeable", _ENDED):
            return checking(request)
        checked(answer, str(request))
        raise RefusedError(f"{request}: {status}: {text}")
