"""
Pull requests on Gitea, with their branches, comments and commit statuses, and their merge.

`GiteaPulls` opens, finds, updates and closes pull requests. `Branches` creates, removes and
compares branches; `Notes` has comments and commit statuses.

`Merging` merges a pull request once, at the head that was reviewed, or reports why not. Gitea
answers 405 ``Please try again later`` in three cases: while it checks the pull request, for a
conflict, and forever if there is nothing to merge (observed on 1.26.0). So it repeats the request
until a deadline and tells the cases apart: it compares the branches, looks for paths that both
sides changed, and tries their merge itself. Only the pull request decides whether the merge
happened.

`ports.pulls.ForgePulls` documents the contract.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import ClassVar, get_args

from ground.errors import (
    AccessError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    TooManyCommitsError,
)
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import RACE, ForgeResponse, ServerError, refusal
from orderkit.adapters.forges.calls import (
    CONFLICT,
    FORBIDDEN,
    INVALID,
    MISSING,
    NOT_NOW,
    Found,
    done,
    is_commit_id,
    list_in,
    number_in,
    object_in,
    text_in,
)
from orderkit.adapters.forges.merging import (
    Merge,
    MergeRequest,
    SharedMerging,
    Sides,
    checking,
    conflicts,
    differing_paths,
    late_head,
)
from orderkit.adapters.forges.pulls import AskedState, SharedNotes, SharedPulls
from orderkit.adapters.forges.reading import refused_name
from orderkit.adapters.forges.repositories import SharedBranches
from orderkit.adapters.forges.transport import Query, path_of
from orderkit.adapters.gitea.reading import GiteaReading
from orderkit.ports.forge import (
    Commit,
    CommitStatus,
    OpenPullRef,
    PullRequest,
    StatusState,
)


class Branches(GiteaReading, SharedBranches):
    """The part of the port about branches."""

    def _new_branch(self, repo: RepoId, branch: str, at: CommitSha, doing: str) -> bool:
        body = {"new_branch_name": branch, "old_ref_name": at}
        answer = self._http.send("POST", self._path(repo, "branches"), body=body)
        if answer.status == INVALID:
            raise InvalidInputError("branch", branch, f"is refused: {answer.text}")
        if answer.status >= 500 and not self._has_commit(repo, at):  # noqa: PLR2004
            raise NotFoundError(f"{repo} has no commit {at}")
        return done(answer, doing)

    def _drop_branch(self, repo: RepoId, branch: str, doing: str) -> bool:
        path = self._path(repo, "branches") + path_of(branch)
        answer = self._http.send("DELETE", path)
        if answer.status == FORBIDDEN and "branch" in answer.text:
            raise RefusedError(f"{doing}: {answer.text}")
        return answer.status != MISSING and done(answer, doing)

    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]:
        """
        Return the commits in `head` that are not in `base`, newest first. See the port.

        Raises:
            NotFoundError: No such repository, branch or commit.
            TooManyCommitsError: The forge does not show all of them.
        """
        doing = f"compare {base} with {head} in {repo}"
        path = self._path(repo, "compare") + path_of(f"{base}...{head}")
        answer = self._http.get(path, {"verification": "false", "files": "false"})
        if answer.status == MISSING:
            raise NotFoundError(f"{doing}: one of them does not exist")
        if not answer.ok:
            raise refusal(answer, doing)
        comparison = object_in(answer, doing)
        commits = tuple(map(self._commit_of, list_in(comparison.get("commits") or [])))
        if len(commits) < int(comparison.get("total_commits") or 0):
            raise TooManyCommitsError(f"{doing}: the forge shows {len(commits)} commits only")
        # Gitea prefers a branch or tag of the commit's name
        if is_commit_id(head) and commits and head not in {commit.id for commit in commits}:
            raise refused_name(repo, head)
        return commits

    def _has_commit(self, repo: RepoId, commit: CommitSha) -> bool:
        path = self._path(repo, "git", "commits", commit)
        return self._optional(path, f"look for commit {commit}") is not None


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

    def _statuses(self, repo: RepoId, commit: CommitSha, doing: str) -> Iterator[Found]:
        return self._pages(self._path(repo, "commits", commit, "status"), {}, doing)

    def _status_of(self, entry: Found) -> CommitStatus:
        # Gitea returns the sent ``state`` as ``status``
        state = str(entry.get("status") or entry.get("state") or "")
        return CommitStatus(
            str(entry.get("context")),
            _STATES.get(state, "success" if state == "skipped" else "error"),
            str(entry.get("description") or ""),
            str(entry.get("target_url") or ""),
        )


class GiteaPulls(Branches, Notes, SharedPulls):
    """The part of the port about pull requests, without merging."""

    merged_field: ClassVar[str] = "merged"

    def pull_between(self, repo: RepoId, base: str, head: str) -> PullRequest | None:
        """Return a pull request between two branches; see the port."""
        path = self._path(repo, "pulls") + path_of(base, head)
        entry = self._optional(path, f"look for a pull request from {head}")
        return self._pull_of(entry, repo) if entry is not None else None

    def _pull_query(self, _: RepoId, state: AskedState, base: str, _head: str, /) -> Query:
        return {"state": state, "sort": "newest"} | ({"base_branch": base} if base else {})

    def open_pulls(self, org: str) -> Iterator[OpenPullRef]:
        """Yield the open pull requests of an organisation; see the port."""
        query = {"owner": org, "type": "pulls", "state": "open"}
        doing = f"list the open pull requests of {org}"
        for item in self._pages("/repos/issues/search", query, doing):
            repo = RepoId(org, text_in(item.get("repository"), "name"))
            yield OpenPullRef(repo, number_in(item, "number"), str(item.get("updated_at") or ""))

    def _head_branch(self, head: Found) -> str:
        # after the branch's deletion only the label still names it
        ref, label = text_in(head, "ref"), head.get("label")
        return str(label) if label and ref.startswith("refs/pull/") else ref


_CHECKING = re.compile(r"try again later", re.IGNORECASE)
_MERGED = re.compile(r"already merged|has been merged", re.IGNORECASE)
_MAY_NOT = re.compile(r"not allowed to merge", re.IGNORECASE)
_LATE_HEAD = re.compile(r"head out of date", re.IGNORECASE)
_EMPTY_LOOKS, _EMPTY_S = 5, 3.0
"""Reads, and seconds between the first and the last, that must all find nothing to merge."""
_CHECK_S = 3.0
"""Seconds after which a merge is tried here: Gitea's own check took 1.7 s at most."""
_TRIED_PATHS = 3
_LATE_BASE = re.compile(r"merge push out of date", re.IGNORECASE)


