"""A proxy that loses, cuts and falsifies the forge's answers: one commit, or an error."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import pygit2
import pytest
import requests

from orderkit.adapters.embedded.forge import EmbeddedForge
from orderkit.adapters.embedded.serving import HttpServer, bind
from orderkit.adapters.gitea import GiteaForge, writing
from orderkit.adapters.gitea.transport import ServerError
from orderkit.adapters.gitea.writing import ROUNDS, blob_sha, pauses
from orderkit.core.errors import ConflictError, UnreachableError
from orderkit.core.names import RepoId
from orderkit.ports.forge import FileChange, Operation

TOKEN = "e" * 40
REPO = RepoId("team", "order")
FILE = PurePosixPath("f")
FAULTS = ("drop", "cut", "500", "502-html", "drop-before", "503-before", "403-race-before")
"""``-before``: the forge never saw the request; otherwise it carried it out."""


@dataclass
class Proxy:
    """Forwards to the forge; takes a fault from `plan` for each POST of contents."""

    upstream: str
    plan: list[str] = field(default_factory=list)
    posts: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if handler.command != "POST" or not handler.path.endswith("/contents"):
            self._forward(handler, body, "")
            return
        with self.lock:
            self.posts += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            fault = self.plan.pop(0) if self.plan else ""
        try:
            self._forward(handler, body, fault)
        finally:
            with self.lock:
                self.in_flight -= 1

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes, fault: str) -> None:
        if fault == "drop-before":
            handler.close_connection = True
            return
        if fault.endswith("-before"):
            race = b'{"message":"cannot lock ref \'refs/heads/main\': is at a but expected b"}'
            _answer(handler, int(fault[:3]), race if fault.startswith("403") else b"")
            return
        found = requests.request(
            handler.command,
            self.upstream + handler.path,
            data=body,
            headers={
                name: handler.headers[name]
                for name in ("Authorization", "Content-Type")
                if name in handler.headers
            },
            timeout=20,
        )
        if fault == "drop":
            handler.close_connection = True
        elif fault == "cut":
            _answer(handler, found.status_code, found.content, cut=True)
        elif fault:
            _answer(handler, int(fault[:3]), b"<html>no</html>" if "html" in fault else b"{}")
        else:
            _answer(handler, found.status_code, found.content)


def _answer(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, *, cut: bool = False
) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2] if cut else body)
    handler.close_connection = handler.close_connection or cut


@dataclass
class Stand:
    """A forge with one repository, and a client that reaches it through the proxy."""

    proxy: Proxy
    client: GiteaForge
    bare: Path

    def write(self, text: str, operation: str) -> None:
        seen = self.client.read(REPO, FILE, "main")
        change = FileChange(FILE, text.encode(), seen.sha if seen else None)
        self.client.write(REPO, [change], Operation(operation, "me", "Write"))

    def operations(self) -> list[str]:
        """Return the operation ids in the history, oldest first."""
        repo = pygit2.Repository(str(self.bare))
        if repo.head_is_unborn:
            return []
        messages = [commit.message for commit in repo.walk(repo.head.target)]
        return [
            line[20:]
            for text in messages[::-1]
            for line in text.splitlines()
            if "Operation: " in line
        ]


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.setattr(writing, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(writing, "PAUSE_MAX_S", 0.01)
    forge = EmbeddedForge(tmp_path)
    forge.ensure_user("warden", "warden-pw1", admin=True)
    forge.ensure_token("warden", "t", TOKEN, ["all"])

    upstream = HttpServer(forge.app, bind("forge", 0))
    upstream.start()
    proxy = Proxy(upstream.url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            proxy.serve(self)

        def do_POST(self) -> None:
            proxy.serve(self)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name
            """Stay silent."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    with GiteaForge(f"http://127.0.0.1:{http.server_port}", token=TOKEN) as client:
        client.ensure_org(REPO.owner)
        client.ensure_repo(REPO, description="")
        bare = forge.repository_path(REPO)
        assert bare is not None
        yield Stand(proxy, client, bare)
    http.shutdown()
    thread.join()
    http.server_close()
    upstream.stop()
    forge.close()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("first", [True, False], ids=["root commit", "later commit"])
