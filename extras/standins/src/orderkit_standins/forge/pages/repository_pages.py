"""
Pages of a repository: folders, files, raw bytes, and history.

Backstage's publish:gitea polls the branch page until it answers 200; its catalog reads raw files by
such an address.

What of a file can be shown as text is its lines, bounded in number and length. Changes have their
own bounds in ``shown_commits``.

History is the commits of a branch or path, one commit with its changes, and branches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import pygit2
from markupsafe import Markup
from pygit2.enums import FileMode
from starlette.responses import Response

from orderkit_standins.forge import git_read, media_types
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.calls import ApiError, Call
from orderkit_standins.forge.api.content_routes import raw_answer
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.media_types import is_binary
from orderkit_standins.forge.pages import shown_commits, site
from orderkit_standins.forge.pages.shown_commits import CommitRecord, record, shown_statuses
from orderkit_standins.forge.pages.site import REPO, Location, RepositoryView
from orderkit_standins.forge.statuses import Statuses
from orderkit_standins.markdown_html import decode, in_html, reorders, visible

FILE_MAX_BYTES = 2 * 1024 * 1024
LINES_MAX = 5_000
"""Lines on one page; the next page shows the next ones."""
README_MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Text:
    """One page of the lines of a file."""

    first: int
    lines: tuple[str, ...]
    total: int
    page: int
    pages: int
    crlf: bool
    final_newline: bool
    reorders: bool

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def text_page(data: bytes, page: int) -> Text:
    """Return one page of a text, counted from 1; a number beyond the last gives the last."""
    source = decode(data)
    lines = source.split("\n")
    final_newline = lines[-1] == ""
    if final_newline:
        lines.pop()
    crlf = bool(lines) and all(line.endswith("\r") for line in lines)
    pages = max((len(lines) + LINES_MAX - 1) // LINES_MAX, 1)
    page = min(max(page, 1), pages)
    page_lines = lines[(page - 1) * LINES_MAX : page * LINES_MAX]
    return Text(
        first=(page - 1) * LINES_MAX + 1,
        lines=tuple(line[:-1] if crlf else line for line in page_lines),
        total=len(lines),
        page=page,
        pages=pages,
        crlf=crlf,
        final_newline=final_newline,
        reorders=reorders(source),
    )


def readme_text(blob: pygit2.Blob) -> str:
    """Return a README, or empty if it is not text or too large."""
    if blob.size > README_MAX_BYTES or is_binary(blob.data):
        return ""
    return decode(blob.data).replace("\r\n", "\n")


ENTRIES_MAX = 1_000
COMMITS_SEARCHED_MAX = 1_000
"""How far back the last change of each entry is looked for."""
_READMES = ("readme.md", "readme", "readme.txt", "readme.rst")


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One entry of a folder."""

    name: str
    kind: str
    address: str
    last: CommitRecord | None


@dataclass(frozen=True, slots=True)
class TreePages:
    """The pages of files and folders."""

    access: Access

    @site.page_route(REPO)
    def repository(self, call: Call) -> Response:
        """Return the top folder; a clone address opened in a browser leads here."""
        home = site.repository_of(self.access, call)
        top = site.top_of_default_branch(home)
        return _folder(top) if top else _empty(home)

    @site.page_route(f"{REPO}/src/{{kind}}")
    @route("GET", f"{REPO}/src/{{kind}}/{{rest:path}}", "repository")
    def source(self, call: Call) -> Response:
        """Return ``{branch|commit|tag}/{ref}[/{path}]``."""
        home = site.repository_of(self.access, call)
        if home.empty:
            return _empty(home)
        location = site.location_of(self.access, call)
        entry = git_read.entry_at(location.commit.tree, location.path)
        if entry is None:
            raise ApiError(404)
        return _folder(location) if entry.type == "dir" else _file(location, entry)

    @route("GET", f"{REPO}/raw/{{kind}}/{{rest:path}}", "repository")
    def raw(self, call: Call) -> Response:
        """Return the bytes at ``{branch|commit|tag}/{ref}/{path}``."""
        location = site.location_of(self.access, call)
        return raw_answer(location.home.git, location.commit, location.path)


def _empty(home: RepositoryView) -> Response:
    return site.page(home.call, "empty.html", home.name, home=home, tab="files")


def _folder(location: Location) -> Response:
    home, path = location.home, location.path
    entry = git_read.entry_at(location.commit.tree, path)
    entries = git_read.children(home.git, entry.id, path) if entry else []
    entries.sort(key=lambda entry: (entry.type != "dir", entry.name))
    listed_entries = entries[:ENTRIES_MAX]
    ids = {entry.path: entry.id for entry in listed_entries}
    last = git_read.last_commits(home.git, location.commit, ids, at_most=COMMITS_SEARCHED_MAX)
    return site.page(
        home.call,
        "folder.html",
        f"{path} · {home.name}" if path else home.name,
        home=home,
        place=location,
        tab="files",
        head=record(location.commit),
        rows=[
            FolderEntry(e.name, e.type, location.at("src", e.path), _record(last, e.path))
            for e in listed_entries
        ],
        more=len(entries) - len(listed_entries),
        readme=_readme(location, entries),
        branches=git_read.branch_names(home.git),
    )


