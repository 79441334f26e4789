"""The history of a path is the same whether it is walked anew or continued from what is kept."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pygit2

from orderkit_standins.forge import git_read

if TYPE_CHECKING:
    from chances import Chances

AUTHOR = pygit2.Signature("a", "a@example.org", 1_700_000_000, 0)
PATHS = ("a", "b", "")


def commit(repo: pygit2.Repository, parents: list[pygit2.Oid], path: str, text: str) -> pygit2.Oid:
    index = pygit2.Index()
    if parents:
        index.read_tree(repo[parents[0]].peel(pygit2.Tree))
    blob = repo.create_blob(text.encode())
    index.add(pygit2.IndexEntry(path, blob, pygit2.enums.FileMode.BLOB))
    tree = index.write_tree(repo)
    return repo.create_commit(None, AUTHOR, AUTHOR, text, tree, parents)


def test_kept_histories_equal_walked_ones(tmp_path: Path, chances: Chances) -> None:
    """Random lines, branches, merges and rewritten branches, asked at random times."""
    for number in range(chances.count(6, 300)):
        random_ = chances.random(f"histories {number}")
        place = tmp_path / f"r{number}.git"
        git_read.init_bare(place, "main")
        grow_and_ask(git_read.open_repository(place), place, random_)


def grow_and_ask(repo: pygit2.Repository, place: Path, random_: random.Random) -> None:
    heads = [commit(repo, [], "a", "0")]
    for number in range(1, 25):
        parents = [random_.choice(heads[-3:])]
        if random_.random() < 0.2:
            other = random_.choice(heads)
            parents += [other] if other not in parents else []
        heads.append(commit(repo, parents, random_.choice("ab"), str(number)))
        path = random_.choice(PATHS)
        start = repo[random_.choice(heads[-2:])].peel(pygit2.Commit)
        expected = [each.id for each in git_read.history(repo, start, path)]
        assert list(git_read.commits_of(place, repo, start, path)) == expected
