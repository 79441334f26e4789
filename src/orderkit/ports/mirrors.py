"""Copies of the platform's repositories outside of the forge, and the record beside them."""

from __future__ import annotations

from typing import Protocol

from ground.names import CommitSha, RepoId


class Mirrors(Protocol):
    """
    A folder with a bare copy of each repository.

    `url` is a repository's address on the forge. `fetch` and `push` raise RemoteError, whose
    message is git's last line without credentials.
    """

    def fetch(self, repo: RepoId, url: str) -> None:
        """Bring branches and tags up to date. What a branch pointed to before is kept as object."""
        ...

    def push(self, repo: RepoId, url: str) -> None:
        """
        Write branches and tags to the forge. Idempotent; overwrites nothing.

        Raises:
            NotFoundError: There is no copy of it.
        """
        ...

    def head(self, repo: RepoId) -> CommitSha | None:
        """Return the commit of ``main``; None if there is no copy, or no such branch."""
        ...

    def contains(self, repo: RepoId, commit: str) -> bool:
        """Say whether ``main`` has a commit in its history."""
        ...

    def record(self) -> str | None:
        """Return the text of the record; None if there is none."""
        ...

    def write_record(self, text: str) -> None:
        """Replace the record, or keep the old one."""
        ...
