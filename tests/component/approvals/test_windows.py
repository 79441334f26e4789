"""Orders of a kit with maintenance windows wait for them, and say until when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from changingpack import changing_pack
from commands import Command, in_process

from ground.names import TeamName
from ground.objects.kube_objects import APP_PROJECT, ARGOCD_NAMESPACE, ObjectKey
from orderkit.core.kit.order_terms import DAYS
from orderkit.core.order import ledger
from orderkit.flows.order import order_report
from orderkit.flows.repeating import until
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running
from yamlfiles import yaml11
from yamlfiles.manifests import parse_manifests

KEY = ObjectKey(APP_PROJECT, "ae86", ARGOCD_NAMESPACE)
DAY = DAYS[(datetime.now(UTC) + timedelta(days=3)).weekday()]


def windowed_pack(target: Path) -> Path:
    """Write a pack whose garage is delivered three days from now."""
    changing_pack(target)
    kit = target / "templates" / "garage" / "kit.yaml"
    document = yaml.safe_load(kit.read_text())
    document["spec"]["windows"] = [{"days": [DAY], "from": "10:00", "to": "11:00"}]
    kit.write_text(yaml.safe_dump(document, sort_keys=False))
    return target


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("windows")
    pack = windowed_pack(folder / "pack")
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as started:
        yield started


def test_an_order_waits_until_its_window_opens(
    site: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    orderkit: Command = in_process(site.embedded.state.folder / "platform.yaml", capsys)
    platform = site.platform

    ordered = orderkit("order", "garage", "team_name=ae86", "stage=stage1")
    shown = orderkit("status", "garage-ae86")
    project = platform.cluster.get(KEY)

    assert project is not None
    (window,) = project["spec"]["syncWindows"]
    assert window["applications"] == ["garage-*"]
    assert ordered.code == 5
    assert "waits for the maintenance window of kit garage, which opens" in ordered.err
    assert "waits for the maintenance window of kit garage, which opens" in shown.out
    assert "10:00 UTC" in shown.out

    # The platform team opens it: Argo CD goes by the AppProject, whatever the kit says.
    file = platform.forge.read(platform.ledger, ledger.team_path(TeamName("ae86")), "main")
    assert file is not None
    documents = parse_manifests("team", file.data)
    for document in documents:
        document["spec"].pop("syncWindows", None)
    change = FileChange(file.path, yaml11.dump_all(list(documents)).encode(), file.sha)
    opening = Operation("open-ae86", "user:default/boss", "ae86: open now")
    platform.forge.write(platform.ledger, [change], opening)
    until(
        platform.clock,
        lambda: order_report.status(platform, "garage-ae86").state,
        lambda state: state.ready,
        timeout_s=120,
        goal="Ready once the window is gone",
    )
