"""
Try on a real forge what Orderkit relies on, in repositories of its own that are removed again.

The cases are those of the contract suite that need one account and an organisation to throw away.
What they cannot show: a lost answer, a killed client, other people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import PurePosixPath
from typing import Any

from ground.errors import ConflictError, MovedError, NotFoundError, OrderkitError, RefusedError
from ground.names import MAIN, CommitSha, RepoId
from orderkit.ports.clock import Clock
from orderkit.ports.forge import (
    CommitStatus,
    FileChange,
    Forge,
    MergeStyle,
    Operation,
    PullDraft,
    PullRequest,
)

PREFIX = "orderkit-check-"
"""How the names of the repositories begin."""
_A = PurePosixPath("a.txt")
_BRANCH, _CHECK, _MARKER = "change", "orderkit/check", "check"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case: what was relied on, how long it took, and why it does not hold; "": it holds."""

    case: str
    seconds: float
    problem: str = ""


@dataclass(slots=True)
class _Bench:
    """A repository of the check, and what cases made in it."""

    forge: Forge
    repo: RepoId
    run: str
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    pull: PullRequest | None = None

    @property
    def renamed(self) -> RepoId:
        """The name that it has for a moment."""
        return RepoId(self.repo.owner, f"{self.repo.name}-2")

    def op(self) -> Operation:
        return Operation(f"{self.run}-{next(self.numbers)}", "user:default/forge-check", "Check it")

    def put(self, text: str, seen: str | None, *, branch: str = MAIN) -> CommitSha:
        changes = [self.change(text, seen)]
        return self.forge.write(self.repo, changes, self.op(), branch=branch).commit

    def change(self, text: str, seen: str | None) -> FileChange:
        return FileChange(_A, text.encode(), self.sha(seen) if seen is not None else None)

    def sha(self, ref: str) -> Any:
        found = self.forge.read(self.repo, _A, ref)
        _must(found is not None, f"{_A} is not at {ref}")
        return found.sha if found else None

    def opened(self) -> PullRequest:
        if self.pull is None:
            raise NotFoundError("no pull request was opened")
        return self.pull


def _must(holds: bool, why: str) -> None:  # noqa: FBT001  a condition
    if not holds:
        raise RefusedError(why)


def _first_commit(bench: _Bench) -> None:
    changes = [bench.change("1\n", None), FileChange(PurePosixPath("d/b"), b"2\n", None)]
    made = bench.forge.write(bench.repo, changes, bench.op())
    commits = bench.forge.commits(bench.repo)
    _must([commit.id for commit in commits] == [made.commit], "it is not one commit")
    _must(len(bench.forge.tree(bench.repo, made.commit)) == len(changes), "a file is missing")


def _compared(bench: _Bench) -> None:
    stale = bench.change("3\n", MAIN)
    bench.put("2\n", MAIN)
    try:
        bench.forge.write(bench.repo, [stale], bench.op())
    except ConflictError:
        return
    raise RefusedError("a change of a file that had changed was written")


def _recognised(bench: _Bench) -> None:
    operation, change = bench.op(), bench.change("4\n", MAIN)
    first = bench.forge.write(bench.repo, [change], operation)
    before = len(bench.forge.commits(bench.repo))
    again = bench.forge.write(bench.repo, [change], operation)
    _must(again.commit == first.commit, "the repetition names another commit")
    _must(len(bench.forge.commits(bench.repo)) == before, "the repetition made a commit")


def _opened_once(bench: _Bench) -> None:
    head = bench.forge.head(bench.repo)
    _must(head is not None, "main has no commit")
    bench.forge.ensure_branch(bench.repo, _BRANCH, head or CommitSha(""))
    bench.put("5\n", _BRANCH, branch=_BRANCH)
    draft = PullDraft("Check", "What is checked", _BRANCH)
    bench.pull = bench.forge.open_pull(bench.repo, draft, bench.op())
    again = bench.forge.open_pull(bench.repo, draft, bench.op())
    _must(again.number == bench.pull.number, "a second one was opened")


