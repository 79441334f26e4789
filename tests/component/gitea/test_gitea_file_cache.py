"""The files of commits as the client remembers them are those that the forge has."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from pusher import Pusher
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ground.errors import RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges import transport
from orderkit.adapters.gitea import GiteaForge, reading
from orderkit.ports.forge import FileChange, Operation
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge

if TYPE_CHECKING:
    from chances import Chances

REPO = RepoId("crew", "ledger")
TOKEN = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serving(
    folder: Path, wrapped: Callable[[ASGIApp], ASGIApp] = lambda app: app
) -> Iterator[HttpServer]:
    forge = EmbeddedForge(folder / "forge")
    sock = bind("forge", 0)
    server = HttpServer(wrapped(forge.app), sock)
    forge.set_base_url(server.url)
    forge.ensure_user("bot", "a-long-password", admin=True)
    scopes = ("write:organization", "write:repository", "write:user")
    forge.ensure_token("bot", "test", TOKEN, scopes)
    server.start()
    yield server
    server.stop()
    forge.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServer]:
    with serving(tmp_path) as found:
        yield found


@pytest.fixture
def urls(server: HttpServer) -> str:
    return server.url


def client(url: str) -> GiteaForge:
    return GiteaForge(url, token=TOKEN)


_numbers = itertools.count()


def write(forge: GiteaForge, files: dict[str, str | None]) -> str:
    head = forge.head(REPO)
    there = forge.tree(REPO, head) if head else {}
    changes = [
        FileChange(
            PurePosixPath(path),
            None if text is None else text.encode(),
            there.get(PurePosixPath(path)),
        )
        for path, text in files.items()
    ]
    operation = Operation(f"test-{next(_numbers)}", "user:default/x", "test")
    return forge.write(REPO, changes, operation).commit


def test_whoever_writes_both_know_the_same_files(
    urls: str, monkeypatch: pytest.MonkeyPatch, chances: Chances
) -> None:
    """Two clients take turns at random; each must always see what a new client reads."""
    monkeypatch.setattr(reading, "TREE_PAGE", 10)
    chance = chances.random("trees")
    with client(urls) as one, client(urls) as two:
        one.ensure_org(REPO.owner)
        one.ensure_repo(REPO, description="test")
        write(one, {f"apps/team-{n % 5}/order-{n}.yaml": str(n) for n in range(30)})
        for step in range(chances.count(12, 200)):
            writer = chance.choice((one, two))
            known = sorted(map(str, one.tree(REPO, one.head(REPO) or "")))  # type: ignore[arg-type]  # there is one
            files: dict[str, str | None] = {
                f"apps/team-{chance.randrange(7)}/order-{100 + step}.yaml": str(step)
            }
            if chance.random() < 0.5:
                files[chance.choice(known)] = None
            if chance.random() < 0.3:
                files[chance.choice(known)] = f"again {step}"
            write(writer, files)

            head = one.head(REPO)
            assert head is not None
            with client(urls) as fresh:
                wanted = dict(fresh.tree(REPO, head))
            assert dict(one.tree(REPO, head)) == wanted
            assert dict(two.tree(REPO, head)) == wanted


def test_what_is_known_is_not_asked_for_again(urls: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Counter[str]()
    original = reading.GiteaReading._tree_page  # noqa: SLF001  counts its calls

    def counting(*arguments: object, **named: object) -> object:
        asked["pages"] += 1
        return original(*arguments, **named)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(reading, "TREE_PAGE", 10)
    monkeypatch.setattr(reading.GiteaReading, "_tree_page", counting)
    with client(urls) as one, client(urls) as two:
        one.ensure_org(REPO.owner)
        one.ensure_repo(REPO, description="test")
        write(one, {f"apps/team-{n % 5}/order-{n}.yaml": str(n) for n in range(30)})
        for forge in (one, two):
            forge.tree(REPO, forge.head(REPO) or "")  # type: ignore[arg-type]  # there is one

        asked.clear()
        write(one, {"apps/team-1/fresh.yaml": "1"})
        one.tree(REPO, one.head(REPO) or "")  # type: ignore[arg-type]  # there is one
        assert asked["pages"] == 0, "its own write tells all"
        two.tree(REPO, two.head(REPO) or "")  # type: ignore[arg-type]  # there is one
        assert asked["pages"] == 3, "the root, apps, and the one team that changed"


def test_a_file_of_a_commit_is_read_once_and_a_branch_each_time(urls: str) -> None:
    path = PurePosixPath("a.yaml")
    with client(urls) as one, client(urls) as two:
        one.ensure_org(REPO.owner)
        one.ensure_repo(REPO, description="test")
        first = write(one, {"a.yaml": "1"})
        kept = two.read(REPO, path, first)
        write(one, {"a.yaml": "2"})

        assert two.read(REPO, path, first) is kept
        assert [two.read(REPO, path, ref).text for ref in (first, "main")] == ["1", "2"]  # type: ignore[union-attr]  # they are there


def test_a_client_that_remembers_asks_each_thing_once_until_it_writes(urls: str) -> None:
    path = PurePosixPath("a.yaml")
    with client(urls) as one, client(urls) as two:
        one.ensure_org(REPO.owner)
        one.ensure_repo(REPO, description="test")
        first = write(one, {"a.yaml": "1"})
        two.remember()
        seen = two.head(REPO), two.read(REPO, path, "main")
        second = write(one, {"a.yaml": "2"})

        assert (two.head(REPO), two.read(REPO, path, "main")) == seen
        assert one.head(REPO) == second != first
        two.ensure_org("another")
        assert two.head(REPO) == second


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every request for a file or a tree fail from now on."""

    def refuse(*arguments: object, **_: object) -> object:
        raise AssertionError(f"asked for {arguments[1:]}")

    for name in ("_contents", "_tree_page"):
        monkeypatch.setattr(reading.GiteaReading, name, refuse)


