"""XRs move to another version of the XRD, and back; nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from bays import EVE
from changingpack import changing_pack
from commands import Command, in_process

from ground.errors import InvalidInputError, RefusedError
from ground.names import RepoId
from ground.objects.kube_objects import CRD, ObjectKey
from orderkit.core.campaign.record import CampaignRecord
from orderkit.flows.campaign import planning, starting
from orderkit.flows.campaign.running import run
from orderkit.flows.campaign.version_work import check_version
from orderkit.flows.order.placing import TaskRequest, order
from orderkit.flows.platform import Platform, published_kit
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

XR = PurePosixPath("manifests/xgarage.yaml")
TEAMS = ("plain", "noted", "split", "odd")
MOVED: dict[str, Any] = {
    "race": {"type": "object", "properties": {"laps": {"type": "integer"}}},
    "grade": {"type": "string", "enum": ["C", "B", "A"]},
}
CONVERSION: dict[str, Any] = {
    "from": "v1alpha1",
    "to": "v1beta1",
    "move": {"laps": "race.laps"},
    "map": {"level": {"to": "grade", "values": [["low", "C"], ["middle", "B"], ["high", "A"]]}},
}


@dataclass
class Garages:
    """Orders of a garage whose XRD gets another version."""

    platform: Platform
    pack: Path
    orderkit: Command

    def repo(self, team: str) -> RepoId:
        return RepoId(team, f"garage-{team}")

    def text(self, team: str) -> str:
        found = self.platform.forge.read(self.repo(team), XR, "main")
        assert found is not None
        return found.text

    def add(self, team: str, lines: str) -> None:
        """Commit lines below ``spec`` by hand."""
        found = self.platform.forge.read(self.repo(team), XR, "main")
        assert found is not None
        change = FileChange(XR, f"{found.text.rstrip()}\n{lines}".encode(), found.sha)
        by_hand = Operation(f"hand-{team}-{len(lines)}", EVE.ref, "by hand")
        self.platform.forge.write(self.repo(team), [change], by_hand)

    def publish(self, *, with_old: bool = True, **conversion: Any) -> None:
        """Publish the pack with a second version, which is the one that is stored."""
        folder = self.pack / "gitops/apis/garage"
        xrd = yaml.safe_load((folder / "definition.yaml").read_text())
        old = xrd["spec"]["versions"][0]
        new = yaml.safe_load(yaml.safe_dump(old))
        old["referenceable"], new["name"] = False, "v1beta1"
        fields = new["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        for name in () if with_old else ("laps", "level"):
            del fields[name]
        fields.update(MOVED)
        xrd["spec"]["versions"] = [old, new]
        kit_file = self.pack / "templates/garage/kit.yaml"
        kit = yaml.safe_load(kit_file.read_text())
        kit["spec"]["conversions"] = [{**CONVERSION, **conversion}]
        kit["spec"]["changes"] = [
            change for change in kit["spec"]["changes"] if change["name"] in ("stage", "plate")
        ]
        skeleton = self.pack / "templates/garage/skeleton/manifests/xgarage.yaml"
        texts = {
            folder / "definition.yaml": yaml.safe_dump(xrd, sort_keys=False),
            kit_file: yaml.safe_dump(kit, sort_keys=False),
            skeleton: skeleton.read_text().replace("dev/v1alpha1", "dev/v1beta1"),
        }
        before = {path: path.read_text() if path.exists() else None for path in texts}
        for path, text in texts.items():
            path.write_text(text)
        done = self.orderkit("platform", "upgrade", "--timeout", "20", "--pack", str(self.pack))
        if done.code:
            for path, old in before.items():
                path.unlink() if old is None else path.write_text(old)
            raise RefusedError(done.err)

    def file(self, name: str, **spec: Any) -> bytes:
        document = {
            "apiVersion": "orderkit.dev/v1alpha1",
            "kind": "Campaign",
            "metadata": {"name": name},
            "spec": {
                "reason": "v1alpha1 goes",
                "what": {"version": {"to": "v1beta1"}},
                "which": {"kit": "garage"},
                "gates": {"ready": "60s"},
                **spec,
            },
        }
        return yaml.safe_dump(document).encode()

    def start(self, name: str, **spec: Any) -> CampaignRecord:
        text = starting.CampaignText.read(self.file(name, **spec), name=name)
        starting.put(self.platform, text, EVE)
        return starting.start(self.platform, name, EVE)

    def run(self, name: str) -> CampaignRecord:
        return run(self.platform, name, EVE, timeout_s=90)

    def plan(self, tmp_path: Path, **spec: Any) -> str:
        file = tmp_path / "move.yaml"
        file.write_bytes(self.file("move", **spec))
        return self.orderkit("campaign", "plan", str(file)).out


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("versions")
    pack = changing_pack(folder / "pack")
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as found:
        yield found, pack


@pytest.fixture
def garages(site: tuple[Running, Path], capsys: pytest.CaptureFixture[str]) -> Garages:
    found, pack = site
    command = in_process(found.embedded.state.folder / "platform.yaml", capsys)
    return Garages(found.platform, pack, command)


def test_a_version_is_migrated_and_taken_back(garages: Garages, tmp_path: Path) -> None:
    """Histories re-created: a field renamed (crossplane #6726)."""
    for team in TEAMS:
        add_team(garages.platform, team, requester=EVE.ref)
        request = TaskRequest("garage", {"team_name": team, "stage": "stage2"}, EVE)
        order(garages.platform, request)
    garages.add("plain", "  laps: 7   # as Bea says\n")
    garages.add("noted", "  # fast ones only\n  level: high  # for now\n  laps: 3\n")
    garages.add("odd", "  pit: {bays: 2}\n")
    before = {team: garages.text(team) for team in TEAMS}

    with pytest.raises(InvalidInputError, match="is not the version that the Compositions"):
        garages.start("early")
    with pytest.raises(InvalidInputError, match=r"spec\.conversions is missing"):
        garages.start("wayless", what={"version": {"to": "v1alpha1"}})
    with pytest.raises(RefusedError, match=r"laps.*would be dropped by the cluster"):
        garages.publish(with_old=False)
    with pytest.raises(RefusedError, match="is not a field of v1alpha1"):
        garages.publish(move={"lapse": "race.laps"})
    garages.publish()
    _check_refused(garages, tmp_path)

    drifted = {effect for o in planning.drift(garages.platform, ["garage"]) for effect in o.effects}
    assert "XR is blog.opsbogus.dev/v1alpha1, the kit's is blog.opsbogus.dev/v1beta1" in drifted
    plan = garages.plan(tmp_path)
    assert "4 orders: 4 direct" in plan
    assert "v1alpha1 → v1beta1: 4 orders" in plan
    assert "laps → race.laps: 2 orders" in plan
    assert "level → grade: 1 order " in plan
    assert "the cluster stores v1beta1, and converts by renaming the version" in plan
    assert "v1alpha1 cannot be switched off: 4 orders have it" in plan

    garages.start("move", waves=[{"name": "canary", "count": 1}])
    assert garages.run("move").state == "done"
    _check_moved(garages)
    assert "v1alpha1 can be switched off (served: false): no order has it" in garages.plan(tmp_path)
    assert "take v1alpha1 out of status.storedVersions" in garages.plan(tmp_path)

    garages.add("noted", "  motto: faster\n")
    starting.revert(garages.platform, "move", EVE)
    assert garages.run("move").state == "reverted"
    assert garages.text("plain") == before["plain"]
    assert "v1beta1" in garages.text("noted")


def _check_refused(garages: Garages, tmp_path: Path) -> None:
    """What a cluster that has not taken the pack yet lacks is named, one after the other."""
    kit = published_kit(garages.platform, "garage")
    crd = garages.platform.cluster.get(ObjectKey(CRD, "xgarages.blog.opsbogus.dev"))
    assert crd is not None
    meta = {"name": "xgarages.blog.opsbogus.dev"}
    with closing(EmbeddedCluster(tmp_path / "cluster.sqlite")) as cluster:
        with pytest.raises(RefusedError, match="the cluster has no CustomResourceDefinition"):
            check_version(cluster, kit, "v1beta1")
        for served, words in (
            (("v1alpha1",), "does not serve v1beta1 of XGarage: served: v1alpha1"),
            (("v1alpha1", "v1beta1"), "stores XGarage as v1alpha1, not as v1beta1"),
        ):
            versions = [
                {**version, "served": True, "storage": version["name"] == "v1alpha1"}
                for version in crd["spec"]["versions"]
                if version["name"] in served
            ]
            spec = {**crd["spec"], "versions": versions}
            there = {"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": meta}
            cluster.apply({**there, "spec": spec}, owner="test")
            with pytest.raises(RefusedError, match=words):
                check_version(cluster, kit, "v1beta1")


def _check_moved(garages: Garages) -> None:
    plain, noted = garages.text("plain"), garages.text("noted")
    assert "apiVersion: blog.opsbogus.dev/v1beta1\n" in plain
    assert plain.startswith(garages.text("split").split("apiVersion")[0])
    assert plain.endswith("  race:\n    laps: 7  # as Bea says\n")
    assert "  # fast ones only\n  grade: A  # for now\n  race:\n    laps: 3\n" in noted
    xr = yaml.safe_load(noted)
    assert xr["spec"]["grade"] == "A"
    assert "level" not in xr["spec"]
    assert yaml.safe_load(garages.text("odd"))["spec"]["pit"] == {"bays": 2}
