"""
Show a campaign over 30 orders: its canary stops it, it is mended, finished, and taken back.

It starts an embedded platform on free ports, orders 30 garages, and runs the commands as people
would; what they print is shown. The first that ends otherwise than it should ends the demo.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.connecting import connect, load_settings
from orderkit.cli.main import run
from orderkit.flows.order import order_report, placing
from orderkit.flows.platform import Platform
from orderkit.flows.team.teams import add_team
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running

ORDERS = 30
REQUESTER = "user:default/eve"
STATION = '''"""The bay; stage 3 needs a lift, which no schema knows."""

from .bay import station as bay


def station(request):
    response = bay(request)
    if request.xr["spec"]["stage"] == "stage3":
        response.fatal("stage 3 needs a lift, and there is none")
    return response
'''
CAMPAIGN = """\
apiVersion: orderkit.dev/v1alpha1
kind: Campaign
metadata: {{name: tune}}
spec:
  reason: everybody gets {stage}
  what: {{fields: {{set: {{stage: {stage}}}}}}}
  which: {{kit: garage, where: spec.stage == 'stage1'}}
  how: direct
  waves: [{{name: canary, count: 3}}, {{share: 30}}]
  gates: {{ready: 2m, failing: 2s}}
  stop: {{failed: 1, then: takeBack}}
"""


@contextmanager
def fleet(folder: Path, count: int) -> Iterator[Platform]:
    """Run a platform with so many garages at stage 1, all Ready."""
    pack = folder / "pack"
    pack.mkdir()
    shutil.copy(reference_pack() / "pack.yaml", pack)
    for part in ("templates", "stations", "gitops"):
        shutil.copytree(reference_pack() / part, pack / part)
    kit, stations = pack / "templates/garage/kit.yaml", pack / "stations/garage"
    kit.write_text(kit.read_text().replace("how: review", "how: direct"))
    (stations / "station.py").rename(stations / "bay.py")
    (stations / "station.py").write_text(STATION)
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None):
        platform = connect(load_settings(str(folder / "state" / "platform.yaml")))
        for number in range(count):
            team = f"bay-{number:02d}"
            add_team(platform, team, requester=REQUESTER)
            values = {"team_name": team, "stage": "stage1"}
            wanted = placing.TaskRequest("garage", values, Requester(REQUESTER))
            placing.order(platform, wanted, wait_s=None)
        while not all(report.state.ready for report in order_report.list_orders(platform)):
            time.sleep(0.2)
        yield platform


def tell(folder: Path) -> None:
    """Run the commands; raises SystemExit if one ends otherwise than it should."""
    file, platform_file = folder / "tune.yaml", str(folder / "state" / "platform.yaml")

    def command(code: int, *words: str) -> None:
        shown = " ".join(word if word != str(file) else file.name for word in words)
        print(f"\n$ orderkit campaign {shown}", flush=True)
        found = run(["campaign", *words, "--platform", platform_file])
        if found != code:
            sys.exit(f"exit code {found}, not {code}")

    begun_s = time.monotonic()
    file.write_text(CAMPAIGN.format(stage="stage3"))
    command(4, "plan", str(file))
    print("\nIt would be refused. Somebody starts it nevertheless:")
    command(1, "start", str(file))
    print("\nThree orders met it, and have their old stage again. The file is mended:")
    file.write_text(CAMPAIGN.format(stage="stage2"))
    command(0, "retry", str(file))
    print("\nAnd the way back, over all of them:")
    command(0, "revert", "tune")
    print(f"\n{time.monotonic() - begun_s:.0f} s from the first plan")


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        begun_s = time.monotonic()
        with fleet(Path(name), ORDERS):
            print(f"{ORDERS} garages are Ready after {time.monotonic() - begun_s:.0f} s")
            tell(Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
