"""The port `orderkit.ports.forge.Forge`, method by method, through the client."""

from __future__ import annotations

import threading
import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from ground.errors import (
    AccessError,
    ConflictError,
    InvalidInputError,
    MovedError,
    NotFoundError,
    RefusedError,
)
from ground.names import BlobSha, CommitSha, RepoId
from orderkit.ports.forge import OPERATION_TRAILER, FileChange, Forge

if TYPE_CHECKING:
    from chances import Chances
    from tests.conformance.forge.conftest import Workshop

A = PurePosixPath("dir/a.txt")
NOWHERE = RepoId("no-such-team", "no-such-order")
WRITERS, INCREMENTS = 8, (5, 20)


def test_f01_the_client_is_a_forge(shop: Workshop) -> None:
    forge: Forge = shop.forge

    assert forge.version()
    assert forge.user() == shop.target.user
    assert forge.base_url == shop.target.url


def test_f02_ensuring_an_organisation_twice_creates_it_once(shop: Workshop) -> None:
    name = shop.org()

    assert shop.forge.has_org(name)
    assert not shop.forge.ensure_org(name)
    assert not shop.forge.has_org("no-such-team")


def test_f03_a_bad_organisation_name_is_the_callers_mistake(shop: Workshop) -> None:
    with pytest.raises(InvalidInputError, match="refused by the forge"):
        shop.forge.ensure_org("..")


def test_f04_ensuring_a_repository_twice_creates_it_once(shop: Workshop) -> None:
    repo = RepoId(shop.org(), "order-1")

    first = shop.forge.ensure_repo(repo, description="one", private=True)
    second = shop.forge.ensure_repo(repo, description="two")

    assert first == second
    assert (first.empty, first.private, first.archived) == (True, True, False)
    assert (first.description, first.default_branch) == ("one", "main")
    assert first.clone_url == f"{shop.target.url}/{repo}.git"


def test_f05_a_repository_needs_its_organisation(shop: Workshop) -> None:
    with pytest.raises(NotFoundError, match="no organisation no-such-team"):
        shop.forge.ensure_repo(NOWHERE, description="")


def test_f06_a_bad_repository_name_is_the_callers_mistake(shop: Workshop) -> None:
    with pytest.raises(InvalidInputError, match="repository"):
        shop.forge.ensure_repo(RepoId(shop.org(), "a b"), description="")


def test_f07_what_does_not_exist_is_none(shop: Workshop) -> None:
    empty = shop.empty_repo()

    assert shop.forge.repo(NOWHERE) is None
    assert shop.forge.head(NOWHERE) is None
    assert shop.forge.head(empty) is None
    assert shop.forge.read(empty, A, "main") is None
    assert shop.forge.commits(empty) == []
    assert shop.forge.commits(NOWHERE) == []


def test_f09_the_first_write_makes_the_root_commit(shop: Workshop) -> None:
    repo = shop.empty_repo()

    written = shop.forge.write(repo, [shop.new("a/b", "1"), shop.new("c", "2")], shop.op())

    found = shop.forge.repo(repo)
    assert found is not None
    assert (found.empty, found.default_branch) == (False, "main")
    assert written.changed
    assert [(each.id, each.parents) for each in shop.forge.commits(repo)] == [(written.commit, ())]


