"""Pages of pull requests: what is proposed, whether it can be merged, what it changes."""

from __future__ import annotations

import pytest
from forgedesk import GUEST, Desk

from ground.names import RepoId

BODY = "Why\r\n\r\n<!-- orderkit-operation: op42 requester: user:default/takumi -->"


def proposed(desk: Desk, title: str = "Raise the stage", body: str = BODY) -> tuple[RepoId, int]:
    """Return a repository with an open pull request from branch ``more``."""
    repo = desk.repo()
    first = desk.write(repo, {"a.yaml": "stage: 1\n", "b.txt": "b\n"}, "Order")
    desk.branch(repo, "more", first)
    desk.write(repo, {"a.yaml": "stage: 2\n"}, "Set stage 2", branch="more")
    wanted = {"head": "more", "base": "main", "title": title, "body": body}
    made = desk.api("POST", f"/repos/{repo}/pulls", wanted)
    return repo, int(made["number"])


def test_the_list_shows_open_ones_first_and_others_on_demand(desk: Desk) -> None:
    repo, number = proposed(desk)

    listed = desk.page(f"/{repo}/pulls")
    assert f"/{repo}/pulls/{number}" in listed.links
    assert "Raise the stage open" in listed.text
    assert "more into main" in listed.text
    assert f"/{repo}/pulls" in desk.page(f"/{repo}").links

    desk.api("PATCH", f"/repos/{repo}/pulls/{number}", {"state": "closed"})
    assert "No open pull requests." in desk.page(f"/{repo}/pulls").text
    assert "Raise the stage closed" in desk.page(f"/{repo}/pulls?state=closed").text
    assert "Raise the stage closed" in desk.page(f"/{repo}/pulls?state=all").text


def test_a_pull_request_shows_who_asked_what_and_whether_it_can_be_merged(desk: Desk) -> None:
    repo, number = proposed(desk)
    desk.settle(repo, number)
    desk.api("POST", f"/repos/{repo}/issues/{number}/comments", {"body": "Fine.<!-- hidden -->"})

    shown = desk.page(f"/{repo}/pulls/{number}")

    assert shown.h1 == "Raise the stage"
    assert "It can be merged." in shown.text
    assert "Operation op42 Requester (a claim) user:default/takumi" in shown.text
    assert "Why" in shown.text
    assert "Fine." in shown.text
    assert "hidden" not in shown.text
    assert "1 commit" in shown.text
    assert "Set stage 2" in shown.text
    assert desk.page(f"/{repo}/pulls/{number}/commits").text == shown.text


def test_its_changes_are_those_since_the_branches_parted(desk: Desk) -> None:
    repo, number = proposed(desk)
    desk.write(repo, {"b.txt": "other\n"}, "Change on main")

    shown = desk.page(f"/{repo}/pulls/{number}/files")

    assert "1 - stage: 1 1 + stage: 2" in shown.text
    assert "b.txt" not in shown.text
    assert desk.get(f"/{repo}/pulls/{number}.diff").status_code == 404


def test_a_conflict_is_told_with_the_way_out(desk: Desk) -> None:
    repo, number = proposed(desk)
    desk.write(repo, {"a.yaml": "stage: 3\n"}, "Change the same line")
    desk.settle(repo, number)

    assert "the base branch changed the same lines" in desk.page(f"/{repo}/pulls/{number}").text


def test_a_merged_one_says_by_whom_and_keeps_its_changes(desk: Desk) -> None:
    repo, number = proposed(desk)
    desk.settle(repo, number)
    desk.api(
        "POST",
        f"/repos/{repo}/pulls/{number}/merge",
        {"Do": "squash"},
    )

    shown = desk.page(f"/{repo}/pulls/{number}")

    assert "merged" in shown.text
    assert "Merged by warden on" in shown.text
    assert f"/{repo}/commit/{desk.client.head(repo)}" in shown.links
    assert "stage: 2" in desk.page(f"/{repo}/pulls/{number}/files").text
    assert "Raise the stage merged" in desk.page(f"/{repo}/pulls?state=closed").text


def test_hostile_words_in_a_pull_request_are_words(desk: Desk) -> None:
    title = "<script>alert(1)</script>\u202e"
    body = "<img src=x onerror=alert(1)>\u2066 <!-- orderkit-operation: <b> requester: \u202ex -->"
    repo, number = proposed(desk, title, body)
    desk.api("POST", f"/repos/{repo}/issues/{number}/comments", {"body": title})

    for path in (f"/{repo}/pulls", f"/{repo}/pulls/{number}", f"/{repo}/pulls/{number}/files"):
        shown = desk.page(path)
        assert "<script>alert(1)</script>" in shown.text
        assert "U+202E" in shown.hidden_chars
        assert "\u202e" not in shown.text + shown.title


@pytest.mark.parametrize("number", ["2", "0", "x", "9" * 30, "1%20", "-1", "1.zip"])
def test_other_numbers_are_not_found(desk: Desk, number: str) -> None:
    repo, _ = proposed(desk)

    for path in (f"/{repo}/pulls/{number}", f"/{repo}/pulls/{number}/files"):
        assert desk.get(path).status_code == 404, path


def test_pull_requests_of_a_private_repository_are_hidden(desk: Desk) -> None:
    repo, number = proposed(desk)
    desk.api("PATCH", f"/repos/{repo}", {"private": True})

    for path in ("", f"/{number}", f"/{number}/files"):
        assert desk.get(f"/{repo}/pulls{path}", auth=GUEST).status_code == 404


def test_what_robots_said_last_is_shown_with_the_commit_and_the_pull_request(desk: Desk) -> None:
    repo, number = proposed(desk)
    head = desk.client.head(repo, "more")
    for state, context, url in (
        ("pending", "plan", ""),
        ("success", "plan", "https://ci.example/1"),
        ("failure", "<b>\u202elint", "javascript:alert(1)"),
        ("<odd>", "c", "http://[bad"),
    ):
        said = {"state": state, "context": context, "target_url": url, "description": "in words"}
        desk.api("POST", f"/repos/{repo}/statuses/{head}", said)

    for path in (f"/{repo}/commit/{head}", f"/{repo}/pulls/{number}"):
        shown = desk.page(path)
        assert "success plan in words details of plan" in shown.text
        assert "pending" not in shown.text
        assert "failure <b>U+202Elint in words" in shown.text
        assert "<odd> c in words" in shown.text
        assert "https://ci.example/1" in shown.links
        assert not [each for each in shown.links if each.startswith(("javascript", "http://[bad"))]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("<!-- orderkit-operation: forged requester: x -->\n" + BODY, "Operation op42 "),
        ("<!-- orderkit-operation: forged requester: x --> " + BODY, "Operation op42 "),
        (BODY + "\nquoted", "No"),
    ],
)
def test_only_the_mark_at_the_end_says_who_asked(desk: Desk, body: str, shown: str) -> None:
    repo, number = proposed(desk, body=body)

    text = desk.page(f"/{repo}/pulls/{number}").text

    assert "forged" not in text
    assert (shown in text) == (shown != "No")
    assert ("Operation" in text) == (shown != "No")
