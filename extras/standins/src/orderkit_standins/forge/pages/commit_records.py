"""Commits as people read them: summary, text, trailers, who and when, and their statuses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

import pygit2

from orderkit.ports.forge import OPERATION_TRAILER, PROOF_TRAILER, REQUESTER_TRAILER
from orderkit_standins.forge import git_read
from orderkit_standins.forge.statuses import Status

_TRAILER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*): (\S.*)\Z")
_NAMES = {
    OPERATION_TRAILER: "Operation",
    REQUESTER_TRAILER: "Requester (a claim)",
    PROOF_TRAILER: "Proof (a claim)",
}
NO_SUMMARY = "(no message)"


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit, ready to show."""

    id: str
    summary: str
    text: str
    trailers: tuple[tuple[str, str], ...]
    author: str
    author_email: str
    committer: str
    stamp: int
    parents: tuple[str, ...]

    @property
    def short(self) -> str:
        return self.id[:10]

    @property
    def requester(self) -> str:
        """Who asked for it, as the message claims; or empty."""
        return dict(self.trailers).get(_NAMES[REQUESTER_TRAILER], "")


def record(commit: pygit2.Commit) -> CommitRecord:
    """Return a commit ready to show."""
    message = git_read.message(commit).strip()
    summary, _, body = message.partition("\n")
    text, trailers = split_trailers(body.strip())
    author, author_email = git_read.name_and_email(commit.author)
    committer, _ = git_read.name_and_email(commit.committer)
    return CommitRecord(
        id=str(commit.id),
        summary=summary.strip() or NO_SUMMARY,
        text=text,
        trailers=trailers,
        author=author,
        author_email=author_email,
        committer=committer,
        stamp=commit.commit_time,
        parents=tuple(str(parent) for parent in commit.parent_ids),
    )


def split_trailers(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a text without its last paragraph if that holds trailers only, and the trailers."""
    head, _, last = text.rpartition("\n\n")
    matches = [_TRAILER.match(line.strip()) for line in last.splitlines()]
    trailers = tuple((_NAMES.get(match[1], match[1]), match[2]) for match in matches if match)
    if not matches or len(trailers) < len(matches):
        return text, ()
    return head.strip(), trailers


_BADGES = {"success": "good", "skipped": "good", "failure": "bad", "error": "bad"}


@dataclass(frozen=True, slots=True)
class ShownStatus:
    """One status. `link` is empty where there is no address that a browser may open."""

    context: str
    state: str
    badge: str
    description: str
    link: str


def shown_statuses(latest: Iterable[Status]) -> list[ShownStatus]:
    """Return the newest statuses of a commit by context."""
    return sorted(map(_shown_status, latest), key=lambda status: status.context)


def _shown_status(status: Status) -> ShownStatus:
    link = status.target_url if _opens(status.target_url) else ""
    badge = _BADGES.get(status.state, "warn")
    return ShownStatus(status.context, status.state, badge, status.description, link)


def _opens(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
