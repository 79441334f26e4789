"""The forge's folder: what survives, what is repaired, what is never written down."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath

import pygit2
import pytest

from ground.errors import ConflictError, InvalidInputError, NotFoundError
from ground.names import CommitSha, RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.ports.forge import FileChange, Operation
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge, repositories
from orderkit_standins.forge.accounts import hash_password, verify_password
from orderkit_standins.forge.repositories import FolderInUseError
from orderkit_standins.forge.store import NewerStateError

PASSWORD, TOKEN = "canary-password-1", "canarytoken" + "0" * 29
REPO = RepoId("team", "order")
FILE = PurePosixPath("f")


@contextmanager
def opened(root: Path) -> Iterator[tuple[EmbeddedForge, GiteaForge]]:
    """Open the forge in `root` and serve it."""
    forge = EmbeddedForge(root)
    server = HttpServer(forge.app, bind("forge", 0))
    server.start()
    forge.set_base_url(server.url)
    forge.ensure_user("warden", PASSWORD, admin=True)
    forge.ensure_token("warden", "t", TOKEN, ["all"])
    try:
        with GiteaForge(server.url, token=TOKEN) as client:
            yield forge, client
    finally:
        server.stop()
        forge.close()


def fill(client: GiteaForge, text: str) -> CommitSha:
    client.ensure_org(REPO.owner)
    client.ensure_repo(REPO, description="d")
    seen = client.read(REPO, FILE, "main")
    change = FileChange(FILE, text.encode(), seen.sha if seen else None)
    return client.write(REPO, [change], Operation(text, "me", "Write")).commit


def execute(root: Path, sql: str) -> None:
    with closing(sqlite3.connect(root / "forge.sqlite")) as db, db:
        db.execute(sql)


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, client):
        made = fill(client, "1")
        client.archive(REPO)
    with opened(tmp_path) as (_, client):
        found = client.repo(REPO)

        assert found is not None
        assert (found.archived, found.description, client.head(REPO)) == (True, "d", made)


def test_no_secret_is_on_disk(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, client):
        fill(client, "1")

    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes(), path
            assert TOKEN.encode() not in path.read_bytes(), path


def test_a_password_hash_is_salted_and_checks() -> None:
    one, two = hash_password("x"), hash_password("x")

    assert one != two
    assert verify_password("x", one)
    assert not verify_password("y", one)


def test_ensuring_users_and_tokens_again_changes_what_differs(tmp_path: Path) -> None:
    with opened(tmp_path) as (forge, client):
        forge.ensure_user("warden", PASSWORD, admin=True)
        forge.ensure_token("warden", "t", TOKEN, ["all"])
        assert client.user() == "warden"

        forge.ensure_token("warden", "t", "another-token-value", ["read:user"])
        forge.ensure_user("warden", "new-password", admin=True)

        assert forge.accounts.check_token(TOKEN) is None
        assert forge.accounts.check_password("warden", PASSWORD) is None
        assert forge.accounts.check_password("WARDEN", "new-password") is not None
        warden = forge.accounts.find("warden")
        assert warden is not None
        assert [each.scopes for each in forge.accounts.tokens(warden)] == [("read:user",)]


def test_bad_users_and_tokens_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as (forge, client):
        client.ensure_org("team")
        with pytest.raises(InvalidInputError):
            forge.ensure_user("a b", "x")
        with pytest.raises(InvalidInputError, match="organisation"):
            forge.ensure_user("team", "x")
        with pytest.raises(NotFoundError):
            forge.ensure_token("nobody", "t", "x" * 40, ["all"])
        with pytest.raises(InvalidInputError, match="scope"):
            forge.ensure_token("warden", "u", "x" * 40, ["fly:moon"])
        with pytest.raises(ConflictError):
            forge.ensure_token("warden", "u", TOKEN, ["all"])


def test_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repositories, "WAIT_S", 0.1)
    with opened(tmp_path), pytest.raises(FolderInUseError, match="another forge"):
        EmbeddedForge(tmp_path)


def test_the_state_of_a_later_release_is_refused_and_the_folder_let_go(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    execute(tmp_path, "PRAGMA user_version = 99")

    for _ in range(2):
        with pytest.raises(NewerStateError, match="schema 99"):
            EmbeddedForge(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "refs/heads/main.lock",
        "packed-refs.lock",
        "HEAD.lock",
        "config.lock",
        "objects/pack/tmp_pack_x",
        "objects/00/tmp_object_git2_x",
    ],
)
def test_what_a_killed_writer_left_is_removed_at_start_and_logged(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as (forge, client):
        fill(client, "1")
        bare = forge.repository_path(REPO)
    assert bare is not None
    left = bare / name
    left.parent.mkdir(exist_ok=True)
    left.write_text("")

    with caplog.at_level(logging.WARNING), opened(tmp_path) as (_, client):
        made = fill(client, "2")
        assert client.head(REPO) == made

    assert not left.exists()
    assert name in caplog.text


@pytest.mark.parametrize("state", ["creating", "deleting"])
@pytest.mark.parametrize("folder", [True, False], ids=["folder", "no folder"])
def test_an_interrupted_creation_or_deletion_leaves_nothing_that_blocks(
    tmp_path: Path,
    state: str,
    folder: bool,  # noqa: FBT001  a table
) -> None:
    with opened(tmp_path) as (_, client):
        fill(client, "1")
    execute(tmp_path, f"UPDATE repositories SET state = '{state}'")  # noqa: S608  a table
    if not folder:
        shutil.rmtree(tmp_path / "repos" / "team" / "order.git")

    with opened(tmp_path) as (_, client):
        assert client.repo(REPO) is None
        fill(client, "again")
        assert len(client.commits(REPO)) == 1


def test_an_interrupted_creation_is_finished_without_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, client):
        fill(client, "1")
        execute(tmp_path, "UPDATE repositories SET state = 'creating'")

        assert client.repo(REPO) is None
        assert client.ensure_repo(REPO, description="").empty


def test_a_repository_whose_folder_vanished_is_empty_again(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, client):
        fill(client, "1")
    shutil.rmtree(tmp_path / "repos" / "team" / "order.git")

    with opened(tmp_path) as (_, client):
        fill(client, "2")
        assert len(client.commits(REPO)) == 1


def test_a_folder_without_a_repository_is_moved_aside_and_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, client):
        client.ensure_org(REPO.owner)
        stray = tmp_path / "repos" / "team" / "order.git"
        stray.mkdir(parents=True)
        (stray / "precious").write_text("x")

        fill(client, "1")

        assert (stray.parent / "order.git.orphan-1" / "precious").read_text() == "x"


def test_a_deleted_repository_leaves_no_folder(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, client):
        fill(client, "1")
        client.delete_repo(REPO)

    assert list((tmp_path / "repos" / "team").iterdir()) == []


def test_listeners_hear_of_every_change_of_a_branch(tmp_path: Path) -> None:
    with opened(tmp_path) as (forge, client):
        heard: list[tuple[RepoId, str, CommitSha | None]] = []
        forge.on_push(lambda *_: 1 / 0)  # type: ignore[arg-type]  # one that fails
        forge.on_push(lambda repo, branch, commit: heard.append((repo, branch, commit)))

        made = fill(client, "1")
        bare = forge.repository_path(REPO)
        assert bare is not None
        copy = pygit2.clone_repository(str(bare), str(tmp_path / "copy"))
        remote = copy.remotes.create(
            "http", f"{client.base_url}/{REPO}.git".replace("://", f"://x:{TOKEN}@")
        )
        remote.push(["refs/heads/main:refs/heads/topic/x"])
        remote.push([":refs/heads/topic/x"])

        assert heard == [
            (REPO, "main", made),
            (REPO, "topic/x", made),
            (REPO, "topic/x", None),
        ]
