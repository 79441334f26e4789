"""A rename happens or does not, whenever the process is killed, and loses no write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pygit2
import pytest
import requests

from ground.errors import ConflictError, InvalidInputError
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge, git_read, git_write
from orderkit_standins.forge.git_write import CommitRequest, FileOperation, Person, WriteError
from orderkit_standins.forge.repositories import NewRepository, Repository
from orderkit_standins.forge.store import Store

TIMEOUT_S = 90
TOKEN = "b" * 40


class Killed(BaseException):
    """Stands for the end of the process: nothing after it runs."""


def with_repo(folder: Path) -> Repository:
    with closing(EmbeddedForge(folder)) as forge:
        forge.ensure_user("ann", "ann-pw12345")
        ann = forge.accounts.find("ann")
        assert ann is not None
        return forge.repositories.create(ann, NewRepository("old"))


def marked(repo: Repository) -> None:
    (repo.path / "mark").write_text("mine")


def killed_at_the_folder(monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    """Let the process die right before or right after the folder gets its new name."""
    rename: Callable[[Path, Path], Path] = Path.rename

    def dying(here: Path, there: Path) -> Path:
        if after:
            rename(here, there)
        raise Killed

    monkeypatch.setattr(Path, "rename", dying)


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_in_the_middle_leaves_the_old_or_the_new_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    repo = with_repo(tmp_path)
    marked(repo)
    forge = EmbeddedForge(tmp_path)
    with monkeypatch.context() as patched:
        killed_at_the_folder(patched, after=after)
        with pytest.raises(Killed):
            forge.repositories.rename(repo, "new")
    forge.close()

    with closing(EmbeddedForge(tmp_path)) as again:
        (kept,) = again.repositories.all()
        assert kept.full_name == ("ann/new" if after else "ann/old")
        assert (kept.path / "mark").read_text() == "mine"
        assert again.repositories.find("ann", "new") == (kept if after else None)
        assert again.repositories.renamed(repo.owner_id, "old") == (kept if after else None)

    with closing(Store(tmp_path / "forge.sqlite")) as store:
        assert store.rows("SELECT 1 FROM repositories WHERE moving_to <> ''") == []


def test_refused_names_change_nothing(tmp_path: Path) -> None:
    repo = with_repo(tmp_path)
    with closing(EmbeddedForge(tmp_path)) as forge:
        ann = forge.accounts.by_id(repo.owner_id)
        forge.repositories.create(ann, NewRepository("taken"))
        with pytest.raises(ConflictError):
            forge.repositories.rename(repo, "TAKEN")
        with pytest.raises(InvalidInputError):
            forge.repositories.rename(repo, "../x")
        assert {each.full_name for each in forge.repositories.all()} == {"ann/old", "ann/taken"}
        assert forge.repositories.renamed(ann.id, "taken") is None


def test_a_write_into_a_folder_that_moved_away_is_refused(tmp_path: Path) -> None:
    """The folder gets its new name after the head was read and before anything is written."""
    repo = with_repo(tmp_path)
    there = repo.path.with_name("new.git")
    now = datetime.now(UTC)

    class Mover(Person):
        """Somebody whose signature takes long enough for a rename."""

        def signature(self) -> pygit2.Signature:
            if repo.path.exists():
                repo.path.rename(there)
            return Person(self.name, self.email, self.when).signature()

    mover = Mover("a", "a@example.org", now)
    request = CommitRequest("main", "m", mover, mover, [FileOperation("create", "a", b"")])

    with pytest.raises((WriteError, pygit2.GitError)):
        git_write.commit_files(repo.path, request)

    assert git_read.heads(there) == {}


def test_no_acknowledged_write_is_lost_while_a_repository_gets_new_names(tmp_path: Path) -> None:
    """Each writer makes branches of its own: a write into the old folder would go unnoticed."""
    repo = with_repo(tmp_path / "state")
    forge = EmbeddedForge(tmp_path / "state")
    server = HttpServer(forge.app, bind("forge", 0))
    server.start()
    forge.set_base_url(server.url)
    forge.ensure_token("ann", "t", TOKEN, ["all"])
    names, done = ["old", "new"], threading.Event()
    acknowledged: list[str] = []

    def write(writer: int) -> None:
        with requests.Session() as http:
            http.headers["Authorization"] = f"token {TOKEN}"
            number = 0
            while not done.is_set():
                number += 1
                branch = f"b-{writer}-{number}"
                url = f"{server.url}/api/v1/repos/ann/{names[number % 2]}/branches"
                body = {"new_branch_name": branch, "old_ref_name": "main"}
                answer = http.post(url, json=body, timeout=TIMEOUT_S, allow_redirects=False)
                if answer.status_code == 201:
                    acknowledged.append(branch)

    url = f"{server.url}/api/v1/repos/ann/old/contents/first"
    headers = {"Authorization": f"token {TOKEN}"}
    assert requests.post(url, json={"content": ""}, headers=headers, timeout=TIMEOUT_S).ok
    writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in writers:
        thread.start()
    deadline, renames = time.monotonic() + TIMEOUT_S, 0
    while len(acknowledged) < 20 and time.monotonic() < deadline:
        renames += 1
        repo = forge.repositories.rename(repo, names[renames % 2])
    done.set()
    for thread in writers:
        thread.join()

    (found,) = forge.repositories.all()
    assert len(acknowledged) >= 20
    assert renames > 1
    heads = {path.name for path in (found.path / "refs" / "heads").iterdir()}
    assert set(acknowledged) <= heads
    assert sorted(path.name for path in found.path.parent.iterdir()) == [found.path.name]
    server.stop()
    forge.close()
