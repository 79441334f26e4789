"""Teams on a platform: what they may, how that is enforced, and how they leave."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath

import pytest
from bays import new_bay
from commands import Command
from forgeusers import embedded_admin, new_user

from ground.errors import OrderkitError
from ground.names import OrderId, RepoId, TeamName
from ground.objects.kube_objects import APP_PROJECT, ARGOCD_NAMESPACE, ObjectKey, dig
from orderkit.core.order import ledger
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import ledger_snapshot, read_text, write_ledger
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Forge, Operation
from orderkit_standins.serve_platform import Running


def project(team: str) -> ObjectKey:
    return ObjectKey(APP_PROJECT, team, ARGOCD_NAMESPACE)


def test_a_team_shows_what_was_decided_and_keeps_what_is_not_decided_anew(
    orderkit: Command, team: str
) -> None:
    made = orderkit("team", "add", team, "--member", "orderkit", "--limit", "orders=3")
    assert made.code == 0, made.err
    assert orderkit("team", "change", team, "--limit", "garage.stage=stage2").code == 0

    shown = orderkit("team", "show", team, "--json").json

    assert shown["members"] == ["orderkit"]
    assert shown["limits"] == {"orders": 3, "fields": {"garage": {"stage": "stage2"}}}
    assert shown["kits"] == ["garage"]
    assert shown["namespaces"] == [f"team-{team}"]
    assert "orders=3, garage.stage=stage2" in orderkit("team", "show", team).out
    assert shown["agents"] == "propose"
    changed = orderkit("team", "change", team, "--agents", "read")
    assert "is changed: agents propose → read; orders=3, " in changed.out
    assert "agents may read" in changed.out
    assert orderkit("team", "change", team, "--over", "ask").code == 0
    assert "agents      may read" in orderkit("team", "show", team).out
    assert orderkit("team", "change", team, "--agents", "approve").code == 2
    assert orderkit("team", "add", team).out.endswith("existed already\n")


def test_adding_a_team_that_exists_tells_what_is_other_now(orderkit: Command, team: str) -> None:
    done = orderkit("team", "add", team, "--member", "orderkit", "--limit", "orders=3")
    again = orderkit("team", "add", team, "--limit", "orders=4", "--json").json

    assert done.out == (
        f"team {team} existed already, and is changed:"
        " members as the forge says → orderkit, limits no limits → orders=3\n"
    )
    assert (again["created"], again["changed"]) == (False, True)
    assert orderkit("team", "add", f"{team}x").out == f"team {team}x is added\n"


def test_what_a_team_may_not_is_refused_before_anything_is_written(
    orderkit: Command, platform: Running, team: str
) -> None:
    orderkit("team", "change", team, "--limit", "garage.stage=stage2")

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage3")

    assert done.code == 4
    assert f'stage: "stage3" is above the limit of team {team}, "stage2"' in done.err
    assert f"orderkit team change {team} --limit garage.stage=" in done.err
    assert platform.platform.forge.repo(RepoId(team, f"garage-{team}")) is None


def test_a_change_is_held_to_the_limits_too(orderkit: Command, team: str) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    assert orderkit("team", "change", team, "--limit", "garage.stage=stage2").code == 0

    done = orderkit("change", f"garage-{team}", "stage=stage3", "--dry-run")

    assert done.code == 4, done.out
    assert "above the limit" in done.err
    assert orderkit("team", "change", team, "--no-limit", "garage.stage").code == 0
    assert orderkit("change", f"garage-{team}", "stage=stage3", "--dry-run").code == 0


def test_a_team_without_a_place_left_gets_no_order(orderkit: Command, team: str) -> None:
    orderkit("team", "change", team, "--limit", "orders=0")

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage1")

    assert done.code == 4
    assert f"team {team} has reached its limit of 0 orders" in done.err


def test_registering_counts_what_is_there_at_the_very_commit(
    orderkit: Command, platform: Running, team: str
) -> None:
    """Two registrations race for one place: never are both in the ledger."""
    orders = [OrderId(f"garage-{team}-{n}") for n in range(4)]
    for order in orders:
        publish_record(platform, team, order)
    orderkit("team", "change", team, "--limit", "orders=1")

    def attempt(order: OrderId) -> bool:
        try:
            register(
                platform.platform, Registration(order, "garage", TeamName(team), "user:default/x")
            )
        except OrderkitError:
            return False
        return True

    with ThreadPoolExecutor(len(orders)) as threads:
        done = list(threads.map(attempt, orders))

    found = [e.order for e in ledger.entries(ledger_snapshot(platform.platform).blobs)]
    assert len([order for order in orders if order in found]) == sum(done) == 1


def publish_record(platform: Running, team: str, order: str) -> None:
    """Write a repository with an order's record, as a portal's steps would."""
    repo = RepoId(team, order)
    platform.platform.forge.ensure_repo(repo, description="by hand")
    record = (
        "apiVersion: orderkit.dev/v1alpha1\nkind: Order\n"
        f"metadata: {{name: {order}}}\n"
        f"spec: {{kit: garage, team: {team}, requester: 'user:default/x', ordered: {{}}}}\n"
    )
    change = FileChange(PurePosixPath(".orderkit/order.yaml"), record.encode(), None)
    platform.platform.forge.write(repo, [change], Operation("by-hand", "user:default/x", "made"))


@pytest.mark.parametrize("name", ["default", "argocd", "platform", "x" * 59])
def test_names_that_would_be_the_platforms_own_are_refused(orderkit: Command, name: str) -> None:
    assert orderkit("team", "add", name).code == 2


@pytest.mark.parametrize("namespace", ["argocd", "kube-system", "crossplane-system", "team-ae86"])
def test_no_team_delivers_where_it_could_take_over(
    orderkit: Command, team: str, namespace: str
) -> None:
    assert orderkit("team", "change", team, "--namespace", namespace).code == 2


def test_a_member_the_forge_does_not_know_is_told(orderkit: Command, team: str) -> None:
    done = orderkit("team", "change", team, "--member", "nobody-here")
    assert done.code == 1
    assert "nobody-here" in done.err


def test_a_kit_that_the_pack_lacks_is_given_to_no_team(orderkit: Command, team: str) -> None:
    refused = orderkit("team", "change", team, "--kit", "shed")

    assert refused.code == 2
    assert "'shed' is not a kit of this platform's pack" in refused.err
    assert "kits: garage" in refused.err


def test_a_kit_that_the_teams_project_does_not_allow_yet_is_not_ordered(
    orderkit: Command, platform: Running, team: str
) -> None:
    """The pack got the kit after the team's file was written."""
    path = PurePosixPath("teams", f"{team}.yaml")
    path = next(p for p in ledger_snapshot(platform.platform).blobs if p.match(str(path)))
    text = read_text(platform.platform.forge, platform.platform.ledger, path, "main") or ""
    assert "XGarage" in text
    earlier = text.replace("XGarage", "XShed")
    operation = Operation(f"earlier-{team}", "user:default/x", "as it was")
    write_ledger(platform.platform, {path: earlier}, operation)
    order = ("order", "garage", f"team_name={team}", "stage=stage1", "--no-wait")

    refused = orderkit(*order)

    assert refused.code == 4
    assert f"team {team} was not given kit 'garage' yet" in refused.err
    assert orderkit("team", "add", team).code == 0
    assert orderkit(*order).code == 0


