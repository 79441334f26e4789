"""
Bring one branch into another, in memory: try it, and build the commits of each merge style.

Nothing here moves a reference: the commits that are built are harmless until a branch
points to them. It knows nothing of pull requests, users and HTTP.

Called by ``pulls`` (is it mergeable?) and ``merging`` (merge it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

import pygit2
from pygit2.enums import SortMode

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.gitwrite import Person

Verdict = Literal["mergeable", "conflict", "empty", "ancestor"]
"""``empty``: head has commits but changes nothing; ``ancestor``: base has all of head."""
Style = Literal["merge", "rebase", "rebase-merge", "squash", "fast-forward-only"]
_REMEMBERED = 4096


class MergeError(Exception):
    """The commits cannot be built. `style` and `commit` say where it stopped."""

    def __init__(
        self,
        kind: Literal["conflict", "unrelated", "diverged"],
        style: str,
        message: str,
        *,
        commit: str = "",
    ) -> None:
        super().__init__(message)
        self.kind, self.style, self.commit = kind, style, commit


@dataclass(frozen=True, slots=True)
class Trial:
    """What a merge of two commits would do. `merge_base` is empty for unrelated histories."""

    verdict: Verdict
    merge_base: str


@dataclass(frozen=True, slots=True)
class Landing:
    """Two commits, and in whose name and with which words they are joined."""

    base: str
    head: str
    message: str
    author: Person
    committer: Person


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a range of commits changes."""

    files: int
    additions: int
    deletions: int


def try_merge(path: Path, base: str, head: str) -> Trial:
    """Say whether `head` can be merged into `base`, both commit ids."""
    return _trial(str(path), base, head)


@lru_cache(_REMEMBERED)
def _trial(path: str, base: str, head: str) -> Trial:
    git = gitread.open_repository(Path(path))
    merge_base = merge_base_of(git, base, head)
    if not merge_base:
        return Trial("empty", "")
    if merge_base == head:
        return Trial("ancestor", head)
    index = git.merge_commits(_commit(git, base), _commit(git, head))
    if index.conflicts:
        return Trial("conflict", merge_base)
    same = index.write_tree(git) == _commit(git, base).tree_id
    return Trial("empty" if same else "mergeable", merge_base)


def extent(path: Path, old: str, new: str) -> Extent:
    """Count what changed between two commits, both full ids."""
    return _extent(str(path), old, new)


@lru_cache(_REMEMBERED)
def _extent(path: str, old: str, new: str) -> Extent:
    git = gitread.open_repository(Path(path))
    stats = git.diff(old, new).stats
    return Extent(stats.files_changed, stats.insertions, stats.deletions)


def commits_between(
    git: pygit2.Repository, base: str, head: str, *, limit: int | None = None
) -> list[pygit2.Commit]:
    """Return the commits of `head` that `base` has not, newest first."""
    walker = git.walk(head, SortMode.TOPOLOGICAL | SortMode.TIME)
    walker.hide(base)
    found: list[pygit2.Commit] = []
    for commit in walker:
        if limit is not None and len(found) >= limit:
            break
        found.append(commit)
    return found


def merge_base_of(git: pygit2.Repository, one: str, other: str) -> str:
    """Return the commit from which two histories went apart; empty if they never met."""
    found = cast("pygit2.Oid | None", git.merge_base(one, other))  # the stubs forget None
    return str(found) if found is not None else ""


def changed_paths(git: pygit2.Repository, old: str, new: str) -> tuple[str, ...]:
    """Return every path that differs between two commits, in both trees' names."""
    if not old or not new:
        return ()
    deltas = list(git.diff(old, new).deltas)
    return tuple({path for each in deltas for path in (each.old_file.path, each.new_file.path)})


def merge_between(git: pygit2.Repository, old: str, new: str) -> str:
    """Return the first merge commit through which `new` got `old`; empty if there is none."""
    for commit in reversed(commits_between(git, old, new)):
        if len(commit.parents) > 1 and is_ancestor(git, old, str(commit.id)):
            return str(commit.id)
    return ""


def is_ancestor(git: pygit2.Repository, old: str, new: str) -> bool:
    """Say whether `new` contains `old`; a commit contains itself."""
    if git.get(old) is None or git.get(new) is None:
        return False
    return old == new or git.descendant_of(new, old)


