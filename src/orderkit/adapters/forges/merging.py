"""
Merge a pull request once, at the head that was reviewed, or report why not: what forges share.

Only the pull request decides whether the merge happened: it is read before every request and after
it. A forge that is still checking is asked again until a deadline.

`conflicts` tries here, without the forge, whether git could merge a file that two branches changed:
for a forge that answers the same while it checks and for a conflict.
"""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ground.errors import (
    ConflictError,
    InProgressError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
)
from ground.names import BlobSha, CommitSha, RepoId
from orderkit.adapters.forges.answers import (
    UNCLEAR,
    ForgeResponse,
    ServerError,
    pauses,
    turn,
    unsettled,
)
from orderkit.ports.forge import MergeStyle, Operation, PullRequest

if TYPE_CHECKING:
    import pygit2


Sides = tuple[CommitSha, CommitSha, CommitSha]
"""Where the two sides of a pull request parted, its base now, and its head."""


class MergingForge(Protocol):
    """What a merge asks of its forge; see ``ports.forge``."""

    @property
    def base_url(self) -> str: ...

    def pull(self, repo: RepoId, number: int) -> PullRequest | None: ...

    def tree(self, repo: RepoId, commit: CommitSha) -> Mapping[PurePosixPath, BlobSha]: ...

    def merged_head(self, repo: RepoId, number: int) -> CommitSha | None:
        """Return the head at which a pull request was merged; its branch may have moved since."""
        ...

    def sides(self, repo: RepoId, number: int) -> Sides | None:
        """Return where the branches of a pull request parted and what they hold now."""
        ...

    def request_merge(self, request: MergeRequest) -> ForgeResponse:
        """
        Ask the forge once for the merge.

        Raises:
            OrderkitError: No answer, or as the transport says.
        """
        ...


ForgeT = TypeVar("ForgeT", bound=MergingForge)


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """The pull request to merge, its expected head, and the merge style."""

    repo: RepoId
    number: int
    head: CommitSha
    style: MergeStyle
    operation: Operation

    def __str__(self) -> str:
        return f"merge {self.repo}#{self.number}"


@dataclass(slots=True)
class Merge(ABC, Generic[ForgeT]):
    """One merge: rounds of reading and requesting until the result is clear or time is up."""

    forge: ForgeT
    request: MergeRequest
    deadline: float
    waits: Iterator[float] = field(default_factory=pauses)
    merge_sent: bool = False
    doubt: bool = False
    """Whether a request to merge may still be carried out."""

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
            at = self.forge.merged_head(request.repo, request.number) or at
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
        with turn(self.forge.base_url, request.repo):
            # before it is sent: the process only knows of a lost answer what was noted first
            before, self.merge_sent, self.doubt = self.doubt, True, True
            answer = self.forge.request_merge(request)
        # only the pull request says whether it was merged, whatever the answer was
        merge_commit = self._merge_commit()
        if merge_commit is not None:
            return merge_commit
        if answer.status < 500:  # noqa: PLR2004  from 500 on, a gateway may have answered
            self.doubt = before
        if answer.ok:
            return InProgressError(f"{request}: accepted, but the forge does not show it as merged")
        if answer.status >= 500:  # noqa: PLR2004  server errors
            text = f"{request}: {answer.status} {answer.text}"
            return ServerError(text, hint="repeat the command")
        return self._judge(answer)

    @abstractmethod
    def _judge(self, answer: ForgeResponse) -> OrderkitError:
        """
        Return the problem if another round may help, else raise it.

        Args:
            answer: A refusal; it is not merged.
        """

    def _verdict(self, problem: OrderkitError) -> OrderkitError:
        """Return the error to raise when time is up."""
        return self._with_paths(problem) if isinstance(problem, InProgressError) else problem

    def _with_paths(self, problem: OrderkitError) -> OrderkitError:
        """Return a conflict that names the paths both sides changed, else `problem`."""
        sides = self.forge.sides(self.request.repo, self.request.number)
        paths = differing_paths(self.forge, self.request.repo, sides) if sides else []
        return self._conflict(paths) if paths else problem

    def _conflict(self, paths: list[PurePosixPath]) -> ConflictError:
        names = ", ".join(str(path) for path in paths[:3]) + (" …" if len(paths) > 3 else "")  # noqa: PLR2004
        return ConflictError(
            f"{self.request}: it conflicts with its base; both changed {names}",
            hint="bring the base into the branch, solve it there, and merge again",
        )


