"""The port `orderkit.ports.pulls.ForgePulls`, method by method, through the client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from ground.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.ports.forge import CommitStatus, FileChange, MergeStyle, PullDraft, PullRequest

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

NOWHERE = RepoId("no-such-team", "no-such-order")
NO_COMMIT = CommitSha("0" * 40)
A = PurePosixPath("dir/a.txt")


@dataclass
class Bench:
    """A seeded repository with a branch ``change`` that has one commit more."""

    shop: Workshop
    repo: RepoId
    commit: CommitSha

    def main(self) -> CommitSha:
        found = self.shop.forge.head(self.repo)
        assert found is not None
        return found

    def edit(self, text: str, branch: str = "main") -> CommitSha:
        """Replace the content of `A`."""
        seen = self.shop.forge.read(self.repo, A, branch)
        assert seen is not None
        change = FileChange(A, text.encode(), seen.sha)
        return self.shop.forge.write(self.repo, [change], self.shop.op(), branch=branch).commit

    def open(self, title: str = "Change") -> PullRequest:
        draft = PullDraft(title, "The plan.", "change")
        return self.shop.forge.open_pull(self.repo, draft, self.shop.op())

    def merge(self, number: int, head: CommitSha, **how: float | MergeStyle) -> CommitSha:
        style = how.pop("style", MergeStyle.MERGE)
        assert isinstance(style, MergeStyle)
        deadline = how.pop("deadline_s", 90.0)
        assert isinstance(deadline, float)
        return self.shop.forge.merge_pull(
            self.repo,
            number,
            head=head,
            style=style,
            operation=self.shop.op(),
            deadline_s=deadline,
        )


@pytest.fixture
def bench(shop: Workshop) -> Bench:
    repo = shop.seeded_repo()
    head = shop.forge.head(repo)
    assert head is not None
    assert shop.forge.ensure_branch(repo, "change", head)
    made = shop.forge.write(repo, [shop.new("n", "1\n")], shop.op(), branch="change")
    return Bench(shop, repo, made.commit)


def test_f31_ensuring_a_branch_twice_creates_it_once(bench: Bench) -> None:
    forge, main = bench.shop.forge, bench.main()

    assert forge.ensure_branch(bench.repo, "feature/x", main)
    assert not forge.ensure_branch(bench.repo, "feature/x", main)
    assert forge.head(bench.repo, "feature/x") == main


def test_f32_a_branch_that_moved_on_is_left_alone(bench: Bench) -> None:
    assert not bench.shop.forge.ensure_branch(bench.repo, "change", bench.main())
    assert bench.shop.forge.head(bench.repo, "change") == bench.commit


def test_f33_a_branch_elsewhere_is_a_conflict(bench: Bench) -> None:
    newer = bench.edit("newer\n")

    with pytest.raises(ConflictError, match="has a branch change without commit"):
        bench.shop.forge.ensure_branch(bench.repo, "change", newer)

    assert bench.shop.forge.head(bench.repo, "change") == bench.commit


def test_f34_a_branch_needs_a_commit_a_name_and_a_repository(bench: Bench) -> None:
    forge = bench.shop.forge

    with pytest.raises(NotFoundError, match="has no commit"):
        forge.ensure_branch(bench.repo, "b", NO_COMMIT)
    with pytest.raises(InvalidInputError, match="branch"):
        forge.ensure_branch(bench.repo, "a..b", bench.main())
    with pytest.raises(NotFoundError):
        forge.ensure_branch(NOWHERE, "b", bench.main())


def test_f35_deleting_a_branch_twice_deletes_it_once(bench: Bench) -> None:
    forge = bench.shop.forge

    assert forge.delete_branch(bench.repo, "change")
    assert not forge.delete_branch(bench.repo, "change")
    assert forge.head(bench.repo, "change") is None
    with pytest.raises(RefusedError, match="default"):
        forge.delete_branch(bench.repo, "main")


def test_f36_compare_lists_what_the_head_has_more_newest_first(bench: Bench) -> None:
    forge = bench.shop.forge
    second = bench.edit("2\n", "change")

    assert [each.id for each in forge.compare(bench.repo, "main", "change")] == [
        second,
        bench.commit,
    ]
    assert [each.id for each in forge.compare(bench.repo, bench.commit, second)] == [second]
    assert forge.compare(bench.repo, "change", "main") == ()
    with pytest.raises(NotFoundError):
        forge.compare(bench.repo, "main", "none")


def test_f37_opening_twice_opens_once_and_brings_it_up_to_date(bench: Bench) -> None:
    shop, first = bench.shop, bench.open()
    draft = PullDraft("Better title", "Better plan.\n", "change")
    operation = shop.op()

    again = shop.forge.open_pull(bench.repo, draft, operation)

    assert again.number == first.number
    assert (again.title, again.body) == ("Better title", "Better plan.")
    assert (again.operation, again.requester) == (operation.id, "somebody")
    assert [each.number for each in shop.forge.pulls(bench.repo)] == [first.number]
    seen = shop.forge.pull(bench.repo, first.number)
    assert seen is not None
    assert replace(seen, mergeable=again.mergeable) == again  # that is found out in a while


def test_f38_what_was_opened_says_what_it_is(bench: Bench) -> None:
    found = bench.open()

    assert (found.title, found.body, found.state) == ("Change", "The plan.", "open")
    assert (found.head, found.head_commit, found.base) == ("change", bench.commit, "main")
    assert (found.draft, found.merge_commit) == (False, None)
    pulls = bench.shop.forge.capabilities.pages.pull
    assert found.web_url == f"{bench.shop.target.url}/{bench.repo}/{pulls}{found.number}"


def test_f39_a_pull_request_without_new_commits_is_refused(bench: Bench) -> None:
    forge = bench.shop.forge
    forge.ensure_branch(bench.repo, "same", bench.main())

    with pytest.raises(RefusedError, match="has all its commits already"):
        forge.open_pull(bench.repo, PullDraft("t", "b", "same"), bench.shop.op())
    with pytest.raises(NotFoundError):
        forge.open_pull(bench.repo, PullDraft("t", "b", "none"), bench.shop.op())

    assert list(forge.pulls(bench.repo, state="all")) == []


@pytest.mark.parametrize("style", list(MergeStyle))
def test_f41_merging_puts_the_change_on_the_base(bench: Bench, style: MergeStyle) -> None:
    found, forge = bench.open(), bench.shop.forge

    merged = bench.merge(found.number, bench.commit, style=style)

    after = forge.pull(bench.repo, found.number)
    assert after is not None
    assert (after.state, after.merge_commit) == ("merged", merged)
    assert bench.main() == merged
    assert forge.read(bench.repo, PurePosixPath("n"), "main") is not None
    assert len(forge.commits(bench.repo)[0].parents) == (2 if style is MergeStyle.MERGE else 1)


def test_f55b_a_style_that_the_repository_forbids_is_refused(bench: Bench) -> None:
    bench.shop.forge.forbid_squash(bench.repo)
    found = bench.open()

    with pytest.raises(RefusedError, match="squash"):
        bench.merge(found.number, bench.commit, style=MergeStyle.SQUASH)

    assert bench.merge(found.number, bench.commit, style=MergeStyle.MERGE)


@pytest.mark.parametrize("style", [MergeStyle.MERGE, MergeStyle.SQUASH])
def test_f42_the_merge_commit_carries_operation_and_requester(
    bench: Bench, style: MergeStyle
) -> None:
    number, operation = bench.open().number, bench.shop.op()

    bench.shop.forge.merge_pull(
        bench.repo, number, head=bench.commit, style=style, operation=operation
    )

    newest = bench.shop.forge.commits(bench.repo)[0]
    assert newest.operation == operation.id
    assert newest.message.splitlines()[0] == operation.summary


def test_f43_merging_twice_merges_once(bench: Bench) -> None:
    number = bench.open().number

    first = bench.merge(number, bench.commit)
    again = bench.merge(number, bench.commit)

    assert first == again == bench.main()


def test_f44_a_merge_is_recognised_after_its_branch_moved_on_or_went(bench: Bench) -> None:
    number = bench.open().number
    merged = bench.merge(number, bench.commit)

    bench.edit("later\n", "change")
    assert bench.merge(number, bench.commit) == merged
    bench.shop.forge.delete_branch(bench.repo, "change")
    assert bench.merge(number, bench.commit) == merged
    found = bench.shop.forge.pull(bench.repo, number)
    assert found is not None
    assert found.head == "change"


def test_f45_another_head_is_a_conflict_and_nothing_is_merged(bench: Bench) -> None:
    number, before = bench.open().number, bench.main()
    bench.edit("pushed later\n", "change")

    with pytest.raises(ConflictError, match="its head is"):
        bench.merge(number, bench.commit)

    assert bench.main() == before


def test_f46_a_push_is_merged_at_once_at_its_new_head(bench: Bench) -> None:
    number = bench.open().number
    pushed = bench.edit("pushed just now\n", "change")

    merged = bench.merge(number, pushed)

    assert bench.main() == merged


def test_f47_a_conflict_with_the_base_is_named_with_its_paths(bench: Bench) -> None:
    """Long before the deadline, although the forge says of it what it says while it checks."""
    here = bench.edit("there\n", "change")
    bench.edit("here\n")
    number, before = bench.open().number, bench.main()

    with pytest.raises(ConflictError, match=r"both changed dir/a\.txt"):
        bench.merge(number, here, deadline_s=3600.0)

    assert bench.main() == before


def test_f48_nothing_to_merge_is_told_from_still_checking(bench: Bench) -> None:
    """The branch became part of its base after the pull request was opened."""
    number = bench.open().number
    assert (
        bench.shop.api(
            "POST", f"/repos/{bench.repo}/pulls", {"title": "t", "head": "change", "base": "other"}
        ).status_code
        == 201
    )
    bench.merge(number, bench.commit)
    second = next(iter(bench.shop.forge.pulls(bench.repo, base="other"))).number
    bench.merge(second, bench.commit)
    third = bench.shop.api(
        "POST", f"/repos/{bench.repo}/pulls", {"title": "t", "head": "change", "base": "main"}
    )
    assert third.status_code == 201

    with pytest.raises(RefusedError, match="nothing to merge"):
        bench.merge(third.json()["number"], bench.commit)


def test_f49_drafts_and_closed_ones_are_not_merged(bench: Bench) -> None:
    forge, draft = bench.shop.forge, bench.open(f"{bench.shop.target.face.draft} not yet")

    assert draft.draft
    with pytest.raises(RefusedError, match="draft"):
        bench.merge(draft.number, bench.commit)
    assert forge.close_pull(bench.repo, draft.number)
    assert not forge.close_pull(bench.repo, draft.number)
    with pytest.raises(ConflictError, match="closed"):
        bench.merge(draft.number, bench.commit)
    with pytest.raises(NotFoundError):
        bench.merge(999, bench.commit)


def test_f50_a_merged_one_cannot_be_closed(bench: Bench) -> None:
    number = bench.open().number
    bench.merge(number, bench.commit)

    with pytest.raises(ConflictError, match="was merged"):
        bench.shop.forge.close_pull(bench.repo, number)
    with pytest.raises(NotFoundError):
        bench.shop.forge.close_pull(bench.repo, 999)


def test_f51_the_same_operation_opens_no_second_one_after_a_squash(bench: Bench) -> None:
    """After a squash the branch still has commits that the base lacks."""
    forge, operation = bench.shop.forge, bench.shop.op()
    draft = PullDraft("t", "b", "change")
    first = forge.open_pull(bench.repo, draft, operation)
    bench.merge(first.number, bench.commit, style=MergeStyle.SQUASH)
    assert forge.compare(bench.repo, "main", "change")

    again = forge.open_pull(bench.repo, draft, operation)

    assert (again.number, again.state) == (first.number, "merged")
    assert len(list(forge.pulls(bench.repo, state="all"))) == 1


def test_f52_another_operation_opens_a_second_one(bench: Bench) -> None:
    forge, first = bench.shop.forge, bench.open()
    forge.close_pull(bench.repo, first.number)

    second, again = bench.open(), bench.open()

    assert first.number != second.number == again.number
    assert [each.number for each in forge.pulls(bench.repo, state="closed")] == [first.number]
    assert [each.number for each in forge.pulls(bench.repo, state="all", head="change")] == [
        second.number,
        first.number,
    ]
    assert list(forge.pulls(bench.repo, base="other")) == []


def test_f53_updating_leaves_what_is_not_named(bench: Bench) -> None:
    forge, operation = bench.shop.forge, bench.shop.op()
    number = bench.open().number

    titled = forge.update_pull(bench.repo, number, operation, title="New")
    emptied = forge.update_pull(bench.repo, number, operation, body="")

    assert (titled.title, titled.body) == ("New", "The plan.")
    assert (emptied.title, emptied.body) == ("New", "")
    assert emptied.operation == operation.id
    with pytest.raises(NotFoundError):
        forge.update_pull(bench.repo, 999, operation, title="x")


def test_f53c_an_open_one_gets_another_base_and_keeps_its_text(bench: Bench) -> None:
    forge, repo = bench.shop.forge, bench.repo
    forge.ensure_branch(repo, "trunk", bench.main())
    opened = bench.open()

    moved = [forge.retarget_pull(repo, opened.number, "trunk") for _ in range(2)]
    there = forge.pull(repo, opened.number)
    back = forge.retarget_pull(repo, opened.number, "main")

    assert (moved, back) == ([True, False], True)
    assert there is not None
    assert (there.base, there.title, there.body, there.operation) == (
        "trunk",
        opened.title,
        opened.body,
        opened.operation,
    )
    assert [pull.number for pull in forge.pulls(repo, base="main")] == [opened.number]
    forge.close_pull(repo, opened.number)
    with pytest.raises(ConflictError):
        forge.retarget_pull(repo, opened.number, "trunk")
    with pytest.raises(NotFoundError):
        forge.retarget_pull(repo, 999, "trunk")


def test_f53b_one_is_found_by_its_branches_whatever_its_state(bench: Bench) -> None:
    forge, repo = bench.shop.forge, bench.repo
    assert forge.pull_between(repo, "main", "change") is None

    opened = bench.open()
    found = forge.pull_between(repo, "main", "change")
    assert found is not None
    assert (found.number, found.state) == (opened.number, "open")
    assert forge.pull_between(repo, "change", "main") is None
    forge.close_pull(repo, opened.number)

    closed = forge.pull_between(repo, "main", "change")
    assert closed is not None
    assert (closed.number, closed.state) == (opened.number, "closed")
    assert forge.pull_between(NOWHERE, "main", "change") is None


def test_f54_pull_requests_are_listed_whatever_the_page_size(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orderkit.adapters.forges.calls.PAGE", 2)
    forge, numbers = bench.shop.forge, []
    for number in range(5):
        forge.ensure_branch(bench.repo, f"b{number}", bench.commit)
        draft = PullDraft("t", "b", f"b{number}")
        numbers.append(forge.open_pull(bench.repo, draft, bench.shop.op()).number)

    assert [each.number for each in forge.pulls(bench.repo)] == numbers[::-1]
    assert forge.pull(bench.repo, 999) is None


def test_f55_a_comment_is_written_once_and_then_changed(bench: Bench) -> None:
    shop, number = bench.shop, bench.open().number
    comments = f"/repos/{bench.repo}/issues/{number}/comments"
    shop.api("POST", comments, {"body": "by a person"})

    for text in ("one", "one", "two"):
        shop.forge.comment(bench.repo, number, text, marker="plan")
    shop.forge.comment(bench.repo, number, "other", marker="result")

    said = [each["body"].partition("\n")[0] for each in shop.api("GET", comments).json()]
    assert said == ["by a person", "two", "other"]
    with pytest.raises(NotFoundError):
        shop.forge.comment(bench.repo, 999, "x", marker="plan")


def test_f56_the_comment_of_somebody_else_with_our_marker_is_left_alone(bench: Bench) -> None:
    shop, number = bench.shop, bench.open().number
    comments = f"/repos/{bench.repo}/issues/{number}/comments"
    forged = "x\n\n<!-- orderkit-comment: plan -->"
    assert shop.api("POST", comments, {"body": forged}, auth=shop.outsider).status_code == 201

    shop.forge.comment(bench.repo, number, "ours", marker="plan")

    assert [each["user"]["login"] for each in shop.api("GET", comments).json()] == [
        shop.outsider[0],
        shop.target.user,
    ]


def test_f59_the_newest_status_of_each_context_counts(bench: Bench) -> None:
    forge = bench.shop.forge
    assert forge.statuses(bench.repo, bench.commit) == ()
    plan = CommitStatus("plan", "pending", "working", "http://127.0.0.1/p")

    forge.set_status(bench.repo, bench.commit, plan)
    forge.set_status(bench.repo, bench.commit, plan)
    forge.set_status(bench.repo, bench.commit, CommitStatus("lint", "failure"))
    done = CommitStatus("plan", "success", "done")
    forge.set_status(bench.repo, bench.commit, done)

    assert forge.statuses(bench.repo, bench.commit) == (CommitStatus("lint", "failure"), done)
    raw = bench.shop.api("GET", f"/repos/{bench.repo}/statuses/{bench.commit}").json()
    assert len(raw) == 3
    with pytest.raises(NotFoundError):
        forge.set_status(bench.repo, NO_COMMIT, plan)


def test_f60_statuses_are_listed_whatever_the_page_size(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orderkit.adapters.forges.calls.PAGE", 2)
    for number in range(5):
        status = CommitStatus(f"c{number}", "success")
        bench.shop.forge.set_status(bench.repo, bench.commit, status)

    found = bench.shop.forge.statuses(bench.repo, bench.commit)

    assert [each.context for each in found] == [f"c{number}" for number in range(5)]


def test_f61_two_who_merge_the_same_pull_request_both_succeed_with_one_merge(
    bench: Bench,
) -> None:
    number, results = bench.open().number, list[CommitSha]()

    def merge() -> None:
        results.append(bench.merge(number, bench.commit))

    run_at_once([merge] * 3)

    assert results == [bench.main()] * 3
    assert len(bench.shop.forge.commits(bench.repo)) == 3


def test_f62_two_who_open_the_same_pull_request_open_one(bench: Bench) -> None:
    numbers = list[int]()

    run_at_once([lambda: numbers.append(bench.open().number)] * 3)

    assert len(set(numbers)) == 1
    assert [each.number for each in bench.shop.forge.pulls(bench.repo)] == numbers[:1]


def test_f63_an_archived_repository_refuses_branches_and_pull_requests(bench: Bench) -> None:
    forge, number = bench.shop.forge, bench.open().number
    forge.archive(bench.repo)

    with pytest.raises(RefusedError, match="archived"):
        forge.ensure_branch(bench.repo, "b", bench.commit)
    with pytest.raises(RefusedError, match="archived"):
        bench.merge(number, bench.commit)


def run_at_once(tasks: list[Callable[[], object]]) -> None:
    """Run every task in a thread; fail with the first error."""
    errors: list[BaseException] = []

    def run(task: Callable[[], object]) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001  told below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_f86_one_that_goes_while_we_read_hides_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows moves to a page that was read already."""
    monkeypatch.setattr("orderkit.adapters.forges.calls.PAGE", 2)
    forge, numbers = bench.shop.forge, [bench.open().number]
    for name in ("b", "c", "d", "e"):
        forge.ensure_branch(bench.repo, name, bench.commit)
        draft = PullDraft(name, "", name)
        numbers.append(forge.open_pull(bench.repo, draft, bench.shop.op()).number)

    listed: list[int] = []
    for pull in forge.pulls(bench.repo):
        if not listed:
            forge.close_pull(bench.repo, numbers[3])
        listed.append(pull.number)

    assert set(listed) >= {number for number in numbers if number != numbers[3]}
    assert len(listed) == len(set(listed))
