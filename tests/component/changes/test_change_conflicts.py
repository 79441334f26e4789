"""Somebody else was there first: which changes that stops, and what the person is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import unquote

import pytest
from bays import EVE, XR, Bay, ask, set_
from commands import Command
from faultproxy import (
    Decision,
    Falsehood,
    Fault,
    Listed,
    Plan,
    is_contents,
    open_proxy,
)
from forgehands import client_at
from roguery import deliver_main
from tests.component.changes.conftest import Through

from ground.errors import (
    ConflictError,
    IncompleteError,
    InvalidInputError,
    RemoteError,
    SeveralProblemsError,
    UsageError,
)
from ground.names import TeamName
from ground.objects.kube_objects import dig
from orderkit.adapters.commit_signatures import Ed25519Signatures
from orderkit.core.order.change import FieldConflictError, FieldEdit
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.commit_pinning import pinned_commit
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.change.applying import ROUNDS
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running


def test_another_field_changed_since_the_base_is_no_obstacle(orderkit: Command, bay: Bay) -> None:
    base = bay.head
    bay.edit('stage: "stage1"', 'stage: "stage1"\n  note: hello')

    done = orderkit("change", bay.order, "stage=stage2", "--base", base[:10], "--no-wait")

    assert done.code == 0, done.err
    assert (bay.spec()["stage"], bay.spec()["note"]) == ("stage2", "hello")


def test_the_same_field_changed_since_the_base_is_a_conflict_with_both_values(
    orderkit: Command, bay: Bay
) -> None:
    base = bay.head
    theirs = bay.edit("stage1", "stage3")
    bay.edit('"stage3"', '"stage3"\n  motto: later')

    done = orderkit("change", bay.order, "stage=stage2", "note=x", "--base", base)

    assert done.code == 3, done.out
    assert "stage is stage3 now (it was stage1, by user:default/hand in" in done.err
    assert theirs[:8] in done.err
    assert "requested was stage2; nothing was written" in done.err
    assert "note" not in bay.spec()


def test_the_conflict_names_author_and_values_as_data(bay: Bay) -> None:
    base = bay.head
    theirs = bay.edit("stage1", "stage3")

    with pytest.raises(FieldConflictError) as caught:
        ask(bay, set_("stage", "stage2"), base=base)

    (found,) = (each.answer.to_json() for each in caught.value.conflicts)
    assert (found["seen"], found["now"], found["wanted"]) == ("stage1", "stage3", "stage2")
    assert (found["commit"], found["requester"]) == (theirs, "user:default/hand")
    assert "<" in found["author"]


def test_what_somebody_else_set_to_the_same_value_is_unchanged(bay: Bay) -> None:
    base = bay.head
    bay.edit("stage1", "stage2")

    assert ask(bay, set_("stage", "stage2"), base=base).state == "unchanged"


def test_a_field_that_came_back_to_what_was_seen_is_no_conflict(bay: Bay) -> None:
    base = bay.head
    bay.edit("stage1", "stage3")
    bay.edit("stage3", "stage1")

    assert ask(bay, set_("stage", "stage2"), base=base).state == "committed"


def test_elements_of_a_list_do_not_mind_each_other(bay: Bay) -> None:
    ask(bay, set_("guests", ["ann"]))
    base = bay.head
    ask(bay, FieldEdit("guests", "add", "bob"))
    ask(bay, FieldEdit("guests", "remove", "ann"))

    done = ask(bay, FieldEdit("guests", "add", "cid"), base=base)

    assert done.state == "committed"
    assert bay.spec()["guests"] == ["bob", "cid"]
    with pytest.raises(FieldConflictError):
        ask(bay, set_("guests", ["dan"]), base=base)


def test_a_sum_conflicts_only_with_a_base_that_somebody_looked_at(bay: Bay) -> None:
    ask(bay, set_("budget", 10))
    base = bay.head
    ask(bay, FieldEdit("budget", "add", 5))

    with pytest.raises(FieldConflictError):
        ask(bay, FieldEdit("budget", "add", 1), base=base)
    ask(bay, FieldEdit("budget", "add", 1))

    assert bay.spec()["budget"] == 16


# --- races and lost answers


@dataclass
class Rival(Plan):
    """Lets somebody else act around the first commit that passes."""

    fault: Fault
    act: Callable[[], object]
    done: bool = False

    def decide(self, method: str, path: str) -> Decision:
        if self.done or not is_contents(method, path):
            return Decision()
        self.done = True
        return Decision(self.fault)

    def hook(self) -> None:
        self.act()


def test_a_lost_race_for_another_field_is_run_again(bay: Bay, through: Through) -> None:
    rival = Rival(Fault.HOOK_BEFORE, lambda: ask(bay, set_("note", "mine")))

    with through(rival) as platform:
        done = ask(bay, set_("stage", "stage2"), platform=platform)

    assert (done.state, rival.done) == ("committed", True)
    assert (bay.spec()["stage"], bay.spec()["note"]) == ("stage2", "mine")


def test_a_lost_race_for_the_same_field_is_a_conflict(bay: Bay, through: Through) -> None:
    rival = Rival(Fault.HOOK_BEFORE, lambda: ask(bay, set_("stage", "stage3")))

    with through(rival) as platform, pytest.raises(FieldConflictError, match="is stage3 now"):
        ask(bay, set_("stage", "stage2"), platform=platform)

    assert bay.spec()["stage"] == "stage3"


@dataclass
class Crowd(Plan):
    """Lets somebody else change the order's file before each commit that passes."""

    act: Callable[[], object]
    commits: int = 0

    def decide(self, method: str, path: str) -> Decision:
        is_commit = is_contents(method, path)
        self.commits += is_commit
        return Decision(Fault.HOOK_BEFORE if is_commit else Fault.PASS)

    def hook(self) -> None:
        self.act()


