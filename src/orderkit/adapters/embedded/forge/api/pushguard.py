"""
Hold a git push back until the rules of the branches it wants to move were asked.

Gitea does this in a hook that git runs between receiving objects and moving references. Here
the pack is unpacked aside first, in a folder that is thrown away, but only if a rule matches
one of the branches; a refused push is answered in git's own words for a declined hook, and
nothing of it stays in the repository.

Called by ``api.smart``.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pygit2

from orderkit.adapters.embedded.forge import gitmerge, gitread, guards
from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api import guarding
from orderkit.adapters.embedded.forge.gitprogram import environment
from orderkit.adapters.embedded.forge.guards import RefUpdate
from orderkit.adapters.embedded.forge.protections import Rule
from orderkit.adapters.embedded.forge.registry import RepoRow

if TYPE_CHECKING:
    from orderkit.adapters.embedded.forge.forge import EmbeddedForge

NOWHERE = "0" * 40
UNPACK_TIMEOUT_S = 600
_BAND_MAX = 60_000


@dataclass(frozen=True, slots=True)
class Command:
    """One ref update that a push asks for."""

    old: str
    new: str
    ref: str


def read_commands(spool: IO[bytes]) -> list[Command]:
    """Return the ref updates at the head of a receive-pack request; malformed ones end the list."""
    spool.seek(0)
    commands: list[Command] = []
    while True:
        head = spool.read(4)
        try:
            length = int(head, 16)
        except ValueError:
            return commands
        if length <= len(head):
            return commands
        words = spool.read(length - len(head)).split(b"\0")[0].decode(errors="replace").split()
        match words:
            case [old, new, ref]:
                commands.append(Command(old, new, ref))


def why_refused(
    forge: EmbeddedForge, repo: RepoRow, account: Account, spool: IO[bytes]
) -> tuple[list[Command], str]:
    """Return what a push asks for and why it is refused as a whole, or nothing."""
    commands = read_commands(spool)
    ruled = [
        (command, rule) for command in commands if (rule := _rule(forge, repo, command)) is not None
    ]
    if not ruled:
        return commands, ""
    doer = guarding.doer_on(forge, repo, account)
    with _objects_of(forge, repo, commands, spool) as git:
        for command, rule in ruled:
            reason = guards.refuse_push(rule, doer, _update(git, command))
            if reason:
                return commands, reason
    return commands, ""


def _rule(forge: EmbeddedForge, repo: RepoRow, command: Command) -> Rule | None:
    branch = command.ref.removeprefix(gitread.HEADS)
    return guarding.rule_for(forge, repo, branch) if branch != command.ref else None


@contextmanager
def _objects_of(
    forge: EmbeddedForge, repo: RepoRow, commands: Sequence[Command], spool: IO[bytes]
) -> Iterator[pygit2.Repository]:
    """Yield the repository as it would be with the pushed objects."""
    git = gitread.open_repository(repo.path)
    if all(command.new == NOWHERE for command in commands):
        yield git
        return
    with tempfile.TemporaryDirectory(prefix="orderkit-push-") as aside:
        _unpack(forge, repo, Path(aside), spool)
        git.odb.add_disk_alternate(aside)
        yield git


def _unpack(forge: EmbeddedForge, repo: RepoRow, aside: Path, spool: IO[bytes]) -> None:
    """Index the pack that follows the commands; a broken one is for git to refuse."""
    at, descriptor = spool.tell(), spool.fileno()
    spool.seek(at)
    os.lseek(descriptor, at, os.SEEK_SET)
    (aside / "pack").mkdir()
    found = environment({"safe.directory": "*"})
    found |= {
        "GIT_DIR": str(repo.path),
        "GIT_OBJECT_DIRECTORY": str(aside),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repo.path / "objects"),
    }
    subprocess.run(  # noqa: S603  fixed program and options
        [forge.git, "index-pack", "--stdin", "--fix-thin"],
        env=found,
        stdin=descriptor,
        capture_output=True,
        check=False,
        timeout=UNPACK_TIMEOUT_S,
        pass_fds=(forge.lock_fd,),
    )


def _update(git: pygit2.Repository, command: Command) -> RefUpdate:
    branch = command.ref.removeprefix(gitread.HEADS)
    if command.new == NOWHERE:
        return RefUpdate(branch, deletes=True, forces=False, commits=(), paths=())
    new = _new_commits(git, command)
    known = command.old != NOWHERE
    forces = known and not gitmerge.is_ancestor(git, command.old, command.new)
    start = command.old if known else _parent(new)
    return RefUpdate(
        branch,
        deletes=False,
        forces=forces,
        commits=tuple(str(commit.id) for commit in new),
        paths=gitmerge.changed_paths(git, start, command.new),
    )


def _new_commits(git: pygit2.Repository, command: Command) -> list[pygit2.Commit]:
    if gitread.commit_by_id(git, command.new) is None:
        return []
    walker = git.walk(command.new)
    seen = [command.old] if command.old != NOWHERE else []
    seen += [str(git.references[gitread.HEADS + name].target) for name in gitread.branch_names(git)]
    for each in seen:
        walker.hide(each)
    return list(walker)


def _parent(commits: Sequence[pygit2.Commit]) -> str:
    """Return where new commits begin, or nothing if they begin nowhere."""
    known = {commit.id for commit in commits}
    starts = [parent for commit in commits for parent in commit.parent_ids if parent not in known]
    return str(starts[-1]) if starts else ""


def declined(spool: IO[bytes], commands: Sequence[Command], reason: str) -> bytes:
    """Return git's answer to a push that a hook declined, every reference of it."""
    spool.seek(4)
    first = spool.read(_BAND_MAX).partition(b"\n")[0]
    capabilities = first.partition(b"\0")[2]
    report = _packet(b"unpack ok\n") + b"".join(
        _packet(f"ng {command.ref} pre-receive hook declined\n".encode()) for command in commands
    )
    report += b"0000"
    if b"side-band-64k" not in capabilities:
        return report if b"report-status" in capabilities else b""
    said = _packet(b"\x02" + f"error: \nerror: {reason}\nerror: \n".encode())
    bands = b"".join(
        _packet(b"\x01" + report[at : at + _BAND_MAX]) for at in range(0, len(report), _BAND_MAX)
    )
    return said + bands + b"0000"


def _packet(line: bytes) -> bytes:
    return f"{len(line) + 4:04x}".encode() + line
