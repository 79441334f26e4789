"""
Teams, members, collaborators and what they may do, as Gitea 1.26.0 answers (observed).

Most cases share one organisation with a private repository; each has users of its own.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

NOBODY = 999_999
NEW_FILE = {"content": "YQ=="}
User = tuple[str, str]


@dataclass(frozen=True)
class Org:
    """An organisation of the site admin with a private repository that has a first commit."""

    name: str
    repo: str


@pytest.fixture(scope="module")
def org(shop: Workshop) -> Org:
    repo = shop.seeded_repo(private=True)
    return Org(repo.owner, f"/repos/{repo}")


def new_user(shop: Workshop) -> User:
    name, password = f"u-{secrets.token_hex(3)}", "Pw-12345678"
    body = {
        "username": name,
        "password": password,
        "email": f"{name}@example.org",
        "must_change_password": False,
    }
    assert shop.api("POST", "/admin/users", body).status_code == 201
    return name, password


def new_team(shop: Workshop, org: str, **more: Any) -> int:
    body = {"name": f"t-{secrets.token_hex(3)}", "permission": "read", "units": ["repo.code"]}
    made = shop.api("POST", f"/orgs/{org}/teams", body | more)
    assert made.status_code == 201, made.text
    found: int = made.json()["id"]
    return found


def team_of(shop: Workshop, org: Org, user: User, **more: Any) -> int:
    """Return a new team with one member and the organisation's repository."""
    team = new_team(shop, org.name, **more)
    repo = org.repo.removeprefix("/repos/")
    assert shop.api("PUT", f"/teams/{team}/members/{user[0]}").status_code == 204
    assert shop.api("PUT", f"/teams/{team}/repos/{repo}").status_code == 204
    return team


def rights(shop: Workshop, org: Org, user: User) -> tuple[bool, bool, bool] | int:
    """Return what somebody is shown to be allowed, or the status of the refusal."""
    answer = shop.api("GET", org.repo, auth=user)
    if answer.status_code != 200:
        return answer.status_code
    found = answer.json()["permissions"]
    return found["pull"], found["push"], found["admin"]


# Teams


def test_a30_an_organisation_begins_with_its_owners(shop: Workshop) -> None:
    name = shop.org()

    (team,) = shop.api("GET", f"/orgs/{name}/teams").json()

    assert (team["name"], team["permission"]) == ("Owners", "owner")
    assert (team["includes_all_repositories"], team["can_create_org_repo"]) == (True, True)
    assert team["units_map"]["repo.code"] == "owner"
    members = shop.api("GET", f"/teams/{team['id']}/members").json()
    assert [each["login"] for each in members] == [shop.target.user]


def test_a31_a_team_has_levels_on_units(shop: Workshop, org: Org) -> None:
    body = {"name": f"t-{secrets.token_hex(3)}", "permission": "write"}
    units = {"units": ["repo.code", "repo.issues"]}

    made = shop.api("POST", f"/orgs/{org.name}/teams", body | units).json()

    assert made["permission"] == "none"
    assert made["units_map"] == {"repo.code": "write", "repo.issues": "write"}
    assert made["organization"]["name"] == org.name
    assert (made["includes_all_repositories"], made["can_create_org_repo"]) == (False, False)
    shown = shop.api("GET", f"/teams/{made['id']}").json()
    assert (shown["id"], shown["units_map"]) == (made["id"], made["units_map"])


def test_a32_a_map_gives_each_unit_a_level_of_its_own(shop: Workshop, org: Org) -> None:
    levels = {"repo.code": "read", "repo.issues": "write"}

    team = new_team(shop, org.name, units=[], units_map=levels)

    assert shop.api("GET", f"/teams/{team}").json()["units_map"] == levels


def test_a33_a_team_of_admins_has_all_units(shop: Workshop, org: Org) -> None:
    made = shop.api("GET", f"/teams/{new_team(shop, org.name, permission='admin')}").json()

    assert made["permission"] == "admin"
    assert set(made["units_map"].values()) == {"admin"}
    assert len(made["units_map"]) == 10


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({}, 422, "no name"),
        ({"name": "x y", "units": ["repo.code"]}, 422, "a space"),
        ({"name": "x" * 256, "units": ["repo.code"]}, 422, "too long"),
        ({"name": "x", "permission": "write"}, 500, "no units"),
        ({"name": "new", "permission": "read", "units": ["repo.code"]}, 500, "a reserved name"),
        ({"name": "OWNERS", "permission": "read", "units": ["repo.code"]}, 422, "taken"),
    ],
)
def test_a34_what_is_no_team(shop: Workshop, org: Org, body: Any, status: int, reason: str) -> None:
    assert shop.api("POST", f"/orgs/{org.name}/teams", body).status_code == status, reason


