"""
Merge a pull request on Gitea at the head that was looked at, once, and know why if not.

Gitea says 405 ``Please try again later`` while it is still checking, for a conflict, and
forever when there is nothing to merge (observed on 1.26.0). So this asks in rounds until a
deadline, and tells the three apart: by comparing the branches, and by the paths that both
sides changed. Whether the merge happened is always judged by reading the pull request.

Called through ``client.GiteaForge``; the docstring of ``ports.pulls.ForgePulls`` holds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from orderkit.adapters.gitea.answers import RACE, GiteaResponse, ServerError, refusal
from orderkit.adapters.gitea.calls import CONFLICT, FORBIDDEN, NOT_NOW, list_in, text_in
from orderkit.adapters.gitea.pulls import GiteaPulls
from orderkit.adapters.gitea.turns import UNCLEAR, pauses, turn, unsettled
from orderkit.core.errors import (
    AccessError,
    ConflictError,
    InProgressError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
)
from orderkit.core.names import CommitSha, RepoId
from orderkit.ports.forge import MergeStyle, Operation, PullRequest

_CHECKING = re.compile(r"try again later", re.IGNORECASE)
_MERGED = re.compile(r"already merged|has been merged", re.IGNORECASE)
_MAY_NOT = re.compile(r"not allowed to merge", re.IGNORECASE)
_LATE_HEAD = re.compile(r"head out of date", re.IGNORECASE)
_EMPTY_LOOKS, _EMPTY_S = 5, 3.0
"""How often, and over how long, there has to be nothing to merge before it is believed."""
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
            BusyError: Still being checked at the deadline.
            NotFoundError: No such pull request.
        """
        wanted = _Wanted(repo, number, head, style, operation)
        return _Merge(self, wanted, time.monotonic() + deadline_s).run()

    def _merged_head(self, repo: RepoId, number: int) -> CommitSha | None:
        """Return the head a pull request was merged at; its branch may have moved on since."""
        path = self._path(repo, "git", "refs", "pull", str(number), "head")
        answer = self._http.get(path)
        if not answer.ok:
            return None
        exact = f"refs/pull/{number}/head"
        found = [each for each in list_in(answer.json()) if each.get("ref") == exact]
        return CommitSha(text_in(found[0].get("object"), "sha")) if found else None

    def _changed_by_both(self, repo: RepoId, number: int) -> list[PurePosixPath]:
        """Return the paths that base and head both changed, differently, since they parted."""
        found = self._pull_object(repo, number) or {}
        parted = text_in(found, "merge_base")
        base = self.head(repo, text_in(found.get("base"), "ref"))
        ours = self.tree(repo, base) if base else {}
        theirs = self.tree(repo, CommitSha(text_in(found.get("head"), "sha")))
        before = self.tree(repo, CommitSha(parted))
        return sorted(
            path
            for path in {*before, *ours, *theirs}
            if before.get(path) not in (ours.get(path), theirs.get(path))
            and ours.get(path) != theirs.get(path)
        )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be merged, and how."""

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
    """One merge: rounds of reading and asking until the answer is clear or time is up."""

    forge: Merging
    wanted: _Wanted
    deadline: float
    waits: Iterator[float] = field(default_factory=pauses)
    asked: bool = False
    doubt: bool = False
    """Whether a request to merge may still be carried out."""
    empty: list[float] = field(default_factory=list)
    """When there was nothing left to merge, and it was not merged."""

    def run(self) -> CommitSha:
        while True:
            try:
                problem = self._round()
            except (RemoteError, RefusedError) as error:
                if not self.doubt:
                    raise
                raise unsettled(error, str(self.wanted)) from error
            if isinstance(problem, str):
                return CommitSha(problem)
            left = self.deadline - time.monotonic()
            if left <= 0:
                verdict = self._verdict(problem)
                raise unsettled(verdict, str(self.wanted)) if self.doubt else verdict
            time.sleep(min(next(self.waits), left))

    def _round(self) -> CommitSha | OrderkitError:
        """Return the merge commit, or the problem if waiting may help."""
        try:
            return self._look() or self._ask()
        except UNCLEAR as error:
            if not self.asked:
                raise
            return error

    def _look(self) -> CommitSha | None:
        """Return the merge commit if it is merged; refuse what can never be."""
        wanted = self.wanted
        now = self.forge.pull(wanted.repo, wanted.number)
        if now is None:
            raise NotFoundError(f"{wanted.repo} has no pull request {wanted.number}")
        if now.state == "merged":
            return self._merged(now)
        if now.state == "closed":
            raise ConflictError(f"{wanted}: it was closed without a merge")
        if now.draft:
            raise RefusedError(f"{wanted}: it is a draft", hint="take WIP: off its title")
        if now.head_commit != wanted.head:
            raise self._other_head(now.head_commit)
        return None

    def _merged(self, now: PullRequest) -> CommitSha:
        wanted = self.wanted
        at = now.head_commit
        if at != wanted.head:  # the branch may have moved after the merge
            at = self.forge._merged_head(wanted.repo, wanted.number) or at  # noqa: SLF001  one module
        if at != wanted.head or now.merge_commit is None:
            raise self._other_head(at)
        return now.merge_commit

    def _other_head(self, found: CommitSha) -> ConflictError:
        return ConflictError(
            f"{self.wanted}: its head is {found[:8]}, not {self.wanted.head[:8]};"
            " nothing was merged by us",
            hint="look at the new commits and decide again",
        )

    def _ask(self) -> CommitSha | OrderkitError:
        wanted = self.wanted
        path = self.forge._path(wanted.repo, "pulls", str(wanted.number), "merge")  # noqa: SLF001
        with turn(self.forge.base_url, wanted.repo):
            before, self.asked, self.doubt = self.doubt, True, True
            answer = self.forge._http.send("POST", path, body=wanted.body)  # noqa: SLF001
        done = self._look()
        if done is not None:
            return done
        if answer.status < 500:  # noqa: PLR2004  beyond, a gateway may speak for the forge
            self.doubt = before
        if answer.ok:
            return InProgressError(f"{wanted}: accepted, but the forge does not show it as merged")
        return self._judge(answer)

    def _judge(self, answer: GiteaResponse) -> OrderkitError:
        """Return the problem if waiting may help; raise it if not. It is not merged."""
        text, status = answer.text, answer.status
        if status >= 500:  # noqa: PLR2004  server errors
            return ServerError(f"{self.wanted}: {status} {text}", hint="repeat the command")
        if status == NOT_NOW:
            return self._not_now(text)
        if status == CONFLICT and _LATE_HEAD.search(text):  # read a moment ago: it is that head
            return InProgressError(f"{self.wanted}: the forge has not taken in its head yet")
        if status in (CONFLICT, FORBIDDEN) and (_LATE_BASE.search(text) or RACE.search(text)):
            return ConflictError(f"{self.wanted}: {text}", hint="repeat the command")
        if status == CONFLICT and "PushRejected" in text:
            raise RefusedError(f"{self.wanted}: {text}")
        if status == CONFLICT:
            refused = ConflictError(f"{self.wanted}: refused as a conflict: {text}")
            problem = self._with_paths(refused)
            if problem is not refused:
                raise problem
            return refused  # no path tells why: perhaps not the forge's word
        raise refusal(answer, str(self.wanted))

    def _not_now(self, text: str) -> OrderkitError:
        wanted = self.wanted
        if _MAY_NOT.search(text):
            raise AccessError(f"{wanted}: no right: {text}", hint="ask who may merge here")
        if text and not _CHECKING.search(text) and not _MERGED.search(text):
            raise RefusedError(
                f"{wanted}: {text}", hint="see which checks, approvals or styles it asks for"
            )
        now = self.forge.pull(wanted.repo, wanted.number)
        if now is not None and not self.forge.compare(wanted.repo, now.base, wanted.head):
            # Or somebody's merge is under way: the branch moves before the pull request shows it,
            # by seconds where the forge is busy.
            self.empty.append(time.monotonic())
            if len(self.empty) >= _EMPTY_LOOKS and self.empty[-1] - self.empty[0] >= _EMPTY_S:
                raise RefusedError(f"{wanted}: {now.base} has all its commits: nothing to merge")
        return InProgressError(
            f"{wanted}: the forge is still checking whether it can be merged",
            hint="repeat the command",
        )

    def _verdict(self, problem: OrderkitError) -> OrderkitError:
        """Return what the caller is told when time is up."""
        return self._with_paths(problem) if isinstance(problem, InProgressError) else problem

    def _with_paths(self, problem: OrderkitError) -> OrderkitError:
        """Return a conflict that names the paths of both sides; `problem` if there are none."""
        paths = self.forge._changed_by_both(self.wanted.repo, self.wanted.number)  # noqa: SLF001
        if not paths:
            return problem
        named = ", ".join(str(path) for path in paths[:3]) + (" …" if len(paths) > 3 else "")  # noqa: PLR2004
        return ConflictError(
            f"{self.wanted}: it conflicts with its base; both changed {named}",
            hint="bring the base into the branch, solve it there, and merge again",
        )
