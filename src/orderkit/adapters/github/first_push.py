"""
Push the first commit of an empty repository: all its files at once, or nothing.

GitHub's API makes a first commit of one file only. A push says that the branch does not exist yet,
so it cannot replace what somebody else pushed meanwhile; no limit of content counts it. The commit
is built in memory, and sent as git's protocol does (``git help protocol-pack``).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ground.errors import AccessError, NotFoundError, RemoteError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import GarbledError, foreign, refusal
from orderkit.adapters.forges.calls import FORBIDDEN, MISSING, UNAUTHORIZED, Found
from orderkit.adapters.github.calls import GitHubCalls, StaleHeadError
from orderkit.adapters.github.transport import GIT
from orderkit.ports.forge import EXECUTABLE, PLAIN, FileChange

if TYPE_CHECKING:
    import pygit2

_NOTHING = "0" * 40


def push_root_commit(
    forge: GitHubCalls, repo: RepoId, branch: str, changes: Sequence[FileChange], message: str
) -> CommitSha:
    """
    Make a branch with a first commit of these files.

    Raises:
        StaleHeadError: The branch exists by now; nothing was written.
        AccessError: We may not push. NotFoundError: no such repository.
        OrderkitError: As the transport says; a lost answer leaves the outcome open.
    """
    commit, pack = _packed(changes, message, _identity(forge))
    line = f"{_NOTHING} {commit} refs/heads/{branch}\0 report-status\n".encode()
    body = _packet(line) + b"0000" + pack
    doing = f"push the first commit to {repo}"
    address = f"{GIT}/{repo.owner}/{repo.name}.git/git-receive-pack"
    answer = forge.http.send("POST", address, body=body)
    if answer.status in (UNAUTHORIZED, FORBIDDEN):
        raise AccessError(f"no right: {doing}: {answer.text}", hint="see docs/forge.md for rights")
    if answer.status == MISSING:
        raise NotFoundError(f"{doing}: {answer.text}")
    if not answer.ok:
        raise refusal(answer, doing)
    report = answer.body
    if f"ok refs/heads/{branch}\n".encode() in report:
        return commit
    if b"ng refs/heads/" in report:
        raise StaleHeadError(f"{doing}: {foreign(report)}", hint="repeat the command")
    if not report.strip():
        raise GarbledError(f"{doing}: the forge reports nothing of it")
    raise RemoteError(f"{doing}: {foreign(report)}")


def _identity(forge: Any) -> tuple[str, str]:
    """Return name and address of our account, as GitHub gives them to its commits."""
    login = forge.user()
    entry: Found = {} if forge.http.app else forge.http.get("/user").json()
    number = entry.get("id")
    address = f"{number}+{login}" if number else login
    return login, f"{address}@users.noreply.github.com"


def _packed(
    changes: Sequence[FileChange], message: str, identity: tuple[str, str]
) -> tuple[CommitSha, bytes]:
    """Return the id of the commit, and a pack with all its objects."""
    import pygit2

    with tempfile.TemporaryDirectory() as folder:
        repository = pygit2.init_repository(folder, bare=True)
        index = pygit2.Index()
        for change in changes:
            if change.data is not None:
                blob = repository.create_blob(change.data)
                mode = EXECUTABLE if change.executable else PLAIN
                index.add(pygit2.IndexEntry(str(change.path), blob, pygit2.enums.FileMode(mode)))
        person = pygit2.Signature(*identity, int(time.time()), 0)
        tree = index.write_tree(repository)
        commit = repository.create_commit(None, person, person, message, tree, [])
        return CommitSha(str(commit)), _pack(repository)


def _pack(repository: pygit2.Repository) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        repository.pack(folder)
        (pack,) = Path(folder).glob("*.pack")
        return pack.read_bytes()


def _packet(line: bytes) -> bytes:
    return f"{len(line) + 4:04x}".encode() + line
