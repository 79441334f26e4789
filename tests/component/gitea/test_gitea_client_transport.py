"""What the client does when the other side is not a well-behaved Gitea."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler

import pytest
from answering import says, server

from ground.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
    TooManyCommitsError,
    UnreachableError,
)
from ground.names import RepoId
from orderkit.adapters.forges import transport
from orderkit.adapters.forges.answers import ForgeResponse, refusal
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.gitea.calls import git_head
from orderkit.flows.argocd.refreshing import Ancestry

TOKEN = "canary-0123456789abcdef"
REPO = RepoId("team", "order")
SCOPE_MISSING = (
    b'{"message":"token does not have at least one of required scope(s),'
    b' required=[write:repository], token scope=read:user"}'
)


def test_nobody_listening_is_unreachable_with_a_way_out() -> None:
    with server(says(200, b"{}")) as url:
        pass
    with GiteaForge(url, token=TOKEN) as forge, pytest.raises(UnreachableError) as caught:
        forge.version()

    assert "orderkit up" in caught.value.hint


@pytest.mark.parametrize("token", [f"{TOKEN}\n", f"{TOKEN}\r\nX-More: 1", f"{TOKEN}\u2603"])
def test_a_token_that_is_no_header_is_refused_without_showing_it(token: str) -> None:
    with (
        server(says(200, b"{}")) as url,
        GiteaForge(url, token=token) as forge,
        pytest.raises(InvalidInputError, match="no header may have") as caught,
    ):
        forge.version()

    assert TOKEN not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_redirect_is_an_error_that_explains_itself() -> None:
    with (
        server(says(301, b"", Location="http://evil.example.org/new/name")) as url,
        GiteaForge(url, token=TOKEN) as forge,
        pytest.raises(RemoteError, match=r"has moved to /new/name \(301\)") as caught,
    ):
        forge.repo(REPO)

    assert "renamed" in caught.value.hint


def test_a_page_instead_of_json_is_an_error_that_quotes_little_of_it() -> None:
    with (
        server(says(200, b"<html>" + b"x" * 10_000)) as url,
        GiteaForge(url, token=TOKEN) as forge,
        pytest.raises(RemoteError, match="without JSON") as caught,
    ):
        forge.repo(REPO)

    assert len(str(caught.value)) < 400


def test_a_commit_without_an_author_has_none() -> None:
    commit = {"sha": "a" * 40, "commit": {"message": "m"}}
    with (
        server(says(200, json.dumps([commit]).encode())) as url,
        GiteaForge(url, token=TOKEN) as forge,
    ):
        (found,) = forge.commits(REPO)

    assert (found.message, found.author, found.when) == ("m", "", "")


def test_a_push_whose_text_is_no_json_names_no_commit() -> None:
    event = {"id": 1, "type": "pull_push", "body": "a text", "user": {"id": 7, "login": "eve"}}
    with (
        server(says(200, json.dumps([event]).encode())) as url,
        GiteaForge(url, token=TOKEN) as forge,
    ):
        (found,) = forge.pull_events(REPO, 1)

    assert (found.kind, found.by.login, found.commits) == ("push", "eve", ())


def test_a_branch_that_git_only_has_under_a_longer_name_is_missing() -> None:
    """Gitea answers a reference with all that begin like it."""
    longer = {"ref": "refs/heads/main-2", "object": {"sha": "a" * 40}}
    with (
        server(says(200, json.dumps([longer]).encode())) as url,
        GiteaForge(url, token=TOKEN) as forge,
    ):
        assert git_head(forge, REPO, "main") is None
        assert git_head(forge, REPO, "main-2") == "a" * 40


def test_where_squash_merges_are_forbidden_merge_commits_stay_allowed() -> None:
    """The embedded forge merges so always; a Gitea refuses the style that is switched off."""
    settings: dict[str, object] = {"allow_squash_merge": True, "allow_merge_commits": False}

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.command == "PATCH":
            settings.update(json.loads(handler.rfile.read(int(handler.headers["Content-Length"]))))
        says(200, json.dumps(settings).encode())(handler)

    with server(answer) as url, GiteaForge(url, token=TOKEN) as forge:
        assert forge.forbid_squash(REPO)

    assert settings == {
        "allow_squash_merge": False,
        "allow_merge_commits": True,
        "default_merge_style": "merge",
    }


def test_an_answer_larger_than_the_cap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "ANSWER_MAX_BYTES", 1000)
    with (
        server(says(200, b" " * 100_000 + b"{}")) as url,
        GiteaForge(url, token=TOKEN) as forge,
        pytest.raises(RemoteError, match="larger than 1000 bytes"),
    ):
        forge.version()


def test_silence_ends_with_the_read_time_out() -> None:
    release = threading.Event()
    calls: list[str] = []

    def hang(handler: BaseHTTPRequestHandler) -> None:
        calls.append(handler.path)
        release.wait(60)

    with server(hang) as url, GiteaForge(url, token=TOKEN, read_timeout_s=0.1) as forge:
        try:
            with pytest.raises(UnreachableError, match="did not answer completely"):
                forge.version()
        finally:
            release.set()

    assert len(calls) <= 1


def test_a_read_is_repeated_once_when_the_connection_breaks() -> None:
    calls: list[str] = []

    def break_first(handler: BaseHTTPRequestHandler) -> None:
        calls.append(handler.path)
        if len(calls) > 1:
            says(200, b'{"version": "1.26.0"}')(handler)

    with server(break_first) as url, GiteaForge(url, token=TOKEN) as forge:
        assert forge.version() == "1.26.0"
    assert len(calls) == 2


def test_no_secret_is_in_a_message_or_repr() -> None:
    echo = f'{{"message": "you sent token {TOKEN}"}}'.encode()
    with server(says(403, echo)) as url, GiteaForge(url, token=TOKEN) as forge:
        with pytest.raises(AccessError) as caught:
            forge.version()

        assert TOKEN not in str(caught.value) + repr(caught.value) + caught.value.hint
        assert TOKEN not in repr(forge) + repr(vars(forge._http))  # noqa: SLF001  debuggers do


def test_netrc_and_proxies_of_the_environment_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    with server(says(200, b'{"version": "v"}')) as url, GiteaForge(url, token=TOKEN) as forge:
        assert forge.version() == "v"


@pytest.mark.parametrize(
    ("url", "error", "reason"),
    [
        ("ftp://127.0.0.1", InvalidInputError, "no HTTP"),
        ("forge.example.org", InvalidInputError, "no scheme"),
        ("http://", InvalidInputError, "no host"),
        ("http://me:secret@127.0.0.1", InvalidInputError, "credentials belong elsewhere"),
        ("http://127.0.0.1/?q=1", InvalidInputError, "a query would be lost"),
        ("http://forge.example.org", RefusedError, "credentials in clear text"),
        ("http://127.0.0.1.example.org", RefusedError, "only looks like loopback"),
    ],
)
def test_an_address_is_refused(url: str, error: type[OrderkitError], reason: str) -> None:
    with pytest.raises(error) as caught:
        GiteaForge(url, token=TOKEN)

    assert "secret" not in str(caught.value), reason


@pytest.mark.parametrize(
    ("url", "allow_http"),
    [
        ("http://127.0.0.1:3000/", False),
        ("http://localhost", False),
        ("http://[::1]:3000", False),
        ("https://forge.example.org/git/", False),
        ("http://forge.example.org", True),
    ],
)
def test_an_address_is_accepted_and_loses_its_last_slash(url: str, allow_http: bool) -> None:  # noqa: FBT001  a table
    assert GiteaForge(url, token=TOKEN, allow_http=allow_http).base_url == url.rstrip("/")


def test_credentials_are_needed() -> None:
    with pytest.raises(InvalidInputError, match="token, or a user and password"):
        GiteaForge("http://127.0.0.1", user="me")


def test_segments_of_a_path_are_encoded() -> None:
    assert path_of("repos", "a/b", "c d", "..?#%") == "/repos/a%2Fb/c%20d/..%3F%23%25"


@pytest.mark.parametrize(
    ("status", "body", "error", "match", "hint"),
    [
        (
            401,
            b'{"message":"user does not exist [uid: 0, name: ]"}',
            AccessError,
            "bad cred",
            "tok",
        ),
        (
            403,
            SCOPE_MISSING,
            AccessError,
            "missing scope",
            "write:repository",
        ),
        (403, b'{"message":"user should have a permission"}', AccessError, "no right", "owner"),
        (404, b'{"message":"GetContents","errors":["no object"]}', NotFoundError, "no object", ""),
        (423, b'{"message":"a/b is archived"}', RefusedError, "read-only", "unarchive"),
        (500, b'{"message":""}', RemoteError, "500", "repeat"),
        (502, b"<html>Bad Gateway</html>", RemoteError, "Bad Gateway", "repeat"),
        (418, b"null", RemoteError, "418", ""),
        (409, b'["odd"]', RemoteError, "odd", ""),
    ],
)
def test_a_refusal_becomes(
    status: int, body: bytes, error: type[OrderkitError], match: str, hint: str
) -> None:
    found = refusal(ForgeResponse(status, {}, body), "do it")

    assert type(found) is error or (status >= 500 and isinstance(found, error))
    assert match in str(found)
    assert isinstance(found, OrderkitError)
    assert hint in found.hint


def test_more_commits_than_the_forge_shows_are_more_and_not_unrelated() -> None:
    """Gitea says how many there are, and shows as many as one answer has."""
    new, old = "b" * 40, "a" * 40
    shown = {"total_commits": 9, "commits": [{"sha": new, "commit": {"message": "m"}}]}
    with (
        server(says(200, json.dumps(shown).encode())) as url,
        GiteaForge(url, token=TOKEN) as forge,
    ):
        ancestry = Ancestry(forge, REPO)

        assert ancestry.has_more(new, old)
        assert not ancestry.are_unrelated(new, old)
        assert not ancestry.contains(old, new)
        with pytest.raises(TooManyCommitsError, match="the forge shows 1 commits only"):
            forge.compare(REPO, old, new)
