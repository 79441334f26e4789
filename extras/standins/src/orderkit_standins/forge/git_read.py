"""
Read bare repositories: references, trees, history. And make an empty one.

Each call opens the repository anew (50 µs): pygit2 objects are not shared between threads. It
writes nothing but HEAD and the skeleton of a new repository (``git_write`` writes).

`commits_of` says which commits changed a path, newest first, without walking the same history
again: a client that lost a race reads the history of a file, and under load the forge would spend
its time walking commits. So the result for a head is cached, and a later head only needs the
commits in between. Commits never change, so the cache cannot be stale. If the old head is not on a
line of single parents (a merge, a rewritten branch), the whole history is walked again.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

import pygit2
from pygit2.enums import FileMode, RepositoryInitFlag, RepositoryOpenFlag, SortMode

HEADS = "refs/heads/"
TAGS = "refs/tags/"
FULL_ID = re.compile(r"[0-9a-f]{40}\Z")
SHORT_ID = re.compile(r"[0-9a-f]{7,40}\Z")
BRANCH_MAX = 100
BLOB_MAX_BYTES = 100 * 1024 * 1024
_LAST_MAX = 10_000
_LAST: dict[tuple[pygit2.Oid, str], pygit2.Oid] = {}
"""Results of `last_commits` by start commit and path, which alone decide them."""
_STEPS_MAX = 50_000
_STEPS: dict[pygit2.Oid, tuple[Sequence[pygit2.Oid], frozenset[str] | None]] = {}
"""Results of `_step`: a ledger of a thousand orders has thousands of commits."""
_BAD_REF = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(/|\Z)|\.\Z|/\Z|\A[-/.]|/\.|\A@\Z"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder, link or submodule of a tree."""

    path: str
    mode: int
    id: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def type(self) -> str:
        return _CONTENT_TYPES.get(self.mode, "file")


_CONTENT_TYPES = {
    int(FileMode.TREE): "dir",
    int(FileMode.LINK): "symlink",
    int(FileMode.COMMIT): "submodule",
}


def init_bare(path: Path, default_branch: str) -> None:
    """Make an empty bare repository appear at once under its final name."""
    fresh = path.with_name(f".new-{os.getpid()}-{path.name}")
    shutil.rmtree(fresh, ignore_errors=True)
    flags = RepositoryInitFlag.MKPATH | RepositoryInitFlag.BARE
    pygit2.init_repository(str(fresh), bare=True, flags=flags, initial_head=default_branch)
    fresh.rename(path)


def open_repository(path: Path) -> pygit2.Repository:
    """Open a bare repository."""
    flags = RepositoryOpenFlag.BARE | RepositoryOpenFlag.NO_SEARCH
    return pygit2.Repository(str(path), flags)


def point_head(path: Path, branch: str) -> None:
    """Make HEAD name `branch`, whether it exists or not."""
    open_repository(path).set_head(HEADS + branch)


def is_branch_name(name: str) -> bool:
    """Say whether git and Gitea accept this as a branch name."""
    return 0 < len(name) <= BRANCH_MAX and not _BAD_REF.search(name)


def branch_names(repo: pygit2.Repository) -> list[str]:
    """Return all branches, sorted."""
    return sorted(
        name.removeprefix(HEADS) for name in repo.listall_references() if name.startswith(HEADS)
    )


def heads(path: Path) -> dict[str, str]:
    """Return every branch with its commit id."""
    repo = open_repository(path)
    return {name: str(repo.references[HEADS + name].target) for name in branch_names(repo)}


def targets(path: Path, refs: Iterable[str]) -> dict[str, str]:
    """Return the target of each reference; empty for one that does not exist."""
    repo = open_repository(path)
    references = {
        ref: repo.references.get(ref) for ref in refs if pygit2.reference_is_valid_name(ref)
    }
    return {
        ref: str(reference.target) if reference is not None else ""
        for ref, reference in references.items()
    }


def branch_commit(repo: pygit2.Repository, branch: str) -> pygit2.Commit | None:
    """Return the commit at the tip of a branch, or None."""
    return _reference_commit(repo, HEADS + branch) if is_branch_name(branch) else None


def resolve(repo: pygit2.Repository, ref: str) -> pygit2.Commit | None:
    """Return the commit of a branch, a tag or a full commit id, in Gitea's order, or None."""
    name = ref.removeprefix(HEADS).removeprefix(TAGS)
    return _named(repo, name, (HEADS, TAGS)) or commit_by_id(repo, ref)