def test_a35_a_team_is_changed(shop: Workshop, org: Org) -> None:
    team = new_team(shop, org.name, description="d")
    name = f"n-{secrets.token_hex(3)}"

    body = {"name": name, "permission": "write", "units": ["repo.code"]}
    changed = shop.api("PATCH", f"/teams/{team}", body)
    listed = shop.api("GET", f"/orgs/{org.name}/teams?limit=50").json()

    assert changed.status_code == 200
    assert (changed.json()["name"], changed.json()["description"]) == (name, "d")
    assert changed.json()["units_map"] == {"repo.code": "write"}
    assert name in [each["name"] for each in listed]


def test_a36_a_name_that_is_taken_breaks_a_change(shop: Workshop, org: Org) -> None:
    taken = shop.api("GET", f"/teams/{new_team(shop, org.name)}").json()["name"]

    changed = shop.api("PATCH", f"/teams/{new_team(shop, org.name)}", {"name": taken})

    assert changed.status_code == 500


def test_a37_teams_are_shown_to_members_and_made_by_owners(shop: Workshop, org: Org) -> None:
    member, stranger = new_user(shop), new_user(shop)
    team, other = team_of(shop, org, member), new_team(shop, org.name)
    teams = f"/orgs/{org.name}/teams"
    body = {"name": "x", "units": ["repo.code"]}

    assert shop.api("GET", teams, auth=member).status_code == 200
    assert shop.api("GET", teams, auth=stranger).status_code == 403
    assert shop.api("GET", teams, auth=None).status_code == 401
    assert shop.api("POST", teams, body, auth=member).status_code == 403
    assert shop.api("GET", f"/teams/{team}", auth=member).status_code == 200
    assert shop.api("GET", f"/teams/{other}", auth=member).status_code == 403
    assert shop.api("GET", f"/teams/{team}", auth=stranger).status_code == 404
    assert shop.api("PATCH", f"/teams/{team}", {}, auth=member).status_code == 403
    assert shop.api("GET", f"/teams/{NOBODY}").status_code == 404


# Members


def test_a40_members_come_and_go(shop: Workshop, org: Org) -> None:
    user, team = new_user(shop), new_team(shop, org.name)
    one = f"/teams/{team}/members/{user[0]}"

    def named(path: str) -> bool:
        return user[0] in [each["login"] for each in shop.api("GET", path).json()]

    assert [shop.api("PUT", one).status_code for _ in range(2)] == [204, 204]
    assert named(f"/teams/{team}/members")
    assert [shop.api("DELETE", one).status_code for _ in range(2)] == [204, 204]
    assert not named(f"/teams/{team}/members")
    assert shop.api("PUT", f"/teams/{team}/members/nobody-1").status_code == 404


def test_a42_the_last_owner_stays(shop: Workshop) -> None:
    user = new_user(shop)
    name = f"own-{secrets.token_hex(3)}"
    assert shop.api("POST", "/orgs", {"username": name}, auth=user).status_code == 201
    (owners,) = shop.api("GET", f"/orgs/{name}/teams", auth=user).json()

    by_team = shop.api("DELETE", f"/teams/{owners['id']}/members/{user[0]}", auth=user)

    assert by_team.status_code == 500
    members = shop.api("GET", f"/teams/{owners['id']}/members", auth=user).json()
    assert [each["login"] for each in members] == [user[0]]


# What follows


@dataclass(frozen=True)
class Given:
    """A team, and what a member of it may then do."""

    team: dict[str, Any]
    seen: tuple[bool, bool, bool]
    write: int
    administer: int


GIVEN = [
    Given({"permission": "read"}, (True, False, False), 403, 403),
    Given({"permission": "write"}, (True, True, False), 201, 403),
    Given({"permission": "admin"}, (True, True, True), 201, 200),
    Given({"units": ["repo.issues"]}, (False, False, False), 403, 403),
]


