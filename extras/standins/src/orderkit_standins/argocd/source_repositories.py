"""
Where the manifests of an Application come from: repositories, revisions, folders.

`RepositorySources` is what delivery needs to know of git; `BareRepositories` answers from the bare
repositories of the embedded forge on disk, whatever wrote them (the forge, git, a restore).
Texts of errors are those of Argo CD's repo-server, because people and flows look for them.

Not done: tags by semantic version, links through linked folders, submodules, credentials, other
protocols.
"""

from __future__ import annotations

import functools
import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Protocol
from urllib.parse import urlsplit

import pygit2

from ground.errors import OrderkitError
from ground.names import CommitSha, RepoId

MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
JSONNET = ".jsonnet"
_READ = (*MANIFEST_SUFFIXES, JSONNET, "Kustomization")
MAX_TOTAL_BYTES = 10_000_000
"""Argo CD's default for all manifests of one Application together."""

_NO_REPOSITORY = "failed to list refs: repository not found: Repository not found"
_FULL_SHA = re.compile(r"[0-9a-f]{40}")
_LINKS_MAX = 8
_WITHIN_MAX = 50_000
_URLS_KEPT = 50_000
"""A push is compared with the address of every Application."""
_WITHIN: set[tuple[pygit2.Oid, str]] = set()
"""Trees, by id and place, whose links all stay in the repository: a tree never changes."""
_SAFE_NAME = re.compile(r"[A-Za-z0-9_.-]+")


class SourceError(OrderkitError):
    """The wanted manifests cannot be read; the message is the one of Argo CD's repo-server."""


class RepositorySources(Protocol):
    """Repositories as an Application names them. Safe to use from several threads."""

    def resolve(self, repo_url: str, revision: str) -> CommitSha:
        """
        Return the commit a branch, tag, commit id or ``HEAD`` means now.

        Raises:
            SourceError: No such repository or revision.
        """
        ...

    def read(
        self, repo_url: str, commit: CommitSha, path: str, *, recurse: bool
    ) -> Mapping[str, bytes]:
        """
        Return the files of a folder that a tool of Argo CD may read, by their path inside it.

        Raises:
            SourceError: No such folder at that commit, or it holds what is not supported.
        """
        ...

    def changed(self, repo_url: str, old: str, new: CommitSha) -> frozenset[str] | None:
        """Return the paths in which two commits differ; None if `old` cannot be compared."""
        ...


def same_repository(repo_url: str, pushed: str | RepoId) -> bool:
    """Say whether a push concerns this repoURL: same path (and host), with or without .git."""
    host, path = _location(repo_url)
    if isinstance(pushed, RepoId):
        return path.endswith(f"/{pushed}".lower())
    return (host, path) == _location(pushed)


@functools.lru_cache(_URLS_KEPT)
def _location(repo_url: str) -> tuple[str, str]:
    parts = urlsplit(repo_url)
    path = parts.path.rstrip("/").removesuffix(".git")
    return (parts.hostname or "").lower(), path.lower()


class BareRepositories:
    """
    The repositories under ``<root>/<owner>/<name>.git``, named by URLs below `base_url`.

    Nothing is cached but which trees have only links within: a repository that was deleted or made
    again is seen as it is now.
    """

    def __init__(self, base_url: str, root: Path) -> None:
        self._base_url, self._root = base_url.rstrip("/"), root

    def resolve(self, repo_url: str, revision: str) -> CommitSha:
        """See `RepositorySources.resolve`."""
        if _FULL_SHA.fullmatch(revision):
            return CommitSha(revision)
        folder = self._folder(repo_url)
        return _only_branch(folder, revision) or _resolve(_open(folder), revision)

    def read(
        self, repo_url: str, commit: CommitSha, path: str, *, recurse: bool
    ) -> Mapping[str, bytes]:
        """See `RepositorySources.read`."""
        repository = _open(self._folder(repo_url))
        try:
            root = repository[commit].peel(pygit2.Tree)
        except (KeyError, ValueError) as error:
            raise SourceError(
                f"failed to checkout revision {commit}: reference is not a tree: {commit}"
            ) from error
        _refuse_links_out_of(root)
        if ".gitmodules" in root:
            raise SourceError("submodules are not supported here")
        start = posixpath.normpath(path)
        found = _files(root, _subtree(root, path), "" if start == "." else start, recurse=recurse)
        files = {posixpath.relpath(name, start): data for name, data in found}
        if sum(map(len, files.values())) > MAX_TOTAL_BYTES:
            raise SourceError(f"{path}: exceeded max combined manifest file size of 10M")
        return files

    def changed(self, repo_url: str, old: str, new: CommitSha) -> frozenset[str] | None:
        """See `RepositorySources.changed`."""
        if not _FULL_SHA.fullmatch(old):
            return None
        try:
            repository = _open(self._folder(repo_url))
            before, after = (repository[c].peel(pygit2.Tree) for c in (old, new))
            deltas = before.diff_to_tree(after).deltas
        except (SourceError, KeyError, ValueError, pygit2.GitError):
            return None
        return frozenset(file.path for delta in deltas for file in (delta.old_file, delta.new_file))

    def _folder(self, repo_url: str) -> Path:
        prefix, _, repository_path = repo_url.partition(f"{self._base_url}/")
        parts = repository_path.rstrip("/").removesuffix(".git").split("/")
        match parts:
            case [owner, name] if not prefix and _is_name(owner) and _is_name(name):
                return self._root / owner / f"{name}.git"
        raise SourceError(_NO_REPOSITORY)


