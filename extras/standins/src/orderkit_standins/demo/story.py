"""
The story the demo tells, as expectations about a running platform.

It uses the flows as the commands do, the real ``git`` over HTTP as a developer would, and the
cluster's API to look, so whatever it prints was seen from outside.

Its stages about changes: the order stands at stage2. An owner of the organisation pushes stage3
past the review, which is delivered once it is registered; somebody whose form was opened before
that asks for stage1 and is shown both values; nobody may give the bay to another team; the plan
says what stage1 does to what is assembled; asked again with open eyes, stage1 becomes a pull
request, is merged on the forge, and delivered.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from ground.errors import RefusedError
from ground.names import CommitSha, OrderId, TeamName
from ground.objects.kube_objects import Manifest, annotations_of, metadata
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.order import order_state
from orderkit.core.order.change import FieldConflictError, FieldEdit
from orderkit.core.order.lease import EXPIRES_AT, time_text
from orderkit.core.order.order_state import short
from orderkit.core.plan.assembly import key_text
from orderkit.flows.approval.deciding import approve_on_forge
from orderkit.flows.approval.settling import withdraw
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.change import Changed, ChangeRequest, change
from orderkit.flows.change.plan_requests import plan_edits
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.lease.extending import ExtendRequest, extend_lease
from orderkit.flows.lease.sweeping import SweepRequest, sweep
from orderkit.flows.order import order_report, placing, tracing
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.order.order_history import history
from orderkit.flows.order.placing import TaskRequest
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.team.teams import TeamChange, add_team
from orderkit.ports.forge import MergeStyle, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.demo.narration import (
    BAY,
    ORDER,
    PATIENCE_S,
    REPO,
    REQUESTER,
    SPEC_SHEET,
    TEAM,
    XGARAGE,
    Story,
    expect,
    expect_sheet,
    git,
    wait,
)
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

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


ORDERED = TaskRequest("garage", {"team_name": TEAM, "stage": "stage2"}, Requester(REQUESTER))


def tell(story: Story) -> None:
    """
    Tell the whole story on a platform of its own.

    Raises:
        OrderkitError: An expectation did not hold; nothing is left running.
    """
    story.headline("Orderkit demo: an embedded platform on free loopback ports")
    request = EmbeddedRunRequest(
        story.folder / "state", reference_pack(), Ports(0, 0, 0, 0), (TEAM,), forge=story.forge
    )

    def bootstrapped(step: str, summary: str) -> None:
        story.stage(step, summary)

    with running(request, on_step=bootstrapped) as platform:
        _order(story, platform)
        clone = _clone(story, platform)
        _assembled(story, platform)
        tell_changes(story, platform, clone)
        _repair(story, platform)
        _repeat(story, platform)
        _approval(story, platform)
        _lease(story, platform)
        _end(story, platform)
    story.end()


def _order(story: Story, running: Running) -> None:
    ordered = placing.order(running.platform, ORDERED, wait_s=PATIENCE_S)
    expect(ordered.created, f"{ORDER} is new")
    story.stage("order", f"template.yaml interpreted, {ORDER} is {ordered.report.state.phase}")


def _clone(story: Story, running: Running) -> Path:
    target = story.folder / "clone"
    git(running, story.folder, "clone", "--quiet", _url(running), str(target))
    files = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    visible = [file for file in files if not file.startswith(".git/")]
    expect("manifests/xgarage.yaml" in visible, f"the XR is in the clone: {visible}")
    story.stage("clone", f"git clone over HTTP: {', '.join(visible)}")
    return target


def _url(running: Running) -> str:
    return f"{running.settings.forge.address}/{TEAM}/{ORDER}.git"


def _assembled(story: Story, running: Running) -> None:
    cluster = running.platform.cluster
    application = cluster.get(application_key(ORDER)) or {}
    head = running.platform.forge.head(REPO)
    expect(not order_state.undelivered(application, head), "the Application is Synced at the head")
    story.stage("application", f"Synced and Healthy at {order_state.short(head or '')}")
    trace = tracing.trace(running.platform, ORDER)
    expect(trace.failing is None, f"nothing fails: {trace.failing}")
    nodes = [str(node.key) for _, node in trace.root.walk()]
    expect(str(BAY) in nodes and str(SPEC_SHEET) in nodes, f"both parts are composed: {nodes}")
    story.stage("assembled", " → ".join(nodes[1:]))
    expect_sheet(running, "stage2")
    story.stage("spec sheet", f"stage: stage2, team: {TEAM}")


def _repair(story: Story, running: Running) -> None:
    cluster = running.platform.cluster
    old = _uid(cluster.get(SPEC_SHEET))
    cluster.delete(SPEC_SHEET, uid=old)
    new = wait(
        "the deleted ConfigMap coming back",
        lambda: cluster.get(SPEC_SHEET),
        lambda manifest: _uid(manifest) not in ("", old),
    )
    expect_sheet(running, "stage1")
    story.stage("repair", f"deleted by hand, back as {_uid(new)[:8]} with the same data")


def _repeat(story: Story, running: Running) -> None:
    ordered = placing.order(running.platform, ORDERED)
    expect(not ordered.created, "the same order again is not a new one")
    expect_sheet(running, "stage1")
    story.stage("again", "the same order changes nothing, the live stage1 stays")


def _approval(story: Story, running: Running) -> None:
    """A team orders more than it may: the platform team would have to agree; nobody does."""
    platform, team = running.platform, TeamName("rally")
    limits = TeamChange(limits={"orders": "0"}, over="ask")
    add_team(platform, team, requester=REQUESTER, change=limits)
    values = {"team_name": team, "stage": "stage1"}
    request = TaskRequest("garage", values, Requester(REQUESTER))
    waiting = placing.order(platform, request, wait_s=None)
    expect(waiting.report.state.phase == "Waiting", f"{waiting.order} waits")
    try:
        approve_on_forge(platform, waiting.order)
    except RefusedError:
        story.stage("approval", f"{waiting.order} {waiting.report.state.reason}")
    else:
        expect(None, "the platform's own account proves nobody")
    withdraw(platform, waiting.report.entry, REQUESTER)
    expect(platform.cluster.get(application_key(waiting.order)) is None, "nothing was delivered")
    story.stage("declined", f"{waiting.order} is withdrawn, nothing of it was ever delivered")


def _lease(story: Story, running: Running) -> None:
    platform, reason = running.platform, "the race is tomorrow"
    request = ExtendRequest(ORDER, timedelta(hours=30), Requester(REQUESTER), reason)
    granted = extend_lease(platform, request).leased.record
    expires = time_text(granted.expires) if granted else ""
    wait(
        "the expiry reaching the cluster",
        lambda: platform.cluster.get(application_key(ORDER)),
        lambda application: annotations_of(application or {}).get(EXPIRES_AT) == expires,
    )
    story.stage("lease", f"expires at {expires}: {reason}")
    due = []
    for hours in (1, 7):
        at = platform.clock.now() + timedelta(hours=hours)
        swept = sweep(platform, SweepRequest(dry_run=True, at=at))
        due.append([order.stage for order in swept.orders])
    expect(due == [[], ["24h"]], f"the warning is due a day before: {due}")
    story.stage("sweep", "nothing is due in an hour; in 7 hours it would warn: 24h are left")


def _end(story: Story, running: Running) -> None:
    platform = running.platform
    request = EndRequest(ORDER, REQUESTER, timeout_s=PATIENCE_S)
    ended = destroy(platform, request, on_step=lambda *_: None)
    for key in (XGARAGE, BAY, SPEC_SHEET, application_key(ORDER)):
        expect(platform.cluster.get(key) is None, f"{key} is gone")
    expect(order_report.list_orders(platform) == [], "no order is left in the ledger")
    expect(platform.catalog.entity(f"component:default/{ORDER}") is None, "the catalog forgot it")
    repository = platform.forge.repo(REPO)
    expect(repository is not None and repository.archived, "the repository is archived")
    story.stage("end", f"{len(ended.record.must_be_gone) + 1} objects gone, repository archived")


def _uid(manifest: Manifest | None) -> str:
    return str(metadata(manifest or {}).get("uid", ""))
