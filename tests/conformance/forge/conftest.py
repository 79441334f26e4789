"""
One suite, several forges: the faces of the embedded one, and with ``--e2e`` the real Gitea.

``ORDERKIT_TEST_GITEA_URL`` with ``_TOKEN``, ``_USER`` and ``_PASSWORD`` (a site admin, a token
with scope ``all``) names another real one.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import requests
from lab.realgitea import Gitea
from tests.conformance.forge.coverage import CASE, case_of
from tests.conformance.forge.faces import FACES, GITEA, Account, Client, Face

from ground.names import RepoId
from orderkit.ports.forge import FileChange, Operation
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.gitlab.face import FaceSettings

TIMEOUT_S = 90
FILES = {"README.md": "hello\n", "dir/a.txt": "a\n", "dir/b.txt": "b\n", "top.yaml": "x: 1\n"}
"""What a seeded repository holds in its first commit."""
FOLDER = Path(__file__).parent
_names = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Send with each report which behaviour it is about, for `Counting`."""
    for item in items:
        if isinstance(item, pytest.Function) and item.path.is_relative_to(FOLDER):
            case = case_of(item)
            if case is not None:
                item.user_properties.append((CASE, astuple(case)))


@dataclass
class Target:
    """A running forge and how to enter it as its site admin."""

    url: str
    user: str
    password: str
    token: str
    real: bool
    face: Face = GITEA


