"""
What people do to a living order past Orderkit, on the forge, in the ledger and in the cluster.

Nothing of it deletes the order; ``status`` says what happened, by whom and what helps, and
``orderkit repair`` brings back what it can. What a real forge or Argo CD decides is in
``tests/e2e/shared_lab/test_orders_at_risk.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import yaml
from commands import Command
from forgeusers import embedded_admin
from mischief import (
    BY_NOBODY,
    FILE,
    MENDED,
    NAMED,
    XGARAGE,
    Mischief,
    Victim,
    Victims,
    archive_repository,
    delete_main,
    delete_repository,
    edit_record,
    leave_main,
    leave_project,
    remove_ledger_file,
    rename_main,
    write_entry,
)
from roguery import place, unprotect

from ground.names import OrderId, TeamName
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    CONFIG_MAP,
    NAMESPACE,
    ObjectKey,
    dig,
)
from orderkit.core.order.ledger_applications import is_safe, order_application
from orderkit.flows.argocd.commit_pinning import application_at
from orderkit.flows.argocd.refreshing import nudge, refresh
from orderkit.flows.platform import write_ledger
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.cluster import InvalidObjectError
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running
from yamlfiles import yaml11


@pytest.fixture(scope="module")
def new_victim(
    platform: Running, new_name: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Victim]:
    flows = platform.platform
    admin = embedded_admin(flows.forge.base_url, platform.embedded.state.folder)

    def make() -> Victim:
        team = new_name()
        add_team(flows, TeamName(team), requester="user:default/chief")
        entry = place(flows, "garage", team)
        return Victim(flows, admin, entry, tmp_path_factory.mktemp(team))

    return make


@pytest.fixture
def fresh_victim(new_victim: Callable[[], Victim]) -> Victim:
    """Return an order to which nobody has done anything."""
    return new_victim()


@pytest.fixture(scope="module")
def victims(new_victim: Callable[[], Victim]) -> Victims:
    return Victims(new_victim)


@pytest.fixture
def victim(victims: Victims) -> Victim:
    return victims.next()


def without_progress(status: str) -> str:
    """Leave out what moves by itself: ages, and what Argo CD applied last."""
    return re.sub(r"(\d+ ?(s|m|h|min|hours?)|moments) ago|(?m:^ +delivered .*\n)", "", status)


@pytest.mark.parametrize("mischief", MENDED, ids=lambda mischief: mischief.reason)
def test_status_explains_it_and_repair_mends_it(
    mischief: Mischief, victim: Victim, orderkit: Command
) -> None:
    order, uid = victim.entry.order, victim.xr_uid()
    says, repaired = (mischief.words(t, victim) for t in (mischief.says, mischief.repaired))
    mischief.act(victim)
    told = victim.until(lambda report: says in report.state.reason, says).state

    shown = orderkit("status", order)
    planned = orderkit("repair", order, "--dry-run")
    still = orderkit("status", order)
    mended = orderkit("repair", order)
    ready = victim.until(lambda report: report.state.ready, "Ready again").state
    again = orderkit("repair", order)

    assert (told.phase, told.advice) == ("Failing", f"orderkit repair {order}")
    assert says in shown.out
    assert (BY_NOBODY in shown.out) == any(word in mischief.reason for word in NAMED)
    assert repaired in planned.out
    assert without_progress(still.out) == without_progress(shown.out), "a dry run changed something"
    assert (mended.code, mended.err) == (0, ""), mended.out
    assert f"repaired    {repaired}" in mended.out
    assert (ready.reason, ready.advice) == ("", "")
    assert again.out == f"{order}: nothing to repair\n"
    assert victim.xr_uid() == uid, "the order was deleted and made again"


def test_main_is_not_made_of_a_commit_that_went_with_an_earlier_repository(
    fresh_victim: Victim, orderkit: Command
) -> None:
    victim, order = fresh_victim, fresh_victim.entry.order
    delete_repository(victim)
    assert orderkit("repair", order).code == 0
    unprotect(victim.platform, victim.entry.repository)
    delete_main(victim)
    told = victim.until(lambda report: "has no branch main" in report.state.reason, "told").state

    repaired = orderkit("repair", order)

    assert told.advice == "push main again"
    assert repaired.code == 1
    assert "what to do  push main again" in repaired.out


def test_a_deleted_ledger_file_deletes_nothing_and_the_order_is_still_delivered(
    fresh_victim: Victim, orderkit: Command
) -> None:
    victim = fresh_victim
    uid = victim.xr_uid()
    remove_ledger_file(victim)
    team = f"team-{victim.entry.team}"
    until(
        victim.platform.clock,
        lambda: victim.get(APPLICATION, team, ARGOCD_NAMESPACE) or {},
        lambda app: dig(app, "status", "sync", "status") == "OutOfSync",
        timeout_s=victim.within_s,
        goal="Argo CD seeing the file gone",
    )
    head = victim.push(FILE, lambda text: text.replace("stage1", "stage2"))
    victim.until(lambda report: report.state.revision == head, "the push being delivered")
    found = orderkit("doctor", "--json").json["findings"]
    orders = next(one for one in found if one["what"] == "orders")

    assert victim.xr_uid() == uid
    assert orders["verdict"] == "warn"
    assert f"{victim.entry.order}: " in orders["detail"]
    assert "Mallory" in orders["detail"]
    assert f"orderkit repair {victim.entry.order}" in orders["advice"]
    assert orderkit("change", victim.entry.order, "stage=stage3").code == 1
    assert orderkit("repair", victim.entry.order).code == 0
    assert orderkit("destroy", "--yes", victim.entry.order).code == 0
    assert victim.get(XGARAGE, victim.entry.order) is None


def test_an_order_that_was_refused_as_one_too_many_is_not_put_back(
    victim: Victim, orderkit: Command
) -> None:
    """The ledger's last word about it is the commit that took it out again."""
    platform, order = victim.platform, OrderId(f"{victim.entry.order}-2")
    entry = replace(victim.entry, order=order)
    application = order_application(
        entry, kit="garage", forge_url=platform.forge.base_url, commit=None, stage="entering"
    )
    path, texts = entry.application_path, (yaml11.dump(application), None)
    for action, text in zip(("register", "refuse"), texts, strict=True):
        operation = Operation(f"{action}-{order}", "user:default/test", f"{order}: {action}")
        write_ledger(platform, {path: text}, operation)
    until(
        platform.clock,
        lambda: victim.get(APPLICATION, order, ARGOCD_NAMESPACE),
        lambda application: application is None,
        timeout_s=victim.within_s,
        goal="no Application of it",
    )

    repaired = orderkit("repair", order)

    assert repaired.code == 1
    assert f"no order '{order}' in the ledger" in repaired.err
    assert platform.forge.read(platform.ledger, path, "main") is None


