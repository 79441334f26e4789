"""
Merge a merge request on GitLab once, at the head that was reviewed, or report why not.

GitLab refuses with 405 whatever is not met, and says in ``detailed_merge_status`` what it is
(doc/api/merge_requests.md, "Merge status"); so that decides, and never a text. Where a project has
merge trains (doc/api/merge_trains.md), the train merges it later.
"""

from __future__ import annotations

from dataclasses import dataclass

from ground.errors import (
    AccessError,
    ConflictError,
    InProgressError,
    OrderkitError,
    RefusedError,
)
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import ForgeResponse, ServerError
from orderkit.adapters.forges.calls import BAD, CONFLICT, FORBIDDEN, UNAUTHORIZED
from orderkit.adapters.forges.merging import MergeRequest, QueuedMerge, SharedMerging, Sides
from orderkit.adapters.gitlab.pulls import CONFLICTS, UNDECIDED, GitLabPulls
from orderkit.adapters.gitlab.transport import checked
from orderkit.ports.forge import MergeStyle

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
        number = str(request.number)
        path = self._project(request.repo, "merge_requests", number, "merge")
        return self._http.send("PUT", path, body=body)

    def has_trains(self, repo: RepoId) -> bool:
        """Say whether a project's merge requests wait on merge trains."""
        entry = self._optional(self._project(repo), f"read {repo}") or {}
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
        if answer.status == CONFLICT:  # our read just saw this head
            raise InProgressError(f"{request}: the forge has not taken in its head yet")
        if answer.status == BAD and not self.is_waiting(request):
            status = self.merge_status(request.repo, request.number)
            if status in CONFLICTS:
                raise ConflictError(f"{request}: it conflicts with its base")
            if status in UNDECIDED or status in ("mergeable", _ENDED):
                raise InProgressError(
                    f"{request}: the forge is still checking whether it can be merged",
                    hint="repeat the command",
                )
            reason = _REASONS.get(status, answer.text)
            raise RefusedError(
                f"{request}: the merge train does not take it: {reason}",
                hint="see which checks, approvals or styles the forge asks for",
            )
        if answer.status != BAD:
            checked(answer, str(request))

    def _train_place(self, request: MergeRequest) -> str:
        number = str(request.number)
        return self._project(request.repo, "merge_trains", "merge_requests", number)

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
            raise RefusedError(
                f"archived, hence read-only: {request}", hint="unarchive it in the forge"
            )
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
        if answer.status >= 500:  # noqa: PLR2004  server errors
            return ServerError(f"{request}: {answer.status} {text}", hint="repeat the command")
        self.forge.refuse_style(request)
        if answer.status in (UNAUTHORIZED, FORBIDDEN):
            raise AccessError(f"{request}: no right: {text}", hint="ask who may merge here")
        if answer.status == CONFLICT:  # our read just saw this head
            return InProgressError(f"{request}: the forge has not taken in its head yet")
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
            return InProgressError(
                f"{request}: the forge is still checking whether it can be merged",
                hint="repeat the command",
            )
        checked(answer, str(request))
        raise RefusedError(f"{request}: {status}: {text}")
