"""
The forge killed by SIGKILL at random moments while it works: commits, pushes, pull requests.

Nothing that was acknowledged is lost, no lock is left that blocks the next writer, git finds
the repositories whole, and what failed is done once when it is done again.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pygit2
import pytest
from tests.crash.processes import Zygote
from tests.faults import history
from tests.faults.forgeprocess import TOKEN, ForgeProcess

from ground.errors import OrderkitError
from ground.names import RepoId
from orderkit.adapters.forges import answers
from orderkit.adapters.gitea import GiteaForge
from orderkit.ports.forge import FileChange, MergeStyle, Operation, PullDraft

if TYPE_CHECKING:
    from chances import Chances
    from tests.faults.conftest import Report

REPO, OFFERS = RepoId("team", "order"), RepoId("team", "offers")
WRITERS = 3
SHORT, FULL = 7, 300
MOMENT_S = 0.15


@dataclass
class Worker:
    """Does one step after the other; a step that failed is the first of the next round."""

    name: str
    steps: Iterator[tuple[str, Callable[[GiteaForge], object]]]
    acknowledged: list[str] = field(default_factory=list)
    pending: tuple[str, Callable[[GiteaForge], object]] | None = None
    busy: bool = False
    repeated: int = 0

    def until_dead(self, url: str) -> None:
        """Work until the forge does not answer any more."""
        with GiteaForge(url, token=TOKEN) as client, suppress(OrderkitError):
            while True:
                self.one(client)

    def one(self, client: GiteaForge) -> None:
        """Do one step, the failed one first."""
        self.repeated += self.pending is not None
        name, step = self.pending = self.pending or next(self.steps)
        self.busy = True
        try:
            step(client)
        finally:
            self.busy = False
        self.acknowledged.append(name)
        self.pending = None


def commits(writer: int) -> Iterator[tuple[str, Callable[[GiteaForge], object]]]:
    """Yield commits of one file each."""
    for number in itertools.count():
        name = f"w{writer}-{number}"
        change = FileChange(PurePosixPath(f"w{writer}/{number % 10}/{number}"), b"1", None)
        why = Operation(name, "me", "Write")
        yield name, lambda client, c=change, w=why: client.write(REPO, [c], w)  # type: ignore[misc]  # defaults bind


def offers() -> Iterator[tuple[str, Callable[[GiteaForge], object]]]:
    """Yield the steps of pull requests, each from its branch to its merge."""
    for number in itertools.count():
        yield from _offer(f"change-{number}")


def _offer(branch: str) -> Iterator[tuple[str, Callable[[GiteaForge], object]]]:
    work, opened, merged = (
        Operation(f"{branch}-{what}", "me", what) for what in ("work", "open", "merge")
    )
    change = FileChange(PurePosixPath(branch), b"1", None)

    def begin(client: GiteaForge) -> None:
        head = client.head(OFFERS)
        assert head is not None
        if client.head(OFFERS, branch) is None:
            client.ensure_branch(OFFERS, branch, head)

    def merge(client: GiteaForge) -> None:
        pull = client.open_pull(OFFERS, PullDraft("A change", "", branch), opened)
        client.merge_pull(
            OFFERS,
            pull.number,
            head=pull.head_commit,
            style=MergeStyle.SQUASH,
            operation=merged,
            deadline_s=1.0,  # it would wait for the forge to come back
        )

    yield f"{branch}-branch", begin
    yield work.id, lambda client: client.write(OFFERS, [change], work, branch=branch)
    yield (
        opened.id,
        lambda client: client.open_pull(OFFERS, PullDraft("A change", "", branch), opened),
    )
    yield merged.id, merge


@dataclass
class Pusher:
    """Pushes one branch after the other with the real git."""

    copy: Path
    environment: dict[str, str]
    acknowledged: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def until_dead(self, url: str) -> None:
        """Push until the forge does not answer any more."""
        remote = f"{url}/{REPO}.git".replace("://", f"://x:{TOKEN}@")
        while True:
            name = f"pushed-{next(self.numbers)}"
            if self.git("push", "-q", remote, f"HEAD:refs/heads/{name}"):
                return
            self.acknowledged.append(name)

    def git(self, *arguments: str) -> int:
        """Run git in the copy; return its exit code."""
        command = ["git", "-C", str(self.copy), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, check=False)
        return done.returncode


@dataclass
class Load:
    """Everything that works on a forge, and the forge."""

    forge: ForgeProcess
    workers: list[Worker]
    pusher: Pusher

    def one_kill(self, random_: random.Random) -> Counter[str]:
        """Start the forge, let all work, kill it at a random moment; return what was hit."""
        self.forge.start()
        assert not list((self.forge.root / "repos").rglob("refs/**/*.lock"))
        told = self.told()
        working = [*(worker.until_dead for worker in self.workers), self.pusher.until_dead]
        threads = [threading.Thread(target=each, args=(self.forge.url,)) for each in working]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 120
        while self.told() == told:  # so that each kill has something to lose
            assert time.monotonic() < deadline, "nobody gets anything done: a lock was left"
            time.sleep(0.002)
        time.sleep(random_.uniform(0, MOMENT_S))
        busy = sum(worker.busy for worker in self.workers)
        found = self.forge.kill()
        for thread in threads:
            thread.join()
        return found + Counter({"kills": 1, "hit work in progress": busy > 0, "calls hit": busy})

    def told(self) -> int:
        lists = [worker.acknowledged for worker in self.workers]
        return sum(map(len, [*lists, self.pusher.acknowledged]))

    def finish(self) -> int:
        """Start once more and do again what failed; return how much that was."""
        self.forge.start()
        pending = [worker for worker in self.workers if worker.pending]
        with GiteaForge(self.forge.url, token=TOKEN) as client:
            for worker in pending:
                worker.one(client)
            for worker in self.workers:
                worker.one(client)
        return len(pending)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    folder = tmp_path_factory.mktemp("killed")
    patch = pytest.MonkeyPatch()
    for name in ("PAUSE_FIRST_S", "PAUSE_MAX_S"):  # a dead forge need not be waited for
        patch.setattr(answers, name, 0.001)
    patch.setattr(answers, "GET_PAUSE_S", 0.001)
    zygote = Zygote()
    forge = ForgeProcess(zygote, folder / "forge")
    forge.start()
    with GiteaForge(forge.url, token=TOKEN) as client:
        client.ensure_org(REPO.owner)
        for repo in (REPO, OFFERS):
            client.ensure_repo(repo, description="")
            client.write(repo, [history.change("a", "0", None)], Operation("begin", "me", "Begin"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_TERMINAL_PROMPT": "0"}
    copy = folder / "copy"
    command = ["git", "clone", "-q", f"{forge.url}/{REPO}.git", str(copy)]
    subprocess.run(command, env=environment, check=True)
    forge.kill()
    workers = [Worker(f"w{n}", commits(n)) for n in range(WRITERS)]
    yield Load(forge, [*workers, Worker("offers", offers())], Pusher(copy, environment))
    zygote.close()
    patch.undo()


@pytest.mark.timeout(600)
def test_a_forge_killed_at_random_moments_loses_nothing(
    load: Load, chances: Chances, report: Report
) -> None:
    random_ = chances.random("forge")
    title = "the embedded forge killed at random moments"
    for number in range(chances.count(SHORT, FULL)):
        try:
            report.add(title, load.one_kill(random_))
        except BaseException as error:
            error.add_note(f"seed {chances.seed}, kill {number}")
            raise
    load.finish()
    repeated = sum(worker.repeated for worker in load.workers)
    report.add(title, Counter({"acknowledged": load.told(), "done again": repeated}))
    judge(load)


def judge(load: Load) -> None:
    """Assert that everything acknowledged is there once, and that git finds no fault."""
    for repo in (REPO, OFFERS):
        bare = load.forge.root / "repos" / repo.owner / f"{repo.name}.git"
        check = ["git", "-C", str(bare), "fsck", "--strict", "--no-dangling"]
        done = subprocess.run(check, env=load.pusher.environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    bare = load.forge.root / "repos" / REPO.owner / REPO.name
    found = Counter(
        name for step in history.steps(bare.with_suffix(".git")) for name in step.operations
    )
    written = [name for each in load.workers[:WRITERS] for name in each.acknowledged]
    assert found == Counter(["begin", *written])
    branches = pygit2.Repository(str(bare.with_suffix(".git"))).branches.local
    assert set(load.pusher.acknowledged) <= set(branches)
    judge_offers(load)


def judge_offers(load: Load) -> None:
    """Assert that each pull request is there once, and merged once if that was told."""
    offered = load.workers[-1].acknowledged
    bare = load.forge.root / "repos" / OFFERS.owner / f"{OFFERS.name}.git"
    merged = Counter(name for step in history.steps(bare) for name in step.operations)
    assert merged == Counter(["begin", *(name for name in offered if name.endswith("-merge"))])
    with GiteaForge(load.forge.url, token=TOKEN) as client:
        opened = Counter(f"{each.head}-open" for each in client.pulls(OFFERS, state="all"))
    assert opened == Counter(name for name in offered if name.endswith("-open"))
