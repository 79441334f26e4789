"""
Pull requests on GitHub, with their branches, comments and commit statuses, and their merge.

`GitHubPulls` opens, finds, updates and closes pull requests. `Branches` creates, removes and
compares branches. `Notes` has comments and commit statuses; GitHub keeps 1,000 statuses of a
context and commit.

`Merging` merges a pull request once, at the head that was reviewed, or reports why not. GitHub
answers 405 to everything that it does not merge. The pull request tells the cases apart:
``mergeable`` is null while GitHub checks, and false for a conflict. A rule may ask for a merge
queue: then the pull request is put there, and the queue merges it later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ground.errors import (
    AccessError,
    ConflictError,
    InProgressError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
)
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges import calls
from orderkit.adapters.forges.answers import UNARCHIVE, ForgeResponse, refusal
from orderkit.adapters.forges.calls import (
    CONFLICT,
    FORBIDDEN,
    INVALID,
    MISSING,
    NOT_NOW,
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
from orderkit.adapters.forges.pulls import AskedState, SharedNotes, SharedPulls
from orderkit.adapters.forges.repositories import SharedBranches
from orderkit.adapters.forges.transport import Query, path_of
from orderkit.adapters.github.reading import GitHubReading
from orderkit.adapters.github.rulesets import Rulesets
from orderkit.ports.forge import (
    Commit,
    CommitStatus,
    OpenPullRef,
    StatusState,
)


class Branches(GitHubReading, SharedBranches):
    """The part of the port about branches."""

    def _new_branch(self, repo: RepoId, branch: str, at: CommitSha, doing: str) -> bool:
        body = {"ref": f"refs/heads/{branch}", "sha": at}
        answer = self._http.send("POST", self._path(repo, "git", "refs"), body=body)
        if answer.status in (INVALID, CONFLICT):
            if not self._has_commit(repo, at):
                raise NotFoundError(f"{repo} has no commit {at}")
            raise InvalidInputError("branch", branch, f"is refused: {answer.text}")
        self._refuse_archived(repo, answer.status, doing)
        return done(answer, doing)

    def _refuse_archived(self, repo: RepoId, status: int, doing: str) -> None:
        """
        Name the reason of a 403 or 405 that GitHub gives in words only.

        Raises:
            RefusedError: The repository is archived.
        """
        if status not in (FORBIDDEN, NOT_NOW):
            return
        entry = self._optional(self._path(repo), doing) or {}
        if entry.get("archived"):
            raise RefusedError(f"{doing}: archived, hence read-only", hint=UNARCHIVE)

    def _drop_branch(self, repo: RepoId, branch: str, doing: str) -> bool:
        entry = self._optional(self._path(repo), doing) or {}
        if entry.get("default_branch") == branch:
            raise RefusedError(f"{doing}: it is the default branch")
        answer = self._http.send("DELETE", self._path(repo, "git", "refs", f"heads/{branch}"))
        if answer.status == INVALID and self.head(repo, branch) is None:
            return False
        if answer.status in (INVALID, FORBIDDEN):
            raise RefusedError(f"{doing}: {answer.text}")
        return answer.status != MISSING and done(answer, doing)

    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]:
        """
        Return the commits in `head` that are not in `base`, newest first. See the port.

        Raises:
            NotFoundError: No such repository, branch or commit.
        """
        doing = f"compare {base} with {head} in {repo}"
        path = self._path(repo, "compare") + path_of(f"{base}...{head}")
        commits: list[Commit] = []
        page = 1
        while True:
            answer = self._http.get(path, {"per_page": calls.PAGE, "page": page})
            if answer.status == MISSING:
                raise NotFoundError(f"{doing}: one of them does not exist")
            comparison = object_in(checked(answer, doing), doing)
            found = list_in(comparison.get("commits") or [])
            commits += map(self._commit_of, found)
            if not found or len(commits) >= int(comparison.get("total_commits") or 0):
                return tuple(reversed(commits))
            page += 1

    def _merge_base(self, repo: RepoId, base: str, head: str) -> CommitSha:
        doing = f"compare {base} with {head} in {repo}"
        path = self._path(repo, "compare") + path_of(f"{base}...{head}")
        found = object_in(checked(self._http.get(path, {"per_page": 1}), doing), doing)
        return CommitSha(str((found.get("merge_base_commit") or {}).get("sha") or ""))

    def _has_commit(self, repo: RepoId, commit: CommitSha) -> bool:
        answer = self._http.get(self._path(repo, "git", "commits", commit))
        return answer.status not in (MISSING, CONFLICT, INVALID) and answer.ok


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

    def _statuses(self, repo: RepoId, commit: CommitSha, doing: str) -> Iterator[Found]:
        path = self._path(repo, "commits", commit, "status")
        return self._pages(path, {}, doing, inside="statuses")

    def _status_of(self, entry: Found) -> CommitStatus:
        state, text = str(entry.get("state") or ""), str(entry.get("description") or "")
        found = _STATES.get(state, "error")
        if found == "success" and text.startswith(_WARNING):
            found, text = "warning", text.removeprefix(_WARNING)
        url = str(entry.get("target_url") or "")
        return CommitStatus(str(entry.get("context")), found, text, url)


OPEN = """query($org:String!,$after:String){organization(login:$org){
repositories(first:50,after:$after){pageInfo{hasNextPage endCursor}nodes{name
pullRequests(states:OPEN,first:100){nodes{number updatedAt}}}}}}"""


class GitHubPulls(Branches, Notes, SharedPulls):
    """The part of the port about pull requests, without merging."""

    def _pull_query(self, repo: RepoId, state: AskedState, base: str, head: str, /) -> Query:
        query = {"state": state, "sort": "created", "direction": "desc"}
        query |= {"base": base} if base else {}
        return query | ({"head": f"{repo.owner}:{head}"} if head else {})

    def open_pulls(self, org: str) -> Iterator[OpenPullRef]:
        """Yield the open pull requests of an organisation; see the port."""
        doing, after = f"list the open pull requests of {org}", None
        while True:
            data = self.graphql(org, OPEN, {"org": org, "after": after}, doing)
            found = (data.get("organization") or {}).get("repositories") or {}
            for entry in list_in(found.get("nodes") or []):
                repo = RepoId(org, text_in(entry, "name"))
                pulls = list_in((entry.get("pullRequests") or {}).get("nodes") or [])
                for pull in pulls:
                    updated = str(pull.get("updatedAt") or "")
                    yield OpenPullRef(repo, number_in(pull, "number"), updated)
            page = found.get("pageInfo") or {}
            if not page.get("hasNextPage"):
                return
            after = page.get("endCursor")


ENQUEUE = """mutation($input:EnqueuePullRequestInput!)
{enqueuePullRequest(input:$input){mergeQueueEntry{id}}}"""
WAITING = """query($id:ID!){node(id:$id){...on PullRequest{isInMergeQueue}}}"""
_EMPTY_LOOKS, _REFUSED_LOOKS = 5, 4
_FINAL = ("blocked", "behind", "draft")
"""States in which asking again cannot help."""


class Merging(GitHubPulls, Rulesets, SharedMerging):
    """The part of the port that merges."""

    def _merge(self, request: MergeRequest, end_s: float) -> _Merge:
        return _Merge(self, request, end_s)

    def request_merge(self, request: MergeRequest) -> ForgeResponse:
        """Ask once for the merge."""
        operation = request.operation
        body = {
            "sha": request.head,
            "merge_method": request.style.value,
            "commit_title": operation.summary,
            "commit_message": operation.trailers.rstrip("\n"),
        }
        path = self._pull_path(request.repo, request.number, "merge")
        return self._http.send("PUT", path, body=body)

    def merged_head(self, repo: RepoId, number: int) -> CommitSha | None:
        """Return the head at which it was merged: GitHub's pull request keeps it."""
        entry = self._pull_object(repo, number) or {}
        return CommitSha(text_in(entry.get("head"), "sha"))

    def sides(self, repo: RepoId, number: int) -> Sides | None:
        """Return where the branches of a pull request parted and what they hold now."""
        pull = self._pull_object(repo, number) or {}
        base, theirs = text_in(pull.get("base"), "ref"), text_in(pull.get("head"), "sha")
        ours = self.head(repo, base)
        before = self._merge_base(repo, ours, theirs) if ours else None
        return (before, ours, CommitSha(theirs)) if before and ours else None

    def is_queued(self, repo: RepoId, branch: str) -> bool:
        """Say whether a rule makes pull requests of a branch wait in a merge queue."""
        answer = self._http.get(self._path(repo, "rules", "branches", branch))
        rules = list_in(answer.json() or []) if answer.ok else []
        return any(rule.get("type") == "merge_queue" for rule in rules)

    def is_waiting(self, request: MergeRequest) -> bool:
        """Say whether a pull request is in the merge queue of its base."""
        pull = self._pull_object(request.repo, request.number) or {}
        variables, doing = {"id": text_in(pull, "node_id")}, f"look for {request} in the queue"
        data = self.graphql(request.repo.owner, WAITING, variables, doing)
        return bool((data.get("node") or {}).get("isInMergeQueue"))

    def enqueue(self, request: MergeRequest) -> None:
        """
        Put a pull request into the merge queue of its base.

        Raises:
            OrderkitError: GitHub refuses it.
        """
        pull = self._pull_object(request.repo, request.number) or {}
        entry = {"pullRequestId": text_in(pull, "node_id"), "expectedHeadOid": request.head}
        self.graphql(request.repo.owner, ENQUEUE, {"input": entry}, f"queue {request}")


