"""A merge queue on GitHub's face: a merge ends as queued, is followed, and is described."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
from tests.conformance.forge.conftest import Target, embedded_target
from tests.conformance.forge.faces import GITHUB

from ground.errors import ConflictError, InProgressError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.github import GitHubForge
from orderkit.ports.forge import FileChange, MergeStyle, Operation, PullDraft, PullRequest
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.github.merge_queue import MergeQueues

ORG = "queued"


@dataclass
class Queued:
    """A face, the client, and repositories whose main has a queue."""

    forge: GitHubForge
    queues: MergeQueues
    count: int = 0

    def pull(self) -> tuple[RepoId, PullRequest]:
        """Return a new pull request in a new repository."""
        self.count += 1
        repo = RepoId(ORG, f"r{self.count}")
        self.forge.ensure_repo(repo, description="")
        self._write(repo, "a", "main")
        head = self.forge.head(repo)
        assert head is not None
        self.forge.ensure_branch(repo, "change", head)
        self._write(repo, "b", "change")
        self.queues.branches.add((str(repo), "main"))
        operation = Operation(f"open-{self.count}", "user:default/t", "Open")
        return repo, self.forge.open_pull(repo, PullDraft("t", "", "change"), operation)

    def _write(self, repo: RepoId, path: str, branch: str) -> None:
        change = FileChange(PurePosixPath(path), b"x", None)
        operation = Operation(f"w-{repo.name}-{path}", "user:default/t", "Write")
        self.forge.write(repo, [change], operation, branch=branch)

    def merge(self, repo: RepoId, pull: PullRequest, *, within_s: float = 0.0) -> CommitSha:
        return self.forge.merge_pull(
            repo,
            pull.number,
            head=pull.head_commit,
            style=MergeStyle.MERGE,
            operation=Operation(f"merge-{repo.name}", "user:default/t", "Merge"),
            deadline_s=within_s,
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedForge, Target]]:
    with embedded_target(tmp_path_factory.mktemp("forge"), GITHUB) as made:
        yield made


@pytest.fixture(scope="module")
def queued(served: tuple[EmbeddedForge, Target]) -> Iterator[Queued]:
    embedded, target = served
    with GitHubForge(target.url, token=target.token) as forge:
        forge.ensure_org(ORG)
        yield Queued(forge, embedded.github.queues)


def test_a_merge_ends_as_queued_and_a_second_one_finds_it(queued: Queued) -> None:
    repo, pull = queued.pull()

    for _ in range(2):  # the second does not queue it again
        with pytest.raises(InProgressError, match="it is queued; the forge merges it") as waits:
            queued.merge(repo, pull)
        assert waits.value.hint == "repeat the command later: it finds the merge"
    queued.queues.merge_next()

    merged = queued.merge(repo, pull)
    found = queued.forge.pull(repo, pull.number)
    assert found is not None
    assert (found.state, found.merge_commit) == ("merged", merged)
    assert queued.forge.head(repo) == merged


def test_a_merge_is_followed_while_there_is_time(queued: Queued) -> None:
    repo, pull = queued.pull()
    done: list[CommitSha] = []
    thread = threading.Thread(target=lambda: done.append(queued.merge(repo, pull, within_s=60)))
    thread.start()
    stored = queued.forge.pull(repo, pull.number)
    assert stored is not None
    while not queued.queues._entries:  # noqa: SLF001  until it waits
        assert thread.is_alive()

    queued.queues.merge_next()
    thread.join(60)

    assert done == [queued.forge.head(repo)]


def test_what_the_queue_puts_out_again_is_a_refusal(queued: Queued) -> None:
    repo, pull = queued.pull()
    problems: list[Exception] = []

    def act() -> None:
        try:
            queued.merge(repo, pull, within_s=60)
        except RefusedError as error:
            problems.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    while not queued.queues._entries:  # noqa: SLF001  until it waits
        assert thread.is_alive()
    thread.join(1.0)  # the client has seen it there
    queued.queues.drop_next()
    thread.join(60)

    assert [str(problem) for problem in problems] == [
        f"merge {repo}#{pull.number}: the merge queue put it out again"
    ]
    assert queued.forge.head(repo) != pull.head_commit


def test_another_head_is_a_conflict_and_is_not_queued(queued: Queued) -> None:
    repo, pull = queued.pull()
    change = FileChange(PurePosixPath("c"), b"x", None)
    operation = Operation("late", "user:default/t", "Late")
    queued.forge.write(repo, [change], operation, branch="change")

    with pytest.raises(ConflictError, match="its head is"):
        queued.merge(repo, pull)

    assert not queued.queues._entries  # noqa: SLF001


def test_a_repository_without_a_queue_is_merged_at_once(queued: Queued) -> None:
    repo, pull = queued.pull()
    queued.queues.branches.discard((str(repo), "main"))

    assert queued.merge(repo, pull, within_s=30) == queued.forge.head(repo)
