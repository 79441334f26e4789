"""
Issues and comments over HTTP, as Gitea 1.26.0 answers (observed).

One repository serves all cases of this module: what a case makes has names of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ground.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

NOBODY = 999_999


@pytest.fixture(scope="module")
def repo(shop: Workshop) -> RepoId:
    return shop.seeded_repo()


def new_issue(shop: Workshop, repo: RepoId, **more: Any) -> str:
    """Return the address of a new issue."""
    made = shop.api("POST", f"/repos/{repo}/issues", {"title": "T", **more})
    assert made.status_code == 201, made.text
    return f"/repos/{repo}/issues/{made.json()['number']}"


# Issues


def test_l20_an_issue_is_opened_under_the_next_number(shop: Workshop) -> None:
    repo = shop.empty_repo()

    made = shop.api("POST", f"/repos/{repo}/issues", {"title": "T", "body": "B"}).json()

    assert (made["number"], made["title"], made["body"], made["state"]) == (1, "T", "B", "open")
    assert made["closed_at"] is None
    assert new_issue(shop, repo).endswith("/2")


def test_l22_an_issue_needs_a_title(shop: Workshop, repo: RepoId) -> None:
    assert shop.api("POST", f"/repos/{repo}/issues", {"title": ""}).status_code == 422


# Comments


def test_l30_a_comment_is_made_changed_and_removed(shop: Workshop, repo: RepoId) -> None:
    issue = new_issue(shop, repo)
    text = "hello\n\n<!-- marker: 1 -->"

    made = shop.api("POST", f"{issue}/comments", {"body": text})
    one = f"/repos/{repo}/issues/comments/{made.json()['id']}"
    edited = shop.api("PATCH", one, {"body": "changed"})
    listed = shop.api("GET", f"{issue}/comments")
    gone = shop.api("DELETE", one)

    assert (made.status_code, made.json()["body"]) == (201, text)
    assert made.json()["user"]["login"] == shop.target.user
    assert (edited.status_code, edited.json()["body"]) == (200, "changed")
    assert [each["body"] for each in listed.json()] == ["changed"]
    assert gone.status_code == 204
    assert shop.api("GET", one).status_code == 404
    assert shop.api("DELETE", one).status_code == 404


def test_l31_a_missing_issue_breaks_its_comments(shop: Workshop, repo: RepoId) -> None:
    """1.26.0: 500, not 404."""
    path = f"/repos/{repo}/issues/{NOBODY}/comments"

    assert shop.api("GET", path).status_code == 500
    assert shop.api("POST", path, {"body": "b"}).status_code == 500


@pytest.mark.parametrize("body", [{}, {"body": ""}])
def test_l32_a_comment_needs_a_text(shop: Workshop, repo: RepoId, body: Any) -> None:
    assert shop.api("POST", f"{new_issue(shop, repo)}/comments", body).status_code == 422


def test_l33_comments_of_an_issue_come_all_at_once(shop: Workshop) -> None:
    repo = shop.empty_repo()
    issue = new_issue(shop, repo)
    for number in range(3):
        shop.api("POST", f"{issue}/comments", {"body": str(number)})

    of_issue = shop.api("GET", f"{issue}/comments?limit=1")

    assert [each["body"] for each in of_issue.json()] == ["0", "1", "2"]


def test_l34_everybody_comments_and_changes_only_the_own(shop: Workshop, repo: RepoId) -> None:
    issue = new_issue(shop, repo)
    mine = shop.api("POST", f"{issue}/comments", {"body": "mine"}).json()["id"]
    theirs = shop.api("POST", f"{issue}/comments", {"body": "b"}, auth=shop.outsider)
    one, other = (f"/repos/{repo}/issues/comments/{each}" for each in (mine, theirs.json()["id"]))

    assert theirs.status_code == 201
    assert shop.api("PATCH", one, {"body": "x"}, auth=shop.outsider).status_code == 403
    assert shop.api("DELETE", one, auth=shop.outsider).status_code == 403
    assert shop.api("PATCH", other, {"body": "x"}, auth=shop.outsider).status_code == 200
    assert shop.api("DELETE", other).status_code == 204
    assert shop.api("POST", f"{issue}/comments", {"body": "b"}, auth=None).status_code == 401


def test_l35_comments_and_issues_are_of_the_scope_issue(shop: Workshop, repo: RepoId) -> None:
    issue = new_issue(shop, repo)
    wrong, right = shop.token("write:repository"), shop.token("write:issue")
    body = {"body": "b"}

    assert shop.api("POST", f"{issue}/comments", body, auth=wrong).status_code == 403
    assert shop.api("POST", f"{issue}/comments", body, auth=right).status_code == 201
    assert shop.api("GET", f"{issue}/comments", auth=wrong).status_code == 403
    assert shop.api("GET", f"{issue}/comments", auth=right).status_code == 200
