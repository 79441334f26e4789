"""
Edits on the embedded forge: how many a second, at how many requests and tries, and which are lost.

The peer is py-gitea, used as client libraries are: read the file, send it back with its sha,
begin anew after any failure. Both edit the same forge in the same run, first undisturbed, then
through a proxy that loses one answer in ten after the forge carried the request out. An edit is
read, add one, write; half of them go to a file that all writers share.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pygit2

from bench.figure import Figure, size
from bench.writer import ROOT, SHARED, Done, Task, run_all
from orderkit.ports.forge import OPERATION_TRAILER

if TYPE_CHECKING:
    from faultproxy import FaultProxy

TOKEN = "b" * 40
PEER = "py-gitea: read, then PUT with the sha"
EDITS = size({1: 200, 8: 60}, {1: 3, 2: 2})
"""Edits of each writer by how many there are."""
GIT_EDITS = size({1: 1000, 8: 250}, {1: 3, 2: 2})
LOSSY_EDITS, COUNTED_EDITS = size((40, 20), (2, 2))
SERVER = """
import sys
from pathlib import Path
from orderkit_standins.forge import EmbeddedForge
from orderkit.web.serving import HttpServer, bind
forge = EmbeddedForge(Path(sys.argv[1]))
server = HttpServer(forge.app, bind("forge", 0))
server.start()
forge.set_base_url(server.url)
forge.ensure_user("bench", "bench-pw1", admin=True)
forge.ensure_token("bench", "t", sys.argv[2], ["all"])
print(server.url, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Round:
    """What the writers of one round came to."""

    writers: list[Done]
    elapsed_s: float
    lost: int
    """Acknowledged edits that are not in the history."""
    twice: int
    """Edits in the history more than once."""

    @property
    def acknowledged(self) -> int:
        return sum(len(done.acknowledged) for done in self.writers)

    @property
    def per_s(self) -> float:
        return self.acknowledged / self.elapsed_s

    @property
    def tries(self) -> float:
        return sum(done.tries for done in self.writers) / max(self.acknowledged, 1)


@dataclass
class Stand:
    """A forge in a process of its own, and its folder."""

    url: str
    repos: Path
    count: int = 0

    def repository(self) -> str:
        """Make a repository with the shared file; return its name."""
        from ground.names import RepoId
        from orderkit.adapters.gitea import GiteaForge
        from orderkit.ports.forge import FileChange, Operation

        self.count += 1
        repo = RepoId("bench-org", f"r{self.count}")
        with GiteaForge(self.url, token=TOKEN) as forge:
            forge.ensure_org(repo.owner)
            forge.ensure_repo(repo, description="")
            change = FileChange(PurePosixPath(SHARED), b"0\n", None)
            forge.write(repo, [change], Operation("begin", "user:default/bench", "Begin"))
        return str(repo)

    def round(self, kind: str, writers: int, edits: int, url: str = "") -> Round:
        """Let writers edit one new repository; compare what they were told with its history."""
        repo = self.repository()
        where = str(self.repos) if kind == "git" else url or self.url
        tasks = [Task(kind, f"w{n}", edits, where, [repo], TOKEN) for n in range(writers)]
        done, elapsed_s = run_all(tasks)
        made = _operations(self.repos / f"{repo}.git")
        told = {operation for each in done for operation in each.acknowledged}
        twice = sum(count > 1 for count in made.values())
        return Round(done, elapsed_s, len(told - set(made)), twice)


def figures() -> Iterator[Figure]:
    with running() as stand:
        for writers, edits in GIT_EDITS.items():
            done = stand.round("git", writers, edits)
            yield Figure(f"forge.git.{writers}-writers", done.per_s, "edits/s", aim=">= 800")
            yield Figure(f"forge.git.{writers}-writers.tries", done.tries, "tries per edit")
        for writers, edits in EDITS.items():
            yield from _compared(stand, writers, edits)
        yield from _requests(stand)
        yield from _lossy(stand)


def _compared(stand: Stand, writers: int, edits: int) -> Iterator[Figure]:
    ours = stand.round("orderkit", writers, edits)
    peer = stand.round("py-gitea", writers, edits)
    name = f"forge.http.{writers}-writers"
    ratio = ours.per_s / peer.per_s
    yield Figure(name, ours.per_s, "edits/s", PEER, peer.per_s, ratio, aim=">= 150")
    yield Figure(
        f"{name}.tries", ours.tries, "tries per edit", PEER, peer.tries, ours.tries / peer.tries
    )
    wrong = float(ours.lost + ours.twice)
    yield Figure(
        f"{name}.lost-or-twice", wrong, "edits", PEER, float(peer.lost + peer.twice), aim="<= 0"
    )


def _requests(stand: Stand) -> Iterator[Figure]:
    with _proxied(stand) as proxy:
        proxy.log.clear()
        stand.round("orderkit", 1, COUNTED_EDITS, proxy.url)
        ours = len(proxy.log) / COUNTED_EDITS
        proxy.log.clear()
        stand.round("py-gitea", 1, COUNTED_EDITS, proxy.url)
        peer = len(proxy.log) / COUNTED_EDITS
    yield Figure("forge.requests-per-change", ours, "requests", PEER, peer, ours / peer, "<= 3")


def _lossy(stand: Stand) -> Iterator[Figure]:
    import random

    from faultproxy import Fault, Seeded

    found = {}
    for kind in ("orderkit", "py-gitea"):
        with _proxied(stand) as proxy:
            proxy.plan = Seeded(random.Random(1), (Fault.DROP_AFTER,), 0.1, 0.0)  # noqa: S311
            found[kind] = stand.round(kind, 1, LOSSY_EDITS, proxy.url)
    ours, peer = found["orderkit"], found["py-gitea"]
    yield Figure(
        "forge.answers-lost.lost-or-twice", float(ours.lost + ours.twice), "edits",
        PEER, float(peer.lost + peer.twice), aim="<= 0",
    )  # fmt: skip


@contextlib.contextmanager
def _proxied(stand: Stand) -> Iterator[FaultProxy]:
    sys.path.append(str(ROOT / "tests" / "support"))
    from faultproxy import open_proxy

    with open_proxy(stand.url) as proxy:
        yield proxy


@contextlib.contextmanager
def running() -> Iterator[Stand]:
    """Run an embedded forge as a process, its folder in memory if there is room for it."""
    memory = "/dev/shm"  # noqa: S108  a file system: the disk of the machine does not count
    place = memory if os.access(memory, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(dir=place) as name,
        subprocess.Popen(
            [sys.executable, "-c", SERVER, name, TOKEN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        yield Stand(process.stdout.readline().strip(), Path(name) / "repos")
        process.kill()


def _operations(repository: Path) -> Counter[str]:
    repo = pygit2.Repository(str(repository))
    mark = f"{OPERATION_TRAILER}: "
    return Counter(
        line.removeprefix(mark)
        for commit in repo.walk(repo.references["refs/heads/main"].target)
        for line in commit.message.splitlines()
        if line.startswith(mark)
    )