def test_adding_a_team_again_leaves_an_unreadable_order_as_it_is(
    orderkit: Command, platform: Running, team: str
) -> None:
    bay = new_bay(platform.platform, team)
    path = PurePosixPath("apps", team, f"{bay.order}.yaml")
    operation = Operation(f"broken-{team}", "user:default/x", "broken by hand")
    write_ledger(platform.platform, {path: "spec: ["}, operation)

    assert orderkit("team", "add", team).code == 0

    forge = platform.platform.forge
    assert read_text(forge, platform.platform.ledger, path, "main") == "spec: ["


def test_a_team_with_orders_stays_and_without_goes_whole(
    orderkit: Command, platform: Running, team: str
) -> None:
    forge, repo = platform.platform.forge, RepoId(team, f"garage-{team}")
    member = new_user(embedded_admin(forge.base_url, platform.embedded.state.folder)).login
    assert orderkit("team", "change", team, "--member", member).code == 0
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage1").code == 0
    refused = orderkit("team", "remove", team)
    assert refused.code == 4
    assert f"garage-{team}" in refused.err
    assert orderkit("destroy", "--yes", f"garage-{team}").code == 0
    assert right_of(forge, repo, member) == "write"

    assert orderkit("team", "remove", team).code == 0

    assert right_of(forge, repo, member) == "read", "of its ended order"
    assert team not in orderkit("team", "list").out.split()
    assert platform.platform.cluster.get(project(team)) is None
    assert "was removed already" in orderkit("team", "remove", team).out
    assert orderkit("team", "show", team).code == 1
    assert orderkit("team", "add", team).code == 0
    assert forge.has_org(team)


def right_of(forge: Forge, repo: RepoId, login: str) -> str:
    found = forge.user_with_right(repo, login)
    return found[1] if found else ""


def test_a_team_that_never_was_cannot_be_removed(orderkit: Command) -> None:
    assert orderkit("team", "remove", "never-was").code == 1


def test_adding_a_team_again_brings_its_orders_up_to_date(
    orderkit: Command, platform: Running, team: str
) -> None:
    """A ledger that an older version wrote delivered to namespace default."""
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage1").code == 0
    path = PurePosixPath("apps", team, f"garage-{team}.yaml")
    text = read_text(platform.platform.forge, platform.platform.ledger, path, "main") or ""
    old = text.replace(f"namespace: team-{team}", "namespace: default")
    assert old != text
    write_ledger(platform.platform, {path: old}, Operation("old", "user:default/x", "as it was"))

    assert orderkit("team", "add", team).code == 0

    assert read_text(platform.platform.forge, platform.platform.ledger, path, "main") == text
    until(
        SystemClock(),
        lambda: orderkit("status", f"garage-{team}", "--json").json["phase"],
        lambda phase: phase == "Ready",
        timeout_s=90,
        goal="the order being Ready again",
    )
    found = platform.platform.cluster.get(project(team))
    assert [d["namespace"] for d in dig(found, "spec", "destinations")] == [f"team-{team}"]
