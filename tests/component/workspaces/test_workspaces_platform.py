"""Workspaces on the embedded platform, with a twin of AWS: from the order to its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from commands import Command
from outcomes import Shop, an_xr, thing, wanting
from tests.component.leases.conftest import TurnedClock
from tests.component.leases.test_lease_sweeps import KilledError, killed
from tests.component.workspaces.conftest import TEAM, Workspace, ordered_workspace

from compositions.managed_state import FAIL
from ground.objects.kube_objects import ObjectKey, annotations_of
from orderkit.core.plan import assemble
from orderkit.core.plan.judging import OutcomeRule
from orderkit.flows.composing.cluster_questions import judged
from orderkit.flows.lease.sweeping import SweepRequest, sweep
from orderkit.flows.order.live_order import find_living
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.providers.cloud_twin import EXTERNAL
from orderkit_standins.serve_platform import Running

HOUR = timedelta(hours=1)
CONFIG = "ClusterProviderConfig"
EXTERNAL_NAME = "crossplane.io/external-name"


def test_an_order_is_ready_once_people_can_connect(orderkit: Command, workspace: Workspace) -> None:
    status = workspace.status
    assert status["phase"] == "Ready"
    assert status["instanceType"] == "g4dn.xlarge"
    assert status["sshCommand"] == f"ssh developer@{status['publicIp']}"
    instance = workspace.one("Instance")
    assert status["instanceId"] == annotations_of(instance)[EXTERNAL_NAME]
    assert status["instanceId"].startswith("i-0")
    group = annotations_of(workspace.one("SecurityGroup"))[EXTERNAL_NAME]
    assert workspace.provider_value("Instance", "vpcSecurityGroupIds") == [group]

    row = orderkit("status", workspace.order, "--json").json

    assert row["phase"] == "Ready"
    assert {output["name"]: output["value"] for output in row["outputs"]}["ssh"] == (
        status["sshCommand"]
    )


def test_a_lease_ends_a_workspace_and_nothing_is_left(
    orderkit: Command, workspace: Workspace, platform: Platform, clock: TurnedClock
) -> None:
    """The sweep ends everybody else's workspaces too, so it comes before most of them."""
    assert orderkit("change", workspace.order, "stopAtNight=false").code == 0
    assert len(workspace.managed) == 6
    assert len(in_the_cloud(platform, workspace)) == 6
    for passed in (timedelta(days=11, minutes=1), 2 * 24 * HOUR, 22 * HOUR):
        clock.moved += passed
        assert [action for action, _ in swept(platform, workspace)] == ["warn"]
    clock.moved += 4 * HOUR + timedelta(minutes=5)
    ((action, _),) = swept(platform, workspace)

    assert action == "end"
    assert workspace.xr == {}
    assert workspace.managed == {}
    assert in_the_cloud(platform, workspace) == []


def in_the_cloud(platform: Platform, workspace: Workspace) -> list[str]:
    """Return what the twin of AWS still has of a workspace."""
    return [
        record["metadata"]["name"]
        for record in platform.cluster.list(EXTERNAL).items
        if record["spec"]["managedBy"]["name"].startswith(f"{workspace.order}-")
    ]


def test_every_change_that_is_offered_keeps_the_machine_but_one(
    orderkit: Command, workspace: Workspace
) -> None:
    order, first = workspace.order, workspace.status["instanceId"]

    assert orderkit("change", order, "instanceType=g5.xlarge").code == 0
    assert workspace.until_phase("Ready")["instanceType"] == "g5.xlarge"
    assert orderkit("change", order, "running=false").code == 0
    assert "sshCommand" not in workspace.until_phase("Stopped")
    assert orderkit("change", order, "running=true").code == 0
    workspace.until_phase("Ready")
    assert orderkit("change", order, "diskGb=200").code == 0
    assert workspace.provider_value("Instance", "rootBlockDevice")["volumeSize"] == 200
    assert orderkit("change", order, 'sshFrom=["198.51.100.0/24"]').code == 0
    workspace.until(lambda _: workspace.networks == ["198.51.100.0/24"], "only the new network")
    before = workspace.status["publicIp"]
    assert orderkit("change", order, "elasticAddress=true").code == 0
    workspace.until(lambda status: status.get("publicIp") not in (None, before), "its address")
    assert orderkit("change", order, "stopAtNight=false").code == 0
    assert workspace.status["instanceId"] == first

    refused = orderkit("change", order, "opencvVersion=4.12.0")
    assert refused.code == 4
    assert "Instance" in refused.err
    assert "--accept-loss" in refused.err
    assert orderkit("change", order, "opencvVersion=4.12.0", "--accept-loss").code == 0
    workspace.until(
        lambda status: status.get("phase") == "Ready" and status["instanceId"] != first,
        "another machine",
    )
    assert workspace.provider_value("Instance", "instanceType") == "g5.xlarge"


def test_what_no_change_allows_is_refused(orderkit: Command, workspace: Workspace) -> None:
    before = workspace.xr["spec"]

    for assignment in ("owner=mallory", "diskGb=60", "instanceType=p5.48xlarge", "image=none"):
        assert orderkit("change", workspace.order, assignment).code != 0, assignment
    assert workspace.xr["spec"] == before


def at_eight(clock: TurnedClock, minutes: int) -> None:
    """Turn the clock to so many minutes after the next 20:00 in Berlin."""
    now = datetime.now(UTC).astimezone(ZoneInfo("Europe/Berlin"))
    eight = now.replace(hour=20, minute=0, second=0, microsecond=0)
    if eight < now:
        eight += timedelta(days=1)
    clock.moved = eight - now + timedelta(minutes=minutes)