def test_an_edited_entry_of_the_ledger_is_listed_and_no_change_is_written(
    fresh_victim: Victim, orderkit: Command
) -> None:
    victim, order = fresh_victim, fresh_victim.entry.order
    head = victim.platform.forge.head(victim.entry.repository)
    leave_project(victim)
    says = f"{victim.entry.application_path} was edited: spec.project is 'default', not"
    victim.until(lambda report: says in report.state.reason, says)

    listed = orderkit("list", "--json").json["orders"]
    found = orderkit("doctor", "--json").json["findings"]
    changed = orderkit("change", order, "stage=stage2")
    proposals = victim.platform.forge.pulls(victim.entry.repository, state="all")
    assert orderkit("repair", order).code == 0
    written = application_at(victim.platform, victim.entry) or {}

    row = next(one for one in listed if one["order"] == order)
    assert (row["phase"], says in row["reason"]) == ("Failing", True)
    assert says in next(one for one in found if one["what"] == "orders")["detail"]
    assert (changed.code, says in changed.err) == (4, True)
    assert f"orderkit repair {order}" in changed.err
    assert (victim.platform.forge.head(victim.entry.repository), list(proposals)) == (head, [])
    assert dig(written, "spec", "project") == victim.entry.team
    assert orderkit("change", order, "stage=stage2", "--no-wait").code == 0


@pytest.mark.parametrize("relabelled", [False, True], ids=["labels as before", "its own labels"])
def test_a_copied_entry_of_the_ledger_is_to_be_removed_and_the_order_is_whole(
    fresh_victim: Victim, orderkit: Command, *, relabelled: bool
) -> None:
    victim, order, uid = fresh_victim, fresh_victim.entry.order, fresh_victim.xr_uid()
    copy = f"{order}-copy"
    path = victim.entry.application_path.with_stem(copy)

    def copied(text: str) -> str:
        application = yaml.safe_load(text)
        application["metadata"]["name"] = copy
        if relabelled:
            application["metadata"]["labels"]["orderkit.dev/order"] = copy
        return yaml.safe_dump(application)

    write_entry(victim, copied, path)
    says = f"repository: git rm {path}"
    until(
        victim.platform.clock,
        lambda: orderkit("status", copy),
        lambda shown: says in shown.out,
        timeout_s=victim.within_s,
        goal=says,
    )

    shown = orderkit("status", copy)
    found = orderkit("doctor", "--json").json["findings"]
    repaired = orderkit("repair", copy)
    whole = orderkit("repair", order)
    pusher = victim.clone(victim.platform.ledger, "ledger")
    pusher.git("rm", "-q", str(path))
    pusher.commit("as told", {})
    pusher.git("push", "--quiet", "origin", "main")
    refresh(victim.platform.cluster, f"team-{victim.entry.team}")
    ready = victim.until(lambda report: report.state.ready, "Ready").state

    orders = next(one for one in found if one["what"] == "orders")
    assert f"{copy} delivers " in shown.out
    assert says in orders["detail"]
    for told in (shown.out, orders["advice"], repaired.out):
        assert f"orderkit repair {copy}" not in told
        assert f"git rm {path}; commit and push the ledger" in told
        assert "does not exist any more" not in told
    assert (repaired.code, whole.out) == (1, f"{order}: nothing to repair\n")
    assert (ready.reason, victim.xr_uid()) == ("", uid)