def test_who_loses_every_race_is_told_of_a_conflict_and_changed_nothing(
    bay: Bay, through: Through
) -> None:
    crowd = Crowd(lambda: bay.put({XR: bay.text() + "# another line\n"}))

    with through(crowd) as platform, pytest.raises(ConflictError):
        ask(bay, set_("stage", "stage2"), platform=platform)

    assert crowd.commits >= ROUNDS
    assert bay.spec()["stage"] == "stage1"


def test_equal_sums_at_the_same_time_both_count(bay: Bay, through: Through) -> None:
    """Both make the same text of it, so the forge cannot tell them apart."""
    ask(bay, set_("budget", 10))
    rival = Rival(Fault.HOOK_BEFORE, lambda: ask(bay, FieldEdit("budget", "add", 5)))

    with through(rival) as platform:
        done = ask(bay, FieldEdit("budget", "add", 5), platform=platform)

    assert (done.state, bay.spec()["budget"]) == ("committed", 20)


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.CUT_AFTER, Fault.REFUSE_AFTER])
def test_a_lost_answer_is_cleared_up_and_counts_once(
    bay: Bay, through: Through, fault: Fault
) -> None:
    ask(bay, set_("budget", 10))
    commits = len(bay.commits())

    with through(Listed([Decision(fault)], is_contents)) as platform:
        done = ask(bay, FieldEdit("budget", "add", 5), platform=platform)

    assert (done.state, done.commit, bay.spec()["budget"]) == ("committed", bay.head, 15)
    assert len(bay.commits()) == commits + 1


def test_a_lost_answer_is_found_below_somebody_elses_commit(bay: Bay, through: Through) -> None:
    rival = Rival(Fault.HOOK_AFTER, lambda: ask(bay, set_("note", "on top")))

    with through(rival) as platform:
        done = ask(bay, set_("stage", "stage2"), platform=platform)

    assert (done.state, done.commit) == ("committed", bay.commits()[1].id)
    assert (bay.spec()["stage"], bay.spec()["note"]) == ("stage2", "on top")


def test_who_never_learns_what_became_of_it_is_told_how_to_repeat(
    bay: Bay, through: Through
) -> None:
    ask(bay, set_("budget", 10))

    @dataclass
    class Silence(Plan):
        """Every answer is lost once the commit was sent."""

        sent: bool = False

        def decide(self, method: str, path: str) -> Decision:
            lost = Fault.DROP_AFTER if method != "GET" else Fault.DROP_BEFORE
            self.sent = self.sent or is_contents(method, path)
            return Decision(lost if self.sent else Fault.PASS)

    edit = FieldEdit("budget", "add", 5)
    with through(Silence()) as platform, pytest.raises(RemoteError) as caught:
        ask(bay, edit, platform=platform, operation="op-5")
    assert "--operation op-5" in caught.value.hint

    again = ask(bay, edit, operation="op-5")

    assert (again.state, again.repeated, bay.spec()["budget"]) == ("committed", True, 15)


