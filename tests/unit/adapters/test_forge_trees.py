"""What a client keeps of the files of commits, and what it must not believe."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest

from ground.names import BlobSha, CommitSha, RepoId, blob_sha
from orderkit.adapters.forges import reading
from orderkit.adapters.forges.reading import TooManyError, TreeEntry, Trees, special_in
from orderkit.ports.forge import EXECUTABLE, LINK, PLAIN, FileChange, FileRevision
from orderkit.ports.revisions import SUBMODULE

REPO = RepoId("team", "order")
FOLDER = 0o040000
ONE, TWO, THREE = (CommitSha(digit * 40) for digit in "123")
A, B = PurePosixPath("a"), PurePosixPath("d/b")


def sha(text: str) -> BlobSha:
    return blob_sha(text.encode(), ONE)


def entry(path: str, text: str = "x", mode: int = PLAIN) -> TreeEntry:
    return TreeEntry(path, sha(text), mode)


def revision(path: PurePosixPath, text: str) -> FileRevision:
    return FileRevision(path, text.encode(), sha(text))


ENTRIES = [
    entry("a"),
    entry("d", mode=FOLDER),
    entry("d/b"),
    entry("d/run", mode=EXECUTABLE),
    entry("link", mode=LINK),
    entry("sub", mode=SUBMODULE),
]


@pytest.mark.parametrize("large", [False, True])
def test_files_of_a_commit_have_no_folders_and_no_submodules(*, large: bool) -> None:
    trees = Trees()
    files = (trees.keep_large if large else trees.keep)(REPO, ONE, ENTRIES)

    assert sorted(map(str, files)) == ["a", "d/b", "d/run", "link"]
    assert trees.remembered(REPO, ONE) == files
    assert trees.is_large(REPO) is large
    special = trees.remembered_special(REPO, ONE)
    assert special is not None
    assert {str(path): file.mode for path, file in special.items()} == {
        "d/run": EXECUTABLE, "link": LINK, "sub": SUBMODULE,
    }  # fmt: skip
    assert special == special_in(ENTRIES)


def test_nothing_is_known_of_another_commit_or_repository() -> None:
    trees = Trees()
    trees.keep(REPO, ONE, ENTRIES)

    assert trees.remembered(REPO, TWO) is None
    assert trees.remembered(RepoId("team", "other"), ONE) is None
    assert trees.remembered_special(REPO, TWO) is None
    assert trees.lacks(REPO, ONE, PurePosixPath("c"))
    assert not trees.lacks(REPO, ONE, A)
    assert not trees.lacks(REPO, TWO, PurePosixPath("c"))


def test_a_text_is_known_at_each_commit_that_has_the_same_file() -> None:
    trees = Trees()
    trees.keep(REPO, ONE, [entry("a", "x")])
    trees.keep_file(REPO, ONE, revision(A, "x"))
    trees.keep(REPO, TWO, [entry("a", "x")])
    trees.keep(REPO, THREE, [entry("a", "y")])

    assert trees.file(REPO, ONE, A) == trees.file(REPO, TWO, A) == revision(A, "x")
    assert trees.file(REPO, THREE, A) is None
    assert trees.file(REPO, ONE, B) is None


def test_a_link_has_no_text_even_if_a_file_has_its_content() -> None:
    trees = Trees()
    trees.keep_file(REPO, ONE, revision(A, "x"))
    trees.keep(REPO, TWO, [entry("a", "x", LINK)])

    assert trees.file(REPO, TWO, A) is None


def test_without_knowing_the_modes_of_a_commit_no_text_of_another_is_taken() -> None:
    trees = Trees()
    trees.keep_file(REPO, ONE, revision(A, "x"))

    assert trees.file(REPO, TWO, A) is None
    assert trees.file(REPO, ONE, A) == revision(A, "x")


def test_texts_are_bounded_in_size_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_FILES_KEPT", 4)
    monkeypatch.setattr(reading, "_FILE_MAX_BYTES", 3)
    trees = Trees()
    trees.keep_file(REPO, ONE, revision(A, "xxx"))
    trees.keep_file(REPO, ONE, revision(B, "xxxx"))
    assert trees.file(REPO, ONE, A) is not None
    assert trees.file(REPO, ONE, B) is None
    trees.keep_file(REPO, ONE, revision(PurePosixPath("c"), "c"))
    assert trees.file(REPO, ONE, A) is not None
    for name in "de":
        trees.keep_file(REPO, ONE, revision(PurePosixPath(name), name))
    assert trees.file(REPO, ONE, A) is None
    assert trees.file(REPO, ONE, PurePosixPath("e")) is not None


def test_commits_are_bounded_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_COMMITS_KEPT", 2)
    trees = Trees()
    for commit in (ONE, TWO, THREE):
        trees.keep(REPO, commit, ENTRIES)

    assert trees.remembered(REPO, ONE) is None
    assert trees.remembered_special(REPO, ONE) is None
    assert trees.remembered(REPO, TWO) is not None
    assert trees.remembered(REPO, THREE) is not None


def test_a_commit_that_is_kept_again_is_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_COMMITS_KEPT", 2)
    trees = Trees()
    for commit in (ONE, TWO, ONE, THREE):
        trees.keep(REPO, commit, ENTRIES)

    assert [trees.remembered(REPO, commit) is None for commit in (ONE, TWO)] == [False, True]


def test_of_a_large_repository_two_commits_stay_and_others_keep_theirs() -> None:
    trees, small = Trees(), RepoId("team", "small")
    trees.keep(small, ONE, ENTRIES)
    for commit in (ONE, TWO, THREE):
        trees.keep_large(REPO, commit, ENTRIES)

    assert trees.remembered(REPO, ONE) is None
    assert trees.remembered_special(REPO, ONE) is None
    assert trees.remembered(REPO, TWO) is not None
    assert trees.remembered(REPO, THREE) is not None
    assert trees.remembered(small, ONE) is not None


def test_folders_of_a_few_large_repositories_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LARGE_KEPT", 2)
    trees = Trees()
    repos = [RepoId("team", name) for name in "abc"]
    for repo in (*repos[:2], repos[0], repos[2]):
        trees.keep_large(repo, ONE, ENTRIES)

    assert [trees.is_large(repo) for repo in repos] == [True, False, True]


class Folders:
    """The folders of commits, and those that were asked for."""

    def __init__(self, **folders: list[TreeEntry]) -> None:
        self.folders, self.asked = folders, list[str]()

    def children(self, path: PurePosixPath, _sha: str) -> Iterable[TreeEntry]:
        self.asked.append(str(path))
        return self.folders[path.name or "root"]


def test_only_folders_that_differ_are_asked_for() -> None:
    trees = Trees()
    trees.keep_large(
        REPO,
        ONE,
        [
            entry("d", "d1", FOLDER),
            entry("d/b", "x"),
            entry("d/run", "r", EXECUTABLE),
            entry("e", "e1", FOLDER),
            entry("e/c", "y"),
        ],
    )
    folders = Folders(
        root=[entry("d", "d1", FOLDER), entry("e", "e2", FOLDER), entry("s", "s", SUBMODULE)],
        e=[entry("c", "z"), entry("l", "l", LINK)],
    )

    files = trees.walk(REPO, TWO, folders.children)

    assert folders.asked == [".", "e"]
    assert {str(path): blob for path, blob in files.items()} == {
        "d/b": sha("x"), "d/run": sha("r"), "e/c": sha("z"), "e/l": sha("l"),
    }  # fmt: skip
    special = trees.remembered_special(REPO, TWO)
    assert special is not None
    assert {str(path): file.mode for path, file in special.items()} == {
        "d/run": EXECUTABLE, "e/l": LINK, "s": SUBMODULE,
    }  # fmt: skip
    again = Folders(root=[entry("e", "e2", FOLDER)])
    assert sorted(map(str, trees.walk(REPO, THREE, again.children))) == ["e/c", "e/l"]
    assert again.asked == ["."]


def test_a_walk_that_needs_too_many_folders_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_FOLDERS", 3)
    trees = Trees()
    trees.keep_large(REPO, ONE, ENTRIES)
    deep = Folders(root=[entry("p", "p", FOLDER)], p=[entry("q", "q", FOLDER)], q=[entry("f")])

    assert [str(path) for path in trees.walk(REPO, TWO, deep.children)] == ["p/q/f"]
    wide = Folders(root=[entry(name, name * 2, FOLDER) for name in "uvw"], u=[], v=[], w=[])
    with pytest.raises(TooManyError):
        trees.walk(REPO, THREE, wide.children)
    assert trees.remembered(REPO, THREE) is None


def test_our_own_commit_is_known_without_reading_it() -> None:
    trees = Trees()
    trees.keep(REPO, ONE, [entry("a"), entry("d/b"), entry("link", "l", LINK)])

    trees.follow(REPO, ONE, TWO, [FileChange(A, b"new", None), FileChange(B, None, None)])

    files = trees.remembered(REPO, TWO)
    assert files is not None
    assert {str(path): blob for path, blob in files.items()} == {"a": sha("new"), "link": sha("l")}
    assert trees.file(REPO, TWO, A) == revision(A, "new")
    assert trees.remembered_special(REPO, TWO) == trees.remembered_special(REPO, ONE)
    assert trees.remembered(REPO, ONE) != files


def test_a_first_commit_has_no_parent_and_is_known() -> None:
    trees = Trees()
    trees.follow(REPO, None, ONE, [FileChange(A, b"x", None)])

    assert trees.remembered(REPO, ONE) == {A: sha("x")}
    assert trees.remembered_special(REPO, ONE) == {}


def test_a_commit_on_one_that_is_not_known_is_not_known() -> None:
    trees = Trees()
    trees.follow(REPO, TWO, ONE, [FileChange(A, b"x", None)])

    assert trees.remembered(REPO, ONE) is None


@pytest.mark.parametrize(
    "change",
    [FileChange(A, b"x", None, executable=True), FileChange(PurePosixPath("link"), b"x", None)],
    ids=["an executable", "what was a link"],
)
def test_after_a_change_of_modes_nothing_is_known_of_them(change: FileChange) -> None:
    trees = Trees()
    trees.keep(REPO, ONE, [entry("link", "l", LINK)])
    trees.follow(REPO, ONE, TWO, [change])

    assert trees.remembered(REPO, TWO) is not None
    assert trees.remembered_special(REPO, TWO) is None
    assert trees.file(REPO, TWO, change.path) is None
    trees.follow(REPO, TWO, THREE, [FileChange(A, b"x", None)])
    assert trees.remembered(REPO, THREE) is not None
    assert trees.remembered_special(REPO, THREE) is None


@pytest.mark.parametrize(("place", "is_kept"), [("", False), ("d", False), ("e", True)])
def test_where_attributes_may_change_content_no_text_is_known(place: str, *, is_kept: bool) -> None:
    trees = Trees()
    trees.keep(REPO, ONE, [entry(f"{place}/.gitattributes".lstrip("/"))])
    trees.follow(REPO, ONE, TWO, [FileChange(B, b"x", None)])

    assert (trees.file(REPO, TWO, B) is not None) is is_kept