def test_a_moved_entry_of_the_ledger_is_to_be_moved_back(
    fresh_victim: Victim, orderkit: Command
) -> None:
    victim, path = fresh_victim, fresh_victim.entry.application_path
    moved = path.with_stem(f"{path.stem}-two")
    pusher = victim.clone(victim.platform.ledger, "ledger")
    pusher.git("mv", str(path), str(moved))
    pusher.commit("tidy up", {})
    pusher.git("push", "--quiet", "origin", "main")

    shown = orderkit("status", moved.stem)
    repaired = orderkit("repair", moved.stem)

    for told in (shown.out, repaired.out):
        assert f"no order is at {path} any more: git mv {moved} {path}" in told
        assert f"orderkit repair {moved.stem}" not in told
    assert repaired.code == 1


def test_a_default_branch_that_is_not_main_is_told_and_put_right(
    fresh_victim: Victim, orderkit: Command
) -> None:
    victim, order = fresh_victim, fresh_victim.entry.order
    leave_main(victim)
    says = f"the default branch of {victim.entry.repository} is 'trunk', not main"

    shown = orderkit("status", order)
    found = orderkit("doctor", "--json").json["findings"]
    planned = orderkit("repair", order, "--dry-run")
    left = victim.admin.api("GET", victim.repo_path)["default_branch"]
    repaired = orderkit("repair", order)

    orders = next(one for one in found if one["what"] == "orders")
    assert (says in shown.out, f"orderkit repair {order}" in shown.out) == (True, True)
    assert says in orders["detail"]
    assert ("main is the default branch again" in planned.out, left) == (True, "trunk")
    assert (repaired.code, "main is the default branch again" in repaired.out) == (0, True)
    assert orderkit("repair", order).out == f"{order}: nothing to repair\n"
    assert victim.is_well()


def test_an_open_pull_request_goes_to_main_again_after_it_was_renamed(
    fresh_victim: Victim, orderkit: Command
) -> None:
    """The forge let it go to the branch's new name."""
    victim, order = fresh_victim, fresh_victim.entry.order
    assert orderkit("change", order, "stage=stage2", "--pr").code == 0
    rename_main(victim)

    planned = orderkit("repair", order, "--dry-run")
    left = victim.admin.api("GET", f"{victim.repo_path}/pulls/1")["base"]["ref"]
    repaired = orderkit("repair", order)
    merged = orderkit("merge", order, "1")

    says = "main is the default branch again; pull request #1 goes to it again"
    assert (says in planned.out, left) == (True, "trunk")
    assert (says in repaired.out, repaired.code) == (True, 1)
    assert f"propose it again: orderkit change {order} FIELD=VALUE --pr" in repaired.out
    assert victim.admin.api("GET", f"{victim.repo_path}/pulls/1")["base"]["ref"] == "main"
    assert "someone changed its base" in merged.err
    assert orderkit("repair", order).out == f"{order}: nothing to repair\n"


def test_a_main_that_is_made_again_is_the_default_branch_again(
    fresh_victim: Victim, orderkit: Command
) -> None:
    delete_main(fresh_victim)

    repaired = orderkit("repair", fresh_victim.entry.order)

    assert (repaired.code, "main is the default branch again" in repaired.out) == (0, True)
    fresh_victim.until(lambda report: report.state.ready and not report.state.reason, "well")
    assert fresh_victim.is_well()


