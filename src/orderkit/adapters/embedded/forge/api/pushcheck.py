"""
Hold a git push back until the rules of the branches it wants to move were asked.

Gitea does this in a hook that git runs between receiving objects and moving references. Here
the pack is unpacked aside first, in a folder that is thrown away, but only if a rule matches
one of the branches; a refused push is answered in git's own words for a declined hook, and
nothing of it stays in the repository.

Called by ``api.smarthttp``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pygit2

from orderkit.adapters.embedded.forge import gitmerge, gitread, guards
from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api.branchrules import BranchRules
from orderkit.adapters.embedded.forge.api.webhookevents import NO_COMMIT
from orderkit.adapters.embedded.forge.gitprogram import GitProgram
from orderkit.adapters.embedded.forge.guards import RefUpdate
from orderkit.adapters.embedded.forge.protections import Rule
from orderkit.adapters.embedded.forge.repositories import Repository

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


@dataclass(frozen=True, slots=True)
class PushCheck:
    """Asks the rules before git moves references."""

    rules: BranchRules
    git: GitProgram

    def why_refused(
        self, repo: Repository, account: Account, spool: IO[bytes]
    ) -> tuple[list[Command], str]:
        """Return what a push asks for and why it is refused as a whole, or nothing."""
        commands = read_commands(spool)
        ruled = [(c, rule) for c in commands if (rule := self._rule(repo, c)) is not None]
        if not ruled:
            return commands, ""
        doer = self.rules.doer(repo, account)
        with self._with_pushed_objects(repo, commands, spool) as repository:
            for command, rule in ruled:
                reason = guards.refuse_push(rule, doer, _update(repository, command))
                if reason:
                    return commands, reason
        return commands, ""

    def _rule(self, repo: Repository, command: Command) -> Rule | None:
        branch = command.ref.removeprefix(gitread.HEADS)
        return self.rules.rule(repo, branch) if branch != command.ref else None

    @contextmanager
    def _with_pushed_objects(
        self, repo: Repository, commands: Sequence[Command], spool: IO[bytes]
    ) -> Iterator[pygit2.Repository]:
        """Yield the repository as it would be with the pushed objects."""
        repository = gitread.open_repository(repo.path)
        if all(command.new == NO_COMMIT for command in commands):
            yield repository
            return
        with tempfile.TemporaryDirectory(prefix="orderkit-push-") as aside:
            self._unpack(repo, Path(aside), spool)
            repository.odb.add_disk_alternate(aside)
            yield repository

    def _unpack(self, repo: Repository, aside: Path, spool: IO[bytes]) -> None:
        """Index the pack that follows the commands; a broken one is for git to refuse."""
        position, descriptor = spool.tell(), spool.fileno()
        spool.seek(position)
        os.lseek(descriptor, position, os.SEEK_SET)
        (aside / "pack").mkdir()
        self.git.run(
            *("index-pack", "--stdin", "--fix-thin"),
            config={"safe.directory": "*"},
            environment={
                "GIT_DIR": str(repo.path),
                "GIT_OBJECT_DIRECTORY": str(aside),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repo.path / "objects"),
            },
            stdin=descriptor,
            capture_output=True,
            timeout=UNPACK_TIMEOUT_S,
        )


def _update(git: pygit2.Repository, command: Command) -> RefUpdate:
    branch = command.ref.removeprefix(gitread.HEADS)
    if command.new == NO_COMMIT:
        return RefUpdate(branch, deletes=True)
    known = command.old != NO_COMMIT
    forces = known and not gitmerge.is_ancestor(git, command.old, command.new)
    start = command.old if known else _start_of_new_commits(git, command.new)
    return RefUpdate(branch, forces=forces, paths=gitmerge.changed_paths(git, start, command.new))


def _start_of_new_commits(git: pygit2.Repository, head: str) -> str:
    """Return the commit that the new commits of a new branch begin at; empty if there is none."""
    if gitread.commit_by_id(git, head) is None:
        return ""
    walker = git.walk(head)
    for name in gitread.branch_names(git):
        walker.hide(git.references[gitread.HEADS + name].target)
    commits = list(walker)
    new = {commit.id for commit in commits}
    starts = [parent for commit in commits for parent in commit.parent_ids if parent not in new]
    return str(starts[-1]) if starts else ""


def declined(spool: IO[bytes], commands: Sequence[Command], reason: str) -> bytes:
    """Return git's answer to a push that a hook declined, every reference of it."""
    spool.seek(4)
    first = spool.read(_BAND_MAX).partition(b"\n")[0]
    capabilities = first.partition(b"\0")[2]
    report = packet(b"unpack ok\n") + b"".join(
        packet(f"ng {command.ref} pre-receive hook declined\n".encode()) for command in commands
    )
    report += b"0000"
    if b"side-band-64k" not in capabilities:
        return report if b"report-status" in capabilities else b""
    said = packet(b"\x02" + f"error: \nerror: {reason}\nerror: \n".encode())
    bands = b"".join(
        packet(b"\x01" + report[at : at + _BAND_MAX]) for at in range(0, len(report), _BAND_MAX)
    )
    return said + bands + b"0000"


def packet(line: bytes) -> bytes:
    """Return a line as git's protocol frames it."""
    return f"{len(line) + 4:04x}".encode() + line
