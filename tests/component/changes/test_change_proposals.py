"""Changes that are reviewed: pull requests are found again, brought up to date, never doubled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import pytest
from bays import XR, Bay, ask, merge, new_bay, set_
from commands import Command
from faultproxy import Decision, Falsehood, Fault, Listed, Plan, is_contents
from tests.component.changes.conftest import Through

from ground.errors import ConflictError, InvalidInputError, RefusedError, RemoteError
from orderkit.core.kit.kit_file import How
from orderkit.core.order.change import FieldEdit
from orderkit.flows.change import Changed, ChangeRequest, change
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.plan.pull_requests import CONTEXT
from orderkit.flows.platform import Platform
from orderkit.ports.forge import MergeStyle, Operation, PullDraft, PullRequest
from orderkit.ports.requesters import Requester


def propose(bay: Bay, person: str, *edits: FieldEdit, **more: Any) -> Changed:
    wanted = ChangeRequest(
        order=bay.order, edits=edits, requester=Requester(f"user:default/{person}"), **more
    )
    return change(bay.platform, wanted)


def pull_of(done: Changed) -> PullRequest:
    assert done.state == "proposed"
    assert done.pull is not None
    return done.pull


def open_pulls(bay: Bay) -> list[int]:
    return sorted(pull.number for pull in bay.platform.forge.pulls(bay.repo))


def test_a_reviewed_change_is_a_pull_request_with_reason_values_and_diff(
    orderkit: Command, bay: Bay
) -> None:
    head = bay.head

    done = orderkit("change", bay.order, "colour=red", "--reason", "looks fast")

    assert done.code == 0, done.err
    (pull,) = bay.platform.forge.pulls(bay.repo)
    assert (pull.title, pull.base) == (f"{bay.order}: colour (not set) → red", "main")
    for told in ("looks fast", "| `colour` | (not set) | `red` |", "+  colour: red", "paint dries"):
        assert told in pull.body
    assert f"review      {pull.web_url}" in done.out
    assert "warning     The bay is closed" in done.out
    assert bay.head == head
    assert bay.spec(pull.head)["colour"] == "red"


def test_a_merged_one_is_delivered_and_stands_in_the_history(orderkit: Command, bay: Bay) -> None:
    pull = pull_of(propose(bay, "eve", set_("colour", "red"), reason="looks fast"))
    bay.put({PurePosixPath("README.md"): "Mind the step."})

    merge(bay, pull.number)

    assert bay.spec()["colour"] == "red"
    entries = orderkit("history", bay.order, "--json").json["entries"]
    merged, mine = [e for e in entries if e["fields"] and e["fields"][0]["field"] == "colour"]
    assert (mine["requester"], mine["reason"]) == ("user:default/eve", "looks fast")
    assert (merged["byHand"], merged["requester"]) == (True, "")
    assert propose(bay, "eve", set_("colour", "red")).state == "unchanged"


def test_a_merge_by_orderkit_is_called_a_merge(orderkit: Command, bay: Bay) -> None:
    """It is not signed, because the forge writes it, and it was not made by hand either."""
    merge(bay, pull_of(propose(bay, "eve", set_("colour", "red"))).number)

    entries = orderkit("history", bay.order, "--json").json["entries"]
    assert [entry["merge"] for entry in entries] == [True, False, False]
    assert "(merge; claims user:default/boss)" in orderkit("history", bay.order).out
    await_commit(bay.platform, bay.order, bay.head, timeout_s=30)
    told = orderkit("log", "--team", bay.repo.owner).out.splitlines()
    (row,) = [line for line in told if bay.order in line and " Merge #" in line]
    assert "(merge)" in row


def test_asked_again_the_same_persons_request_is_brought_up_to_date(bay: Bay) -> None:
    first = pull_of(propose(bay, "eve", set_("colour", "red")))

    second = pull_of(propose(bay, "eve", set_("colour", "blue"), reason="cooler"))

    assert (second.number, open_pulls(bay)) == (first.number, [first.number])
    assert "red" not in second.title
    assert "cooler" in second.body
    assert bay.spec(second.head)["colour"] == "blue"


def test_the_other_fields_of_ones_own_request_stay_in_it(bay: Bay) -> None:
    first = pull_of(propose(bay, "eve", set_("colour", "red"), set_("motto", "fast")))

    second = pull_of(propose(bay, "eve", set_("colour", "blue")))

    assert second.number == first.number
    assert bay.spec(second.head).items() >= {"colour": "blue", "motto": "fast"}.items()


def test_where_main_moved_on_it_is_replaced_by_one_from_there(bay: Bay) -> None:
    """The lines are neighbours: git could not merge the old branch."""
    first = pull_of(propose(bay, "eve", set_("colour", "red")))
    bay.edit('stage: "stage1"', 'stage: "stage1"\n  motto: slow')

    second = pull_of(propose(bay, "eve", set_("colour", "blue")))

    assert open_pulls(bay) == [second.number]
    assert f"Replaces #{first.number}." in second.body
    merge(bay, second.number)
    assert bay.spec().items() >= {"colour": "blue", "motto": "slow"}.items()


def test_requests_of_others_and_for_other_fields_are_left_alone_and_named(
    orderkit: Command, bay: Bay
) -> None:
    mine = pull_of(propose(bay, "eve", set_("colour", "red")))
    theirs = pull_of(propose(bay, "bob", set_("colour", "green")))
    other = propose(bay, "eve", set_("motto", "fast"))

    assert len({mine.number, theirs.number, pull_of(other).number}) == 3
    assert {pull.number for pull in other.other_pulls} == {mine.number, theirs.number}
    direct = orderkit("change", bay.order, "stage=stage2", "--no-wait")
    assert f"also open   {theirs.web_url} ({theirs.title}, user:default/bob)" in direct.out


def test_one_made_by_hand_is_named_and_never_touched(bay: Bay) -> None:
    forge = bay.platform.forge
    forge.ensure_branch(bay.repo, "my-branch", bay.head)
    bay.edit("stage1", "stage1\n  colour: black", branch="my-branch")
    by_hand = Operation("hand", "user:default/eve", "By hand")
    hand = forge.open_pull(bay.repo, PullDraft("Paint", "", "my-branch"), by_hand)

    done = propose(bay, "eve", set_("colour", "red"))

    assert [pull.number for pull in done.other_pulls] == [hand.number]
    assert open_pulls(bay) == [hand.number, pull_of(done).number]


def test_merged_out_of_order_nothing_is_lost_silently(bay: Bay) -> None:
    """The later one is merged first; the earlier one then conflicts and is asked for anew."""
    early = pull_of(propose(bay, "eve", set_("colour", "red")))
    late = pull_of(propose(bay, "bob", set_("colour", "green")))

    merge(bay, late.number)
    with pytest.raises(ConflictError):
        merge(bay, early.number, deadline_s=1)
    anew = pull_of(propose(bay, "eve", set_("colour", "red")))
    merge(bay, anew.number)

    assert bay.spec()["colour"] == "red"
    assert "| `colour` | `green` | `red` |" in anew.body
    assert open_pulls(bay) == []


def test_a_closed_one_can_be_asked_for_again(bay: Bay) -> None:
    first = pull_of(propose(bay, "eve", set_("colour", "red")))
    bay.platform.forge.close_pull(bay.repo, first.number)

    second = pull_of(propose(bay, "eve", set_("colour", "red")))

    assert (second.state, second.number > first.number) == ("open", True)


def test_asked_for_again_after_an_unrelated_commit_its_branch_is_used_again(bay: Bay) -> None:
    """So a proposal that was killed before its pull request goes on: no second branch."""
    first = pull_of(propose(bay, "eve", set_("colour", "red")))
    bay.platform.forge.close_pull(bay.repo, first.number)
    bay.put({PurePosixPath("README.md"): "Mind the step."})

    second = pull_of(propose(bay, "eve", set_("colour", "red")))

    assert second.head == first.head
    assert len(bay.platform.forge.compare(bay.repo, "main", second.head)) == 1


def test_a_merged_and_reverted_one_can_be_asked_for_again(bay: Bay) -> None:
    text = bay.text()
    merge(bay, pull_of(propose(bay, "eve", set_("colour", "red"))).number)
    bay.put({XR: text})

    again = pull_of(propose(bay, "eve", set_("colour", "red")))
    merge(bay, again.number)

    assert bay.spec()["colour"] == "red"


@pytest.mark.parametrize("style", [MergeStyle.MERGE, MergeStyle.SQUASH])
def test_an_operation_is_found_again_however_it_was_merged(bay: Bay, style: MergeStyle) -> None:
    edit = set_("colour", "red")
    first = propose(bay, "eve", edit, operation="op-1")
    repeated = propose(bay, "eve", edit, operation="op-1")
    merge(bay, pull_of(first).number, style)
    bay.edit("red", "blue")
    head = bay.head

    merged = propose(bay, "eve", edit, operation="op-1")

    assert (repeated.repeated, pull_of(repeated).number) == (True, pull_of(first).number)
    assert (repeated.diff, repeated.edits) == (first.diff, first.edits)
    assert (merged.state, merged.repeated) == ("committed", True)
    assert merged.commit is not None
    assert not bay.platform.forge.compare(bay.repo, "main", merged.commit)
    assert bay.head == head


def test_an_operation_that_was_overtaken_in_its_own_request_stays_so(bay: Bay) -> None:
    propose(bay, "eve", set_("colour", "red"), operation="op-1")
    second = propose(bay, "eve", set_("colour", "blue"), operation="op-2")

    again = propose(bay, "eve", set_("colour", "red"), operation="op-1")

    assert (again.repeated, pull_of(again).number) == (True, pull_of(second).number)
    assert bay.spec(pull_of(second).head)["colour"] == "blue"
    with pytest.raises(InvalidInputError, match="is the id of another change"):
        propose(bay, "eve", set_("colour", "green"), operation="op-1")


def test_a_direct_change_may_be_proposed_but_a_reviewed_one_not_committed(bay: Bay) -> None:
    assert propose(bay, "eve", set_("stage", "stage2"), how=How.REVIEW).state == "proposed"
    with pytest.raises(RefusedError, match="must be reviewed"):
        propose(bay, "eve", set_("colour", "red"), how=How.DIRECT)


def test_who_is_held_against_a_proof_and_not_against_a_claim(bay: Bay) -> None:
    wanted = ChangeRequest(
        order=bay.order,
        edits=(set_("stage", "stage2"),),
        requester=Requester("user:default/bob", "signed"),
    )
    with pytest.raises(RefusedError, match="may not"):
        change(bay.platform, wanted)

    assert propose(bay, "bob", set_("stage", "stage3")).state == "committed"


WRITES = {
    "branch": ("/branches", "/git/refs"),
    "commit": ("/contents", "/graphql", "/repository/commits"),
    "pull request": ("/pulls", "/merge_requests"),
}
"""How the addresses end to which each of the forges takes it."""


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.DROP_BEFORE, Fault.REFUSE_AFTER])
@pytest.mark.parametrize("write", WRITES)
def test_a_proposal_survives_a_lost_answer_to_each_of_its_writes(
    bay: Bay, through: Through, write: str, fault: Fault
) -> None:
    def applies(method: str, path: str) -> bool:
        return method == "POST" and path.partition("?")[0].endswith(WRITES[write])

    with through(Listed([Decision(fault)], applies)) as platform:
        done = ask(bay, set_("colour", "red"), platform=platform)

    pull = pull_of(done)
    assert open_pulls(bay) == [pull.number]
    assert len(bay.platform.forge.compare(bay.repo, "main", pull.head)) == 1


# --- somebody else acts meanwhile, or the forge fails


@dataclass
class Meanwhile(Plan):
    """Lets somebody else act once, before the first request that `applies`."""

    act: Callable[[], object]
    applies: Callable[[str, str], bool]
    done: bool = False

    def decide(self, method: str, path: str) -> Decision:
        if self.done or not self.applies(method, path):
            return Decision()
        self.done = True
        return Decision(Fault.HOOK_BEFORE)

    def hook(self) -> None:
        self.act()


def is_update(method: str, path: str) -> bool:
    """Say whether a request changes a pull request's text."""
    return method in {"PATCH", "PUT"} and any(part in path for part in ("/pulls/", "/merge_req"))