@dataclass(slots=True)
class _Merge(QueuedMerge[Merging]):
    """One merge on GitHub."""

    empty: int = 0
    """Rounds that found nothing to merge although it was not merged."""
    refused: int = 0
    """Rounds in which GitHub refused what it says can be merged."""

    def _judge(self, answer: ForgeResponse) -> OrderkitError:
        """Return the problem if another round may help, else raise it. It is not merged."""
        request, text, status = self.request, answer.text, answer.status
        if status == CONFLICT:
            return late_head(request)
        self.forge._refuse_archived(request.repo, status, str(request))  # noqa: SLF001  one module
        if status in (NOT_NOW, INVALID):
            return self._not_now(text)
        raise refusal(answer, str(request))

    def _not_now(self, text: str) -> OrderkitError:
        request, forge = self.request, self.forge
        # 405 stands for whatever GitHub does not merge: the pull request tells the cases apart
        pull = forge._pull_object(request.repo, request.number) or {}  # noqa: SLF001  one module
        base = text_in(pull.get("base"), "ref")
        if forge.is_queued(request.repo, base):
            return self._enqueue()
        # null while GitHub checks, false for a conflict
        if pull.get("mergeable") is None:
            return checking(request)
        if not forge.compare(request.repo, base, request.head):
            self.empty += 1  # somebody else's merge may be running
            if self.empty >= _EMPTY_LOOKS:
                raise RefusedError(f"{request}: {base} has all its commits: nothing to merge")
            return InProgressError(f"{request}: the forge is still checking it")
        if not pull.get("mergeable"):
            problem = self._with_paths(ConflictError(f"{request}: refused as a conflict: {text}"))
            raise problem
        self.refused += 1  # it may have been checked after GitHub's answer
        if pull.get("mergeable_state") not in _FINAL and self.refused < _REFUSED_LOOKS:
            return InProgressError(f"{request}: {text}", hint="repeat the command")
        if rule := forge.blocking_rule(request.repo, base):
            raise AccessError(
                f"{request}: no right: the rule '{rule}' of {base} does not let us merge: {text}",
                hint="ask who may merge here",
            )
        raise RefusedError(
            f"{request} by {request.style}: {text}",
            hint="see which checks, approvals or styles it asks for",
        )
