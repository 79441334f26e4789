"""
The story the demo tells, as expectations about a running platform.

It uses the flows as the commands do, the real ``git`` over HTTP as a developer would, and the
cluster's API to look, so whatever it prints was seen from outside. The stages about changes stand
in ``demo.change_story``.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from ground.errors import RefusedError
from ground.names import TeamName
from ground.objects.kube_objects import Manifest, annotations_of, metadata
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.order import order_state
from orderkit.core.order.lease import EXPIRES_AT, time_text
from orderkit.flows.approval.deciding import approve_on_forge
from orderkit.flows.approval.settling import withdraw
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.lease.extending import ExtendRequest, extend_lease
from orderkit.flows.lease.sweeping import SweepRequest, sweep
from orderkit.flows.order import order_report, placing, tracing
from orderkit.flows.order.placing import TaskRequest
from orderkit.flows.team.teams import TeamChange, add_team
from orderkit.ports.requesters import Requester
from orderkit_standins.demo.change_story import tell_changes
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
