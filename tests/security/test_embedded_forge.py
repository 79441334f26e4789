"""
Attacks on the embedded forge's own server: its published user, what is pushed, what is uploaded.

``tests/conformance/forge/test_forge_http_hostile_pushes.py`` compares pushed trees and uploaded
paths with the real Gitea.
"""

from __future__ import annotations

import gzip
import itertools
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from hooklistener import listening
from tests.security.conftest import EmbeddedServers

from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.api import routes, smart_http
from orderkit_standins.forge.store import Store
from orderkit_standins.forge.webhooks import Deliveries, Delivery
from orderkit_standins.platform import BOT_SCOPES

TIMEOUT_S = 60
VIEWER = ("viewer", "viewer")
_numbers = itertools.count(1)


class Caller:
    """Calls the forge's API with some credentials."""

    def __init__(
        self,
        url: str,
        *,
        basic: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url, self._basic, self._headers = url, basic, headers

    def __call__(self, method: str, path: str, body: object = None) -> requests.Response:
        return requests.request(
            method,
            f"{self._url}/api/v1{path}",
            json=body,
            auth=self._basic,
            headers=self._headers,
            timeout=TIMEOUT_S,
        )


@pytest.fixture(scope="module")
def admin(embedded_servers: EmbeddedServers) -> Caller:
    return Caller(embedded_servers.urls["forge"], headers=embedded_servers.credentials["forge"])


@pytest.fixture(scope="module")
def viewer(embedded_servers: EmbeddedServers) -> Caller:
    return Caller(embedded_servers.urls["forge"], basic=VIEWER)


@pytest.fixture(scope="module")
def repo(admin: Caller) -> str:
    """A public repository with an issue and a comment, of which somebody made viewer an admin."""
    org, name = f"org{next(_numbers)}", "order"
    assert admin("POST", "/orgs", {"username": org}).status_code == 201
    assert admin("POST", f"/orgs/{org}/repos", {"name": name}).status_code == 201
    path = f"/repos/{org}/{name}"
    assert admin("POST", f"{path}/contents/README.md", {"content": ""}).status_code == 201
    assert admin("POST", f"{path}/issues", {"title": "x"}).status_code == 201
    assert admin("POST", f"{path}/issues/1/comments", {"body": "x"}).status_code == 201
    right = {"permission": "admin"}
    assert admin("PUT", f"{path}/collaborators/viewer", right).status_code == 204
    return f"{org}/{name}"


WRITES = [
    ("POST", "/user/repos", {"name": "mine"}),
    ("POST", "/orgs", {"username": "rx9"}),
    ("POST", "/orgs/{org}/repos", {"name": "more"}),
    ("POST", "/orgs/{org}/teams", {"name": "t", "permission": "admin"}),
    ("POST", "/users/viewer/tokens", {"name": "all", "scopes": ["all"]}),
    ("POST", "/admin/users", {"username": "second", "password": "second-pw"}),
    ("PATCH", "/repos/{repo}", {"description": "mine"}),
    ("DELETE", "/repos/{repo}", None),
    ("POST", "/repos/{repo}/contents/a.txt", {"content": ""}),
    ("POST", "/repos/{repo}/contents", {"files": []}),
    ("POST", "/repos/{repo}/branches", {"new_branch_name": "evil"}),
    ("POST", "/repos/{repo}/branch_protections", {"rule_name": "main"}),
    ("POST", "/repos/{repo}/issues", {"title": "spam"}),
    ("POST", "/repos/{repo}/issues/1/comments", {"body": "spam"}),
    ("PATCH", "/repos/{repo}/issues/comments/1", {"body": "spam"}),
    ("DELETE", "/repos/{repo}/issues/comments/1", None),
    ("POST", "/repos/{repo}/pulls", {"head": "a", "base": "main", "title": "x"}),
    ("POST", "/repos/{repo}/pulls/1/merge", {"Do": "merge"}),
    ("POST", "/repos/{repo}/statuses/main", {"state": "success", "context": "orderkit/plan"}),
    ("POST", "/repos/{repo}/forks", {}),
    (
        "POST",
        "/repos/{repo}/hooks",
        {"type": "gitea", "config": {"url": "http://127.0.0.1:1", "content_type": "json"}},
    ),
    ("PUT", "/repos/{repo}/collaborators/orderkit", {"permission": "read"}),
]


@pytest.mark.parametrize(
    ("method", "path", "body"), WRITES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_published_user_changes_nothing(
    viewer: Caller, repo: str, method: str, path: str, body: object
) -> None:
    answer = viewer(method, path.format(repo=repo, org=repo.partition("/")[0]), body)

    assert (answer.status_code, answer.json()["message"]) == (403, "viewer may only read")


def test_the_published_user_reads_what_is_public(
    viewer: Caller, admin: Caller, repo: str, embedded_servers: EmbeddedServers
) -> None:
    org = repo.partition("/")[0]
    hidden = {"name": "hidden", "private": True}
    assert admin("POST", f"/orgs/{org}/repos", hidden).status_code == 201

    assert viewer("GET", f"/repos/{repo}/contents").status_code == 200
    assert viewer("GET", f"/repos/{org}/hidden").status_code == 404
    page = requests.get(f"{embedded_servers.urls['forge']}/{repo}", auth=VIEWER, timeout=TIMEOUT_S)
    assert "Signed in as" in page.text


def test_the_published_user_does_not_push(
    embedded_servers: EmbeddedServers, repo: str, tmp_path: Path
) -> None:
    url = embedded_servers.urls["forge"].replace("://", "://viewer:viewer@")
    git = ("git", "-c", "user.name=v", "-c", "user.email=v@example.org", "-C", str(tmp_path))
    for command in (("clone", "-q", f"{url}/{repo}.git", "."), ("commit", "-qm", "x")):
        more = ("--allow-empty",) if command[0] == "commit" else ()
        subprocess.run([*git, *command, *more], check=True, capture_output=True, timeout=TIMEOUT_S)

    done = subprocess.run(
        [*git, "push", "origin", "HEAD:main"],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )

    assert done.returncode != 0
    assert "403" in done.stderr


def test_what_the_published_user_made_in_an_earlier_release_gives_it_no_rights(
    tmp_path: Path,
) -> None:
    """A platform of 0.2.0, where viewer made a token with all scopes and owns an organisation."""
    with closing(EmbeddedForge(tmp_path)) as before:
        before.ensure_user(*VIEWER)
        before.ensure_token("viewer", "all", "e" * 40, ["all"])
        owner = before.accounts.find_user("viewer")
        assert owner is not None
        before.accounts.create_org("rx9", owner)
    with closing(Store(tmp_path / "forge.sqlite")) as store:
        store.change("ALTER TABLE accounts DROP COLUMN read_only")
        store.change("DROP TABLE reviews")
        store.change("ALTER TABLE repositories DROP COLUMN allow_squash_merge")
        store.change("DROP TABLE pull_events")
        store.change("PRAGMA user_version = 6")

    with closing(EmbeddedForge(tmp_path)) as forge:
        forge.ensure_user(*VIEWER, read_only=True)
        server = HttpServer(forge.app, bind("forge", 0))
        server.start()
        try:
            stolen = Caller(server.url, headers={"Authorization": f"token {'e' * 40}"})
            answer = stolen("POST", "/orgs/rx9/repos", {"name": "garage-rx9"})
        finally:
            server.stop()

    assert (answer.status_code, answer.json()["message"]) == (403, "viewer may only read")


# Webhooks


def test_a_webhook_calls_no_other_port_of_this_machine() -> None:
    """Not the Kubernetes API, nor what else listens here."""
    with listening() as victim, listening() as service:
        sending = Deliveries({int(service.url.rpartition(":")[2])})
        for listener in (victim, service):
            sending.add(Delivery(f"{listener.url}/x", {"Content-Type": "application/json"}, b"{}"))

        assert len(service.wait("/x")) == 1
        sending.close()

        assert victim.at("/x") == []


def test_webhooks_of_a_platform_call_its_service_only(
    admin: Caller, repo: str, embedded_servers: EmbeddedServers, caplog: pytest.LogCaptureFixture
) -> None:
    with listening() as victim:
        config = {"url": f"{victim.url}/x", "content_type": "json"}
        hook = {"type": "gitea", "config": config, "active": True, "events": ["push"]}
        assert admin("POST", f"/repos/{repo}/hooks", hook).status_code == 201
        port = embedded_servers.urls["service"].rpartition(":")[2]

        assert admin("POST", f"/repos/{repo}/contents/n", {"content": ""}).status_code == 201
        _eventually(lambda: f"only loopback is allowed, port {port}" in caplog.text)

        assert victim.at("/x") == []


def _eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# What is pushed and asked for


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """64 MiB of zeros, packed; four times what a fetch may say."""
    return gzip.compress(b"\0" * (4 * smart_http.FETCH_MAX_BYTES), 1)


def test_a_fetch_does_not_unpack_a_bomb_of_a_stranger(
    embedded_servers: EmbeddedServers, repo: str, bomb: bytes
) -> None:
    url = f"{embedded_servers.urls['forge']}/{repo}.git/git-upload-pack"

    answer = requests.post(url, data=bomb, headers={"Content-Encoding": "gzip"}, timeout=TIMEOUT_S)

    assert answer.status_code == 413
    assert str(smart_http.FETCH_MAX_BYTES) in answer.text


def test_the_api_unpacks_nothing(
    embedded_servers: EmbeddedServers, admin: Caller, repo: str, bomb: bytes
) -> None:
    for path in (f"/repos/{repo}/issues", f"/repos/{repo}/contents/bomb"):
        answer = requests.post(
            f"{embedded_servers.urls['forge']}/api/v1{path}",
            data=bomb,
            headers={"Content-Encoding": "gzip", **embedded_servers.credentials["forge"]},
            timeout=TIMEOUT_S,
        )
        assert answer.status_code in (413, 422), path
    assert admin("GET", f"/repos/{repo}/contents/bomb").status_code == 404


@pytest.mark.parametrize("auth", [None, VIEWER], ids=["nobody", "viewer"])
def test_a_body_of_somebody_who_may_not_write_is_not_kept(
    embedded_servers: EmbeddedServers, auth: tuple[str, str] | None
) -> None:
    url = f"{embedded_servers.urls['forge']}/api/v1/user/repos"

    answer = requests.post(
        url, data=b" " * (routes.STRANGERS_BODY_MAX_BYTES + 1), auth=auth, timeout=TIMEOUT_S
    )

    assert answer.status_code == 413


def test_a_push_leaves_room_on_the_disk(
    embedded_servers: EmbeddedServers, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smart_http, "FREE_MIN_BYTES", 2**62)
    url = f"{embedded_servers.urls['forge']}/{repo}.git/git-upload-pack"

    answer = requests.post(url, data=b"0000", timeout=TIMEOUT_S)

    assert answer.status_code == 507


@pytest.mark.parametrize(
    "name",
    ["../../forge.sqlite", "..%2f..%2fforge.sqlite", "a\0b", "a\nb", "-x", "--upload-pack=x"],
)
def test_hostile_names_of_references_are_names(viewer: Caller, repo: str, name: str) -> None:
    for path in ("branches/{}", "git/refs/{}", "git/trees/{}", "archive/{}.tar.gz"):
        answer = viewer("GET", f"/repos/{repo}/{path.format(quote(name, safe=''))}")
        assert answer.status_code in (400, 404), path


def test_the_platforms_token_has_the_scopes_that_the_page_names_and_no_others() -> None:
    """Whoever gets it may not change its account, nor list what only admins see."""
    page = (reference_pack() / "docs" / "forge.md").read_text()
    rows = page.partition("## Least rights")[2].partition("\n## ")[0].splitlines()
    cells = "".join(row.split("|")[2] for row in rows if row.startswith("|"))
    named = set(re.findall(r"`((?:read|write):[a-z]+)`", cells))
    implied = {scope.replace("write:", "read:") for scope in named if scope.startswith("write:")}

    assert set(BOT_SCOPES) == named - implied
