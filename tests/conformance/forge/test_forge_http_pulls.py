"""
Pull requests over HTTP, as Gitea 1.26.0 answers (observed): open, find, change, close.

Merging is in the module beside it. One repository serves the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.conformance.forge.pullcases import Pulls, Refused

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

SAME = "There are no changes between the head and the base"


@pytest.fixture(scope="module")
def pulls(shop: Workshop) -> Pulls:
    found = Pulls(shop, shop.seeded_repo())
    found.branch("taken")
    assert found.open("taken") == 1
    return found


MISSING = r"ref \"none\" does not exist"
GOOD = {"head": "other", "base": "main", "title": "t"}
REFUSED = [
    Refused("P102", "without a head", {"base": "main", "title": "t"}, 422, "[Head]: Required"),
    Refused("P103", "without a base", {"head": "taken", "title": "t"}, 422, "[Base]: Required"),
    Refused("P104", "without a title", {"head": "taken", "base": "main"}, 422, "[Title]: Required"),
    Refused("P105", "head is base", {"head": "main", "base": "main", "title": "t"}, 422, SAME),
    Refused("P106", "unknown head", {"head": "none", "base": "main", "title": "t"}, 404, MISSING),
    Refused("P107", "unknown base", {"head": "taken", "base": "none", "title": "t"}, 404, MISSING),
    Refused(
        "P108",
        "a head of nobody",
        {"head": "nobody-x:taken", "base": "main", "title": "t"},
        404,
        "not found",
    ),
    Refused(
        "P109",
        "the same again",
        {"head": "taken", "base": "main", "title": "u"},
        409,
        "pull request already exists for these targets",
    ),
    Refused(
        "P110",
        "the same again as owner:branch",
        {"head": "{owner}:taken", "base": "main", "title": "u"},
        409,
        "head_branch: taken",
    ),
    Refused("P139", "a title that is not text", GOOD | {"title": 3}, 422, "title"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.id} {case.reason}")
def test_a_pull_request_that_cannot_be_opened(pulls: Pulls, case: Refused) -> None:
    filled = {
        key: each.replace("{owner}", pulls.repo.owner).replace("{sha}", pulls.head("taken"))
        if isinstance(each, str)
        else each
        for key, each in case.body.items()
    }

    answer = pulls.api("POST", "/pulls", filled)

    assert answer.status_code == case.status
    assert case.text in answer.text


def test_p101_a_new_pull_request_shows_its_branches_and_extent(pulls: Pulls) -> None:
    base, head = pulls.head(), pulls.branch("p101")

    number = pulls.open("p101", title="Bring p101", body="why")
    found = pulls.get(number)

    assert (found["title"], found["body"], found["state"]) == ("Bring p101", "why", "open")
    assert (found["head"]["ref"], found["head"]["label"]) == ("p101", "p101")
    assert (found["head"]["sha"], found["base"]["ref"], found["base"]["sha"]) == (
        head,
        "main",
        base,
    )
    assert found["base"]["repo"]["full_name"] == str(pulls.repo)
    assert (found["merge_base"], found["draft"]) == (base, False)
    assert (found["merged"], found["merged_at"], found["merge_commit_sha"]) == (False, None, None)
    assert found["html_url"] == f"{pulls.shop.target.url}/{pulls.repo}/pulls/{number}"
    assert found["url"] == found["html_url"]
    assert found["user"]["login"] == pulls.shop.target.user


def test_p112_strangers_see_but_do_not_change(shop: Workshop, pulls: Pulls) -> None:
    assert pulls.api("GET", "/pulls/1", auth=shop.outsider).status_code == 200
    assert pulls.api("GET", "/pulls/1", auth=None).status_code == 200
    assert pulls.api("PATCH", "/pulls/1", {"title": "x"}, auth=shop.outsider).status_code == 403
    assert pulls.api("PATCH", "/pulls/1", {"title": "x"}, auth=None).status_code == 401
    assert pulls.api("POST", "/pulls", {}, auth=None).status_code == 401
    assert pulls.try_merge(1, auth=None).status_code == 401
    denied = pulls.try_merge(1, auth=shop.outsider)
    assert (denied.status_code, denied.json()["message"]) == (405, "User not allowed to merge PR")


def test_p113_a_reader_may_not_open_one(shop: Workshop, pulls: Pulls) -> None:
    body = {"head": "other", "base": "main", "title": "by a reader"}

    assert pulls.api("POST", "/pulls", body, auth=shop.outsider).status_code == 403


def test_p114_addresses_of_what_is_not_there_are_404(pulls: Pulls) -> None:
    reads = ("", "/merge", "/files", "/commits", ".diff", ".patch")

    assert {pulls.api("GET", f"/pulls/9999{each}").status_code for each in reads} == {404}
    assert pulls.try_merge(9999).status_code == 404
    assert pulls.edit(9999, title="x").status_code == 404
    assert pulls.api("POST", "/pulls/9999/update").status_code == 404
    assert pulls.api("GET", "/pulls/main/none").status_code == 404


def test_p115_lists_are_narrowed_sorted_and_paged(shop: Workshop) -> None:
    own = Pulls(shop, shop.seeded_repo())
    for name in ("a", "b", "c"):
        own.branch(name)
    numbers = [own.open("a"), own.open("b"), own.open("c", base="b")]
    assert own.edit(numbers[0], state="closed").status_code == 201

    def listed(query: str) -> list[int]:
        return [each["number"] for each in own.api("GET", f"/pulls{query}").json()]

    assert listed("") == [3, 2, 1]
    assert listed("?state=open") == [3, 2]
    assert listed("?state=closed") == [1]
    assert listed("?state=open&base_branch=b") == [3]
    assert listed("?base=b") == [3, 2, 1], "the filter is called base_branch"
    assert listed("?head=a") == [3, 2, 1], "there is no filter by head"
    page = own.api("GET", "/pulls?limit=2&page=2")
    assert [each["number"] for each in page.json()] == [1]
    assert page.headers["X-Total-Count"] == "3"


def test_p116_base_and_head_find_the_first_one_even_if_it_is_closed(pulls: Pulls) -> None:
    """So an open one must be looked for in the list."""
    pulls.branch("p116")
    first = pulls.open("p116")
    assert pulls.edit(first, state="closed").status_code == 201
    second = pulls.open("p116")

    by_branches = pulls.api("GET", "/pulls/main/p116").json()["number"]
    by_owner = pulls.api("GET", f"/pulls/main/{pulls.repo.owner}:p116").json()["number"]

    assert second > first
    assert (by_branches, by_owner) == (first, first)


def test_p117_title_body_and_state_change(pulls: Pulls) -> None:
    pulls.branch("p117")
    number = pulls.open("p117")

    changed = pulls.edit(number, title="New title", body="New body")
    closed = pulls.edit(number, state="closed")

    assert changed.status_code == 201
    assert (changed.json()["title"], changed.json()["body"]) == ("New title", "New body")
    assert (closed.status_code, closed.json()["state"]) == (201, "closed")
    assert closed.json()["closed_at"]


def test_p118_a_closed_one_is_not_merged_and_can_be_opened_again(pulls: Pulls) -> None:
    pulls.branch("p118")
    number = pulls.open("p118")
    assert pulls.edit(number, state="closed").status_code == 201

    refused = pulls.try_merge(number)
    reopened = pulls.edit(number, state="open")

    assert refused.status_code == 404
    assert (reopened.status_code, reopened.json()["state"]) == (201, "open")
    assert reopened.json()["closed_at"] is None


def test_p119_an_unknown_state_is_412(pulls: Pulls) -> None:
    answer = pulls.edit(1, state="paused")

    assert (answer.status_code, answer.json()["message"]) == (412, "unknown state: paused")


@pytest.mark.parametrize("title", ["WIP: x", "wip:x", "[WIP] x"])
def test_p120_a_title_makes_a_draft_which_is_not_merged(pulls: Pulls, title: str) -> None:
    number = 1

    changed = pulls.edit(number, title=title).json()
    refused = pulls.try_merge(number)

    assert (changed["draft"], changed["mergeable"]) == (True, False)
    assert (refused.status_code, refused.json()["message"]) == (
        405,
        "Work in progress PRs cannot be merged",
    )
    assert pulls.edit(number, title="Ready").json()["draft"] is False


def test_p121_another_base(pulls: Pulls) -> None:
    pulls.branch("p121")
    pulls.branch("p121-base")
    number = pulls.open("p121")

    moved = pulls.edit(number, base="p121-base")
    missing = pulls.edit(number, base="none")

    assert (moved.status_code, moved.json()["base"]["ref"]) == (201, "p121-base")
    assert (missing.status_code, missing.json()["message"]) == (404, "new base 'none' not exist")
    pulls.open("p121")
    assert pulls.edit(number, base="main").status_code == 409, "there is an open one"


def test_p125_a_push_to_the_head_is_seen(pulls: Pulls) -> None:
    pulls.branch("p125")
    number = pulls.open("p125")

    new = pulls.commit("p125", "more", "1\n")

    pulls.shop.eventually(lambda: pulls.get(number)["head"]["sha"] == new)
    pulls.settled(number, mergeable=True)


def test_p126_a_conflict_appears_and_goes_with_the_pushes(pulls: Pulls) -> None:
    pulls.commit("main", "p126.txt", "theirs\n", new="p126")
    number = pulls.open("p126")
    pulls.settled(number, mergeable=True)

    pulls.commit("main", "p126.txt", "ours\n")
    pulls.settled(number, mergeable=False)
    refused = pulls.try_merge(number)
    pulls.commit("p126", "p126.txt", "ours\n")
    pulls.settled(number, mergeable=True)

    assert (refused.status_code, refused.json()["message"]) == (405, "Please try again later")


def test_p127_a_deleted_head_closes_and_the_head_is_remembered(pulls: Pulls) -> None:
    sha = pulls.branch("p127")
    number = pulls.open("p127")

    assert pulls.api("DELETE", "/branches/p127").status_code == 204

    pulls.shop.eventually(lambda: pulls.get(number)["state"] == "closed")
    found = pulls.get(number)
    assert (found["head"]["ref"], found["head"]["sha"]) == (f"refs/pull/{number}/head", sha)
    assert (found["head"]["label"], found["merged"]) == ("p127", False)


def test_p128_a_deleted_base_sends_it_to_the_default_branch(pulls: Pulls) -> None:
    pulls.branch("p128-base")
    pulls.branch("p128", base="p128-base")
    number = pulls.open("p128", base="p128-base")

    assert pulls.api("DELETE", "/branches/p128-base").status_code == 204

    pulls.shop.eventually(lambda: pulls.get(number)["base"]["ref"] == "main")
    assert pulls.get(number)["state"] == "open"


def test_p130_the_head_of_a_pull_request_can_be_fetched(shop: Workshop, pulls: Pulls) -> None:
    sha = pulls.branch("p130")
    number = pulls.open("p130")
    copy = shop.clone(pulls.repo)

    fetched = shop.git("fetch", "-q", "origin", f"refs/pull/{number}/head", cwd=copy)

    assert fetched.returncode == 0, fetched.stderr
    assert shop.git("rev-parse", "FETCH_HEAD", cwd=copy).stdout.strip() == sha


def test_p131_it_is_an_issue_with_a_number_of_the_same_sequence(pulls: Pulls) -> None:
    pulls.branch("p131")
    issue = pulls.api("POST", "/issues", {"title": "an issue"}).json()["number"]
    number = pulls.open("p131")

    commented = pulls.api("POST", f"/issues/{number}/comments", {"body": "hello"})

    assert number == issue + 1
    assert pulls.api("GET", f"/pulls/{issue}").status_code == 404
    assert commented.status_code == 201
    assert pulls.get(number)["comments"] == 1


def test_p132_an_archive_takes_none(shop: Workshop) -> None:
    own = Pulls(shop, shop.seeded_repo())
    own.branch("x")
    number = own.open("x")
    shop.forge.archive(own.repo)

    assert own.api("POST", "/pulls", {"head": "x"}).status_code == 423
    assert own.try_merge(number).status_code == 423
    assert own.get(number)["state"] == "open"


def test_p133_a_private_repository_hides_them(shop: Workshop) -> None:
    own = Pulls(shop, shop.seeded_repo(private=True))
    own.branch("x")
    number = own.open("x")

    assert own.api("GET", f"/pulls/{number}", auth=shop.outsider).status_code == 404
    assert own.api("GET", "/pulls", auth=shop.outsider).status_code == 404
    body = {"head": "x", "base": "main", "title": "t"}
    assert own.api("POST", "/pulls", body, auth=shop.outsider).status_code == 404


def test_p134_scopes_of_tokens(shop: Workshop, pulls: Pulls) -> None:
    reader, writer = shop.token("read:repository"), shop.token("write:repository")

    assert pulls.api("GET", "/pulls/1", auth=reader).status_code == 200
    assert pulls.api("PATCH", "/pulls/1", {"title": "r"}, auth=reader).status_code == 403
    assert pulls.api("PATCH", "/pulls/1", {"title": "w"}, auth=writer).status_code == 201