def build(git: pygit2.Repository, style: Style, landing: Landing) -> str:
    """
    Write the commits of a merge and return the id that the base branch must get.

    Raises:
        MergeError: ``conflict`` (a single commit of a rebase may conflict where the whole
            does not), ``unrelated`` histories, ``diverged`` where only fast-forward is wanted.
    """
    return str(_BUILDERS[style](git, landing))


def rebase(git: pygit2.Repository, landing: Landing) -> str:
    """
    Replay the commits of `head` onto `base`; return the last one.

    As ``git rebase``: merges are left out, and commits whose change `base` has already.

    Raises:
        MergeError: ``conflict`` or ``unrelated``.
    """
    merge_base = merge_base_of(git, landing.base, landing.head)
    if not merge_base:
        raise MergeError("unrelated", "rebase", "refusing to rebase unrelated histories")
    onto = _commit(git, landing.base)
    replayed = commits_between(git, landing.base, landing.head)
    if merge_base == landing.base and all(len(each.parents) == 1 for each in replayed):
        return landing.head
    there = {_patch_id(git, each) for each in commits_between(git, landing.head, landing.base)}
    for commit in reversed(replayed):
        if len(commit.parents) == 1 and _patch_id(git, commit) not in there:
            onto = _replay(git, commit, onto, landing.committer)
    return str(onto.id)


def _patch_id(git: pygit2.Repository, commit: pygit2.Commit) -> str:
    """Return what two commits share that make the same change; merges share nothing."""
    if len(commit.parents) != 1:
        return str(commit.id)
    diff = git.diff(commit.parents[0], commit)
    return str(diff.patchid) if len(diff) else str(commit.id)


def _replay(
    git: pygit2.Repository, commit: pygit2.Commit, onto: pygit2.Commit, committer: Person
) -> pygit2.Commit:
    parent = commit.parents[0]
    index = git.merge_trees(parent.tree, onto.tree, commit.tree)
    if index.conflicts:
        subject = gitread.message(commit).partition("\n")[0]
        message = f"could not apply {str(commit.id)[:7]}... {subject}"
        raise MergeError("conflict", "rebase", message, commit=str(commit.id))
    tree = index.write_tree(git)
    if tree == onto.tree_id and commit.tree_id != parent.tree_id:
        return onto
    new = git.create_commit(
        None, commit.author, committer.signature(), gitread.message(commit), tree, [onto.id]
    )
    return _commit(git, str(new))


def merge(git: pygit2.Repository, landing: Landing) -> str:
    """
    Write a merge commit of `base` and `head`; return it.

    Raises:
        MergeError: ``conflict`` or ``unrelated``.
    """
    tree = _merged_tree(git, landing, "merge")
    return _written(git, landing, tree, [landing.base, landing.head])


def _squash(git: pygit2.Repository, landing: Landing) -> str:
    return _written(git, landing, _merged_tree(git, landing, "squash"), [landing.base])


def _rebase_merge(git: pygit2.Repository, landing: Landing) -> str:
    top = rebase(git, landing)
    tree = _commit(git, top).tree_id
    return _written(git, landing, tree, [landing.base, top])


def _fast_forward(git: pygit2.Repository, landing: Landing) -> str:
    if not is_ancestor(git, landing.base, landing.head):
        raise MergeError("diverged", "fast-forward-only", "Not possible to fast-forward, aborting.")
    return landing.head


_BUILDERS: Mapping[Style, Callable[[pygit2.Repository, Landing], str]] = {
    "merge": merge,
    "rebase": rebase,
    "rebase-merge": _rebase_merge,
    "squash": _squash,
    "fast-forward-only": _fast_forward,
}


def _merged_tree(git: pygit2.Repository, landing: Landing, style: str) -> pygit2.Oid:
    if not merge_base_of(git, landing.base, landing.head):
        raise MergeError("unrelated", style, "refusing to merge unrelated histories")
    index = git.merge_commits(_commit(git, landing.base), _commit(git, landing.head))
    if index.conflicts:
        raise MergeError("conflict", style, "Automatic merge failed")
    return index.write_tree(git)


def _written(git: pygit2.Repository, landing: Landing, tree: pygit2.Oid, parents: list[str]) -> str:
    new = git.create_commit(
        None,
        landing.author.signature(),
        landing.committer.signature(),
        landing.message.strip() + "\n",
        tree,
        [pygit2.Oid(hex=parent) for parent in parents],
    )
    return str(new)


def _commit(git: pygit2.Repository, commit_id: str) -> pygit2.Commit:
    found = gitread.commit_by_id(git, commit_id)
    if found is None:
        raise LookupError(f"{commit_id} is no commit")
    return found
