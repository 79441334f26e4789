"""
Names and ids: what may be called how, and types that keep them apart.

Rules: RFC 1123 labels as the Kubernetes API server checks them, repository names as Gitea
does (facts: alphanumeric with ``-_.``, at most 100 characters).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NewType

from ground.errors import InvalidInputError

__all__ = [
    "LABEL",
    "LABEL_MAX",
    "MAIN",
    "NAME_MAX",
    "REFERENCE_MAX",
    "UNKNOWN_PERSON",
    "BlobSha",
    "CommitSha",
    "Files",
    "OrderId",
    "RepoId",
    "TeamName",
    "blob_sha",
    "check_label",
    "check_person",
    "check_requester",
    "fold_reference",
]

OrderId = NewType("OrderId", str)
"""``<kit>-<name>``: names the repository, the Application and, by default, the XR."""
TeamName = NewType("TeamName", str)
"""An organisation of the forge, an AppProject, a folder of the ledger."""
CommitSha = NewType("CommitSha", str)
BlobSha = NewType("BlobSha", str)
Files = Mapping[PurePosixPath, bytes]
"""Files by their path in a folder or repository."""

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
LABEL_MAX = 63
"""Of a DNS label, and of the value of a Kubernetes label."""
_PART = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._][A-Za-z0-9._-]{0,99}"
_REPOSITORY = re.compile(rf"(?:{_PART}/)+{_PART}\Z")
MAIN = "main"
"""The branch that is delivered, of every repository."""
NAME_MAX = 40
"""Longest name of a pack or kit: orders, teams and labels add to it."""


@dataclass(frozen=True, slots=True, order=True)
class RepoId:
    """
    A repository of the forge: its organisation and its name.

    On a forge with subgroups, `owner` may have several parts, as in ``shop/web``.
    """

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> RepoId | None:
        """
        Return the repository that ``OWNER/NAME`` names, or None if the text names none.

        Only the last part is the name: ``a/b/c`` is ``c`` of ``a/b``, never of ``b``.
        """
        if not _REPOSITORY.match(text):
            return None
        owner, _, name = text.rpartition("/")
        return cls(owner, name)


def blob_sha(data: bytes, like: str = "") -> BlobSha:
    """Return git's blob id of `data`, in the hash that `like` is in (SHA-1 by default)."""
    algorithm = "sha256" if len(like) == 64 else "sha1"  # noqa: PLR2004  hex length of SHA-256
    digest = hashlib.new(algorithm, b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return BlobSha(digest.hexdigest())


def check_label(field: str, value: str, *, longest: int = LABEL_MAX) -> str:
    """
    Return `value` if it is an RFC 1123 label.

    Raises:
        InvalidInputError: It is not; the message names `field`.
    """
    if longest < len(value) <= LABEL_MAX and LABEL.match(value):
        hint = f"choose a name of at most {longest} characters"
        raise InvalidInputError(field, value, f"has {len(value)} characters", hint=hint)
    if len(value) > LABEL_MAX or not LABEL.match(value):
        raise InvalidInputError(
            field,
            value,
            f"is not an RFC 1123 label (lower-case letters, digits, '-', at most {longest})",
            hint="start and end with a letter or digit, for example 'ae86'",
        )
    return value


def fold_reference(ref: str) -> str:
    """
    Return a catalog reference in lower case, as references are compared.

    One with characters beyond ASCII stays as it is.
    """
    # `str.lower` turns U+212A into k, so that a stranger's name would become another person's
    return ref.lower() if ref.isascii() else ref


UNKNOWN_PERSON = "user:default/unknown"
"""Means that no requester is known; no person can be called so."""
REFERENCE_MAX = 300
"""More than the longest e-mail address."""
_ENTITY_REF = re.compile(r"[A-Za-z]+:[A-Za-z0-9]([-A-Za-z0-9_.]*)/[A-Za-z0-9]([-A-Za-z0-9_.@+]*)\Z")


def check_requester(value: str) -> str:
    """
    Return `value` if it is a catalog reference such as ``user:default/eve``.

    Raises:
        InvalidInputError: It is not. It ends up in commits and records, so it must be plain.
    """
    if len(value) > REFERENCE_MAX or not _ENTITY_REF.match(value):
        raise InvalidInputError(
            "requester",
            value[:REFERENCE_MAX],
            f"is not a catalog reference of at most {REFERENCE_MAX} characters",
            hint="for example user:default/eve",
        )
    return value


def check_person(value: str) -> str:
    """
    Return `value` if it is a catalog reference that may belong to a person or a program.

    Raises:
        InvalidInputError: It is not one, or it means that no requester is known.
    """
    if fold_reference(check_requester(value)) == UNKNOWN_PERSON:
        raise InvalidInputError(
            "requester",
            value,
            "means that no requester is known",
            hint="use an account with another name",
        )
    return value