def test_a_change_that_the_ledger_did_not_take_is_delivered_by_the_same_again(
    bay: Bay, through: Through
) -> None:
    entry = OrderEntry(TeamName(bay.repo.owner), bay.order)
    before = pinned_commit(bay.platform, entry)
    ledger = f"/{bay.platform.ledger}/"

    def is_ledgers(method: str, path: str) -> bool:
        return is_contents(method, path) and ledger in unquote(path)

    lost = Listed([Decision(Fault.REFUSE_BEFORE, Falsehood(503, b"{}"))] * 40, is_ledgers)
    with through(lost) as platform, pytest.raises(IncompleteError) as caught:
        ask(bay, set_("stage", "stage2"), platform=platform)

    assert f"{bay.order}: {bay.head[:8]} is on main and not delivered yet: " in str(caught.value)
    assert pinned_commit(bay.platform, entry) == before
    assert ask(bay, set_("stage", "stage2")).state == "unchanged"
    assert pinned_commit(bay.platform, entry) == bay.head


def test_an_operation_changes_nothing_twice_whatever_came_after_it(bay: Bay) -> None:
    first = ask(bay, set_("stage", "stage2"), operation="op-1")
    ask(bay, set_("stage", "stage3"))
    head = bay.head

    again = ask(bay, set_("stage", "stage2"), operation="op-1")

    assert (again.state, again.commit, again.repeated) == ("committed", first.commit, True)
    assert (again.diff, again.edits) == (first.diff, first.edits)
    assert bay.head == head


def test_an_operation_is_for_one_request_only(bay: Bay) -> None:
    ask(bay, set_("stage", "stage2"), operation="op-1")

    with pytest.raises(InvalidInputError, match="is the id of another change"):
        ask(bay, set_("stage", "stage3"), operation="op-1")


def test_a_request_without_an_edit_is_a_mistake(bay: Bay) -> None:
    with pytest.raises(UsageError, match="nothing to change"):
        ask(bay)


def test_all_that_is_wrong_with_a_request_is_said_at_once(bay: Bay) -> None:
    """A field that there is not, and one that somebody made no list by hand."""
    bay.edit('stage: "stage1"', 'stage: "stage1"\n  guests: ann')

    with pytest.raises(SeveralProblemsError) as caught:
        ask(bay, set_("colours", "red"), FieldEdit("guests", "add", "bob"))

    told = str(caught.value)
    assert "no such field" in told
    assert "is neither a list nor a number" in told


# --- a machine that cannot sign


@contextmanager
def keyless(site: Running, url: str = "") -> Iterator[Platform]:
    """Give the platform as a machine without the signing key has it, with a client of its own."""
    settings = site.settings.forge
    with client_at(url or settings.url, settings, None, read_timeout_s=30) as forge:
        yield replace(site.platform, forge=forge, signatures=Ed25519Signatures(None))


@pytest.mark.parametrize("planted", ["stage: stage3", "{"], ids=["another value", "no XR"])
def test_a_machine_without_the_key_takes_only_the_requested_values_for_its_own_commit(
    site: Running, bay: Bay, planted: str
) -> None:
    """Whoever may push can write the operation's id into a commit of their own."""
    text = bay.text()
    with keyless(site) as platform:
        for data in (text.replace('stage: "stage1"', planted), text):
            there = platform.forge.tree(bay.repo, bay.head)
            change = FileChange(XR, data.encode(), there[XR])
            platform.forge.write(bay.repo, [change], Operation("op-1", EVE.ref, "planted"))

        done = ask(bay, set_("stage", "stage2"), platform=platform, operation="op-1")

    assert (done.repeated, bay.spec()["stage"]) == (False, "stage2")


