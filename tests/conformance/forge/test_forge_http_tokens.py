"""Tokens, their scopes, and acting for others, as Gitea 1.26.0 answers (observed)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ground.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

User = tuple[str, str]
READS = ("read:repository", "read:organization", "read:user", "read:issue")


@pytest.fixture(scope="module")
def user(shop: Workshop) -> User:
    name, password = f"u-{secrets.token_hex(3)}", "Pw-12345678"
    body = {
        "username": name,
        "password": password,
        "email": f"{name}@example.org",
        "must_change_password": False,
    }
    assert shop.api("POST", "/admin/users", body).status_code == 201
    return name, password


@pytest.fixture(scope="module")
def hidden(shop: Workshop) -> RepoId:
    return shop.seeded_repo(private=True)


def new_token(shop: Workshop, user: User, **more: Any) -> dict[str, Any]:
    body = {"name": f"t-{secrets.token_hex(3)}", "scopes": ["all"]} | more
    made = shop.api("POST", f"/users/{user[0]}/tokens", body, auth=user)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def test_k01_a_token_does_what_its_scopes_name(shop: Workshop, user: User) -> None:
    made = new_token(shop, user, scopes=["write:repository", "read:user"])
    auth = f"token {made['sha1']}"

    assert shop.api("GET", "/user", auth=auth).json()["login"] == user[0]
    assert made["token_last_eight"] == made["sha1"][-8:]
    assert set(made["scopes"]) == {"write:repository", "read:user"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"scopes": ["all"]}, 422),
        ({"name": "x"}, 400),
        ({"name": "x", "scopes": []}, 400),
        ({"name": "x", "scopes": ["fly:moon"]}, 400),
    ],
)
def test_k03_what_is_no_token(shop: Workshop, user: User, body: Any, status: int) -> None:
    answer = shop.api("POST", f"/users/{user[0]}/tokens", body, auth=user)

    assert answer.status_code == status


def test_k04_tokens_are_made_with_a_password_by_their_user_or_a_site_admin(
    shop: Workshop, user: User
) -> None:
    tokens = f"/users/{user[0]}/tokens"
    token = f"token {new_token(shop, user)['sha1']}"

    def made(name: str, auth: Any) -> int:
        body = {"name": name, "scopes": ["all"]}
        return shop.api("POST", tokens, body, auth=auth).status_code

    assert made("by-token", token) == 401
    assert made("by-another", shop.outsider) == 403
    assert made("by-nobody", None) == 403
    assert made("by-admin", shop.admin) == 201
    body = {"name": "x", "scopes": ["all"]}
    missing = shop.api("POST", "/users/nobody-1/tokens", body, auth=shop.admin)
    assert missing.status_code == 404


def test_k06_a_site_admin_removes_users_who_are_in_no_organisation(shop: Workshop) -> None:
    name = f"u-{secrets.token_hex(3)}"
    body = {"username": name, "password": "Pw-12345678", "email": f"{name}@example.org"}
    assert shop.api("POST", "/admin/users", body).status_code == 201
    team = {"name": "devs", "permission": "read", "units": ["repo.code"]}
    devs = shop.api("POST", f"/orgs/{shop.org()}/teams", team).json()["id"]
    assert shop.api("PUT", f"/teams/{devs}/members/{name}").status_code == 204
    path = f"/admin/users/{name}"

    answers = [
        shop.api("DELETE", path, auth=shop.outsider).status_code,
        shop.api("DELETE", path).status_code,
        shop.api("DELETE", f"/teams/{devs}/members/{name}").status_code,
        shop.api("DELETE", path).status_code,
        shop.api("DELETE", path).status_code,
    ]

    assert answers == [403, 422, 204, 204, 404]


@dataclass(frozen=True)
class Route:
    """What a token with some scopes is answered at a route."""

    scopes: str
    method: str
    path: str
    status: int


ROUTES = [
    Route("write:issue", "POST", "/repos/{repo}/issues", 422),
    Route("write:repository", "POST", "/repos/{repo}/issues", 403),
    Route("write:repository", "POST", "/user/repos", 403),
    Route("write:user", "POST", "/user/repos", 403),
    Route("write:user write:repository", "POST", "/user/repos", 201),
    Route("write:repository", "POST", "/orgs/{owner}/repos", 403),
    Route("write:organization", "POST", "/orgs/{owner}/repos", 403),
    Route("write:organization write:repository", "POST", "/orgs/{owner}/repos", 201),
    Route("read:organization", "GET", "/orgs/{owner}/repos", 200),
    Route("read:repository", "GET", "/orgs/{owner}/repos", 403),
    Route("read:organization", "GET", "/orgs/{owner}/teams", 200),
    Route("read:repository", "GET", "/orgs/{owner}/teams", 403),
    Route("read:repository", "GET", "/repos/{repo}/collaborators", 200),
    Route("read:misc", "GET", "/version", 200),
    Route("read:misc", "GET", "/user", 403),
    Route("read:admin", "POST", "/admin/users", 403),
]


@pytest.mark.parametrize("route", ROUTES, ids=lambda each: f"{each.scopes} {each.path}")
def test_k05_each_route_has_its_scopes(shop: Workshop, hidden: RepoId, route: Route) -> None:
    path = route.path.format(repo=hidden, owner=hidden.owner, me=shop.target.user)
    body = {"name": f"r-{secrets.token_hex(3)}"} if route.method == "POST" else None

    answer = shop.api(route.method, path, body, auth=shop.token(*route.scopes.split()))

    assert answer.status_code == route.status, answer.text
