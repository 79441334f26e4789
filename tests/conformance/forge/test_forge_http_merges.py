"""
Merges of pull requests over HTTP, as Gitea 1.26.0 answers (observed).

One repository serves the module. A forge that is still checking a pull request refuses its
merge with the words it has for a conflict; `Pulls.merge` asks again until it knows.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import requests
from tests.conformance.forge.pullcases import LATER, Pulls, Refused
from tests.conformance.forge.test_forge_http_branches import push_orphan

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

STALE = "0" * 39 + "1"


@pytest.fixture(scope="module")
def pulls(shop: Workshop) -> Pulls:
    return Pulls(shop, shop.seeded_repo())


def parents(commit: dict[str, Any]) -> list[str]:
    return [each["sha"] for each in commit["parents"]]


def said(commit: dict[str, Any]) -> str:
    message: str = commit["commit"]["message"]
    return message


def diverged(pulls: Pulls, name: str) -> tuple[int, str, str]:
    """Open a pull request of two commits whose base went on; return number, head, base."""
    pulls.commit("main", f"{name}-1", "1\n", new=name, message=f"{name} one")
    head = pulls.commit(name, f"{name}-2", "1\n", message=f"{name} two")
    base = pulls.commit("main", f"{name}-main", "1\n", message="main goes on")
    return pulls.open(name), head, base


def test_p201_merge_makes_a_commit_of_two_parents(pulls: Pulls) -> None:
    number, head, base = diverged(pulls, "p201")
    done = pulls.merge(number)

    found, (top,) = pulls.get(number), pulls.log("main", 1)
    assert (done.status_code, done.content) == (200, b"")
    assert (found["state"], found["merged"]) == ("closed", True)
    assert found["merge_commit_sha"] == top["sha"] == found["base"]["sha"]
    assert found["merged_by"]["login"] == pulls.shop.target.user
    assert found["merged_at"]
    assert found["closed_at"]
    assert parents(top) == [base, head]
    assert said(top) == f"Merge pull request 'Bring p201' (#{number}) from p201 into main\n"


def test_p202_squash_makes_one_commit_with_the_words_given(pulls: Pulls) -> None:
    number, _, base = diverged(pulls, "p202")

    done = pulls.merge(
        number, "squash", MergeTitleField="Title", MergeMessageField="Text\n\nKey: value"
    )

    (top,) = pulls.log("main", 1)
    assert done.status_code == 200
    assert parents(top) == [base]
    assert said(top) == "Title\n\nText\n\nKey: value\n"
    assert pulls.get(number)["merge_commit_sha"] == top["sha"]


def test_p203_squash_without_words(pulls: Pulls) -> None:
    pulls.branch("p203")
    number = pulls.open("p203")

    assert pulls.merge(number, "squash").status_code == 200

    assert said(pulls.log("main", 1)[0]) == f"Bring p203 (#{number})\n"


@pytest.mark.parametrize(
    "case",
    [
        Refused("P208", "a merge without a style", {}, 422, "[Do]: Required"),
        Refused("P209", "a merge in an unknown style", {"Do": "octopus"}, 422, "[Do]: In"),
    ],
    ids=lambda case: f"{case.id} {case.reason}",
)
def test_a_merge_that_is_no_request(pulls: Pulls, case: Refused) -> None:
    answer = pulls.api("POST", "/pulls/1/merge", case.body)

    assert answer.status_code == case.status
    assert case.text in answer.text


def test_p210_another_head_is_409_and_then_the_right_one_is_merged(pulls: Pulls) -> None:
    """The refusal starts a check, so the next try may be told to come back later."""
    head = pulls.branch("p210")
    number = pulls.open("p210")

    stale = pulls.merge(number, head_commit_id=STALE)
    done = pulls.merge(number, head_commit_id=head)

    assert (stale.status_code, stale.json()["message"]) == (409, "head out of date")
    assert done.status_code == 200


def test_p211_what_is_merged_stays_merged(pulls: Pulls) -> None:
    pulls.branch("p211")
    number = pulls.open("p211")
    assert pulls.merge(number).status_code == 200
    head = pulls.head()

    again = pulls.try_merge(number)
    reopened = pulls.edit(number, state="open")

    assert (again.status_code, again.json()["message"]) == (405, "The PR is already merged")
    assert reopened.status_code == 412
    assert "already merged" in reopened.json()["message"]
    assert pulls.edit(number, title="Renamed").status_code == 201
    assert pulls.head() == head


def test_p212_one_without_commits_is_mergeable_and_never_merged(pulls: Pulls) -> None:
    """The trap: created, shown as mergeable, refused for ever with the words of a check."""
    assert pulls.api("POST", "/branches", {"new_branch_name": "p212"}).status_code == 201
    number = pulls.open("p212")
    found = pulls.settled(number, mergeable=True)

    for style in ("merge", "squash"):
        for _ in range(3):
            answer = pulls.try_merge(number, style)
            assert (answer.status_code, answer.json()["message"]) == (405, LATER)
            time.sleep(0.1)

    assert found["state"] == "open"
    assert pulls.api("GET", "/compare/main...p212").json()["total_commits"] == 0
    assert pulls.get(number)["mergeable"] is True


def test_p213_one_whose_commits_the_base_has_is_never_merged_either(pulls: Pulls) -> None:
    assert pulls.api("POST", "/branches", {"new_branch_name": "p213"}).status_code == 201
    pulls.commit("main", "p213", "1\n")
    number = pulls.open("p213")

    found = pulls.settled(number, mergeable=True)
    answer = pulls.try_merge(number)

    assert (found["mergeable"], answer.status_code) == (True, 405)


def test_p214_commits_that_change_nothing_are_merged(pulls: Pulls) -> None:
    pulls.commit("main", "README.md", "hello\n", new="p214", message="empty")
    number = pulls.open("p214")

    assert pulls.merge(number).status_code == 200
    assert pulls.get(number)["merged"] is True


def test_p217_unrelated_histories_are_409_and_look_mergeable(shop: Workshop, pulls: Pulls) -> None:
    push_orphan(shop, pulls.repo, "p217")
    shop.eventually(lambda: pulls.api("GET", "/branches/p217").status_code == 200)
    number = pulls.open("p217")

    found = pulls.settled(number, mergeable=True)
    refused = pulls.merge(number)

    assert found["mergeable"] is True
    assert refused.status_code == 409
    assert refused.text == ""


def test_p222_of_merges_at_once_each_ends_as_merged_or_refused(pulls: Pulls) -> None:
    """Five pull requests into one base, asked for together: no commit is lost or doubled."""
    names = [f"p222-{number}" for number in range(5)]
    for name in names:
        pulls.branch(name)
    numbers = [pulls.open(name) for name in names]
    for number in numbers:
        pulls.settled(number, mergeable=True)
    before = pulls.head()

    with ThreadPoolExecutor(len(numbers)) as pool:
        answers = list(pool.map(lambda number: _merge_alone(pulls, number), numbers))

    merged = [number for number, status in zip(numbers, answers, strict=True) if status == 200]
    assert merged
    assert set(answers) <= {200, 405, 409}
    assert [number for number in numbers if pulls.get(number)["merged"]] == merged
    new = pulls.api("GET", f"/compare/{before}...main").json()["commits"]
    assert len([each for each in new if len(each["parents"]) == 2]) == len(merged)
    for number in set(numbers) - set(merged):
        assert pulls.merge(number).status_code == 200


def _merge_alone(pulls: Pulls, number: int) -> int:
    """Merge on a connection of its own."""
    target = pulls.shop.target
    answer = requests.post(
        f"{target.url}/api/v1/repos/{pulls.repo}/pulls/{number}/merge",
        json={"Do": "merge"},
        headers={"Authorization": f"token {target.token}"},
        timeout=30,
    )
    return answer.status_code


def test_p223_one_branch_into_two_bases(pulls: Pulls) -> None:
    pulls.branch("p223")
    first, second = pulls.open("p223"), pulls.open("p223", base="other")

    assert pulls.merge(first).status_code == 200
    assert pulls.merge(second).status_code == 200


def test_p224_a_head_that_git_pushed_into_its_base_stays_open(shop: Workshop, pulls: Pulls) -> None:
    """
    ``autodetect_manual_merge`` is off by default: the pull request is not marked merged.

    Until Gitea has noticed the push, a merge is a 500.
    """
    pulls.branch("p224")
    number = pulls.open("p224")
    pulls.settled(number, mergeable=True)
    copy = shop.clone(pulls.repo)
    shop.git("merge", "-q", "--no-edit", "origin/p224", cwd=copy)
    assert shop.git("push", "-q", "origin", "HEAD:main", cwd=copy).returncode == 0

    found = pulls.settled(number, mergeable=True)

    assert (found["state"], found["merged"]) == ("open", False)
    pulls.shop.eventually(lambda: pulls.try_merge(number).status_code == 405)
