"""Orders are pinned to a revision of their Composition, wave by wave, and let go again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from bays import EVE
from commands import Command, in_process
from packcopies import copied_pack

from compositions.composition_choice import NAME_LABEL, number_of
from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import RepoId
from ground.objects.kube_objects import COMPOSITION_REVISION, ObjectKey, dig, metadata
from orderkit.core.campaign.record import CampaignRecord
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.flows.campaign import planning, starting
from orderkit.flows.campaign.revision_work import RevisionDrafter
from orderkit.flows.campaign.running import run
from orderkit.flows.order.live_order import find_living
from orderkit.flows.order.placing import TaskRequest, order
from orderkit.flows.platform import Platform, published_kit
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running
from orderkit_workshop.generate.kit_files import generate

XR = PurePosixPath("manifests/xgarage.yaml")
TEAMS = ("one", "two", "three")


@dataclass
class Garages:
    """Orders of the reference pack's garage, whose Composition changes."""

    platform: Platform
    pack: Path
    orderkit: Command

    def text(self, team: str) -> str:
        found = self.platform.forge.read(RepoId(team, f"garage-{team}"), XR, "main")
        assert found is not None
        return found.text

    def stored(self, team: str) -> str:
        """Return the revision that composes an order."""
        key = ObjectKey(published_kit(self.platform, "garage").kind, f"garage-{team}")
        xr = self.platform.cluster.get(key)
        return str(dig(xr, "spec", "crossplane", "compositionRevisionRef", "name", default=""))

    def put(self, team: str, text: str) -> None:
        repo = RepoId(team, f"garage-{team}")
        found = self.platform.forge.read(repo, XR, "main")
        assert found is not None
        change = FileChange(XR, text.encode(), found.sha)
        by_hand = Operation(f"hand-{team}-{len(text)}", EVE.ref, "by hand")
        self.platform.forge.write(repo, [change], by_hand)

    def revisions(self) -> list[str]:
        labels = {NAME_LABEL: "xgarage-default"}
        found = self.platform.cluster.list(COMPOSITION_REVISION, labels=labels).items
        return [str(metadata(r)["name"]) for r in sorted(found, key=number_of)]

    def publish(self, label: str = "", *, pins: bool = False) -> None:
        if label:
            path = self.pack / "gitops/apis/garage/composition.yaml"
            composition = yaml.safe_load(path.read_text())
            composition["metadata"]["labels"] = {"tuned": label}
            path.write_text(yaml.safe_dump(composition, sort_keys=False))
        if pins:
            kit = self.pack / "templates/garage/kit.yaml"
            kit.write_text(f"{kit.read_text()}  pins: true\n")
            files = {
                PurePosixPath(path.relative_to(self.pack)): path.read_bytes()
                for path in self.pack.rglob("*")
                if path.is_file()
            }
            for name, data in generate(files, checked_kit("garage", files)).items():
                (self.pack / name).parent.mkdir(parents=True, exist_ok=True)
                (self.pack / name).write_bytes(data)
        done = self.orderkit("platform", "upgrade", "--timeout", "40", "--pack", str(self.pack))
        assert done.code == 0, done.err

    def start(self, name: str, what: dict[str, Any], **spec: Any) -> CampaignRecord:
        text = starting.CampaignText.read(campaign(name, what, **spec), name=name)
        starting.put(self.platform, text, EVE)
        return starting.start(self.platform, name, EVE)

    def run(self, name: str) -> str:
        record = run(self.platform, name, EVE, timeout_s=60)
        return f"{record.state}: {record.why}" if record.state == "stopped" else record.state

    def plan(self, what: dict[str, Any]) -> planning.CampaignPlan:
        text = starting.CampaignText.read(campaign("planned", what), name="planned")
        return planning.plan_campaign(self.platform, text.campaign, EVE)


def campaign(name: str, what: dict[str, Any], **spec: Any) -> bytes:
    document = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "Campaign",
        "metadata": {"name": name},
        "spec": {
            "reason": "revisions in waves",
            "what": {"revision": what},
            "which": {"kit": "garage"},
            "gates": {"ready": "40s"},
            **spec,
        },
    }
    return yaml.safe_dump(document).encode()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("revisions")
    pack = copied_pack(folder / "pack")
    kit = pack / "templates/garage/kit.yaml"
    kit.write_text(kit.read_text().replace("how: review", "how: direct"))
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as found:
        yield found, pack


@pytest.fixture
def garages(site: tuple[Running, Path], capsys: pytest.CaptureFixture[str]) -> Garages:
    found, pack = site
    command = in_process(found.embedded.state.folder / "platform.yaml", capsys)
    return Garages(found.platform, pack, command)


def test_orders_are_pinned_follow_in_waves_and_are_let_go(garages: Garages) -> None:
    for team in TEAMS:
        add_team(garages.platform, team, requester=EVE.ref)
        request = TaskRequest("garage", {"team_name": team, "stage": "stage2"}, EVE)
        order(garages.platform, request)
    before = {team: garages.text(team) for team in TEAMS}
    with pytest.raises(RefusedError, match="orders of kit garage may not be pinned"):
        garages.start("early", {"to": "current"})
    garages.publish(pins=True)

    garages.start("pin", {"to": "current"})
    assert garages.run("pin") == "done"
    (first,) = garages.revisions()
    assert garages.text("one") == before["one"] + (
        "  crossplane:\n    compositionUpdatePolicy: Manual\n"
        f"    compositionRevisionRef:\n      name: {first}\n"
    )

    garages.publish("yes")
    second = _second_revision(garages)
    assert {garages.stored(team) for team in TEAMS} == {first}
    _check_plan(garages, first, second)

    garages.start("follow", {"to": "newest"}, waves=[{"name": "canary", "orders": ["garage-two"]},
                                                      {"approve": True}])  # fmt: skip
    assert garages.run("follow") == "paused"
    assert [garages.stored(team) for team in TEAMS] == [first, second, first]
    starting.resume(garages.platform, "follow", EVE)
    assert garages.run("follow") == "done"
    assert {garages.stored(team) for team in TEAMS} == {second}

    starting.revert(garages.platform, "follow", EVE)
    assert garages.run("follow") == "reverted"
    assert f"name: {first}" in garages.text("two")

    garages.start("free", {"to": "automatic"})
    assert garages.run("free") == "done"
    free = "  crossplane:\n    compositionUpdatePolicy: Automatic\n"
    assert {team: garages.text(team) for team in TEAMS} == {
        team: text + free for team, text in before.items()
    }
    assert {garages.stored(team) for team in TEAMS} == {second}


