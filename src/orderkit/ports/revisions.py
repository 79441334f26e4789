"""
Files, commits and operations: the values that every part of the forge port uses.

Reached through ``ports.forge``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from ground.names import BlobSha, CommitSha

OPERATION_TRAILER = "Orderkit-Operation"
REQUESTER_TRAILER = "Orderkit-Requester"
PROOF_TRAILER = "Orderkit-Requester-Proof"
"""Commit trailers: the operation id that identifies a repeated write, the requester, the proof."""
AGENT_TRAILER = "Orderkit-Agent"
"""Trailer of a change that an AI agent asked for; the requester is the person behind it."""
REQUESTER_ACCOUNT_TRAILER = "Orderkit-Requester-Account"
"""Trailer of a proposal: the forge's id of the user who the requester was then."""
CHANGE_TRAILER = "Orderkit-Change"
REASON_TRAILER = "Orderkit-Reason"
REQUEST_TRAILER = "Orderkit-Request"
"""Trailers of a change: its name in the kit, the reason, and a digest of the request."""
PLAIN, EXECUTABLE, LINK, SUBMODULE = 0o100644, 0o100755, 0o120000, 0o160000
"""Modes of git."""
_TRAILER = re.compile(r"([A-Za-z][A-Za-z0-9-]*): (.*)")


def agent_notes(agent: str) -> tuple[tuple[str, str], ...]:
    """Return the trailer that names an AI agent; none without an agent."""
    return ((AGENT_TRAILER, agent),) if agent else ()


class SpecialFile(NamedTuple):
    """What is no plain file in a commit: an executable, a link or a submodule."""

    mode: int
    """0o100755, 0o120000 or 0o160000."""
    id: str
    """Blob id, or the commit that a submodule names."""


@dataclass(frozen=True, slots=True)
class FileRevision:
    """A file as it was read: its bytes, and the blob id needed to write it back."""

    path: PurePosixPath
    data: bytes
    sha: BlobSha
    """Blob id that the forge must still have when we write."""

    @property
    def text(self) -> str:
        """The bytes as UTF-8; raises UnicodeDecodeError otherwise."""
        return self.data.decode()


@dataclass(frozen=True, slots=True)
class FileChange:
    """
    One entry of a commit.

    `data` None deletes the file. `expected_sha` is the blob id that was read before; None means
    that the path must not exist.
    """

    path: PurePosixPath
    data: bytes | None
    expected_sha: BlobSha | None
    executable: bool = False
    """Whether a new file is executable (`ForgeCapabilities.makes_executables`)."""


@dataclass(frozen=True, slots=True)
class Operation:
    """
    Why and for whom something is written; `id` identifies the write afterwards.

    Two different writes must not share an id. `id`, `requester` and `proof` must be one line each:
    with a line break in one of them, a requester could forge the other trailers.
    """

    id: str
    requester: str
    summary: str
    proof: str = ""
    """What proves the requester; empty: a claim."""
    notes: tuple[tuple[str, str], ...] = ()
    """More trailers, in this order: a key such as ``Orderkit-Reason`` and one line each."""

    def __post_init__(self) -> None:
        if not self.id or any(char.isspace() for char in self.id) or "-->" in self.id:
            raise ValueError(f"operation id {self.id!r} is empty, or holds a space or '-->'")
        for name, text in (("requester", self.requester), ("proof", self.proof), *self.notes):
            if "\n" in text or "\r" in text or "-->" in text:
                raise ValueError(f"{name} {text!r} is not one plain line")

    @property
    def trailers(self) -> str:
        """The trailer lines: operation, requester, the proof if there is one, and the notes."""
        lines = [(OPERATION_TRAILER, self.id), (REQUESTER_TRAILER, self.requester)]
        lines += [(PROOF_TRAILER, self.proof)] if self.proof else []
        return "".join(f"{key}: {text}\n" for key, text in (*lines, *self.notes))

    @property
    def message(self) -> str:
        """The commit message: summary line, blank line, trailers."""
        return f"{self.summary}\n\n{self.trailers}"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as the forge shows it."""

    id: CommitSha
    message: str
    parents: tuple[CommitSha, ...]
    author: str = ""
    """``Name <address>`` as recorded in git: untrusted, whoever pushed it chose it."""
    when: str = ""
    """The author's date, ISO 8601."""

    @property
    def is_merge(self) -> bool:
        """Whether it has more than one parent."""
        return len(self.parents) > 1

    @property
    def summary(self) -> str:
        """The first line of the message."""
        return self.message.strip().partition("\n")[0].strip()

    @property
    def trailers(self) -> Mapping[str, str]:
        """The trailers of the message."""
        return trailers(self.message)

    @property
    def operation(self) -> str:
        """The id of our operation that made the commit, or ""."""
        return self.trailers.get(OPERATION_TRAILER, "")

    @property
    def requester(self) -> str:
        """The requester that the message names, or ""."""
        return self.trailers.get(REQUESTER_TRAILER, "")


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a write. `changed` is False when every file already had its content."""

    commit: CommitSha
    changed: bool
    parent: CommitSha | None = field(default=None, compare=False)
    """The commit that it was made on; None: there is none, or it is not known."""


def trailers(message: str) -> Mapping[str, str]:
    """Return the trailers of a commit message: the ``Key: value`` lines of its last paragraph."""
    paragraphs = [
        paragraph for paragraph in re.split(r"\n[ \t]*\n", message.strip()) if paragraph.strip()
    ]
    lines = paragraphs[-1].split("\n") if paragraphs else []  # git knows no other line ends
    matches = (_TRAILER.fullmatch(line.strip()) for line in lines)
    return {match[1]: match[2].strip() for match in matches if match}
