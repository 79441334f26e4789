"""Plans and reports that begin with what the cluster has: paused, edited and pinned orders."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Command
from packcopies import copied_pack
from portalsides import eventually

from ground.names import RepoId
from ground.objects.kube_objects import Kind, ObjectKey, condition
from orderkit.cli.main import run
from orderkit_standins.crossplane.composites import BURST
from orderkit_standins.serve_platform import Running

PAUSED = "crossplane.io/paused"
XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
CONFIG_MAP = Kind("", "v1", "ConfigMap")


@dataclass(frozen=True)
class PausedOrder:
    """An order that somebody paused with kubectl, and whose spec sheet somebody edited then."""

    name: str
    running: Running

    @property
    def order(self) -> str:
        return f"garage-{self.name}"

    @property
    def sheet(self) -> ObjectKey:
        return ObjectKey(CONFIG_MAP, "spec-sheet", f"garage-{self.name}")

    def annotate(self, value: str | None) -> None:
        patch = {"metadata": {"annotations": {PAUSED: value}}}
        self.running.platform.cluster.patch(ObjectKey(XGARAGE, self.order), patch, owner="admin")
        eventually(lambda: self._rests() is (value is not None))

    def _rests(self) -> bool:
        """Say whether Crossplane has seen the pause: what it began before that, it finishes."""
        xr = self.running.platform.cluster.get(ObjectKey(XGARAGE, self.order)) or {}
        return (condition(xr, "Synced") or {}).get("reason") == "ReconcilePaused"

    def edit_sheet(self, stage: str) -> None:
        patch = {"data": {"stage": stage}}
        self.running.platform.cluster.patch(self.sheet, patch, owner="somebody")


@pytest.fixture(scope="module")
def paused(platform: Running) -> Iterator[PausedOrder]:
    found = PausedOrder("wild-paused", platform)
    settings = str(platform.embedded.state.folder / "platform.yaml")
    for arguments in (
        ("team", "add", found.name),
        ("order", "garage", f"team_name={found.name}", "stage=stage1"),
    ):
        assert run([*arguments, "--platform", settings]) == 0
    found.annotate("true")
    found.edit_sheet("hacked")
    yield found
    found.annotate(None)


def test_status_says_that_an_order_is_paused(orderkit: Command, paused: PausedOrder) -> None:
    done = orderkit("status", paused.order)

    assert f"{paused.order} of team {paused.name}: Attention" in done.out
    assert (
        f"XGarage {paused.order} is paused (annotation {PAUSED}): Crossplane composes, "
        "changes and deletes nothing until it is resumed" in done.out
    )
    assert f"kubectl annotate xgarage.blog.opsbogus.dev {paused.order} {PAUSED}-" in done.out


def test_list_trace_and_doctor_say_it_too(orderkit: Command, paused: PausedOrder) -> None:
    listed = {entry["order"]: entry for entry in orderkit("list", "--json").json["orders"]}
    findings = {f["what"]: f for f in orderkit("doctor", "--json").json["findings"]}

    assert listed[paused.order]["phase"] == "Attention"
    assert f"{PAUSED}-" in orderkit("trace", paused.order).out
    assert findings["crossplane"]["verdict"] == "warn"
    assert "1 of " in findings["crossplane"]["detail"]
    assert f"paused ({paused.order})" in findings["crossplane"]["detail"]


def test_a_plan_says_that_nothing_happens_until_it_is_resumed(
    orderkit: Command, paused: PausedOrder
) -> None:
    done = orderkit("plan", paused.order, "stage=stage2")

    assert done.code == 10
    assert (
        f'  paused      XGarage {paused.order} is paused ({PAUSED}: "true" in the cluster): '
        f"nothing of this happens until it is resumed; kubectl annotate xgarage.blog.opsbogus.dev "
        f"{paused.order} {PAUSED}-" in done.out
    )
    assert "  in the end  Paused" in done.out
    told = orderkit("plan", paused.order, "stage=stage2", "--json").json["plan"]
    assert (told["ready"], [entry["path"] for entry in told["paused"]]) == (False, [""])


def test_a_proposed_change_says_it_in_the_pull_request(
    orderkit: Command, paused: PausedOrder
) -> None:
    done = orderkit("change", paused.order, "stage=stage2")

    assert done.code == 0
    assert "nothing of this happens until it is resumed" in done.out
    (pull,) = paused.running.platform.forge.pulls(RepoId(paused.name, paused.order))
    assert "The order is paused: nothing of this happens until it is resumed." in pull.body


def test_a_plan_begins_with_what_somebody_edited(orderkit: Command, paused: PausedOrder) -> None:
    done = orderkit("plan", paused.order, "stage=stage3")

    assert (
        f"  drift       ConfigMap garage-{paused.name}/spec-sheet (spec-sheet) was changed in "
        "data.stage: Crossplane changes it back" in done.out
    )
    assert "      data.stage hacked → stage3" in done.out


def test_a_plan_that_changes_nothing_reports_drift(orderkit: Command, paused: PausedOrder) -> None:
    done = orderkit("plan", paused.order, "--head", "main", "--json")

    told = done.json["plan"]
    assert [entry["path"] for entry in told["drift"]] == ["spec-sheet"]
    assert told["resources"][0]["fields"] == [
        {"field": "data.stage", "from": "hacked", "to": "stage1"}
    ]
    assert done.code == 10


def test_a_plan_makes_again_what_somebody_deleted(
    orderkit: Command, platform: Running, new_name: Callable[[], str]
) -> None:
    order = PausedOrder(new_name(), platform)
    assert orderkit("team", "add", order.name).code == 0
    assert orderkit("order", "garage", f"team_name={order.name}", "stage=stage1").code == 0
    order.annotate("true")
    platform.platform.cluster.delete(order.sheet)

    done = orderkit("plan", order.order, "stage=stage2")

    assert (
        f"  drift       ConfigMap garage-{order.name}/spec-sheet (spec-sheet) is not in the "
        "cluster: Crossplane makes it again" in done.out
    )
    assert f"  + ConfigMap garage-{order.name}/spec-sheet   spec-sheet" in done.out
    order.annotate(None)
    assert orderkit("change", order.order, "stage=stage2").code == 0
    assert "drift" not in orderkit("plan", order.order, "stage=stage3").out


def test_a_circuit_breaker_that_is_open_is_reported(
    orderkit: Command, platform: Running, new_name: Callable[[], str]
) -> None:
    """As many events as a loop makes; the order is Ready, and Crossplane looks at it no more."""
    order = PausedOrder(new_name(), platform)
    assert orderkit("team", "add", order.name).code == 0
    assert orderkit("order", "garage", f"team_name={order.name}", "stage=stage1").code == 0
    key, cluster = ObjectKey(XGARAGE, order.order), platform.platform.cluster
    for number in range(BURST):
        cluster.patch(key, {"metadata": {"labels": {"loop": str(number)}}}, owner="loop")
        xr = cluster.get(key) or {} if number % 25 == 0 else {}
        if (condition(xr, "Responsive") or {}).get("status") == "False":
            break

    status, trace = orderkit("status", order.order), orderkit("trace", order.order)
    findings = {f["what"]: f for f in orderkit("doctor", "--json").json["findings"]}

    said = (condition(xr, "Responsive") or {}).get("message")
    assert said == (
        f"Too many watch events from XGarage/{order.order}. Allowing events periodically."
    )
    assert "circuit breaker is open (Responsive=False): it looks only every 30 s" in status.out
    assert "--circuit-breaker-burst=1000" in status.out
    assert f"{order.order} of team {order.name}: Ready" in status.out
    assert "circuit breaker is open" in trace.out
    assert findings["crossplane"]["verdict"] == "warn"
    assert f"throttled ({order.order})" in findings["crossplane"]["detail"]


@dataclass
class PinnedBench:
    """The reference pack under git, changed afterwards, and a folder of XRs."""

    pack: Path
    xrs: Path
    capsys: pytest.CaptureFixture[str]

    def write(self, name: str, machinery: dict[str, Any] | None) -> None:
        xr = {
            "apiVersion": "blog.opsbogus.dev/v1alpha1",
            "kind": "XGarage",
            "metadata": {"name": f"garage-{name}"},
            "spec": {"teamName": name, "stage": "stage1"},
        }
        if machinery:
            xr["spec"]["crossplane"] = machinery  # type: ignore[index]
        (self.xrs / f"{name}.yaml").write_text(yaml.safe_dump(xr))

    def plan(self, *arguments: str) -> tuple[int, str]:
        self.capsys.readouterr()
        code = run(
            [
                "plan",
                "--kit",
                "garage",
                "--pack",
                str(self.pack),
                "--xrs",
                str(self.xrs),
                *arguments,
            ]
        )
        return code, self.capsys.readouterr().out


@pytest.fixture
def pinned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> PinnedBench:
    pack = copied_pack(tmp_path / "pack")
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "before")):
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", "-C", str(pack), *identity, *command], check=True)
    composition = pack / "gitops/apis/garage/composition.yaml"
    found = yaml.safe_load(composition.read_text())
    added = {"apiVersion": "v1", "kind": "ConfigMap"}
    found["metadata"]["labels"] = {"channel": "beta"}
    found["spec"]["pipeline"].insert(
        1,
        {
            "step": "more",
            "functionRef": {"name": "function-patch-and-transform"},
            "input": {
                "apiVersion": "pt.fn.crossplane.io/v1beta1",
                "kind": "Resources",
                "resources": [
                    {"name": "more", "base": {**added, "metadata": {"namespace": "default"}}}
                ],
            },
        },
    )
    composition.write_text(yaml.safe_dump(found, sort_keys=False))
    (tmp_path / "xrs").mkdir()
    return PinnedBench(pack, tmp_path / "xrs", capsys)


MANUAL = {
    "compositionRef": {"name": "xgarage-default"},
    "compositionUpdatePolicy": "Manual",
    "compositionRevisionRef": {"name": "xgarage-default-1234567"},
}


def test_a_changed_pack_does_not_reach_pinned_orders(pinned: PinnedBench) -> None:
    pinned.write("free", None)
    pinned.write("manual", MANUAL)
    selector = {"matchLabels": {"channel": "stable"}}
    automatic = {"compositionUpdatePolicy": "Automatic", "compositionRevisionSelector": selector}
    pinned.write("channel", automatic)
    pinned.write("beta", {"compositionRevisionSelector": {"matchLabels": {"channel": "beta"}}})

    code, text = pinned.plan()

    assert code == 10
    assert "garage: 4 orders: 2 unchanged, 2 changed, " in text
    assert ", 2 of them not affected: pinned\n" in text
    assert (
        "  not affected: pinned: compositionUpdatePolicy Manual pins it to CompositionRevision "
        "xgarage-default-1234567: 1 order (garage-manual)" in text
    )
    assert "compositionRevisionSelector channel=stable keeps it at CompositionRevision" in text
    assert "2 orders (garage-beta, garage-free)" in text
    assert "Composition xgarage-default of the pack is assumed: 3 orders" in text


def test_a_pinned_order_is_composed_by_its_revision(pinned: PinnedBench) -> None:
    """The revision is a fact of the folder here; on a platform, the cluster's."""
    pinned.write("manual", MANUAL)
    revision = yaml.safe_load((pinned.pack / "gitops/apis/garage/composition.yaml").read_text())
    revision["kind"] = "CompositionRevision"
    revision["metadata"] = {"name": "xgarage-default-1234567"}
    revision["spec"]["revision"] = 7
    (pinned.xrs / "revision.yaml").write_text(yaml.safe_dump(revision))

    code, text = pinned.plan()

    assert code == 0
    assert "not affected: pinned" in text
    assert "not asked for" not in text