def resolve_as_git(repo: pygit2.Repository, ref: str) -> pygit2.Commit | None:
    """Return the commit of a full id, a tag or a branch, as Gitea does for trees and histories."""
    prefixes = (HEADS,) if ref.startswith(HEADS) else (TAGS, HEADS)
    name = ref.removeprefix(HEADS).removeprefix(TAGS)
    return commit_by_id(repo, ref) or _named(repo, name, prefixes)


def _named(repo: pygit2.Repository, name: str, prefixes: Iterable[str]) -> pygit2.Commit | None:
    commits = (_reference_commit(repo, prefix + name) for prefix in prefixes)
    return next(filter(None, commits), None) if is_branch_name(name) else None


def commit_by_id(repo: pygit2.Repository, commit_id: str) -> pygit2.Commit | None:
    """Return a commit by its full id, or None."""
    if not FULL_ID.match(commit_id):
        return None
    item: object = repo.get(commit_id)
    return item if isinstance(item, pygit2.Commit) else None


def _reference_commit(repo: pygit2.Repository, name: str) -> pygit2.Commit | None:
    reference = repo.references.get(name)
    try:
        return reference.peel(pygit2.Commit) if reference is not None else None
    except pygit2.InvalidSpecError:
        return None  # a tag may name a tree or a file


def entry_at(tree: pygit2.Tree, path: str) -> Entry | None:
    """Return the entry at a path of a tree, or None. The empty path is the tree itself."""
    if not path:
        return Entry("", int(FileMode.TREE), str(tree.id))
    try:
        entry = tree[path]
    except (KeyError, ValueError):
        return None
    return Entry(path, int(entry.filemode), str(entry.id))


def children(repo: pygit2.Repository, tree_id: str, folder: str) -> list[Entry]:
    """Return the entries of one folder in git's order."""
    tree = repo[tree_id]
    if not isinstance(tree, pygit2.Tree):
        return []
    prefix = f"{folder}/" if folder else ""
    return [entry_of(prefix, item) for item in tree]


def walk_items(
    tree: pygit2.Tree, prefix: str = "", *, recursive: bool
) -> Iterator[tuple[str, pygit2.Object]]:
    """
    Yield the items of a tree with their path prefix, folders before their content.

    For counting thousands of them, of which a page is shown; `entry_of` describes one.
    """
    for item in tree:
        yield prefix, item
        if recursive and isinstance(item, pygit2.Tree):
            yield from walk_items(item, f"{prefix}{_name(item)}/", recursive=True)


def entry_of(prefix: str, item: pygit2.Object) -> Entry:
    """Return the entry of an item of a tree, with its full path."""
    return Entry(prefix + _name(item), int(item.filemode), str(item.id))


def blob(repo: pygit2.Repository, blob_id: str) -> pygit2.Blob | None:
    """Return a blob by its full id, or None; also None for one too large to be in memory."""
    if not FULL_ID.match(blob_id) or size_bytes(repo, blob_id) > BLOB_MAX_BYTES:
        return None
    item = repo.get(blob_id)
    return item if isinstance(item, pygit2.Blob) else None


def size_bytes(repo: pygit2.Repository, blob_id: str) -> int:
    """Return the size of a blob without reading it; 0 if it is missing."""
    try:
        _type, size = repo.odb.read_header(pygit2.Oid(hex=blob_id))
    except KeyError:
        return 0
    return size


def history(
    repo: pygit2.Repository, start: pygit2.Commit, path: str = ""
) -> Iterator[pygit2.Commit]:
    """Yield commits, newest first; with `path` only those that changed it."""
    for commit in repo.walk(start.id, SortMode.TOPOLOGICAL | SortMode.TIME):
        if not path or touches(commit, path):
            yield commit


def touches(commit: pygit2.Commit, path: str) -> bool:
    """Say whether a commit changed a path."""
    current = _id_at(commit, path)
    parents = commit.parents
    if not parents:
        return current is not None
    return all(_id_at(parent, path) != current for parent in parents)


def changes(commit: pygit2.Commit) -> pygit2.Diff:
    """Return what a commit changes against its first parent, or against nothing."""
    if commit.parents:
        return commit.parents[0].tree.diff_to_tree(commit.tree)
    return commit.tree.diff_to_tree(swap=True)