@pytest.mark.parametrize("given", GIVEN, ids=lambda given: str(given.team))
def test_a50_a_team_gives_its_rights_to_its_members(shop: Workshop, org: Org, given: Given) -> None:
    user = new_user(shop)
    assert rights(shop, org, user) == 404
    team_of(shop, org, user, **given.team)

    path = f"{org.repo}/contents/{secrets.token_hex(4)}"

    assert rights(shop, org, user) == given.seen
    assert shop.api("POST", path, NEW_FILE, auth=user).status_code == given.write
    rules = shop.api("GET", f"{org.repo}/branch_protections", auth=user)
    assert rules.status_code == given.administer


def test_a51_a_team_without_code_sees_issues_only(shop: Workshop, org: Org) -> None:
    user = new_user(shop)
    team_of(shop, org, user, units=["repo.issues"])

    opened = shop.api("POST", f"{org.repo}/issues", {"title": "T"}, auth=user)

    assert opened.status_code == 201
    for path in ("/contents/README.md", "/git/refs", "/git/trees/main", "/commits"):
        assert shop.api("GET", f"{org.repo}{path}", auth=user).status_code == 403, path


def test_a52_the_highest_right_counts(shop: Workshop, org: Org) -> None:
    user = new_user(shop)
    team_of(shop, org, user, permission="read")
    writers = team_of(shop, org, user, permission="write")

    assert rights(shop, org, user) == (True, True, False)
    shop.api("DELETE", f"/teams/{writers}/members/{user[0]}")
    assert rights(shop, org, user) == (True, False, False)


def test_a53_a_team_may_have_all_repositories(shop: Workshop, org: Org) -> None:
    user = new_user(shop)
    team = new_team(shop, org.name, permission="write", includes_all_repositories=True)
    shop.api("PUT", f"/teams/{team}/members/{user[0]}")

    made = shop.api("POST", f"/orgs/{org.name}/repos", {"name": f"r-{team}", "private": True})

    assert rights(shop, org, user) == (True, True, False)
    assert shop.api("GET", f"/repos/{org.name}/r-{team}", auth=user).status_code == 200
    listed = shop.api("GET", f"/teams/{team}/repos?limit=50").json()
    assert made.json()["id"] in [each["id"] for each in listed]


def test_a54_repositories_are_given_and_taken(shop: Workshop, org: Org) -> None:
    user, team = new_user(shop), new_team(shop, org.name)
    shop.api("PUT", f"/teams/{team}/members/{user[0]}")
    one = f"/teams/{team}{org.repo}"

    assert [shop.api("PUT", one).status_code for _ in range(2)] == [204, 204]
    (listed,) = shop.api("GET", f"/teams/{team}/repos").json()
    assert listed["private"] is True
    assert rights(shop, org, user) == (True, False, False)
    assert shop.api("PUT", one, auth=user).status_code == 403
    assert [shop.api("DELETE", one).status_code for _ in range(2)] == [204, 204]
    assert rights(shop, org, user) == 404
    assert shop.api("PUT", f"/teams/{team}/repos/{org.name}/none").status_code == 404


def test_a56_who_may_create_repositories_administers_them(shop: Workshop, org: Org) -> None:
    user = new_user(shop)
    team = team_of(shop, org, user)
    repos = f"/orgs/{org.name}/repos"
    first, second = (f"r-{secrets.token_hex(3)}" for _ in range(2))

    refused = shop.api("POST", repos, {"name": first}, auth=user)
    shop.api("PATCH", f"/teams/{team}", {"can_create_org_repo": True})
    made = shop.api("POST", repos, {"name": second, "private": True}, auth=user)

    assert refused.status_code == 403
    assert made.status_code == 201
    assert made.json()["permissions"] == {"admin": True, "push": True, "pull": True}
    found = shop.api("GET", f"/repos/{org.name}/{second}/collaborators").json()
    assert [each["login"] for each in found] == [user[0]]


def test_a57_git_asks_for_the_same_rights(shop: Workshop, org: Org) -> None:
    user = new_user(shop)
    team_of(shop, org, user, permission="read")
    path = org.repo.removeprefix("/repos") + ".git/info/refs?service=git-"

    assert shop.call("GET", f"{path}upload-pack", auth=user).status_code == 200
    assert shop.call("GET", f"{path}upload-pack", auth=shop.outsider).status_code == 404
    assert shop.call("GET", f"{path}receive-pack", auth=shop.outsider).status_code == 404


