"""
Merge a pull request on Gitea once, at the head that was reviewed, or report why not.

Gitea answers 405 ``Please try again later`` in three cases: while it checks the pull request, for
a conflict, and forever if there is nothing to merge (observed on 1.26.0). So this repeats the
request until a deadline and tells the cases apart: it compares the branches, looks for paths that
both sides changed, and tries their merge itself. Only the pull request decides whether the merge
happened.

Called through ``client.GiteaForge``; ``ports.pulls.ForgePulls`` documents the contract.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ground.errors import (
    AccessError,
    ConflictError,
    InProgressError,
    OrderkitError,
    RefusedError,
)
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import RACE, ForgeResponse, ServerError, refusal
from orderkit.adapters.forges.calls import CONFLICT, FORBIDDEN, NOT_NOW, list_in, text_in
from orderkit.adapters.forges.merging import (
    Merge,
    MergeRequest,
    SharedMerging,
    Sides,
    differing_paths,
)
from orderkit.adapters.forges.trial_merge import conflicts
from orderkit.adapters.gitea.pulls import GiteaPulls

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
        path = self._path(request.repo, "pulls", str(request.number), "merge")
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
        if status >= 500:  # noqa: PLR2004  server errors
            return ServerError(f"{self.request}: {status} {text}", hint="repeat the command")
        if status == NOT_NOW:
            return self._not_now(text)
        if status == CONFLICT and _LATE_HEAD.search(text):  # our read just saw this head
            return InProgressError(f"{self.request}: the forge has not taken in its head yet")
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
        checking = InProgressError(
            f"{request}: the forge is still checking whether it can be merged",
            hint="repeat the command",
        )
        if self._trial_is_due():
            paths = self.forge._conflicting(request.repo, request.number)  # noqa: SLF001
            if paths:
                raise self._conflict(paths)
        return checking

    def _trial_is_due(self) -> bool:
        """Say, once, that the forge had the time to find a conflict."""
        now = time.monotonic()
        if self.try_at is None:
            self.try_at = now + _CHECK_S
        if now < self.try_at:
            return False
        self.try_at = math.inf
        return True
