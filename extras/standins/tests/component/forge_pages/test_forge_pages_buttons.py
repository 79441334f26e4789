"""Buttons of a pull request's page: who has them, and that they do what the API does."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from forgedesk import GUEST, OWNER, Desk
from pagereader import Page

from ground.names import RepoId

AUTHOR, WRITER, READER = (
    ("author", "author-pw1"),
    ("writer", "writer-pw1"),
    ("reader", "reader-pw"),
)
JUDGE = ["approve", "reject", "comment"]


@pytest.fixture(scope="module", autouse=True)
def people(desk: Desk) -> None:
    for person in (AUTHOR, WRITER, READER):
        desk.forge.ensure_user(*person)
    desk.forge.ensure_user("viewer", "viewer", read_only=True)


def proposed(desk: Desk, *, protected: bool = False, private: bool = False) -> tuple[RepoId, int]:
    """Return a repository of which AUTHOR has proposed a change; WRITER may write, too."""
    repo = desk.repo(private=private)
    desk.branch(repo, "more", desk.write(repo, {"a.yaml": "stage: 1\n"}))
    desk.write(repo, {"a.yaml": "stage: 2\n"}, branch="more")
    for (name, _), right in ((AUTHOR, "write"), (WRITER, "write"), (READER, "read")):
        desk.api("PUT", f"/repos/{repo}/collaborators/{name}", {"permission": right})
    if protected:
        rule = {"rule_name": "main", "required_approvals": 1}
        desk.api("POST", f"/repos/{repo}/branch_protections", rule)
    made = requests.post(
        f"{desk.url}/api/v1/repos/{repo}/pulls",
        json={"head": "more", "base": "main", "title": "More"},
        auth=AUTHOR,
        timeout=90,
    )
    assert made.ok, made.text
    number = int(made.json()["number"])
    desk.settle(repo, number)
    return repo, number


def shown(desk: Desk, place: tuple[RepoId, int], auth: tuple[str, str] | None) -> Page:
    return desk.page(f"/{place[0]}/pulls/{place[1]}", auth=auth)


def state(desk: Desk, place: tuple[RepoId, int]) -> dict[str, Any]:
    pull: dict[str, Any] = desk.api("GET", f"/repos/{place[0]}/pulls/{place[1]}")
    return pull


@pytest.mark.parametrize(
    ("auth", "buttons"),
    [
        (None, []),
        (("viewer", "viewer"), []),
        (READER, JUDGE),
        (GUEST, JUDGE),
        (WRITER, ["merge", *JUDGE]),
        (AUTHOR, ["merge", "comment"]),
        (OWNER, ["merge", *JUDGE]),
    ],
    ids=["nobody", "who may only read", "reader", "any user", "writer", "author", "admin"],
)
def test_buttons_are_for_those_who_may(
    desk: Desk, auth: tuple[str, str] | None, buttons: list[str]
) -> None:
    assert shown(desk, proposed(desk), auth).buttons == buttons


def test_a_token_that_may_only_read_gets_no_button(desk: Desk) -> None:
    place = proposed(desk)
    found = desk.forge.accounts.find(WRITER[0])
    assert found is not None
    _, secret = desk.forge.accounts.create_token(found, "reads", ("read:repository",))

    assert shown(desk, place, (WRITER[0], secret)).buttons == []


def test_what_cannot_be_merged_has_no_merge_button(desk: Desk) -> None:
    conflicting, archived, closed, draft = (proposed(desk) for _ in range(4))
    desk.write(conflicting[0], {"a.yaml": "stage: 3\n"})
    desk.settle(*conflicting)
    desk.api("PATCH", f"/repos/{archived[0]}", {"archived": True})
    desk.api("PATCH", f"/repos/{closed[0]}/pulls/{closed[1]}", {"state": "closed"})
    desk.api("PATCH", f"/repos/{draft[0]}/pulls/{draft[1]}", {"title": "WIP: More"})

    assert shown(desk, conflicting, WRITER).buttons == JUDGE
    assert shown(desk, draft, WRITER).buttons == JUDGE
    assert "work in progress, so it cannot be merged" in shown(desk, draft, WRITER).text
    assert shown(desk, archived, WRITER).buttons == []
    assert shown(desk, closed, WRITER).buttons == []


def test_a_protected_branch_is_merged_by_a_button_after_an_approval(desk: Desk) -> None:
    place = proposed(desk, protected=True)
    before = shown(desk, place, AUTHOR)
    assert before.buttons == ["comment"]
    assert "It cannot be merged yet: does not have enough approvals." in before.text

    page = shown(desk, place, WRITER)
    assert desk.press(page, "approve", WRITER, content="Looks **good**") == 303

    after = shown(desk, place, AUTHOR)
    assert "writer approved it" in after.text
    assert "Looks good" in after.text
    assert after.buttons == ["merge", "comment"]
    assert desk.press(after, "merge", AUTHOR) == 303
    assert state(desk, place)["merged_by"]["login"] == "author"
    assert "Merged by author" in shown(desk, place, None).text


def test_only_who_may_merge_into_a_protected_branch_has_the_button(desk: Desk) -> None:
    place = proposed(desk)
    only = {
        "rule_name": "main",
        "enable_merge_whitelist": True,
        "merge_whitelist_usernames": [OWNER[0]],
    }
    desk.api("POST", f"/repos/{place[0]}/branch_protections", only)

    assert shown(desk, place, WRITER).buttons == JUDGE
    assert shown(desk, place, OWNER).buttons == ["merge", *JUDGE]


def test_changes_are_asked_for_with_words(desk: Desk) -> None:
    place = proposed(desk)
    page = shown(desk, place, WRITER)

    assert desk.press(page, "reject", WRITER) == 422
    assert desk.press(page, "reject", WRITER, content="Too <b>fast</b>") == 303
    assert desk.press(page, "comment", WRITER, content="Or not?") == 303

    text = shown(desk, place, None).text
    assert "writer asked for changes" in text
    assert "Too <b>fast</b>" in text
    assert "writer commented" in text


@pytest.mark.parametrize("value", ["merge", "approve"])
def test_a_push_after_the_page_was_loaded_is_a_refusal(desk: Desk, value: str) -> None:
    place = proposed(desk)
    page = shown(desk, place, WRITER)
    desk.write(place[0], {"a.yaml": "stage: 9\n"}, branch="more")
    desk.settle(*place)

    assert desk.press(page, value, WRITER) == 409
    assert not state(desk, place)["merged"]
    assert "approved" not in shown(desk, place, None).text


@pytest.mark.parametrize("value", ["merge", "approve"])
def test_a_form_is_for_its_reader_and_its_pull_request_only(desk: Desk, value: str) -> None:
    place, other = proposed(desk), proposed(desk)
    mine, theirs = shown(desk, place, WRITER), shown(desk, other, WRITER)
    (form,) = [form for form in mine.forms if value in form.buttons]
    (foreign,) = [form for form in theirs.forms if value in form.buttons]
    fields = {**form.fields, form.buttons[value]: value}

    assert desk.post(form.action, fields, None) == 401
    assert desk.post(form.action, fields, OWNER) == 403
    assert desk.post(form.action, {**fields, "_csrf": ""}, WRITER) == 403
    assert desk.post(form.action, {**fields, "_csrf": "\u202e"}, WRITER) == 403
    assert desk.post(form.action, {**fields, "_csrf": foreign.fields["_csrf"]}, WRITER) == 403
    assert desk.post(form.action, {**fields, **{str(n): "" for n in range(50)}}, WRITER) == 422
    elsewhere = requests.post(
        desk.url + form.action,
        data=fields,
        auth=WRITER,
        headers={"Sec-Fetch-Site": "same-site"},
        timeout=90,
    )
    assert (elsewhere.status_code, "another site" in elsewhere.text) == (403, True)
    assert not state(desk, place)["merged"]
    assert desk.post(form.action, fields, WRITER) == 303


def test_a_form_of_somebody_who_may_not_is_refused_like_the_api(desk: Desk) -> None:
    place = proposed(desk)
    author, reader = shown(desk, place, AUTHOR), shown(desk, place, READER)
    (review,) = [form for form in author.forms if "comment" in form.buttons]
    (readers,) = [form for form in reader.forms if "comment" in form.buttons]
    merge = {"do": "merge", "_csrf": readers.fields["_csrf"]}
    merge["head_commit_id"] = readers.fields["commit_id"]
    address = f"/{place[0]}/pulls/{place[1]}/merge"

    assert desk.post(review.action, {**review.fields, "type": "approve"}, AUTHOR) == 422
    assert desk.post(review.action, {**review.fields, "type": "odd"}, AUTHOR) == 422
    assert desk.post(address, merge, READER) == 405
    assert desk.post(f"/{place[0]}/pulls/99/merge", merge, READER) == 404
    assert desk.get(address).status_code in (404, 405)
    assert not state(desk, place)["merged"]


def test_a_hidden_pull_request_cannot_be_reviewed(desk: Desk) -> None:
    place = proposed(desk, private=True)
    page = shown(desk, place, WRITER)

    assert desk.press(page, "approve", GUEST) == 404