def test_f10_tree_and_files_are_read_at_a_commit(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    old = shop.forge.head(repo)
    assert old is not None
    seen = shop.forge.read(repo, A, "main")
    assert seen is not None
    shop.forge.write(repo, [FileChange(A, b"new\n", seen.sha)], shop.op())

    then, now = shop.forge.read(repo, A, old), shop.forge.read(repo, A, "main")

    assert then == seen
    assert now is not None
    assert (seen.text, now.text) == ("a\n", "new\n")
    assert shop.forge.tree(repo, old)[A] == seen.sha
    assert {str(path) for path in shop.forge.tree(repo, old)} == {
        "README.md", "dir/a.txt", "dir/b.txt", "top.yaml",
    }  # fmt: skip


def test_f11_the_tree_of_an_unknown_commit_is_an_error(shop: Workshop) -> None:
    with pytest.raises(NotFoundError):
        shop.forge.tree(shop.seeded_repo(), CommitSha("0" * 40))
    with pytest.raises(NotFoundError):
        shop.forge.tree(NOWHERE, CommitSha("0" * 40))


def test_f12_a_folder_is_no_file(shop: Workshop) -> None:
    assert shop.forge.read(shop.seeded_repo(), PurePosixPath("dir"), "main") is None


def test_f13_the_message_carries_operation_and_requester(shop: Workshop) -> None:
    repo, operation = shop.empty_repo(), shop.op("op-13")

    shop.forge.write(repo, [shop.new("a", "1")], operation)

    assert shop.forge.commits(repo)[0].message == operation.message
    assert f"{OPERATION_TRAILER}: op-13" in operation.message


def test_f14_several_files_change_in_one_commit(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    a, b = shop.sha(repo, "dir/a.txt"), shop.sha(repo, "dir/b.txt")

    shop.forge.write(
        repo,
        [
            FileChange(A, b"A\n", BlobSha(a)),
            FileChange(PurePosixPath("dir/b.txt"), None, BlobSha(b)),
            shop.new("dir/c.txt", "c\n"),
        ],
        shop.op(),
    )

    head = shop.forge.head(repo)
    assert head is not None
    assert len(shop.forge.commits(repo)) == 2
    assert {path.name for path in shop.forge.tree(repo, head)} == {
        "README.md", "a.txt", "c.txt", "top.yaml",
    }  # fmt: skip


def test_f10b_what_is_read_ahead_is_what_is_read(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    (copy / "link").symlink_to("top.yaml")
    (copy / "large").write_bytes(b"x" * 70_000)
    for step in (["add", "."], ["commit", "-qm", "x"], ["push", "-q", "origin", "HEAD:main"]):
        assert shop.git(*step, cwd=copy).returncode == 0
    paths = [PurePosixPath(each) for each in ("top.yaml", "link", "dir/a.txt", "large", "no/such")]
    head = shop.forge.head(repo)
    assert head is not None
    other = shop.client(token=shop.target.token)
    alone = {path: other.read(repo, path, head) for path in paths}

    shop.forge.read_ahead(repo, paths, head)

    assert {path: shop.forge.read(repo, path, head) for path in paths} == alone


def test_f15_what_already_has_its_content_makes_no_commit(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    head = shop.forge.head(repo)

    same = shop.forge.write(
        repo,
        [shop.new("README.md", "hello\n"), FileChange(PurePosixPath("gone"), None, BlobSha("1"))],
        shop.op(),
    )

    assert (same.commit, same.changed) == (head, False)
    assert shop.forge.head(repo) == head


def test_f16_only_what_differs_is_in_the_commit(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    shop.forge.write(repo, [shop.new("README.md", "hello\n"), shop.new("n", "1")], shop.op())

    assert len(shop.forge.commits(repo, path=PurePosixPath("README.md"))) == 1
    assert len(shop.forge.commits(repo, path=PurePosixPath("n"))) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (FileChange(A, b"x", BlobSha("0" * 40)), "it has another blob id"),
        (FileChange(A, b"x", None), "it was not expected to exist"),
        (FileChange(A, None, BlobSha("0" * 40)), "what is deleted is not what was seen"),
        (FileChange(PurePosixPath("none"), b"x", BlobSha("0" * 40)), "it is gone"),
    ],
)
def test_f17_a_file_that_is_not_as_seen_is_a_conflict_and_nothing_is_written(
    shop: Workshop, change: FileChange, reason: str
) -> None:
    repo = shop.seeded_repo()
    head = shop.forge.head(repo)

    with pytest.raises(ConflictError):
        shop.forge.write(repo, [shop.new("other", "1"), change], shop.op())

    assert shop.forge.head(repo) == head, reason


def test_f18_the_same_operation_again_is_recognised_after_others_wrote(shop: Workshop) -> None:
    repo, operation = shop.seeded_repo(), shop.op()
    seen = BlobSha(shop.sha(repo, "dir/a.txt"))
    mine = [FileChange(A, b"mine\n", seen)]
    first = shop.forge.write(repo, mine, operation)
    later = [FileChange(A, b"later\n", BlobSha(shop.sha(repo, "dir/a.txt")))]
    shop.forge.write(repo, later, shop.op())

    again = shop.forge.write(repo, mine, operation)

    assert again == first
    assert len(shop.forge.commits(repo)) == 3


def test_f19_writing_needs_repository_and_branch(shop: Workshop) -> None:
    with pytest.raises(NotFoundError, match="no repository"):
        shop.forge.write(NOWHERE, [shop.new("a", "1")], shop.op())
    with pytest.raises(NotFoundError, match="no branch nope"):
        shop.forge.write(shop.seeded_repo(), [shop.new("a", "1")], shop.op(), branch="nope")


def test_f20_an_archived_repository_refuses_writes(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    shop.forge.archive(repo)
    shop.forge.archive(repo)

    found = shop.forge.repo(repo)
    assert found is not None
    assert found.archived
    with pytest.raises(RefusedError, match="archived"):
        shop.forge.write(repo, [shop.new("a", "1")], shop.op())
    with pytest.raises(NotFoundError):
        shop.forge.archive(NOWHERE)

    shop.forge.archive(repo, undo=True)
    shop.forge.archive(repo, undo=True)
    assert shop.forge.write(repo, [shop.new("a", "1")], shop.op()).changed


def test_f24a_squash_merges_are_forbidden_once(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    before = shop.forge.repo(repo)

    assert shop.forge.forbid_squash(repo) is True
    assert shop.forge.forbid_squash(repo) is False

    after = shop.forge.repo(repo)
    assert before is not None
    assert after is not None
    assert (before.may_squash, after.may_squash) == (True, False)
    with pytest.raises(NotFoundError):
        shop.forge.forbid_squash(NOWHERE)


def test_f24b_a_renamed_repository_says_where_it_is_and_takes_its_name_back(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    other = RepoId(repo.owner, f"{repo.name}-other")

    shop.forge.rename_repo(repo, other.name)
    shop.forge.rename_repo(repo, other.name)
    with pytest.raises(MovedError) as moved:
        shop.forge.repo(repo)
    shop.forge.rename_repo(other, repo.name)

    assert moved.value.place == str(other)
    assert shop.forge.repo(repo)
    assert shop.forge.read(repo, A, "main")
    shop.forge.ensure_repo(RepoId(repo.owner, "taken"), description="")
    with pytest.raises(ConflictError):
        shop.forge.rename_repo(repo, "taken")
    with pytest.raises(NotFoundError):
        shop.forge.rename_repo(NOWHERE, "elsewhere")


def test_f24c_another_branch_becomes_the_default_once_and_only_if_it_exists(
    shop: Workshop,
) -> None:
    repo = shop.seeded_repo()
    head = shop.forge.head(repo)
    assert head is not None
    shop.forge.ensure_branch(repo, "trunk", head)

    shop.forge.set_default_branch(repo, "trunk")
    shop.forge.set_default_branch(repo, "trunk")
    with pytest.raises(NotFoundError):
        shop.forge.set_default_branch(repo, "nowhere")
    with pytest.raises(NotFoundError):
        shop.forge.set_default_branch(NOWHERE, "main")

    changed = shop.forge.repo(repo)
    assert changed is not None
    assert changed.default_branch == "trunk"


def test_f21_deleting_twice_deletes_once_and_the_name_is_free_again(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    assert shop.forge.delete_repo(repo)
    assert not shop.forge.delete_repo(repo)
    assert shop.forge.repo(repo) is None
    assert shop.forge.ensure_repo(repo, description="").empty


def test_f22_history_is_limited_and_newest_first(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    made = [
        shop.forge.write(repo, [shop.new(f"n{number}", "1")], shop.op()).commit
        for number in range(4)
    ]

    assert [each.id for each in shop.forge.commits(repo, limit=3)] == made[:0:-1]


def test_f23_the_history_of_a_path_holds_its_deletion(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    seen = BlobSha(shop.sha(repo, "dir/a.txt"))
    gone = shop.forge.write(repo, [FileChange(A, None, seen)], shop.op()).commit
    shop.forge.write(repo, [shop.new("n", "1")], shop.op())

    found = shop.forge.commits(repo, path=A)

    assert found[0].id == gone
    assert len(found) == 2


def test_f24_a_large_file_travels_whole(shop: Workshop) -> None:
    repo, path, data = shop.empty_repo(), PurePosixPath("big.bin"), bytes(range(256)) * 46_000

    shop.forge.write(repo, [FileChange(path, data, None)], shop.op())
    found = shop.forge.read(repo, path, "main")

    assert found is not None
    assert len(data) > 10 * 1024 * 1024
    assert found.data == data


def test_f25_bad_credentials_missing_scope_and_missing_right_are_told_apart(
    shop: Workshop,
) -> None:
    repo = shop.seeded_repo()
    name, password = shop.outsider
    reader = shop.token("read:repository")[6:]
    cases = [
        (shop.client(token="0" * 40), "bad credentials"),
        (shop.client(token=reader), "missing scope|no right"),
        (shop.client((name, password)), "no right"),
    ]
    for client, message in cases:
        with client, pytest.raises(AccessError, match=message):
            client.write(repo, [shop.new("a", "1")], shop.op())


def test_f26_no_increment_is_lost_or_made_twice_when_writers_share_a_repository(
    shop: Workshop, chances: Chances
) -> None:
    """Each acknowledged increment is in the final counter and once in the history."""
    repo, increments = shop.empty_repo(), 2 if shop.target.real else chances.count(*INCREMENTS)
    shop.forge.write(repo, [shop.new("counter", "0")], shop.op())
    acknowledged: list[str] = []

    def increment() -> None:
        acknowledged.extend(_increment(shop, repo) for _ in range(increments))

    threads = [threading.Thread(target=increment) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    counter = shop.forge.read(repo, PurePosixPath("counter"), "main")
    history = [each.id for each in shop.forge.commits(repo, limit=1000)]
    assert counter is not None
    assert int(counter.text) == len(acknowledged) == WRITERS * increments
    assert sorted(history[:-1]) == sorted(acknowledged)


def _increment(shop: Workshop, repo: RepoId) -> str:
    path = PurePosixPath("counter")
    while True:
        seen = shop.forge.read(repo, path, "main")
        assert seen is not None
        change = FileChange(path, str(int(seen.text) + 1).encode(), seen.sha)
        try:
            written = shop.forge.write(repo, [change], shop.op())
        except ConflictError:
            continue
        if written.changed:  # else another writer made the same step from the same number
            return written.commit


def test_f27_losers_of_a_race_on_other_files_write_in_a_later_round(shop: Workshop) -> None:
    """Raw writers beside the client, without its lock: their 403 must not become its error."""
    repo, rounds = shop.seeded_repo(), 3 if shop.target.real else 15
    # Rivals who do not pause for longer than they write win for good: a forge that compares the
    # head of the branch has to be asked for it first, and a real one is slow.
    pauses, pause_s = 4, 0.5 if shop.target.real else 0.0
    won: list[int] = []
    stop = threading.Event()

    def disturb(number: int) -> None:
        count = 0
        while not stop.is_set():
            body = {"content": "", "message": "m", "branch": "main"}
            path = f"/repos/{repo}/contents/noise/{number}-{count}"
            count += 1
            begun_s = time.monotonic()
            won.append(shop.api("POST", path, body).status_code)
            stop.wait(max(pause_s, pauses * (time.monotonic() - begun_s)))

    threads = [threading.Thread(target=disturb, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        made = [
            shop.forge.write(repo, [shop.new(f"mine/{number}", "1")], shop.op()).commit
            for number in range(rounds)
        ]
    finally:
        stop.set()
        for thread in threads:
            thread.join()

    history = [each.id for each in shop.forge.commits(repo, limit=5000)]
    assert set(won) <= ({201, 403, 500} if shop.target.real else {201, 403})
    assert [history.count(commit) for commit in made] == [1] * rounds
    assert len(history) == len(set(history)) == 1 + rounds + won.count(201)
