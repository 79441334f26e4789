"""Generated files follow the pack's skeleton, what people did stays, and conflicts are shown."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from bays import EVE
from commands import Command, in_process
from packcopies import copied_pack

from ground.errors import IncompleteError
from ground.names import RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.connecting import token
from orderkit.core.campaign.record import CampaignRecord
from orderkit.flows.campaign import planning, starting
from orderkit.flows.campaign.running import run
from orderkit.flows.order.placing import TaskRequest, order
from orderkit.flows.platform import Platform
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

KIT, SKELETON = "templates/garage/kit.yaml", "templates/garage/skeleton"
README, CATALOG, XR, RUNBOOK, RECORD = map(
    PurePosixPath,
    (
        "README.md",
        "catalog-info.yaml",
        "manifests/xgarage.yaml",
        "RUNBOOK.md",
        ".orderkit/order.yaml",
    ),
)
TEAMS = ("plain", "edited", "clashing", "gone", "own")


@dataclass
class Fleet:
    """Orders of the reference pack's garage, and the pack, whose skeleton changes."""

    platform: Platform
    pack: Path
    orderkit: Command

    def repo(self, team: str) -> RepoId:
        return RepoId(team, f"garage-{team}")

    def text(self, team: str, path: PurePosixPath, ref: str = "main") -> str | None:
        found = self.platform.forge.read(self.repo(team), path, ref)
        return found.text if found else None

    def put(self, team: str, path: PurePosixPath, text: str | None) -> None:
        """Commit a file by hand."""
        found = self.platform.forge.read(self.repo(team), path, "main")
        data = None if text is None else text.encode()
        change = FileChange(path, data, found.sha if found else None)
        by_hand = Operation(f"hand-{team}-{path.name}-{len(text or '')}", EVE.ref, "by hand")
        self.platform.forge.write(self.repo(team), [change], by_hand)

    def replace(self, team: str, path: PurePosixPath, old: str, new: str) -> None:
        text = self.text(team, path)
        assert text is not None
        assert old in text
        self.put(team, path, text.replace(old, new))

    def publish(self) -> None:
        """Give the skeleton other lines, another tag, a label of the XR and one more file."""
        folder = self.pack / SKELETON
        for name, old, new in (
            ("README.md", "ordered with Orderkit.", "ordered with Orderkit. Ask in #garage."),
            ("catalog-info.yaml", "    - garage\n", "    - garage\n    - tuned\n"),
            ("catalog-info.yaml", "lifecycle: production", "lifecycle: tuned"),
            ("manifests/xgarage.yaml", "spec:\n", "  labels:\n    tuned: 'yes'\nspec:\n"),
        ):
            text = (folder / name).read_text()
            assert old in text, name
            (folder / name).write_text(text.replace(old, new, 1))
        (folder / "RUNBOOK.md").write_text("# Runbook of ${{ values.order }}\n")
        done = self.orderkit("platform", "upgrade", "--pack", str(self.pack))
        assert done.code == 0, done.err

    def campaign(self, name: str, **spec: object) -> CampaignRecord:
        document = {
            "apiVersion": "orderkit.dev/v1alpha1",
            "kind": "Campaign",
            "metadata": {"name": name},
            "spec": {
                "reason": "the runbook",
                "what": {"template": {}},
                "which": {"kit": "garage"},
                **spec,
            },
        }
        data = yaml.safe_dump(document).encode()
        starting.put(self.platform, starting.CampaignText.read(data, name=name), EVE)
        return starting.start(self.platform, name, EVE)

    def run(self, name: str) -> CampaignRecord:
        return run(self.platform, name, EVE, timeout_s=90)

    def drift(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        found = planning.drift(self.platform, ["garage"])
        return {o.order.removeprefix("garage-"): (o.verdict, o.effects) for o in found}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("skeletons")
    pack = copied_pack(folder / "pack")
    kit = yaml.safe_load((pack / KIT).read_text())
    kit["spec"]["changes"][0]["how"] = "direct"
    (pack / KIT).write_text(yaml.safe_dump(kit, sort_keys=False))
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as found:
        yield found, pack


@pytest.fixture
def fleet(site: tuple[Running, Path], capsys: pytest.CaptureFixture[str]) -> Fleet:
    found, pack = site
    command = in_process(found.embedded.state.folder / "platform.yaml", capsys)
    return Fleet(found.platform, pack, command)


def test_files_follow_the_skeleton_and_what_people_did_stays(fleet: Fleet) -> None:
    for team in TEAMS:
        add_team(fleet.platform, team, requester=EVE.ref)
        request = TaskRequest("garage", {"team_name": team, "stage": "stage2"}, EVE)
        order(fleet.platform, request)
    assert set(fleet.drift().values()) == {("same", ())}

    fleet.replace("edited", README, "| File | What it is |", "Ours.\n\n| File | What it is |")
    fleet.replace(
        "edited", CATALOG, "  lifecycle: production", "  lifecycle: production\n  system: shop"
    )
    fleet.replace("edited", XR, '"stage2"', '"stage3"  # race day')
    fleet.replace("clashing", README, "ordered with Orderkit.", "ordered by us.")
    fleet.put("gone", README, None)
    fleet.put("own", RUNBOOK, "# Our own runbook\n")
    fleet.publish()

    _check_drift(fleet)
    fleet.campaign("runbook")
    with pytest.raises(IncompleteError, match="2 pull requests are open"):
        fleet.run("runbook")
    _check_followers(fleet)
    _check_conflicts(fleet)

    for team in ("clashing", "own"):
        (pull,) = fleet.platform.forge.pulls(fleet.repo(team))
        fleet.platform.forge.close_pull(fleet.repo(team), pull.number)
    assert fleet.run("runbook").state == "done"
    assert {team: verdict for team, (verdict, _) in fleet.drift().items()} == {
        "plain": "same", "edited": "same", "gone": "same", "clashing": "review", "own": "review",
    }  # fmt: skip

    starting.revert(fleet.platform, "runbook", EVE)
    fleet.put("gone", RUNBOOK, "# Changed since\n")
    assert fleet.run("runbook").state == "reverted"
    assert fleet.text("plain", RUNBOOK) is None
    assert "Ask in #garage." not in (fleet.text("edited", README) or "")
    assert "Ours.\n" in (fleet.text("edited", README) or "")
    assert fleet.text("gone", RUNBOOK) == "# Changed since\n"


def _check_drift(fleet: Fleet) -> None:
    drift = fleet.drift()
    plain = ("README.md changed", "RUNBOOK.md added", "catalog-info.yaml changed")
    assert drift["plain"] == (
        "direct", (".orderkit/order.yaml changed", *plain, "manifests/xgarage.yaml changed"),
    )  # fmt: skip
    assert drift["clashing"][0] == "review"
    assert "README.md is in conflict" in drift["clashing"][1]
    assert "RUNBOOK.md is in conflict" in drift["own"][1]
    assert not any("README" in effect for effect in drift["gone"][1])
    shown = fleet.orderkit("campaign", "drift", "--kit", "garage")
    assert shown.code == 10
    assert "5 orders: 5 differ from the pack" in shown.out


def _check_followers(fleet: Fleet) -> None:
    for team in ("plain", "edited", "gone"):
        assert fleet.text(team, RUNBOOK) == f"# Runbook of garage-{team}\n"
        catalog = yaml.safe_load(fleet.text(team, CATALOG) or "")
        assert catalog["metadata"]["tags"][-1] == "tuned"
        xr = yaml.safe_load(fleet.text(team, XR) or "")
        assert xr["metadata"]["labels"] == {"tuned": "yes"}
    edited = fleet.text("edited", README) or ""
    assert "Ours.\n" in edited
    assert "Ask in #garage." in edited
    catalog = yaml.safe_load(fleet.text("edited", CATALOG) or "")
    assert (catalog["spec"]["lifecycle"], catalog["spec"]["system"]) == ("tuned", "shop")
    assert 'stage3"  # race day' in (fleet.text("edited", XR) or "")
    assert fleet.text("gone", README) is None


def _check_conflicts(fleet: Fleet) -> None:
    """
    Nothing on main, and a pull request that shows them without markers.

    History: a template that grew a file which people had made themselves (backstage #31361).
    """
    assert "ordered by us." in (fleet.text("clashing", README) or "")
    assert fleet.text("own", RUNBOOK) == "# Our own runbook\n"
    (pull,) = fleet.platform.forge.pulls(fleet.repo("clashing"))
    assert "`README.md` is in conflict" in pull.body
    assert "ordered by us." in pull.body
    proposed = fleet.text("clashing", README, pull.head) or ""
    assert "Ask in #garage." in proposed
    assert "<<<<" not in proposed


def test_a_direct_change_asks_the_forge_four_times(
    fleet: Fleet, site: tuple[Running, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """History, tree, file, write: what many orders share is asked once for all."""
    teams = [f"counted-{number}" for number in range(3)]
    for team in teams:
        add_team(fleet.platform, team, requester=EVE.ref)
        request = TaskRequest("garage", {"team_name": team, "stage": "stage1"}, EVE)
        order(fleet.platform, request)
    fleet.campaign(
        "counted",
        what={"fields": {"set": {"stage": "stage2"}}},
        which={"kit": "garage", "teams": teams},
        how="direct",
    )
    requests: list[str] = []
    send = http.client.HTTPConnection.putrequest

    def putrequest(
        connection: http.client.HTTPConnection, method: str, url: str, *more: Any, **named: Any
    ) -> None:
        if threading.current_thread().name.startswith("campaign"):  # the service reads, too
            requests.append(f"{method} {url}")
        send(connection, method, url, *more, **named)

    monkeypatch.setattr(http.client.HTTPConnection, "putrequest", putrequest)
    forge = GiteaForge(  # one that remembers no file
        site[0].settings.forge.url,
        token=token(site[0].settings.forge),
        signatures=fleet.platform.signatures,
    )
    with forge:
        behind = replace(fleet.platform, forge=forge)
        assert run(behind, "counted", EVE, timeout_s=60, is_new=True).state == "done"
    for team in teams:
        own = [line for line in requests if f"/repos/{team}/" in line]
        assert [line.partition("?")[0].rpartition(f"garage-{team}/")[2] for line in own] == [
            "commits",
            f"git/trees/{own[1].partition('?')[0][-40:]}",
            "contents/manifests/xgarage.yaml",
            "contents",
        ]
        in_ledger = f"apps/{team}/"
        assert not [line for line in requests if in_ledger in line]


def test_only_some_files_follow(fleet: Fleet) -> None:
    """Their order still follows the old pack, so that the others are not passed over later."""
    team = "partly"
    add_team(fleet.platform, team, requester=EVE.ref)
    request = TaskRequest("garage", {"team_name": team, "stage": "stage2"}, EVE)
    order(fleet.platform, request)
    before = fleet.text(team, RECORD)
    for name in ("README.md", "catalog-info.yaml"):
        path = fleet.pack / SKELETON / name
        path.write_text(path.read_text().replace("Stage Kit", "Stage kit"))
    assert fleet.orderkit("platform", "upgrade", "--pack", str(fleet.pack)).code == 0
    which = {"kit": "garage", "teams": [team]}
    fleet.campaign("readme", what={"template": {"paths": ["README*"]}}, which=which)
    assert fleet.run("readme").state == "done"
    assert "The Stage kit of" in (fleet.text(team, README) or "")
    assert "Stage Kit" in (fleet.text(team, CATALOG) or "")
    assert fleet.text(team, RECORD) == before
    fleet.campaign("others", which=which)
    assert fleet.run("others").state == "done"
    assert "Stage Kit" not in (fleet.text(team, CATALOG) or "")
    assert fleet.text(team, RECORD) != before


SIGNED = """
def edit(order):
    text = order["files"]["README.md"]
    line = f"Kit {order['kit']} of {order['team']}.\\n"
    return {"README.md": text if line in text else text + line, "OLD.md": None}
"""


def test_a_program_edits_files_once_and_is_taken_back(fleet: Fleet) -> None:
    team = "programmed"
    add_team(fleet.platform, team, requester=EVE.ref)
    request = TaskRequest("garage", {"team_name": team, "stage": "stage2"}, EVE)
    order(fleet.platform, request)
    fleet.put(team, PurePosixPath("OLD.md"), "old")
    before = fleet.text(team, README) or ""
    which, what = {"kit": "garage", "teams": [team]}, {"run": {"program": SIGNED}}
    fleet.campaign("signed", what=what, which=which)
    assert fleet.run("signed").state == "done"
    assert fleet.text(team, README) == f"{before}Kit garage of {team}.\n"
    assert fleet.text(team, PurePosixPath("OLD.md")) is None
    fleet.campaign("signed-again", what=what, which=which)
    (wave,) = fleet.run("signed-again").waves
    assert [o.why for o in wave.outcomes.values()] == ["the program changes nothing"]
    starting.revert(fleet.platform, "signed", EVE)
    assert fleet.run("signed").state == "reverted"
    assert fleet.text(team, README) == before
    assert fleet.text(team, PurePosixPath("OLD.md")) == "old"