def _record(last: Mapping[str, pygit2.Commit], path: str) -> CommitRecord | None:
    return record(last[path]) if path in last else None


def _readme(location: Location, entries: Sequence[git_read.Entry]) -> tuple[str, Markup] | None:
    """Return name and HTML of the README of a folder, or None."""
    files = {entry.name.lower(): entry for entry in entries if entry.type == "file"}
    for name in _READMES:
        blob = git_read.blob(location.home.git, files[name].id) if name in files else None
        if blob is not None:
            text = readme_text(blob)
            if not text:
                return None
            (html,) = (
                in_html([text], location.at("src"))
                if name.endswith(".md")
                else [Markup('<pre class="prose">{}</pre>').format(visible(text))]
            )
            return files[name].name, html
    return None


def _file(location: Location, entry: git_read.Entry) -> Response:
    blob = git_read.blob(location.home.git, entry.id)
    size = blob.size if blob is not None else 0
    data = blob.data if blob is not None and size <= FILE_MAX_BYTES else b""
    history = git_read.history(location.home.git, location.commit, location.path)
    text, kind = None, "submodule"
    if blob is not None:
        kind = _file_kind(data, size, entry)
        if kind in ("text", "symlink"):
            text = text_page(data, location.home.call.query_number("page", 1))
    return site.page(
        location.home.call,
        "file.html",
        f"{location.path} · {location.home.name}",
        home=location.home,
        place=location,
        tab="files",
        kind=kind,
        size=size,
        executable=entry.mode == FileMode.BLOB_EXECUTABLE,
        text=text,
        target=entry.id,
        last=next((record(commit) for commit in islice(history, 1)), None),
    )


def _file_kind(data: bytes, size: int, entry: git_read.Entry) -> str:
    if size > FILE_MAX_BYTES:
        return "large"
    if media_types.image_type(data):
        return "image"
    if media_types.is_binary(data):
        return "binary"
    return "symlink" if entry.type == "symlink" else "text"


PAGE = 50
PAGES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Tip:
    """A branch and the commit it names."""

    name: str
    address: str
    history: str
    commit: CommitRecord
    is_default: bool


@dataclass(frozen=True, slots=True)
class HistoryPages:
    """The pages of history."""

    access: Access
    statuses: Statuses

    @site.page_route(f"{REPO}/commits/{{kind}}")
    @route("GET", f"{REPO}/commits/{{kind}}/{{rest:path}}", "repository")
    def commits(self, call: Call) -> Response:
        """Return the commits of ``{branch|commit|tag}/{ref}[/{path}]``, 50 a page."""
        location = site.location_of(self.access, call)
        home = location.home
        page = min(max(call.query_number("page", 1), 1), PAGES_MAX)
        walk = git_read.history(home.git, location.commit, location.path)
        commits = list(islice(walk, (page - 1) * PAGE, page * PAGE + 1))
        if not commits and page == 1:
            raise ApiError(404)
        records = [record(commit) for commit in commits[:PAGE]]
        days = groupby(records, lambda commit: site.moment(commit.stamp, "%-d %B %Y"))
        return site.page(
            call,
            "history.html",
            f"History of {location.path or location.ref} · {home.name}",
            home=home,
            place=location,
            tab="history",
            days=[(day, list(commits_of_day)) for day, commits_of_day in days],
            page=page,
            before=f"?page={page - 1}" if page > 1 else "",
            after=f"?page={page + 1}" if len(commits) > PAGE and page < PAGES_MAX else "",
        )

    @site.page_route(f"{REPO}/commit/{{sha}}")
    def commit(self, call: Call) -> Response:
        """Return one commit and what it changes."""
        home = site.repository_of(self.access, call)
        commit = git_read.by_short_id(home.git, call.param("sha"))
        if commit is None:
            raise ApiError(404)
        commit_record = record(commit)
        return site.page(
            call,
            "commit.html",
            f"{commit_record.summary} · {home.name}",
            home=home,
            tab="history",
            commit=commit_record,
            said=shown_statuses(self.statuses.latest(home.row.id, commit_record.id)),
            changes=shown_commits.of_commit(home.git, commit),
            files_at=Location(home, commit, "commit", commit_record.id, ""),
        )

    @site.page_route(f"{REPO}/branches")
    def branches(self, call: Call) -> Response:
        """Return every branch, the default one first."""
        home = site.filled_repository(self.access, call)
        default = home.row.default_branch
        names = sorted(git_read.branch_names(home.git), key=lambda name: (name != default, name))
        return site.page(
            call,
            "tips.html",
            f"Branches · {home.name}",
            home=home,
            tab="branches",
            tips=[tip for name in names if (tip := _tip(home, name))],
        )


def _tip(home: RepositoryView, name: str) -> Tip | None:
    commit = git_read.branch_commit(home.git, name)
    if commit is None:
        return None
    return Tip(
        name,
        home.branch_page(name),
        home.address("commits/branch", name),
        record(commit),
        is_default=name == home.row.default_branch,
    )