def last_commits(
    repo: pygit2.Repository,
    start: pygit2.Commit,
    paths: Mapping[str, str],
    *,
    at_most: int | None = None,
) -> dict[str, pygit2.Commit]:
    """
    Return for each path the last commit that gave it the id it has at `start`.

    An answer is remembered, for a walk from a later commit to end there.

    Args:
        repo: The repository of `start`.
        start: Where to begin.
        paths: Paths with the object ids they have at `start`.
        at_most: How many commits are looked at; a path that changed before is left out.
    """
    last: dict[str, pygit2.Oid] = {}
    work, looked_at = [(start.id, dict(paths))], 0
    while work and (at_most is None or looked_at < at_most):
        commit, ids = work.pop()
        looked_at += 1
        for path in list(ids):
            if known := _LAST.get((commit, path)):
                last[path] = known
                ids.pop(path)
        parents, changed = _step(repo, commit)
        for parent in parents:
            if changed is None:
                tree = repo[parent].peel(pygit2.Commit)
                unchanged = {path: id_ for path, id_ in ids.items() if _id_at(tree, path) == id_}
            else:
                unchanged = {path: id_ for path, id_ in ids.items() if path not in changed}
            if unchanged:
                work.append((parent, unchanged))
                ids = {path: id_ for path, id_ in ids.items() if path not in unchanged}
        last.update(dict.fromkeys(ids, commit))
    if len(_LAST) + len(last) > _LAST_MAX:
        _LAST.clear()
    _LAST.update(((start.id, path), last[path]) for path in islice(last, _LAST_MAX))
    return {path: repo[commit].peel(pygit2.Commit) for path, commit in last.items()}


def _step(
    repo: pygit2.Repository, commit_id: pygit2.Oid
) -> tuple[Sequence[pygit2.Oid], frozenset[str] | None]:
    """Return the parents of a commit, and what it changed, with folders; None with several."""
    known = _STEPS.get(commit_id)
    if known is None:
        commit = repo[commit_id].peel(pygit2.Commit)
        changed = None
        if len(commit.parent_ids) == 1:
            sides = (
                side for each in changes(commit).deltas for side in (each.old_file, each.new_file)
            )
            files = {PurePosixPath(side.raw_path.decode(errors="replace")) for side in sides}
            changed = frozenset(str(path) for file in files for path in (file, *file.parents))
        if len(_STEPS) >= _STEPS_MAX:
            _STEPS.clear()
        known = _STEPS[commit_id] = commit.parent_ids, changed
    return known


def _id_at(commit: pygit2.Commit, path: str) -> str | None:
    entry = entry_at(commit.tree, path)
    return entry.id if entry else None


def _name(item: pygit2.Object) -> str:
    return (item.raw_name or b"").decode(errors="replace")


def by_short_id(repo: pygit2.Repository, prefix: str) -> pygit2.Commit | None:
    """Return the only commit whose id has this prefix, or None."""
    if not SHORT_ID.match(prefix):
        return None
    try:
        item: object = repo.get(repo.expand_id(prefix))
    except (KeyError, ValueError):
        return None
    return item if isinstance(item, pygit2.Commit) else None


def tag_commit(repo: pygit2.Repository, tag: str) -> pygit2.Commit | None:
    """Return the commit a tag points to, or None."""
    return _reference_commit(repo, TAGS + tag) if is_branch_name(tag) else None


def message(commit: pygit2.Commit, errors: str = "replace") -> str:
    """Return a commit's message. As Gitea it takes bytes for UTF-8, whatever the commit claims."""
    return commit.raw_message.decode(errors=errors)


def name_and_email(person: pygit2.Signature, errors: str = "replace") -> tuple[str, str]:
    """Return who an author or committer is, read as `message` is."""
    return (person.raw_name.decode(errors=errors), person.raw_email.decode(errors=errors))


KEPT = 512
"""For how many paths, of all repositories together."""
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Known:
    """The commits that changed a path, as seen from one head."""

    head: pygit2.Oid
    commits: tuple[pygit2.Oid, ...]


_kept: OrderedDict[tuple[Path, str], _Known] = OrderedDict()


def commits_of(
    repository: Path, repo: pygit2.Repository, start: pygit2.Commit, path: str
) -> tuple[pygit2.Oid, ...]:
    """Return the ids of the commits that changed `path` (all, if empty), newest first."""
    key = (repository, path)
    with _guard:
        cached = _kept.get(key)
    commits = _since(start, path, cached) if cached else None
    if commits is None:
        commits = tuple(commit.id for commit in history(repo, start, path))
    with _guard:
        _kept[key] = _Known(start.id, commits)
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return commits


def _since(start: pygit2.Commit, path: str, cached: _Known) -> tuple[pygit2.Oid, ...] | None:
    """Return the commits if a line of single parents leads from `start` to the known head."""
    fresh, commit = [], start
    while commit.id != cached.head:
        if len(commit.parent_ids) != 1:
            return None
        if not path or touches(commit, path):
            fresh.append(commit.id)
        commit = commit.parents[0]
    return (*fresh, *cached.commits)
