"""Hostile or oversized requests to the embedded forge."""

from __future__ import annotations

import base64
import gzip
import itertools
import logging
import zlib
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile

import pytest
import requests

from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.api import routes, smart_http
from orderkit_standins.forge.api.calls import ApiError
from orderkit_standins.forge.api.smart_http import Command, read_commands
from orderkit_standins.forge.git_read import is_branch_name
from orderkit_standins.forge.git_write import WriteError, clean_path

TOKEN = "c" * 40
AUTH = {"Authorization": f"token {TOKEN}"}
TIMEOUT_S = 90
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedForge]:
    made = EmbeddedForge(tmp_path_factory.mktemp("forge"))
    server = HttpServer(made.app, bind("forge", 0))
    server.start()
    made.set_base_url(server.url)
    made.ensure_user("warden", "warden-pw1", admin=True)
    made.ensure_token("warden", "t", TOKEN, ["all"])
    made.ensure_user("guest", "guest-pw12")
    yield made
    server.stop()
    made.close()


def post(forge: EmbeddedForge, path: str, **how: object) -> requests.Response:
    return requests.post(forge.base_url + path, timeout=TIMEOUT_S, **how)  # type: ignore[arg-type]  # keywords of requests


def new_repo(forge: EmbeddedForge) -> str:
    name = f"r{next(_numbers)}"
    made = post(forge, "/api/v1/user/repos", json={"name": name}, headers=AUTH)
    assert made.status_code == 201, made.text
    first = f"/api/v1/repos/warden/{name}/contents/README.md"
    assert post(forge, first, json={"content": ""}, headers=AUTH).status_code == 201
    return f"warden/{name}"


def test_a_body_over_the_cap_is_413(forge: EmbeddedForge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "BODY_MAX_BYTES", 1000)

    answer = post(forge, "/api/v1/orgs", json={"username": "x" * 2000}, headers=AUTH)

    assert answer.status_code == 413


@pytest.mark.parametrize("zipped", [True, False])
def test_a_push_over_the_cap_is_413_however_it_is_packed(
    forge: EmbeddedForge,
    monkeypatch: pytest.MonkeyPatch,
    zipped: bool,  # noqa: FBT001  a table
) -> None:
    repo = new_repo(forge)
    monkeypatch.setattr(smart_http, "PUSH_MAX_BYTES", 100_000)
    body = gzip.compress(b"\0" * 10_000_000) if zipped else b"\0" * 200_000
    headers = AUTH | ({"Content-Encoding": "gzip"} if zipped else {})

    answer = post(forge, f"/{repo}.git/git-receive-pack", data=body, headers=headers)

    assert answer.status_code == 413


def test_a_zip_bomb_is_unpacked_in_small_steps() -> None:
    with SpooledTemporaryFile(max_size=1000) as out:
        sink = smart_http._Sink(out, 5_000_000, zipped=True)  # noqa: SLF001  its memory is the point
        packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        chunk = packer.compress(b"\0" * 100_000_000) + packer.flush()

        with pytest.raises(ApiError, match="too large"):
            sink.write(chunk)


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        (b"no gzip at all", {"Content-Encoding": "gzip"}, 400),
        (b"x", {"Content-Encoding": "br"}, 415),
    ],
)
def test_a_broken_encoding_is_refused(
    forge: EmbeddedForge, data: bytes, headers: dict[str, str], status: int
) -> None:
    repo = new_repo(forge)

    answer = post(forge, f"/{repo}.git/git-upload-pack", data=data, headers=AUTH | headers)

    assert answer.status_code == status


def test_an_unknown_git_service_is_refused(forge: EmbeddedForge) -> None:
    url = f"{forge.base_url}/{new_repo(forge)}.git/info/refs"

    for query in ("", "?service=git-upload-archive", "?service=--upload-pack=x"):
        assert requests.get(url + query, headers=AUTH, timeout=TIMEOUT_S).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/forge.sqlite",
        "/warden/..%2f..%2fforge.sqlite",
        "/warden/r/raw/branch/main/..%2f..%2f..%2fforge.sqlite",
        "/warden/r/src/branch/main/%2e%2e/%2e%2e/forge.sqlite",
        "/api/v1/repos/warden/r/contents/..%2f..%2fforge.sqlite",
        "/api/v1/repos/warden/..%2fr/contents/README.md",
        "/api/v1/repos/warden/r/raw/..%2fconfig",
        "/warden/r.git/config",
        "/warden/r.git/objects/info/packs",
    ],
)
def test_nothing_outside_the_tree_is_served(forge: EmbeddedForge, path: str) -> None:
    repo = new_repo(forge)
    request = requests.Request("GET", forge.base_url, headers=AUTH).prepare()
    request.url = forge.base_url + path.replace("warden/r", repo, 1)
    with requests.Session() as session:
        answer = session.send(request, timeout=TIMEOUT_S)

    assert answer.status_code in (401, 403, 404), answer.text[:200]


