"""Merge queues of GitHub and trains of GitLab: a merge ends as queued, and is followed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

import pytest
import requests
from tests.conformance.forge.conftest import Target, embedded_target, open_shop
from tests.conformance.forge.faces import FACES, GITLAB_GROUP, Account, Client

from ground.errors import ConflictError, InProgressError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.ports.forge import FileChange, MergeStyle, Operation, PullDraft, PullRequest
from orderkit_standins.forge.api.merging import MergeQueues

ORG = "queued"


@dataclass
class Queued:
    """A face, the client, and repositories whose main has a queue."""

    forge: Client
    queues: MergeQueues
    target: Target
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
        self.switch(repo, on=True)
        operation = Operation(f"open-{self.count}", "user:default/t", "Open")
        pull = self.forge.open_pull(repo, PullDraft("t", "", "change"), operation)
        while not pull.mergeable:  # it is checked from a queue
            pull = self.forge.pull(repo, pull.number) or pull
        return repo, pull

    def switch(self, repo: RepoId, *, on: bool) -> None:
        """Give main a queue, or take it away."""
        if not self.target.face.group:
            (self.queues.branches.add if on else self.queues.branches.discard)((str(repo), "main"))
            return
        address = f"{self.target.url.removesuffix(f'/{GITLAB_GROUP}')}/api/v4/projects/"
        headers = {"Authorization": f"Bearer {self.target.token}"}
        place = address + quote(f"{GITLAB_GROUP}/{repo}", safe="")
        body = {"merge_trains_enabled": on}
        assert requests.put(place, json=body, headers=headers, timeout=30).ok

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


@pytest.fixture(scope="module", params=["github", "gitlab"])
def queued(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Queued]:
    folder, face = tmp_path_factory.mktemp("queued"), FACES[request.param]
    with (
        embedded_target(folder / "forge", face) as (embedded, target),
        open_shop(target, folder) as shop,
        face.client(target, Account(token=target.token), shop) as forge,
    ):
        forge.ensure_org(ORG)
        yield Queued(forge, embedded.github.queues, target)


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
    queued.switch(repo, on=False)

    assert queued.merge(repo, pull, within_s=30) == queued.forge.head(repo)