def _is_name(name: str) -> bool:
    return bool(_SAFE_NAME.fullmatch(name)) and name not in (".", "..")


def _open(folder: Path) -> pygit2.Repository:
    try:
        return pygit2.Repository(str(folder), pygit2.enums.RepositoryOpenFlag.BARE)
    except pygit2.GitError as error:
        raise SourceError(_NO_REPOSITORY) from error


def _only_branch(folder: Path, revision: str) -> CommitSha | None:
    """Read a branch from its own file if no other ref can have that short name; else None."""
    # what a repository without tags needs, and ten times faster
    if revision == "HEAD" or not _is_name(revision):
        return None
    refs = folder / "refs"
    with suppress(OSError, UnicodeDecodeError):
        branches, tags, kinds = (
            {entry.name for entry in os.scandir(folder)}
            for folder in (refs / "heads", refs / "tags", refs)
        )
        is_simple = kinds <= {"heads", "tags", "pull"} and not tags
        is_simple = is_simple and all(name.split() == [name] for name in branches)
        if is_simple and not (folder / "packed-refs").exists():
            sha = (refs / "heads" / revision).read_text("ascii").strip()
            return CommitSha(sha) if _FULL_SHA.fullmatch(sha) else None
    return None


def _resolve(repository: pygit2.Repository, revision: str) -> CommitSha:
    """Return the commit that a name stands for."""
    names = [name.decode(errors="surrogateescape") for name in repository.raw_listall_references()]
    if not names:
        raise SourceError("failed to list refs: remote repository is empty")
    revision = revision or "HEAD"
    # Argo CD takes any ref of that full or short name, in random order (util/git/client.go,
    # lsRemote). The last by name is never the branch main: so it shows always, not now and then.
    for name in sorted((n for n in names if revision in (n, _short(n))), reverse=True) or ["HEAD"]:
        if name != "HEAD" or revision == "HEAD":
            with suppress(KeyError, ValueError, pygit2.GitError):
                commit = repository.references[name].resolve().peel(pygit2.Commit)
                return CommitSha(str(commit.id))
    raise SourceError(f"unable to resolve '{revision}' to a commit SHA: revision not found")


def _short(name: str) -> str:
    """Return the short name of a ref as go-git has it."""
    short = name
    for prefix in ("refs/", "refs/tags/", "refs/heads/", "refs/remotes/"):
        if name.startswith(prefix):
            # up to the first space of any kind
            short = (name.removeprefix(prefix).split() or [short])[0]
    return short


def _subtree(root: pygit2.Tree, path: str) -> pygit2.Tree:
    if path.startswith("/"):
        raise SourceError(f"{path}: app path is absolute")
    steps = [step for step in PurePosixPath(path).parts if step != "."]
    if ".." in steps:
        raise SourceError(f"{path}: app path outside root")
    tree = root
    for step in steps:
        if step not in tree:
            raise SourceError(f"{path}: app path does not exist")
        child = tree[step]
        if not isinstance(child, pygit2.Tree):
            raise SourceError(f"{path}: app path is not a directory")
        tree = child
    return tree


def _refuse_links_out_of(tree: pygit2.Tree, folder: str = "") -> None:
    """Refuse a repository with a symbolic link to a place outside of it, wherever it stands."""
    if (tree.id, folder) in _WITHIN:
        return
    for entry in tree:
        path = posixpath.join(folder, str(entry.name))
        if isinstance(entry, pygit2.Tree):
            _refuse_links_out_of(entry, path)
        elif entry.filemode == pygit2.enums.FileMode.LINK and _link_target(path, entry) is None:
            raise SourceError(f"repository contains out-of-bounds symlinks. file: {path}")
    if len(_WITHIN) >= _WITHIN_MAX:
        _WITHIN.clear()
    _WITHIN.add((tree.id, folder))


def _link_target(path: str, link: pygit2.Object) -> str | None:
    """Return the path in the repository that a link means; None outside of it."""
    target = link.data.decode(errors="surrogateescape") if isinstance(link, pygit2.Blob) else ""
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return None if target.startswith("/") or resolved.split("/")[0] == ".." else resolved


def _files(
    root: pygit2.Tree, tree: pygit2.Tree, folder: str, *, recurse: bool
) -> Iterator[tuple[str, bytes]]:
    for entry in tree:
        path = posixpath.join(folder, str(entry.name))
        if isinstance(entry, pygit2.Tree):
            if recurse:
                yield from _files(root, entry, path, recurse=True)
        elif path.endswith(_READ) and (data := _data(root, path, entry)) is not None:
            yield path, data


def _data(root: pygit2.Tree, path: str, entry: pygit2.Object) -> bytes | None:
    """Read a file, or what a symbolic link names; None if that is not a file: it is ignored."""
    for _ in range(_LINKS_MAX):
        if entry.filemode != pygit2.enums.FileMode.LINK:
            return entry.data if isinstance(entry, pygit2.Blob) else None
        path = _link_target(path, entry) or ""
        if path not in root:
            return None
        entry = root[path]
    return None
