"""Orders take over what exists in the cloud: observed first, then managed by a reviewed change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bays import XR, Bay, merge, new_repository
from commands import Command, in_process
from takeoverpack import takeover_pack

from ground.errors import RefusedError
from ground.names import TeamName
from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.cli.main import run
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.repeating import until
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

EXTERNAL = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")
THERE = {"location": "EU", "storageClass": "NEARLINE", "labels": {"owner": "eve"}}
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("takeover")
    pack = takeover_pack(folder / "pack")
    request = EmbeddedRunRequest(
        folder / "state", pack, Ports(0, 0, 0, 0), ("photos", "archive", "ghosts")
    )
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(site.embedded.state.folder / "platform.yaml", capsys)


def exists(site: Running, name: str) -> ObjectKey:
    """Put a bucket into the cloud that no order made."""
    key = ObjectKey(EXTERNAL, f"bucket-{name}")
    about = {"apiVersion": "storage.gcp.m.upbound.io/v1beta1", "kind": "Bucket"}
    spec = {**about, "externalName": name, "forProvider": THERE}
    manifest = {"apiVersion": EXTERNAL.api_version, "kind": EXTERNAL.kind, "spec": spec}
    site.platform.cluster.apply({**manifest, "metadata": {"name": key.name}}, owner="test")
    return key


def in_cloud(site: Running, key: ObjectKey) -> Any:
    found = site.platform.cluster.get(key)
    return found and found["spec"]["forProvider"]


def ordered(orderkit: Command, team: str, bucket: str) -> None:
    done = orderkit("order", "garage", f"team_name={team}", "stage=stage2", f"bucket={bucket}")
    assert done.code == 0, done.err


def test_the_pack_is_sound(site: Running, capsys: pytest.CaptureFixture[str]) -> None:
    folder = site.embedded.state.folder.parent / "pack"

    assert run(["kit", "check", "--pack", str(folder)]) == 0, capsys.readouterr().out


def test_an_existing_bucket_is_observed_compared_and_managed(
    site: Running, orderkit: Command
) -> None:
    bucket = exists(site, "photos-2019")

    at_once = ("team_name=photos", "stage=stage2", "bucket=photos-2019", "manage=true")
    assert orderkit("order", "garage", *at_once).code == 2
    ordered(orderkit, "photos", "photos-2019")

    status = orderkit("status", "garage-photos", "--json").json
    assert status["phase"] == "Ready"
    (part,) = status["observed"]
    assert (part["externalName"], part["found"]) == ("photos-2019", True)
    assert part["differences"] == [
        {"field": "labels.owner", "there": "eve", "order": None},
        {"field": "labels.team", "there": None, "order": "photos"},
        {"field": "storageClass", "there": "NEARLINE", "order": "STANDARD"},
    ]
    text = orderkit("status", "garage-photos").out
    assert "storageClass: NEARLINE → STANDARD" in text
    assert "orderkit change garage-photos manage=true" in text
    assert in_cloud(site, bucket) == THERE, "nothing was changed"

    plan = orderkit("plan", "garage-photos", "manage=true")
    assert "Bucket photos-2019 in the cloud changes: storageClass: NEARLINE → STANDARD" in plan.out
    assert "it ends with the order" in plan.out
    changed = orderkit("change", "garage-photos", "manage=true", "--json").json
    number = changed["pull"]["number"]
    merge(Bay(site.platform, "photos", "photos"), number)

    until(
        site.platform.clock,
        lambda: in_cloud(site, bucket),
        lambda found: found["storageClass"] == "STANDARD",
        timeout_s=PATIENCE_S,
        goal="the bucket is changed",
    )
    assert orderkit("status", "garage-photos", "--json").json["observed"] == []


def test_what_was_only_observed_survives_its_order(site: Running, orderkit: Command) -> None:
    bucket = exists(site, "archive-2001")
    ordered(orderkit, "archive", "archive-2001")

    done = orderkit("destroy", "--yes", "garage-archive")

    assert done.code == 0, done.err
    assert in_cloud(site, bucket) == THERE


def test_a_name_that_nothing_has_is_said_and_nothing_is_made(
    site: Running, orderkit: Command
) -> None:
    done = orderkit(
        "order", "garage", "team_name=ghosts", "stage=stage2", "bucket=nothing", "--timeout", "3"
    )

    assert done.code != 0
    text = orderkit("status", "garage-ghosts").out
    assert "external resource does not exist" in text
    records: list[Manifest] = list(site.platform.cluster.list(EXTERNAL).items)
    assert "nothing" not in {record["spec"]["externalName"] for record in records}


def test_an_order_that_was_pushed_to_manage_at_once_is_not_registered(site: Running) -> None:
    """A member with push rights makes the repository by hand: no form, no look, no review."""
    team = TeamName("pushers")
    bay = new_repository(site.platform, team, team)
    registration = Registration(bay.order, "garage", team, "user:default/mallory")
    edited = bay.text().replace('"stage1"', '"stage1"\n  bucket: theirs\n  manage: true')
    bay.put({XR: edited})

    with pytest.raises(RefusedError, match=r"spec\.manage is set, but a new order observes first"):
        register(site.platform, registration)

    application = OrderEntry(team, bay.order).application_path
    assert application not in ledger_snapshot(site.platform).blobs
    bay.edit("manage: true", "manage: false")
    assert register(site.platform, registration).changed
