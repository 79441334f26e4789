"""An order that fails holds nobody up: the platform starts again, and all other orders go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from packcopies import copied_pack

from orderkit.flows.order import order_report, placing
from orderkit.flows.repeating import until
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running


@pytest.mark.timeout(400)
def test_a_platform_with_a_failing_order_starts_again(tmp_path: Path) -> None:
    pack = copied_pack(tmp_path / "pack")
    station = pack / "stations/garage/station.py"
    wanted = EmbeddedRunRequest(tmp_path / "state", pack, Ports(0, 0, 0, 0), ("ae86",))
    request = placing.TaskRequest(
        "garage", {"team_name": "ae86", "stage": "stage1"}, Requester("user:default/test")
    )
    with running(wanted, on_step=lambda *_: None) as first:
        placing.order(first.platform, request)

    good = station.read_text()
    station.write_text(
        good.replace("    response =", '    raise ValueError("no bays")\n    response =')
    )
    with running(wanted, on_step=lambda *_: None) as second:
        until(
            second.platform.clock,
            lambda: order_report.status(second.platform, "garage-ae86"),
            lambda report: "no bays" in report.state.reason,
            timeout_s=60,
            goal="the order failing",
        )

    layers: list[str] = []
    with running(wanted, on_step=lambda step, told: layers.append(f"{step} {told}")):
        assert any(one.startswith("layer ledger") for one in layers)