class Merging(GiteaPulls, SharedMerging):
    """The part of the port that merges."""

    def _merge(self, request: MergeRequest, end_s: float) -> _Merge:
        return _Merge(self, request, end_s)

    def request_merge(self, request: MergeRequest) -> ForgeResponse:
        """Ask once for the merge."""
        path = self._pull_path(request.repo, request.number, "merge")
        body = {
            "Do": request.style.value,
            "head_commit_id": request.head,
            "MergeTitleField": request.operation.summary,
            "MergeMessageField": request.operation.trailers,
        }
        return self._http.send("POST", path, body=body)

    def merged_head(self, repo: RepoId, number: int) -> CommitSha | None:
        """Return the head at which a pull request was merged; its branch may have moved since."""
        path = self._path(repo, "git", "refs", "pull", str(number), "head")
        answer = self._http.get(path)
        if not answer.ok:
            return None
        # Gitea answers with every ref that begins so
        exact = f"refs/pull/{number}/head"
        refs = [ref for ref in list_in(answer.json()) if ref.get("ref") == exact]
        return CommitSha(text_in(refs[0].get("object"), "sha")) if refs else None

    def _conflicting(self, repo: RepoId, number: int) -> list[PurePosixPath]:
        """Return the same paths if git cannot merge one of the first; none if it can."""
        sides = self.sides(repo, number)
        if sides is None:
            return []
        paths = differing_paths(self, repo, sides)
        for path in paths[:_TRIED_PATHS]:
            before, ours, theirs = (self.read(repo, path, commit) for commit in sides)
            ancestor = None if before is None else before.data
            if ours and theirs and conflicts(ancestor, ours.data, theirs.data):
                return paths
        return []

    def sides(self, repo: RepoId, number: int) -> Sides | None:
        """Return where the branches of a pull request parted and what they hold now."""
        pull = self._pull_object(repo, number) or {}
        before, theirs = text_in(pull, "merge_base"), text_in(pull.get("head"), "sha")
        ours = self.head(repo, text_in(pull.get("base"), "ref"))
        if not (before and ours and theirs):
            return None
        return CommitSha(before), ours, CommitSha(theirs)


@dataclass(slots=True)
class _Merge(Merge[Merging]):
    """One merge on Gitea."""

    empty: list[float] = field(default_factory=list)
    """Times of the rounds that found nothing to merge although it was not merged."""
    try_at: float | None = None
    """When the merge is tried here; None until the forge says that it checks."""

    def _judge(self, answer: ForgeResponse) -> OrderkitError:
        """Return the problem if another round may help, else raise it. It is not merged."""
        text, status = answer.text, answer.status
        if status == NOT_NOW:
            return self._not_now(text)
        if status == CONFLICT and _LATE_HEAD.search(text):
            return late_head(self.request)
        if status in (CONFLICT, FORBIDDEN) and (_LATE_BASE.search(text) or RACE.search(text)):
            return ConflictError(f"{self.request}: {text}", hint="repeat the command")
        if status == CONFLICT and "PushRejected" in text:
            raise RefusedError(f"{self.request}: {text}")
        if status == CONFLICT:
            refused = ConflictError(f"{self.request}: refused as a conflict: {text}")
            problem = self._with_paths(refused)
            if problem is not refused:
                raise problem
            return refused  # no conflicting path: a proxy may have refused
        raise refusal(answer, str(self.request))

    def _not_now(self, text: str) -> OrderkitError:
        request = self.request
        if _MAY_NOT.search(text):
            raise AccessError(f"{request}: no right: {text}", hint="ask who may merge here")
        # Gitea asks to try again later in three cases: while it checks, for a conflict, and for
        # ever if there is nothing to merge (observed on 1.26.0)
        if text and not _CHECKING.search(text) and not _MERGED.search(text):
            raise RefusedError(
                f"{request}: {text}", hint="see which checks, approvals or styles it asks for"
            )
        now = self.forge.pull(request.repo, request.number)
        if now is not None and not self.forge.compare(request.repo, now.base, request.head):
            # Somebody else's merge may be running: Gitea moves the branch before the pull request
            # shows the merge, seconds earlier if the forge is busy.
            self.empty.append(time.monotonic())
            if len(self.empty) >= _EMPTY_LOOKS and self.empty[-1] - self.empty[0] >= _EMPTY_S:
                raise RefusedError(f"{request}: {now.base} has all its commits: nothing to merge")
        if self._trial_is_due():
            paths = self.forge._conflicting(request.repo, request.number)  # noqa: SLF001
            if paths:
                raise self._conflict(paths)
        return checking(request)

    def _trial_is_due(self) -> bool:
        """Say, once, that the forge had the time to find a conflict."""
        now = time.monotonic()
        if self.try_at is None:
            self.try_at = now + _CHECK_S
        if now < self.try_at:
            return False
        self.try_at = math.inf
        return True
