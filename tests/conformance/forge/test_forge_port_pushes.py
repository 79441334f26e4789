"""Background work: where a forge takes pushes, a write is one, and promises what all writes do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from ground.errors import ConflictError
from ground.names import BlobSha, CommitSha, RepoId
from orderkit.ports.forge import FileChange, Operation, Written
from orderkit.ports.urgency import background

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop


def change(path: str, text: str | None, seen: str | None = None) -> FileChange:
    data = None if text is None else text.encode()
    return FileChange(PurePosixPath(path), data, BlobSha(seen) if seen else None)


def write(
    shop: Workshop, repo: RepoId, changes: Sequence[FileChange], op: Operation | None = None
) -> Written:
    with background():
        return shop.forge.write(repo, changes, op or shop.op())


def head(shop: Workshop, repo: RepoId) -> CommitSha:
    found = shop.forge.head(repo)
    assert found is not None
    return found


def many(shop: Workshop) -> tuple[RepoId, Path]:
    """Return a repository whose names git orders in its own way, with a link and a program."""
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    for name in ("a/b/c/deep.txt", "a.txt", "a-b/x", "a0/y", "ä ö/z", "only/one"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(f"{name}\n")
    (copy / "run.sh").write_text("#!/bin/sh\n")
    (copy / "run.sh").chmod(0o755)
    (copy / "a/link").symlink_to("../a.txt")
    shop.git("add", "-A", cwd=copy)
    shop.git("commit", "-q", "-m", "more", cwd=copy)
    assert shop.git("push", "-q", "origin", "HEAD:main", cwd=copy).returncode == 0
    return repo, copy


def test_pu01_one_commit_changes_what_it_names_and_nothing_else(shop: Workshop) -> None:
    """Real git reads the result: the new commit has one parent, and every object is there."""
    repo, copy = many(shop)
    before = head(shop, repo)

    written = write(
        shop,
        repo,
        [
            change("a/b/c/deep.txt", "deeper\n", shop.sha(repo, "a/b/c/deep.txt")),
            change("only/one", None, shop.sha(repo, "only/one")),
            change("new/folder/file", "new\n"),
            change("run.sh", "#!/bin/sh\nexit\n", shop.sha(repo, "run.sh")),
        ],
    )

    assert shop.git("pull", "-q", "--ff-only", cwd=copy).returncode == 0
    assert shop.git("fsck", "--strict", cwd=copy).returncode == 0
    assert shop.git("rev-parse", "HEAD^", "HEAD", cwd=copy).stdout.split() == [
        before,
        written.commit,
    ]
    told = shop.git("diff", "--raw", "--no-renames", "-z", "HEAD^", "HEAD", cwd=copy).stdout
    words = told.split("\0")[:-1]
    assert {path: entry[1:14] for entry, path in zip(words[::2], words[1::2], strict=True)} == {
        "a/b/c/deep.txt": "100644 100644",
        "new/folder/file": "000000 100644",
        "only/one": "100644 000000",
        "run.sh": "100755 100755",
    }
    assert shop.forge.read(repo, PurePosixPath("a/b/c/deep.txt"), "main") is not None
    (made, *_) = shop.forge.commits(repo, limit=1)
    assert made.operation
    assert written.changed


def test_pu02_a_repeated_operation_writes_once(shop: Workshop) -> None:
    repo, op = shop.seeded_repo(), shop.op()
    first = write(shop, repo, [change("x", "1\n")], op)

    again = write(shop, repo, [change("x", "1\n")], op)

    assert again.commit == first.commit == head(shop, repo)


def test_pu03_a_file_that_changed_meanwhile_is_a_conflict(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    write(shop, repo, [change("x", "1\n")])
    seen, before = shop.sha(repo, "x"), head(shop, repo)
    assert write(shop, repo, [change("x", "2\n", seen)]).changed
    now = head(shop, repo)

    with pytest.raises(ConflictError, match="x changed"):
        write(shop, repo, [change("x", "3\n", seen), change("y", "1\n")])
    with pytest.raises(ConflictError):
        write(shop, repo, [change("x", "3\n")])

    assert (head(shop, repo), before != now) == (now, True)


def test_pu04_rivals_on_other_files_lose_nothing(shop: Workshop) -> None:
    """A push names the head; whoever loses the race goes again, on the new one."""
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    for number in range(4):
        (copy / f"rival-{number}").write_text("r\n")
        shop.git("add", "-A", cwd=copy)
        shop.git("commit", "-q", "-m", "rival", cwd=copy)
        shop.forge.head(repo)
        assert shop.git("push", "-q", "origin", "HEAD:main", cwd=copy).returncode == 0
        write(shop, repo, [change(f"ours-{number}", "o\n")])
        assert shop.git("pull", "-q", "--ff-only", cwd=copy).returncode == 0

    names = {path.name for path in copy.iterdir()}
    assert {f"{who}-{number}" for who in ("ours", "rival") for number in range(4)} <= names


def test_pu05_a_file_where_a_folder_is_harms_nothing(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    write(shop, repo, [change("place/file", "1\n")])
    before = head(shop, repo)

    with pytest.raises(Exception):  # noqa: B017, PT011  each forge has its own word for it
        write(shop, repo, [change("place", "2\n")])

    assert head(shop, repo) == before


def test_pu06_the_first_commit_and_a_branch(shop: Workshop) -> None:
    repo = shop.empty_repo()
    first = write(shop, repo, [change("x", "1\n")])
    shop.forge.ensure_branch(repo, "work", first.commit)

    with background():
        done = shop.forge.write(repo, [change("y", "1\n")], shop.op(), branch="work")

    assert shop.forge.head(repo, "work") == done.commit
    assert head(shop, repo) == first.commit


def test_pu07_a_token_that_may_not_push_is_told_so(shop: Workshop) -> None:
    repo = shop.seeded_repo(private=True)
    before = head(shop, repo)
    refused = pytest.raises(Exception)  # noqa: PT011  each forge has its own word for it
    with shop.client(shop.outsider) as guest, background(), refused:
        guest.write(repo, [change("x", "1\n")], shop.op())

    assert head(shop, repo) == before
