"""Pull requests that people open by hand get their plan: one comment, and a status to trust."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

import pytest
import yaml
from bays import XR, Bay, ask, new_bay, set_
from commands import Command
from faultproxy import Decision, Falsehood, Fault, Listed
from faultproxy import Plan as Faults
from packcopies import published
from pullhand import Hand
from roguery import deliver_main

from ground.argocd.sync_rules import HELM_HOOK, HINT, HOOK
from ground.errors import NotFoundError, RefusedError
from ground.names import RepoId
from orderkit.core.kit.kit_file import How
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.plan.pull_requests import (
    ACCEPT_LOSS,
    keep_planned,
    plan_pull,
    publish,
    unplanned,
)
from orderkit.flows.platform import Platform
from orderkit.ports.forge import PullRequest
from orderkit_standins.serve_platform import Running

Through = Callable[[Faults], AbstractContextManager[Platform]]


@pytest.fixture
def hand(site: Running, bay: Bay) -> Hand:
    return Hand(site.settings, bay)


@pytest.fixture(scope="module")
def lifted(site: Running) -> Hand:
    """An order with a lift and a serial, on the cluster; nobody merges here."""
    bay = new_bay(site.platform)
    bay.edit('stage: "stage1"', 'stage: "stage1"\n  serial: s1\n  pit: {lift: true}')
    deliver_main(site.platform, bay.repo)
    assert await_commit(site.platform, bay.order, bay.head, timeout_s=180).ready
    return Hand(site.settings, bay)


def test_it_gets_a_status_and_one_comment_that_follows_its_head(hand: Hand) -> None:
    bay, pull = hand.bay, hand.edits("stage1", "stage2")

    for _ in range(2):
        keep_planned(bay.platform, bay.repo, pull.number)
    (first,) = hand.comments(pull)
    said = hand.status(pull.head_commit)

    assert said is not None
    assert (said.state, said.target_url) == ("success", pull.web_url)
    assert "| `data.stage` | `stage1` | `stage2` |" in first["body"]
    assert "```mermaid" in first["body"]

    later = bay.edit("stage2", "stage3", branch=pull.head)
    keep_planned(bay.platform, bay.repo, pull.number)
    (second,) = hand.comments(pull)

    assert second["id"] == first["id"]
    assert "| `data.stage` | `stage1` | `stage3` |" in second["body"]
    assert str(later)[:7] in second["body"]
    assert hand.status(later) is not None


REFUSED = [
    ("broken YAML", "spec:", "spec: [", "manifests/xgarage.yaml"),
    ("another name", 'name: "garage', 'name: "other', "names its XR"),
    ("a value the schema refuses", "stage1", "stage9", "supported values"),
    ("an unknown field", "  pit:", "  pits: 1\n  pit:", "unknown field"),
    ("a transition rule", "serial: s1", "serial: s2", "serial is for ever"),
    ("a field the kit never changes", "  pit:", "  plate: x\n  pit:", "plate"),
    ("another team's name", "teamName: ", "teamName: other-", "name"),
    ("a station's word", "{lift: true}", "{lift: false, bays: 99}", "99 bays need a lift"),
    ("data that goes", "{lift: true}", "{lift: false}", ACCEPT_LOSS),
]


@pytest.mark.parametrize(("reason", "old", "new", "told"), REFUSED, ids=lambda x: str(x)[:30])
def test_what_would_be_refused_is_a_failure(
    lifted: Hand, reason: str, old: str, new: str, told: str
) -> None:
    pull = lifted.edits(old, new)

    keep_planned(lifted.bay.platform, lifted.bay.repo, pull.number)
    said = lifted.status(pull.head_commit)
    (comment,) = lifted.comments(pull)

    assert said is not None, reason
    assert (said.state, said.description.split(":")[0]) == ("failure", "refused")
    assert told in comment["body"].replace("&lt;", "<"), comment["body"]


HOOKS = [
    (XR, {HOOK: "PreSync"}),
    (XR, {HELM_HOOK: "post-delete"}),
    (PurePosixPath("manifests/more.yaml"), {HOOK: "PostDelete"}),
]


@pytest.mark.parametrize(("path", "annotations"), HOOKS, ids=lambda value: str(value)[:50])
def test_a_hook_of_argocd_is_refused(
    lifted: Hand, path: PurePosixPath, annotations: dict[str, str]
) -> None:
    manifest = yaml.safe_load(lifted.bay.text())
    manifest["metadata"]["annotations"] = annotations
    if path != XR:
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": manifest["metadata"]}
    pull = lifted.opens({path: yaml.safe_dump(manifest)})

    keep_planned(lifted.bay.platform, lifted.bay.repo, pull.number)
    said = lifted.status(pull.head_commit)
    (comment,) = lifted.comments(pull)

    assert said is not None
    assert (said.state, said.description.split(":")[0]) == ("failure", "refused")
    assert "is a hook of Argo CD" in comment["body"]
    assert HINT in comment["body"]


def test_an_xr_that_goes_is_a_failure(lifted: Hand) -> None:
    pull = lifted.opens({XR: None})

    found = keep_planned(lifted.bay.platform, lifted.bay.repo, pull.number)

    assert found.judged.state == "failure"
    assert "no file of manifests/ holds the order's XGarage" in found.judged.summary


def test_an_annotation_that_has_the_xr_made_again_is_a_failure(lifted: Hand) -> None:
    pull = _annotated(lifted, "sync-options", "Replace=true")

    found = keep_planned(lifted.bay.platform, lifted.bay.repo, pull.number)

    assert found.judged.state == "failure"
    assert "sync-options: Replace=true steers Argo CD" in found.judged.summary


def test_an_annotation_that_steers_argocd_is_noted(lifted: Hand) -> None:
    pull = _annotated(lifted, "ignore-healthcheck", "true")

    found = keep_planned(lifted.bay.platform, lifted.bay.repo, pull.number)

    assert found.judged.state == "success"
    assert any("ignore-healthcheck: true steers Argo CD" in note for note in found.notes)


def _annotated(hand: Hand, name: str, value: str) -> PullRequest:
    annotation = f'{{argocd.argoproj.io/{name}: "{value}"}}'
    return hand.edits("metadata:\n", f"metadata:\n  annotations: {annotation}\n")


def test_data_goes_if_the_text_says_so(lifted: Hand) -> None:
    pull = lifted.edits("{lift: true}", "{lift: false}", body=f"We sold it.\n\n{ACCEPT_LOSS}\n")

    found = keep_planned(lifted.bay.platform, lifted.bay.repo, pull.number)

    assert found.judged.state == "success"
    assert found.judged.plan is not None
    assert [each.code for each in found.judged.plan.dangers] == ["data-loss"]


def test_other_files_are_told(lifted: Hand) -> None:
    extra = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"
    files: dict[PurePosixPath, str | None] = {
        PurePosixPath("README.md"): "hi",
        PurePosixPath("manifests/extra.yaml"): extra,
    }
    pull = lifted.opens(files)

    found = keep_planned(lifted.bay.platform, lifted.bay.repo, pull.number)
    (comment,) = lifted.comments(pull)

    assert (found.judged.state, found.judged.summary) == ("success", "nothing changes")
    assert "README.md changes too; it is not delivered." in comment["body"]
    assert "manifests/extra.yaml changes too; it is delivered as it is" in comment["body"]


def test_what_main_did_meanwhile_is_not_taken_back(hand: Hand) -> None:
    bay, pull = hand.bay, hand.edits("stage1", "stage2")
    bay.edit('stage: "stage1"', 'stage: "stage1"\n  note: meanwhile')

    found = plan_pull(bay.platform, bay.repo, pull.number)

    assert found.judged.plan is not None
    assert [str(each) for each in found.judged.plan.fields] == ["stage stage1 → stage2"]


def test_a_field_that_both_changed_is_a_conflict(hand: Hand) -> None:
    bay, pull = hand.bay, hand.edits("stage1", "stage2")
    bay.edit("stage1", "stage3")

    found = plan_pull(bay.platform, bay.repo, pull.number)

    assert found.judged.state == "failure"
    assert "main has stage3 now, this branch stage2" in found.judged.summary


def test_main_taken_into_the_branch_is_no_change_of_it(hand: Hand) -> None:
    bay, pull = hand.bay, hand.edits("stage1", "stage2")
    bay.edit('stage: "stage1"', 'stage: "stage1"\n  note: meanwhile')
    bay.edit('stage: "stage2"', 'stage: "stage2"\n  note: meanwhile', branch=pull.head)

    found = plan_pull(bay.platform, bay.repo, pull.number)

    assert found.judged.plan is not None
    assert [str(each) for each in found.judged.plan.fields] == ["stage stage1 → stage2"]


def test_nothing_in_it_can_name_people_or_make_html(lifted: Hand) -> None:
    hostile = "'@everyone <img src=x> [a](http://e.example) ``` --> #1'"
    pull = lifted.opens(
        {
            XR: lifted.bay.text().replace("serial: s1", f"serial: s1\n  note: {hostile}"),
            PurePosixPath("docs/@all <b>](x"): "",
        }
    )

    keep_planned(lifted.bay.platform, lifted.bay.repo, pull.number)
    (comment,) = lifted.comments(pull)

    outside = comment["body"].split("```mermaid")[0]
    assert "<img" not in outside
    assert "<b>" not in outside
    assert "@all" not in outside
    assert "](x" not in outside


def test_what_delivers_nothing_is_not_planned(site: Running, lifted: Hand) -> None:
    platform = site.platform
    platform.forge.ensure_branch(lifted.bay.repo, "aside", lifted.bay.head)
    aside = lifted.edits("stage1", "stage2", base="aside")
    closed = lifted.edits("stage1", "stage2")
    platform.forge.close_pull(lifted.bay.repo, closed.number)

    with pytest.raises(RefusedError, match="goes into 'aside'"):
        keep_planned(platform, lifted.bay.repo, aside.number)
    with pytest.raises(RefusedError, match="is closed"):
        keep_planned(platform, lifted.bay.repo, closed.number)
    with pytest.raises(NotFoundError, match="no pull request 9999"):
        keep_planned(platform, lifted.bay.repo, 9999)
    for repo in (platform.ledger, RepoId("elsewhere", lifted.bay.repo.name)):
        with pytest.raises(NotFoundError, match="is not an order's repository"):
            keep_planned(platform, repo, 1)
    assert lifted.status(aside.head_commit) is None


def test_a_change_of_ours_has_its_status_at_once(hand: Hand) -> None:
    first = ask(hand.bay, set_("stage", "stage2"), how=How.REVIEW)
    assert first.pull is not None
    said = hand.status(first.pull.head_commit)
    ask(hand.bay, set_("stage", "stage3"), how=How.REVIEW)
    second = hand.bay.platform.forge.pull(hand.bay.repo, first.pull.number)

    assert said is not None
    assert said.state == "success"
    assert second is not None
    assert second.head_commit != first.pull.head_commit
    assert hand.status(second.head_commit) is not None


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.DROP_BEFORE, Fault.REFUSE_AFTER])
@pytest.mark.parametrize("write", ["/statuses/", "/comments"])
def test_a_lost_answer_doubles_nothing(
    lifted: Hand, through: Through, write: str, fault: Fault
) -> None:
    pull = lifted.edits("stage1", "stage3")

    with through(Listed([Decision(fault)], lambda m, p: m == "POST" and write in p)) as platform:
        keep_planned(platform, lifted.bay.repo, pull.number)

    assert len(lifted.comments(pull)) == 1
    assert lifted.status(pull.head_commit) is not None


def test_a_forge_that_fails_is_told_apart_from_a_change_that_is_refused(
    lifted: Hand, through: Through
) -> None:
    """The change may be as good as ever: its status is an error, and it is planned again."""
    pull = lifted.edits("stage1", "stage2")
    down = Decision(Fault.REFUSE_BEFORE, Falsehood(503, b"{}"))
    commit = f"/{lifted.bay.repo}/git/trees/{pull.head_commit}"

    with through(Listed([down] * 99, lambda _, path: commit in path)) as platform:
        planned = plan_pull(platform, lifted.bay.repo, pull.number)
        publish(platform.forge, lifted.bay.repo, planned)
    said = lifted.status(pull.head_commit)
    (comment,) = lifted.comments(pull)

    assert said is not None
    assert (said.state, planned.judged.refused) == ("error", ())
    assert "**No plan.**" in comment["body"]
    assert "503" in comment["body"]


def test_an_order_whose_repository_is_gone_hides_no_other_missed_plan(
    site: Running, hand: Hand
) -> None:
    gone = new_bay(site.platform)
    pull = hand.edits("stage1", "stage2")
    site.platform.forge.delete_repo(gone.repo)

    assert unplanned(site.platform, [gone.repo, hand.bay.repo]) == [(hand.bay.repo, pull.number)]


def test_a_plan_that_the_pack_cannot_make_is_an_error_and_the_change_is_not_refused(
    lifted: Hand, site: Running
) -> None:
    pull = lifted.edits("stage1", "stage2")
    path = PurePosixPath("gitops/apis/garage/composition.yaml")

    with published(site.platform, path, None):
        planned = plan_pull(site.platform, lifted.bay.repo, pull.number)

    assert (planned.judged.state, planned.judged.refused) == ("error", ())
    assert planned.judged.failed.startswith("kit 'garage' has no Composition in ")


def test_the_command_posts_unless_told_not_to(
    orderkit: Command, hand: Hand, tmp_path: Path
) -> None:
    pull = hand.edits("stage1", "stage2")
    name = f"{hand.bay.repo}#{pull.number}"

    looked = orderkit("plan", "--pull-request", name, "--no-post")
    assert (looked.code, hand.status(pull.head_commit)) == (10, None)
    assert "data.stage stage1 → stage2" in looked.out
    posted = orderkit("plan", "--pr", name, "--json")
    assert (posted.code, posted.json["pull"]["state"]) == (10, "success")
    assert hand.status(pull.head_commit) is not None
    broken = hand.edits("spec:", "spec: [")
    refused = orderkit("plan", "--pr", f"{hand.bay.repo}#{broken.number}", "--markdown")
    assert refused.code == 4
    assert "It would be refused" in refused.out
    assert orderkit("plan", "--pr", "nonsense").code == 2
    assert orderkit("plan", "--pr", name, hand.bay.order).code == 2
    assert orderkit("plan", "--no-post").code == 2
    assert orderkit("plan", "--pr", name, "--kit", "garage").code == 2
    picture = tmp_path / "plan.svg"
    drawn = orderkit("plan", "--pr", name, "--no-post", "--offline", "--graph", str(picture))
    assert drawn.code == 10
    assert picture.read_text().startswith("<svg")
