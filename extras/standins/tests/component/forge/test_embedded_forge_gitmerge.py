"""Merges computed in memory are those that the real git makes."""

from __future__ import annotations

import random
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pygit2
import pytest
from pygit2.enums import FileMode

from orderkit_standins.forge import git_merge, git_read
from orderkit_standins.forge.git_merge import MergeCommit, MergeError, TrialMerge
from orderkit_standins.forge.git_write import Person

if TYPE_CHECKING:
    from chances import Chances

ME = Person("me", "me@example.org", datetime(2026, 1, 2, tzinfo=UTC))
NAMES = ("a", "b", "dir/c", "dir/d", "e")


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    identity = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def commit(repo: pygit2.Repository, parents: list[str], files: dict[str, str], message: str) -> str:
    index = pygit2.Index()
    for path, text in files.items():
        blob = repo.create_blob(text.encode())
        index.add(pygit2.IndexEntry(path, blob, FileMode.BLOB))
    made = repo.create_commit(
        None,
        ME.signature(),
        ME.signature(),
        message,
        index.write_tree(repo),
        [pygit2.Oid(hex=parent) for parent in parents],
    )
    return str(made)


def edited(rng: random.Random, files: dict[str, str]) -> dict[str, str]:
    """Return the files with one line changed, one added, one removed, or a file more or less."""
    found = dict(files)
    name = rng.choice(NAMES)
    if name not in found:
        return found | {name: "".join(f"{name} {number}\n" for number in range(9))}
    lines = found[name].splitlines(keepends=True)
    match rng.randrange(5):
        case 0 | 1:
            lines[rng.randrange(len(lines))] = f"edit {rng.randrange(4)}\n"
        case 2:
            lines.insert(rng.randrange(len(lines)), f"more {rng.randrange(4)}\n")
        case 3 if len(lines) > 2:
            lines.pop(rng.randrange(len(lines)))
        case _ if len(found) > 1:
            found.pop(name)
            return found
    return found | {name: "".join(lines)}


def forked(rng: random.Random, folder: Path) -> tuple[pygit2.Repository, str, str]:
    """Make a repository with two branches; return it with their tips."""
    repo = pygit2.init_repository(str(folder), bare=True)
    files = {name: "".join(f"{name} {number}\n" for number in range(12)) for name in NAMES[:4]}
    root = commit(repo, [], files, "root")
    tips = []
    for branch in ("base", "head"):
        here, tip = dict(files), root
        for number in range(rng.randrange(1, 4)):
            here = edited(rng, here)
            tip = commit(repo, [tip], here, f"{branch} {number}")
        repo.references.create(f"refs/heads/{branch}", tip)
        tips.append(tip)
    return repo, tips[0], tips[1]


def test_trial_and_merge_agree_with_git(chances: Chances, tmp_path: Path) -> None:
    rng, verdicts = chances.random("merges"), set()
    for number in range(chances.count(15, 1000)):
        folder = tmp_path / str(number)
        repo, base, head = forked(rng, folder)

        trial = git_merge.try_merge(folder, base, head)
        said = git(folder, "merge-tree", "--write-tree", "base", "head")

        verdicts.add(trial.verdict)
        assert trial.merge_base == git(folder, "merge-base", "base", "head").stdout.strip()
        assert (trial.verdict == "conflict") == (said.returncode == 1), said.stdout
        if trial.verdict != "conflict":
            wanted = MergeCommit(base, head, "m", ME, ME)
            merged = git_merge.write_merge(repo, wanted, squash=False)
            squashed = git_merge.write_merge(repo, wanted, squash=True)
            tree = said.stdout.split()[0]
            assert _trees(repo, merged, squashed) == [tree, tree]
            assert (trial.verdict == "empty") == (tree == _trees(repo, base)[0])
    assert {"mergeable", "conflict"} <= verdicts


def _trees(repo: pygit2.Repository, *commits: str) -> list[str]:
    found = [git_read.commit_by_id(repo, each) for each in commits]
    return [str(each.tree_id) for each in found if each is not None]


@pytest.mark.parametrize("squash", [False, True])
def test_unrelated_histories_are_not_joined(tmp_path: Path, *, squash: bool) -> None:
    repo = pygit2.init_repository(str(tmp_path), bare=True)
    one, other = (commit(repo, [], {"a": text}, text) for text in ("1", "2"))

    assert git_merge.try_merge(tmp_path, one, other) == TrialMerge("empty", "")
    with pytest.raises(MergeError, match="unrelated"):
        git_merge.write_merge(repo, MergeCommit(one, other, "m", ME, ME), squash=squash)
