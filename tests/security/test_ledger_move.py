"""Naming another ledger in platform.yaml must not delete what the present one lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import in_process

from ground.names import RepoId
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, ObjectKey, metadata
from ground.shapes import changed
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.connecting import connect
from orderkit.flows.install.bootstrapping.platform_repositories import delivered_ledger
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

OLD, NEW = RepoId("platform", "ledger"), RepoId("platform", "ledger-two")


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform of its own, because its ledger is archived in the end."""
    state = tmp_path_factory.mktemp("moving") / "state"
    request = EmbeddedRunRequest(state, reference_pack(), Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as started:
        yield started


@pytest.fixture
def edited(ordered: Running) -> Path:
    """Write platform.yaml with another ledger."""
    path = ordered.embedded.state.folder / "edited.yaml"
    path.write_text(changed(ordered.settings, ledger_repository=str(NEW)).to_yaml())
    return path


def application_uid(platform: Running) -> str:
    key = ObjectKey(APPLICATION, "garage-ae86", ARGOCD_NAMESPACE)
    application = platform.platform.cluster.get(key)
    assert application is not None
    return str(metadata(application)["uid"])


def test_a_ledger_with_orders_is_not_left_behind_but_moved(
    ordered: Running, edited: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = in_process(ordered.embedded.state.folder / "platform.yaml", capsys)
    orderkit = in_process(edited, capsys)
    assert plain("order", "garage", "team_name=ae86", "stage=stage1").code == 0
    uid = application_uid(ordered)

    planned = orderkit("bootstrap", "--plan", "--no-probe")
    refused = orderkit("bootstrap", "--no-probe")
    upgraded = orderkit("platform", "upgrade")

    assert planned.code == 1
    assert refused.code == upgraded.code == 4, upgraded
    assert f"{OLD} lists this platform's teams and 1 orders" in refused.err
    assert "--move-ledger" in refused.err
    assert delivered_ledger(ordered.platform) == OLD

    moved = orderkit("bootstrap", "--no-probe", "--move-ledger")

    assert moved.code == 0, moved.err
    until(
        SystemClock(),
        lambda: delivered_ledger(ordered.platform),
        lambda ledger: ledger == NEW,
        timeout_s=60,
        goal="the new ledger",
    )
    assert orderkit("bootstrap", "--no-probe", "--move-ledger").code == 0
    assert orderkit("bootstrap", "--no-probe").code == 0
    assert orderkit("change", "garage-ae86", "stage=stage2", "--dry-run").code == 0
    assert orderkit("status", "garage-ae86", "--json").json["ready"]
    assert application_uid(ordered) == uid
    assert plain("team", "add", "late").code == 4  # the old ledger is read-only
    late = orderkit("team", "add", "late")
    assert late.code == 0, late.err
    old = connect(ordered.settings).forge.repo(OLD)
    assert old is not None
    assert old.archived
