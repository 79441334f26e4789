"""
Pages of a repository, a folder and a file, and the raw bytes of a file.

Backstage's publish:gitea polls the branch page until it answers 200; its catalog reads raw
files by such an address.

What of a file can be shown as text: its lines, bounded in number and length.

Changes have their own bounds in ``changes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

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
from orderkit_standins.forge.pages import locations, site
from orderkit_standins.forge.pages.commit_records import CommitRecord, record
from orderkit_standins.forge.pages.locations import REPO, Location, RepositoryView
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
        home = locations.repository_of(self.access, call)
        top = locations.top_of_default_branch(home)
        return _folder(top) if top else _empty(home)

    @site.page_route(f"{REPO}/src/{{kind}}")
    @route("GET", f"{REPO}/src/{{kind}}/{{rest:path}}", "repository")
    def source(self, call: Call) -> Response:
        """Return ``{branch|commit|tag}/{ref}[/{path}]``."""
        home = locations.repository_of(self.access, call)
        if home.empty:
            return _empty(home)
        location = locations.location_of(self.access, call)
        entry = git_read.entry_at(location.commit.tree, location.path)
        if entry is None:
            raise ApiError(404)
        return _folder(location) if entry.type == "dir" else _file(location, entry)

    @route("GET", f"{REPO}/raw/{{kind}}/{{rest:path}}", "repository")
    def raw(self, call: Call) -> Response:
        """Return the bytes at ``{branch|commit|tag}/{ref}/{path}``."""
        location = locations.location_of(self.access, call)
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
