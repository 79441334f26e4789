"""
Signatures of commits: they prove that Orderkit wrote a commit, for whom, and what it changed.

Whoever can push can write any trailer. So a writer that has the platform's signing key adds one
more, ``Orderkit-Signature: <key> <branch> <time> <signature>``. It covers the repository, the
branch, the time, the whole message, and the old and new blob id of every path that the commit
changes. What we write are plain files, or files that keep their mode, so a commit that makes an
executable, a link or a submodule changes more than was signed. It does not cover the parents: the
forge chooses them. `statement` is what is signed.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from ground.names import BlobSha, CommitSha, RepoId
from orderkit.ports.revisions import PLAIN, SUBMODULE, Commit, Operation, SpecialFile, trailers

SIGNATURE_TRAILER = "Orderkit-Signature"
_VALUE = re.compile(r"([0-9a-f]{12}) (\S+) ([0-9]{1,12}) ([A-Za-z0-9_-]{86})")
_SIGNATURE_LINE = re.compile(rf"^{SIGNATURE_TRAILER}:.*\n?", re.MULTILINE)

Files = Mapping[PurePosixPath, BlobSha]
BlobChanges = Mapping[PurePosixPath, tuple[BlobSha | None, BlobSha | None]]
"""Old and new blob id of each changed path; None: there is no such file."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An Ed25519 public key: base64 of its 32 bytes, and an id derived from it."""

    id: str
    text: str


class Signatures(Protocol):
    """Signs with the key of this machine, if it has one, and checks with any public key."""

    @property
    def public_key(self) -> PublicKey | None:
        """
        The public half of this machine's key; None if it has none.

        Raises:
            NotFoundError, InvalidInputError: The file cannot be read, or is not such a key.
        """
        ...

    @property
    def can_sign(self) -> bool:
        """Whether this machine has the private half."""
        ...

    def sign(self, statement: bytes) -> bytes: ...

    def is_valid(self, key: PublicKey, statement: bytes, signature: bytes) -> bool: ...


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature trailer of a commit, not checked."""

    key_id: str
    branch: str
    """The branch that Orderkit wrote the commit to."""
    at: int
    """Seconds since 1970, UTC."""
    signature: bytes

    def __str__(self) -> str:
        text = base64.urlsafe_b64encode(self.signature).decode().rstrip("=")
        return f"{self.key_id} {self.branch} {self.at} {text}"


def signature_of(message: str) -> Signature | None:
    """Read the signature trailer of a commit message; None if there is none."""
    match = _VALUE.fullmatch(trailers(message).get(SIGNATURE_TRAILER, ""))
    if match is None:
        return None
    try:
        signature = base64.urlsafe_b64decode(match[4] + "==")
    except binascii.Error:
        return None
    return Signature(match[1], match[2], int(match[3]), signature)


def signed_message(
    signatures: Signatures,
    repo: RepoId,
    branch: str,
    operation: Operation,
    changes: BlobChanges,
    *,
    at: int,
) -> str:
    """Return the operation's commit message, signed if this machine can sign."""
    key = signatures.public_key if signatures.can_sign else None
    if key is None:
        return operation.message
    signature = signatures.sign(statement(repo, branch, at, operation.message, changes))
    value = Signature(key.id, branch, at, signature)
    return f"{operation.message}{SIGNATURE_TRAILER}: {value}\n"


def is_signed_by(
    signatures: Signatures, key: PublicKey, repo: RepoId, commit: Commit, changes: BlobChanges
) -> bool:
    """Say whether the key signed this message for these changes in this repository."""
    signature = signature_of(commit.message)
    if signature is None or signature.key_id != key.id or commit.is_merge:
        return False
    if len(_SIGNATURE_LINE.findall(commit.message)) != 1:
        return False  # no such line is signed, so a second one could say anything
    text = statement(repo, signature.branch, signature.at, commit.message, changes)
    return signatures.is_valid(key, text, signature.signature)


def statement(repo: RepoId, branch: str, at: int, message: str, changes: BlobChanges) -> bytes:
    """Return what a signature covers. Spaces at line ends and repeated blank lines do not count."""
    unsigned = _SIGNATURE_LINE.sub("", message).strip()
    lines = "\n".join(line.rstrip(" \t\r") for line in unsigned.split("\n"))
    files = sorted([str(path), *blobs] for path, blobs in changes.items())
    document = {
        "schema": "orderkit.commit/v1",
        "repository": str(repo),
        "branch": branch,
        "at": at,
        "message": re.sub(r"\n{3,}", "\n\n", lines),
        "files": files,
    }
    return json.dumps(document, sort_keys=True).encode()


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The files of a commit, and those of its entries that are no plain files."""

    files: Files
    special: Mapping[PurePosixPath, SpecialFile]

    def entry(self, path: PurePosixPath) -> SpecialFile | None:
        """Return mode and id of a path, if the commit has it."""
        plain = self.files.get(path)
        return self.special.get(path) or (SpecialFile(PLAIN, plain) if plain else None)

    def paths(self) -> set[PurePosixPath]:
        """Return all paths, submodules included."""
        return {*self.files, *self.special}


_NO_FILES = CommitFiles({}, {})


class CommitReader(Protocol):
    """The part of the forge port that reads what a commit has; see ``ports.forge``."""

    def tree(self, repo: RepoId, commit: CommitSha) -> Files: ...

    def special_files(
        self, repo: RepoId, commit: CommitSha
    ) -> Mapping[PurePosixPath, SpecialFile]: ...


def blob_changes(before: CommitFiles, after: CommitFiles) -> BlobChanges:
    """
    Return the paths that differ between two commits.

    A new id begins with its mode if that is neither a plain file's nor the old file's.
    """
    changes: dict[PurePosixPath, tuple[BlobSha | None, BlobSha | None]] = {}
    for path in before.paths() | after.paths():
        old, new = before.entry(path), after.entry(path)
        if old == new:
            continue
        modes = (PLAIN, old.mode if old and old.mode != SUBMODULE else PLAIN)
        new_id = None
        if new:
            new_id = BlobSha(new.id if new.mode in modes else f"{new.mode:o} {new.id}")
        changes[path] = (BlobSha(old.id) if old else None, new_id)
    return changes


def read_changes(forge: CommitReader, repo: RepoId, commit: Commit) -> BlobChanges:
    """
    Return what a commit changes of its first parent.

    Raises:
        NotFoundError, RemoteError: The forge.
    """
    before, after = (
        CommitFiles(forge.tree(repo, id_), forge.special_files(repo, id_)) if id_ else _NO_FILES
        for id_ in (commit.parents[0] if commit.parents else None, commit.id)
    )
    return blob_changes(before, after)
