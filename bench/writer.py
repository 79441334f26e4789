"""
One writer as a process of its own: it counts up files in repositories, again and again.

``python -m bench.writer JSON`` prints ``ready``, waits for a line on its input, makes its edits,
and prints what was acknowledged as one JSON object. Three kinds: `orderkit` (the port),
`py-gitea` (read, then PUT with the sha, and once more from the start after any failure), and
`git` (the embedded forge's git layer, without HTTP). Each edit carries an operation id, so
that the history can be compared with what was acknowledged.

Started by ``bench.forge`` and by the tests of writers.
"""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Protocol

from orderkit.ports.forge import OPERATION_TRAILER

SHARED = "shared"
TRIES = 500
PAUSE_S = 0.02
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Task:
    """What one writer does. Edit n goes to repository n, and to the shared file if n is even."""

    kind: str
    name: str
    edits: int
    url: str
    """The forge's base URL; for `git` the folder of its repositories."""
    repos: Sequence[str]
    token: str = ""
    shared: bool = True
    """Whether every other edit goes to a file that all writers share."""


@dataclass
class Done:
    """What one writer was told."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    """Operation id: repository and path."""
    tries: int = 0
    conflicts: Counter[str] = field(default_factory=Counter)
    """How often the client said that another writer was first, by exit code."""
    errors: Counter[str] = field(default_factory=Counter)
    elapsed_s: float = 0.0


class TakenError(Exception):
    """Another writer was first; read again. `exit_code` is what a command would end with."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Client(Protocol):
    """A way to count a file up once."""

    def count_up(self, repo: str, path: str, operation: str) -> None:
        """Read, add one, write. TakenError if somebody else was first."""
        ...


class OrderkitClient:
    """Through the port."""

    def __init__(self, task: Task) -> None:
        from orderkit.adapters.gitea import GiteaForge

        self._forge = GiteaForge(task.url, token=task.token)

    def count_up(self, repo: str, path: str, operation: str) -> None:
        from ground.errors import ConflictError
        from ground.names import RepoId
        from orderkit.ports.forge import FileChange, Operation

        owner, _, name = repo.partition("/")
        target, where = RepoId(owner, name), PurePosixPath(path)
        seen = self._forge.read(target, where, "main")
        value = int(seen.text) + 1 if seen else 1
        change = FileChange(where, f"{value}\n".encode(), seen.sha if seen else None)
        wanted = Operation(operation, "user:default/me", "Count")
        try:
            written = self._forge.write(target, [change], wanted)
        except ConflictError as error:
            raise TakenError(error.exit_code) from error
        if not written.changed:  # another writer wrote the same number
            raise TakenError(ConflictError.exit_code)


class PyGiteaClient:
    """As a client library's users write it: read the file and its sha, send the new content."""

    def __init__(self, task: Task) -> None:
        import gitea

        self._forge = gitea.Gitea(task.url, task.token)
        self._repos = {
            repo: gitea.Repository.request(self._forge, *repo.split("/")) for repo in task.repos
        }

    def count_up(self, repo: str, path: str, operation: str) -> None:
        import gitea

        api, message = self._repos[repo], f"Count\n\n{OPERATION_TRAILER}: {operation}\n"
        data = {"message": message, "branch": "main"}
        try:
            seen = self._forge.requests_get(f"/repos/{repo}/contents/{path}")
        except gitea.NotFoundException:
            api.create_file(path, base64.b64encode(b"1\n").decode(), data)
            return
        value = int(base64.b64decode(seen["content"])) + 1
        text = base64.b64encode(f"{value}\n".encode()).decode()
        api.change_file(path, seen["sha"], text, data)


class GitClient:
    """Past HTTP: the function that the embedded forge commits with."""

    def __init__(self, task: Task) -> None:
        self._folder = Path(task.url)

    def count_up(self, repo: str, path: str, operation: str) -> None:
        from orderkit_standins.forge import git_read, git_write

        folder = self._folder / f"{repo}.git"
        git = git_read.open_repository(folder)
        head = git_read.branch_commit(git, "main")
        seen = git_read.entry_at(head.tree, path) if head else None
        blob = git_read.blob(git, seen.id) if seen else None
        value = int(blob.data) + 1 if blob else 1
        person = git_write.Person("bench", "bench@localhost", datetime.now(UTC))
        request = git_write.CommitRequest(
            branch="main",
            message=f"Count\n\n{OPERATION_TRAILER}: {operation}",
            author=person,
            committer=person,
            files=[
                git_write.FileOperation(
                    "update" if seen else "create",
                    path,
                    f"{value}\n".encode(),
                    seen.id if seen else "",
                )
            ],
        )
        try:
            git_write.commit_files(folder, request)
        except git_write.WriteError as error:
            raise TakenError(3) from error


CLIENTS: dict[str, type[OrderkitClient | PyGiteaClient | GitClient]] = {
    "orderkit": OrderkitClient,
    "py-gitea": PyGiteaClient,
    "git": GitClient,
}


def run(task: Task, client: Client) -> Done:
    """Make every edit of a task; try each again until it is acknowledged, or too often."""
    done, chance = Done(), random.Random(task.name)  # noqa: S311  pauses, no secrets
    begin_s = time.perf_counter()
    for number in range(task.edits):
        repo = task.repos[number % len(task.repos)]
        path = SHARED if task.shared and number // len(task.repos) % 2 == 0 else task.name
        operation = f"{task.name}-{number}"
        if _count_up(client, (repo, path, operation), done, chance):
            done.acknowledged[operation] = f"{repo}/{path}"
    done.elapsed_s = time.perf_counter() - begin_s
    return done


def _count_up(
    client: Client, edit: tuple[str, str, str], done: Done, chance: random.Random
) -> bool:
    for _ in range(TRIES):
        done.tries += 1
        try:
            client.count_up(*edit)
        except TakenError as error:
            done.conflicts[str(error.exit_code)] += 1
        except Exception as error:  # noqa: BLE001  whatever the client says is counted
            done.errors[f"{type(error).__name__}: {error}"[:200]] += 1
        else:
            return True
        time.sleep(chance.random() * PAUSE_S)
    return False


def run_all(tasks: Sequence[Task]) -> tuple[list[Done], float]:
    """Run each task in a process of its own, all begun at once; return the seconds it took."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.writer", json.dumps(asdict(task))],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if any(each.kind == "orderkit" for each in tasks) else subprocess.DEVNULL,
            text=True,
        )
        for task in tasks
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "a writer did not start"
        begin_s = time.perf_counter()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        found = [_done(process) for process in processes]
        return found, time.perf_counter() - begin_s
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _done(process: subprocess.Popen[str]) -> Done:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "a writer died"
    answer = json.loads(line)
    counters = {name: Counter(answer[name]) for name in ("conflicts", "errors")}
    return Done(**(answer | counters))


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    client = CLIENTS[task.kind](task)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(vars(run(task, client))), flush=True)


if __name__ == "__main__":
    main()
