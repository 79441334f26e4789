"""
Commit statuses and merges that wait for them, as Gitea 1.26.0 answers (observed).

One repository serves the module; each case about statuses has a commit of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import requests
from tests.conformance.forge.pullcases import Pulls

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

NOT_THERE = "0" * 39 + "1"


@pytest.fixture(scope="module")
def pulls(shop: Workshop) -> Pulls:
    return Pulls(shop, shop.seeded_repo())


@pytest.fixture
def sha(pulls: Pulls, request: pytest.FixtureRequest) -> str:
    name = request.node.originalname.removeprefix("test_").split("_")[0]
    return pulls.branch(f"{name}-{abs(hash(request.node.name)) % 10**6}")


def say(pulls: Pulls, sha: str, state: str, context: str = "ci", **more: Any) -> requests.Response:
    body = {"state": state, "context": context, **more}
    return pulls.api("POST", f"/statuses/{sha}", body)


def statuses(pulls: Pulls, sha: str) -> requests.Response:
    return pulls.api("GET", f"/statuses/{sha}")


def test_s101_a_status_is_sent_as_state_and_answered_as_status(pulls: Pulls, sha: str) -> None:
    made = say(pulls, sha, "success", " ci/a ", description=" d ", target_url="http://x.example/1")

    found = made.json()
    assert made.status_code == 201
    assert (found["status"], found["context"], found["description"]) == ("success", "ci/a", "d")
    assert (found["target_url"], found["id"]) == ("http://x.example/1", 1)
    assert "state" not in found
    assert found["creator"]["login"] == pulls.shop.target.user
    assert found["url"].endswith(f"/api/v1/repos/{pulls.repo}/statuses/{sha}")


def test_s102_a_commit_without_statuses_has_an_empty_list(pulls: Pulls, sha: str) -> None:
    assert statuses(pulls, sha).json() == []


def test_s103_every_status_is_kept(pulls: Pulls, sha: str) -> None:
    for state, context in (("pending", "a"), ("success", "b"), ("failure", "a"), ("success", "a")):
        assert say(pulls, sha, state, context).status_code == 201

    listed = statuses(pulls, sha)

    assert sorted(each["id"] for each in listed.json()) == [1, 2, 3, 4]
    assert listed.headers["X-Total-Count"] == "4"


@pytest.mark.parametrize("state", ["bogus", "", "warning"])
def test_s104_any_text_is_taken_as_a_state(pulls: Pulls, sha: str, state: str) -> None:
    assert say(pulls, sha, state).status_code == 201
    assert [each["status"] for each in statuses(pulls, sha).json()] == [state]


def test_s106_an_unknown_commit_is_500_when_written_to(pulls: Pulls) -> None:
    assert say(pulls, NOT_THERE, "success").status_code == 500
    assert pulls.api("GET", f"/statuses/{NOT_THERE}").json() == []


def test_s107_names_and_short_ids_mean_the_full_one_except_in_the_list(
    pulls: Pulls, sha: str
) -> None:
    for ref in (sha[:10], sha):
        assert say(pulls, ref, "success").status_code == 201

    assert len(pulls.api("GET", f"/statuses/{sha}").json()) == 2
    assert pulls.api("GET", f"/statuses/{sha[:10]}").json() == []


def test_s108_who_may_say_one(shop: Workshop, pulls: Pulls, sha: str) -> None:
    body = {"state": "success", "context": "x"}
    where = f"/statuses/{sha}"

    assert pulls.api("POST", where, body, auth=shop.outsider).status_code == 403
    assert pulls.api("POST", where, body, auth=None).status_code == 401
    assert pulls.api("GET", where, auth=None).status_code == 200
    assert pulls.api("POST", where, {"state": 3}).status_code == 422
    assert pulls.api("POST", where, {}).status_code == 201


def test_s109_an_archive_takes_statuses(shop: Workshop) -> None:
    own = Pulls(shop, shop.seeded_repo())
    sha = own.head()
    shop.forge.archive(own.repo)

    assert say(own, sha, "success").status_code == 201


def ordered(pulls: Pulls, name: str) -> tuple[int, str]:
    """Open a pull request that the forge has checked; return its number and head."""
    sha = pulls.branch(name)
    number = pulls.open(name)
    pulls.settled(number, mergeable=True)
    return number, sha
