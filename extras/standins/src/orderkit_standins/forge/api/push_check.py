"""
Hold a git push back until the rules of the branches it wants to move were asked.

Gitea does this in a hook that git runs between receiving objects and moving references. Here the
list of references at the head of the request is read first; a refused push is answered in git's own
words for a declined hook, and nothing of it stays in the repository. That a protected branch is not
rewritten is git's own check (``receive.denyNonFastForwards``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from orderkit_standins.forge import branch_permissions, git_read
from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.api.branch_rules import BranchRules
from orderkit_standins.forge.api.webhook_events import NO_COMMIT
from orderkit_standins.forge.repositories import Repository

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
class PushVerdict:
    """What a push asks for, whether a rule is about it, and why it is refused as a whole."""

    commands: Sequence[Command]
    protected: bool
    reason: str


def check_push(
    rules: BranchRules, repo: Repository, account: Account, spool: IO[bytes]
) -> PushVerdict:
    """Ask the rules of the branches that a push wants to move."""
    commands, reasons = read_commands(spool), []
    doer = rules.doer(repo, account)
    for command in commands:
        branch = command.ref.removeprefix(git_read.HEADS)
        rule = rules.rule(repo, branch) if branch != command.ref else None
        if rule is not None:
            deletes = command.new == NO_COMMIT
            reasons.append(branch_permissions.refuse_push(rule, doer, branch, deletes=deletes))
            if rule.settings.require_signed_commits:
                reasons.append("Commits must have verified signatures.")
    return PushVerdict(commands, bool(reasons), next(filter(None, reasons), ""))


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
    message = packet(b"\x02" + f"error: \nerror: {reason}\nerror: \n".encode())
    bands = b"".join(
        packet(b"\x01" + report[at : at + _BAND_MAX]) for at in range(0, len(report), _BAND_MAX)
    )
    return message + bands + b"0000"


def packet(line: bytes) -> bytes:
    """Return a line as git's protocol frames it."""
    return f"{len(line) + 4:04x}".encode() + line
