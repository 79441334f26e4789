"""
Plain pages to look at: all repositories, one, a folder, a file, and raw bytes of a file.

Backstage's publish:gitea polls the branch page until it answers 200, its catalog reads raw
files by such an address. Everything that comes from a repository is escaped; no script.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from urllib.parse import quote

import pygit2
from starlette.responses import HTMLResponse, Response

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.api import access
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call
from orderkit.adapters.embedded.forge.api.contents import raw_answer
from orderkit.adapters.embedded.forge.api.repos import visible
from orderkit.adapters.embedded.forge.registry import RepoRow

FILE_MAX_BYTES = 512 * 1024
_GIT = ".git"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.5rem;overflow-wrap:anywhere}"
    "pre{overflow:auto;border:1px solid #999;padding:1rem}"
)


@dataclass(frozen=True, slots=True)
class View:
    """What a page shows: a path of a commit, and the part of the address that names it."""

    call: Call
    repo: RepoRow
    git: pygit2.Repository
    commit: pygit2.Commit
    ref: str
    path: str

    def link(self, view: str, path: str) -> str:
        """Return the address of another path in the same commit, ready for HTML."""
        base = f"{self.call.forge.base_url}/{self.repo.full_name}"
        return escape(f"{base}/{view}/{quote(self.ref)}/{quote(path)}")


def start(call: Call) -> Response:
    """GET /: the repositories that the caller may read, by organisation."""
    found = sorted(visible(call, call.forge.registry.all()), key=lambda repo: repo.full_name)
    items = "".join(
        f'<li><a href="{escape(f"{call.forge.base_url}/{repo.full_name}")}">'
        f"{escape(repo.full_name)}</a>{' (archived)' if repo.archived else ''}"
        f"{f': {escape(repo.description)}' if repo.description else ''}</li>"
        for repo in found
    )
    body = f"<ul>{items}</ul>" if items else "<p>No repositories yet.</p>"
    return _page("Repositories", body)


def repository(call: Call) -> Response:
    """GET /{owner}/{repo}[.git]: a clone address opened in a browser leads here."""
    repo = access.repository(call, suffix=_GIT)
    git = gitread.open_repository(repo.path)
    commit = gitread.branch_commit(git, repo.default_branch)
    if commit is None:
        body = f"<p>Empty. Clone it from <code>{escape(_clone_url(call, repo))}</code></p>"
        return _page(repo.full_name, body, _trail(call, repo))
    return _folder(View(call, repo, git, commit, f"branch/{repo.default_branch}", ""))


def source(call: Call) -> Response:
    """GET /{owner}/{repo}/src/{branch|commit|tag}/{ref}[/{path}]."""
    view = _locate(call)
    entry = gitread.entry_at(view.commit.tree, view.path)
    if entry is None:
        raise ApiError(404)
    return _folder(view) if entry.type == "dir" else _file(view, entry)


def raw(call: Call) -> Response:
    """GET /{owner}/{repo}/raw/{branch|commit|tag}/{ref}/{path}."""
    view = _locate(call)
    return raw_answer(view.git, view.commit, view.path)


def _locate(call: Call) -> View:
    """Split ``ref/path``; a branch name may contain slashes, the shortest that exists wins."""
    repo, kind = access.repository(call, suffix=_GIT), call.param("kind")
    git = gitread.open_repository(repo.path)
    parts = call.param("rest").strip("/").split("/")
    for count in range(1, len(parts) + 1):
        name = "/".join(parts[:count])
        commit = _commit(git, kind, name)
        if commit is not None:
            return View(call, repo, git, commit, f"{kind}/{name}", "/".join(parts[count:]))
    raise ApiError(404)


def _commit(git: pygit2.Repository, kind: str, name: str) -> pygit2.Commit | None:
    match kind:
        case "branch":
            return gitread.branch_commit(git, name)
        case "tag":
            return gitread.tag_commit(git, name)
        case "commit":
            return gitread.commit_by_id(git, name)
    return None


def _folder(view: View) -> Response:
    entry = gitread.entry_at(view.commit.tree, view.path)
    entries = gitread.children(view.git, entry.id, view.path) if entry else []
    entries.sort(key=lambda each: (each.type != "dir", each.name))
    items = "".join(
        f'<li><a href="{view.link("src", each.path)}">{escape(each.name)}'
        f"{'/' if each.type == 'dir' else ''}</a></li>"
        for each in entries
    )
    about = f"<p>{escape(view.repo.description)}</p>" if view.repo.description else ""
    summary = escape(view.commit.message.partition("\n")[0])
    line = f"<p><code>{str(view.commit.id)[:10]}</code> {summary}</p>"
    clone = f"<p>Clone: <code>{escape(_clone_url(view.call, view.repo))}</code></p>"
    title = f"{view.repo.full_name}/{view.path}".rstrip("/")
    return _page(title, f"{about}{line}<ul>{items}</ul>{clone}", _trail(view.call, view.repo))


def _file(view: View, entry: gitread.Entry) -> Response:
    found = gitread.blob(view.git, entry.id)
    raw_link = f'<p><a href="{view.link("raw", entry.path)}">Raw</a></p>'
    if found is None:
        shown = "<p>A submodule.</p>"
    elif found.is_binary or found.size > FILE_MAX_BYTES:
        shown = f"<p>{found.size} bytes, not shown.</p>"
    else:
        shown = f"<pre>{escape(found.data.decode(errors='replace'))}</pre>"
    title = f"{view.repo.full_name}/{entry.path}"
    return _page(title, raw_link + shown, _trail(view.call, view.repo))


def _clone_url(call: Call, repo: RepoRow) -> str:
    return f"{call.forge.base_url}/{repo.full_name}.git"


def _trail(call: Call, repo: RepoRow) -> str:
    """Return the way back: all repositories, then this one."""
    base = call.forge.base_url
    return (
        f'<nav aria-label="Way back"><a href="{escape(base)}/">Repositories</a> / '
        f'<a href="{escape(f"{base}/{repo.full_name}")}">{escape(repo.full_name)}</a></nav>'
    )


def _page(title: str, body: str, trail: str = "") -> Response:
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{trail}<main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    return HTMLResponse(html, headers=_HEADERS)
