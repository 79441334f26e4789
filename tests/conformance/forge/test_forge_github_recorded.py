"""
What GitHub itself answered once (``@octokit/fixtures``), to our client and beside our face.

``scripts/descriptions.sh`` fetches the recordings of 2022 and 2024. The client meets them as if
they were a forge; the face is sent the same requests, and its answers have to be of the same shape.
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import requests
from tests.conformance.forge.conftest import Workshop, embedded_target, open_shop
from tests.conformance.forge.described import PACKAGES
from tests.conformance.forge.faces import GITHUB

from ground.errors import MovedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import refusal
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github import GitHubForge
from orderkit.ports.forge import CommitStatus

SCENARIOS = PACKAGES / "fixtures/scenarios/api.github.com"
pytestmark = pytest.mark.skipif(
    not SCENARIOS.exists(), reason="scripts/descriptions.sh fetches GitHub's recordings"
)
API = "/api/v3"
ORG = "octokit-fixture-org"
USER = "octokit-fixture-user-b"
TIMEOUT_S = 30
NO_BODY = 204
NOT_ON_FACE = re.compile(
    r"/(contents|invitations|labels|issues)(/|$)|/user/|/collaborators/|/teams/\d|/refs/$|/statuses$"
)
"""Addresses that our client never asks, so that the face does not have them."""
FACE_LACKS = {
    *("allow_auto_merge", "allow_forking", "allow_update_branch", "delete_branch_on_merge"),
    *("is_template", "organization", "use_squash_pr_title_as_default"),
    *("web_commit_signoff_required", "temp_clone_token"),
    *("allow_deletions", "allow_force_pushes", "block_creations", "required_signatures"),
    *("required_conversation_resolution", "required_linear_history", "restrictions"),
    "dismissal_restrictions",
}
"""Fields that the description does not require and nobody reads."""


def scenario(name: str) -> list[dict[str, Any]]:
    text = (SCENARIOS / name / "raw-fixture.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)
    return found


def repository(exchanges: list[dict[str, Any]]) -> RepoId:
    return RepoId(ORG, str(exchanges[0]["body"]["name"]))


class _Handler(BaseHTTPRequestHandler):
    """Answers what was recorded for an address, one after the other; else 404."""

    answers: dict[tuple[str, str, str], list[dict[str, Any]]]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base's name
        """Say nothing."""

    def _serve(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        place = urlsplit(self.path)
        page = parse_qs(place.query).get("page", ["1"])[0]
        key = (self.command, unquote(place.path.removeprefix(API)), page)
        left = self.answers.get(key)
        missing: dict[str, Any] = {
            "status": 404,
            "response": {"message": "Not Found"},
            "rawHeaders": [],
        }
        found = missing if not left else left.pop(0) if len(left) > 1 else left[0]
        body = b"" if found["status"] == NO_BODY else json.dumps(found["response"]).encode()
        self.send_response(found["status"])
        raw = found["rawHeaders"]
        for name, value in zip(raw[::2], raw[1::2], strict=True):
            if name in ("ETag", "Link", "Location") or name.startswith("X-RateLimit"):
                self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815


@contextmanager
def replayed(name: str) -> Iterator[GitHubForge]:
    """Serve a recording; yield a client of it."""
    answers = defaultdict(list)
    repo = repository(scenario(name))
    for exchange in scenario(name):
        place = urlsplit(re.sub(r"/repositories/\d+/", f"/repos/{repo}/", exchange["path"]))
        page = parse_qs(place.query).get("page", ["1"])[0]
        answers[exchange["method"].upper(), place.path.rstrip("/"), page].append(exchange)
    made = scenario(name)[0]
    answers.setdefault(("GET", f"/repos/{repo}", "1"), [{**made, "status": 200}])
    handler = type("Handler", (_Handler,), {"answers": answers})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with GitHubForge(f"http://127.0.0.1:{server.server_port}", token="t" * 40) as client:
            yield client
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_branch_is_made_and_removed() -> None:
    name = "git-refs"
    repo = repository(scenario(name))
    made = next(e for e in scenario(name) if e["method"] == "post" and "git/refs" in e["path"])
    with replayed(name) as client:
        assert client.ensure_branch(repo, "test", CommitSha(made["body"]["sha"]))
        assert client.delete_branch(repo, "test")


def test_a_status_is_set_and_the_newest_of_a_context_is_read() -> None:
    name = "create-status"
    repo = repository(scenario(name))
    sent = [e for e in scenario(name) if "/statuses/" in e["path"]]
    commit = CommitSha(sent[0]["path"].rpartition("/")[2])
    with replayed(name) as client:
        for each in sent:
            body = each["body"]
            client.set_status(
                repo, commit, CommitStatus(body.get("context", "default"), body["state"], "x")
            )
        found = {status.context: status.state for status in client.statuses(repo, commit)}
    assert found == {each["response"]["context"]: each["response"]["state"] for each in sent}


def test_a_renamed_repository_is_told_and_not_written() -> None:
    name = "rename-repository"
    repo = repository(scenario(name))
    with replayed(name) as client:
        with pytest.raises(MovedError):
            client.repo(repo)
        client.rename_repo(repo, f"{repo.name}-newname")
        with pytest.raises(MovedError):
            client.archive(repo)


def test_who_was_added_is_a_holder_until_removed() -> None:
    name = "add-and-remove-repository-collaborator"
    repo = repository(scenario(name))
    with replayed(name) as client:
        seen = [{login for login, _ in client._of(repo)} for _ in range(2)]  # noqa: SLF001  as `foreign_access` asks it
    assert [USER in logins for logins in seen] == [True, False]


def test_a_refusal_names_what_github_says() -> None:
    name = "errors"
    repo = repository(scenario(name))
    with replayed(name) as client:
        path = path_of("repos", repo.owner, repo.name, "labels")
        answer = client._http.send("POST", path, body={"name": "foo", "color": "invalid"})  # noqa: SLF001
    error = refusal(answer, "make a label")
    assert answer.status == 422
    assert "Validation Failed" in str(error)


def test_all_pages_are_read_once() -> None:
    name = "paginate-issues"
    repo = repository(scenario(name))
    with replayed(name) as client:
        path = path_of("repos", repo.owner, repo.name, "issues")
        found = [x["number"] for x in client._pages(path, {}, "list issues")]  # noqa: SLF001
    made = [
        e["response"]["number"]
        for e in scenario(name)
        if e["method"] == "post" and "/issues" in e["path"]
    ]
    assert sorted(found) == sorted(made)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    folder = tmp_path_factory.mktemp("recorded")
    with (
        embedded_target(folder / "forge", GITHUB) as (forge, target),
        open_shop(target, folder) as shop,
    ):
        forge.ensure_user(USER, "user-b-password")
        shop.forge.ensure_org(ORG)
        yield shop


def differences(recorded: Any, answered: Any, at: str = "$") -> Iterator[str]:
    """Yield where the face's answer is of another shape; null fits everything."""
    if recorded is None or answered is None:
        return
    if isinstance(recorded, dict) and isinstance(answered, dict):
        for key in sorted(recorded.keys() - answered.keys() - FACE_LACKS):
            yield f"{at}.{key} is missing"
        for key in recorded.keys() & answered.keys():
            yield from differences(recorded[key], answered[key], f"{at}.{key}")
    elif isinstance(recorded, list) and isinstance(answered, list):
        if recorded and answered:
            yield from differences(recorded[0], answered[0], f"{at}[0]")
    elif type(recorded) is not type(answered):
        yield f"{at} is {answered!r}, was {recorded!r}"


