"""Who may do what over HTTP: credentials, token scopes, hidden and read-only repositories."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

NEW_FILE = {"content": "YQ=="}


def test_a01_a_bad_token_is_401(shop: Workshop) -> None:
    assert shop.api("GET", "/user", auth=f"token {'0' * 40}").status_code == 401


def test_a02_a_wrong_password_is_401(shop: Workshop) -> None:
    assert shop.api("GET", "/user", auth=(shop.target.user, "wrong")).status_code == 401


def test_a03_no_credentials_on_a_protected_route_is_401(shop: Workshop) -> None:
    assert shop.api("GET", "/user", auth=None).status_code == 401


@pytest.mark.parametrize("scheme", ["token", "Bearer", "bearer"])
def test_a04_a_token_is_accepted_as(shop: Workshop, scheme: str) -> None:
    answer = shop.api("GET", "/user", auth=f"{scheme} {shop.target.token}")

    assert answer.json()["login"] == shop.target.user


def test_a05_a_password_is_accepted(shop: Workshop) -> None:
    assert shop.api("GET", "/user", auth=shop.admin).json()["login"] == shop.target.user


def test_a06_a_token_is_accepted_as_password(shop: Workshop) -> None:
    answer = shop.api("GET", "/user", auth=("whoever", shop.target.token))

    assert answer.json()["login"] == shop.target.user


def test_a07_a_public_repository_is_readable_without_credentials(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    assert shop.api("GET", f"/repos/{repo}", auth=None).status_code == 200
    assert shop.api("GET", f"/repos/{repo}/contents/README.md", auth=None).status_code == 200


def test_a08_a_private_repository_is_hidden_from_strangers(shop: Workshop) -> None:
    repo = shop.seeded_repo(private=True)

    assert shop.api("GET", f"/repos/{repo}", auth=None).status_code == 404
    assert shop.api("GET", f"/repos/{repo}", auth=shop.outsider).status_code == 404
    path = f"/repos/{repo}/contents/n"
    assert shop.api("POST", path, NEW_FILE, auth=shop.outsider).status_code == 404


def test_a09_writing_what_one_may_only_read_is_403(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    before = shop.forge.head(repo)

    answer = shop.api("POST", f"/repos/{repo}/contents/n", NEW_FILE, auth=shop.outsider)

    assert answer.status_code == 403
    assert shop.forge.head(repo) == before


def test_a10_writing_without_credentials_is_401(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    assert shop.api("POST", f"/repos/{repo}/contents/n", NEW_FILE, auth=None).status_code == 401


@pytest.mark.parametrize(
    ("scopes", "method", "status", "reason"),
    [
        (["read:repository"], "GET", 200, "reading needs read"),
        (["write:repository"], "GET", 200, "write includes read"),
        (["read:repository"], "POST", 403, "writing needs write"),
        (["write:repository"], "POST", 201, "write is enough"),
        (["read:user"], "GET", 403, "another resource does not help"),
        (["all"], "POST", 201, "all is enough"),
    ],
)
def test_a11_scopes(
    shop: Workshop, scopes: list[str], method: str, status: int, reason: str
) -> None:
    repo, token = shop.seeded_repo(), shop.token(*scopes)
    path, body = ("n", NEW_FILE) if method == "POST" else ("README.md", None)

    answer = shop.api(method, f"/repos/{repo}/contents/{path}", body, auth=token)

    assert answer.status_code == status, reason
    if status == 403:
        assert "token does not have at least one of required scope(s)" in answer.json()["message"]


def test_a12_creating_an_organisation_needs_its_scope(shop: Workshop) -> None:
    token = shop.token("write:repository")

    answer = shop.api("POST", "/orgs", {"username": "never-made"}, auth=token)

    assert answer.status_code == 403
    assert "write:organization" in answer.json()["message"]


def test_a13_tokens_are_made_with_a_password_only(shop: Workshop) -> None:
    path, body = f"/users/{shop.target.user}/tokens", {"name": "x", "scopes": ["all"]}

    assert shop.api("POST", path, body).status_code == 401


def test_a14_a_token_name_is_used_once(shop: Workshop) -> None:
    path, body = f"/users/{shop.target.user}/tokens", {"name": "t-" + secrets.token_hex(4)}
    body |= {"scopes": ["all"]}  # type: ignore[dict-item]  # a JSON body

    made = shop.api("POST", path, body, auth=shop.admin)
    again = shop.api("POST", path, body, auth=shop.admin)

    assert len(made.json()["sha1"]) == 40
    assert again.status_code == 400


@pytest.mark.parametrize("scopes", [[], ["fly:moon"]])
def test_a15_a_token_needs_known_scopes(shop: Workshop, scopes: list[str]) -> None:
    path = f"/users/{shop.target.user}/tokens"
    body = {"name": secrets.token_hex(4), "scopes": scopes}

    assert shop.api("POST", path, body, auth=shop.admin).status_code == 400


def test_a16_another_users_tokens_are_not_to_be_made(shop: Workshop) -> None:
    path = f"/users/{shop.target.user}/tokens"
    body = {"name": secrets.token_hex(4), "scopes": ["all"]}

    assert shop.api("POST", path, body, auth=shop.outsider).status_code == 403


def test_a17_only_owners_create_repositories_in_an_organisation(shop: Workshop) -> None:
    org = shop.org()

    answer = shop.api("POST", f"/orgs/{org}/repos", {"name": "x"}, auth=shop.outsider)

    assert answer.status_code == 403
    assert shop.api("GET", f"/repos/{org}/x").status_code == 404


def test_a18_an_organisation_belongs_to_who_made_it(shop: Workshop) -> None:
    org = f"own-{secrets.token_hex(3)}"

    made = shop.api("POST", "/orgs", {"username": org}, auth=shop.outsider)
    repo = shop.api("POST", f"/orgs/{org}/repos", {"name": "x"}, auth=shop.outsider)

    assert (made.status_code, repo.status_code) == (201, 201)
    assert repo.json()["permissions"] == {"admin": True, "push": True, "pull": True}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "", {"archived": True}),
        ("DELETE", "", None),
        ("POST", "/branches", {"new_branch_name": "x"}),
        ("DELETE", "/branches/other", None),
    ],
)
def test_a19_strangers_may_not(shop: Workshop, method: str, path: str, body: Any) -> None:
    repo = shop.seeded_repo()

    answer = shop.api(method, f"/repos/{repo}{path}", body, auth=shop.outsider)

    assert answer.status_code == 403
    assert shop.api("GET", f"/repos/{repo}/branches/other").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/contents/n", NEW_FILE),
        ("POST", "/contents", {"files": [{"operation": "create", "path": "n", "content": ""}]}),
        ("POST", "/branches", {"new_branch_name": "x"}),
        ("DELETE", "/branches/other", None),
    ],
)
def test_a20_an_archived_repository_refuses_writes_with_423(
    shop: Workshop, method: str, path: str, body: Any
) -> None:
    repo = shop.seeded_repo()
    assert shop.api("PATCH", f"/repos/{repo}", {"archived": True}).json()["archived"] is True

    assert shop.api(method, f"/repos/{repo}{path}", body).status_code == 423
    assert shop.api("GET", f"/repos/{repo}/contents/README.md").status_code == 200
    assert shop.api("PATCH", f"/repos/{repo}", {"archived": False}).status_code == 200
    assert shop.api(method, f"/repos/{repo}{path}", body).status_code < 300


def test_a21_malformed_json_is_a_client_error_and_writes_nothing(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    before = shop.forge.head(repo)

    answer = shop.api("POST", f"/repos/{repo}/contents/n", raw=b"{not json")

    assert answer.status_code == 422
    assert shop.forge.head(repo) == before


def test_a22_names_are_taken_whatever_their_case(shop: Workshop) -> None:
    repo = shop.empty_repo()

    again = shop.api("POST", f"/orgs/{repo.owner}/repos", {"name": repo.name})
    upper = shop.api("POST", f"/orgs/{repo.owner}/repos", {"name": repo.name.upper()})

    assert (again.status_code, upper.status_code) == (409, 409)
    assert shop.api("GET", f"/repos/{repo.owner.upper()}/{repo.name.upper()}").status_code == 200


ARCHIVED = [
    ("POST", "/contents/n", NEW_FILE, 423),
    ("PUT", "/contents/README.md", NEW_FILE | {"sha": "0" * 40}, 423),
    ("POST", "/branches", {"new_branch_name": "x"}, 423),
    ("DELETE", "/branches/other", None, 423),
    ("POST", "/pulls", {"head": "other", "base": "main", "title": "t"}, 423),
    ("POST", "/issues", {"title": "t"}, 423),
    ("POST", "/branch_protections", {"rule_name": "x"}, 423),
    ("POST", "/hooks", {"type": "gitea", "config": {"url": "http://127.0.0.1:9/",
                                                    "content_type": "json"}}, 201),
    ("PATCH", "", {"description": "x"}, 200),
]  # fmt: skip


def test_a23_what_an_archive_refuses_and_what_not(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    shop.api("PATCH", f"/repos/{repo}", {"archived": True})

    seen = [
        (method, path, shop.api(method, f"/repos/{repo}{path}", body).status_code)
        for method, path, body, _ in ARCHIVED
    ]

    assert seen == [(method, path, status) for method, path, _, status in ARCHIVED]
    assert shop.call("GET", f"/{repo}.git/info/refs?service=git-upload-pack").status_code == 200


def test_a24_a_repository_says_what_it_has(shop: Workshop) -> None:
    found = shop.api("GET", f"/repos/{shop.seeded_repo()}").json()

    assert (found["private"], found["archived"], found["empty"]) == (False, False, False)
