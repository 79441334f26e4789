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


def combined(pulls: Pulls, sha: str, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = pulls.api("GET", f"/commits/{sha}/status{query}").json()
    return found


def test_s101_a_status_is_sent_as_state_and_answered_as_status(pulls: Pulls, sha: str) -> None:
    made = say(pulls, sha, "success", " ci/a ", description=" d ", target_url="http://x.example/1")

    found = made.json()
    assert made.status_code == 201
    assert (found["status"], found["context"], found["description"]) == ("success", "ci/a", "d")
    assert (found["target_url"], found["id"]) == ("http://x.example/1", 1)
    assert "state" not in found
    assert found["creator"]["login"] == pulls.shop.target.user
    assert found["url"].endswith(f"/api/v1/repos/{pulls.repo}/statuses/{sha}")


def test_s102_a_commit_without_statuses_is_pending(pulls: Pulls, sha: str) -> None:
    found = combined(pulls, sha)

    assert (found["state"], found["total_count"], found["statuses"]) == ("pending", 0, None)
    assert found["sha"] == sha
    assert pulls.api("GET", f"/statuses/{sha}").json() == []


def test_s103_the_last_status_of_each_context_counts(pulls: Pulls, sha: str) -> None:
    for state, context in (("pending", "a"), ("success", "b"), ("failure", "a"), ("success", "a")):
        assert say(pulls, sha, state, context).status_code == 201

    found = combined(pulls, sha)
    listed = pulls.api("GET", f"/statuses/{sha}")

    assert [(each["context"], each["status"]) for each in found["statuses"]] == [
        ("b", "success"),
        ("a", "success"),
    ]
    assert (found["state"], found["total_count"]) == ("success", 2)
    assert sorted(each["id"] for each in listed.json()) == [1, 2, 3, 4], "all are kept"
    assert listed.headers["X-Total-Count"] == "4"


@pytest.mark.parametrize(
    ("states", "together"),
    [
        (("success", "skipped"), "success"),
        (("success", "pending"), "pending"),
        (("success", "warning"), "failure"),
        (("pending", "error"), "failure"),
        (("failure",), "failure"),
        (("bogus", "success"), "pending"),
        (("", "success"), "pending"),
    ],
)
def test_s104_states_together(
    pulls: Pulls, sha: str, states: tuple[str, ...], together: str
) -> None:
    """Any text is taken as a state."""
    for number, state in enumerate(states):
        assert say(pulls, sha, state, f"c{number}").status_code == 201

    assert combined(pulls, sha)["state"] == together


def test_s105_the_combined_state_is_that_of_one_page(pulls: Pulls, sha: str) -> None:
    for number, state in enumerate(("failure", "success", "success")):
        say(pulls, sha, state, f"c{number}")

    newest = pulls.api("GET", f"/commits/{sha}/status?limit=2")
    rest = combined(pulls, sha, "?limit=2&page=2")

    assert [each["context"] for each in newest.json()["statuses"]] == ["c1", "c2"]
    assert (newest.json()["state"], newest.json()["total_count"]) == ("success", 2)
    assert newest.headers["X-Total-Count"] == "3"
    assert ([each["context"] for each in rest["statuses"]], rest["state"]) == (["c0"], "failure")


def test_s106_an_unknown_commit_is_500_when_written_to(pulls: Pulls) -> None:
    assert say(pulls, NOT_THERE, "success").status_code == 500
    assert pulls.api("GET", f"/statuses/{NOT_THERE}").json() == []
    assert pulls.api("GET", f"/commits/{NOT_THERE}/status").status_code == 404
    assert pulls.api("GET", "/commits/none/statuses").status_code == 404


def test_s107_names_and_short_ids_mean_the_full_one_except_in_the_list(
    pulls: Pulls, sha: str
) -> None:
    for ref in (sha[:10], sha):
        assert say(pulls, ref, "success").status_code == 201

    assert len(pulls.api("GET", f"/statuses/{sha}").json()) == 2
    assert pulls.api("GET", f"/statuses/{sha[:10]}").json() == []
    assert combined(pulls, sha[:10])["sha"] == sha


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