# Visibility


def test_a60_a_private_organisation_hides_its_public_repositories(shop: Workshop) -> None:
    name, member, stranger = f"hid-{secrets.token_hex(3)}", new_user(shop), new_user(shop)
    made = shop.api("POST", "/orgs", {"username": name, "visibility": "private"})
    shop.api("POST", f"/orgs/{name}/repos", {"name": "r"})
    shop.api("POST", f"/repos/{name}/r/contents/README.md", {"content": ""})
    team = new_team(shop, name, includes_all_repositories=True)
    shop.api("PUT", f"/teams/{team}/members/{member[0]}")

    assert made.json()["visibility"] == "private"
    for path in (f"/orgs/{name}", f"/repos/{name}/r", f"/repos/{name}/r/contents/README.md"):
        assert shop.api("GET", path, auth=stranger).status_code == 404, path
        assert shop.api("GET", path, auth=None).status_code == 404, path
        assert shop.api("GET", path, auth=member).status_code == 200, path


def test_a63_a_limited_organisation_is_for_whoever_signs_in(shop: Workshop) -> None:
    name = f"lim-{secrets.token_hex(3)}"
    shop.api("POST", "/orgs", {"username": name, "visibility": "limited"})
    shop.api("POST", f"/orgs/{name}/repos", {"name": "r"})

    for path in (f"/orgs/{name}", f"/repos/{name}/r"):
        assert shop.api("GET", path, auth=None).status_code == 404, path
        assert shop.api("GET", path, auth=shop.outsider).status_code == 200, path


# Collaborators


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ({}, (True, True, False)),
        ({"permission": "read"}, (True, False, False)),
        ({"permission": "write"}, (True, True, False)),
        ({"permission": "admin"}, (True, True, True)),
    ],
)
def test_a70_a_collaborator_has_a_right_of_their_own(
    shop: Workshop, org: Org, body: Any, seen: tuple[bool, bool, bool]
) -> None:
    user = new_user(shop)
    one = f"{org.repo}/collaborators/{user[0]}"

    assert shop.api("PUT", one, body).status_code == 204

    assert rights(shop, org, user) == seen
    level = shop.api("GET", f"{one}/permission", auth=user).json()
    assert level["permission"] == level["role_name"] == body.get("permission", "write")
    assert [shop.api("DELETE", one).status_code for _ in range(2)] == [204, 204]
    assert rights(shop, org, user) == 404


def test_a71_what_is_no_collaborator(shop: Workshop, org: Org) -> None:
    nobody = f"{org.repo}/collaborators/nobody-1"
    somebody = f"{org.repo}/collaborators/{shop.outsider[0]}"

    assert shop.api("PUT", nobody, {}).status_code == 422
    assert shop.api("DELETE", nobody).status_code == 422
    assert shop.api("PUT", somebody, {"permission": "boss"}).status_code == 500
    assert shop.api("PUT", somebody, {"permission": "owner"}).status_code == 500
    assert shop.api("GET", f"{somebody}/permission").json()["permission"] == "none"
    mine = f"{org.repo}/collaborators/{shop.target.user}/permission"
    assert shop.api("GET", mine).json()["permission"] == "owner"


def test_a72_collaborators_are_made_by_admins(shop: Workshop, org: Org) -> None:
    writer, other = new_user(shop), new_user(shop)
    shop.api("PUT", f"{org.repo}/collaborators/{writer[0]}", {})
    one = f"{org.repo}/collaborators/{other[0]}"

    assert shop.api("PUT", one, {}, auth=writer).status_code == 403
    assert shop.api("GET", f"{one}/permission", auth=writer).status_code == 403
    assert shop.api("GET", f"{org.repo}/collaborators", auth=other).status_code == 404
    listed = shop.api("GET", f"{org.repo}/collaborators?limit=50", auth=writer).json()
    assert writer[0] in [each["login"] for each in listed]


def test_a73_the_owner_of_a_repository_is_no_collaborator(shop: Workshop) -> None:
    user = new_user(shop)
    made = shop.api("POST", "/user/repos", {"name": f"r-{secrets.token_hex(3)}"}, auth=user)
    one = f"/repos/{made.json()['full_name']}"

    assert shop.api("PUT", f"{one}/collaborators/{user[0]}", {}, auth=user).status_code == 204
