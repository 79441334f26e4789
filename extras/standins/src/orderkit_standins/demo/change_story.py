"""
The demo's stages about changes: by hand, a conflict, a refusal, a pull request.

The order stands at stage2. An owner of the organisation pushes stage3 past the review, which is
delivered once it is registered; somebody whose form was opened before that
asks for stage1 and is shown both values; nobody may give the bay to another team; the plan says
what stage1 does to what is assembled; asked again with open eyes, stage1 becomes a pull request,
is merged on the forge, and delivered.
"""

from __future__ import annotations

from pathlib import Path

from ground.errors import RefusedError
from ground.names import CommitSha, OrderId, TeamName
from orderkit.core.order.change import FieldConflictError, FieldEdit
from orderkit.core.order.order_state import short
from orderkit.core.plan.object_texts import key_text
from orderkit.flows.change import Changed, ChangeRequest, change
from orderkit.flows.change.plan_requests import plan_edits
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.flows.order import order_report
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.order.order_history import history
from orderkit.flows.order.registering import Registration, register
from orderkit.ports.forge import MergeStyle, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.demo.narration import (
    ORDER,
    PATIENCE_S,
    REPO,
    TEAM,
    Story,
    expect,
    expect_sheet,
    git,
)
from orderkit_standins.serve_platform import Running

_EVE, _BOSS = "user:default/eve", "user:default/boss"


def tell_changes(story: Story, running: Running, clone: Path) -> None:
    """
    Tell these stages.

    Raises:
        OrderkitError: An expectation did not hold.
    """
    first_commit = running.platform.forge.head(REPO)
    expect(first_commit, "the order has a commit")
    _by_hand(story, running, clone)
    _conflict(story, running, str(first_commit))
    _refused(story, running)
    _planned(story, running)
    _reviewed(story, running)
    _history(story, running)


def _by_hand(story: Story, running: Running, clone: Path) -> None:
    xr = clone / "manifests" / "xgarage.yaml"
    before = xr.read_text()
    expect(before.count("stage2") == 1, "the XR names stage2 once")
    xr.write_text(before.replace("stage2", "stage3"))
    git(running, clone, "commit", "--quiet", "--all", "--message", "stage3, by hand")
    git(running, clone, "push", "--quiet", "origin", "main")
    commit = git(running, clone, "rev-parse", "HEAD")
    report = order_report.status(running.platform, ORDER)
    expect(not report.state.ready, f"it is not delivered: {report.state.reason}")
    registration = Registration(OrderId(ORDER), report.kit, TeamName(TEAM), _BOSS)
    register(running.platform, registration)
    await_commit(running.platform, ORDER, CommitSha(commit), timeout_s=PATIENCE_S)
    expect_sheet(running, "stage3")
    story.stage("change", f"git push of {short(commit)}, registered: the spec sheet says stage3")


def _ask(running: Running, field: str, value: str, base: str | None = None) -> Changed:
    return change(running.platform, _request(field, value, base))


def _request(field: str, value: str, base: str | None = None) -> ChangeRequest:
    return ChangeRequest(
        order=ORDER,
        edits=(FieldEdit(field, "set", value),),
        requester=Requester(_EVE),
        base=base,
        reason="the race is over",
    )


def _conflict(story: Story, running: Running, base_commit: str) -> None:
    try:
        _ask(running, "stage", "stage1", base=base_commit)
    except FieldConflictError as error:
        (field_conflict,) = error.conflicts
        expect(
            (field_conflict.base, field_conflict.now) == ("stage2", "stage3"),
            f"both values: {field_conflict}",
        )
        story.stage(
            "conflict",
            f"{field_conflict.path}: seen {field_conflict.base}, now {field_conflict.now}:"
            " not written",
        )
        return
    expect(False, "a change of a field that somebody changed since is a conflict")  # noqa: FBT003


def _refused(story: Story, running: Running) -> None:
    head = running.platform.forge.head(REPO)
    try:
        _ask(running, "teamName", "rx7")
    except RefusedError as error:
        expect(running.platform.forge.head(REPO) == head, "nothing was written")
        story.stage("refused", str(error))
        return
    expect(False, "the team of an order cannot be changed")  # noqa: FBT003


def _planned(story: Story, running: Running) -> None:
    plan = plan_edits(running.platform, _request("stage", "stage1"))
    (resource_change,) = plan.changes
    field_changes = [str(field) for field in resource_change.fields]
    expect(
        field_changes == ["data.stage stage3 → stage1"],
        f"the plan names the field: {field_changes}",
    )
    expect(plan.after.ready and not plan.unknowns, f"the plan is whole: {plan.unknowns}")
    story.stage(
        "planned", f"{plan.summary}: {key_text(resource_change.manifest)}, {field_changes[0]}"
    )


def _reviewed(story: Story, running: Running) -> None:
    outcome = _ask(running, "stage", "stage1")
    pull = outcome.pull
    expect(pull, f"the kit wants a review: {outcome.state}")
    assert pull is not None  # noqa: S101 - just expected
    expect_sheet(running, "stage3")
    story.stage("proposed", f"pull request {pull.number}: {pull.title}")
    operation = Operation(f"merge-{pull.number}", _BOSS, f"Merge {pull.title}")
    merged = merge_unreviewed(running.platform, REPO, pull, operation, style=MergeStyle.MERGE)
    await_commit(running.platform, ORDER, CommitSha(merged), timeout_s=PATIENCE_S)
    expect_sheet(running, "stage1")
    story.stage("merged", f"{short(merged)} is Ready: the spec sheet says stage1")


def _history(story: Story, running: Running) -> None:
    entries = history(running.platform, ORDER)
    stage_changes = [
        f"{field} by {entry.who.partition(' <')[0]}"
        for entry in entries
        for field in entry.fields
        if not entry.first and len(entry.commit.parents) == 1 and field.path == "stage"
    ]
    expect(len(stage_changes) == 2, f"two changes of the stage: {stage_changes}")  # noqa: PLR2004 - of this story
    story.stage("history", "; ".join(reversed(stage_changes)))
