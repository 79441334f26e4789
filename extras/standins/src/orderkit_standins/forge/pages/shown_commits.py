"""
Commits as people read them: summary, text, trailers, who and when, statuses, and what they change.

The difference between two trees is shown file by file, bounded so that any commit can be shown.
Beyond a bound a file has a note instead of lines, and what is beyond the last file is counted; a
clone has everything. Pure reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import pygit2
from pygit2.enums import DeltaStatus, FileMode

from orderkit.ports.forge import OPERATION_TRAILER, PROOF_TRAILER, REQUESTER_TRAILER
from orderkit_standins.forge import git_read
from orderkit_standins.forge.statuses import Status
from orderkit_standins.markdown_html import decode

FILES_MAX = 100
LINES_MAX = 5_000
LINES_PER_FILE_MAX = 1_000
BLOB_MAX_BYTES = 1024 * 1024

Sign = Literal["+", "-", " ", "\\"]
_SIGNS: dict[str, Sign] = {"+": "+", "-": "-", " ": " ", "=": "\\", ">": "\\", "<": "\\"}
_STATUSES = {
    DeltaStatus.ADDED: "added",
    DeltaStatus.DELETED: "removed",
    DeltaStatus.MODIFIED: "changed",
    DeltaStatus.RENAMED: "renamed",
    DeltaStatus.COPIED: "copied",
    DeltaStatus.TYPECHANGE: "changed in kind",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a hunk; the number of a side that lacks it is None."""

    sign: Sign
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that belong together, below their ``@@`` line."""

    header: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What happened to one file. `note` says why `hunks` is empty, if it is."""

    number: int
    status: str
    path: str
    old_path: str
    added: int
    removed: int
    mode: str
    crlf: bool
    note: str
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """All files that are shown, and how many there are."""

    files: tuple[FileChanges, ...]
    total: int

    @property
    def added(self) -> int:
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed for file in self.files)


def of_commit(git: pygit2.Repository, commit: pygit2.Commit) -> Changes:
    """Return what a commit changes against its first parent."""
    parents = commit.parents
    return between(git, parents[0].tree if parents else None, commit.tree)


def between(git: pygit2.Repository, old: pygit2.Tree | None, new: pygit2.Tree) -> Changes:
    """Return what changes from one tree (None: nothing) to another."""
    diff = old.diff_to_tree(new) if old is not None else new.diff_to_tree(swap=True)
    total = len(diff)
    if total <= FILES_MAX and not any(_too_large(git, delta) for delta in diff.deltas):
        diff.find_similar()
        total = len(diff)
    return Changes(tuple(_files(git, diff)), total)


def _files(git: pygit2.Repository, diff: pygit2.Diff) -> Iterator[FileChanges]:
    room = LINES_MAX
    for number, delta in enumerate(diff.deltas):
        if number == FILES_MAX:
            return
        file = _file(git, diff, delta, number, room)
        room -= sum(len(hunk.lines) for hunk in file.hunks)
        yield file


def _file(
    git: pygit2.Repository, diff: pygit2.Diff, delta: pygit2.DiffDelta, number: int, room: int
) -> FileChanges:
    note = _note_of_kind(git, delta)
    body = _Body(note=note) if note else _body(diff[number], room)
    old_path, path = decode(delta.old_file.raw_path), decode(delta.new_file.raw_path)
    return FileChanges(
        number=number + 1,
        status=_STATUSES.get(delta.status, "changed"),
        path=path,
        old_path=old_path if old_path != path else "",
        added=body.added,
        removed=body.removed,
        mode=_mode_change(delta),
        crlf=body.crlf,
        note=body.note or ("" if body.hunks else _no_lines(delta)),
        hunks=body.hunks,
    )


@dataclass(frozen=True, slots=True)
class _Body:
    added: int = 0
    removed: int = 0
    note: str = ""
    hunks: tuple[Hunk, ...] = ()
    crlf: bool = False


def _body(patch: pygit2.Patch | None, room: int) -> _Body:
    """Return the lines of one file, or why they are not shown. Here git compares."""
    if patch is None:
        return _Body()
    context, added, removed = patch.line_stats
    if patch.delta.is_binary:
        return _Body(note="Binary file, not shown.")
    if context + added + removed > min(room, LINES_PER_FILE_MAX):
        return _Body(added, removed, "Too many lines to show here.")
    crlf = _all_crlf(patch)
    return _Body(added, removed, "", tuple(_hunk(hunk, crlf=crlf) for hunk in patch.hunks), crlf)


def _all_crlf(patch: pygit2.Patch) -> bool:
    return all(
        line.raw_content.endswith(b"\r\n")
        for hunk in patch.hunks
        for line in hunk.lines
        if line.origin in "+- "
    )


def _note_of_kind(git: pygit2.Repository, delta: pygit2.DiffDelta) -> str:
    if _is_submodule(delta.old_file) or _is_submodule(delta.new_file):
        return f"Submodule, now at {delta.new_file.id}." if delta.new_file.mode else "Submodule."
    if _too_large(git, delta):
        return "Too large to compare here."
    return ""


def _no_lines(delta: pygit2.DiffDelta) -> str:
    if delta.status in (DeltaStatus.RENAMED, DeltaStatus.COPIED):
        return "Same content."
    empty = delta.status in (DeltaStatus.ADDED, DeltaStatus.DELETED)
    return "An empty file." if empty else "Same content, another mode."


def _mode_change(delta: pygit2.DiffDelta) -> str:
    old, new = int(delta.old_file.mode), int(delta.new_file.mode)
    if delta.status in (DeltaStatus.ADDED, DeltaStatus.DELETED) or old == new:
        return ""
    return f"mode {old:06o} → {new:06o}"


def _is_submodule(file: pygit2.DiffFile) -> bool:
    return file.mode == FileMode.COMMIT


def _too_large(git: pygit2.Repository, delta: pygit2.DiffDelta) -> bool:
    return any(_size(git, file) > BLOB_MAX_BYTES for file in (delta.old_file, delta.new_file))


def _size(git: pygit2.Repository, file: pygit2.DiffFile) -> int:
    """Return the size of a blob from its header; 0 for what is not a blob of this repository."""
    if _is_submodule(file) or str(file.id) == "0" * 40 or file.id not in git.odb:
        return 0
    return git.odb.read_header(file.id)[1]


def _hunk(hunk: pygit2.DiffHunk, *, crlf: bool) -> Hunk:
    end = "\r\n" if crlf else "\n"
    return Hunk(hunk.header.rstrip("\r\n"), tuple(_line(line, end) for line in hunk.lines))


def _line(line: pygit2.DiffLine, end: str) -> Line:
    sign = _SIGNS.get(line.origin, " ")
    if sign == "\\":
        return Line(sign, None, None, "No newline at the end of the file")
    text = decode(line.raw_content).removesuffix(end)
    old, new = (number if number > 0 else None for number in (line.old_lineno, line.new_lineno))
    return Line(sign, old, new, text)


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
