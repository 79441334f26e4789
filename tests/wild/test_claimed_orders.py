"""
An order that names another order's XR gets nothing of it: neither shown nor waited for.

The last test ends the order that the others look at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
from commands import Command
from roguery import place

from compositions.composed import composed_keys
from ground.names import TeamName
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, Manifest, ObjectKey, metadata
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.refreshing import nudge
from orderkit.flows.end.remaining_objects import Absence
from orderkit.flows.order import order_report, tracing
from orderkit.flows.platform import published_kit
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running

XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
FILE = PurePosixPath("manifests", "xgarage.yaml")


@dataclass(frozen=True)
class Claim:
    """An order, and another one whose XR it names as its own."""

    running: Running
    claimant: OrderEntry
    victim: OrderEntry

    @property
    def victims_parts(self) -> dict[ObjectKey, Manifest]:
        """Return the victim's XR and what it composes, as they live."""
        cluster = self.running.platform.cluster
        xr = cluster.get(ObjectKey(XGARAGE, self.victim.order))
        assert xr is not None
        keys = [ObjectKey.of(xr), *composed_keys(xr)]
        return {key: cluster.get(key) or {} for key in keys}


@pytest.fixture(scope="module")
def claim(platform: Running, new_name: Callable[[], str]) -> Claim:
    teams = [new_name(), new_name()]
    for team in teams:
        add_team(platform.platform, TeamName(team), requester="user:default/chief")
    claimant, victim = (place(platform.platform, "garage", team) for team in teams)
    forge = platform.platform.forge
    found = forge.read(claimant.repository, FILE, "main")
    assert found is not None
    text = found.text.replace(teams[0], teams[1])
    operation = Operation(f"claim-{claimant.order}", "user:default/mallory", "claim another's")
    commit = forge.write(
        claimant.repository, [FileChange(FILE, text.encode(), found.sha)], operation
    ).commit
    nudge(platform.platform.cluster, claimant.order, commit)
    until(
        platform.platform.clock,
        lambda: order_report.status(platform.platform, claimant.order),
        lambda report: report.state.phase == "Failing",
        timeout_s=60,
        goal="the claim being refused",
    )
    return Claim(platform, claimant, victim)


def test_an_end_that_was_recorded_with_the_victims_parts_finishes(claim: Claim) -> None:
    """Records of earlier releases list them in mustBeGone."""
    platform = claim.running.platform
    kit = published_kit(platform, "garage")

    remaining = Absence(platform, claim.claimant.order, list(claim.victims_parts), kit).remaining()
    own = Absence(platform, claim.victim.order, list(claim.victims_parts), kit).remaining()

    assert remaining == []
    assert {part.key for part in own} >= set(claim.victims_parts)


def test_an_object_that_an_xr_only_refers_to_is_no_part_of_its_order(
    claim: Claim,
) -> None:
    """Crossplane lists what it wants to compose, also where another XR owns it."""
    cluster = claim.running.platform.cluster
    parts = claim.victims_parts
    (sheet,) = (key for key in parts if key.kind == CONFIG_MAP)
    (home,) = (key for key in parts if key.kind == NAMESPACE)
    was = metadata(parts[sheet])["ownerReferences"]
    identity = {"apiVersion": "v1", "kind": "Namespace", "name": home.name}
    owner = {**was[0], **identity, "uid": metadata(parts[home])["uid"]}
    cluster.patch(sheet, {"metadata": {"ownerReferences": [owner]}}, owner="test")

    shown = tracing.trace(claim.running.platform, claim.victim.order)
    cluster.patch(sheet, {"metadata": {"ownerReferences": was}}, owner="test")
    until(
        claim.running.platform.clock,
        lambda: order_report.status(claim.running.platform, claim.victim.order),
        lambda report: report.state.ready,
        timeout_s=60,
        goal="the victim being Ready again",
    )

    assert sheet not in set(shown.parts())
    rows = {node.key: node.reason for _, node in shown.root.walk()}
    assert rows[sheet] == f"belongs to Namespace {home.name}"


def test_neither_reports_nor_the_end_of_a_claimant_touch_the_victim(
    claim: Claim, orderkit: Command
) -> None:
    claimant, victim = claim.claimant.order, claim.victim.order
    before = {key: metadata(part)["uid"] for key, part in claim.victims_parts.items()}

    status = orderkit("status", claimant, "--json").json
    listed = {each["order"]: each for each in orderkit("list", "--json").json["orders"]}
    events = orderkit("events", claimant, "--json").json["events"]
    tree = tracing.trace(claim.running.platform, claimant)

    assert {each["xr"]["name"] for each in (status, listed[claimant])} == {claimant}
    assert listed[victim]["ready"]
    assert set(tree.parts()).isdisjoint(before)
    assert {each["object"]["name"] for each in events} == {claimant}

    ended = orderkit("destroy", "--yes", claimant, "--json")

    assert ended.code == 0, ended.err
    assert {key["name"] for key in ended.json["gone"]} == {claimant, "spec-sheet"}
    assert {key.get("namespace", "") for key in ended.json["gone"]} <= {"", claimant}
    after = {key: metadata(part).get("uid") for key, part in claim.victims_parts.items()}
    assert after == before
    assert orderkit("status", victim, "--json").json["ready"]