def swept(platform: Platform, workspace: Workspace) -> list[tuple[str, str]]:
    orders = sweep(platform, SweepRequest()).orders
    return [(done.action, done.what) for done in orders if done.order == workspace.order]


def test_a_night_stops_a_workspace_once_and_who_starts_it_again_is_left_alone(
    orderkit: Command, workspace: Workspace, platform: Platform, clock: TurnedClock
) -> None:
    at_eight(clock, -5)
    assert swept(platform, workspace) == []
    at_eight(clock, 5)
    assert swept(platform, workspace) == [("pause", "running becomes False")]
    workspace.until_phase("Stopped")
    assert swept(platform, workspace) == []

    assert orderkit("change", workspace.order, "running=true").code == 0
    assert swept(platform, workspace) == []
    assert workspace.until_phase("Ready")
    at_eight(clock, 60)
    assert swept(platform, workspace) == []
    clock.moved += timedelta(days=1) - HOUR / 2
    assert swept(platform, workspace) == [("pause", "running becomes False")]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_night_whose_sweep_is_killed_is_finished_once_by_the_next_one(
    side: str, orderkit: Command, platform: Platform, clock: TurnedClock
) -> None:
    at_eight(clock, 5)
    sweep(platform, SweepRequest())  # stops all the others
    workspace = ordered_workspace(orderkit, platform)

    with pytest.raises(KilledError):
        sweep(killed(platform, 1, side), SweepRequest())
    sweep(platform, SweepRequest())

    workspace.until_phase("Stopped")
    repository = find_living(platform, workspace.order).repository
    messages = [commit.message for commit in platform.forge.commits(repository, limit=50)]
    assert len([message for message in messages if "night-" in message]) == 1, messages


def test_a_workspace_that_runs_at_night_is_left_alone(
    orderkit: Command, workspace: Workspace, platform: Platform, clock: TurnedClock
) -> None:
    assert orderkit("change", workspace.order, "stopAtNight=false").code == 0
    at_eight(clock, 5)

    assert swept(platform, workspace) == []


def test_a_workspace_that_its_provider_reports_has_failed_until_that_is_over(
    orderkit: Command, workspace: Workspace, platform: Platform
) -> None:
    instance = ObjectKey.of(workspace.one("Instance"))

    def fail(how: str | None) -> None:
        changes = {"metadata": {"annotations": {FAIL: how}}}
        platform.cluster.patch(instance, changes, owner="admin")

    fail("throttled")
    assert "sshCommand" not in workspace.until_phase("Failed")
    assert "Throttling" in orderkit("trace", workspace.order).out
    fail(None)
    assert "sshCommand" in workspace.until_phase("Ready")


def test_a_part_that_cannot_be_made_fails_the_order_everywhere(
    orderkit: Command, workspace: Workspace, running_platform: Running
) -> None:
    """Also if the order is Ready for Crossplane, as after an update that a provider refused."""
    order, cluster = workspace.order, running_platform.platform.cluster
    instance = ObjectKey.of(workspace.one("Instance"))
    cluster.patch(instance, {"metadata": {"annotations": {FAIL: "vanished"}}}, owner="test")

    def listed() -> dict[str, Any]:
        rows = orderkit("list", "--team", TEAM, "--json").json["orders"]
        return next(row for row in rows if row["order"] == order)

    row = until(SystemClock(), listed, lambda row: "failed" in row["reason"], timeout_s=60,
                goal="a failing row")  # fmt: skip
    assert row["phase"] == "Failing"
    sentence = f"{instance}: observe failed: NotFound: Instance '{instance.name}' was deleted"

    assert row["reason"].startswith(sentence)
    assert row["parts"]["failing"]["name"] == instance.name
    shown = orderkit("status", order, "--json").json
    assert (shown["phase"], shown["ready"]) == ("Failing", False)
    assert shown["reason"].startswith(sentence)
    assert sentence in orderkit("list", "--failing").out
    assert sentence in orderkit("doctor").out
    assert orderkit("wait", order, "--fail-after", "1s").code == 11
    cluster.patch(instance, {"metadata": {"annotations": {FAIL: None}}}, owner="test")
    until(SystemClock(), listed, lambda row: row["phase"] == "Ready", timeout_s=60, goal="a row")


def test_a_workspace_that_is_stopped_says_so(orderkit: Command, workspace: Workspace) -> None:
    assert orderkit("change", workspace.order, "running=false").code == 0
    workspace.until_phase("Stopped")

    assert "it is stopped" in orderkit("status", workspace.order).out


@pytest.mark.parametrize(("config", "is_missing"), [("aws", False), ("nobody", True)])
def test_a_plan_names_a_provider_config_that_does_not_exist(
    running_platform: Running, config: str, *, is_missing: bool
) -> None:
    spec = {"forProvider": {}, "providerConfigRef": {"kind": CONFIG, "name": config}}
    pair = thing("ec2.aws.m.upbound.io/v1beta1", "KeyPair", "k", namespace="shop", spec=spec)
    shop = Shop(wanting({"pair": pair}))
    before, after = (assemble(an_xr({}), made.workshop) for made in (Shop(wanting({})), shop))

    verdict = judged(running_platform.platform.cluster, shop.workshop, before, after)

    missing = [fault.message for fault in verdict.faults if fault.code == OutcomeRule.MISSING]
    sentence = f'{CONFIG}.aws.m.upbound.io "nobody" not found: nothing in the order makes it'
    assert missing == ([sentence] if is_missing else [])
