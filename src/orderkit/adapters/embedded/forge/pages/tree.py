"""
Pages of a repository, a folder and a file, and the raw bytes of a file.

Backstage's publish:gitea polls the branch page until it answers 200; its catalog reads raw
files by such an address.

Called through ``pages.routes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import pygit2
from pygit2.enums import FileMode, SortMode
from starlette.responses import RedirectResponse, Response

from orderkit.adapters.embedded.forge import gitread, mediatypes
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call
from orderkit.adapters.embedded.forge.api.contents import raw_answer
from orderkit.adapters.embedded.forge.pages import places, site, texts
from orderkit.adapters.embedded.forge.pages.places import Home, PathAtCommit
from orderkit.adapters.embedded.forge.pages.records import Record, record
from orderkit.adapters.embedded.forge.pages.visible import decode

ENTRIES_MAX = 1_000
COMMITS_SEARCHED_MAX = 1_000
"""How far back the last change of each entry is looked for."""
_READMES = ("readme.md", "readme", "readme.txt", "readme.rst")


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of a folder."""

    name: str
    kind: str
    address: str
    last: Record | None


def repository(call: Call) -> Response:
    """GET /{owner}/{repo}[.git]: a clone address opened in a browser leads here."""
    here = places.home(call)
    top = places.default_place(here)
    return _folder(top) if top else _empty(here)


def top(call: Call) -> Response:
    """GET /{owner}/{repo}/src leads to the repository."""
    return RedirectResponse(places.home(call).address(), 303)


def source(call: Call) -> Response:
    """GET /{owner}/{repo}/src/{branch|commit|tag}/{ref}[/{path}]; older forms lead there."""
    here = places.home(call)
    if here.empty:
        return _empty(here)
    if call.param("kind") not in places.KINDS:
        return RedirectResponse(places.without_kind(call).at("src"), 303)
    spot = places.place(call)
    entry = gitread.entry_at(spot.commit.tree, spot.path)
    if entry is None:
        raise ApiError(404)
    return _folder(spot) if entry.type == "dir" else _file(spot, entry)


def raw(call: Call) -> Response:
    """GET /{owner}/{repo}/raw/{branch|commit|tag}/{ref}/{path}; older forms lead there."""
    if call.param("kind") not in places.KINDS:
        return RedirectResponse(places.without_kind(call).at("raw"), 303)
    spot = places.place(call)
    return raw_answer(spot.home.git, spot.commit, spot.path)


def _empty(here: Home) -> Response:
    return site.page(here.call, "empty.html", here.name, home=here, tab="files")


def _folder(spot: PathAtCommit) -> Response:
    entry = gitread.entry_at(spot.commit.tree, spot.path)
    entries = gitread.children(spot.home.git, entry.id, spot.path) if entry else []
    entries.sort(key=lambda each: (each.type != "dir", each.name))
    shown = entries[:ENTRIES_MAX]
    last = _last_changes(spot, {each.name: each.id for each in shown})
    rows = [
        Row(each.name, each.type, spot.at("src", each.path), last.get(each.name)) for each in shown
    ]
    return site.page(
        spot.home.call,
        "folder.html",
        f"{spot.path} · {spot.home.name}" if spot.path else spot.home.name,
        home=spot.home,
        place=spot,
        tab="files",
        head=record(spot.commit),
        rows=rows,
        more=len(entries) - len(rows),
        readme=_readme(spot, entries),
        branches=gitread.branch_names(spot.home.git),
    )


def _readme(spot: PathAtCommit, entries: Sequence[gitread.Entry]) -> tuple[str, str] | None:
    """Return name and text of the README of a folder, or None."""
    files = {each.name.lower(): each for each in entries if each.type == "file"}
    for name in _READMES:
        blob = gitread.blob(spot.home.git, files[name].id) if name in files else None
        if blob is not None:
            text = texts.readme_text(blob)
            return (files[name].name, text) if text else None
    return None


def _last_changes(spot: PathAtCommit, wanted: Mapping[str, str]) -> dict[str, Record]:
    """Return the newest commit that gave each entry its id, as far back as is searched."""
    trees: dict[str, dict[str, str]] = {}
    pending, found = dict(wanted), dict[str, Record]()
    walk = spot.home.git.walk(spot.commit.id, SortMode.TOPOLOGICAL | SortMode.TIME)
    for commit in islice(walk, COMMITS_SEARCHED_MAX):
        here = _ids(commit, spot.path, trees)
        above = [_ids(parent, spot.path, trees) for parent in commit.parents]
        if here in above:
            continue
        for name, id_ in list(pending.items()):
            if here.get(name) == id_ and all(ids.get(name) != id_ for ids in above):
                found[name] = record(commit)
                del pending[name]
        if not pending:
            break
    return found


def _ids(commit: pygit2.Commit, path: str, trees: dict[str, dict[str, str]]) -> Mapping[str, str]:
    entry = gitread.entry_at(commit.tree, path)
    if entry is None or entry.mode != FileMode.TREE:
        return {}
    if entry.id not in trees:
        tree = commit.tree[path] if path else commit.tree
        trees[entry.id] = {
            decode(item.raw_name or b""): str(item.id) for item in tree.peel(pygit2.Tree)
        }
    return trees[entry.id]


def _file(spot: PathAtCommit, entry: gitread.Entry) -> Response:
    blob = gitread.blob(spot.home.git, entry.id)
    size = blob.size if blob is not None else 0
    data = blob.data if blob is not None and size <= texts.FILE_MAX_BYTES else b""
    text, kind = None, "submodule"
    if blob is not None:
        kind = _file_kind(data, size, entry)
        if kind in ("text", "symlink"):
            text = texts.text_page(data, spot.home.call.number("page", 1))
    return site.page(
        spot.home.call,
        "file.html",
        f"{spot.path} · {spot.home.name}",
        home=spot.home,
        place=spot,
        tab="files",
        kind=kind,
        size=size,
        executable=entry.mode == FileMode.BLOB_EXECUTABLE,
        text=text,
        target=entry.id,
        last=next((record(each) for each in _history(spot)), None),
    )


def _history(spot: PathAtCommit) -> list[pygit2.Commit]:
    walk = gitread.history(spot.home.git, spot.commit, spot.path)
    return list(islice(walk, 1))


def _file_kind(data: bytes, size: int, entry: gitread.Entry) -> str:
    if size > texts.FILE_MAX_BYTES:
        return "large"
    if mediatypes.image_type(data):
        return "image"
    if mediatypes.is_binary(data):
        return "binary"
    return "symlink" if entry.type == "symlink" else "text"