def test_what_a_client_wrote_it_knows_without_reading(
    urls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = PurePosixPath("a.yaml"), PurePosixPath("b.yaml")
    with client(urls) as one:
        one.ensure_org(REPO.owner)
        one.ensure_repo(REPO, description="test")
        unread(monkeypatch)
        first = write(one, {"a.yaml": "1"})
        second = write(one, {"a.yaml": "2", "b.yaml": "2"})

        texts = [one.read(REPO, path, ref).text for ref in (first, second)]  # type: ignore[union-attr]  # they are there
        assert texts == ["1", "2"]
        assert one.read(REPO, other, first) is None


def test_a_file_that_another_commit_has_too_is_read_once(
    urls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = PurePosixPath("a.yaml")
    with client(urls) as one, client(urls) as two:
        one.ensure_org(REPO.owner)
        one.ensure_repo(REPO, description="test")
        first = write(one, {"a.yaml": "1"})
        second = write(one, {"b.yaml": "2"})
        kept = two.read(REPO, path, first)
        two.tree(REPO, second)  # type: ignore[arg-type]  # a commit
        unread(monkeypatch)

        assert two.read(REPO, path, second) is kept is not None


def test_a_link_with_the_id_of_a_file_is_no_file(urls: str, tmp_path: Path) -> None:
    """Whoever pushes may turn a file into a link of the same content, which Argo CD follows."""
    path = PurePosixPath("a.yaml")
    with client(urls) as one:
        one.ensure_org(REPO.owner)
        one.ensure_repo(REPO, description="test")
        first = write(one, {"a.yaml": "b.yaml", "b.yaml": "1"})
        pusher = Pusher.cloned(tmp_path, f"{urls}/{REPO}.git", "bot", TOKEN)
        (pusher.clone / "a.yaml").unlink()
        (pusher.clone / "a.yaml").symlink_to("b.yaml")
        second = pusher.commit("turned", {})
        pusher.push()
        assert one.tree(REPO, first)[path] == one.tree(REPO, second)[path]  # type: ignore[arg-type]  # commits

        assert one.read(REPO, path, first) is not None
        assert one.read(REPO, path, second) is None


def test_what_attributes_may_have_changed_is_read(
    urls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = PurePosixPath("large/a.bin")
    with client(urls) as one:
        one.ensure_org(REPO.owner)
        one.ensure_repo(REPO, description="test")
        commit = write(one, {".gitattributes": "*.bin filter=lfs\n", str(path): "1"})
        unread(monkeypatch)

        with pytest.raises(AssertionError, match=r"a\.bin"):
            one.read(REPO, path, commit)


def test_files_that_were_read_ahead_need_no_forge(server: HttpServer) -> None:
    texts = {f"kits/{number}.yaml": f"number: {number}" for number in range(70)}
    with client(server.url) as writer, client(server.url) as forge:
        writer.ensure_org(REPO.owner)
        writer.ensure_repo(REPO, description="")
        commit = CommitSha(write(writer, {**texts}))
        forge.read_ahead(REPO, map(PurePosixPath, [*texts, "no/such"]), commit)
        server.stop()

        found = {path: forge.read(REPO, PurePosixPath(path), commit) for path in texts}

    assert {path: file and file.data.decode() for path, file in found.items()} == texts


def test_a_forge_that_reads_one_file_at_a_time_is_asked_for_several_once(tmp_path: Path) -> None:
    """Such as an older Gitea."""
    asked: list[str] = []

    def older(app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"].endswith("/file-contents"):
                asked.append(scope["path"])
                await Response(status_code=404)(scope, receive, send)
            else:
                await app(scope, receive, send)

        return answer

    with serving(tmp_path, older) as server, client(server.url) as forge:
        forge.ensure_org(REPO.owner)
        forge.ensure_repo(REPO, description="")
        commit = CommitSha(write(forge, {"a": "1", "b": "2", "c": "3"}))
        with client(server.url) as reader:
            for _ in range(2):
                reader.read_ahead(REPO, map(PurePosixPath, "abc"), commit)
            found = [reader.read(REPO, PurePosixPath(path), commit) for path in "abc"]

    assert [file and file.data for file in found] == [b"1", b"2", b"3"]
    assert len(asked) == 1


def test_files_too_large_for_one_answer_are_read_one_by_one(
    urls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client(urls) as writer, client(urls) as forge:
        writer.ensure_org(REPO.owner)
        writer.ensure_repo(REPO, description="")
        commit = CommitSha(write(writer, {"a": "1" * 3_000, "b": "2" * 3_000}))
        monkeypatch.setattr(transport, "ANSWER_MAX_BYTES", 5_000)
        forge.read_ahead(REPO, map(PurePosixPath, "ab"), commit)

        found = [forge.read(REPO, PurePosixPath(path), commit) for path in "ab"]

    assert [file and len(file.data) for file in found] == [3_000, 3_000]


def test_files_of_a_branch_that_is_named_like_the_commit_are_not_read_ahead(
    urls: str, tmp_path: Path
) -> None:
    """Whoever may push may make such a branch, and a forge shows its files instead."""
    with client(urls) as forge, client(urls) as reader:
        forge.ensure_org(REPO.owner)
        forge.ensure_repo(REPO, description="")
        commit = CommitSha(write(forge, {"a": "1", "b": "2"}))
        pusher = Pusher.cloned(tmp_path, f"{urls}/{REPO}.git", "bot", TOKEN)
        pusher.commit("false files", {"a": "false", "b": "false"})
        pusher.git("push", "-q", "origin", f"HEAD:refs/heads/{commit}")

        reader.read_ahead(REPO, map(PurePosixPath, "ab"), commit)

        for path in map(PurePosixPath, "ab"):
            with pytest.raises(RefusedError, match="something else as commit"):
                reader.read(REPO, path, commit)
