"""
Branches and comparison over HTTP, as Gitea 1.26.0 answers (observed).

One repository serves the module; what a case makes has names of its own. The cases B11 to
B18 of the table module are about the same addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.conformance.forge.pullcases import Pulls

from ground.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

EMPTY = "Git Repository is empty."
NOT_THERE = "0" * 39 + "1"


@dataclass(frozen=True)
class Case:
    id: str
    reason: str
    method: str
    path: str
    status: int
    body: Any = None
    text: str = ""


@pytest.fixture(scope="module")
def pulls(shop: Workshop) -> Pulls:
    found = Pulls(shop, shop.seeded_repo())
    found.commit("main", "c1", "1\n", new="ahead", message="first")
    found.commit("ahead", "c2", "1\n", message="second")
    found.commit("main", "m1", "1\n", message="main goes on")
    return found


CASES = [
    Case("B103", "without a name", "POST", "/branches", 422, {}, "Required"),
    Case("B104", "of a name that exists", "POST", "/branches", 409, {"new_branch_name": "ahead"},
         "The branch already exists."),
    Case("B105", "below a branch as if it were a folder", "POST", "/branches", 409,
         {"new_branch_name": "ahead/x"}, "The branch with the same name already exists."),
    Case("B106", "from an unknown commit", "POST", "/branches", 500,
         {"new_branch_name": "b106", "old_ref_name": NOT_THERE}, "object does not exist"),
    Case("B107", "rename without a name", "PATCH", "/branches/ahead", 422, {}, "Required"),
    Case("B108", "rename to a name that exists", "PATCH", "/branches/ahead", 422, {"name": "main"},
         "Cannot rename a branch using the same name or rename to a branch that already exists."),
    Case("B109", "rename what is not there", "PATCH", "/branches/none", 404, {"name": "b109"},
         "Branch doesn't exist."),
    Case("B110", "rename to what is no name", "PATCH", "/branches/ahead", 422, {"name": "a..b"},
         "GitRefName"),
    Case("B113", "compare: the commits that head has more", "GET", "/compare/main...ahead", 200,
         text='"total_commits":2'),
    Case("B116", "compare equal ends", "GET", "/compare/main...main", 200,
         text='"total_commits":0,"commits":[]'),
    Case("B117", "compare with an unknown head", "GET", "/compare/main...none", 404),
    Case("B118", "compare with an unknown base", "GET", "/compare/none...main", 404),
    Case("B119", "compare with owner:branch", "GET", "/compare/main...{owner}:ahead", 200,
         text='"total_commits":2'),
    Case("B120", "compare with a stranger's branch", "GET", "/compare/main...nobody-x:ahead", 404),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id} {case.reason}")
def test_branches_answer_as_gitea_does(pulls: Pulls, case: Case) -> None:
    answer = pulls.api(case.method, case.path.format(owner=pulls.repo.owner), case.body)

    assert answer.status_code == case.status, answer.text
    assert case.text in answer.text


def test_b121_commits_of_a_comparison_come_newest_first(pulls: Pulls) -> None:
    found = pulls.api("GET", "/compare/main...ahead").json()["commits"]

    assert [each["commit"]["message"] for each in found] == ["second\n", "first\n"]


def test_b122_a_comparison_takes_commit_ids_also_short_ones(pulls: Pulls) -> None:
    sha = pulls.head()

    for ref in (sha, sha[:10]):
        assert pulls.api("GET", f"/compare/{ref}...ahead").json()["total_commits"] == 2


def test_b123_a_branch_starts_at_a_commit_id_also_a_short_one(pulls: Pulls) -> None:
    sha = pulls.head("ahead")

    for name, ref in (("b123", sha), ("b123s", sha[:10])):
        made = pulls.api("POST", "/branches", {"new_branch_name": name, "old_ref_name": ref})
        assert (made.status_code, made.json()["commit"]["id"]) == (201, sha)


def test_b124_an_empty_repository_has_no_branch_to_work_with(shop: Workshop) -> None:
    empty = Pulls(shop, shop.empty_repo())

    made = empty.api("POST", "/branches", {"new_branch_name": "x"})
    deleted = empty.api("DELETE", "/branches/x")

    for answer in (made, deleted):
        assert (answer.status_code, answer.json()["message"]) == (404, EMPTY)
    assert empty.api("GET", "/compare/main...x").status_code == 404


def test_b125_a_branch_with_the_name_of_a_tag_is_refused(shop: Workshop, pulls: Pulls) -> None:
    copy = shop.clone(pulls.repo)
    assert shop.git("tag", "v1", cwd=copy).returncode == 0
    assert shop.git("push", "-q", "origin", "v1", cwd=copy).returncode == 0

    def refused() -> bool:
        made = pulls.api("POST", "/branches", {"new_branch_name": "v1"})
        return made.status_code == 409 and "same tag" in made.text

    shop.eventually(refused)


def test_b128_branches_are_read_only_for_strangers_and_in_an_archive(shop: Workshop) -> None:
    own = Pulls(shop, shop.seeded_repo())
    writes: list[tuple[str, str, Any]] = [
        ("POST", "/branches", {"new_branch_name": "x"}),
        ("PATCH", "/branches/main", {"name": "x"}),
        ("DELETE", "/branches/other", None),
    ]

    assert [own.api(*each, auth=shop.outsider).status_code for each in writes] == [403] * 3
    assert [own.api(*each, auth=None).status_code for each in writes] == [401] * 3
    shop.forge.archive(own.repo)
    assert [own.api(*each).status_code for each in writes] == [423] * 3


def test_b130_a_renamed_branch_takes_rule_pull_requests_and_default_along(shop: Workshop) -> None:
    own = Pulls(shop, shop.seeded_repo())
    head = own.commit("main", "b130", "1\n", new="b130")
    opened = own.api("POST", "/pulls", {"head": "b130", "base": "main", "title": "b130"})
    assert own.api("POST", "/branch_protections", {"rule_name": "main"}).status_code == 201
    before = own.head()

    renamed = own.api("PATCH", "/branches/main", {"name": "trunk"})

    assert (renamed.status_code, renamed.text) == (204, "")
    assert own.api("GET", "").json()["default_branch"] == "trunk"
    assert (own.head("trunk"), own.api("GET", "/branches/main").status_code) == (before, 404)
    rules = own.api("GET", "/branch_protections").json()
    assert [rule["rule_name"] for rule in rules] == ["trunk"]
    pull = own.api("GET", f"/pulls/{opened.json()['number']}").json()
    assert (pull["state"], pull["base"]["ref"]) == ("open", "trunk")
    assert head != before


def test_b131_who_may_only_write_renames_other_branches(shop: Workshop) -> None:
    own = Pulls(shop, shop.seeded_repo())
    own.commit("main", "b131", "1\n", new="b131")
    put = own.api("PUT", f"/collaborators/{shop.outsider[0]}", {"permission": "write"})
    assert put.status_code == 204, put.text

    def rename(old: str, new: str) -> tuple[int, str]:
        answer = own.api("PATCH", f"/branches/{old}", {"name": new}, auth=shop.outsider)
        return answer.status_code, answer.text

    assert rename("b131", "b131-new")[0] == 204
    refused = "User must be a repo or site admin to rename default or protected branches."
    assert rename("main", "trunk")[0] == 403
    assert refused in rename("main", "trunk")[1]
    assert own.api("POST", "/branch_protections", {"rule_name": "b13*"}).status_code == 201
    held = own.api("PATCH", "/branches/b131-new", {"name": "b131"})
    assert (held.status_code, held.json()["message"]) == (
        403,
        "Failed to rename branch due to branch protection rules.",
    )


def test_b129_unrelated_histories_have_no_difference(shop: Workshop, pulls: Pulls) -> None:
    push_orphan(shop, pulls.repo, "orphan")

    shop.eventually(lambda: pulls.api("GET", "/branches/orphan").status_code == 200)
    assert pulls.api("GET", "/compare/main...orphan").json() == {"total_commits": 0, "commits": []}


def push_orphan(shop: Workshop, repo: RepoId, branch: str) -> None:
    copy = shop.clone(repo)
    shop.git("checkout", "-q", "--orphan", branch, cwd=copy)
    shop.git("rm", "-q", "-rf", ".", cwd=copy)
    (copy / "alone").write_text("1\n")
    shop.git("add", ".", cwd=copy)
    shop.git("commit", "-qm", "alone", cwd=copy)
    assert shop.git("push", "-q", "origin", branch, cwd=copy).returncode == 0