@pytest.mark.parametrize("is_branch", [True, False], ids=["its branch is deleted", "it is closed"])
def test_a_request_that_goes_while_it_is_brought_up_to_date_is_made_anew(
    bay: Bay, through: Through, *, is_branch: bool
) -> None:
    first, forge = pull_of(propose(bay, "eve", set_("colour", "red"))), bay.platform.forge

    def goes() -> None:
        if is_branch:
            forge.delete_branch(bay.repo, first.head)
        else:
            forge.close_pull(bay.repo, first.number)

    plan = Meanwhile(goes, is_contents if is_branch else is_update)
    with through(plan) as platform:
        done = ask(bay, set_("colour", "blue"), platform=platform)

    assert plan.done
    assert open_pulls(bay) == [pull_of(done).number] != [first.number]
    assert bay.spec(pull_of(done).head)["colour"] == "blue"


def test_one_whose_branch_has_no_xr_is_named_and_hinders_nothing(bay: Bay) -> None:
    forge = bay.platform.forge
    forge.ensure_branch(bay.repo, "my-branch", bay.head)
    bay.put({XR: None}, branch="my-branch")
    by_hand = Operation("hand", "user:default/eve", "By hand")
    hand = forge.open_pull(bay.repo, PullDraft("Clear out", "", "my-branch"), by_hand)

    done = propose(bay, "eve", set_("colour", "red"))

    assert [pull.number for pull in done.other_pulls] == [hand.number]