@pytest.mark.parametrize(
    "name",
    [
        *("git-refs", "create-status", "rename-repository", "branch-protection", "errors"),
        *("create-file", "add-and-remove-repository-collaborator", "paginate-issues"),
    ],
)
def test_the_face_answers_in_the_same_shape(shop: Workshop, name: str) -> None:
    exchanges = scenario(name)
    repo = repository(exchanges)
    headers = {"Authorization": f"Bearer {shop.target.token}"}
    commits: dict[str, str] = {}
    compared = 0
    for exchange in exchanges:
        text = json.dumps(exchange["body"] or {}) if exchange.get("body") else "{}"
        path = exchange["path"]
        for old, new in commits.items():
            text, path = text.replace(old, new), path.replace(old, new)
        if "/contents/" in path:  # as the client commits: not by this address
            file = path.rpartition("/")[2]
            made = shop.forge.write(repo, [shop.new(file, "x")], shop.op())
            commits[exchange["response"]["commit"]["sha"]] = made.commit
            continue
        unprotects = exchange["method"] == "delete" and path.endswith("/protection")
        if unprotects or NOT_ON_FACE.search(urlsplit(path).path):
            continue
        if match := re.match(r"/repositories/(\d+)", path):
            path = path.replace(match[0], f"/repos/{repo}-newname")
        path = path.replace("/refs/heads/", "/refs/heads%2F")  # as the client and the description
        sent = json.loads(text)
        answer = requests.request(
            exchange["method"],
            f"{shop.target.url}{API}{path}",
            json=sent or None,
            headers=headers,
            timeout=TIMEOUT_S,
            allow_redirects=False,
        )
        where = f"{exchange['method']} {path}"
        assert answer.status_code == exchange["status"], f"{where}: {answer.text}"
        if answer.content:
            found = list(differences(exchange["response"], answer.json()))
            assert not found, f"{where}: {', '.join(found)}"
        compared += 1
    assert compared >= 2