def test_a_write_ends_as_success_with_exactly_one_commit(
    stand: Stand,
    fault: str,
    first: bool,  # noqa: FBT001  a table
) -> None:
    if not first:
        stand.write("0", "op-0")
    stand.proxy.plan = [fault]

    stand.write("1", "op-1")

    assert stand.operations() == (["op-1"] if first else ["op-0", "op-1"])


def test_every_answer_lost_is_still_one_commit(stand: Stand) -> None:
    stand.proxy.plan = ["drop"] * 100

    stand.write("1", "op-1")

    assert stand.operations() == ["op-1"]
    assert stand.proxy.posts == 1


def test_a_forge_that_never_gets_the_request_is_an_error_with_nothing_written(
    stand: Stand,
) -> None:
    stand.proxy.plan = ["drop-before"] * 100

    with pytest.raises(UnreachableError) as caught:
        stand.write("1", "op-1")

    assert stand.operations() == []
    assert stand.proxy.posts == ROUNDS
    assert "repeat" in caught.value.hint


def test_losing_every_round_is_a_conflict_with_exit_code_3(stand: Stand) -> None:
    stand.proxy.plan = ["403-race-before"] * 100

    with pytest.raises(ConflictError, match="won all") as caught:
        stand.write("1", "op-1")

    assert (caught.value.exit_code, stand.operations()) == (3, [])


@pytest.mark.parametrize("seed", range(8))
def test_random_faults_lose_nothing_and_make_nothing_twice(stand: Stand, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  faults, no secrets
    stand.proxy.plan = [chance.choice((*FAULTS, "", "", "")) for _ in range(40)]
    expected = []

    for number in range(6):
        with suppress(UnreachableError, ServerError, ConflictError):
            stand.write(f"{number}", f"op-{number}")
            expected.append(f"op-{number}")

    assert stand.operations() == expected


def test_one_write_per_repository_is_in_flight(stand: Stand) -> None:
    operation = Operation("op", "me", "Write")

    def write(number: int) -> None:
        change = FileChange(PurePosixPath(f"n{number}"), b"1", None)
        stand.client.write(REPO, [change], Operation(f"op-{number}", "me", operation.summary))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert stand.proxy.most_in_flight == 1
    assert len(stand.operations()) == 6


def test_a_change_takes_three_requests(stand: Stand) -> None:
    stand.write("0", "op-0")
    seen = stand.client.read(REPO, FILE, "main")
    assert seen is not None
    paths: list[str] = []
    serve = stand.proxy.serve

    def count(handler: BaseHTTPRequestHandler) -> None:
        paths.append(f"{handler.command} {handler.path.partition('?')[0]}")
        serve(handler)

    stand.proxy.serve = count  # type: ignore[method-assign]  # counting in passing

    stand.client.write(REPO, [FileChange(FILE, b"1", seen.sha)], Operation("op-1", "me", "W"))

    base = f"/api/v1/repos/{REPO}"
    assert paths == [
        f"GET {base}/branches/main",
        f"GET {base}/contents/f",
        f"POST {base}/contents",
    ]


class Chance(random.Random):
    """Returns the same number again and again."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def random(self) -> float:
        return self.value


@pytest.mark.parametrize(
    ("chance", "expected"),
    [
        (0.0, [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]),
        (1.0, [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]),
    ],
)
def test_pauses_double_up_to_two_seconds(chance: float, expected: list[float]) -> None:
    assert list(islice(pauses(Chance(chance)), 8)) == pytest.approx(expected)


@pytest.mark.parametrize("data", [b"", b"hello\n", bytes(range(256))])
def test_blob_ids_are_gits(data: bytes) -> None:
    assert blob_sha(data) == str(pygit2.hash(data))
    assert len(blob_sha(data, like="0" * 64)) == 64
