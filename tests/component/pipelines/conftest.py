"""A platform whose garage has many fields in its form, and a way to run commands."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest
import yaml
from changingpack import changing_pack
from commands import Command, in_process

from orderkit.cli.main import run
from orderkit.flows.team.teams import add_team
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("pipelines")
    pack = changing_pack(folder / "pack")
    kit = pack / "templates" / "garage" / "kit.yaml"
    declared = yaml.safe_load(kit.read_text())
    declared["spec"]["fields"]["laps"] = {"ask": "later"}
    declared["spec"]["outputs"].append({"name": "stage", "path": "stage"})
    declared["spec"]["yamlFields"] = ["pit"]
    kit.write_text(yaml.safe_dump(declared, sort_keys=False))
    definition = pack / "gitops" / "apis" / "garage" / "definition.yaml"
    xrd = yaml.safe_load(definition.read_text())
    fields = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields["properties"]["password"] = {"type": "string"}
    definition.write_text(yaml.safe_dump(xrd, sort_keys=False))
    disk = ["--group", "example.org", "--scope", "namespaced", "--field", "sizeGb:integer"]
    assert run(["kit", "new", "disk", *disk, "--no-input", "--pack", str(pack)]) == 0
    disk_kit = pack / "templates" / "disk" / "kit.yaml"
    disk_kit.write_text(re.sub(r"^  teamFrom: .*\n", "", disk_kit.read_text(), flags=re.MULTILINE))
    assert run(["kit", "generate", "--pack", str(pack)]) == 0
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture
def orderkit(platform: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against the platform."""
    return in_process(platform.embedded.state.folder / "platform.yaml", capsys)


_numbers = itertools.count(1)


@pytest.fixture
def team(platform: Running) -> str:
    """A team that nobody else uses."""
    name = f"squad-{next(_numbers):03d}"
    add_team(platform.platform, name, requester="user:default/test")
    return name
