"""
What the address of a page names: a repository, a commit in it, a path.

Splits addresses such as ``branch/feature/x/dir/file``, and makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import pygit2

from orderkit_standins.forge import git_read
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.calls import ApiError, Call
from orderkit_standins.forge.pages import site
from orderkit_standins.forge.repositories import Repository

REPO = "/{owner}/{repo}"
KINDS = ("branch", "tag", "commit")
_GIT = ".git"


@dataclass(frozen=True, slots=True)
class RepositoryView:
    """A repository that the caller may read, and the addresses of its pages."""

    call: Call
    row: Repository
    git: pygit2.Repository

    @property
    def name(self) -> str:
        return self.row.full_name

    @property
    def empty(self) -> bool:
        return not git_read.branch_names(self.git)

    @property
    def clone_url(self) -> str:
        return f"{self.call.root_url}/{self.row.full_name}.git"

    def address(self, *parts: object) -> str:
        """Return the address of a page of this repository, percent-encoded."""
        path = "/".join(str(part) for part in (self.row.full_name, *parts) if str(part))
        return f"{site.root(self.call)}/{quote(path)}"

    @property
    def tabs(self) -> list[tuple[str, str, str]]:
        """The parts of a repository: key, name and address each."""
        if self.empty:
            return [("files", "Files", self.address())]
        return [
            ("files", "Files", self.address()),
            ("history", "History", self.address("commits/branch", self.row.default_branch)),
            ("pulls", "Pull requests", self.address("pulls")),
            ("branches", "Branches", self.address("branches")),
        ]

    def branch_page(self, branch: str) -> str:
        """Return the address of the files of a branch."""
        return self.address("src/branch", branch)


@dataclass(frozen=True, slots=True)
class Location:
    """A path at a commit. `kind` and `ref` are how the address names the commit."""

    home: RepositoryView
    commit: pygit2.Commit
    kind: str
    ref: str
    path: str

    def at(self, view: str, path: str | None = None) -> str:
        """Return the address of a view (``src``, ``raw``, ``commits``) of a path home."""
        return self.home.address(view, self.kind, self.ref, self.path if path is None else path)

    @property
    def name(self) -> str:
        """The branch or tag, or the short id of the commit."""
        return self.ref[:10] if self.kind == "commit" else self.ref

    @property
    def permalink(self) -> str:
        """The same at this commit, whatever the branch does later."""
        return self.home.address("src/commit", self.commit.id, self.path)

    @property
    def trail(self) -> list[tuple[str, str]]:
        """The folders above and this path itself: name and address each."""
        parts = self.path.split("/") if self.path else []
        return [
            (name, self.at("src", "/".join(parts[: number + 1])))
            for number, name in enumerate(parts)
        ]


def repository_of(access: Access, call: Call) -> RepositoryView:
    """
    Return the repository of the address.

    Raises:
        ApiError: 404, missing or hidden.
    """
    row = access.repository(call, suffix=_GIT)
    return RepositoryView(call, row, git_read.open_repository(row.path))


def filled_repository(access: Access, call: Call) -> RepositoryView:
    """
    Return the repository of the address if it has a branch.

    Raises:
        ApiError: 404, missing, hidden or empty.
    """
    home = repository_of(access, call)
    if home.empty:
        raise ApiError(404, "This repository is empty.")
    return home


def top_of_default_branch(home: RepositoryView) -> Location | None:
    """Return the top of the default branch, or None without one."""
    branch = home.row.default_branch
    commit = git_read.branch_commit(home.git, branch)
    return Location(home, commit, "branch", branch, "") if commit else None


def location_of(access: Access, call: Call) -> Location:
    """
    Return the location that ``{kind}/{rest}`` of the address names.

    Raises:
        ApiError: 404, no such repository or commit.
    """
    home, kind = repository_of(access, call), call.param("kind")
    if kind not in KINDS:
        raise ApiError(404)
    location = _split(home, kind, _parts(call))
    if location is None:
        raise ApiError(404)
    return location


def _parts(call: Call) -> list[str]:
    return [part for part in str(call.request.path_params.get("rest", "")).split("/") if part]


def _split(home: RepositoryView, kind: str, parts: Sequence[str]) -> Location | None:
    """A branch name may contain slashes: the shortest that exists wins."""
    for count in range(1, len(parts) + 1):
        name = "/".join(parts[:count])
        commit = _commit(home.git, kind, name)
        if commit is not None:
            return Location(home, commit, kind, name, "/".join(parts[count:]))
    return None


def _commit(git: pygit2.Repository, kind: str, name: str) -> pygit2.Commit | None:
    match kind:
        case "branch":
            return git_read.branch_commit(git, name)
        case "tag":
            return git_read.tag_commit(git, name)
        case _:
            return git_read.by_short_id(git, name)