def test_a_machine_without_the_key_that_cannot_read_its_commit_does_not_change_twice(
    site: Running, bay: Bay
) -> None:
    """What passes says nothing about the commit: the same command finds it later."""
    again = partial(ask, bay, set_("budget", 5), operation="op-1")
    with keyless(site) as platform:
        first = again(platform=platform)
    ask(bay, set_("budget", 7))
    head = bay.head

    def reads_the_commit(method: str, path: str) -> bool:
        is_of_it = str(first.commit) in path and not path.partition("?")[0].endswith("/commits")
        return method == "GET" and is_of_it and "/compare/" not in path

    lost = Listed([Decision(Fault.REFUSE_BEFORE, Falsehood(503, b"{}"))] * 50, reads_the_commit)
    with open_proxy(site.settings.forge.url) as proxy, keyless(site, proxy.url) as platform:
        with proxy.using(lost), pytest.raises(RemoteError):
            again(platform=platform)
        assert (bay.head, again(platform=platform).commit) == (head, first.commit)


# --- revert


def test_a_revert_gives_the_fields_of_a_commit_their_old_values(
    orderkit: Command, bay: Bay
) -> None:
    commit = ask(bay, set_("stage", "stage2"), set_("note", "x"), set_("pit", {"bays": 1})).commit
    ask(bay, set_("laps", 3))
    assert commit is not None

    done = orderkit("revert", bay.order, commit[:9], "--no-wait", "--json")
    again = orderkit("revert", bay.order, commit, "--no-wait", "--json")

    assert (done.code, done.json["state"]) == (0, "committed"), done.err
    assert {"stage": "stage1", "laps": 3}.items() <= bay.spec().items()
    assert not {"note", "pit"} & bay.spec().keys()
    assert f"reverts {commit[:8]}" in bay.commits()[0].message
    assert again.json["state"] == "unchanged"


def test_a_revert_takes_nothing_from_those_who_came_later(orderkit: Command, bay: Bay) -> None:
    commit = ask(bay, set_("stage", "stage2")).commit
    ask(bay, set_("stage", "stage3"))
    first = bay.commits()[-1].id
    assert commit is not None

    later = orderkit("revert", bay.order, commit)
    order = orderkit("revert", bay.order, first)
    nothing = orderkit("revert", bay.order, bay.put({PurePosixPath("NOTES"): "x"}))

    assert (later.code, "stage is stage3 now (it was stage2" in later.err) == (3, True), later.err
    assert (order.code, "placed the order" in order.err) == (4, True)
    assert (nothing.code, "changed no field" in nothing.err) == (2, True)


def test_a_commit_whose_values_cannot_be_read_is_not_reverted(orderkit: Command, bay: Bay) -> None:
    text = bay.text()
    commits = [bay.put({XR: "{"}), bay.put({XR: text})]

    broken, whole_again = (orderkit("revert", bay.order, commit) for commit in commits)

    assert (broken.code, whole_again.code) == (4, 4)
    assert f"at {commits[0][:8]} cannot be reverted: " in broken.err
    assert f"at {commits[1][:8]} cannot be reverted: before it: " in whole_again.err
    assert bay.text() == text


def test_a_revert_is_held_to_the_kits_rules(orderkit: Command, bay: Bay) -> None:
    ask(bay, set_("budget", 10))
    commit = ask(bay, set_("budget", 20)).commit
    assert commit is not None

    done = orderkit("revert", bay.order, commit)

    assert (done.code, "it may only grow" in done.err) == (4, True), done.err


# --- an operation that pins an older commit


def test_a_change_gets_past_an_operation_that_retries_a_bad_commit(
    orderkit: Command, bay: Bay, platform: Platform
) -> None:
    """Argo CD would retry the bad one ten times before it looked at the next."""
    bay.edit("apiVersion: blog.opsbogus.dev/v1alpha1", "apiVersion: blog.opsbogus.dev/v9")
    deliver_main(platform, bay.repo)
    until(
        platform.clock,
        lambda: platform.cluster.get(application_key(bay.order)) or {},
        lambda found: dig(found, "status", "operationState", "retryCount", default=0) > 0,
        timeout_s=90,
        goal="a retry of the bad commit",
    )
    bay.edit("apiVersion: blog.opsbogus.dev/v9", "apiVersion: blog.opsbogus.dev/v1alpha1")

    done = orderkit("change", bay.order, "stage=stage2", "--timeout", "180", "--json")

    assert (done.code, done.json["ready"]) == (0, True), done.err
