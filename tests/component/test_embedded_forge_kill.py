"""The forge killed with SIGKILL while it works: nothing acknowledged is lost, nothing blocks."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pygit2
import pytest

from orderkit.adapters.gitea import GiteaForge
from orderkit.core.errors import OrderkitError
from orderkit.core.names import RepoId
from orderkit.ports.forge import OPERATION_TRAILER, FileChange, Operation

REPO = RepoId("team", "order")
TOKEN = "d" * 40
WRITERS = 3
KILLS = 5
FORGE = """
import sys
from pathlib import Path
from orderkit.adapters.embedded.forge import EmbeddedForge
from orderkit.adapters.embedded.serving import HttpServer, bind
forge = EmbeddedForge(Path(sys.argv[1]))
server = HttpServer(forge.app, bind("forge", 0))
server.start()
forge.set_base_url(server.url)
forge.ensure_user("warden", "warden-pw1", admin=True)
forge.ensure_token("warden", "t", sys.argv[2], ["all"])
print(server.url, flush=True)
sys.stdin.read()
"""


@dataclass
class Victim:
    """A forge in a process of its own."""

    process: subprocess.Popen[str]
    url: str

    @classmethod
    def start(cls, root: Path) -> Victim:
        process = subprocess.Popen(
            [sys.executable, "-c", FORGE, str(root), TOKEN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        return cls(process, process.stdout.readline().strip())

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=10)


@dataclass
class Tally:
    """What the writers were told."""

    acknowledged: list[str] = field(default_factory=list)
    started: int = 0


def write_until_dead(url: str, writer: int, tally: Tally) -> None:
    """Commit one file after the other; each writer stops at its first error."""
    with GiteaForge(url, token=TOKEN) as client, suppress(OrderkitError):
        while True:
            number, tally.started = tally.started, tally.started + 1
            name = f"{writer}-{number}-{random.getrandbits(40):x}"
            change = FileChange(PurePosixPath(name), b"1", None)
            client.write(REPO, [change], Operation(name, "me", "Write"))
            tally.acknowledged.append(name)


def push_until_dead(url: str, copy: Path, environment: dict[str, str], tally: Tally) -> None:
    """Push one branch after the other with the real git; stop at the first error."""
    remote = f"{url}/{REPO}.git".replace("://", f"://x:{TOKEN}@")
    while True:
        name = f"pushed-{tally.started}"
        tally.started += 1
        done = subprocess.run(
            ["git", "push", "-q", remote, f"HEAD:refs/heads/{name}"],
            cwd=copy, env=environment, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return
        tally.acknowledged.append(name)


def operations(bare: Path) -> list[str]:
    repo = pygit2.Repository(str(bare))
    trailer = f"{OPERATION_TRAILER}: "
    return [
        line.removeprefix(trailer)
        for commit in repo.walk(repo.references["refs/heads/main"].target)
        for line in commit.message.splitlines()
        if line.startswith(trailer)
    ]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_TERMINAL_PROMPT": "0"}


def test_acknowledged_commits_survive_and_the_next_write_works(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    root, commits, pushes = tmp_path / "forge", Tally(), Tally()
    chance = random.Random(7)  # noqa: S311  moments, no secrets
    bare = root / "repos" / "team" / "order.git"
    copy = tmp_path / "copy"
    for round_number in range(KILLS):
        victim = Victim.start(root)
        with GiteaForge(victim.url, token=TOKEN) as client:
            client.ensure_org(REPO.owner)
            client.ensure_repo(REPO, description="")
            change = FileChange(PurePosixPath(f"round-{round_number}"), b"1", None)
            client.write(REPO, [change], Operation(f"round-{round_number}", "me", "Write"))
        if not copy.exists():
            command = ["git", "clone", "-q", f"{victim.url}/{REPO}.git", str(copy)]
            subprocess.run(command, env=environment, check=True)
        threads = [
            threading.Thread(target=write_until_dead, args=(victim.url, writer, commits))
            for writer in range(WRITERS)
        ]
        threads.append(
            threading.Thread(target=push_until_dead, args=(victim.url, copy, environment, pushes))
        )
        for thread in threads:
            thread.start()
        before = len(commits.acknowledged)
        deadline = time.monotonic() + 10
        while len(commits.acknowledged) < before + 3 and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(chance.random() * 0.1)
        victim.kill()
        for thread in threads:
            thread.join()

    found = operations(bare)
    branches = pygit2.Repository(str(bare)).branches.local
    assert len(commits.acknowledged) >= KILLS * 3
    assert set(commits.acknowledged) <= set(found)
    assert len(found) == len(set(found))
    assert all(name in branches for name in pushes.acknowledged)
    check = ["git", "fsck", "--strict", "--no-dangling"]
    assert subprocess.run(check, cwd=bare, env=environment, check=False).returncode == 0