def _said(bench: _Bench) -> None:
    pull, forge = bench.opened(), bench.forge
    for text in ("one", "two"):
        forge.comment(bench.repo, pull.number, text, marker=_MARKER)
        forge.set_status(bench.repo, pull.head_commit, CommitStatus(_CHECK, "success", text))
    found = forge.statuses(bench.repo, pull.head_commit)
    _must([status.description for status in found] == ["two"], "another status counts")


def _merged_once(bench: _Bench) -> None:
    pull = bench.opened()
    how: Mapping[str, Any] = {"head": pull.head_commit, "style": MergeStyle.MERGE}
    merge = bench.forge.merge_pull
    first = merge(bench.repo, pull.number, **how, operation=bench.op(), deadline_s=60)
    again = merge(bench.repo, pull.number, **how, operation=bench.op(), deadline_s=60)
    _must(first == again == bench.forge.head(bench.repo), "main is elsewhere")


def _protected(bench: _Bench) -> None:
    bench.forge.protect_branch(bench.repo, MAIN, checks=[_CHECK])
    _must(bench.forge.is_protected(bench.repo, MAIN, checks=[_CHECK]), "the rule is not there")
    _must(not bench.forge.blocking_rule(bench.repo, MAIN), "the rule keeps us out")
    bench.put("6\n", MAIN)


def _renamed(bench: _Bench) -> None:
    new = bench.renamed
    bench.forge.rename_repo(bench.repo, new.name)
    try:
        bench.forge.repo(bench.repo)
        raise RefusedError("the old name is not told from the new one")
    except MovedError as error:
        _must(error.place == str(new), f"the old name leads to {error.place}")
    finally:
        bench.forge.rename_repo(new, bench.repo.name)


def _archived(bench: _Bench) -> None:
    bench.forge.archive(bench.repo)
    try:
        bench.put("7\n", MAIN)
        raise ConflictError("an archived repository was written to")
    except RefusedError:
        bench.forge.archive(bench.repo, undo=True)


CASES: Mapping[str, Callable[[_Bench], object]] = {
    "a repository's first commit has all files or none": _first_commit,
    "a change of what changed meanwhile is refused": _compared,
    "a repeated write is recognised": _recognised,
    "a pull request is opened once": _opened_once,
    "a comment and a status are there once": _said,
    "a pull request is merged once, at its head": _merged_once,
    "a protected main lets us write": _protected,
    "a renamed repository says where it is": _renamed,
    "an archived repository refuses writes": _archived,
}


def check_forge(
    forge: Forge, organisation: str, clock: Clock, *, on_case: Callable[[CaseResult], object]
) -> list[CaseResult]:
    """
    Try every case; remove what was made, whatever happens.

    Raises:
        NotFoundError: No such organisation.
        OrderkitError: The repository could not be made or removed.
    """
    if not forge.has_org(organisation):
        raise NotFoundError(
            f"there is no organisation {organisation}, or it is hidden from us",
            hint="--organisation NAME, with a token that may see it",
        )
    run = f"{clock.now():%Y%m%d%H%M%S}"
    bench = _Bench(forge, RepoId(organisation, f"{PREFIX}{run}"), run)
    forge.ensure_repo(bench.repo, description="A check of Orderkit; removed when it ends")
    try:
        return [_tried(bench, name, clock, on_case) for name in CASES]
    finally:
        for repo in (bench.renamed, bench.repo):
            with suppress(MovedError):  # the name leads to the other one
                if forge.repo(repo) is not None:
                    forge.archive(repo, undo=True)
                    forge.delete_repo(repo)


def _tried(
    bench: _Bench, name: str, clock: Clock, on_case: Callable[[CaseResult], object]
) -> CaseResult:
    begun: datetime = clock.now()
    problem = ""
    try:
        CASES[name](bench)
    except OrderkitError as error:
        problem = str(error)
    result = CaseResult(name, (clock.now() - begun).total_seconds(), problem)
    on_case(result)
    return result