def test_a_forced_push_to_an_older_commit_is_told_and_proposed_to_be_undone(
    fresh_victim: Victim, orderkit: Command
) -> None:
    victim = fresh_victim
    order, repo = victim.entry.order, victim.entry.repository
    head = victim.push(FILE, lambda text: text.replace("stage1", "stage2"))
    victim.until(lambda report: report.state.ready and report.state.revision == head, "stage2")
    pusher = victim.clone()
    lost = pusher.git("rev-parse", "HEAD")
    pusher.git("push", "--quiet", "--force", "origin", "HEAD~1:main")
    refresh(victim.platform.cluster, order)
    said = f"main of {repo} was moved to "
    told = victim.until(
        lambda report: report.state.ready and said in report.state.reason, said
    ).state

    proposed = orderkit("repair", order)
    victim.admin.api("POST", f"{victim.repo_path}/pulls/1/merge", {"Do": "merge"})
    refresh(victim.platform.cluster, order)
    victim.until(lambda report: report.state.ready and not report.state.reason, "merged")

    assert f"{lost[:8]}, which was delivered before, is not part of it any more" in told.reason
    assert told.advice == f"orderkit repair {order}"
    assert proposed.code == 1
    assert f"pull request #1 brings {lost[:8]} back" in proposed.out
    assert dig(victim.get(XGARAGE, order) or {}, "spec", "stage") == "stage2"


def test_a_rule_that_closes_main_is_named_as_the_cause(
    fresh_victim: Victim, orderkit: Command
) -> None:
    victim = fresh_victim
    order, repo = victim.entry.order, victim.entry.repository
    rule = {"rule_name": "main", "enable_push": False}
    victim.admin.api("POST", f"{victim.repo_path}/branch_protections", rule)

    shown = orderkit("status", order)
    repaired = orderkit("repair", order)
    refused = orderkit("destroy", "--yes", order)

    assert refused.code == 1
    assert f"main of {repo} is protected on the forge by the rule 'main'" in refused.err
    assert f"main of {repo} is protected on the forge by the rule 'main'" in shown.out
    assert "remove that rule on the forge" in shown.out
    assert repaired.code == 1
    assert "what to do  remove that rule on the forge" in repaired.out


def test_an_application_deleted_by_hand_comes_back_and_leaves_the_xr_alone(victim: Victim) -> None:
    uid, before = victim.xr_uid(), dig(victim.application(), "metadata", "uid")
    victim.platform.cluster.delete(ObjectKey(APPLICATION, victim.entry.order, ARGOCD_NAMESPACE))
    victim.until(
        lambda report: (
            report.state.ready and dig(victim.application(), "metadata", "uid") != before
        ),
        "Ready with another Application",
    )
    assert victim.xr_uid() == uid


def test_a_team_application_deleted_by_hand_takes_no_order_along(victim: Victim) -> None:
    uid, team = victim.xr_uid(), f"team-{victim.entry.team}"
    before = dig(victim.get(APPLICATION, team, ARGOCD_NAMESPACE) or {}, "metadata", "uid")
    victim.platform.cluster.delete(ObjectKey(APPLICATION, team, ARGOCD_NAMESPACE))
    until(
        victim.platform.clock,
        lambda: dig(victim.get(APPLICATION, team, ARGOCD_NAMESPACE) or {}, "metadata", "uid"),
        lambda now: now not in (None, before),
        timeout_s=victim.within_s,
        goal="the ledger making the team's Application again",
    )
    victim.until(lambda report: report.state.ready, "Ready")
    assert victim.xr_uid() == uid


def test_an_xr_deleted_by_hand_comes_back_and_status_says_so(
    fresh_victim: Victim, orderkit: Command
) -> None:
    victim = fresh_victim
    uid = victim.xr_uid()
    victim.grow_old()
    victim.platform.cluster.delete(ObjectKey(XGARAGE, victim.entry.order))
    victim.until(lambda report: report.state.ready and victim.xr_uid() not in ("", uid), "a new XR")

    shown = orderkit("status", victim.entry.order)

    assert "its XR was deleted in the cluster, and Argo CD made it again at " in shown.out
    assert "what it held is not restored" in shown.out
    victim.push(FILE, lambda text: text.replace("stage1", "stage2"))
    victim.until(lambda report: report.state.ready and not report.state.reason, "delivered since")


def test_a_deleted_namespace_comes_back(victim: Victim) -> None:
    order = victim.entry.order
    uid = dig(victim.get(NAMESPACE, order) or {}, "metadata", "uid")
    victim.platform.cluster.delete(ObjectKey(NAMESPACE, order))

    victim.until(
        lambda report: (
            report.state.ready
            and dig(victim.get(NAMESPACE, order) or {}, "metadata", "uid") not in (None, uid)
            and victim.get(CONFIG_MAP, "spec-sheet", order) is not None
        ),
        "the namespace and what is in it",
    )


