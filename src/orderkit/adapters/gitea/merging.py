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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ground.errors import (
    AccessError,
    ConflictError,
    InProgressError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
)
from ground.names import CommitSha, RepoId
from orderkit.adapters.gitea.answers import RACE, GiteaResponse, ServerError, refusal
from orderkit.adapters.gitea.calls import CONFLICT, FORBIDDEN, NOT_NOW, list_in, text_in
from orderkit.adapters.gitea.pulls import GiteaPulls
from orderkit.adapters.gitea.retries import UNCLEAR, pauses, turn, unsettled
from orderkit.adapters.gitea.trial_merge import conflicts
from orderkit.ports.forge import MergeStyle, Operation, PullRequest

_CHECKING = re.compile(r"try again later", re.IGNORECASE)
_MERGED = re.compile(r"already merged|has been merged", re.IGNORECASE)
_MAY_NOT = re.compile(r"not allowed to merge", re.IGNORECASE)
_LATE_HEAD = re.compile(r"head out of date", re.IGNORECASE)
_EMPTY_LOOKS, _EMPTY_S = 5, 3.0
"""Reads, and seconds between the first and the last, that must all find nothing to merge."""
_CHECK_S = 3.0
"""Seconds after which a merge is tried here: Gitea's own check took 1.7 s at most."""
_TRIED_PATHS = 3
_Sides = tuple[CommitSha, CommitSha, CommitSha]
"""Where the two sides of a pull request parted, its base now, and its head."""
_LATE_BASE = re.compile(r"merge push out of date", re.IGNORECASE)


class Merging(GiteaPulls):
    """The part of the port that merges."""

    def merge_pull(
        self,
        repo: RepoId,
        number: int,
        *,
        head: CommitSha,
        style: MergeStyle,
        operation: Operation,
        deadline_s: float = 30.0,
    ) -> CommitSha:
        """
        Merge a pull request if its head is still `head`. Idempotent. See the port.

        Raises:
            ConflictError: Another head, closed, or a conflict with the base.
            RefusedError: A draft, nothing to merge, or a rule that is not met.
            InProgressError: The forge was still checking it at the deadline.
            NotFoundError: No such pull request.
        """
        request = _MergeRequest(repo, number, head, style, operation)
        return _Merge(self, request, time.monotonic() + deadline_s).run()

    def _merged_head(self, repo: RepoId, number: int) -> CommitSha | None:
        """Return the head at which a pull request was merged; its branch may have moved since."""
        path = self._path(repo, "git", "refs", "pull", str(number), "head")
        answer = self._http.get(path)
        if not answer.ok:
            return None
        exact = f"refs/pull/{number}/head"
        refs = [ref for ref in list_in(answer.json()) if ref.get("ref") == exact]
        return CommitSha(text_in(refs[0].get("object"), "sha")) if refs else None

    def _changed_by_both(self, repo: RepoId, number: int) -> list[PurePosixPath]:
        """Return the paths that base and head changed differently since their merge base."""
        sides = self._sides(repo, number)
        return self._differing(repo, sides) if sides else []

    def _conflicting(self, repo: RepoId, number: int) -> list[PurePosixPath]:
        """Return the same paths if git cannot merge one of the first; none if it can."""
        sides = self._sides(repo, number)
        if sides is None:
            return []
        paths = self._differing(repo, sides)
        for path in paths[:_TRIED_PATHS]:
            before, ours, theirs = (self.read(repo, path, commit) for commit in sides)
            ancestor = None if before is None else before.data
            if ours and theirs and conflicts(ancestor, ours.data, theirs.data):
                return paths
        return []

    def _differing(self, repo: RepoId, sides: _Sides) -> list[PurePosixPath]:
        before, ours, theirs = (self.tree(repo, commit) for commit in sides)
        return sorted(
            path
            for path in {*before, *ours, *theirs}
            if before.get(path) not in (ours.get(path), theirs.get(path))
            and ours.get(path) != theirs.get(path)
        )

    def _sides(self, repo: RepoId, number: int) -> _Sides | None:
        """Return where the branches of a pull request parted and what they hold now."""
        pull = self._pull_object(repo, number) or {}
        before, theirs = text_in(pull, "merge_base"), text_in(pull.get("head"), "sha")
        ours = self.head(repo, text_in(pull.get("base"), "ref"))
        if not (before and ours and theirs):
            return None
        return CommitSha(before), ours, CommitSha(theirs)