def test_who_cannot_see_whose_requests_are_open_opens_no_second_one(
    bay: Bay, through: Through
) -> None:
    first = pull_of(propose(bay, "eve", set_("colour", "red")))

    def reads_it(method: str, path: str) -> bool:
        return method == "GET" and "/compare/" in path

    lost = [Decision(Fault.REFUSE_BEFORE, Falsehood(503, b"{}"))] * 20
    with through(Listed(lost, reads_it)) as platform, pytest.raises(RemoteError):
        ask(bay, set_("colour", "blue"), platform=platform)

    assert open_pulls(bay) == [first.number]


def test_the_status_that_the_forge_did_not_take_is_set_by_the_same_operation(
    platform: Platform, through: Through
) -> None:
    """Without the service, which sets one whenever a team's webhook tells it of the request."""
    bay = new_bay(replace(platform, webhook=None), "untold")

    def is_status(method: str, path: str) -> bool:
        return method == "POST" and "/statuses/" in path

    lost = [Decision(Fault.REFUSE_BEFORE, Falsehood(503, b"{}"))] * 20
    request = partial(ask, bay, set_("colour", "red"), operation="op-1")
    with through(Listed(lost, is_status)) as proxied:
        pull = pull_of(request(platform=proxied))
    forge = bay.platform.forge
    assert forge.statuses(bay.repo, pull.head_commit) == ()

    assert request().repeated

    assert [found.context for found in forge.statuses(bay.repo, pull.head_commit)] == [CONTEXT]