def test_labels_and_annotations_changed_by_hand_change_nothing(victim: Victim) -> None:
    key, uid = ObjectKey(XGARAGE, victim.entry.order), victim.xr_uid()
    tracking = {"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "other:/a:b/c"}}}
    label = {"metadata": {"labels": {"example.org/owner": "mallory"}}}

    with pytest.raises(InvalidObjectError, match="no Application delivers"):
        victim.platform.cluster.patch(key, tracking, owner="kubectl")
    victim.platform.cluster.patch(key, label, owner="kubectl")
    refresh(victim.platform.cluster, victim.entry.order)
    told = victim.until(lambda report: report.state.ready, "Ready").state

    assert told.reason == ""
    assert victim.xr_uid() == uid


def test_pushing_another_name_deletes_nothing_and_the_revert_does_not_wait(
    victim: Victim, orderkit: Command
) -> None:
    order, uid = victim.entry.order, victim.xr_uid()
    victim.push(FILE, lambda text: text.replace(order, f"{order}-x"))
    told = victim.until(lambda report: report.state.phase == "Failing", "refused").state
    path = f"{victim.repo_path}/contents/{FILE}"
    found = victim.admin.api("GET", path)
    renamed = victim.platform.forge.read(victim.entry.repository, FILE, "main")
    assert renamed is not None
    text = renamed.text.replace(f"{order}-x", order).encode()
    revert = Operation("revert", "user:default/mallory", "sorry")
    back = victim.platform.forge.write(
        victim.entry.repository, [FileChange(FILE, text, found["sha"])], revert
    ).commit
    refresh(victim.platform.cluster, order)
    repaired = orderkit("repair", order)
    victim.until(lambda report: report.state.ready and report.state.revision == back, "Ready")

    assert f'metadata.name: is "{order}-x", but the XR of {order} is "{order}"' in told.reason
    assert repaired.code == 0
    assert victim.xr_uid() == uid
    assert victim.get(NAMESPACE, order)


def test_what_an_earlier_release_wrote_is_reported_and_brought_up_to_date(
    victim: Victim, orderkit: Command
) -> None:
    """An Application with pruning and a finalizer, as the ledgers of 0.10 have them."""
    entry, forge = victim.entry, victim.platform.forge
    found = forge.read(victim.platform.ledger, entry.application_path, "main")
    assert found is not None
    old = yaml.safe_load(found.data)
    old["spec"]["syncPolicy"]["automated"]["prune"] = True
    old["metadata"]["finalizers"] = ["resources-finalizer.argocd.argoproj.io"]
    del old["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
    change = FileChange(entry.application_path, yaml.safe_dump(old).encode(), found.sha)
    operation = Operation(f"old-{entry.order}", "user:default/chief", "as it was")
    commit = forge.write(victim.platform.ledger, [change], operation).commit
    nudge(victim.platform.cluster, f"team-{entry.team}", commit)

    def settled(safe: bool) -> None:  # noqa: FBT001 - the one thing that it waits for
        until(
            victim.platform.clock,
            victim.application,
            lambda app: is_safe(app) is safe,
            timeout_s=victim.within_s,
            goal=f"the Application being {'safe' if safe else 'as before'}",
        )

    settled(safe=False)
    found_before = orderkit("doctor", "--json").json["findings"]
    assert orderkit("team", "add", entry.team).code == 0
    settled(safe=True)
    found_after = orderkit("doctor", "--json").json["findings"]

    before, after = (
        next(one for one in found if one["what"] == "deletion")
        for found in (found_before, found_after)
    )
    assert before["verdict"] == "fail"
    assert f"can delete what 1 Applications delivered, first {entry.order}" in before["detail"]
    assert after["verdict"] == "ok"


def test_doctor_lists_every_failing_order_once(
    victim: Victim, fresh_victim: Victim, orderkit: Command
) -> None:
    second = fresh_victim
    archive_repository(victim)
    edit_record(second)
    second.until(lambda report: report.state.phase == "Failing", "told")

    found = orderkit("doctor", "--json").json["findings"]
    orders = next(one for one in found if one["what"] == "orders")

    for entry in (victim.entry, second.entry):
        assert orders["detail"].count(f"{entry.order}:") == 1
        assert f"orderkit repair {entry.order}" in orders["advice"]


def test_an_order_that_never_was_is_not_repaired(orderkit: Command) -> None:
    done = orderkit("repair", "garage-nobody")

    assert done.code == 1
    assert "no order 'garage-nobody' in the ledger" in done.err
    assert "orderkit repair" not in done.err, "the hint is not the command that failed"
    assert OrderId("garage-nobody") not in done.out