def checking(request: MergeRequest) -> InProgressError:
    """Return the problem of a forge that has not looked at the branches yet."""
    return InProgressError(
        f"{request}: the forge is still checking whether it can be merged",
        hint="repeat the command",
    )


def late_head(request: MergeRequest) -> InProgressError:
    """Return the problem of a forge that refuses the head that our read just saw."""
    return InProgressError(f"{request}: the forge has not taken in its head yet")


class SharedMerging(ABC):
    """The part of the port that merges."""

    @abstractmethod
    def _merge(self, request: MergeRequest, end_s: float) -> Merge[Any]:
        """Return the merge that is asked for until then."""

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
            InProgressError: The forge was still checking it at the deadline, or its queue has it.
            NotFoundError: No such pull request.
        """
        request = MergeRequest(repo, number, head, style, operation)
        return self._merge(request, time.monotonic() + deadline_s).run()


class QueueingForge(MergingForge, Protocol):
    """A forge whose branches may have a queue that merges later."""

    def is_waiting(self, request: MergeRequest) -> bool:
        """Say whether a pull request is in the queue of its base."""
        ...

    def enqueue(self, request: MergeRequest) -> None:
        """
        Put a pull request that is not waiting into the queue of its base.

        Raises:
            OrderkitError: The forge refuses it.
        """
        ...


QueueingT = TypeVar("QueueingT", bound=QueueingForge)


@dataclass(slots=True)
class QueuedMerge(Merge[QueueingT]):
    """A merge that may have to wait in a queue, and is followed there."""

    in_queue: bool = False
    was_waiting: bool = False
    """Whether the forge showed it in the queue; that may take a moment."""

    def _send_merge(self) -> CommitSha | OrderkitError:
        """Follow what waits in a queue instead of asking for the merge again."""
        if not self.in_queue:
            return Merge._send_merge(self)  # noqa: SLF001  a slotted class has no plain super()
        is_waiting = self.forge.is_waiting(self.request)
        if self.was_waiting and not is_waiting:
            # it may have been merged between the two looks
            commit = self._merge_commit()  # between the two looks
            if commit is not None:
                return commit
            raise RefusedError(
                f"{self.request}: the merge queue put it out again",
                hint="see on the forge which check failed together with the others in the queue",
            )
        self.was_waiting |= is_waiting
        return self._queued()

    def _enqueue(self) -> OrderkitError:
        """Put the pull request into the queue of its base."""
        if not self.forge.is_waiting(self.request):  # by an earlier run, or by somebody
            self.forge.enqueue(self.request)
        self.in_queue = True
        return self._queued()

    def _queued(self) -> OrderkitError:
        self.doubt = False  # the queue was asked, and answered
        return InProgressError(
            f"{self.request}: it is queued; the forge merges it when its turn comes",
            hint="repeat the command later: it finds the merge",
        )


def differing_paths(forge: MergingForge, repo: RepoId, sides: Sides) -> list[PurePosixPath]:
    """Return the paths that base and head changed differently since they parted."""
    before, ours, theirs = (forge.tree(repo, commit) for commit in sides)
    return sorted(
        path
        for path in {*before, *ours, *theirs}
        if before.get(path) not in (ours.get(path), theirs.get(path))
        and ours.get(path) != theirs.get(path)
    )


_MAX_BYTES = 1_000_000
"""Of a file: whoever pushes decides how large it is, and comparing takes its time."""


def conflicts(before: bytes | None, ours: bytes, theirs: bytes) -> bool:
    """
    Say whether git's three-way merge of a file leaves a conflict. False if it is over a megabyte.

    Args:
        before: What it held where the branches parted; None: both added it.
    """
    if any(len(data) > _MAX_BYTES for data in (before or b"", ours, theirs)):
        return False
    import pygit2

    with tempfile.TemporaryDirectory() as folder:
        repository = pygit2.init_repository(folder, bare=True)
        ancestor, base, head = (_tree(repository, data) for data in (before, ours, theirs))
        return bool(repository.merge_trees(ancestor, base, head).conflicts)


def _tree(repository: pygit2.Repository, data: bytes | None) -> pygit2.Oid:
    import pygit2

    tree = repository.TreeBuilder()
    if data is not None:
        tree.insert("file", repository.create_blob(data), pygit2.enums.FileMode.BLOB)
    return tree.write()
