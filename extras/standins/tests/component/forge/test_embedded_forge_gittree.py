"""A tree edited path by path is the tree that git makes of the same edits."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pygit2
import pytest
from pygit2.enums import FileMode

from orderkit_standins.forge import git_read
from orderkit_standins.forge.git_write import EditedTree

if TYPE_CHECKING:
    from chances import Chances

NAMES = ("a", "b", "a.b")
PATHS = tuple(
    "/".join(way) for depth in (1, 2, 3) for way in itertools.product(NAMES, repeat=depth)
)
DISJOINT = ("a", "b", "a.b/a", "a.b/b/a")
Edit = tuple[str, pygit2.Oid | None, FileMode]
"""A path and the blob to put there; None takes the file away."""
MODES = (FileMode.BLOB, FileMode.BLOB_EXECUTABLE, FileMode.LINK)


@pytest.fixture
def repo(tmp_path: Path) -> pygit2.Repository:
    place = tmp_path / "r.git"
    git_read.init_bare(place, "main")
    return git_read.open_repository(place)


def test_edited_trees_equal_those_of_git(
    repo: pygit2.Repository, chances: Chances, tmp_path: Path
) -> None:
    """Files and folders in each other's way, emptied folders, links: in any order."""
    random_ = chances.random("edited trees")
    for number in range(chances.count(25, 2_000)):
        index = tmp_path / f"index-{number}"
        base = by_git(repo, index, some_edits(repo, random_, removals=0.0))
        edits = some_edits(repo, random_, removals=0.5)

        edited = EditedTree(repo, repo[base].peel(pygit2.Tree))
        for path, blob, mode in edits:
            if blob is None:
                edited.remove(path)
            else:
                edited.put(path, blob, mode)
        made = edited.write()

        assert str(made) == by_git(repo, index, edits), (base, edits)
        items = git_read.walk_items(repo[made].peel(pygit2.Tree), recursive=True)
        entries = [git_read.entry_of(folder, item) for folder, item in items]
        files = {entry.path for entry in entries if entry.mode != FileMode.TREE}
        assert {path for path in PATHS if edited.has_file(path)} == files


def some_edits(repo: pygit2.Repository, random_: random.Random, *, removals: float) -> list[Edit]:
    return [
        (
            path,
            None if random_.random() < removals else repo.create_blob(random_.choice((b"x", b"y"))),
            random_.choice(MODES),
        )
        for path in random_.choices(PATHS, k=random_.randrange(8))
    ]


def by_git(repo: pygit2.Repository, index: Path, edits: list[Edit]) -> str:
    """Let git make the edits, on what its index holds; return the id of the tree."""
    lines = [f"{mode if blob else 0:o} {blob or '0' * 40}\t{path}\n" for path, blob, mode in edits]
    git = partial(
        subprocess.run,
        cwd=repo.path,
        env={**os.environ, "GIT_INDEX_FILE": str(index)},
        check=True,
        capture_output=True,
        text=True,
    )
    git(["git", "update-index", "--add", "--replace", "--index-info"], input="".join(lines))
    return str(git(["git", "write-tree"]).stdout.strip())


def test_a_submodule_stays_and_is_no_folder(repo: pygit2.Repository) -> None:
    builder = repo.TreeBuilder()
    builder.insert("sub", pygit2.Oid(hex="d" * 40), FileMode.COMMIT)
    edited = EditedTree(repo, repo[builder.write()].peel(pygit2.Tree))

    edited.put("file", repo.create_blob(b"x"), FileMode.BLOB)

    assert edited.has_file("sub")
    assert not edited.has_file("sub/file")
    found = repo[edited.write()].peel(pygit2.Tree)
    assert [(each.name, int(each.filemode)) for each in found] == [
        ("file", int(FileMode.BLOB)),
        ("sub", int(FileMode.COMMIT)),
    ]


def test_folders_that_no_path_touches_are_not_written(repo: pygit2.Repository) -> None:
    """What is written is the folders on the way of a path, however many lie beside it."""
    first = EditedTree(repo, None)
    for number in range(50):
        first.put(f"apps/team-{number}/order", repo.create_blob(b"x"), FileMode.BLOB)
    base = repo[first.write()].peel(pygit2.Tree)
    before = set(repo)

    edited = EditedTree(repo, base)
    edited.put("apps/team-7/another", repo.create_blob(b"y"), FileMode.BLOB)
    edited.write()

    assert len(set(repo) - before) == len(("root", "apps", "team-7", "another"))


@pytest.mark.parametrize("path", ["a/.git/b", "..", "a/./b", ".git"])
def test_a_path_that_git_does_not_take_is_refused(repo: pygit2.Repository, path: str) -> None:
    edited = EditedTree(repo, None)

    with pytest.raises((ValueError, pygit2.GitError, OSError)):
        edited.put(path, repo.create_blob(b"x"), FileMode.BLOB)


def test_the_last_commit_of_a_path_is_gits_however_much_is_remembered(
    repo: pygit2.Repository, chances: Chances
) -> None:
    random_ = chances.random("last commits")
    heads: list[pygit2.Commit] = []
    for number in range(chances.count(40, 400)):
        parents = random_.sample(heads[-6:], k=min(len(heads), random_.randint(1, 2)))
        head = committed(repo, parents, random_.sample(DISJOINT, k=2), number)
        heads.append(head)
        found = {path: git_read.entry_at(head.tree, path) for path in (*DISJOINT, "a.b")}
        ids = {path: entry.id for path, entry in found.items() if entry}
        remembered = git_read.last_commits(repo, head, ids)
        git_read._LAST.clear()  # noqa: SLF001  as after a start
        assert remembered == git_read.last_commits(repo, head, ids)
        git_read._STEPS.clear()  # noqa: SLF001
        for path in random_.sample(sorted(ids), k=1):
            assert str(remembered[path].id) == last_by_git(repo, head, path)


def last_by_git(repo: pygit2.Repository, head: pygit2.Commit, path: str) -> str:
    command = ["git", "-C", repo.path, "log", "-1", "--format=%H", str(head.id), "--", path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_what_is_remembered_of_last_commits_is_bounded(
    repo: pygit2.Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may push chooses how many commits there are, and how many paths."""
    monkeypatch.setattr(git_read, "_LAST_MAX", 10)
    monkeypatch.setattr(git_read, "_LAST", {})
    monkeypatch.setattr(git_read, "_STEPS_MAX", 3)
    monkeypatch.setattr(git_read, "_STEPS", {})
    names = [f"file-{number}" for number in range(25)]
    first = committed(repo, [], names, 0)
    for head in (first, *(committed(repo, [first], names[:4], number) for number in range(1, 9))):
        ids = {entry.path: entry.id for entry in git_read.children(repo, str(head.tree_id), "")}

        assert git_read.last_commits(repo, head, ids).keys() == set(names)
        assert 0 < len(git_read._LAST) <= 10  # noqa: SLF001
        assert 0 < len(git_read._STEPS) <= 3  # noqa: SLF001


def committed(
    repo: pygit2.Repository, parents: list[pygit2.Commit], paths: list[str], number: int
) -> pygit2.Commit:
    """Commit a few values of these files on top of the first parent."""
    edited = EditedTree(repo, parents[0].tree if parents else None)
    for path in paths:
        edited.put(path, repo.create_blob(str(number % 3).encode()), FileMode.BLOB)
    person = pygit2.Signature("a", "a@example.org", number, 0)
    ids = [parent.id for parent in parents]
    made = repo.create_commit(None, person, person, f"{number}", edited.write(), ids)
    return repo[made].peel(pygit2.Commit)