@dataclass
class Workshop:
    """What a test uses: the port, raw HTTP, git, and fresh names."""

    target: Target
    outsider: tuple[str, str]
    """A user who owns nothing, with a password."""
    scratch: Path
    http: requests.Session = field(default_factory=requests.Session)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        auth: str | tuple[str, str] | None = "token",
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> requests.Response:
        """Send one request; `auth` is "token", None, another header value, or a basic pair."""
        sent = dict(headers or {})
        if auth == "token":
            sent["Authorization"] = f"token {self.target.token}"
        elif isinstance(auth, tuple):
            pair = base64.b64encode(":".join(auth).encode()).decode()
            sent["Authorization"] = f"Basic {pair}"
        elif auth is not None:
            sent["Authorization"] = auth
        if raw is not None:
            sent["Content-Type"] = "application/json"
        return self.http.request(
            method,
            self.target.url + path,
            json=body,
            data=raw,
            headers=sent,
            timeout=TIMEOUT_S,
            allow_redirects=False,
        )

    def api(self, method: str, path: str, body: object = None, **how: Any) -> requests.Response:
        """Send one request to ``/api/v1``."""
        return self.call(method, f"/api/v1{path}", body, **how)

    @cached_property
    def forge(self) -> Client:
        """The client of the site admin."""
        return self.client(token=self.target.token)

    def client(self, auth: tuple[str, str] | None = None, *, token: str = "") -> Client:
        """Return the client of somebody else, or with another token."""
        login, password = auth or ("", "")
        return self.target.face.client(self.target, Account(login, password, token), self)

    def org(self) -> str:
        """Return the name of a new organisation."""
        name = f"team{next(_names)}-{secrets.token_hex(3)}"
        assert self.forge.ensure_org(name)
        return name

    def empty_repo(self, *, private: bool = False) -> RepoId:
        """Return a new empty repository in a new organisation."""
        repo = RepoId(self.org(), f"order-{secrets.token_hex(3)}")
        self.forge.ensure_repo(repo, description="", private=private)
        return repo

    def seeded_repo(self, *, private: bool = False) -> RepoId:
        """Return a new repository that holds `FILES` and a branch ``other``."""
        repo = self.empty_repo(private=private)
        self.forge.write(repo, [self.new(path, text) for path, text in FILES.items()], self.op())
        made = self.api("POST", f"/repos/{repo}/branches", {"new_branch_name": "other"})
        assert made.status_code == 201, made.text
        return repo

    def new(self, path: str, text: str) -> FileChange:
        """Return a change that creates a file."""
        return FileChange(PurePosixPath(path), text.encode(), None)

    def op(self, operation_id: str = "") -> Operation:
        """Return an operation with a fresh id."""
        return Operation(operation_id or secrets.token_hex(8), "somebody", "Change files")

    def sha(self, repo: RepoId, path: str) -> str:
        """Return the blob id of a file on main."""
        found = self.forge.read(repo, PurePosixPath(path), "main")
        assert found is not None, path
        return found.sha

    def token(self, *scopes: str, of: tuple[str, str] | None = None) -> str:
        """Return a new token's header value."""
        owner = of or (self.target.user, self.target.password)
        body = {"name": secrets.token_hex(6), "scopes": list(scopes)}
        made = self.api("POST", f"/users/{owner[0]}/tokens", body, auth=owner)
        assert made.status_code == 201, made.text
        return f"token {made.json()['sha1']}"

    def push_odd(self, repo: RepoId, branch: str, *, author: bytes) -> str:
        """Push a commit whose author and message are not UTF-8; return its id."""
        copy = self.clone(repo)
        lines = [
            b"tree " + self.git("rev-parse", "HEAD^{tree}", cwd=copy).stdout.strip().encode(),
            b"parent " + self.git("rev-parse", "HEAD", cwd=copy).stdout.strip().encode(),
            b"author " + author + b" <a@x> 1700000000 +0000",
            b"committer B <b@x> 1700000000 +0000",
            b"encoding nonsense\n\ncaf\xe9\n",
        ]
        (copy / "odd-commit").write_bytes(b"\n".join(lines))
        made = self.git("hash-object", "-tcommit", "-w", "--literally", "odd-commit", cwd=copy)
        sha = made.stdout.strip()
        pushed = self.git("push", "-q", "origin", f"{sha}:refs/heads/{branch}", cwd=copy)
        assert pushed.returncode == 0, pushed.stderr
        return sha

    def remote(self, repo: RepoId, *, auth: tuple[str, str] | None = None) -> str:
        """Return the clone URL, with credentials in it if given."""
        url = f"{self.target.url}/{repo}.git"
        return url.replace("://", f"://{auth[0]}:{auth[1]}@", 1) if auth else url

    def eventually(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds (Gitea does some things from a queue)."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    @property
    def admin(self) -> tuple[str, str]:
        return (self.target.user, self.target.password)

    def git(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run the real git without the machine's configuration and without prompts."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.scratch),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.scratch,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )

    def clone(self, repo: RepoId) -> Path:
        """Return a working copy made with credentials."""
        folder = self.scratch / f"clone-{next(_names)}"
        done = self.git("clone", "-q", self.remote(repo, auth=self.admin), str(folder))
        assert done.returncode == 0, done.stderr
        return folder

    def fill(self, value: Any, repo: RepoId) -> Any:
        """Replace ``{sha:PATH}`` by a blob id and ``{text:…}`` by base64 in nested data."""
        if isinstance(value, dict):
            return {key: self.fill(each, repo) for key, each in value.items()}
        if isinstance(value, list):
            return [self.fill(each, repo) for each in value]
        if not isinstance(value, str):
            return value
        value = value.replace("{repo}", f"/repos/{repo}").replace("{owner}", repo.owner)
        value = value.replace("{head}", str(self.forge.head(repo)) if "{head}" in value else "")
        value = re.sub(r"\{sha:(.*?)\}", lambda found: self.sha(repo, found[1]), value)
        return re.sub(
            r"\{text:(.*?)\}",
            lambda found: base64.b64encode(found[1].encode().replace(b"\\n", b"\n")).decode(),
            value,
        )


@contextlib.contextmanager
def embedded_target(folder: Path, face: Face = GITEA) -> Iterator[tuple[EmbeddedForge, Target]]:
    """Serve an embedded forge with a site admin."""
    forge = EmbeddedForge(folder, gitlab=FaceSettings(face.group) if face.group else None)
    server = HttpServer(forge.app, bind("forge", 0))
    server.start()
    forge.set_base_url(server.url)
    forge.ensure_user("warden", "warden-pw1", admin=True)
    forge.ensure_token("warden", "suite", "f" * 40, ["all"])
    try:
        url = f"{server.url}/{face.group}" if face.group else server.url
        entry = ("warden", "warden-pw1", "f" * 40)
        yield forge, Target(url, *entry, real=False, face=face)
    finally:
        server.stop()
        forge.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the suite of the port on every face, the others on Gitea."""
    if "target" in metafunc.fixturenames:
        is_port = metafunc.module.__name__.rpartition(".")[2].startswith("test_forge_port")
        names = [name for name, face in FACES.items() if is_port or face is GITEA]
        metafunc.parametrize("target", names, indirect=True, scope="package")


@pytest.fixture(scope="package")
def target(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    if request.param == "real":
        real: Gitea = request.getfixturevalue("real_gitea")
        yield Target(real.url, real.user, real.password, real.token, real=True)
        return
    with embedded_target(tmp_path_factory.mktemp("forge"), FACES[request.param]) as (_, made):
        yield made


@pytest.fixture(scope="package")
def shop(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with open_shop(target, tmp_path_factory.mktemp("work")) as made:
        yield made


@contextlib.contextmanager
def open_shop(target: Target, scratch: Path) -> Iterator[Workshop]:
    """Return what a test uses, with a fresh outsider."""
    outsider = (f"guest-{secrets.token_hex(3)}", "guest-Pw-12345")
    made = Workshop(target, outsider, scratch)
    body = {
        "username": outsider[0],
        "password": outsider[1],
        "email": f"{outsider[0]}@example.org",
        "must_change_password": False,
    }
    assert made.api("POST", "/admin/users", body).status_code == 201
    yield made
    made.http.close()
    made.forge.close()