def test_a_request_that_could_not_be_closed_is_replaced_by_the_same_operation(
    bay: Bay, through: Through
) -> None:
    old = pull_of(propose(bay, "eve", set_("colour", "red")))
    bay.edit('stage: "stage1"', 'stage: "stage1"\n  motto: slow')
    request = partial(ask, bay, set_("colour", "blue"), operation="op-1")

    def closes(method: str, path: str) -> bool:
        return method != "GET" and path.partition("?")[0].endswith(
            (f"/issues/{old.number}/comments", f"/merge_requests/{old.number}/notes")
        )

    lost = [Decision(Fault.REFUSE_BEFORE, Falsehood(503, b"{}"))] * 20
    with through(Listed(lost, closes)) as platform, pytest.raises(RemoteError):
        request(platform=platform)
    (both, _) = open_pulls(bay)
    assert both == old.number

    assert request().repeated

    assert open_pulls(bay) == [old.number + 1]


@pytest.mark.parametrize("person", ["bob", "eve"])
def test_a_text_that_somebody_edited_closes_no_other_request(bay: Bay, person: str) -> None:
    """It says that it replaces one: of another person, or one that Orderkit did not open."""
    forge = bay.platform.forge
    if person == "bob":
        other = pull_of(propose(bay, person, set_("colour", "green")))
    else:
        forge.ensure_branch(bay.repo, "my-branch", bay.head)
        bay.edit('stage: "stage1"', 'stage: "stage1"\n  colour: black', branch="my-branch")
        by_hand = Operation("hand", "user:default/eve", "By hand")
        other = forge.open_pull(bay.repo, PullDraft("Paint", "", "my-branch"), by_hand)
    mine = pull_of(propose(bay, "eve", set_("colour", "red"), operation="op-1"))
    body = f"{mine.body}\n\nReplaces #{other.number}."
    edited = Operation("op-1", "user:default/eve", "edited")
    forge.update_pull(bay.repo, mine.number, edited, title=mine.title, body=body)

    assert propose(bay, "eve", set_("colour", "red"), operation="op-1").repeated

    assert open_pulls(bay) == [other.number, mine.number]
