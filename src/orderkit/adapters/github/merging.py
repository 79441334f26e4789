"""
Merge a pull request on GitHub once, at the head that was reviewed, or report why not.

GitHub answers 405 to everything that it does not merge. The pull request tells the cases apart:
``mergeable`` is null while GitHub checks, and false for a conflict. A rule may ask for
a merge queue: then the pull request is put there, and the queue merges it later.
"""

from __future__ import annotations

from dataclasses import dataclass

from ground.errors import AccessError, ConflictError, InProgressError, OrderkitError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import ForgeResponse, ServerError, refusal
from orderkit.adapters.forges.calls import (
    CONFLICT,
    FORBIDDEN,
    INVALID,
    NOT_NOW,
    list_in,
    text_in,
)
from orderkit.adapters.forges.merging import MergeRequest, QueuedMerge, SharedMerging, Sides
from orderkit.adapters.github.pulls import GitHubPulls
from orderkit.adapters.github.rulesets import Rulesets

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
        path = self._path(request.repo, "pulls", str(request.number), "merge")
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
        if status >= 500:  # noqa: PLR2004  server errors
            return ServerError(f"{request}: {status} {text}", hint="repeat the command")
        if status == CONFLICT:  # our read just saw this head
            return InProgressError(f"{request}: the forge has not taken in its head yet")
        if status in (FORBIDDEN, NOT_NOW):
            self.forge._refuse_archived(request.repo, str(request))  # noqa: SLF001  one module
        if status in (NOT_NOW, INVALID):
            return self._not_now(text)
        raise refusal(answer, str(request))

    def _not_now(self, text: str) -> OrderkitError:
        request, forge = self.request, self.forge
        pull = forge._pull_object(request.repo, request.number) or {}  # noqa: SLF001  one module
        base = text_in(pull.get("base"), "ref")
        if forge.is_queued(request.repo, base):
            return self._enqueue()
        if pull.get("mergeable") is None:
            return InProgressError(
                f"{request}: the forge is still checking whether it can be merged",
                hint="repeat the command",
            )
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