@dataclass(frozen=True, slots=True)
class _MergeRequest:
    """The pull request to merge, its expected head, and the merge style."""

    repo: RepoId
    number: int
    head: CommitSha
    style: MergeStyle
    operation: Operation

    def __str__(self) -> str:
        return f"merge {self.repo}#{self.number}"

    @property
    def body(self) -> dict[str, str]:
        return {
            "Do": self.style.value,
            "head_commit_id": self.head,
            "MergeTitleField": self.operation.summary,
            "MergeMessageField": self.operation.trailers,
        }


@dataclass(slots=True)
class _Merge:
    """One merge: rounds of reading and requesting until the result is clear or time is up."""

    forge: Merging
    request: _MergeRequest
    deadline: float
    waits: Iterator[float] = field(default_factory=pauses)
    merge_sent: bool = False
    doubt: bool = False
    """Whether a request to merge may still be carried out."""
    empty: list[float] = field(default_factory=list)
    """Times of the rounds that found nothing to merge although it was not merged."""
    try_at: float | None = None
    """When the merge is tried here; None until the forge says that it checks."""

    def run(self) -> CommitSha:
        while True:
            try:
                problem = self._round()
            except (RemoteError, RefusedError) as error:
                if not self.doubt:
                    raise
                raise unsettled(error, str(self.request)) from error
            if isinstance(problem, str):
                return CommitSha(problem)
            remaining_s = self.deadline - time.monotonic()
            if remaining_s <= 0:
                verdict = self._verdict(problem)
                raise unsettled(verdict, str(self.request)) if self.doubt else verdict
            time.sleep(min(next(self.waits), remaining_s))

    def _round(self) -> CommitSha | OrderkitError:
        """Return the merge commit, or the problem if another round may help."""
        try:
            return self._merge_commit() or self._send_merge()
        except UNCLEAR as error:
            if not self.merge_sent:
                raise
            return error

    def _merge_commit(self) -> CommitSha | None:
        """Return the merge commit if it is merged; raise if it can never be merged."""
        request = self.request
        now = self.forge.pull(request.repo, request.number)
        if now is None:
            raise NotFoundError(f"{request.repo} has no pull request {request.number}")
        if now.state == "merged":
            return self._merged(now)
        if now.state == "closed":
            raise ConflictError(f"{request}: it was closed without a merge")
        if now.draft:
            raise RefusedError(f"{request}: it is a draft", hint="take WIP: off its title")
        if now.head_commit != request.head:
            raise self._other_head(now.head_commit)
        return None

    def _merged(self, now: PullRequest) -> CommitSha:
        request = self.request
        at = now.head_commit
        if at != request.head:  # the branch may have moved after the merge
            at = self.forge._merged_head(request.repo, request.number) or at  # noqa: SLF001  one module
        if at != request.head or now.merge_commit is None:
            raise self._other_head(at)
        return now.merge_commit

    def _other_head(self, head: CommitSha) -> ConflictError:
        return ConflictError(
            f"{self.request}: its head is {head[:8]}, not {self.request.head[:8]};"
            " nothing was merged by us",
            hint="look at the new commits and decide again",
        )

    def _send_merge(self) -> CommitSha | OrderkitError:
        request = self.request
        path = self.forge._path(request.repo, "pulls", str(request.number), "merge")  # noqa: SLF001
        with turn(self.forge.base_url, request.repo):
            before, self.merge_sent, self.doubt = self.doubt, True, True
            answer = self.forge._http.send("POST", path, body=request.body)  # noqa: SLF001
        merge_commit = self._merge_commit()
        if merge_commit is not None:
            return merge_commit
        if answer.status < 500:  # noqa: PLR2004  from 500 on, a gateway may have answered
            self.doubt = before
        if answer.ok:
            return InProgressError(f"{request}: accepted, but the forge does not show it as merged")
        return self._judge(answer)

    def _judge(self, answer: GiteaResponse) -> OrderkitError:
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

    def _verdict(self, problem: OrderkitError) -> OrderkitError:
        """Return the error to raise when time is up."""
        return self._with_paths(problem) if isinstance(problem, InProgressError) else problem

    def _with_paths(self, problem: OrderkitError) -> OrderkitError:
        """Return a conflict that names the paths both sides changed, else `problem`."""
        paths = self.forge._changed_by_both(self.request.repo, self.request.number)  # noqa: SLF001
        return self._conflict(paths) if paths else problem

    def _conflict(self, paths: list[PurePosixPath]) -> ConflictError:
        names = ", ".join(str(path) for path in paths[:3]) + (" …" if len(paths) > 3 else "")  # noqa: PLR2004
        return ConflictError(
            f"{self.request}: it conflicts with its base; both changed {names}",
            hint="bring the base into the branch, solve it there, and merge again",
        )
