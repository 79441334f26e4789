"""What webhooks hear of pull requests and statuses, as Gitea 1.26.0 tells it (observed)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hooklistener import Arrived, Listener, listening
from tests.conformance.forge.pullcases import Pulls

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

EVENTS = ["pull_request", "pull_request_label", "pull_request_sync", "status"]


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


@pytest.fixture(scope="module")
def pulls(shop: Workshop, listener: Listener) -> Pulls:
    found = Pulls(shop, shop.seeded_repo())
    config = {"url": f"{listener.url}/all", "content_type": "json"}
    body = {"type": "gitea", "active": True, "events": EVENTS, "config": config}
    assert found.api("POST", "/hooks", body).status_code == 201
    return found


def heard(listener: Listener, number: int, action: str, *, count: int = 1) -> list[dict[str, Any]]:
    """Wait for news of a pull request."""

    def wanted(arrived: Arrived) -> bool:
        said = arrived.data
        return said.get("number") == number and said.get("action") == action

    return [each.data for each in listener.wait("/all", wanted, count=count)]


def test_h101_a_pull_request_that_opens_closes_and_opens_again(
    pulls: Pulls, listener: Listener
) -> None:
    pulls.branch("h101")
    number = pulls.open("h101")
    pulls.edit(number, state="closed")
    pulls.edit(number, state="open")

    (opened,) = heard(listener, number, "opened")
    (closed,) = heard(listener, number, "closed")
    heard(listener, number, "reopened")
    assert opened["pull_request"]["head"]["ref"] == "h101"
    assert opened["repository"]["full_name"] == str(pulls.repo)
    assert opened["sender"]["login"] == pulls.shop.target.user
    assert (closed["pull_request"]["state"], closed["pull_request"]["merged"]) == ("closed", False)


def test_h102_a_merge_is_closed_and_merged(pulls: Pulls, listener: Listener) -> None:
    pulls.branch("h102")
    number = pulls.open("h102")
    assert pulls.merge(number).status_code == 200

    (closed,) = heard(listener, number, "closed")
    assert closed["pull_request"]["merged"] is True
    assert closed["pull_request"]["merge_commit_sha"] == pulls.get(number)["merge_commit_sha"]


def test_h103_new_words_say_what_the_old_ones_were(pulls: Pulls, listener: Listener) -> None:
    pulls.branch("h103")
    number = pulls.open("h103", title="Old", body="old text")
    pulls.edit(number, title="New", body="new text")

    edits = [each["changes"] for each in heard(listener, number, "edited", count=2)]
    assert [each.get("title") for each in edits].count({"from": "Old"}) == 1
    assert [each.get("body") for each in edits].count({"from": "old text"}) == 1


def test_h104_a_push_to_the_head_synchronizes(pulls: Pulls, listener: Listener) -> None:
    pulls.branch("h104")
    number = pulls.open("h104")
    pulls.shop.eventually(lambda: bool(listener.at("/all")))
    new = pulls.commit("h104", "h104-more", "1\n")

    (told,) = heard(listener, number, "synchronized")
    assert told["pull_request"]["head"]["sha"] == new


def test_h108_a_deleted_head_closes(pulls: Pulls, listener: Listener) -> None:
    pulls.branch("h108")
    number = pulls.open("h108")
    assert pulls.api("DELETE", "/branches/h108").status_code == 204

    heard(listener, number, "closed")
