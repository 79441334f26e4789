"""
Protected branches over HTTP and git, as Gitea 1.26.0 answers (observed).

Each group has a repository whose one rule its cases change as they need it.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from tests.conformance.forge.pullcases import Pulls, Refused
from tests.conformance.forge.test_forge_http_statuses import ordered, say

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

RULES = "/branch_protections"
CONTENT = base64.b64encode(b"x").decode()


@pytest.fixture(scope="module")
def pulls(shop: Workshop) -> Pulls:
    return Pulls(shop, shop.seeded_repo())


@pytest.fixture(scope="module")
def ruled(shop: Workshop) -> Pulls:
    """A repository with a rule for main, which `rule` sets."""
    found = Pulls(shop, shop.seeded_repo())
    assert found.api("POST", RULES, {"rule_name": "main"}).status_code == 201
    return found


def rule(pulls: Pulls, **says: Any) -> None:
    """Replace what the rule for main says."""
    plain = {
        "enable_push": True,
        "enable_push_whitelist": False,
        "enable_force_push": False,
        "enable_merge_whitelist": False,
        "merge_whitelist_usernames": [],
        "enable_status_check": False,
        "required_approvals": 0,
        "block_on_outdated_branch": False,
        "block_admin_merge_override": False,
        "protected_file_patterns": "",
        "unprotected_file_patterns": "",
    }
    changed = pulls.api("PATCH", f"{RULES}/main", plain | says)
    assert changed.status_code == 200, changed.text


def write(pulls: Pulls, path: str = "", **more: Any) -> requests.Response:
    path = path or f"n-{secrets.token_hex(4)}"
    return pulls.api("POST", f"/contents/{path}", {"content": CONTENT, "message": "m", **more})


def rules_by_name(pulls: Pulls) -> dict[str, dict[str, Any]]:
    return {each["rule_name"]: each for each in pulls.api("GET", RULES).json()}


# The rules themselves


def test_g101_a_rule_is_made_shown_changed_and_removed(pulls: Pulls) -> None:
    made = pulls.api("POST", RULES, {"rule_name": "g01"})
    changed = pulls.api("PATCH", f"{RULES}/g01", {"enable_push": True, "required_approvals": 2})
    shown = rules_by_name(pulls)["g01"]
    gone = pulls.api("DELETE", f"{RULES}/g01")

    found = made.json()
    assert made.status_code == 201
    assert (found["rule_name"], found["branch_name"]) == ("g01", "g01")
    assert (found["enable_push"], found["required_approvals"]) == (False, 0)
    assert (found["push_whitelist_usernames"], found["status_check_contexts"]) == ([], None)
    assert (changed.status_code, changed.json()["required_approvals"]) == (200, 2)
    assert shown["enable_push"] is True
    assert gone.status_code == 204
    assert "g01" not in rules_by_name(pulls)


def test_g102_a_second_rule_of_a_name_is_403(pulls: Pulls) -> None:
    assert pulls.api("POST", RULES, {"branch_name": "g02"}).status_code == 201

    again = pulls.api("POST", RULES, {"rule_name": "g02"})

    assert (again.status_code, again.json()["message"]) == (403, "Branch protection already exist")


@pytest.mark.parametrize(
    "case",
    [
        Refused("G103", "a rule without a name", {}, 400),
        Refused("G104", "a rule with an unknown user",
                {"rule_name": "g", "push_whitelist_usernames": ["nobody-x"]}, 422),
        Refused("G105", "a rule with an unknown team",
                {"rule_name": "g", "push_whitelist_teams": ["nobody-x"]}, 422),
    ],
    ids=lambda case: f"{case.id} {case.reason}",
)  # fmt: skip
def test_what_is_no_rule(pulls: Pulls, case: Refused) -> None:
    assert pulls.api("POST", RULES, case.body).status_code == case.status


def test_g106_rules_come_in_the_order_in_which_they_count(pulls: Pulls) -> None:
    names = [f"g06/{number}*" for number in range(3)]
    made = [pulls.api("POST", RULES, {"rule_name": name}).json() for name in names]

    listed = [each["rule_name"] for each in pulls.api("GET", RULES).json()]

    assert [each["branch_name"] for each in made] == [""] * 3
    assert [each["priority"] for each in made] == [made[0]["priority"] + n for n in range(3)]
    mine = [name for name in listed if name in names]
    assert mine == names


def test_g107_what_is_not_there_is_404(pulls: Pulls) -> None:
    where = f"{RULES}/none"

    assert pulls.api("PATCH", where, {}).status_code == 404
    assert pulls.api("DELETE", where).status_code == 404


def test_g108_only_admins_of_the_repository_see_rules(shop: Workshop, pulls: Pulls) -> None:
    assert pulls.api("GET", RULES, auth=shop.outsider).status_code == 403
    assert pulls.api("POST", RULES, {"rule_name": "x"}, auth=shop.outsider).status_code == 403
    assert pulls.api("GET", RULES, auth=None).status_code == 401


def test_g109_forbidding_pushes_forgets_who_was_listed(pulls: Pulls) -> None:
    user = pulls.shop.target.user
    body = {
        "rule_name": "g09",
        "enable_push": True,
        "enable_push_whitelist": True,
        "push_whitelist_usernames": [user],
    }
    made = pulls.api("POST", RULES, body).json()

    changed = pulls.api("PATCH", f"{RULES}/g09", {"enable_push": False}).json()

    assert (made["enable_push_whitelist"], made["push_whitelist_usernames"]) == (True, [user])
    assert (changed["enable_push"], changed["enable_push_whitelist"]) == (False, False)


def test_g110_a_branch_says_what_protects_it(ruled: Pulls) -> None:
    rule(ruled, enable_push=False, required_approvals=1)

    found = ruled.api("GET", "/branches/main").json()
    free = ruled.api("GET", "/branches/other").json()

    assert (found["protected"], found["user_can_push"], found["user_can_merge"]) == (
        True,
        False,
        True,
    )
    assert (found["required_approvals"], found["effective_branch_protection_name"]) == (1, "main")
    assert (free["protected"], free["user_can_push"]) == (False, True)


# Writes through the API


def test_g111_nobody_writes_where_pushes_are_forbidden_not_even_an_admin(ruled: Pulls) -> None:
    rule(ruled, enable_push=False)
    many = {"files": [{"operation": "create", "path": "g11", "content": CONTENT}]}
    words = f"user cannot commit to repo [user: {ruled.shop.target.user}]"

    for answer in (write(ruled), ruled.api("POST", "/contents", many)):
        assert (answer.status_code, answer.json()["message"]) == (403, words)


def test_g112_a_new_branch_is_free_unless_a_rule_has_its_name(ruled: Pulls) -> None:
    rule(ruled, enable_push=False)
    ruled.api("POST", RULES, {"rule_name": "g12"})

    free = ruled.api("POST", "/branches", {"new_branch_name": "g12-free"})
    refused = ruled.api("POST", "/branches", {"new_branch_name": "g12"})

    assert (free.status_code, refused.status_code) == (201, 500)
    assert ruled.api("GET", "/branches/g12").status_code == 404


def test_g114_a_protected_branch_is_not_deleted(ruled: Pulls) -> None:
    ruled.branch("g14")
    assert ruled.api("POST", RULES, {"rule_name": "g14"}).status_code == 201

    deleted = ruled.api("DELETE", "/branches/g14")

    assert (deleted.status_code, deleted.json()["message"]) == (403, "branch protected")


# Git


@pytest.fixture(scope="module")
def copy(shop: Workshop, ruled: Pulls) -> Path:
    return shop.clone(ruled.repo)


def git_commit(shop: Workshop, copy: Path, path: str) -> None:
    shop.git("fetch", "-q", "origin", cwd=copy)
    shop.git("reset", "-q", "--hard", "origin/main", cwd=copy)
    (copy / path).parent.mkdir(exist_ok=True)
    (copy / path).write_text(secrets.token_hex(4))
    shop.git("add", ".", cwd=copy)
    assert shop.git("commit", "-qm", path, cwd=copy).returncode == 0


@dataclass(frozen=True)
class Push:
    id: str
    reason: str
    says: dict[str, Any]
    words: str
    """Why it is refused; empty: it is not."""
    path: str = "a"


NOT_ALLOWED = "Not allowed to push to protected branch main"
PUSHES = [
    Push("G115", "a push: pushes forbidden", {"enable_push": False}, NOT_ALLOWED),
    Push("G116", "a push: pushes allowed", {}, ""),
    Push(
        "G120",
        "a push: a listed user",
        {"enable_push_whitelist": True, "push_whitelist_usernames": ["{user}"]},
        "",
    ),
    Push(
        "G121",
        "a push: an empty list",
        {"enable_push_whitelist": True, "push_whitelist_usernames": []},
        NOT_ALLOWED,
    ),
]


@pytest.mark.parametrize("push", PUSHES, ids=lambda push: f"{push.id} {push.reason}")
def test_a_push_to_a_protected_branch(ruled: Pulls, copy: Path, push: Push) -> None:
    shop = ruled.shop
    user = [shop.target.user] if push.says.get("push_whitelist_usernames") else []
    rule(ruled, **push.says | {"push_whitelist_usernames": user})
    git_commit(shop, copy, push.path)
    before = ruled.head()

    done = shop.git("push", "-q", "origin", "HEAD:main", cwd=copy)

    rule(ruled, enable_push=True)
    assert (done.returncode == 0) == (not push.words), push.reason + done.stderr
    assert (ruled.head() != before) == (not push.words)
    assert push.words in done.stderr
    assert not push.words or "pre-receive hook declined" in done.stderr


def test_g124_a_push_of_several_branches_is_refused_as_a_whole(ruled: Pulls, copy: Path) -> None:
    shop = ruled.shop
    rule(ruled, enable_push=False)
    git_commit(shop, copy, "g24")

    done = shop.git("push", "-q", "origin", "HEAD:main", "HEAD:g24", cwd=copy)

    assert done.returncode != 0
    assert ruled.api("GET", "/branches/g24").status_code == 404


def test_g123_git_does_not_rewrite_a_protected_branch(ruled: Pulls, copy: Path) -> None:
    shop = ruled.shop
    rule(ruled, enable_push=True)
    git_commit(shop, copy, "g23")
    before = ruled.head()
    shop.git("reset", "-q", "--hard", "HEAD~1", cwd=copy)
    shop.git("commit", "-q", "--allow-empty", "--amend", "-m", "rewritten", cwd=copy)

    done = shop.git("push", "-q", "--force", "origin", "HEAD:main", cwd=copy)

    assert done.returncode != 0
    assert ruled.head() == before


def test_g125_git_does_not_delete_a_protected_branch(ruled: Pulls, copy: Path) -> None:
    shop = ruled.shop
    ruled.branch("g25")
    ruled.api("POST", RULES, {"rule_name": "g25"})

    done = shop.git("push", "-q", "origin", ":g25", cwd=copy)

    assert "branch g25 is protected from deletion" in done.stderr
    assert ruled.api("GET", "/branches/g25").status_code == 200


# Merges


def test_g126_pull_requests_are_the_way_in(ruled: Pulls) -> None:
    rule(ruled, enable_push=False)
    number, _ = ordered(ruled, "g26")

    assert ruled.merge(number).status_code == 200


def test_g127_only_listed_users_merge_and_force_does_not_help(ruled: Pulls) -> None:
    rule(ruled, enable_merge_whitelist=True)
    number, _ = ordered(ruled, "g27")
    refused = [ruled.try_merge(number), ruled.try_merge(number, force_merge=True)]
    user = ruled.shop.target.user
    rule(ruled, enable_merge_whitelist=True, merge_whitelist_usernames=[user])

    for answer in refused:
        assert (answer.status_code, answer.json()["message"]) == (
            405,
            "User not allowed to merge PR",
        )
    assert ruled.merge(number).status_code == 200


def test_g128_a_rule_may_ask_for_approvals_that_an_admin_overrides_if_it_lets(
    ruled: Pulls,
) -> None:
    rule(ruled, required_approvals=1, block_admin_merge_override=True)
    number, _ = ordered(ruled, "g28")
    refused = [ruled.merge(number), ruled.merge(number, force_merge=True)]
    rule(ruled, required_approvals=1)

    for answer in refused:
        assert (answer.status_code, answer.json()["message"]) == (
            405,
            "Does not have enough approvals",
        )
    assert ruled.merge(number, force_merge=True).status_code == 200


# Required checks


@pytest.fixture(scope="module")
def checked(shop: Workshop) -> Pulls:
    found = Pulls(shop, shop.seeded_repo())
    rule = {
        "rule_name": "main",
        "enable_push": True,
        "enable_status_check": True,
        "status_check_contexts": ["ci/*"],
    }
    assert found.api("POST", "/branch_protections", rule).status_code == 201
    return found


def test_g134_required_checks_hold_a_merge_until_they_pass(checked: Pulls) -> None:
    number, sha = ordered(checked, "g34")

    first = checked.merge(number)
    say(checked, sha, "success", "other")
    second = checked.merge(number)
    say(checked, sha, "failure", "ci/a")
    third = checked.merge(number)
    say(checked, sha, "success", "ci/a")

    for refused in (first, second, third):
        assert (refused.status_code, refused.json()["message"]) == (
            405,
            "Not all required status checks successful",
        )
    assert checked.merge(number).status_code == 200


def test_g137_an_admin_forces_what_the_checks_hold(checked: Pulls) -> None:
    number, _ = ordered(checked, "g37")

    assert checked.merge(number, force_merge=True).status_code == 200


# People who are no admins


@pytest.fixture(scope="module")
def writer(shop: Workshop, ruled: Pulls) -> tuple[str, str]:
    """A member of a team that writes to the repository."""
    name, password = f"writer-{secrets.token_hex(3)}", "writer-Pw-12345"
    body = {
        "username": name,
        "password": password,
        "email": f"{name}@example.org",
        "must_change_password": False,
    }
    assert shop.api("POST", "/admin/users", body).status_code == 201
    team = {
        "name": "writers",
        "permission": "write",
        "includes_all_repositories": True,
        "units": ["repo.code", "repo.pulls"],
    }
    made = shop.api("POST", f"/orgs/{ruled.repo.owner}/teams", team)
    assert made.status_code == 201, made.text
    added = shop.api("PUT", f"/teams/{made.json()['id']}/members/{name}")
    assert added.status_code == 204, added.text
    return name, password


def test_g138_a_writer_merges_but_does_not_force(ruled: Pulls, writer: tuple[str, str]) -> None:
    rule(ruled, required_approvals=1)
    number, _ = ordered(ruled, "g138")
    refused = ruled.merge(number, force_merge=True, auth=writer)
    rule(ruled)

    assert (refused.status_code, refused.json()["message"]) == (
        405,
        "Does not have enough approvals",
    )
    assert ruled.merge(number, auth=writer).status_code == 200
    assert ruled.api("GET", RULES, auth=writer).status_code == 403


def test_g139_a_listed_team_pushes_and_others_do_not(ruled: Pulls, writer: tuple[str, str]) -> None:
    def answer(**says: Any) -> int:
        rule(ruled, enable_push_whitelist=True, **says)
        body = {"content": CONTENT, "message": "m"}
        path = f"/contents/n-{secrets.token_hex(4)}"
        return ruled.api("POST", path, body, auth=writer).status_code

    none: dict[str, Any] = {"push_whitelist_usernames": [], "push_whitelist_teams": []}

    assert answer(**none) == 403
    assert answer(**none | {"push_whitelist_teams": ["writers"]}) == 201
    assert rules_by_name(ruled)["main"]["push_whitelist_teams"] == ["writers"]
    assert answer(**none | {"push_whitelist_usernames": [writer[0]]}) == 201


def test_g140_squashed_work_names_who_asked_for_it(ruled: Pulls, writer: tuple[str, str]) -> None:
    rule(ruled)
    ruled.branch("g140")
    body = {"head": "g140", "base": "main", "title": "By the writer"}
    number = ruled.api("POST", "/pulls", body, auth=writer).json()["number"]
    ruled.settled(number, mergeable=True)

    assert ruled.merge(number, "squash").status_code == 200

    (top,) = ruled.log("main", 1)
    assert top["commit"]["author"]["name"] == writer[0]
    assert top["commit"]["committer"]["name"] == ruled.shop.target.user
    lines = top["commit"]["message"].splitlines()
    assert lines[0] == f"By the writer (#{number})"
    assert lines[2].startswith(f"Co-authored-by: {writer[0]} <")
    assert len(lines) == 3
