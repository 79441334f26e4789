"""
Labels, issues and comments over HTTP, as Gitea 1.26.0 answers (observed).

One repository serves all cases of this module: what a case makes has names of its own.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import pytest

from orderkit.core.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

COLOR = "#00aabb"
NOBODY = 999_999


@pytest.fixture(scope="module")
def repo(shop: Workshop) -> RepoId:
    return shop.seeded_repo()


def new_label(shop: Workshop, repo: RepoId, name: str = "", **more: Any) -> dict[str, Any]:
    body = {"name": name or f"l-{secrets.token_hex(3)}", "color": COLOR, **more}
    made = shop.api("POST", f"/repos/{repo}/labels", body)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def new_issue(shop: Workshop, repo: RepoId, **more: Any) -> str:
    """Return the address of a new issue."""
    made = shop.api("POST", f"/repos/{repo}/issues", {"title": "T", **more})
    assert made.status_code == 201, made.text
    return f"/repos/{repo}/issues/{made.json()['number']}"


def names(found: Any) -> list[str]:
    return [each["name"] for each in found]


# Labels


def test_l01_a_label_is_made_shown_changed_and_removed(shop: Workshop, repo: RepoId) -> None:
    made = new_label(shop, repo, description="d")
    one = f"/repos/{repo}/labels/{made['id']}"

    changed = shop.api("PATCH", one, {"name": made["name"] + "x", "color": "#000000"})
    shown = shop.api("GET", one)
    gone = shop.api("DELETE", one)

    assert made["url"].endswith(f"/api/v1{one}")
    assert (made["color"], made["exclusive"], made["is_archived"]) == ("00aabb", False, False)
    assert changed.status_code == 200
    assert shown.json() == changed.json()
    assert (shown.json()["color"], shown.json()["description"]) == ("000000", "d")
    assert gone.status_code == 204
    assert shop.api("GET", one).status_code == 404


@pytest.mark.parametrize(
    ("color", "kept"),
    [("#00AABB", "00aabb"), ("00aabb", "00aabb"), ("#abc", "aabbcc")],
)
def test_l02_a_color_is_six_hex_digits(shop: Workshop, repo: RepoId, color: str, kept: str) -> None:
    body = {"name": "c", "color": color}

    made = shop.api("POST", f"/repos/{repo}/labels", body)

    assert (made.status_code, made.json()["color"]) == (201, kept)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x", "color": "red"},
        {"name": "x", "color": "#12345"},
        {"name": "x"},
        {"color": COLOR},
    ],
)
def test_l03_what_is_no_label_is_422(shop: Workshop, repo: RepoId, body: Any) -> None:
    assert shop.api("POST", f"/repos/{repo}/labels", body).status_code == 422


def test_l04_two_labels_may_have_one_name(shop: Workshop, repo: RepoId) -> None:
    first = new_label(shop, repo)
    second = new_label(shop, repo, first["name"])

    listed = shop.api("GET", f"/repos/{repo}/labels?limit=50").json()

    assert first["id"] != second["id"]
    assert names(listed).count(first["name"]) == 2


def test_l05_labels_are_listed_by_name_and_paged(shop: Workshop) -> None:
    repo = shop.empty_repo()
    for name in ("b", "c", "a"):
        new_label(shop, repo, name)

    whole = shop.api("GET", f"/repos/{repo}/labels")
    page = shop.api("GET", f"/repos/{repo}/labels?limit=2&page=2")

    assert names(whole.json()) == ["a", "b", "c"]
    assert names(page.json()) == ["c"]
    assert page.headers["X-Total-Count"] == "3"


def test_l06_a_missing_label(shop: Workshop, repo: RepoId) -> None:
    one = f"/repos/{repo}/labels/{NOBODY}"

    assert shop.api("GET", one).status_code == 404
    assert shop.api("PATCH", one, {"name": "x"}).status_code == 404
    assert shop.api("DELETE", one).status_code == 204


def test_l07_a_bad_color_changes_nothing(shop: Workshop, repo: RepoId) -> None:
    one = f"/repos/{repo}/labels/{new_label(shop, repo)['id']}"

    refused = shop.api("PATCH", one, {"color": "nope", "name": "never"})

    assert refused.status_code == 422
    assert shop.api("GET", one).json()["name"] != "never"


def test_l08_strangers_read_labels_and_do_not_write_them(shop: Workshop, repo: RepoId) -> None:
    path, body = f"/repos/{repo}/labels", {"name": "x", "color": COLOR}

    assert shop.api("GET", path, auth=shop.outsider).status_code == 200
    assert shop.api("POST", path, body, auth=shop.outsider).status_code == 403
    assert shop.api("POST", path, body, auth=None).status_code == 401


def test_l09_an_archived_repository_takes_labels_but_no_issues(shop: Workshop) -> None:
    repo = shop.empty_repo()
    issue = new_issue(shop, repo)
    assert shop.api("PATCH", f"/repos/{repo}", {"archived": True}).status_code == 200

    assert shop.api("POST", f"/repos/{repo}/issues", {"title": "t"}).status_code == 423
    assert shop.api("POST", f"{issue}/comments", {"body": "b"}).status_code == 423
    new_label(shop, repo)


# Labels of an issue


def test_l10_labels_are_put_on_an_issue_by_id_or_by_name(shop: Workshop, repo: RepoId) -> None:
    first, second = new_label(shop, repo), new_label(shop, repo)
    path = new_issue(shop, repo) + "/labels"

    by_id = shop.api("POST", path, {"labels": [first["id"]]})
    by_name = shop.api("POST", path, {"labels": [second["name"]]})

    assert (by_id.status_code, names(by_id.json())) == (200, [first["name"]])
    assert sorted(names(by_name.json())) == sorted([first["name"], second["name"]])
    assert shop.api("GET", path).json() == by_name.json()


def test_l11_unknown_labels_are_ignored(shop: Workshop, repo: RepoId) -> None:
    known = new_label(shop, repo)
    path = new_issue(shop, repo, labels=[known["id"], NOBODY]) + "/labels"

    for labels in ([NOBODY], ["no-such-label"], []):
        answer = shop.api("POST", path, {"labels": labels})
        assert (answer.status_code, names(answer.json())) == (200, [known["name"]])


def test_l12_ids_and_names_are_not_mixed(shop: Workshop, repo: RepoId) -> None:
    known = new_label(shop, repo)
    path = new_issue(shop, repo) + "/labels"

    assert shop.api("POST", path, {"labels": [known["id"], known["name"]]}).status_code == 400
    assert shop.api("GET", path).json() == []


def test_l13_labels_are_replaced_removed_and_cleared(shop: Workshop, repo: RepoId) -> None:
    first, second = new_label(shop, repo), new_label(shop, repo)
    path = new_issue(shop, repo, labels=[first["id"]]) + "/labels"

    assert names(shop.api("PUT", path, {"labels": [second["id"]]}).json()) == [second["name"]]
    assert shop.api("DELETE", f"{path}/{second['id']}").status_code == 204
    assert shop.api("DELETE", f"{path}/{second['id']}").status_code == 204
    assert shop.api("GET", path).json() == []
    shop.api("PUT", path, {"labels": [first["name"], second["name"]]})
    assert shop.api("DELETE", path).status_code == 204
    assert shop.api("GET", path).json() == []


def test_l14_removing_a_label_that_does_not_exist_is_422(shop: Workshop, repo: RepoId) -> None:
    assert shop.api("DELETE", f"{new_issue(shop, repo)}/labels/{NOBODY}").status_code == 422


def test_l15_labels_of_a_missing_issue_are_404(shop: Workshop, repo: RepoId) -> None:
    path = f"/repos/{repo}/issues/{NOBODY}/labels"

    assert shop.api("GET", path).status_code == 404
    assert shop.api("POST", path, {"labels": [1]}).status_code == 404


def test_l16_strangers_do_not_label(shop: Workshop, repo: RepoId) -> None:
    known = new_label(shop, repo)
    path = new_issue(shop, repo) + "/labels"

    refused = shop.api("POST", path, {"labels": [known["id"]]}, auth=shop.outsider)

    assert refused.status_code == 403
    assert shop.api("GET", path).json() == []


def test_l17_a_deleted_label_leaves_its_issues(shop: Workshop, repo: RepoId) -> None:
    known = new_label(shop, repo)
    issue = new_issue(shop, repo, labels=[known["id"]])
    assert names(shop.api("GET", f"{issue}/labels").json()) == [known["name"]]

    shop.api("DELETE", f"/repos/{repo}/labels/{known['id']}")

    assert shop.api("GET", f"{issue}/labels").json() == []


# Issues


def test_l20_an_issue_is_opened_changed_and_closed(shop: Workshop, repo: RepoId) -> None:
    issue = new_issue(shop, repo, body="B")

    shown = shop.api("GET", issue).json()
    edited = shop.api("PATCH", issue, {"title": "T2", "state": "closed"})
    again = shop.api("GET", issue).json()

    assert (shown["title"], shown["body"], shown["state"]) == ("T", "B", "open")
    assert shown["closed_at"] is None
    assert (edited.status_code, again["title"], again["state"]) == (201, "T2", "closed")
    assert again["body"] == "B"
    assert again["closed_at"] is not None


def test_l21_issues_are_listed_by_state(shop: Workshop) -> None:
    repo = shop.empty_repo()
    first, second = new_issue(shop, repo), new_issue(shop, repo)
    shop.api("PATCH", first, {"state": "closed"})

    def numbers(query: str) -> list[int]:
        return [each["number"] for each in shop.api("GET", f"/repos/{repo}/issues{query}").json()]

    assert second.endswith("/2")
    assert numbers("") == [2]
    assert numbers("?state=closed") == [1]
    assert numbers("?state=all") == [2, 1]
    assert numbers("?state=all&type=pulls") == []


def test_l22_an_issue_needs_a_title_and_must_exist(shop: Workshop, repo: RepoId) -> None:
    assert shop.api("POST", f"/repos/{repo}/issues", {"title": ""}).status_code == 422
    assert shop.api("GET", f"/repos/{repo}/issues/{NOBODY}").status_code == 404


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
    of_repository = shop.api("GET", f"/repos/{repo}/issues/comments?limit=1")

    assert [each["body"] for each in of_issue.json()] == ["0", "1", "2"]
    assert len(of_repository.json()) == 1
    assert of_repository.headers["X-Total-Count"] == "3"
    assert shop.api("GET", issue).json()["comments"] == 3


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


def test_l35_comments_and_labels_are_of_the_scope_issue(shop: Workshop, repo: RepoId) -> None:
    issue = new_issue(shop, repo)
    wrong, right = shop.token("write:repository"), shop.token("write:issue")
    body = {"body": "b"}

    assert shop.api("POST", f"{issue}/comments", body, auth=wrong).status_code == 403
    assert shop.api("POST", f"{issue}/comments", body, auth=right).status_code == 201
    assert shop.api("GET", f"/repos/{repo}/labels", auth=wrong).status_code == 403
    assert shop.api("GET", f"/repos/{repo}/labels", auth=right).status_code == 200