def test_names_that_would_leave_the_folder_are_refused(forge: EmbeddedForge) -> None:
    for name in ("../evil", "a/b", ".git", "x\0y", "..."):
        answer = post(forge, "/api/v1/orgs", json={"username": name}, headers=AUTH)
        assert answer.status_code == 422, name
    assert {path.name for path in forge.repos_root.iterdir()} <= {"warden"}


@pytest.mark.parametrize(
    ("path", "cleaned"),
    [
        ("a/./b//c", "a/b/c"),
        ("a/../b", "b"),
        ("a/", "a"),
        ("...", "..."),
        ("a/.gitignore", "a/.gitignore"),
        ("../a", None),
        ("/a", None),
        ("..", None),
        ("", None),
        (".", None),
        ("a/.GIT/config", None),
        ("a\0b", None),
    ],
)
def test_paths_are_cleaned_or_refused(path: str, cleaned: str | None) -> None:
    if cleaned is None:
        with pytest.raises(WriteError):
            clean_path(path)
    else:
        assert clean_path(path) == cleaned


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("main", True),
        ("feature/x-1.2", True),
        ("ünï", True),
        ("", False),
        ("a b", False),
        ("a..b", False),
        ("-x", False),
        ("x.lock", False),
        ("a/.b", False),
        ("a//b", False),
        ("a@{1}", False),
        ("x/", False),
        ("x" * 101, False),
    ],
)
def test_branch_names(name: str, good: bool) -> None:  # noqa: FBT001  a table
    assert is_branch_name(name) is good


@pytest.mark.parametrize(
    ("body", "refs"),
    [
        (b"", []),
        (b"0000", []),
        (b"zzzz", []),
        (b"00", []),
        (b"0012old new refs/x0000", ["refs/x"]),
        (b"0018old new refs/x\0caps \n0000", ["refs/x"]),
        (b"000aone two0000", []),
    ],
)
def test_the_commands_of_a_push_are_read_whatever_is_sent(body: bytes, refs: list[str]) -> None:
    with SpooledTemporaryFile() as spool:
        spool.write(body)

        assert [command.ref for command in read_commands(spool)] == refs
    assert Command("a", "b", "c").ref == "c"


def test_the_text_of_a_500_is_for_site_admins(
    forge: EmbeddedForge, caplog: pytest.LogCaptureFixture
) -> None:
    repo = new_repo(forge)
    path = f"/api/v1/repos/{repo}/git/commits/main"
    (forge.repos_root / repo).with_suffix(".git").joinpath("HEAD").unlink()

    with caplog.at_level(logging.CRITICAL):
        pair = base64.b64encode(b"guest:guest-pw12").decode()
        guest = requests.get(
            forge.base_url + path, headers={"Authorization": f"Basic {pair}"}, timeout=TIMEOUT_S
        )
        admin = requests.get(forge.base_url + path, headers=AUTH, timeout=TIMEOUT_S)

    assert (guest.status_code, guest.json()["message"]) == (500, "")
    assert admin.status_code == 500
    assert f"{repo}.git" in admin.json()["message"]


@pytest.mark.parametrize("digits", [20, 5000])
def test_numbers_beyond_64_bits_are_no_numbers(forge: EmbeddedForge, digits: int) -> None:
    repo, number = new_repo(forge), "9" * digits

    for path in ("pulls/{}", "issues/{}/timeline", "issues/comments/{}"):
        address = f"{forge.base_url}/api/v1/repos/{repo}/{path.format(number)}"
        assert requests.get(address, headers=AUTH, timeout=TIMEOUT_S).status_code == 404, path
    for query in ("page", "limit"):
        address = f"{forge.base_url}/api/v1/repos/{repo}/pulls?{query}={number}"
        assert requests.get(address, headers=AUTH, timeout=TIMEOUT_S).status_code == 200, query