def _second_revision(garages: Garages) -> str:
    until(SystemClock(), garages.revisions, lambda found: len(found) > 1, timeout_s=20, goal="two")
    return garages.revisions()[1]


def _check_plan(garages: Garages, first: str, second: str) -> None:
    plan = garages.plan({"to": "newest"})
    assert plan.counts == {"direct": 3}
    assert {order.effects for order in plan.orders} == {
        (f"pinned to {first} → pinned to {second}",)
    }
    drifted = {effect for o in planning.drift(garages.platform, ["garage"]) for effect in o.effects}
    assert drifted == {f"pinned to Composition revision {first}"}
    notes = "; ".join(plan.notes)
    for words in (
        "#7220", "functions are not pinned with it (function-auto-ready, function-orderkit)",
        "compositionRevisionSelector does not count", "is revision 2 of 2 of xgarage-default",
    ):  # fmt: skip
        assert words in notes
    with pytest.raises(RefusedError, match="no such revision of xgarage-default is 1d old"):
        garages.plan({"to": "newest", "minAge": "1d"})
    with pytest.raises(NotFoundError, match="xgarage-default-0000000 is no revision"):
        garages.plan({"to": "xgarage-default-0000000"})
    with pytest.raises(InvalidInputError, match="has no meaning with to: current"):
        garages.plan({"to": "current", "minAge": "1d"})


def test_only_the_canary_meets_a_bad_composition(garages: Garages) -> None:
    """History: without pins, every order meets a bad Composition at once."""
    garages.start("hold", {"to": "current"})
    assert garages.run("hold") == "done"
    good = garages.revisions()
    before = {team: garages.text(team) for team in TEAMS}
    held = garages.stored("one")
    composition = garages.pack / "gitops/apis/garage/composition.yaml"
    text = composition.read_text()
    composition.write_text(text.replace("name: garage\n", "name: of-nobody\n"))
    garages.publish()
    until(
        SystemClock(), garages.revisions, lambda found: len(found) > len(good), timeout_s=20,
        goal="the bad revision",
    )  # fmt: skip

    garages.start(
        "meet", {"to": "newest"}, waves=[{"name": "canary", "orders": ["garage-two"]}],
        gates={"ready": "40s", "failing": "1s"}, stop={"failed": 1, "then": "takeBack"},
    )  # fmt: skip
    state = garages.run("meet")

    assert state.startswith("stopped: 1 of 1 orders failed (none may fail): garage-two"), state
    assert {team: garages.text(team) for team in TEAMS} == before
    until(
        SystemClock(), lambda: {garages.stored(team) for team in TEAMS},
        lambda found: found == {held}, timeout_s=30, goal="the canary has its old revision",
    )  # fmt: skip
    composition.write_text(text)
    garages.publish()
    garages.start("let-go", {"to": "automatic"})
    assert garages.run("let-go") == "done"


def test_what_crossplane_or_somebody_else_chose_stays(garages: Garages) -> None:
    platform = garages.platform
    live = find_living(platform, "garage-one")
    drafter = RevisionDrafter(platform, live.kit, "current")
    repo, text = live.repository, garages.text("one")
    head = platform.forge.head(repo)
    assert head is not None

    with pytest.raises(NotFoundError, match="Crossplane has chosen no revision for it yet"):
        drafter.draft(live, head, {"spec": {}})
    chosen = {"compositionRef": {"name": "xother"}, "compositionRevisionRef": {"name": "xother-1"}}
    with pytest.raises(RefusedError, match="it is composed by xother, and xother-1 is a revision"):
        drafter.draft(live, head, {"spec": {"crossplane": chosen}})
    pins = []
    for name in ("a", "b"):
        pin = f"compositionUpdatePolicy: Manual\n    compositionRevisionRef: {{name: {name}}}"
        garages.put("one", text.replace("compositionUpdatePolicy: Automatic", pin))
        pins.append(platform.forge.head(repo))
    garages.put("one", text)
    did, now = pins
    assert did is not None
    assert now is not None
    with pytest.raises(RefusedError, match="somebody pinned it to something else since"):
        drafter.undo(live, head, did, now)


def test_a_push_pins_nothing_but_a_revision_of_the_kits_composition(garages: Garages) -> None:
    """The kit's policy refuses another Composition's revision, whoever pushes it."""
    text = garages.text("three")
    name = "xother-0123456"
    pin = f"compositionUpdatePolicy: Manual\n    compositionRevisionRef: {{name: {name}}}"
    garages.put("three", text.replace("compositionUpdatePolicy: Automatic", pin))

    def message() -> str:
        done = garages.orderkit("status", "garage-three", "--json")
        return done.out

    until(
        SystemClock(), message, lambda found: "only Crossplane sets it" in found, timeout_s=30,
        goal="the refusal",
    )  # fmt: skip
    garages.put("three", text)
